//! A home of its own for each test, with the server that its first command starts.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Output};

pub struct Home {
    pub dir: tempfile::TempDir,
}

impl Home {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().expect("a directory") }
    }

    pub fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ptyd"));
        self.environment(command.args(arguments));
        command
    }

    /// Programs of the home's `bin` come first on PATH.
    pub fn environment<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", self.dir.path().join("bin").display());
        command.env_clear().current_dir(self.dir.path()).env("PATH", path);
        command.env("HOME", self.dir.path()).env("LC_ALL", "C.UTF-8");
        command.env("PTYD_STATE_DIR", self.state()).env("PTYD_LISTEN", "127.0.0.1:0")
    }

    pub fn ptyd(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("ptyd runs")
    }

    /// The standard output of a command that succeeds.
    pub fn prints(&self, arguments: &[&str]) -> String {
        let output = self.ptyd(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// The exit code, and what was printed for people.
    pub fn fails(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.ptyd(arguments);
        (output.status.code().expect("a code"), String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// Every file of the home but those of the server, with its text.
    pub fn files(&self) -> BTreeMap<PathBuf, String> {
        let mut all = BTreeMap::new();
        let mut open = vec![self.dir.path().to_owned()];
        while let Some(folder) = open.pop() {
            for entry in std::fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
                if entry.is_dir() && !entry.ends_with("state") {
                    all.insert(entry.clone(), String::new());
                    open.push(entry);
                } else if entry.is_file() {
                    all.insert(entry.clone(), std::fs::read_to_string(&entry).expect("text"));
                }
            }
        }
        all
    }

    pub fn has(&self, path: &str, text: &str) {
        let path = self.dir.path().join(path);
        std::fs::create_dir_all(path.parent().expect("below the home")).expect("made");
        std::fs::write(path, text).expect("written");
    }

    /// Ends the server by this signal and waits until its lock is free again.
    pub fn end_server(&self, signo: i32) {
        let pid = std::fs::read_to_string(self.state().join("lock")).ok().and_then(|text| text.trim().parse().ok());
        if let Some(pid) = pid
            && sys::signal::send(pid, signo).is_ok()
        {
            let lock = std::fs::File::open(self.state().join("lock")).expect("the lock file");
            lock.lock().expect("free once the server has ended");
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // Sessions outlive the server, so they are ended first. Without a server this does nothing.
        self.ptyd(&["kill", "--all", "--force"]);
        self.end_server(sys::signal::TERM);
    }
}
