//! Draining: the server takes no new sessions, and keeps those that it has.

use std::time::{Duration, SystemTime};

/// A request for the state of the drain.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReadDrain {
    /// Wait while the server drains and this many sessions are left.
    pub sessions: Option<usize>,
    /// Wait this long at most.
    pub wait: Duration,
}

/// The state of the drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrainView {
    /// Since when the server takes no new sessions; `None` while it takes some.
    pub since: Option<SystemTime>,
    /// How many sessions live. While any is being started, it is not zero.
    pub sessions: usize,
}
