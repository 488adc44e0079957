//! Adoption: how sessions get their actor in this server, after a start of a holder or after a restart of the server.
//!
//! Sessions from before this server are adopted in the background. A session counts as live as long as its holder
//! lives, whether the holder answers or not. It is recorded as ended only once its holder is known to have ended, or no
//! process can be found that holds it.
use std::collections::{HashMap, HashSet};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use journal::EventsReader;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use wire::{FromHolder, PROTOCOL, Tail, ToHolder};

use super::adoption_state::Adopting;
use super::ended_session::{self, EndedSession};
use super::handle::Handle;
use super::permits::Permits;
use super::registry::Registry;
use super::render::published::Published;
use super::session::{Actor, Now, Session};
use super::session_metadata::SessionMetadata;
use super::shared::Shared;
use super::timeline::micros;
use super::unreachable::{Hindrance, Unreachable, does_not_answer};
use super::{resource_limits, supervision, views};
use crate::action::ActionError;
use crate::host::Identity;
use crate::host::holders::{
    self, Dead, HolderConnection, Liveness, NoGreeting, SessionFolder, greeting, speaks_another_protocol, start_error,
};
use crate::ids::SessionId;
use crate::limits;
use crate::mutex::locked;
use crate::principal::Detach;
use crate::store::{SessionRow, StoreError};

/// How long a new holder may take to send its Hello.
const GREETING: Duration = Duration::from_secs(10);
/// A timeout that never expires.
const FOR_EVER: Duration = Duration::from_secs(u32::MAX as u64);

/// How many sessions are examined at once: enough for the processors, and few enough that a request, which waits for its
/// turn behind them, is answered within milliseconds.
const EXAMINED_AT_ONCE: usize = 32;
/// An examination that takes longer goes on by itself, so that holders that do not answer hold up no other session.
const EXAMINED_SOON: Duration = Duration::from_millis(20);

/// The result of one attempt.
enum AdoptionResult {
    /// The session has its actor, or is recorded as ended.
    Settled,
    /// The attempt is to be repeated.
    Not(Hindrance, String),
}

/// The files that an actor reads.
struct SessionFiles {
    shared: Arc<Shared>,
    damage: Option<String>,
    events: Option<EventsReader>,
}

impl Registry {
    /// Waits for the Hello of a new holder, and starts the session's actor.
    pub(super) async fn take_on(
        self: &Arc<Self>,
        id: &SessionId,
        folder: SessionFolder,
        mut connection: HolderConnection,
    ) -> Result<Handle, ActionError> {
        let early = match tokio::time::timeout(GREETING, greeting(&mut connection)).await {
            Ok(Ok(early)) => early,
            Ok(Err(refused)) => return Err(refused.error(&folder)),
            Err(_) => return Err(ActionError::Start { why: "the holder does not answer".to_owned() }),
        };
        let opened = self.open(id, &folder).map_err(|e| start_error("the session's folder", &e))?;
        Ok(self.seat(opened, connection, early, None))
    }

    fn open(&self, id: &SessionId, folder: &SessionFolder) -> io::Result<SessionFiles> {
        let (shared, damage) = ended_session::open(id, folder, &self.backends)?;
        let events = super::replay_order::events(&shared.folder)?;
        Ok(SessionFiles { shared: Arc::new(shared), damage, events })
    }

    /// Starts the actor of a session; `row` is what the history has of it.
    fn seat(
        self: &Arc<Self>,
        opened: SessionFiles,
        connection: HolderConnection,
        early: Vec<FromHolder>,
        row: Option<&SessionRow>,
    ) -> Handle {
        let SessionFiles { shared, damage, events } = opened;
        let (mailbox, requests) = mpsc::channel(limits::MAILBOX_MAX);
        let (tail_sender, tail) = watch::channel(Tail::default());
        let (feed_sender, feed) = watch::channel(Published::default());
        let mut session = Session::new(Arc::clone(&shared), events, tail_sender, early, Now::read());
        damage.into_iter().for_each(|what| session.is_damaged(what));
        let actor = Actor::new(session, connection, requests, feed_sender, Arc::clone(&self.server_events));
        let handle = Handle {
            shared: Arc::clone(&shared),
            mailbox,
            tail,
            feed,
            stopping: self.stopping.subscribe(),
            permits: Permits::default(),
        };
        self.forget_past(&shared.id);
        locked(&self.live).insert(handle.clone());
        self.remember_default(&shared.meta, &shared.id);
        self.remember_key(&shared.meta, &shared.id);
        let now = shared.row(None);
        if row != Some(&now) {
            self.store().put_session(now);
        }
        tokio::spawn(Arc::clone(self).wait_on_for_tasks(shared.id.clone()));
        tokio::spawn(supervision::watch_over(Arc::clone(self), Box::new(actor), self.stopping.subscribe()));
        handle
    }

