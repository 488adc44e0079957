//! Ends a session whose `inactivityTimeout` or `maxAge` has passed.

use tokio::sync::oneshot;
use wire::ToHolder;

use crate::action::Foreground;
use crate::limits;
use crate::sessions::session::machine::expiry::state::Due;
use crate::sessions::session::machine::holder_link::Call;
use crate::sessions::session::machine::session::Session;

impl Session {
    /// Whether a program runs that a client may wait for, including a start-up file.
    fn is_busy(&self) -> bool {
        self.cx.timeline.log().current.is_some() || !matches!(self.foreground(), Foreground::Idle | Foreground::Stopped)
    }

    /// Requests the termination of a session whose deadline has passed, and records the limit.
    pub(in crate::sessions::session::machine) fn check_expiry(&mut self) {
        if !self.expiry.is_set() {
            return;
        }
        if self.cx.follower.is_replaying || self.cx.timeline.end().exit.is_some() {
            return self.expiry.suspend(self.cx.follower.is_replaying);
        }
        let is_busy = self.is_busy();
        let Some(due) = self.expiry.check(self.cx.now.at, is_busy) else { return };
        if let Due::First(limit) = due {
            self.cx.hit(limit, self.cx.timeline.log().current, 1);
        }
        let (reply, _) = oneshot::channel();
        let grace_ms = u32::try_from(limits::TERMINATE_GRACE.as_millis()).unwrap_or(u32::MAX);
        let signo = sys::signal::HUP;
        self.cx.link.call(self.cx.now.at, Call::Terminate(reply), |seq| ToHolder::Terminate { seq, signo, grace_ms });
    }
}
