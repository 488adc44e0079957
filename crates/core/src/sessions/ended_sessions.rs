//! The ended sessions that were asked for last, and how long ended ones are retained.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::ended_session::EndedSession;

/// The retention settings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Retention {
    pub(super) age: Duration,
    pub(super) bytes: u64,
    /// The disk space to keep free, or a twentieth of the disk if that is less.
    pub(super) free: u64,
}

/// The ended sessions.
#[derive(Debug)]
pub(super) struct EndedSessions {
    /// Those that were asked for last, whose timeline is kept in memory.
    pub(super) sessions: Mutex<VecDeque<Arc<EndedSession>>>,
    pub(super) retention: Retention,
}
