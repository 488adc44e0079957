//! The view of a task: its state, and the report of its end, for which the output is read again.

use std::time::Duration;

use super::report::plain_report;
use super::{range_text, screen};
use crate::action::{
    ActionError, Budget, CommandStatus, Foreground, MaskedText, Report, SessionStatus, TaskEnd, TaskState, TaskView,
    TextView,
};
use crate::ids::TaskId;
use crate::limits;
use crate::sessions::actions::commands::{self, KnownCommand};
use crate::sessions::handle::Handle;
use crate::sessions::known_sessions::SessionRef;
use crate::sessions::render::text::without_prompt;
use crate::sessions::services::Services;
use crate::sessions::session::Request;
use crate::sessions::tasks::records::{Over, Question, Task};
use crate::sessions::timeline::time;

pub(super) async fn task_view(services: &Services, id: &TaskId, task: Task) -> Result<TaskView, ActionError> {
    let state = match &task.over {
        Some(over) => TaskState::Over(Box::new(task_end(services, id, &task, over).await?)),
        None => {
            let waited = sys::time::wall().duration_since(time(task.opened.began_us));
            if let Some(Question { key, request }) = task.question {
                let (waited, request) = (waited.unwrap_or_default(), Box::new(request));
                let state = TaskState::InputRequired { key, request, waited };
                return Ok(TaskView { id: id.clone(), opened_at: time(task.opened.at_us), state });
            }
            let (last_line, trouble) = match services.sessions.find(&task.caller(), &id.session).await {
                Ok(SessionRef::Live(handle)) => (last_line(&handle, &task).await, None),
                Ok(SessionRef::Unreachable(unreachable)) => (None, Some(unreachable.why.clone())),
                Ok(SessionRef::EndedSession(_)) | Err(_) => (None, None),
            };
            let (waited, last_line) = (waited.unwrap_or_default(), last_line.unwrap_or_default());
            TaskState::Working { waited, last_line, trouble }
        }
    };
    Ok(TaskView { id: id.clone(), opened_at: task.opened.at(), state })
}

/// The last line of a running task's output, if the session gives it at once.
async fn last_line(handle: &Handle, task: &Task) -> Option<MaskedText> {
    /// Enough for a line.
    const BYTES: u64 = 2 << 10;
    const PATIENCE: Duration = Duration::from_millis(200);
    let shown = tokio::time::timeout(PATIENCE, handle.ask(Request::ViewerLimit)).await.ok()?.ok()?;
    let from = task.opened.from.max(shown.to.saturating_sub(BYTES)).min(shown.to);
    let (cols, budget) = (handle.shared.spec.cols, Budget::folded(limits::BUDGET_CHARS));
    let text = range_text::text(&handle.shared, shown.handovers, (from, shown.to), cols, budget).await.ok()?;
    let end = text.head.trim_end().len();
    let line = text.head[..end].rfind('\n').map_or(0, |at| at + 1);
    let begins = end - text.head[line..end].trim_start().len();
    (begins < end).then(|| text.head.part(begins..end))
}

/// The end of a task: the output is read again, and the state comes from the record.
async fn task_end(services: &Services, id: &TaskId, task: &Task, over: &Over) -> Result<TaskEnd, ActionError> {
    let caller = task.caller();
    let KnownCommand { mut session, shared, mut command, handovers, .. } =
        commands::known(services, &caller, &id.session, id.command).await?;
    let begins = task.opened.from.min(over.to);
    let from = match &task.told {
        Some(told) => told.from,
        None => {
            services.read_cursors.read_to(&caller, &id.session).await?.map_or(begins, |at| at.clamp(begins, over.to))
        }
    };
    let range = (from.min(over.text_to), over.text_to);
    let output = range_text::text_in(
        &shared,
        handovers.clone(),
        range,
        over.cols,
        Budget::folded(limits::BUDGET_CHARS),
        over.in_paint,
    )
    .await?;
    let background = match task.opened.background {
        Some(range) => {
            let mut text =
                range_text::text(&shared, handovers, range, over.cols, Budget::folded(limits::BUDGET_CHARS).quarter())
                    .await?;
            without_prompt(&mut text);
            Some(Box::new(text))
        }
        None => None,
    };
    session.foreground = over.foreground;
    let mut screen = None;
    if over.is_running {
        // The next answer about the command tells how it has ended since.
        (session.status, session.exit, session.current_command) = (SessionStatus::Running, None, Some(id.command));
        (command.status, command.completed_at, command.lasted, command.exit_code) =
            (CommandStatus::Running, None, None, None);
        (command.signal, command.end_offset, command.error) = (None, None, None);
        command.pipestatus.clear();
        if let (Foreground::Fullscreen, None, Ok(SessionRef::Live(handle))) =
            (over.foreground, &task.told, services.sessions.find(&caller, &id.session).await)
        {
            screen = screen::screen(&services.read_cursors, &caller, &handle).await.ok();
        }
    }
    let report = Report {
        waited: time(over.at_us).duration_since(time(task.opened.began_us)).unwrap_or_default(),
        background,
        screen,
        accepted_bytes: task.opened.typed,
        matched: over.matched.clone().map(|text| shared.folder.masks().text(text)),
        ..plain_report(session, Some(command), over.by, TextView { to: over.to, ..output })
    };
    Ok(TaskEnd {
        report,
        at: time(over.at_us),
        from,
        told_before: from.saturating_sub(begins),
        cancelled: task.is_cancelled.then_some(!over.is_running),
        interrupted: task.is_interrupted,
        person: over.person,
        quiet: task.opened.quiet_ms.filter(|_| task.opened.own_quiet).map(Duration::from_millis),
        told: task.told.clone(),
    })
}