    /// Begins to adopt every session with a folder. [`Self::adopted`] waits until each has been examined.
    pub(super) fn adopt_all(self: &Arc<Self>) {
        let rows = self.rows_before();
        self.holders().remove_trials();
        self.end_earlier_containers();
        let folders = self.folders_of(&rows);
        let keyed = |row: &SessionRow| Some(((row.owner.clone(), row.key.clone()?), SessionId::parse(&row.id).ok()?));
        locked(&self.create_keys.keys).extend(rows.iter().filter_map(keyed));
        self.remember_defaults(&rows);
        let mut rows: HashMap<String, SessionRow> = rows.into_iter().map(|row| (row.id.clone(), row)).collect();
        let (settled, unsettled) = watch::channel(());
        let folders = folders.into_iter().map(|id| {
            let (row, folder) = (rows.remove(id.as_str()), self.holders().folder(&id));
            Adopting::new(id, folder, row, None)
        });
        // Those whose end is on record are examined last.
        let (ended, live): (Vec<_>, Vec<_>) = folders.partition(Adopting::has_ended_before);
        let all = live.len() + ended.len();
        for adopting in live.into_iter().chain(ended) {
            self.adoption.unexamined.add(adopting, unsettled.clone());
        }
        drop(unsettled);
        for _ in 0..EXAMINED_AT_ONCE.min(all) {
            tokio::spawn(Arc::clone(self).examine_all());
        }
        let (store, adoption) = (self.store(), self.adoption.is_done.clone());
        tokio::spawn(async move {
            settled.closed().await;
            store.mark_filled();
            adoption.send_replace(true);
        });
    }

    /// Examines sessions from before this server, one after the other, until none is left.
    async fn examine_all(self: Arc<Self>) {
        while let (Some(mut adopting), false) = (self.adoption.unexamined.next(), self.is_stopping()) {
            if adopting.has_ended_before() && !self.holders().is_listening(&adopting.folder) {
                self.adoption.unexamined.is_settled(&mut adopting);
                continue;
            }
            adopting.since = Instant::now();
            let mut adopted: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(Arc::clone(&self).adopt(*adopting));
            if tokio::time::timeout(EXAMINED_SOON, &mut adopted).await.is_err() {
                tokio::spawn(adopted);
            }
        }
    }

    /// Waits until this session has been examined, if it is one from before this server, before all others. False if that
    /// takes too long and no end of it is on record.
    pub(super) async fn examined(&self, id: &SessionId) -> bool {
        let Some(mut settled) = self.adoption.unexamined.ask_for(id) else { return true };
        // A disk that hangs must not block the caller for ever.
        let is_examined = tokio::time::timeout(2 * limits::ADOPT_PATIENCE, settled.changed()).await.is_ok();
        is_examined || !self.adoption.unexamined.live().contains(id)
    }

    /// A session that counts as live until it has been examined.
    pub(super) fn unexamined(&self, id: &SessionId) -> Arc<Unreachable> {
        let why = "the server has not connected to it yet".to_owned();
        Arc::new(Unreachable::silent(id, self.holders().folder(id), why))
    }

    /// The sessions in the store; none if it cannot be read, and then each is added again from its folder.
    fn rows_before(&self) -> Vec<SessionRow> {
        let store = self.store();
        let rows = store.sessions().or_else(|e| match e {
            StoreError::Damaged(_) => store.begin_anew().map(|()| Vec::new()),
            StoreError::Unavailable(_) => Err(e),
        });
        rows.unwrap_or_else(|e| {
            tracing::warn!(error = %e, "the history is not known; every session is read from its folder");
            Vec::new()
        })
    }

    /// The sessions that have a folder. A row whose folder was deleted while no server ran is removed.
    fn folders_of(&self, rows: &[SessionRow]) -> Vec<SessionId> {
        let folders = self.folders().unwrap_or_else(|e| {
            tracing::error!(folder = %self.folder().display(), error = %e, "no session is taken on");
            // If the directory cannot be read, no row is removed.
            rows.iter().filter_map(|r| SessionId::parse(&r.id).ok()).collect()
        });
        let there: HashSet<&str> = folders.iter().map(SessionId::as_str).collect();
        rows.iter().filter(|r| !there.contains(r.id.as_str())).for_each(|gone| self.store().forget(&gone.id));
        folders
    }

