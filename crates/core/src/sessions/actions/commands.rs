//! The commands of a session, live or ended, and the output of one.

use std::sync::Arc;

use super::range_text;
use super::report::plain_report;
use crate::action::{ActionError, Budget, CommandStatus, CommandView, EndedBy, Outcome, Report, SessionView};
use crate::ids::{CommandId, SessionId};
use crate::principal::Principal;
use crate::sessions::ended::session::EndedSession;
use crate::sessions::known_sessions::SessionRef;
use crate::sessions::read_cursor::ReadCursors;
use crate::sessions::services::Services;
use crate::sessions::session::Request;
use crate::sessions::shared::Shared;
use crate::sessions::timeline::handover::RecentHandovers;

/// A command of a session, and where its visible output ends while it runs.
pub(super) struct KnownCommand {
    pub(in crate::sessions) session: SessionView,
    pub(super) shared: Arc<Shared>,
    pub(in crate::sessions) command: CommandView,
    shown_to: u64,
    pub(super) handovers: RecentHandovers,
}

pub(in crate::sessions) async fn commands(
    services: &Services,
    principal: &Principal,
    session: &SessionId,
    limit: usize,
    offset: usize,
) -> Result<Outcome, ActionError> {
    let (recent, view) = match services.sessions.find_to_read(principal, session).await? {
        SessionRef::Live(handle) => {
            let (snapshot, recent) = handle.ask(Request::Commands).await?;
            (recent, snapshot.view)
        }
        SessionRef::Unreachable(unreachable) => return Err(unreachable.error()),
        SessionRef::EndedSession(past) => (past.commands(), past.view()),
    };
    // Commands that left the actor's memory are in the history; the newest come from the actor.
    let newest: Vec<u32> = recent.iter().map(|c| c.id.0).collect();
    let id = session.as_str().to_owned();
    let (rows, older) = services
        .history
        .query(move |store| {
            store.flush_as_far_as_possible()?;
            store.commands(&id, &newest, limit, offset)
        })
        .await?;
    let total = older + recent.len();
    let mut page: Vec<CommandView> = rows.into_iter().map(|r| from_history(&view, r)).collect();
    let left = limit.saturating_sub(page.len());
    page.extend(recent.into_iter().skip(offset.saturating_sub(older)).take(left));
    Ok(Outcome::Commands(page, total))
}

pub(in crate::sessions) async fn command(
    services: &Services,
    principal: &Principal,
    session: &SessionId,
    id: CommandId,
    budget: Budget,
) -> Result<Report, ActionError> {
    let KnownCommand { session: view, shared, command, shown_to, handovers } =
        known(services, principal, session, id).await?;
    let to = command.end_offset.unwrap_or(shown_to);
    let output = range_text::text(&shared, handovers, (command.start_offset.min(to), to), view.cols, budget).await?;
    let ended_by = if command.status == CommandStatus::Running { EndedBy::Accepted } else { EndedBy::Ended };
    Ok(plain_report(view, Some(command), ended_by, output))
}

/// A command from the actor, the records or the history.
pub(super) async fn known(
    services: &Services,
    principal: &Principal,
    session: &SessionId,
    id: CommandId,
) -> Result<KnownCommand, ActionError> {
    let (view, shared, command, shown_to, handovers) = match services.sessions.find_to_read(principal, session).await? {
        SessionRef::Unreachable(unreachable) => return Err(unreachable.error()),
        SessionRef::Live(handle) => {
            let (snapshot, all) = handle.ask(Request::Commands).await?;
            let command = all.into_iter().find(|c| c.id == id);
            (snapshot.view, Arc::clone(&handle.shared), command, snapshot.shown_to, snapshot.handovers)
        }
        SessionRef::EndedSession(past) => {
            let command = past.commands().into_iter().find(|c| c.id == id);
            let (shown_to, handovers) = (past.timeline.output().scanner.position(), past.timeline.log().handovers(0));
            (past.view(), Arc::clone(&past.shared), command, shown_to, handovers)
        }
    };
    if let Some(command) = command {
        return Ok(KnownCommand { session: view, shared, command, shown_to, handovers });
    }
    let name = session.as_str().to_owned();
    let row = services
        .history
        .query(move |store| {
            store.flush_as_far_as_possible()?;
            store.command(&name, id.0)
        })
        .await?;
    let row = row.ok_or_else(|| ActionError::NoCommand { session: session.clone(), id: id.to_string() })?;
    let command = from_history(&view, row);
    let shown_to = command.start_offset;
    Ok(KnownCommand { session: view, shared, command, shown_to, handovers })
}

/// The end of a session, with the output that this caller has not been shown.
pub(super) async fn past_report(
    cursors: &ReadCursors,
    principal: &Principal,
    past: &EndedSession,
    budget: Budget,
) -> Result<Report, ActionError> {
    let (shared, to) = (&past.shared, past.timeline.output().scanner.position());
    let from = cursors.read_to(principal, &shared.id).await?.unwrap_or(0).min(to);
    let handovers = past.timeline.log().handovers(from);
    let output = range_text::text(shared, handovers, (from, to), shared.spec.cols, budget).await?;
    cursors.has_read(principal, &shared.id, (from, to));
    Ok(plain_report(past.view(), None, EndedBy::Exited, output))
}

/// A command that only the history has; its output is not in there.
fn from_history(session: &SessionView, row: crate::store::HistoryRow) -> CommandView {
    use crate::action::{Boundary, CommandStatus};
    let status = match row.status.as_str() {
        "completed" => CommandStatus::Completed,
        "terminated" => CommandStatus::Terminated,
        _ => CommandStatus::Failed,
    };
    CommandView {
        id: CommandId(row.id),
        session: session.id.clone(),
        command: row.command,
        status,
        started_at: crate::sessions::timeline::time(row.started_us),
        completed_at: row.ended_us.map(crate::sessions::timeline::time),
        lasted: row.lasted_us.map(std::time::Duration::from_micros),
        exit_code: row.exit,
        signal: row.exit.and_then(sys::signal::of_exit_code),
        pipestatus: Vec::new(),
        limits_hit: Vec::new(),
        error: None,
        start_offset: row.start_offset,
        end_offset: Some(row.end_offset),
        output_size: row.end_offset.saturating_sub(row.start_offset),
        cwd: None,
        boundary: row.boundary.as_deref().and_then(Boundary::parse).unwrap_or(Boundary::Heuristic),
    }
}
