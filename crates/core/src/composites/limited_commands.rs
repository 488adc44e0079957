//! The commands whose time limit is being enforced.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use crate::ids::{CommandId, SessionId};
use crate::mutex::locked;

/// The commands whose limit is being enforced: a repeated request must not interrupt twice.
#[derive(Debug, Default)]
pub struct TimeLimits(Mutex<HashSet<(SessionId, CommandId)>>);

/// A command's place among them, until it is dropped.
#[derive(Debug)]
pub(super) struct Enforced(Arc<TimeLimits>, (SessionId, CommandId));

impl Enforced {
    /// `None` if its limit is being enforced already.
    pub(super) fn begin(limits: &Arc<TimeLimits>, of: (SessionId, CommandId)) -> Option<Self> {
        let is_new = locked(&limits.0).insert(of.clone());
        is_new.then(|| Self(Arc::clone(limits), of))
    }
}

impl Drop for Enforced {
    fn drop(&mut self) {
        locked(&self.0.0).remove(&self.1);
    }
}