    /// Waits until every session from before this server has been examined.
    pub(super) async fn adopted(&self) {
        // A disk that hangs must not block the caller for ever.
        let mut settled = self.adoption.is_done.subscribe();
        let _ = tokio::time::timeout(2 * limits::ADOPT_PATIENCE, settled.wait_for(|all| *all)).await;
    }

    /// Adopts a session again whose actor ended before the session did.
    pub(super) async fn adopt_again(self: Arc<Self>, shared: Arc<Shared>, met: Option<Identity>) {
        let (id, folder) = (shared.id.clone(), shared.folder.clone());
        let adopting = Adopting::new(id, folder, Some(shared.row(None)), met);
        drop(shared);
        self.adopt(adopting).await;
    }

    /// Leaves a session alone that this server cannot read, until its holder has ended.
    pub(super) async fn leave_alone(self: Arc<Self>, shared: Arc<Shared>, why: String) {
        let (id, folder) = (shared.id.clone(), shared.folder.clone());
        let adopting = Adopting::new(id, folder, Some(shared.row(None)), None);
        drop(shared);
        self.mark_as(&adopting, Hindrance::Faulty, why);
        if let Liveness::Alive(holder) = self.holders().liveness(&adopting.folder, None) {
            let mut stopping = self.stopping.subscribe();
            tokio::select! {
                _ = self.holders().ends_within(holder, FOR_EVER) => {}
                _ = stopping.wait_for(|stopping| *stopping) => return,
            }
        }
        self.adopt(adopting).await;
    }

    /// Adopts a session, or records its end; retries until one of both succeeds.
    async fn adopt(self: Arc<Self>, mut adopting: Adopting) {
        let mut pause = limits::ADOPT_AGAIN_MIN;
        let mut stopping = self.stopping.subscribe();
        loop {
            let tried = tokio::select! {
                tried = self.try_to_adopt(&mut adopting) => tried,
                _ = stopping.wait_for(|stopping| *stopping) => return,
            };
            let (unreachable_reason, why) = match tried {
                AdoptionResult::Settled => break,
                AdoptionResult::Not(unreachable_reason, why) => (unreachable_reason, why),
            };
            if unreachable_reason != Hindrance::Silent || adopting.since.elapsed() >= limits::ADOPT_PATIENCE {
                self.mark_as(&adopting, unreachable_reason, why);
                self.adoption.unexamined.is_settled(&mut adopting);
            }
            let ends = async {
                match self.holders().liveness(&adopting.folder, adopting.met) {
                    Liveness::Alive(holder) if unreachable_reason == Hindrance::Silent => {
                        self.holders().ends_within(holder, pause).await
                    }
                    // Damage does not heal, and a holder keeps its protocol: only its end changes anything.
                    Liveness::Alive(holder) => self.holders().ends_within(holder, FOR_EVER).await,
                    _ => false,
                }
            };
            let paused = async {
                if !ends.await {
                    tokio::time::sleep_until(Instant::now() + pause).await;
                }
            };
            tokio::select! {
                () = paused => {}
                _ = stopping.wait_for(|stopping| *stopping) => return,
            }
            pause = (pause * 2).min(limits::ADOPT_AGAIN_MAX);
        }
        self.unmark(&adopting.id);
        self.adoption.unexamined.is_settled(&mut adopting);
    }

    fn mark_as(&self, adopting: &Adopting, unreachable_reason: Hindrance, why: String) {
        let Adopting { id, folder, row, met, .. } = adopting;
        let unreachable = Unreachable::new(id, folder.clone(), row.as_ref(), (unreachable_reason, why), *met);
        self.remember_key(&unreachable.meta, id);
        self.mark(unreachable);
    }

