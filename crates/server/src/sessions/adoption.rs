//! How sessions come to this server: from a holder that was just started, and from those that were there before it.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use holder::wire::{FromHolder, PROTOCOL, Status, Tail, ToHolder};
use tokio::sync::{mpsc, watch};

use super::feed::Published;
use super::holders::{self, Liveness};
use super::link::Link;
use super::manager::{Handle, Manager, locked, row};
use super::past::{self, Past};
use super::permits::Permits;
use super::session::{Session, Shared};
use super::{bounds, launch, snapshot, supervision};
use crate::action::ActionError;
use crate::identity::Detach;
use crate::ids::SessionId;
use crate::limits;
use crate::store::{SessionRow, StoreError};

/// How long a holder may take to greet.
const GREETING: Duration = Duration::from_secs(10);

impl Manager {
    /// Waits for the holder's greeting and gives the session its actor.
    pub(super) async fn take_on(
        self: &Arc<Self>,
        id: &SessionId,
        folder: PathBuf,
        mut link: Link,
    ) -> Result<Handle, ActionError> {
        let early = match tokio::time::timeout(GREETING, greeting(&mut link)).await {
            Ok(Ok(frames)) => frames,
            Ok(Err(why)) => return Err(ActionError::Start { why: with_log(&folder, &why) }),
            Err(_) => return Err(ActionError::Start { why: "the holder does not answer".to_owned() }),
        };
        let unreadable = |e: std::io::Error| ActionError::Start { why: format!("the session's folder: {e}") };
        let (shared, damage) = past::open(id, &folder, &self.store()).map_err(unreadable)?;
        let shared = Arc::new(shared);
        let events = past::events(&folder).map_err(unreadable)?;
        let (mailbox, requests) = mpsc::channel(limits::MAILBOX_MAX);
        let (tail_sender, tail) = watch::channel(Tail::default());
        let (feed_sender, feed) = watch::channel(Published::default());
        let mut session = Session::new(
            Arc::clone(&shared),
            link,
            events,
            requests,
            (tail_sender, feed_sender),
            early,
            Arc::clone(&self.bulletin),
        );
        damage.into_iter().for_each(|what| session.is_damaged(what));
        let handle = Handle {
            shared: Arc::clone(&shared),
            mailbox,
            tail,
            feed,
            stopping: self.stopping.subscribe(),
            permits: Permits::default(),
        };
        locked(&self.live).insert(id.clone(), handle.clone());
        if let (true, Some(client)) = (shared.meta.is_default, &shared.meta.client) {
            locked(&self.defaults).insert(client.clone(), id.clone());
        }
        self.remember_key(&shared);
        self.store().put_session(row(&shared, None));
        tokio::spawn(supervision::watch_over(Arc::clone(self), Box::new(session), self.stopping.subscribe()));
        Ok(handle)
    }

    pub(super) async fn adopt_all(self: &Arc<Self>) {
        let store = self.store();
        let rows = store.sessions().or_else(|e| match e {
            // With no rows known, all of them are put below.
            StoreError::Damaged(_) => store.begin_anew().map(|()| Vec::new()),
            StoreError::Unavailable(_) => Err(e),
        });
        let rows = rows.unwrap_or_else(|e| {
            tracing::warn!(error = %e, "the history is not known; every session is read from its folder");
            Vec::new()
        });
        self.remove_trials();
        let folders = self.folders().unwrap_or_else(|e| {
            tracing::error!(folder = %self.folder().display(), error = %e, "no session is taken on");
            // Nothing is forgotten of what cannot be looked at.
            rows.iter().filter_map(|r| SessionId::parse(&r.id).ok()).collect()
        });
        let there: HashSet<&str> = folders.iter().map(SessionId::as_str).collect();
        // Its folder was deleted while no server ran.
        rows.iter().filter(|r| !there.contains(r.id.as_str())).for_each(|gone| store.forget(&gone.id));
        let keyed = |row: &SessionRow| Some(((row.owner.clone(), row.key.clone()?), SessionId::parse(&row.id).ok()?));
        locked(&self.keys).extend(rows.iter().filter_map(keyed));
        let known: HashMap<String, bool> = rows.into_iter().map(|r| (r.id, r.ended_us.is_some())).collect();
        let mut adopting = tokio::task::JoinSet::new();
        for id in folders {
            let folder = self.folder().join(id.as_str());
            let manager = Arc::clone(self);
            let is_known = known.contains_key(id.as_str());
            match launch::connect(&folder) {
                Ok(stream) => {
                    adopting.spawn(async move {
                        let mut link = Link::new(stream);
                        link.send(&ToHolder::Hello { protocol: PROTOCOL, attaches: true });
                        let taken = manager.take_on(&id, folder, link).await;
                        manager.bulletin.metrics.adopted(taken.is_ok());
                        if let Err(e) = taken {
                            tracing::warn!(session = %id, error = %e, "not adopted");
                        } else if !is_known {
                            // The history was lost, and the actor keeps the newest commands only.
                            let _ = tokio::task::spawn_blocking(move || drop(manager.record(&id))).await;
                        }
                        sys::fault::point("adopt");
                    });
                }
                Err(_) if known.get(id.as_str()) == Some(&true) => {}
                // A server was killed before it wrote anything there: no holder was started on it.
                Err(_) if std::fs::remove_dir(&folder).is_ok() => store.forget(id.as_str()),
                Err(_) => {
                    adopting.spawn_blocking(move || manager.bury(&id));
                }
            }
        }
        while adopting.join_next().await.is_some() {}
        store.says_filled();
        let clients: Vec<(String, Detach)> = self
            .handles()
            .into_iter()
            .filter_map(|h| h.shared.meta.client.clone().map(|c| (c, h.shared.meta.detach)))
            .collect();
        for (client, detach) in clients {
            // Until it comes back a client of before the restart counts as gone.
            self.client_gone(&client, detach);
        }
    }

