//! A real Redis of a test's own, on a Unix socket in the test's folder.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// A Redis that keeps nothing on disk.
pub struct Redis {
    folder: PathBuf,
    process: Child,
}

impl Redis {
    /// Starts one in this folder, and waits until it listens.
    pub fn start(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), process: listening(folder) }
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("redis+unix://{}", socket(&self.folder).display())
    }

    /// Removes everything that it has.
    pub fn empty(&self) {
        self.does(&["FLUSHALL"]);
    }

    /// Runs a command in it, and returns what it prints.
    pub fn does(&self, words: &[&str]) -> String {
        let answered = Command::new("redis-cli").arg("-s").arg(socket(&self.folder)).args(words).output();
        String::from_utf8(answered.expect("redis-cli is there").stdout).expect("text")
    }

    /// Lets it accept bytes and answer nothing, as behind a network that drops packets.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    /// Kills it, and starts an empty one in its place.
    pub fn replace(&mut self) {
        self.kill();
        self.process = listening(&self.folder);
    }

    /// Kills it.
    pub fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.process.id()).expect("a pid")).expect("a process");
        kill_process(pid, signal).expect("it is ours");
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.kill();
    }
}

fn socket(folder: &Path) -> PathBuf {
    folder.join("redis.sock")
}

fn listening(folder: &Path) -> Child {
    let mut process = Command::new("redis-server")
        .args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"])
        .arg(socket(folder))
        .arg("--dir")
        .arg(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("redis-server is there");
    let mut lines = BufReader::new(process.stdout.take().expect("piped")).lines();
    let is_ready = lines.any(|line| line.is_ok_and(|line| line.contains("eady to accept connections")));
    assert!(is_ready, "redis-server does not listen");
    // It stops at a full pipe.
    std::thread::spawn(move || lines.for_each(drop));
    process
}
