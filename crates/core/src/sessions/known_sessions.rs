//! The sessions that this server knows (live, unreachable, and those that have ended) and who may see them.
//!
//! It holds no lock over an await, and takes `live` before the others.
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use tokio::sync::watch;

use super::adoption::state::Adoption;
use super::backends::Backends;
use super::ended::session::EndedSession;
use super::handle::Handle;
use super::live_sessions::LiveSessions;
use super::on_disk::on_disk;
use super::processes::Census;
use super::session_metadata::SessionMetadata;
use super::unreachable::Unreachable;
use crate::action::{ActionError, EndReason, SessionStatus, SessionView};
use crate::host::holders;
use crate::ids::{NoSessionId, SessionId};
use crate::limits;
use crate::mutex::locked;
use crate::principal::Principal;

/// Ended sessions whose timeline is kept in memory, because clients often query them again at once.
const PASTS_KEPT: usize = 4;
/// How many sessions an error names: enough to find the intended one.
const NAMED_MAX: usize = 8;

/// A session that the caller may see.
pub(super) enum SessionRef {
    Live(Handle),
    /// The session lives, but this server has no connection to its holder.
    Unreachable(Arc<Unreachable>),
    EndedSession(Arc<EndedSession>),
}

impl SessionRef {
    pub(super) fn meta(&self) -> &SessionMetadata {
        match self {
            Self::Live(handle) => &handle.shared.meta,
            Self::Unreachable(unreachable) => &unreachable.meta,
            Self::EndedSession(past) => &past.shared.meta,
        }
    }
}

/// The sessions that this server knows.
#[derive(Debug)]
pub(crate) struct KnownSessions {
    pub(super) backends: Arc<Backends>,
    /// The number of this server: the sessions of another one are not here.
    node: u16,
    live: Mutex<LiveSessions>,
    pub(super) adoption: Adoption,
    /// The ended sessions that were asked for last.
    recent: Mutex<VecDeque<Arc<EndedSession>>>,
    /// The resource usage at the last query.
    pub(super) census: Mutex<Census>,
    /// Set when the server stops.
    stopping: watch::Sender<bool>,
}

impl KnownSessions {
    pub(super) fn new(backends: Arc<Backends>, node: u16) -> Self {
        Self {
            backends,
            node,
            live: Mutex::default(),
            adoption: Adoption::default(),
            recent: Mutex::default(),
            census: Mutex::default(),
            stopping: watch::Sender::new(false),
        }
    }

    /// Stops every actor; the sessions continue in their holders.
    pub(super) fn stop(&self) {
        self.stopping.send_replace(true);
        locked(&self.live).clear();
    }

    /// The handles of all live sessions, and the sessions without a connection to their holder. One that changes from one
    /// to the other at this moment is in both.
    pub(super) fn everything_live(&self) -> (Vec<Handle>, HashMap<SessionId, Arc<Unreachable>>) {
        // Before the others: one that is adopted meanwhile is in both.
        let unexamined = self.adoption.unexamined.live();
        let (handles, mut unreachable): (Vec<Handle>, HashMap<_, _>) = {
            // In the order of every other place that takes both.
            let live = locked(&self.live);
            let unreachable = locked(&self.adoption.unreachable);
            (live.values().cloned().collect(), unreachable.clone())
        };
        // There are some only if the disk or the machine is very slow.
        for id in unexamined {
            unreachable.entry(id.clone()).or_insert_with(|| self.unexamined(&id));
        }
        (handles, unreachable)
    }

    /// Has a session from before this server examined before all others, and waits for that. False if that takes too long
    /// and no end of the session is on record.
    pub(super) async fn examined(&self, id: &SessionId) -> bool {
        let Some(mut settled) = self.adoption.unexamined.ask_for(id) else { return true };
        // A disk that hangs must not block the caller for ever.
        let is_examined = tokio::time::timeout(2 * limits::ADOPT_PATIENCE, settled.changed()).await.is_ok();
        is_examined || !self.adoption.unexamined.live().contains(id)
    }

    /// A session that counts as live until it has been examined.
    pub(super) fn unexamined(&self, id: &SessionId) -> Arc<Unreachable> {
        let why = "the server has not connected to it yet".to_owned();
        Arc::new(Unreachable::silent(id, self.backends.holders.folder(id), why))
    }

