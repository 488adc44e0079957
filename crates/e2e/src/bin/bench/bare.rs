//! The baseline: bash on a PTY without anything in between. A marker before its prompt shows when a command ended.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command};

use anyhow::{Result, ensure};
use e2e::{Home, Pid};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// The shell's output before its prompt; no measured command prints it.
const MARKER: &[u8] = b"\x1b]9;bare\x07";
/// The prompt's own end.
const PROMPT: &[u8] = b"% ";

/// More than a marker, what readline sends behind it, and a prompt.
const NEWEST: usize = 128;

/// A shell.
pub struct Bare {
    leader: File,
    child: Child,
    buffer: Vec<u8>,
    /// The end of what came and was not waited for.
    newest: Vec<u8>,
}

impl Bare {
    /// With the terminal as its own, as in every real one; at its prompt.
    pub fn on_terminal(home: &Home) -> Result<Self> {
        let mut setsid = Command::new("setsid");
        setsid.args(["--ctty", "bash"]);
        Self::until_prompt(setsid, home)
    }

    /// At its prompt. Not even a session is made for it: this is the minimum of what a start takes.
    pub fn start(home: &Home) -> Result<Self> {
        Self::until_prompt(Command::new("bash"), home)
    }

    fn until_prompt(mut command: Command, home: &Home) -> Result<Self> {
        let leader = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&leader)?;
        unlockpt(&leader)?;
        let name = ptsname(&leader, Vec::new())?;
        let user_side: OwnedFd =
            rustix::fs::open(&*name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
        command.args(["--norc", "--noprofile", "-i"]).env_clear().envs(home.environment());
        command.env("PROMPT_COMMAND", r"printf '\e]9;bare\a'").env("PS1", "% ");
        command.stdin(user_side.try_clone()?).stdout(user_side.try_clone()?).stderr(user_side);
        let child = command.spawn()?;
        let mut bare = Self { leader: leader.into(), child, buffer: vec![0; 1 << 16], newest: Vec::new() };
        bare.until(MARKER)?;
        bare.until(PROMPT)?;
        Ok(bare)
    }

    /// The shell's process: setsid executes it and stays the same.
    pub fn pid(&self) -> Pid {
        Pid::new(self.child.id())
    }

    /// Runs a command until the next one could be typed; how many bytes came up to its end. The prompt counts, because a
    /// caller that runs one command after the other waits for it, through ptyd too.
    pub fn run(&mut self, command: &str) -> Result<u64> {
        self.leader.write_all(format!("{command}\r").as_bytes())?;
        let bytes = self.until(MARKER)?;
        self.until(PROMPT)?;
        Ok(bytes)
    }

    /// Reads until this came; how many bytes came meanwhile. Only the newest few are looked through: behind a marker
    /// and a prompt nothing comes.
    fn until(&mut self, wanted: &[u8]) -> Result<u64> {
        let mut bytes = 0;
        loop {
            if let Some(at) = self.newest.windows(wanted.len()).position(|window| window == wanted) {
                self.newest.drain(..at + wanted.len());
                return Ok(bytes);
            }
            let read = self.leader.read(&mut self.buffer)?;
            ensure!(read > 0, "the bare shell ended");
            bytes += read as u64;
            self.newest.extend(&self.buffer[read.saturating_sub(NEWEST)..read]);
            let old = self.newest.len().saturating_sub(NEWEST);
            self.newest.drain(..old);
        }
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        let _ = self.child.kill().and_then(|()| self.child.wait());
    }
}
