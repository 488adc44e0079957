//! The handles of the live sessions, and how many each owner has: starting a session counts them, and must not become
//! slower with their number.

use std::collections::HashMap;
use std::ops::Deref;

use super::handle::Handle;
use crate::ids::SessionId;

#[derive(Debug, Default)]
pub(super) struct LiveSessions {
    handles: HashMap<SessionId, Handle>,
    /// By owner; none is zero.
    counts: HashMap<String, usize>,
}

/// For reading.
impl Deref for LiveSessions {
    type Target = HashMap<SessionId, Handle>;

    fn deref(&self) -> &Self::Target {
        &self.handles
    }
}

impl LiveSessions {
    pub(super) fn insert(&mut self, handle: Handle) {
        *self.counts.entry(handle.shared.meta.owner.clone()).or_default() += 1;
        if let Some(old) = self.handles.insert(handle.shared.id.clone(), handle) {
            self.discount(&old);
        }
    }

    pub(super) fn remove(&mut self, id: &SessionId) {
        if let Some(old) = self.handles.remove(id) {
            self.discount(&old);
        }
    }

    pub(super) fn clear(&mut self) {
        self.handles.clear();
        self.counts.clear();
    }

    /// How many this owner has.
    pub(super) fn of_owner(&self, owner: &str) -> usize {
        self.counts.get(owner).copied().unwrap_or(0)
    }

    fn discount(&mut self, old: &Handle) {
        let owner = &old.shared.meta.owner;
        if let Some(count) = self.counts.get_mut(owner) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(owner);
            }
        }
    }
}
