//! A session's time limits, `inactivityTimeout` and `maxAge`, and their deadlines.
//!
//! A running command counts as activity. A quiet session costs one deadline and no timer of its own. The monotonic
//! clock decides; the wall clock only gives an adopting server the time without activity, unless it was set. After a pause of
//! the machine, the time without activity begins again, because nobody could use the session. Its age includes the pause.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;
use wire::ToHolder;

use super::context::Context;
use super::foreground::state::ForegroundState;
use super::holder_link::Call;
use crate::action::{Foreground, Limit, Limits};
use crate::limits;
use crate::machine_pause::was_paused;
use crate::sessions::session::now::Now;
use crate::sessions::shared::Shared;

/// The interval at which termination is requested again, in case the holder did not get the request.
const ASK_AGAIN: Duration = Duration::from_secs(30);

/// The session's time limits and their deadlines.
#[derive(Debug)]
pub(crate) struct Expiry {
    inactivity: Option<Duration>,
    /// The deadline of the inactivity timeout.
    quiet_at: Option<Instant>,
    /// The deadline of the maximum age.
    old_at: Option<Instant>,
    /// Termination was requested, and is requested again then.
    again_at: Option<Instant>,
    /// A command ran at the last check.
    was_busy: bool,
}

/// A termination to request.
#[derive(Debug, PartialEq, Eq)]
enum Due {
    /// The session has just reached this limit.
    First(Limit),
    Again,
}

impl Expiry {
    pub(crate) fn of(shared: &Shared, now: Now) -> Self {
        let Limits { inactivity, max_age, .. } = shared.meta.limits;
        let old_at = max_age.map(|age| now.at + age.saturating_sub(now.age_of(&shared.meta)));
        Self { inactivity, quiet_at: None, old_at, again_at: None, was_busy: false }
    }

    /// Whether a limit is set, or a termination was requested.
    fn is_set(&self) -> bool {
        (self.inactivity, self.old_at, self.again_at) != (None, None, None)
    }

    /// Records activity.
    pub(crate) fn touch(&mut self, now: Instant) {
        self.quiet_at = self.inactivity.map(|time| now + time);
    }

    /// Sets the time of the last activity, possibly under an earlier server.
    pub(crate) fn quiet_since(&mut self, us: u64, now: Now) {
        self.quiet_at = self.inactivity.map(|time| now.at + time.saturating_sub(now.since(us)));
    }

    pub(crate) fn next_at(&self) -> Option<Instant> {
        let quiet_at = self.quiet_at.filter(|_| !self.was_busy);
        self.again_at.or_else(|| [quiet_at, self.old_at].into_iter().flatten().min())
    }

    /// No deadline counts: the session has ended, or events from before this server are being read. Its age counts
    /// again after those.
    fn suspend(&mut self, is_replaying: bool) {
        (self.quiet_at, self.old_at, self.again_at) = (None, self.old_at.filter(|_| is_replaying), None);
    }

    /// Requests the termination of a session whose deadline has passed, and records the limit.
    pub(super) fn check(&mut self, cx: &mut Context, foreground: &ForegroundState) {
        if !self.is_set() {
            return;
        }
        if cx.follower.is_replaying || cx.timeline.end().exit.is_some() {
            return self.suspend(cx.follower.is_replaying);
        }
        // A program that a client may wait for, including a start-up file.
        let is_busy = cx.timeline.log().current.is_some()
            || !matches!(foreground.foreground(cx), Foreground::Idle | Foreground::Stopped);
        let Some(due) = self.due(cx.now.at, is_busy) else { return };
        if let Due::First(limit) = due {
            cx.hit(limit, cx.timeline.log().current, 1);
        }
        let (reply, _) = oneshot::channel();
        let grace_ms = u32::try_from(limits::TERMINATE_GRACE.as_millis()).unwrap_or(u32::MAX);
        let signo = sys::signal::HUP;
        cx.link.call(cx.now.at, Call::Terminate(reply), |seq| ToHolder::Terminate { seq, signo, grace_ms });
    }

    /// The termination to request now, if a deadline has passed.
    fn due(&mut self, now: Instant, is_busy: bool) -> Option<Due> {
        let was_busy = std::mem::replace(&mut self.was_busy, is_busy);
        if was_busy && !is_busy || self.quiet_at.is_some_and(|at| was_paused(at, now)) {
            self.touch(now);
        }
        if self.next_at().is_none_or(|at| now < at) {
            return None;
        }
        let is_old = self.old_at.is_some_and(|at| now >= at);
        let limit = if is_old { Limit::MaxAge } else { Limit::InactivityTimeout };
        let before = self.again_at.replace(now + ASK_AGAIN);
        Some(before.map_or(Due::First(limit), |_| Due::Again))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expiry(inactivity: Option<u64>, old_at: Option<Instant>) -> Expiry {
        let inactivity = inactivity.map(Duration::from_secs);
        Expiry { inactivity, quiet_at: None, old_at, again_at: None, was_busy: false }
    }

    #[test]
    fn a_quiet_session_ends_after_its_time_and_the_end_is_requested_again() {
        let (begin, second) = (Instant::now(), Duration::from_secs(1));
        let mut expiry = expiry(Some(10), None);
        expiry.touch(begin);
        assert_eq!(expiry.due(begin + 9 * second, false), None);
        assert_eq!(expiry.due(begin + 10 * second, false), Some(Due::First(Limit::InactivityTimeout)));
        assert_eq!(expiry.due(begin + 11 * second, false), None);
        assert_eq!(expiry.due(begin + 10 * second + ASK_AGAIN, false), Some(Due::Again));
    }

    #[test]
    fn a_pause_of_the_machine_is_not_inactivity_but_age() {
        let (begin, second) = (Instant::now(), Duration::from_secs(1));
        let mut expiry = expiry(Some(10), Some(begin + 100 * second));
        expiry.touch(begin);
        assert_eq!(expiry.due(begin + 50 * second, false), None, "nobody could use it");
        assert_eq!(expiry.next_at(), Some(begin + 60 * second));
        assert_eq!(expiry.due(begin + 61 * second, false), Some(Due::First(Limit::InactivityTimeout)));
        assert_eq!(
            expiry.due(begin + 90 * second, false),
            None,
            "a late look shows no pause of a session that is being ended"
        );
        expiry.again_at = None;
        assert_eq!(expiry.due(begin + 150 * second, false), Some(Due::First(Limit::MaxAge)));
    }

    #[test]
    fn a_busy_session_is_not_quiet_but_grows_old() {
        let (begin, second) = (Instant::now(), Duration::from_secs(1));
        let mut expiry = expiry(Some(10), Some(begin + 100 * second));
        expiry.touch(begin);
        assert_eq!(expiry.due(begin + 50 * second, true), None);
        assert_eq!(expiry.due(begin + 60 * second, false), None, "its quiet time has only begun");
        assert_eq!(expiry.next_at(), Some(begin + 70 * second));
        assert_eq!(expiry.due(begin + 61 * second, true), None);
        assert_eq!(expiry.due(begin + 100 * second, true), Some(Due::First(Limit::MaxAge)));
    }
}
