//! A person at a terminal: a real PTY with a program on it, read and typed at from the other side.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus};
use std::time::Instant;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};

use crate::server::is_readable;
use crate::{PATIENCE, Pid};

/// A person at a terminal.
#[derive(Debug)]
pub struct Person {
    leader: File,
    /// Kept open, so that the terminal and its modes outlive the program.
    user_side: OwnedFd,
    child: Child,
    seen: Vec<u8>,
}

impl Person {
    /// Starts a program on a terminal of this size.
    pub fn starts(command: &Command, cols: u16, rows: u16) -> Self {
        let leader = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&leader).and_then(|()| unlockpt(&leader)).expect("ours");
        let name = ptsname(&leader, Vec::new()).expect("it has a name");
        let user_side = rustix::fs::open(&*name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty());
        let user_side = user_side.expect("it can be opened");
        tcsetwinsize(&leader, size(cols, rows)).expect("any size");
        // The program that makes this its controlling terminal, so that it is notified of size changes.
        let mut on_terminal = Command::new("setsid");
        on_terminal.arg("--ctty").arg(command.get_program()).args(command.get_args()).env_clear();
        on_terminal.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if let Some(dir) = command.get_current_dir() {
            on_terminal.current_dir(dir);
        }
        let end = || user_side.try_clone().expect("room for a descriptor");
        let child = on_terminal.stdin(end()).stdout(end()).stderr(end()).spawn().expect("setsid is there");
        Self { leader: leader.into(), user_side, child, seen: Vec::new() }
    }

    /// Types.
    pub fn types(&mut self, bytes: &[u8]) {
        self.leader.write_all(bytes).expect("a terminal takes what is typed");
    }

    /// Waits until this is to be seen in what came since the last time, and forgets everything up to it.
    pub fn sees(&mut self, text: &str) {
        let begun = Instant::now();
        loop {
            if let Some(at) = self.seen.windows(text.len()).position(|window| window == text.as_bytes()) {
                self.seen.drain(..at + text.len());
                return;
            }
            let left = PATIENCE.saturating_sub(begun.elapsed());
            let mut buffer = [0u8; 4096];
            let read = if is_readable(&self.leader, left) { self.leader.read(&mut buffer).unwrap_or(0) } else { 0 };
            assert!(read > 0, "{text:?} is not to be seen, only {:?}", String::from_utf8_lossy(&self.seen));
            self.seen.extend(&buffer[..read]);
        }
    }

    /// Pulls at the window's corner.
    pub fn resizes(&mut self, cols: u16, rows: u16) {
        tcsetwinsize(&self.leader, size(cols, rows)).expect("any size");
    }

    /// The terminal's modes.
    pub fn modes(&self) -> Termios {
        tcgetattr(&self.user_side).expect("it is a terminal")
    }

    /// Waits for the program's end.
    pub fn leaves(&mut self) -> ExitStatus {
        assert!(Pid::new(self.child.id()).ends_within(PATIENCE), "it does not end");
        self.child.wait().expect("ours to wait for")
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        // Of a test that failed; else it has ended.
        let _ = self.child.kill().and_then(|()| self.child.wait());
    }
}

fn size(cols: u16, rows: u16) -> Winsize {
    Winsize { ws_col: cols, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 }
}
