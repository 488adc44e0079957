//! The viewers of a session: people and pages that follow it through a socket.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tokio::sync::OwnedSemaphorePermit;

use super::shared::Shared;
use crate::mutex::locked;

/// The viewers, each by its principal's name.
#[derive(Debug, Default)]
pub(crate) struct Viewers(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    next: u64,
    names: BTreeMap<u64, String>,
}

impl Viewers {
    /// Their names, in the order in which they came.
    pub(crate) fn names(&self) -> Vec<String> {
        locked(&self.0).names.values().cloned().collect()
    }
}

/// The place of one viewer, which is one of the viewers that a session may have, until it leaves.
#[derive(Debug)]
pub(super) struct ViewerPlace {
    shared: Arc<Shared>,
    /// `None` for one that is not shown: a tool.
    number: Option<u64>,
    _permit: OwnedSemaphorePermit,
}

impl ViewerPlace {
    pub(super) fn new(shared: Arc<Shared>, name: Option<&str>, permit: OwnedSemaphorePermit) -> Self {
        let number = name.map(|name| {
            let mut known = locked(&shared.viewers.0);
            known.next += 1;
            let number = known.next;
            known.names.insert(number, name.to_owned());
            number
        });
        Self { shared, number, _permit: permit }
    }
}

impl Drop for ViewerPlace {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            locked(&self.shared.viewers.0).names.remove(&number);
        }
    }
}
