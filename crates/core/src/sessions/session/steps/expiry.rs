//! Ends sessions by age: after `inactivityTimeout` without activity, or at `maxAge`.
//!
//! A running command counts as activity. A quiet session costs one deadline and no timer of its own. The monotonic
//! clock decides; the wall clock only gives an adopting server the time that has passed.

use std::time::Duration;

use tokio::sync::oneshot;
use wire::ToHolder;

use crate::action::{Foreground, Limit};
use crate::limits;
use crate::sessions::session::state::holder_link::Call;
use crate::sessions::session::state::session::Session;

/// The interval at which termination is requested again, in case the holder did not get the request.
const ASK_AGAIN: Duration = Duration::from_secs(30);

impl Session {
    /// Whether a program runs that a client may wait for, including a start-up file.
    fn is_busy(&self) -> bool {
        self.timeline.log().current.is_some() || !matches!(self.foreground(), Foreground::Idle | Foreground::Stopped)
    }

    /// Requests the termination of a session whose deadline has passed, and records the limit.
    pub(super) fn check_expiry(&mut self) {
        if (self.expiry.inactivity, self.expiry.old_at, self.expiry.again_at) == (None, None, None) {
            return;
        }
        if self.follower.is_replaying || self.timeline.end().exit.is_some() {
            self.expiry.again_at = None;
            (self.expiry.quiet_at, self.expiry.old_at) =
                (None, self.expiry.old_at.filter(|_| self.follower.is_replaying));
            return;
        }
        let is_busy = self.is_busy();
        if std::mem::replace(&mut self.expiry.was_busy, is_busy) && !is_busy {
            self.expiry.touch(self.now.at);
        }
        let now = self.now.at;
        if self.expiry.next_at().is_none_or(|at| now < at) {
            return;
        }
        if self.expiry.again_at.is_none() {
            let is_old = self.expiry.old_at.is_some_and(|at| now >= at);
            let limit = if is_old { Limit::MaxAge } else { Limit::InactivityTimeout };
            self.hit(limit, self.timeline.log().current, 1);
        }
        self.expiry.again_at = Some(now + ASK_AGAIN);
        let (reply, _) = oneshot::channel();
        let grace_ms = u32::try_from(limits::TERMINATE_GRACE.as_millis()).unwrap_or(u32::MAX);
        let signo = sys::signal::HUP;
        self.link.call(self.now.at, Call::Terminate(reply), |seq| ToHolder::Terminate { seq, signo, grace_ms });
    }
}
