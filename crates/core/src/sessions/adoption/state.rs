//! The sessions that are being adopted, or whose holder cannot be reached, and the faults of their actors.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::host::Identity;
use crate::host::holders::SessionFolder;
use crate::ids::SessionId;
use crate::limits::{FAULT_PAUSE, FAULTS_FORGOTTEN, FAULTS_MAX};
use crate::mutex::locked;
use crate::sessions::session_metadata::SessionMetadata;
use crate::sessions::unreachable::Unreachable;
use crate::store::SessionRow;

/// A session that is being adopted.
#[derive(Debug)]
pub(in crate::sessions) struct Adopting {
    pub(in crate::sessions) id: SessionId,
    pub(in crate::sessions) folder: SessionFolder,
    /// Its row in the history.
    pub(in crate::sessions) row: Option<SessionRow>,
    pub(in crate::sessions) since: Instant,
    /// The process behind its socket, if there was a connection.
    pub(in crate::sessions) met: Option<Identity>,
    /// `None` once the session is adopted, ended, or marked as unreachable.
    unsettled: Option<Unsettled>,
}

impl Adopting {
    pub(in crate::sessions) fn new(
        id: SessionId,
        folder: SessionFolder,
        row: Option<SessionRow>,
        met: Option<Identity>,
    ) -> Self {
        Self { id, folder, row, since: Instant::now(), met, unsettled: None }
    }

    /// Whether an earlier server recorded its end.
    pub(super) fn has_ended_before(&self) -> bool {
        self.row.as_ref().is_some_and(|row| row.ended_us.is_some())
    }
}

/// The sessions from before this server, and those whose actor or connection was lost.
#[derive(Debug)]
pub(in crate::sessions) struct Adoption {
    /// The sessions from before this server that have not been examined yet.
    pub(in crate::sessions) unexamined: Unexamined,
    /// Live sessions without a connection to their holder.
    pub(in crate::sessions) unreachable: Mutex<HashMap<SessionId, Arc<Unreachable>>>,
    /// Counts changes of `unreachable`.
    pub(in crate::sessions) changed: watch::Sender<u64>,
    /// Whether every session from before this server has been examined.
    pub(in crate::sessions) is_done: watch::Sender<bool>,
    /// How often in a row a session's actor has panicked, and when last.
    faults: Mutex<HashMap<SessionId, (u32, Instant)>>,
}

impl Adoption {
    /// An unreachable session whose metadata are like this, if there is one.
    pub(in crate::sessions) fn unreachable_one(
        &self,
        is_it: impl Fn(&SessionMetadata) -> bool,
    ) -> Option<Arc<Unreachable>> {
        locked(&self.unreachable).values().find(|unreachable| is_it(&unreachable.meta)).cloned()
    }

    /// Waits until the session is reachable again, or has ended.
    pub(in crate::sessions) async fn no_longer_unreachable(&self, id: &SessionId) {
        let mut changes = self.changed.subscribe();
        // The sender lives as long as this.
        let _ = changes.wait_for(|_| !locked(&self.unreachable).contains_key(id)).await;
    }

    /// How long to wait before a session whose actor has panicked is adopted again; `None` after too many faults.
    pub(super) fn pause_after_fault(&self, id: &SessionId) -> Option<Duration> {
        let now = Instant::now();
        let mut faults = locked(&self.faults);
        faults.retain(|_, (_, at)| now.duration_since(*at) < FAULTS_FORGOTTEN);
        let (count, at) = faults.entry(id.clone()).or_insert((0, now));
        (*count, *at) = (*count + 1, now);
        (*count < FAULTS_MAX).then(|| FAULT_PAUSE * 2u32.pow(*count - 1))
    }
}

impl Default for Adoption {
    fn default() -> Self {
        Self {
            unexamined: Unexamined::default(),
            unreachable: Mutex::default(),
            changed: watch::Sender::new(0),
            is_done: watch::Sender::new(false),
            faults: Mutex::default(),
        }
    }
}

