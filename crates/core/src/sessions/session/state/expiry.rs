//! A session's time limits, `inactivityTimeout` and `maxAge`, and their deadlines.
//!
//! A running command counts as activity. A quiet session costs one deadline and no timer of its own. The monotonic
//! clock decides; the wall clock only gives an adopting server the time that has passed.

use std::time::Duration;

use tokio::time::Instant;

use crate::action::Limits;
use crate::sessions::session::now::Now;
use crate::sessions::shared::Shared;

/// The session's time limits and their deadlines.
#[derive(Debug)]
pub(crate) struct Expiry {
    pub(crate) inactivity: Option<Duration>,
    /// The deadline of the inactivity timeout.
    pub(crate) quiet_at: Option<Instant>,
    /// The deadline of the maximum age.
    pub(crate) old_at: Option<Instant>,
    /// Termination was requested, and is requested again then.
    pub(crate) again_at: Option<Instant>,
    /// A command ran at the last check.
    pub(crate) was_busy: bool,
}

impl Expiry {
    pub(crate) fn of(shared: &Shared, now: Now) -> Self {
        let Limits { inactivity, max_age, .. } = shared.meta.limits;
        let old_at = max_age.map(|age| now.at + age.saturating_sub(now.since(shared.meta.created_us)));
        Self { inactivity, quiet_at: None, old_at, again_at: None, was_busy: false }
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
}
