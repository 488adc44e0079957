//! Stopped jobs: whether the command that ended last was stopped by `^Z`, and its job still exists.
//!
//! bash and zsh report a code of 128 and the signal; fish and mksh report 0, but the kernel shows the stopped child.

use crate::host::{Host, Identity, descendants};

/// The stopped jobs of the shell.
#[derive(Debug, Default)]
pub(crate) struct StoppedJobs {
    /// The last command was stopped, and its job still exists.
    pub(crate) has_stopped: bool,
    /// A key or a signal that stops programs was sent since the last command ended.
    pub(crate) may_have_stopped: bool,
    /// The shell's children that were stopped at the last check.
    stopped: Vec<Identity>,
}

impl StoppedJobs {
    /// A command or line ended with this code.
    pub(crate) fn on_end(&mut self, host: &dyn Host, code: Option<i32>, (holder_pid, shell_pid): (u32, u32)) {
        let may_have_stopped = std::mem::take(&mut self.may_have_stopped);
        self.has_stopped =
            code.is_some_and(is_stop) || may_have_stopped && self.finds_another(host, holder_pid, shell_pid);
    }

    /// Whether a child of the shell is stopped that was not at the last check.
    fn finds_another(&mut self, host: &dyn Host, holder_pid: u32, shell_pid: u32) -> bool {
        let all = descendants(host, holder_pid);
        let stopped = all.iter().filter(|s| s.parent == shell_pid && s.is_job_stopped);
        let stopped: Vec<_> = stopped.map(|s| s.identity).collect();
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
    use std::slice;

    use super::*;
    use crate::host::{self, FakeHost, Process};

    const HOLDER: u32 = 1;
    const SHELL: u32 = 2;

    fn process(pid: u32, parent: u32, is_job_stopped: bool) -> Process {
        Process { is_job_stopped, ..host::process(pid, parent) }
    }

    #[test]
    fn a_stop_code_means_a_stopped_job_and_no_other_code_does() {
        let (mut jobs, host) = (StoppedJobs::default(), FakeHost::default());
        for (code, has_stopped) in [(Some(128 + sys::signal::TSTP), true), (Some(0), false), (None, false)] {
            jobs.on_end(&host, code, (HOLDER, SHELL));
            assert_eq!(jobs.has_stopped, has_stopped, "{code:?}");
        }
    }

    #[test]
    fn a_new_stopped_child_outweighs_a_shell_that_reports_no_stop() {
        let (mut jobs, host) = (StoppedJobs::default(), FakeHost::default());
        let (holder, shell) = (process(HOLDER, 0, false), process(SHELL, HOLDER, false));
        let mut has_stopped = |below: &[Process]| {
            host.runs(&[&[holder.clone(), shell.clone()], below].concat(), 0);
            jobs.may_have_stopped = true;
            jobs.on_end(&host, Some(0), (HOLDER, SHELL));
            jobs.has_stopped
        };
        let stopped = process(3, SHELL, true);
        assert!(!has_stopped(&[process(3, SHELL, false)]), "it runs");
        assert!(!has_stopped(&[process(3, SHELL, false), process(4, 3, true)]), "not the shell's own");
        assert!(has_stopped(slice::from_ref(&stopped)));
        assert!(!has_stopped(slice::from_ref(&stopped)), "known from the last command");
        assert!(has_stopped(&[stopped, process(5, SHELL, true)]));
    }
}
