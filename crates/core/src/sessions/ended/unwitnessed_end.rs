//! The end of a session that no actor of this server has seen. It is recorded from the session's folder, and the remains of
//! the session are removed.

use std::io;

use super::session::EndedSession;
use crate::host::holders::{self, Dead, Liveness, SessionFolder};
use crate::ids::SessionId;
use crate::sessions::backends::Backends;
use crate::sessions::services::Services;
use crate::sessions::timeline::micros;
use crate::sessions::{resource_limits, views};
use crate::store::SessionRow;

/// Records the end of a session and kills what is left of it. A session that lives, or is about to begin, is left
/// alone.
pub(in crate::sessions) fn bury(
    services: &Services,
    id: &SessionId,
    row_before: Option<SessionRow>,
    liveness: Liveness,
) {
    if matches!(liveness, Liveness::Alive(_) | Liveness::MayLive(_) | Liveness::NeverBegan) {
        return;
    }
    let past = record(services, id);
    if let Some(what) = past.as_ref().and_then(|past| past.timeline.damage()) {
        tracing::error!(session = %id, what, "the session's folder is damaged");
    }
    if past.as_ref().is_none_or(|past| past.timeline.end().exit.is_none()) {
        match liveness {
            Liveness::Dead(dead) => drop(holders::sweep(&*services.backends.host, id, dead)),
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
        let ended_us = Some(micros(sys::time::wall()));
        return row_before.into_iter().for_each(|row| {
            services.history.store.put_session(SessionRow { ended_us: row.ended_us.or(ended_us), ..row });
        });
    };
    if !matches!(liveness, Liveness::Copy(_)) {
        resource_limits::remove_group(&*services.backends.host, &past.shared.spec);
        past.shared.remove_secret_files();
        if past.shared.meta.confinement.container.is_some() {
            services.backends.containers.end(id);
        }
    }
    services.server_events.spans.session_ended(id);
    if let Some(command) = past.timeline.log().commands.back() {
        // The command ended with its session.
        let (row, meta) = (views::history_row(id, command), &past.shared.meta);
        services.server_events.audit.missed_end(&meta.owner, meta.name.get().as_deref(), &row);
        services.history.store.put_command_in_time(row);
    }
    services.create_keys.remember_key(&past.shared.meta, id);
    services.create_keys.remember_default(&past.shared.meta, id);
    services.history.store.put_session(past.shared.row(Some(past.ended_us())));
}

/// Stores every ended command of the session's folder in the history.
pub(in crate::sessions) fn record(services: &Services, id: &SessionId) -> Option<EndedSession> {
    let (audit, mut missed) = (&services.server_events.audit, Vec::new());
    let put = |command: &_| {
        let row = views::history_row(id, command);
        if audit.may_miss(&row) {
            missed.push(row.clone());
        }
        services.history.store.put_command_in_time(row);
    };
    let past = EndedSession::replay(id, &services.backends.holders.folder(id), &services.backends, put);
    if let Ok(past) = &past {
        let meta = &past.shared.meta;
        missed.iter().for_each(|row| audit.missed_end(&meta.owner, meta.name.get().as_deref(), row));
    }
    past.inspect_err(|e| tracing::warn!(session = %id, error = %e, "its folder cannot be read")).ok()
}

/// Whether a session has a spec and nothing else: no record, and no row in the store. No server has told anybody of it, and a
/// repetition of its creation starts another one.
pub(in crate::sessions) fn is_unborn(backends: &Backends, folder: &SessionFolder, row: Option<&SessionRow>) -> bool {
    row.is_none() && !backends.holders.has_records(folder) && folder.spec().is_ok()
}

/// Removes a session whose holder has ended before it recorded anything, and kills what it has left behind.
pub(in crate::sessions) fn remove_unborn(
    backends: &Backends,
    id: &SessionId,
    folder: &SessionFolder,
    dead: Dead,
) -> io::Result<()> {
    holders::sweep(&*backends.host, id, dead);
    backends.containers.end(id);
    if let Ok(spec) = folder.spec() {
        resource_limits::remove_group(&*backends.host, &spec);
    }
    folder.remove()
}

/// Removes the folder of a session whose holder has not begun, so that none can begin in it later.
pub(in crate::sessions) fn give_up(backends: &Backends, folder: &SessionFolder) -> io::Result<()> {
    folder.give_up()?;
    if let Ok(spec) = folder.spec() {
        resource_limits::remove_group(&*backends.host, &spec);
    }
    folder.remove()
}
