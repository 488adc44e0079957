//! The quota of live sessions, in total and per owner: a place is reserved before anything is started.

use std::collections::HashMap;
use std::sync::Mutex;

use crate::action::ActionError;
use crate::config::SessionsMax;
use crate::ids::SessionId;
use crate::mutex::locked;

/// How many sessions may live.
#[derive(Debug)]
pub(super) struct Quota {
    most: SessionsMax,
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
    pub(in crate::sessions) fn new(most: SessionsMax) -> Self {
        Self { most, starting: Mutex::default() }
    }

    /// Reserves a place in the quota, so that several starts at once cannot share the last one. `count` returns how many
    /// sessions live or are being started, in total and of the owner. It is called with the lock, because a session that
    /// has just been started counts as both.
    pub(in crate::sessions) fn reserve(
        &self,
        id: &SessionId,
        owner: String,
        is_token: bool,
        count: impl FnOnce(&str, &HashMap<SessionId, String>) -> (usize, usize),
    ) -> Result<Reservation<'_>, ActionError> {
        let mut starting = locked(&self.starting);
        let (all, owned) = count(&owner, &starting);
        let (all_max, owned_max) =
            (self.most.in_total, if is_token { self.most.per_token } else { self.most.per_owner });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    // promise: limit-4
    fn a_named_token_has_a_share_of_the_places_and_other_owners_have_the_rest() {
        let quota = Quota::new(SessionsMax { in_total: 4, per_owner: 3, per_token: 1 });
        let id = |n: usize| SessionId::parse(&format!("s0-aaaaaaaaa{}", ["a", "b", "c", "d", "e"][n])).expect("an id");
        let counted = |owner: &str, starting: &HashMap<SessionId, String>| {
            (starting.len(), starting.values().filter(|of| *of == owner).count())
        };
        let take = |n, owner: &str, is_token| quota.reserve(&id(n), owner.to_owned(), is_token, counted);
        let _first = take(0, "bot", true).expect("a place");
        assert!(matches!(take(1, "bot", true), Err(ActionError::Limit { limit: 1, .. })));
        let _others = [1, 2, 3].map(|n| take(n, "user", false).expect("a place"));
        assert!(matches!(take(4, "user", false), Err(ActionError::Limit { limit: 4, .. })));
        let defaults = SessionsMax::default();
        assert_eq!((defaults.in_total, defaults.per_owner, defaults.per_token), (4_000, 4_000, 1_000));
    }
}
