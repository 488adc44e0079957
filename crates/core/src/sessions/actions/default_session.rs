//! The default session of a stdio client, and what its caller has seen of it: the primitives of the `terminal` tool
//! (`composites/terminal_tool.rs`).

use std::sync::Arc;

use tokio::sync::OwnedMutexGuard;

use super::report::plain_report;
use super::{commands, idempotency, range_text};
use crate::action::{
    ActionError, Budget, CommandStatus, CommandView, Earlier, EndedBy, LiveSession, Locate, LocatedSession, MissedEnd,
    Outcome, ReadMissed, Report,
};
use crate::ids::SessionId;
use crate::limits;
use crate::principal::Principal;
use crate::sessions::ended::session::EndedSession;
use crate::sessions::handle::Handle;
use crate::sessions::known_sessions::{SessionRef, ended, may_see, reason};
use crate::sessions::read_cursor::ReadCursors;
use crate::sessions::render::text::without_prompt;
use crate::sessions::services::Services;
use crate::sessions::session::{Request, Snapshot};
use crate::sessions::session_metadata::SessionMetadata;

/// A client's default session.
pub(super) enum DefaultSession {
    Live(Handle, Box<Snapshot>),
    Ended(Arc<EndedSession>),
    Nothing,
}

/// The session that a call of the `terminal` tool is meant for.
pub(in crate::sessions) async fn locate(
    services: &Services,
    principal: &Principal,
    locate: &Locate,
) -> Result<LocatedSession, ActionError> {
    let (handle, snapshot) = match locate {
        Locate::Session(id) => match services.sessions.find(principal, id).await? {
            SessionRef::Unreachable(unreachable) => return Err(unreachable.error()),
            SessionRef::EndedSession(past) => return Err(ended(&past.view())),
            SessionRef::Live(handle) => {
                let snapshot = handle.ask(Request::Look).await?;
                (handle, Box::new(snapshot))
            }
        },
        Locate::DefaultOf(client) => {
            // A start in progress decides first.
            let turn = default_turn(services, client).await;
            let session = default_of(services, principal, client).await?;
            drop(turn);
            match session {
                DefaultSession::Live(handle, snapshot) => (handle, snapshot),
                DefaultSession::Nothing => return Ok(LocatedSession::Nothing),
                DefaultSession::Ended(old) => {
                    let (session, view) = (old.shared.id.clone(), old.view());
                    let (how, cwd) = (reason(&view), view.cwd);
                    let read_to = services.read_cursors.read_to(principal, &session).await?.unwrap_or(0);
                    return Ok(LocatedSession::Ended { session, how, cwd, read_to });
                }
            }
        }
    };
    // Before anything is done: a disk that does not give it refuses the call.
    let read_to = services.read_cursors.read_to(principal, &handle.shared.id).await?.unwrap_or(0);
    let Snapshot { view: session, command, was_not_ready, .. } = *snapshot;
    let running = session.current_command.and(command).map(|command| command.command);
    Ok(LocatedSession::Live(Box::new(LiveSession { session, running, was_not_ready, read_to })))
}

/// Two requests at the same time must not start two default sessions.
pub(super) async fn default_turn(services: &Services, client: &str) -> OwnedMutexGuard<()> {
    let turn = services.create_keys.turn_of_client(client).await;
    services.sessions.adopted().await;
    turn
}

/// The present default session of a client, or the newest one that has ended.
pub(super) async fn default_of(
    services: &Services,
    principal: &Principal,
    client: &str,
) -> Result<DefaultSession, ActionError> {
    let mine = |meta: &SessionMetadata| {
        meta.default.is_default && meta.client.as_deref() == Some(client) && may_see(principal, meta)
    };
    let newest = services.create_keys.default_of(client);
    // An older one lives on only while its holder ends what is left of it.
    if let Some(handle) = services.sessions.find_live(newest.as_ref(), mine) {
        match handle.ask(Request::Look).await {
            Ok(snapshot) if snapshot.view.exit.is_none() => {
                return Ok(DefaultSession::Live(handle, Box::new(snapshot)));
            }
            // The session continues.
            Err(ActionError::Restarting) => return Err(ActionError::Restarting),
            Ok(_) | Err(_) => {}
        }
        // The shell has exited and its holder still ends descendants: the records say how it ended.
        handle.gone().await;
    }
    if let Some(unreachable) = services.sessions.adoption.unreachable_one(mine) {
        return Err(unreachable.error());
    }
    let last = last_default(services, client).await.filter(|ended| may_see(principal, &ended.shared.meta));
    Ok(last.map_or(DefaultSession::Nothing, DefaultSession::Ended))
}

/// The newest ended default session of a client.
async fn last_default(services: &Services, client: &str) -> Option<Arc<EndedSession>> {
    let id = services.create_keys.default_of(client)?;
    services.sessions.past(&id).await.ok()?
}