    async fn try_to_adopt(self: &Arc<Self>, adopting: &mut Adopting) -> AdoptionResult {
        let (mut connection, met) = match self.holders().connect(&adopting.folder) {
            Ok(connected) => connected,
            Err(e) if holders::is_passing(&e) => {
                return AdoptionResult::Not(Hindrance::Silent, format!("its holder cannot be reached now: {e}"));
            }
            Err(e) => return self.without_socket(adopting, &e).await,
        };
        adopting.met = met.or(adopting.met);
        if met.is_some_and(|holder| self.holders().is_above_this_server(holder)) {
            let why = "this server runs inside this session, and a holder refuses programs of its own session; start the \
                       server outside of it";
            self.mark_as(adopting, Hindrance::Silent, why.to_owned());
            self.adoption.unexamined.is_settled(adopting);
            return AdoptionResult::Not(Hindrance::Silent, why.to_owned());
        }
        connection.send(&ToHolder::Hello { protocol: PROTOCOL, attaches: true });
        let greeted = {
            let mut greeting = std::pin::pin!(greeting(&mut connection));
            match tokio::time::timeout_at(adopting.since + limits::ADOPT_PATIENCE, &mut greeting).await {
                Ok(greeted) => greeted,
                Err(_) => {
                    self.mark_as(adopting, Hindrance::Silent, does_not_answer(adopting.met));
                    self.adoption.unexamined.is_settled(adopting);
                    // The Hello comes when the holder continues; its end ends the connection.
                    greeting.await
                }
            }
        };
        let early = match greeted {
            Ok(early) => early,
            Err(NoGreeting::Foreign(protocol)) => {
                return AdoptionResult::Not(Hindrance::Foreign, speaks_another_protocol(protocol));
            }
            Err(NoGreeting::Refused(_) | NoGreeting::Ended(_)) => {
                return AdoptionResult::Not(Hindrance::Silent, "the connection to its holder broke".to_owned());
            }
        };
        let opened = self.open(&adopting.id, &adopting.folder);
        self.server_events.metrics.adopted(opened.is_ok());
        let opened = match opened {
            Ok(opened) => opened,
            Err(e) if holders::is_passing(&e) => {
                return AdoptionResult::Not(Hindrance::Silent, format!("its folder cannot be opened now: {e}"));
            }
            Err(e) => return AdoptionResult::Not(Hindrance::Damaged, format!("its files are damaged: {e}")),
        };
        let handle = self.seat(opened, connection, early, adopting.row.as_ref());
        self.check_client(&handle);
        if adopting.row.is_none() {
            // The store was lost, and the actor has only the newest commands.
            let (registry, id) = (Arc::clone(self), adopting.id.clone());
            let _ = tokio::task::spawn_blocking(move || drop(registry.record(&id))).await;
        }
        sys::fault::point("adopt");
        AdoptionResult::Settled
    }

    /// A client from before the restart counts as disconnected until it connects again, for which it has some time: its
    /// `ptyd mcp` lives on and looks for this server.
    fn check_client(&self, handle: &Handle) {
        let Some(client) = &handle.shared.meta.client else { return };
        if !self.clients.knows(client) {
            let detach = match handle.shared.meta.detach {
                Detach::Keep => Detach::Keep,
                Detach::After(grace) => Detach::After(grace.max(sys::fault::scaled(limits::CLIENT_RETURNS))),
            };
            self.clients.disconnected(client, detach);
        }
    }

    /// No process listens on the socket: the holder has ended, does not listen yet, or its socket was removed.
    async fn without_socket(self: &Arc<Self>, adopting: &Adopting, error: &io::Error) -> AdoptionResult {
        let liveness = self.holders().liveness(&adopting.folder, adopting.met);
        match liveness {
            Liveness::Alive((pid, _)) => {
                let why = format!("its holder (process {pid}) cannot be reached at its socket: {error}");
                return AdoptionResult::Not(Hindrance::Silent, why);
            }
            Liveness::MayLive(why) => {
                let why = format!("its holder cannot be reached at its socket ({error}), and may live: {why}");
                return AdoptionResult::Not(Hindrance::Silent, why);
            }
            Liveness::NeverBegan => {
                if let Err(e) = self.give_up(&adopting.folder) {
                    return AdoptionResult::Not(Hindrance::Silent, format!("its holder is about to begin: {e}"));
                }
                tracing::info!(session = %adopting.id, "removed: its creation was cut short before anything ran in it");
            }
            Liveness::Dead(dead) if self.is_unborn(adopting) => {
                let (registry, id, folder) = (Arc::clone(self), adopting.id.clone(), adopting.folder.clone());
                let removed = tokio::task::spawn_blocking(move || registry.remove_unborn(&id, &folder, dead)).await;
                if let Ok(Err(e)) = removed {
                    return AdoptionResult::Not(Hindrance::Silent, format!("its folder cannot be removed: {e}"));
                }
                tracing::info!(session = %adopting.id, "removed: its holder has ended before it recorded anything");
            }
            Liveness::Dead(_) | Liveness::Copy(_) | Liveness::Unknown(_) => {
                let (registry, id, row) = (Arc::clone(self), adopting.id.clone(), adopting.row.clone());
                let _ = tokio::task::spawn_blocking(move || registry.bury(&id, row, liveness)).await;
            }
        }
        AdoptionResult::Settled
    }

