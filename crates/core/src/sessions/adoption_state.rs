//! The sessions that are being adopted, or whose holder cannot be reached, and the faults of their actors.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::sync::watch;
use tokio::time::Instant;

use super::unreachable::Unreachable;
use crate::ids::SessionId;

/// The sessions from before this server, and those whose actor or connection was lost.
#[derive(Debug)]
pub(super) struct Adoption {
    /// Live sessions without a connection to their holder.
    pub(super) unreachable: Mutex<HashMap<SessionId, Arc<Unreachable>>>,
    /// Counts changes of `unreachable`.
    pub(super) changed: watch::Sender<u64>,
    /// Whether every session from before this server has been examined.
    pub(super) is_done: watch::Sender<bool>,
    /// How often in a row a session's actor has panicked, and when last.
    pub(super) faults: Mutex<HashMap<SessionId, (u32, Instant)>>,
}

impl Default for Adoption {
    fn default() -> Self {
        Self {
            unreachable: Mutex::default(),
            changed: watch::Sender::new(0),
            is_done: watch::Sender::new(false),
            faults: Mutex::default(),
        }
    }
}