    /// A session that ended while no server ran: its story goes on record, and nothing of it stays alive.
    pub(super) fn bury(&self, id: &SessionId) {
        let Some(past) = self.record(id) else { return };
        if let Some(what) = &past.ledger.damage {
            tracing::error!(session = %id, what, "the session's folder is damaged");
        }
        if past.ledger.exit.is_none() {
            match holders::look(&past.shared.folder, None) {
                Liveness::Dead(dead) => drop(holders::sweep(id, dead)),
                Liveness::Alive((pid, _)) => {
                    tracing::warn!(session = %id, holder = pid, "not adopted: its holder lives and has no socket");
                    return;
                }
                Liveness::Copy((pid, _)) => {
                    tracing::warn!(session = %id, holder = pid, "the folder is a copy; its session lives elsewhere and is left alone");
                }
                Liveness::Unknown(why) => tracing::warn!(session = %id, why, "nothing of it is looked for"),
                Liveness::NeverBegan => {}
            }
        }
        bounds::remove(&past.shared.spec);
        if let Some(command) = past.ledger.commands.back() {
            // It ended with its session.
            self.store().put_command_in_time(snapshot::history_row(id, command));
        }
        self.remember_key(&past.shared);
        self.store().put_session(row(&past.shared, Some(past.ended_us())));
    }

    /// Puts every command that has ended into the history, from the session's folder.
    pub(super) fn record(&self, id: &SessionId) -> Option<Past> {
        let put = |command: &_| self.store().put_command_in_time(snapshot::history_row(id, command));
        let past = Past::replay(id, &self.folder().join(id.as_str()), &self.store(), put);
        past.inspect_err(|e| tracing::warn!(session = %id, error = %e, "its folder cannot be read")).ok()
    }

    pub(super) fn remember_key(&self, shared: &Shared) {
        if let Some(key) = &shared.meta.key {
            locked(&self.keys).insert((shared.meta.owner.clone(), key.clone()), shared.id.clone());
        }
    }

    /// Removes the folders in which a server tried splice(2) on a terminal (`holder::splice_works`) and was killed.
    fn remove_trials(&self) {
        let entries = std::fs::read_dir(self.folder()).into_iter().flatten().flatten();
        for trial in entries.filter(|e| e.file_name().as_encoded_bytes().starts_with(b".splice-")) {
            if let Err(e) = std::fs::remove_dir_all(trial.path()) {
                tracing::warn!(folder = %trial.path().display(), error = %e, "left by an earlier server, and not removed");
            }
        }
    }

    pub(super) fn folders(&self) -> std::io::Result<Vec<SessionId>> {
        let names = std::fs::read_dir(self.folder())?.map(|entry| entry.map(|e| e.file_name()));
        let names = names.collect::<std::io::Result<Vec<_>>>()?;
        Ok(names.iter().filter_map(|name| SessionId::parse(name.to_str()?).ok()).collect())
    }
}

/// The first frames of a holder, up to its greeting.
async fn greeting(link: &mut Link) -> Result<Vec<FromHolder>, String> {
    let mut early = Vec::new();
    loop {
        for frame in link.receive().await.map_err(|e| format!("the holder ended: {e}"))? {
            if let FromHolder::Done { seq: 0, status: Status::Failed, value } = frame {
                return Err(start_failure(value));
            }
            early.push(frame);
        }
        if early.iter().any(|f| matches!(f, FromHolder::Hello(_))) {
            return Ok(early);
        }
    }
}

fn start_failure(value: u64) -> String {
    let step = match value >> 32 {
        0 => "fork",
        1 => "setsid",
        2 => "taking the terminal",
        3 => "placing descriptors",
        4 => "entering the working directory",
        6 => "joining its control group",
        7 => "setting its limits",
        8 => "becoming its user",
        _ => "executing the shell",
    };
    let errno = i32::try_from(value & 0xffff_ffff).unwrap_or(0);
    format!("{step}: {}", std::io::Error::from_raw_os_error(errno))
}

/// What the holder wrote before it ended, if anything.
fn with_log(folder: &Path, why: &str) -> String {
    let log = std::fs::read_to_string(folder.join("holder.log")).unwrap_or_default();
    let last = log.lines().last().unwrap_or_default();
    if last.is_empty() || why.contains(':') { why.to_owned() } else { format!("{why} ({last})") }
}
