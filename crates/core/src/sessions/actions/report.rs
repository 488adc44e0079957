//! The report on a command, an input or a wait: the session, the command, and the output since.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{range_text, screen};
use crate::action::{
    ActionError, Budget, CommandStatus, CommandView, EndedBy, Foreground, Report, SessionView, TaskNote, TextView,
};
use crate::principal::Principal;
use crate::sessions::handle::Handle;
use crate::sessions::read_cursor::ReadCursors;
use crate::sessions::render::range;
use crate::sessions::render::text::without_prompt;
use crate::sessions::services::Services;
use crate::sessions::session::{Finished, Painted, Snapshot};
use crate::sessions::timeline::handover::RecentHandovers;

/// How long the holder may take after the shell's exit to end its descendants.
pub(super) const CLEARING_UP: Duration = Duration::from_secs(1);

/// The report on a finished wait, with the output that belongs to it.
pub(in crate::sessions) async fn report(
    services: &Services,
    principal: &Principal,
    handle: &Handle,
    finished: Finished,
    budget: Budget,
) -> Result<Report, ActionError> {
    let Finished { ended_by, from, waited, matched, accepted_bytes, line_exit, snapshot } = finished;
    let Snapshot { mut view, command, shown_to, paint, handovers, .. } = snapshot;
    services.sessions.set_running_cwd(&mut view);
    let to = command.as_ref().and_then(|c| c.end_offset).unwrap_or(shown_to);
    let (from, to) = (from.min(to), to);
    let running = command.as_ref().filter(|command| command.status == CommandStatus::Running);
    let tells = running.and_then(|command| services.tasks.tells(&principal.reader(), &view.id, command.id));
    let is_given_up = running.is_some_and(|command| services.read_cursors.is_given_up(principal, &view.id, command.id));
    let is_fullscreen = view.foreground == Foreground::Fullscreen;
    let screen =
        if is_fullscreen { screen::screen(&services.read_cursors, principal, handle).await.ok() } else { None };
    // Paint since the last report is not text: the screen shows its result.
    let is_paint = screen.is_some() && paint.covers(from);
    let output = if is_paint {
        TextView { from, to, ..TextView::default() }
    } else {
        let was_on = paint.was_at(from);
        let in_paint = was_on == Some(Painted::Alternate);
        // Paint on the main screen would be reported twice.
        let text_to = paint.main_from().filter(|_| screen.is_some()).map_or(to, |paint| paint.min(to));
        let mut text =
            range_text::text_in(&handle.shared, handovers, (from, text_to), view.cols, budget, in_paint).await?;
        if matches!(was_on, Some(Painted::Main { .. })) {
            // Drops newlines that only moved to the position where the cursor was left.
            text.head = text.head.part(text.head.len() - text.head.trim_start_matches('\n').len()..);
        }
        TextView { to, ..text }
    };
    Ok(Report {
        session: view,
        command,
        ended_by,
        waited,
        read_before: 0,
        background: None,
        output,
        screen,
        accepted_bytes,
        line_exit,
        is_typed_at_prompt: false,
        ignored_by: None,
        is_given_up,
        matched,
        time_limit: None,
        task: tells.map(TaskNote::TellsEnd),
    })
}

/// Records which output and commands the caller's answer shows.
pub(super) fn is_shown(cursors: &ReadCursors, principal: &Principal, report: &mut Report) {
    let (id, output) = (&report.session.id, &report.output);
    report.read_before = cursors.in_memory(&principal.reader(), id).unwrap_or(0);
    let from = report.background.as_ref().map_or(output.from, |before| before.from);
    cursors.has_read(principal, id, (from, output.to));
    if let Some(command) = report.command.as_ref().filter(|_| report.is_given_up) {
        cursors.note_given_up_told(principal, id, command.id);
    }
    if let Some(command) = report.command.as_ref().filter(|command| command.status != CommandStatus::Running) {
        cursors.note_end_reported(principal, id, command.id);
    }
}

/// The output between the last boundary and a command, as far as this caller has not seen it, without the prompt.
///
/// The prompt is in that range, too, and nothing says how many lines it has. The fewest lines between a boundary and a
/// command's output in this session count as its prompt. A shell may paint the prompt after the command was accepted, so
/// lines are counted up to the output.
pub(super) async fn background(
    cursors: &ReadCursors,
    principal: &Principal,
    handle: &Handle,
    [from, to, output_from]: [u64; 3],
    (cols, budget): (u16, Budget),
) -> Option<Box<TextView>> {
    /// More bytes are not a prompt.
    const PROMPT_BYTES_MAX: u64 = 64 << 10;
    let shared = &handle.shared;
    if output_from.saturating_sub(from) <= PROMPT_BYTES_MAX {
        let before = range::read(&shared.reader, from, output_from).ok()?;
        let lines = memchr::memchr_iter(b'\n', &before.bytes).count();
        // Retention may have removed the front, and lines of the prompt with it.
        let is_whole = before.from <= from;
        if is_whole && lines <= shared.prompt_lines.fetch_min(lines, Ordering::Relaxed).min(lines) {
            return None;
        }
    }
    let seen = cursors.read_to_if_known(principal, &shared.id).await.unwrap_or(0);
    let from = from.max(seen);
    if from >= to {
        return None;
    }
    // The command has run, so what cannot be read here does not make its answer fail.
    let mut text = range_text::text(shared, RecentHandovers::default(), (from, to), cols, budget).await.ok()?;
    without_prompt(&mut text);
    let is_blank = text.omitted.is_none() && text.head.trim().is_empty();
    (!is_blank).then(|| Box::new(text))
}

pub(super) fn with_key(error: ActionError, key: Option<&str>) -> ActionError {
    match (error, key) {
        (ActionError::KeyReused { .. }, Some(key)) => ActionError::KeyReused { key: key.to_owned() },
        (error, _) => error,
    }
}

pub(super) fn plain_report(
    session: SessionView,
    command: Option<CommandView>,
    ended_by: EndedBy,
    output: TextView,
) -> Report {
    Report {
        session,
        command,
        ended_by,
        waited: Duration::ZERO,
        read_before: 0,
        background: None,
        output,
        screen: None,
        accepted_bytes: None,
        line_exit: None,
        is_typed_at_prompt: false,
        ignored_by: None,
        is_given_up: false,
        matched: None,
        time_limit: None,
        task: None,
    }
}
