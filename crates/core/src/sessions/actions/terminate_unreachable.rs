//! Ends unreachable sessions.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use wire::{FromHolder, ToHolder};

use crate::action::{ActionError, Terminate, TerminatedView};
use crate::host::holders::{self, Dead, HolderBackend, Liveness, SessionFolder};
use crate::host::{Identity, Process, descendants};
use crate::ids::SessionId;
use crate::limits;
use crate::sessions::backends::Backends;
use crate::sessions::services::Services;
use crate::sessions::session::Ended;
use crate::sessions::unreachable::{Hindrance, Unreachable};

/// Terminates an unreachable session.
pub(in crate::sessions) async fn end_unreachable(
    services: &Services,
    unreachable: &Arc<Unreachable>,
    request: &Terminate,
) -> Result<TerminatedView, ActionError> {
    let signo = if request.force { sys::signal::KILL } else { request.signo.unwrap_or(sys::signal::HUP) };
    let grace = request.grace.unwrap_or(limits::TERMINATE_GRACE);
    let asked = match unreachable.unreachable_reason {
        Hindrance::Silent | Hindrance::Foreign => None,
        Hindrance::Damaged | Hindrance::Faulty => {
            ask_to_end(&services.backends.holders, unreachable, signo, grace).await
        }
    };
    let ended = match (asked, request.force) {
        (Some(ended), _) => ended,
        (None, true) => kill_holder(&services.backends, &unreachable.id, &unreachable.folder, unreachable.met).await?,
        (None, false) => return Err(unreachable.error()),
    };
    let is_gone = services.sessions.adoption.no_longer_unreachable(&unreachable.id);
    if tokio::time::timeout(limits::HOLDER_LEAVES, is_gone).await.is_err() {
        return Err(unreachable.error());
    }
    let past = services.sessions.past(&unreachable.id).await?;
    Ok(TerminatedView {
        session: past.map_or_else(|| unreachable.ended_view(), |past| past.view()),
        killed: ended.killed,
        left: ended.left,
        was_over: false,
        freed_bytes: None,
    })
}

/// Kills a session without its holder's help: the holder first, so that it starts nothing more, and then all of its
/// processes.
pub(in crate::sessions) async fn kill_holder(
    backends: &Backends,
    id: &SessionId,
    folder: &SessionFolder,
    met: Option<Identity>,
) -> Result<Ended, ActionError> {
    let holder = match backends.holders.liveness(folder, met) {
        Liveness::Alive(holder) => holder,
        Liveness::Dead(_) | Liveness::NeverBegan => return Ok(Ended { killed: 0, left: 0 }),
        Liveness::Copy(_) => {
            let why = "its folder is a copy, and the process that holds the original is another session's".to_owned();
            return Err(ActionError::Unreachable { session: id.clone(), why });
        }
        Liveness::Unknown(why) | Liveness::MayLive(why) => {
            let why = format!("its holder process cannot be determined: {why}");
            return Err(ActionError::Unreachable { session: id.clone(), why });
        }
    };
    let pid = holder.0;
    let held: Vec<Identity> = descendants(&*backends.host, pid).iter().map(|it: &Process| it.identity).collect();
    tracing::warn!(session = %id, holder = pid, "killed by force, with its {} processes", held.len());
    backends.holders.note_forced(folder);
    backends.holders.kill(holder);
    if !backends.holders.ends_within(holder, limits::KILL_PATIENCE).await {
        let why = format!(
            "ptyd sent KILL to its holder (process {pid}), which has not ended yet: the kernel ends it once the \
             disk or the control group that blocks it lets it continue"
        );
        return Err(ActionError::Unreachable { session: id.clone(), why });
    }
    for process in &held {
        backends.host.signal_exactly(*process, sys::signal::KILL);
    }
    let (host, swept) = (Arc::clone(&backends.host), id.clone());
    let sweep = move || holders::sweep(&*host, &swept, Dead::known(holder));
    let more = tokio::task::spawn_blocking(sweep).await.unwrap_or(0);
    let until = Instant::now() + limits::KILL_PATIENCE;
    let mut left = 0;
    for process in &held {
        let longest = until.saturating_duration_since(Instant::now());
        left += u64::from(!backends.host.ends_within(*process, longest).await);
    }
    Ok(Ended { killed: (held.len() + more) as u64, left })
}

/// Asks the holder to end a session with unreadable files; the holder needs no file for that. `None` if it does not answer.
async fn ask_to_end(holders: &HolderBackend, unreachable: &Unreachable, signo: i32, grace: Duration) -> Option<Ended> {
    const SEQ: u32 = 1;
    let (mut connection, _) = holders.connect(&unreachable.folder).ok()?;
    let grace_ms = u32::try_from(grace.as_millis()).unwrap_or(u32::MAX);
    connection.send(&ToHolder::Terminate { seq: SEQ, signo, grace_ms });
    let done = async {
        let mut ended = Ended { killed: 0, left: 0 };
        // The connection ends when the holder ends.
        while let Ok(frames) = connection.receive().await {
            for frame in frames {
                if let FromHolder::Done { seq: SEQ, status, value, .. } = frame {
                    let left = u64::from(status != wire::Status::Ok);
                    ended = Ended { killed: value, left };
                }
            }
        }
        ended
    };
    // Two grace periods, and the time that the holder may take to kill.
    tokio::time::timeout(2 * grace + limits::HOLDER_LEAVES, done).await.ok()
}
