//! Reserves a place in the quota for a session that is being started.

use super::registry::Registry;
use crate::action::ActionError;
use crate::ids::SessionId;
use crate::mutex::locked;

/// The reservation of a session that is being started, until its start has succeeded or failed.
pub(super) struct Reservation<'a> {
    registry: &'a Registry,
    id: SessionId,
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        locked(&self.registry.quota.starting).remove(&self.id);
    }
}

impl Registry {
    /// Reserves a place in the quota, so that several starts at once cannot share the last one.
    pub(super) fn place(&self, id: &SessionId, owner: String) -> Result<Reservation<'_>, ActionError> {
        let mut starting = locked(&self.quota.starting);
        let live = locked(&self.live);
        // A session that has just been started is in both.
        let fresh = starting.iter().filter(|(id, _)| !live.contains_key(id)).map(|(_, owner)| owner.as_str());
        let unreachable = locked(&self.adoption.unreachable);
        let lost = unreachable.values().filter(|u| !live.contains_key(&u.id)).map(|u| u.meta.owner.as_str());
        let owners = fresh.chain(live.values().map(|h| h.shared.meta.owner.as_str())).chain(lost);
        let (all, owned) = owners.fold((0, 0), |(all, owned), o| (all + 1, owned + usize::from(o == owner)));
        let (all_max, owned_max) = self.quota.most;
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
        drop((unreachable, live, starting));
        Ok(Reservation { registry: self, id: id.clone() })
    }
}