/// The ended commands whose ends this caller has yet to learn, except the one that its answer reports.
pub(in crate::sessions) async fn missed(
    services: &Services,
    principal: &Principal,
    read: &ReadMissed,
) -> Vec<MissedEnd> {
    let is_running = |command: &CommandView| command.status == CommandStatus::Running;
    if let Some((of, id, is_running)) = &read.told {
        let note = if *is_running { ReadCursors::note_running } else { ReadCursors::note_end_reported };
        note(&services.read_cursors, principal, of, *id);
    }
    let mut missed = Vec::new();
    for id in services.read_cursors.unreported(principal, &read.session) {
        if read.told.as_ref().is_some_and(|(of, told, _)| (of, *told) == (&read.session, id)) {
            continue;
        }
        // Its task tells it.
        if services.tasks.tells(&principal.reader(), &read.session, id).is_some() {
            continue;
        }
        let known = match commands::known(services, principal, &read.session, id).await {
            Ok(known) if is_running(&known.command) => continue,
            Ok(known) => Some(known),
            Err(ActionError::NoSession { .. } | ActionError::NoCommand { .. }) => None,
            // The next call finds it.
            Err(_) => continue,
        };
        services.read_cursors.note_end_reported(principal, &read.session, id);
        let Some(known) = known else { continue };
        let read_to = read.read_to;
        let from = known.command.start_offset.max(read_to);
        // The answer shows the command that ran inside this one.
        let told = match &read.told {
            Some((of, told, _)) if *of == read.session => commands::known(services, principal, of, *told).await.ok(),
            _ => None,
        };
        let end = known.command.end_offset.unwrap_or(from);
        let inner = told.map(|told| told.command.start_offset).filter(|inner| (from..end).contains(inner));
        let to = inner.unwrap_or(end);
        let is_some = from < to || inner.is_some();
        let unread = if is_some && to - from <= limits::UNREAD_SHOWN_BYTES_MAX {
            let cols = known.session.cols;
            // If the journal cannot be read here, the answer announces the output, as it does a longer one.
            range_text::text(&known.shared, known.handovers, (from, to), cols, Budget::folded(limits::BUDGET_CHARS))
                .await
                .ok()
        } else {
            None
        };
        missed.push(MissedEnd { session: known.session, command: known.command, read_to, unread });
    }
    missed
}

/// The output since this caller's last call, and the newest command; does not wait.
pub(in crate::sessions) async fn unread(
    services: &Services,
    principal: &Principal,
    session: &SessionId,
    budget: Budget,
) -> Result<Report, ActionError> {
    let handle = services.sessions.live(principal, session).await?;
    let (snapshot, commands) = handle.ask(Request::Commands).await?;
    let (session, handovers) = (snapshot.view, snapshot.handovers);
    let last = commands.into_iter().rev().find(|c| c.end_offset.is_some());
    let seen = services.read_cursors.read_to(principal, &session.id).await?.unwrap_or(0);
    // The end of a command for which no caller waited is shown first, background output at the next call.
    let unseen = last.as_ref().and_then(|c| c.end_offset.filter(|end| *end > seen).map(|end| (c.start_offset, end)));
    if let Some((start, end)) = unseen {
        let output = range_text::text(&handle.shared, handovers, (seen.max(start), end), session.cols, budget).await?;
        services.read_cursors.has_read(principal, &session.id, (seen, end));
        return Ok(plain_report(session, last, EndedBy::Ended, output));
    }
    // Prompt and echo are not output: background output begins behind the last prompt's marker.
    let from = seen.max(snapshot.background_from).min(snapshot.shown_to);
    let mut output =
        range_text::text(&handle.shared, handovers, (from, snapshot.shown_to), session.cols, budget).await?;
    without_prompt(&mut output);
    services.read_cursors.has_read(principal, &session.id, (seen, snapshot.shown_to));
    Ok(plain_report(session, last, EndedBy::Ended, output))
}

/// The result of the same request in a session that the request has ended, if it was performed there.
pub(in crate::sessions) async fn earlier(
    services: &Services,
    principal: &Principal,
    earlier: &Earlier,
) -> Result<Outcome, ActionError> {
    let report = match earlier {
        Earlier::Execute(request) if request.key.is_some() => {
            let key = idempotency::key_of_command(services, request);
            idempotency::executed_before(services, principal, request, key).await
        }
        Earlier::Input(request) if request.key.is_some() => {
            let key = idempotency::key_of_input(services, request);
            idempotency::typed_before(services, principal, request, key).await
        }
        Earlier::Execute(_) | Earlier::Input(_) => None,
    };
    Ok(Outcome::Earlier(report.transpose()?.map(Box::new)))
}

/// The commands of a session that has just ended.
pub(in crate::sessions) async fn final_commands(
    services: &Services,
    principal: &Principal,
    id: &SessionId,
) -> Result<Outcome, ActionError> {
    let why = || "its records are not complete yet".to_owned();
    let past = idempotency::ended(services, principal, id).await;
    let past = past.ok_or_else(|| ActionError::Unreachable { session: id.clone(), why: why() })?;
    let commands = past.commands();
    let total = commands.len();
    Ok(Outcome::Commands(commands, total))
}
