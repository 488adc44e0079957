//! Processor time by process: what a command costs, whoever waited for whom. A busy machine changes it less than times of day.

use std::time::Duration;

use e2e::Pid;

/// The part that a process has in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// `ptyd serve`.
    Server,
    /// `ptyd-holder`.
    Holder,
    /// The shell, also the floor's.
    Shell,
    /// `ptyd mcp`.
    Shim,
}

impl Role {
    /// The word for it in tables and files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Holder => "holder",
            Self::Shell => "shell",
            Self::Shim => "shim",
        }
    }
}

/// Seconds of processor time by role.
pub type ProcessorTime = Vec<(Role, f64)>;

/// Processes that are watched from its making on.
#[derive(Debug)]
pub struct Meter(Vec<(Role, Pid, Duration)>);

impl Meter {
    /// Begins to watch.
    pub fn begin(watched: &[(Role, Pid)]) -> Self {
        Self(watched.iter().map(|&(role, pid)| (role, pid, pid.processor_time())).collect())
    }

    /// Also watches a process that began later, with all that it has used.
    pub fn add(&mut self, role: Role, pid: Pid) {
        self.0.push((role, pid, Duration::ZERO));
    }

    /// The use by role since the beginning, for each of this many things done.
    pub fn spent(&self, things: usize) -> ProcessorTime {
        let mut spent = ProcessorTime::new();
        for &(role, pid, before) in &self.0 {
            let used = pid.processor_time().saturating_sub(before).as_secs_f64() / things as f64;
            match spent.iter_mut().find(|(known, _)| *known == role) {
                Some((_, sum)) => *sum += used,
                None => spent.push((role, used)),
            }
        }
        spent
    }
}