    /// Waits until every session from before this server has been examined.
    pub(super) async fn adopted(&self) {
        // A disk that hangs must not block the caller for ever.
        let mut settled = self.adoption.is_done.subscribe();
        let _ = tokio::time::timeout(2 * limits::ADOPT_PATIENCE, settled.wait_for(|all| *all)).await;
    }

    /// The number of sessions that wait for disk space.
    pub(super) fn stalled(&self) -> usize {
        self.handles().iter().filter(|handle| handle.shared.stalled.load(Ordering::Acquire)).count()
    }

    /// How many sessions live, and how many of them this owner has. They include sessions whose holder cannot be reached,
    /// and sessions that are being started, each once.
    pub(super) fn count_live(&self, owner: &str, starting: &HashMap<SessionId, String>) -> (usize, usize) {
        let live = locked(&self.live);
        let unreachable = locked(&self.adoption.unreachable);
        let more = unreachable.values().filter(|u| !live.contains_key(&u.id)).map(|u| u.meta.owner.as_str());
        let is_live = |id: &SessionId| live.contains_key(id) || unreachable.contains_key(id);
        let fresh = starting.iter().filter(|(id, _)| !is_live(id)).map(|(_, owner)| owner.as_str());
        let count = |(all, owned), of: &str| (all + 1, owned + usize::from(of == owner));
        more.chain(fresh).fold((live.len(), live.of_owner(owner)), count)
    }

    /// Receives `true` when the server stops.
    pub(super) fn stop_signal(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }

    /// Whether [`Self::stop`] was called.
    pub(crate) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Waits until the server stops: for tasks that publish events without an open request.
    pub(crate) fn stopping(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut stopping = self.stop_signal();
        async move {
            // The sender goes with the server.
            let _ = stopping.wait_for(|is| *is).await;
        }
    }

    pub(super) fn is_live(&self, id: &SessionId) -> bool {
        locked(&self.live).contains_key(id) || locked(&self.adoption.unreachable).contains_key(id)
    }

    /// Forgets an ended session whose folder is gone.
    pub(super) fn forget_past(&self, id: &SessionId) {
        locked(&self.recent).retain(|past| past.shared.id != *id);
    }

    /// Adds a session that has its actor.
    pub(super) fn add(&self, handle: Handle) {
        self.forget_past(&handle.shared.id);
        locked(&self.live).insert(handle);
    }

    /// Removes a session whose actor has ended.
    pub(super) fn remove(&self, id: &SessionId) {
        locked(&self.live).remove(id);
    }

    /// The handle of a live session, whoever may see it.
    pub(super) fn handle(&self, id: &SessionId) -> Option<Handle> {
        locked(&self.live).get(id).cloned()
    }

    /// The live session `first` if it is the wanted one, or else any other that is.
    pub(super) fn find_live(
        &self,
        first: Option<&SessionId>,
        is_it: impl Fn(&SessionMetadata) -> bool,
    ) -> Option<Handle> {
        let live = locked(&self.live);
        let is_it = |handle: &&Handle| is_it(&handle.shared.meta);
        first.and_then(|id| live.get(id)).filter(is_it).or_else(|| live.values().find(is_it)).cloned()
    }

    pub(super) fn handles(&self) -> Vec<Handle> {
        locked(&self.live).values().cloned().collect()
    }

    /// The session, live or ended, if this caller may see it; a foreign session counts as unknown.
    pub(super) async fn find(&self, principal: &Principal, id: &SessionId) -> Result<SessionRef, ActionError> {
        if self.is_stopping() {
            return Err(ActionError::Restarting);
        }
        let mut found = self.present(id);
        if found.is_none() {
            // Until a live session is known as one, its records read like those of an ended one.
            let is_examined = self.examined(id).await;
            found = self.present(id).or_else(|| (!is_examined).then(|| SessionRef::Unreachable(self.unexamined(id))));
        }
        if let Some(found) = found {
            return if may_see(principal, found.meta()) {
                Ok(found)
            } else {
                Err(self.unknown(principal, id.as_str()))
            };
        }
        match self.past(id).await? {
            Some(past) if may_see(principal, &past.shared.meta) => Ok(SessionRef::EndedSession(past)),
            _ => Err(self.unknown(principal, id.as_str())),
        }
    }

    /// The session, if this server knows it as live.
    fn present(&self, id: &SessionId) -> Option<SessionRef> {
        let live = self.handle(id).filter(|h| !h.is_gone()).map(SessionRef::Live);
        live.or_else(|| locked(&self.adoption.unreachable).get(id).cloned().map(SessionRef::Unreachable))
    }