    /// Records the end of a session and kills what is left of it. A session that lives, or is about to begin, is left
    /// alone.
    pub(super) fn bury(&self, id: &SessionId, row_before: Option<SessionRow>, liveness: Liveness) {
        if matches!(liveness, Liveness::Alive(_) | Liveness::MayLive(_) | Liveness::NeverBegan) {
            return;
        }
        let past = self.record(id);
        if let Some(what) = past.as_ref().and_then(|past| past.timeline.damage()) {
            tracing::error!(session = %id, what, "the session's folder is damaged");
        }
        if past.as_ref().is_none_or(|past| past.timeline.end().exit.is_none()) {
            match liveness {
                Liveness::Dead(dead) => drop(holders::sweep(self.host(), id, dead)),
                Liveness::Copy((holder, _)) => {
                    tracing::warn!(session = %id, holder, "the folder is a copy of a live session's folder; that session is not touched");
                }
                Liveness::Unknown(why) => {
                    tracing::warn!(session = %id, why, "its left-over processes are not searched for")
                }
                Liveness::Alive(_) | Liveness::MayLive(_) | Liveness::NeverBegan => {}
            }
        }
        let Some(past) = past else {
            // Its records are damaged, but its end is known.
            let ended_us = Some(micros(SystemTime::now()));
            return row_before.into_iter().for_each(|row| {
                self.store().put_session(SessionRow { ended_us: row.ended_us.or(ended_us), ..row });
            });
        };
        if !matches!(liveness, Liveness::Copy(_)) {
            resource_limits::remove_group(self.host(), &past.shared.spec);
            past.shared.remove_secret_files();
            if past.shared.meta.confinement.container.is_some() {
                self.backends.containers.end(id);
            }
        }
        if let Some(command) = past.timeline.log().commands.back() {
            // The command ended with its session.
            let (row, meta) = (views::history_row(id, command), &past.shared.meta);
            self.server_events.audit.missed_end(&meta.owner, meta.name.as_deref(), &row);
            self.store().put_command_in_time(row);
        }
        self.remember_key(&past.shared.meta, id);
        self.remember_default(&past.shared.meta, id);
        self.store().put_session(past.shared.row(Some(past.ended_us())));
    }

    /// Stores every ended command of the session's folder in the history.
    pub(super) fn record(&self, id: &SessionId) -> Option<EndedSession> {
        let (audit, mut missed) = (&self.server_events.audit, Vec::new());
        let put = |command: &_| {
            let row = views::history_row(id, command);
            if audit.may_miss(&row) {
                missed.push(row.clone());
            }
            self.store().put_command_in_time(row);
        };
        let past = EndedSession::replay(id, &self.holders().folder(id), &self.backends, put);
        if let Ok(past) = &past {
            let meta = &past.shared.meta;
            missed.iter().for_each(|row| audit.missed_end(&meta.owner, meta.name.as_deref(), row));
        }
        past.inspect_err(|e| tracing::warn!(session = %id, error = %e, "its folder cannot be read")).ok()
    }

    /// Whether a session has a spec and nothing else: no record, and no row in the store. No server has told anybody of it, and a
    /// repetition of its creation starts another one.
    fn is_unborn(&self, adopting: &Adopting) -> bool {
        adopting.row.is_none() && !self.holders().has_records(&adopting.folder) && adopting.folder.spec().is_ok()
    }

    /// Removes a session whose holder has ended before it recorded anything, and kills what it has left behind.
    fn remove_unborn(&self, id: &SessionId, folder: &SessionFolder, dead: Dead) -> io::Result<()> {
        holders::sweep(self.host(), id, dead);
        self.backends.containers.end(id);
        if let Ok(spec) = folder.spec() {
            resource_limits::remove_group(self.host(), &spec);
        }
        folder.remove()
    }

    /// Removes the folder of a session whose holder has not begun, so that none can begin in it later.
    fn give_up(&self, folder: &SessionFolder) -> io::Result<()> {
        folder.give_up()?;
        if let Ok(spec) = folder.spec() {
            resource_limits::remove_group(self.host(), &spec);
        }
        folder.remove()
    }

    fn remember_key(&self, meta: &SessionMetadata, id: &SessionId) {
        if let Some(key) = &meta.key {
            locked(&self.create_keys.keys).insert((meta.owner.clone(), key.clone()), id.clone());
        }
    }

    pub(super) fn folders(&self) -> io::Result<Vec<SessionId>> {
        self.holders().all()
    }
}
