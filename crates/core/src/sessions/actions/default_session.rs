//! The default session of a stdio client, and what its caller has seen of it: the primitives of the `terminal` tool
//! (`composites/terminal_tool.rs`).

use std::sync::Arc;

use tokio::sync::OwnedMutexGuard;

use super::report::plain_report;
use super::{idempotency, range_text};
use crate::action::{ActionError, Budget, Earlier, EndedBy, LiveSession, Locate, LocatedSession, Outcome, Report};
use crate::ids::SessionId;
use crate::principal::Principal;
use crate::sessions::ended::session::EndedSession;
use crate::sessions::handle::Handle;
use crate::sessions::known_sessions::{SessionRef, ended, may_see, reason};
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