    /// The same for a request that only reads files.
    pub(super) async fn find_to_read(&self, principal: &Principal, id: &SessionId) -> Result<SessionRef, ActionError> {
        match self.find(principal, id).await? {
            SessionRef::Unreachable(unreachable) => Ok(SessionRef::EndedSession(self.story_of(&unreachable).await?)),
            found => Ok(found),
        }
    }

    pub(super) async fn live(&self, principal: &Principal, id: &SessionId) -> Result<Handle, ActionError> {
        match self.find(principal, id).await? {
            SessionRef::Live(handle) => Ok(handle),
            SessionRef::Unreachable(unreachable) => Err(unreachable.error()),
            SessionRef::EndedSession(past) => Err(ended(&past.view())),
        }
    }

    /// The ended session with this id, if there is one. If descriptors are exhausted the answer is unknown, which is an
    /// error.
    pub(super) async fn past(&self, id: &SessionId) -> Result<Option<Arc<EndedSession>>, ActionError> {
        if let Some(past) = locked(&self.recent).iter().find(|p| p.shared.id == *id) {
            return Ok(Some(Arc::clone(past)));
        }
        let folder = self.backends.holders.folder(id);
        let (id, backends) = (id.clone(), Arc::clone(&self.backends));
        let past = match tokio::task::spawn_blocking(move || EndedSession::load(&id, &folder, &backends)).await {
            Ok(Ok(past)) => Arc::new(past),
            Ok(Err(e)) if holders::is_passing(&e) => {
                return Err(ActionError::Exhausted { why: format!("the session's records: {e}") });
            }
            Ok(Err(_)) | Err(_) => return Ok(None),
        };
        let mut pasts = locked(&self.recent);
        // The task that removes a folder forgets its session afterwards, and waits for this lock.
        if !past.shared.folder.exists() {
            return Ok(None);
        }
        pasts.truncate(PASTS_KEPT - 1);
        pasts.push_front(Arc::clone(&past));
        Ok(Some(past))
    }

    /// The session with this id, or the only live one with this name. An id need not exist: the action with it says so.
    pub(super) async fn find_session(&self, principal: &Principal, text: &str) -> Result<SessionId, ActionError> {
        let no_id = match SessionId::parse(text) {
            Ok(id) => return Ok(id),
            Err(NoSessionId(beginning)) => beginning,
        };
        let mut named = self.named(principal, text);
        if named.is_empty() && self.adoption.unexamined.has_unknown_names() {
            self.adopted().await;
            named = self.named(principal, text);
        }
        match &named[..] {
            [] => Err(self.unknown(principal, &no_id)),
            [id] => Ok(id.clone()),
            several => {
                let ids: Vec<&str> = several.iter().take(NAMED_MAX).map(SessionId::as_str).collect();
                let problem = format!(
                    "{} sessions are named {}; give the id of one: {}",
                    several.len(),
                    terminal::quote::line(text),
                    ids.join(", ")
                );
                Err(ActionError::Invalid { field: "session", problem })
            }
        }
    }

    /// The live sessions with this name, those included that this server has not examined yet or cannot reach.
    fn named(&self, principal: &Principal, name: &str) -> Vec<SessionId> {
        // Before the others: one that is adopted meanwhile is in both.
        let unexamined = self.adoption.unexamined.named(name);
        let is_it = |meta: &SessionMetadata| meta.name.is(name) && may_see(principal, meta);
        let mut named: Vec<SessionId> = {
            // In the order of every other place that takes both.
            let live = locked(&self.live);
            let unreachable = locked(&self.adoption.unreachable);
            let live = live.values().filter(|handle| is_it(&handle.shared.meta)).map(|handle| &handle.shared.id);
            live.chain(unreachable.values().filter(|u| is_it(&u.meta)).map(|u| &u.id)).cloned().collect()
        };
        named.extend(unexamined.into_iter().filter(|id| is_it(&self.unexamined(id).meta)));
        named.sort();
        named.dedup();
        named
    }

