//! The quota of live sessions, in total and per owner: a place is reserved before anything is started.

use std::collections::HashMap;
use std::sync::Mutex;

use crate::action::ActionError;
use crate::ids::SessionId;
use crate::mutex::locked;

/// How many sessions may live.
#[derive(Debug)]
pub(super) struct Quota {
    /// In total, and per owner.
    most: (usize, usize),
    /// Sessions that are being started, with their owners: they count against the quota.
    starting: Mutex<HashMap<SessionId, String>>,
}

/// The reservation of a session that is being started, until its start has succeeded or failed.
pub(super) struct Reservation<'a> {
    quota: &'a Quota,
    id: SessionId,
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        locked(&self.quota.starting).remove(&self.id);
    }
}

impl Quota {
    pub(super) fn new(in_total: usize, per_owner: usize) -> Self {
        Self { most: (in_total, per_owner), starting: Mutex::default() }
    }

    /// Reserves a place in the quota, so that several starts at once cannot share the last one. `count` returns how many
    /// sessions live or are being started, in total and of the owner; it is called with the lock, because a session that
    /// has just been started is in both.
    pub(super) fn reserve(
        &self,
        id: &SessionId,
        owner: String,
        count: impl FnOnce(&str, &HashMap<SessionId, String>) -> (usize, usize),
    ) -> Result<Reservation<'_>, ActionError> {
        let mut starting = locked(&self.starting);
        let (all, owned) = count(&owner, &starting);
        let (all_max, owned_max) = self.most;
        for (what, count, limit) in
            [("the number of live sessions", all, all_max), ("this owner's number of live sessions", owned, owned_max)]
        {
            if count >= limit {
                let hint =
                    "terminate one that is not needed (DELETE /terminals/{id}, ptyd kill), or start them with a maxAge";
                return Err(ActionError::Limit { what, limit: limit as u64, hint });
            }
        }
        starting.insert(id.clone(), owner);
        Ok(Reservation { quota: self, id: id.clone() })
    }
}
