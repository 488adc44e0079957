//! The processes of a session, and the signals that were sent to them.

use std::time::{Duration, SystemTime};

use super::SignalTarget;

/// A process as it is now.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcessView {
    /// Its id.
    pub pid: u32,
    /// Its parent, if that is of the session.
    pub parent: Option<u32>,
    /// Its process group.
    pub group: u32,
    /// Its kernel session (setsid(2)).
    pub session: u32,
    /// The command's name, at most 15 bytes.
    pub name: String,
    /// The command line.
    pub command_line: String,
    /// What it does.
    pub state: ProcessState,
    /// Percent of one core since the list was asked for last.
    pub cpu_percent: f64,
    /// Time on processors so far.
    pub cpu_time: Duration,
    /// Resident memory in MiB.
    pub memory_mb: f64,
    /// When it started.
    pub started_at: SystemTime,
    /// It is of the terminal's foreground process group.
    pub is_foreground: bool,
}

/// What a process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessState {
    /// It computes, or could.
    Running,
    /// It waits.
    Sleeping,
    /// It waits and cannot be interrupted.
    Blocked,
    /// It was stopped by a signal.
    Stopped,
    /// It has ended; its parent may not have noticed.
    Ended,
}

/// A signal that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignalView {
    /// Its number.
    pub signo: i32,
    /// Whom it was for.
    pub target: SignalTarget,
    /// When.
    pub at: SystemTime,
    /// Why the kernel refused it.
    pub error: Option<String>,
    /// Who got it and what became of them since. Empty where an earlier server sent it.
    pub receivers: Vec<Receiver>,
}

/// A process that got a signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receiver {
    /// Its id.
    pub pid: u32,
    /// The command's name.
    pub name: String,
    /// What it does now.
    pub state: ProcessState,
}