    /// The live session of this owner that has this name, other than this one. One whose shell has exited has it no more.
    pub(super) fn holder_of_name(&self, owner: &str, name: &str, other_than: &SessionId) -> Option<SessionId> {
        let unexamined = self.adoption.unexamined.named(name);
        let is_it =
            |id: &SessionId, meta: &SessionMetadata| id != other_than && meta.owner == owner && meta.name.is(name);
        let lives = |handle: &&Handle| handle.status() != Some(SessionStatus::Terminated) && !handle.is_gone();
        let known = {
            let live = locked(&self.live);
            let unreachable = locked(&self.adoption.unreachable);
            let mut held = live.values().filter(lives).filter(|handle| is_it(&handle.shared.id, &handle.shared.meta));
            let id = held.next().map(|handle| handle.shared.id.clone());
            id.or_else(|| unreachable.values().find(|it| is_it(&it.id, &it.meta)).map(|it| it.id.clone()))
        };
        known.or_else(|| unexamined.into_iter().find(|id| is_it(id, &self.unexamined(id).meta)))
    }

    fn unknown(&self, principal: &Principal, id: &str) -> ActionError {
        if let Some(id) = SessionId::parse(id).ok().filter(|id| id.node() != self.node) {
            return ActionError::OtherNode { node: id.node(), id: id.to_string() };
        }
        let live = locked(&self.live);
        let mut seen: Vec<_> = live.values().map(|h| &*h.shared).filter(|s| may_see(principal, &s.meta)).collect();
        // No text is made of all the others.
        let unnamed = seen.len().saturating_sub(NAMED_MAX);
        if unnamed > 0 {
            seen.select_nth_unstable_by(NAMED_MAX, |a, b| a.id.cmp(&b.id));
            seen.truncate(NAMED_MAX);
        }
        seen.sort_by(|a, b| a.id.cmp(&b.id));
        let named = seen.iter().map(|shared| match &shared.meta.name.get() {
            None => shared.id.to_string(),
            Some(name) => format!("{} ({})", shared.id, terminal::quote::line(name)),
        });
        let others =
            (unnamed > 0).then(|| format!("and {unnamed} more, which list_terminal_sessions (GET /terminals) lists"));
        ActionError::NoSession { id: id.to_owned(), live: Some(named.chain(others).collect()) }
    }

    /// Lists the session as unreachable.
    pub(super) fn mark(&self, unreachable: Unreachable) {
        let id = unreachable.id.clone();
        let news = locked(&self.adoption.unreachable).insert(id.clone(), Arc::new(unreachable));
        self.forget_gone_actor(&id);
        if news.is_none() {
            let now = locked(&self.adoption.unreachable).get(&id).map(|u| u.why.clone()).unwrap_or_default();
            tracing::warn!(session = %id, why = %now, "unreachable");
        }
        self.adoption.changed.send_modify(|n| *n += 1);
    }

    /// The session is reachable again, or has ended.
    pub(super) fn unmark(&self, id: &SessionId) {
        self.forget_gone_actor(id);
        if locked(&self.adoption.unreachable).remove(id).is_some() {
            tracing::info!(session = %id, "no longer unreachable");
        }
        self.adoption.changed.send_modify(|n| *n += 1);
    }

    /// Removes the handle of an actor that lost its session: otherwise requests would be told to retry for ever.
    fn forget_gone_actor(&self, id: &SessionId) {
        let mut live = locked(&self.live);
        if live.get(id).is_some_and(|handle| handle.mailbox.is_closed()) {
            live.remove(id);
        }
    }

    /// The session's timeline as far as it is on disk, for requests that only read.
    pub(super) async fn story_of(&self, unreachable: &Arc<Unreachable>) -> Result<Arc<EndedSession>, ActionError> {
        let (unreachable, backends) = (Arc::clone(unreachable), Arc::clone(&self.backends));
        on_disk(move || {
            let past = EndedSession::of_unreachable(&unreachable, &backends);
            past.map(Arc::new).map_err(|e| ActionError::Unreachable {
                session: unreachable.id.clone(),
                why: format!("{}, and its records cannot be read ({e})", unreachable.why),
            })
        })
        .await
    }
}

pub(super) fn may_see(principal: &Principal, meta: &SessionMetadata) -> bool {
    let is_within_bounds = || principal.may_use(meta.profile.as_deref(), meta.confinement.tier);
    principal.is_admin() || meta.owner == principal.name && is_within_bounds()
}

/// How a session ended, as text.
pub(super) fn reason(view: &SessionView) -> String {
    view.exit.as_ref().map_or_else(|| "unknown".to_owned(), |e| e.reason.clone())
}

/// The error for callers whose session has just ended.
pub(super) fn ended(view: &SessionView) -> ActionError {
    ActionError::Ended { session: view.id.clone(), reason: EndReason::Recorded(reason(view)) }
}