/// The sessions from before this server: in which order they are examined, and who waits for one of them.
#[derive(Debug, Default)]
pub(in crate::sessions) struct Unexamined(Mutex<Queue>);

#[derive(Debug, Default)]
struct Queue {
    sessions: HashMap<SessionId, Entry>,
    /// The next one first. A session that was asked for is in it twice.
    order: VecDeque<SessionId>,
}

#[derive(Debug)]
struct Entry {
    /// `None` once its examination has begun.
    adopting: Option<Box<Adopting>>,
    /// Its sender is dropped when the session is adopted, ended, or marked as unreachable.
    settled: watch::Receiver<()>,
    /// Whether its end is recorded. If so, the examination only checks whether the session lives after all.
    is_ended: bool,
    /// Its name; `None` if the history does not have the session.
    name: Option<Option<String>>,
}

/// Held by a session until it is examined.
#[derive(Debug)]
struct Unsettled {
    _this: watch::Sender<()>,
    _all: watch::Receiver<()>,
}

impl Unexamined {
    /// Adds a session behind the others; `all` is dropped with the last one.
    pub(in crate::sessions) fn add(&self, adopting: Adopting, all: watch::Receiver<()>) {
        let (this, settled) = watch::channel(());
        let (id, is_ended) = (adopting.id.clone(), adopting.has_ended_before());
        let name = adopting.row.as_ref().map(|row| row.name.clone());
        let adopting = Adopting { unsettled: Some(Unsettled { _this: this, _all: all }), ..adopting };
        let mut queue = locked(&self.0);
        queue.order.push_back(id.clone());
        queue.sessions.insert(id, Entry { adopting: Some(Box::new(adopting)), settled, is_ended, name });
    }

    /// The next session to examine.
    pub(in crate::sessions) fn next(&self) -> Option<Box<Adopting>> {
        let mut queue = locked(&self.0);
        loop {
            let id = queue.order.pop_front()?;
            if let Some(adopting) = queue.sessions.get_mut(&id).and_then(|entry| entry.adopting.take()) {
                return Some(adopting);
            }
        }
    }

    /// The session is examined.
    pub(in crate::sessions) fn is_settled(&self, adopting: &mut Adopting) {
        if let Some(unsettled) = adopting.unsettled.take() {
            locked(&self.0).sessions.remove(&adopting.id);
            drop(unsettled);
        }
    }

    /// Examines this session next; the returned channel closes when that is done. `None` if it is done, or if there is no
    /// such session.
    pub(in crate::sessions) fn ask_for(&self, id: &SessionId) -> Option<watch::Receiver<()>> {
        let mut queue = locked(&self.0);
        let entry = queue.sessions.get(id)?;
        let (settled, waits) = (entry.settled.clone(), entry.adopting.is_some());
        if waits {
            queue.order.push_front(id.clone());
        }
        Some(settled)
    }

    /// The sessions with this name that count as live until they have been examined.
    pub(in crate::sessions) fn named(&self, name: &str) -> Vec<SessionId> {
        let queue = locked(&self.0);
        let is_named =
            |entry: &Entry| !entry.is_ended && entry.name.as_ref().is_some_and(|of| of.as_deref() == Some(name));
        queue.sessions.iter().filter(|(_, entry)| is_named(entry)).map(|(id, _)| id.clone()).collect()
    }

    /// Whether the name of any is unknown.
    pub(in crate::sessions) fn has_unknown_names(&self) -> bool {
        locked(&self.0).sessions.values().any(|entry| entry.name.is_none())
    }

    /// The sessions that count as live until they have been examined.
    pub(in crate::sessions) fn live(&self) -> Vec<SessionId> {
        let queue = locked(&self.0);
        queue.sessions.iter().filter(|(_, entry)| !entry.is_ended).map(|(id, _)| id.clone()).collect()
    }
}
