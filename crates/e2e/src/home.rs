//! A test's own home directory: nothing in it is the developer's, and every process in it can be found by its path.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// Variables that are passed on; everything else of the caller's environment stays outside.
const PASSED: [&str; 3] = ["PATH", "LLVM_PROFILE_FILE", "PTYD_TEST_READ_SIZES"];

/// The folder and the environment that goes with it.
#[derive(Debug)]
pub struct Home {
    dir: TempDir,
}

impl Home {
    /// Makes one.
    pub fn make() -> Self {
        // Short, because a socket's whole path has 107 bytes.
        let dir = tempfile::Builder::new().prefix("ptyd-e2e-").tempdir().expect("the system has a folder for such");
        for folder in ["config", "data", "state", "cache", "run", "files"] {
            let path = dir.path().join(folder);
            std::fs::DirBuilder::new().mode(0o700).create(path).expect("a folder of our own");
        }
        // Only root's prompt differs from machine to machine; without a start-up file every shell is the same.
        std::fs::write(dir.path().join(".bashrc"), "PS1='$ '\n").expect("written");
        std::fs::write(dir.path().join(".zshrc"), "PS1='$ '\n").expect("written");
        std::fs::create_dir(dir.path().join("config/fish")).expect("a folder of our own");
        let fish = "set -g fish_greeting\nfunction fish_prompt; echo '$ '; end\n";
        std::fs::write(dir.path().join("config/fish/config.fish"), fish).expect("written");
        // Without them fish starts a program in the background that reads all manual pages: up to 4.0 it looks in the
        // first, later in the second.
        for folder in ["data", "cache"] {
            let generated = dir.path().join(folder).join("fish/generated_completions");
            std::fs::create_dir_all(generated).expect("a folder of our own");
        }
        Self { dir }
    }

    /// Its path, by which its processes are also found.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The server's state.
    pub fn state(&self) -> PathBuf {
        self.path().join("state/ptyd")
    }

    /// The server's socket.
    pub fn socket(&self) -> PathBuf {
        self.path().join("run/ptyd.sock")
    }

    /// A place for a test's own files.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path().join("files").join(name)
    }

    /// The environment of everything that runs in it.
    pub fn environment(&self) -> Vec<(&'static str, PathBuf)> {
        let passed = PASSED.iter().filter_map(|name| Some((*name, PathBuf::from(std::env::var_os(name)?))));
        let own = [
            ("HOME", ""),
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_DATA_HOME", "data"),
            ("XDG_STATE_HOME", "state"),
            ("XDG_CACHE_HOME", "cache"),
            ("XDG_RUNTIME_DIR", "run"),
            ("PTYD_RUNTIME_DIR", "run"),
            ("PTYD_STATE_DIR", "state/ptyd"),
        ];
        let own = own.iter().map(|(name, folder)| (*name, self.path().join(folder)));
        let words =
            [("LANG", "C.UTF-8"), ("TERM", "xterm-256color"), ("PTYD_LISTEN", "127.0.0.1:0"), ("SHELL", "/bin/bash")];
        passed.chain(own).chain(words.map(|(name, word)| (name, PathBuf::from(word)))).collect()
    }
}

/// Writes the configuration of a server in this home.
pub fn configure(home: &Home, text: &str) {
    let folder = home.path().join("config/ptyd");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("config.toml"), text).expect("written");
}
