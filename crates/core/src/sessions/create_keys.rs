//! The keys and locks by which a creation happens once.

use std::collections::HashMap;
use std::sync::Mutex;

use super::name_locks::NameLocks;
use crate::ids::SessionId;

/// The keys and locks by which a creation happens once.
#[derive(Debug, Default)]
pub(super) struct CreateKeys {
    /// The session that each owner's idempotency key created, for as long as its folder is retained.
    pub(super) keys: Mutex<HashMap<(String, String), SessionId>>,
    /// The last default session of each stdio client, and its creation time.
    pub(super) defaults: Mutex<HashMap<String, (u64, SessionId)>>,
    /// Locks: one creation per idempotency key at a time, and one default session per client.
    pub(super) locks: NameLocks,
}
