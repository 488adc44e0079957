//! The processes of a session, and the signals that were sent to them.

use std::time::{Duration, SystemTime};

use journal::MaskedText;

/// The present view of a process.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcessView {
    /// Its id.
    pub pid: u32,
    /// Its id in the pid namespace of its sandbox, by which programs there know it.
    pub sandbox_pid: Option<u32>,
    /// Its parent, if that belongs to the session.
    pub parent: Option<u32>,
    /// Its process group.
    pub group: u32,
    /// Its kernel session (setsid(2)).
    pub session: u32,
    /// The command's name, at most 15 bytes.
    pub name: MaskedText,
    /// The command line.
    pub command_line: MaskedText,
    /// Its state.
    pub state: ProcessState,
    /// Percent of one core since the previous list.
    pub cpu_percent: f64,
    /// CPU time so far.
    pub cpu_time: Duration,
    /// Resident memory in MiB.
    pub memory_mb: f64,
    /// When it started.
    pub started_at: SystemTime,
    /// Whether it is in the terminal's foreground process group.
    pub is_foreground: bool,
}

/// The state of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessState {
    /// It runs or is ready to run.
    Running,
    /// It waits.
    Sleeping,
    /// It is in uninterruptible sleep.
    Blocked,
    /// It was stopped by a signal.
    Stopped,
    /// It has ended, even if its parent has not reaped it.
    Ended,
}

/// A signal that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignalView {
    /// Its number.
    pub signo: i32,
    /// Its target.
    pub target: SignalTarget,
    /// When it was sent.
    pub at: SystemTime,
    /// The kernel's error, if it refused the signal.
    pub error: Option<String>,
    /// The processes that got it, with their present state. Empty if an earlier server sent it.
    pub receivers: Vec<Receiver>,
}

/// A process that got a signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receiver {
    /// Its id.
    pub pid: u32,
    /// The command's name.
    pub name: String,
    /// Its present state.
    pub state: ProcessState,
}

/// The target of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalTarget {
    /// The foreground process group.
    Foreground,
    /// Every process of the session.
    Session,
    /// One process of the session.
    Process(u32),
}
