//! The end of the session: requested by a client, by the holder itself, or begun by the shell's exit.
//!
//! ```text
//! requested ──► terminating ──nothing left, exit recorded──► over
//! shell exited ──exit recorded──► terminating what is left (or over at once if descendants are kept)
//! ```

use wire::Status;

use crate::connections::Caller;
use crate::termination::{self, Progress, Scope, Termination};

/// How often a running termination is checked: a client waits for its end.
const CHECK_US: u64 = 5_000;

#[derive(Debug)]
struct Exit {
    wait_status: i32,
    is_recorded: bool,
}

#[derive(Debug, Default)]
pub(crate) struct SessionEnd {
    /// Whether descendants outlive the session.
    keeps_descendants: bool,
    exit: Option<Exit>,
    termination: Option<Termination>,
    /// The requests that asked for termination and are answered when it is complete.
    callers: Vec<Caller>,
    /// Termination was requested: from then on the exit no longer waits for disk space.
    is_requested: bool,
    /// It is recorded that the exit waits for disk space.
    is_exit_delayed: bool,
    is_over: bool,
}

impl SessionEnd {
    pub(crate) fn new(keeps_descendants: bool) -> Self {
        Self { keeps_descendants, ..Self::default() }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    pub(crate) fn has_exited(&self) -> bool {
        self.exit.is_some()
    }

    /// Whether the session takes no more commands.
    pub(crate) fn has_begun(&self) -> bool {
        self.exit.is_some() || self.termination.is_some()
    }

    pub(crate) fn is_terminating(&self) -> bool {
        self.termination.is_some()
    }

    /// The shell was reaped with this wait status.
    pub(crate) fn shell_exited(&mut self, wait_status: i32) {
        self.exit.get_or_insert(Exit { wait_status, is_recorded: false });
    }

    /// The shell's wait status, while it is not recorded yet.
    pub(crate) fn unrecorded_exit(&self) -> Option<i32> {
        self.exit.as_ref().filter(|exit| !exit.is_recorded).map(|exit| exit.wait_status)
    }

    /// Whether the exit waits for room on the disk although its last output cannot be written; from a request on it does
    /// not.
    pub(crate) fn waits_for_disk(&self) -> bool {
        !self.is_requested
    }

    /// The exit waits for disk space; true if that is not recorded yet.
    pub(crate) fn delay_exit(&mut self) -> bool {
        !std::mem::replace(&mut self.is_exit_delayed, true)
    }

    /// The processes that the shell has left, if they are ended because it has exited by itself: how many, and the first names.
    pub(crate) fn left_behind(&self) -> (u32, String) {
        if self.keeps_descendants || self.is_terminating() { (0, String::new()) } else { termination::named_living() }
    }

    /// The exit is on record: the rest of the session's programs is ended, or left alone.
    pub(crate) fn exit_recorded(&mut self, now: u64) {
        if let Some(exit) = &mut self.exit {
            exit.is_recorded = true;
        }
        match &mut self.termination {
            Some(termination) => termination.shell_is_gone(now),
            None if self.keeps_descendants => self.is_over = true,
            None => self.termination = Some(Termination::after_exit(now)),
        }
    }

    /// The end was requested; a caller is answered when it is complete.
    pub(crate) fn request(&mut self, from: Option<Caller>) {
        self.is_requested = true;
        self.callers.extend(from);
    }

    /// Begins with this signal.
    pub(crate) fn terminate(&mut self, signo: i32, grace_us: u64, shell_pid: u32, now: u64) {
        let scope = if self.keeps_descendants { Scope::Session(shell_pid) } else { Scope::All };
        self.termination = Some(Termination::asked(signo, grace_us, shell_pid, scope, now));
    }

    /// Sends SIGKILL next.
    pub(crate) fn hurry(&mut self, now: u64) {
        if let Some(termination) = &mut self.termination {
            termination.hurry(now);
        }
    }

    /// Continues the termination. When it is complete and the exit is recorded: the answer to its callers.
    pub(crate) fn turn(&mut self, now: u64) -> Option<(Status, u64)> {
        let termination = self.termination.as_mut()?;
        let found = termination.found;
        let left = match termination.turn(now) {
            Progress::Waiting => return None,
            Progress::Over => 0,
            Progress::GivenUp(left) => left,
        };
        let status = if left == 0 { Status::Ok } else { Status::Stalled };
        self.exit.as_ref().filter(|exit| exit.is_recorded).map(|_| (status, found.saturating_sub(left)))
    }

    /// The session is over; returns the callers to answer.
    pub(crate) fn complete(&mut self) -> Vec<Caller> {
        self.is_over = true;
        std::mem::take(&mut self.callers)
    }

    pub(crate) fn next_at(&self, now: u64) -> Option<u64> {
        self.termination.as_ref().map(|termination| termination.next_at().min(now + CHECK_US))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_keeps_its_descendants_is_over_with_its_recorded_exit() {
        let mut end = SessionEnd::new(true);
        end.shell_exited(256);
        end.shell_exited(0);
        assert_eq!((end.unrecorded_exit(), end.is_over()), (Some(256), false));
        end.exit_recorded(0);
        assert_eq!((end.unrecorded_exit(), end.is_over(), end.is_terminating()), (None, true, false));
    }

    #[test]
    fn an_exit_waits_for_the_disk_until_the_end_is_requested() {
        let mut end = SessionEnd::new(true);
        end.shell_exited(0);
        assert!(end.waits_for_disk());
        assert_eq!((end.delay_exit(), end.delay_exit()), (true, false), "recorded once");
        end.request(Some((1, 2)));
        assert!(!end.waits_for_disk());
        assert_eq!((end.complete(), end.is_over()), (vec![(1, 2)], true));
    }
}
