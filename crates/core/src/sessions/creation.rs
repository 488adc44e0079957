//! The keys and locks by which a creation happens once, and the size of a new terminal.

use std::collections::HashMap;
use std::sync::Mutex;

use super::name_locks::NameLocks;
use crate::action::ActionError;
use crate::ids::SessionId;
use crate::limits;

/// The keys and locks by which a creation happens once.
#[derive(Debug, Default)]
pub(super) struct Creation {
    /// The session that each owner's idempotency key created, for as long as its folder is retained.
    pub(super) keys: Mutex<HashMap<(String, String), SessionId>>,
    /// The last default session of each stdio client, and its creation time.
    pub(super) defaults: Mutex<HashMap<String, (u64, SessionId)>>,
    /// Locks: one creation per idempotency key at a time, and one default session per client.
    pub(super) locks: NameLocks,
}

pub(super) fn checked_size(cols: Option<u16>, rows: Option<u16>) -> Result<(u16, u16), ActionError> {
    let (cols, rows) = (cols.unwrap_or(limits::COLS_DEFAULT), rows.unwrap_or(limits::ROWS_DEFAULT));
    for (field, value, max) in [("cols", cols, limits::COLS_MAX), ("rows", rows, limits::ROWS_MAX)] {
        if !(1..=max).contains(&value) {
            return Err(ActionError::Invalid { field, problem: format!("{value} is not from 1 to {max}") });
        }
    }
    Ok((cols, rows))
}
