//! Stopped jobs: whether the command that ended last was stopped by `^Z`, and its job still exists.
//!
//! bash and zsh report a code of 128 and the signal; fish and mksh report 0, but the kernel shows the stopped child.

use crate::sessions::processes::{Identity, tree};

/// The stopped jobs of the shell.
#[derive(Debug, Default)]
pub(super) struct StoppedJobs {
    /// The last command was stopped, and its job still exists.
    pub(super) has_stopped: bool,
    /// A key or a signal that stops programs was sent since the last command ended.
    pub(super) may_have_stopped: bool,
    /// The shell's children that were stopped at the last check.
    stopped: Vec<Identity>,
}

impl StoppedJobs {
    /// A command or line ended with this code.
    pub(super) fn on_end(&mut self, code: Option<i32>, holder_pid: u32, shell_pid: u32) {
        let may_have_stopped = std::mem::take(&mut self.may_have_stopped);
        self.has_stopped = code.is_some_and(is_stop) || may_have_stopped && self.finds_another(holder_pid, shell_pid);
    }

    /// Whether a child of the shell is stopped that was not at the last check.
    fn finds_another(&mut self, holder_pid: u32, shell_pid: u32) -> bool {
        let all = tree(holder_pid);
        let stopped = all.iter().filter(|s| s.ppid == shell_pid && s.state == b'T');
        let stopped: Vec<_> = stopped.map(|s| (s.pid, s.start_ticks)).collect();
        let before = std::mem::replace(&mut self.stopped, stopped);
        self.stopped.iter().any(|child| !before.contains(child))
    }
}

/// Whether this exit code means that a program was stopped (`^Z`).
fn is_stop(code: i32) -> bool {
    sys::signal::of_exit_code(code) == Some(sys::signal::TSTP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_of_a_stop_is_a_stopped_job_and_another_end_is_none() {
        let mut jobs = StoppedJobs::default();
        jobs.on_end(Some(128 + sys::signal::TSTP), 0, 0);
        assert!(jobs.has_stopped);
        jobs.on_end(Some(0), 0, 0);
        assert!(!jobs.has_stopped);
        jobs.on_end(None, 0, 0);
        assert!(!jobs.has_stopped);
    }
}
