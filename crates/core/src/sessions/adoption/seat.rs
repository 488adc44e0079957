//! The seat of a session in this server: opens its files, makes its actor, and lists its handle among the live sessions.

use std::io;
use std::sync::Arc;

use journal::EventsReader;
use tokio::sync::{mpsc, watch};
use wire::{FromHolder, Tail};

use crate::host::holders::{HolderConnection, SessionFolder};
use crate::ids::SessionId;
use crate::limits;
use crate::sessions::backends::Backends;
use crate::sessions::concurrency_limits::Permits;
use crate::sessions::ended::session;
use crate::sessions::handle::Handle;
use crate::sessions::replay_order;
use crate::sessions::services::Services;
use crate::sessions::session::{Actor, Now, Session};
use crate::sessions::shared::Shared;
use crate::sessions::tasks::follow::wait_on_for_tasks;
use crate::sessions::viewer_feed::Published;
use crate::store::SessionRow;

/// The files that an actor reads.
pub(super) struct SessionFiles {
    shared: Arc<Shared>,
    damage: Option<String>,
    events: Option<EventsReader>,
}

impl SessionFiles {
    pub(super) fn open(backends: &Arc<Backends>, id: &SessionId, folder: &SessionFolder) -> io::Result<Self> {
        let (shared, damage) = session::open(id, folder, backends)?;
        let events = replay_order::events(&shared.folder)?;
        Ok(Self { shared: Arc::new(shared), damage, events })
    }
}

/// Makes the actor of a session, which its caller runs; `row` is what the history has of the session.
pub(super) fn seat(
    services: &Arc<Services>,
    files: SessionFiles,
    connection: HolderConnection,
    early: Vec<FromHolder>,
    row: Option<&SessionRow>,
) -> (Handle, Box<Actor>) {
    let SessionFiles { shared, damage, events } = files;
    let (mailbox, requests) = mpsc::channel(limits::MAILBOX_MAX);
    let (tail_sender, tail) = watch::channel(Tail::default());
    let (feed_sender, feed) = watch::channel(Published::default());
    let mut session = Session::new(Arc::clone(&shared), events, tail_sender, early, Now::read());
    damage.into_iter().for_each(|what| session.cx.is_damaged(what));
    let actor = Actor::new(session, connection, requests, feed_sender, Arc::clone(&services.server_events));
    let stopping = services.sessions.stop_signal();
    let handle = Handle { shared: Arc::clone(&shared), mailbox, tail, feed, stopping, permits: Permits::default() };
    services.sessions.add(handle.clone());
    services.create_keys.remember_default(&shared.meta, &shared.id);
    services.create_keys.remember_key(&shared.meta, &shared.id);
    let now = shared.row(None);
    if row != Some(&now) {
        services.history.store.put_session(now);
    }
    tokio::spawn(wait_on_for_tasks(Arc::clone(services), shared.id.clone()));
    (handle, Box::new(actor))
}
