//! The quota of live sessions, in total and per owner: a reservation is made before anything is started.

use std::collections::HashMap;
use std::sync::Mutex;

use crate::ids::SessionId;

/// How many sessions may live.
#[derive(Debug)]
pub(super) struct Quota {
    /// In total, and per owner.
    pub(super) most: (usize, usize),
    /// Sessions that are being started, with their owners: they count against the quota.
    pub(super) starting: Mutex<HashMap<SessionId, String>>,
}
