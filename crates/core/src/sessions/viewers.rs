//! The viewers of a session: people and pages that follow it, through a socket or by reading its output again and again.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::OwnedSemaphorePermit;

use crate::mutex::locked;
use crate::principal::{Door, Principal};

/// A viewer that reads again and again is gone when it has not read for this long.
const READS_AGAIN: Duration = Duration::from_secs(2);

/// The viewers, each by its principal's name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Viewers(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    next: u64,
    /// Those with a socket, and reads that wait.
    open: BTreeMap<u64, Viewer>,
    /// Readers that will read again, and when they did last.
    between: HashMap<Viewer, Instant>,
}

impl Known {
    fn forget_gone(&mut self) {
        self.between.retain(|_, since| since.elapsed() < READS_AGAIN);
    }
}

/// A client that shows the session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Viewer {
    name: String,
    /// The client's own name, which tells apart those that read again and again.
    client: Option<String>,
}

impl Viewers {
    /// Their names, in the order in which they came.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut known = locked(&self.0);
        known.forget_gone();
        let is_new = |viewer: &&Viewer| !known.open.values().any(|open| open == *viewer);
        let mut names: Vec<String> = known.between.keys().filter(is_new).map(|viewer| viewer.name.clone()).collect();
        names.sort();
        known.open.values().map(|viewer| viewer.name.clone()).chain(names).collect()
    }

    fn enter(&self, viewer: Viewer) -> u64 {
        let mut known = locked(&self.0);
        known.next += 1;
        let number = known.next;
        known.open.insert(number, viewer);
        number
    }
}

/// The place of a viewer, until it leaves.
#[derive(Debug)]
pub(super) struct ViewerPlace {
    viewers: Viewers,
    /// `None` for one that is not shown: a tool.
    number: Option<u64>,
    /// One of the sockets that a session may have.
    permit: Option<OwnedSemaphorePermit>,
}

impl ViewerPlace {
    /// Of a client that follows the session through a socket, or as a tool.
    pub(super) fn of_socket(viewers: &Viewers, principal: &Principal, permit: OwnedSemaphorePermit) -> Self {
        let viewer = Viewer { name: principal.name.clone(), client: None };
        let number = (principal.origin.door != Door::Mcp).then(|| viewers.enter(viewer));
        Self { viewers: viewers.clone(), number, permit: Some(permit) }
    }

    /// Of a client with a name of its own whose read waits for output, such as `ptyd attach`.
    pub(super) fn of_reader(viewers: &Viewers, principal: &Principal) -> Option<Self> {
        let client = Some(principal.client.clone().filter(|_| principal.origin.door == Door::Rest)?);
        let number = Some(viewers.enter(Viewer { name: principal.name.clone(), client }));
        Some(Self { viewers: viewers.clone(), number, permit: None })
    }
}

impl Drop for ViewerPlace {
    fn drop(&mut self) {
        let Some(number) = self.number else { return };
        let mut known = locked(&self.viewers.0);
        let viewer = known.open.remove(&number).filter(|_| self.permit.is_none());
        known.forget_gone();
        known.between.extend(viewer.map(|viewer| (viewer, Instant::now())));
    }
}
