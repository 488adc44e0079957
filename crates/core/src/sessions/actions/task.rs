//! Tasks for their callers: a task's view, the text of its end, and its cancellation.

use std::sync::Arc;
use std::time::Duration;

use wire::Target;

use super::report::plain_report;
use super::{range_text, screen};
use crate::action::{
    ActionError, Budget, CommandStatus, Foreground, MaskedText, PersonReply, Report, SessionStatus, TaskEnd, TaskState,
    TaskText, TaskView, TextView,
};
use crate::ids::{CommandId, TaskId};
use crate::limits;
use crate::principal::Principal;
use crate::sessions::actions::commands::{self, KnownCommand};
use crate::sessions::handle::Handle;
use crate::sessions::known_sessions::SessionRef;
use crate::sessions::render::text::without_prompt;
use crate::sessions::services::Services;
use crate::sessions::session::Request;
use crate::sessions::tasks::follow::tasks_of;
use crate::sessions::tasks::records::{Over, Question, Record, SessionTasks, Task, Which};
use crate::sessions::timeline::time;

/// The present view of a task.
pub(in crate::sessions) async fn task(
    services: &Arc<Services>,
    principal: &Principal,
    id: &TaskId,
) -> Result<TaskView, ActionError> {
    let (tasks, mut task) = match known_task(services, principal, id).await {
        Err(unknown @ ActionError::NoSession { .. }) => return removed_task(services, principal, id, unknown).await,
        known => known?,
    };
    let which = task.opened.which;
    if task.over.is_none() && task.question.is_none() && tasks.shows(which) {
        task = until_over(services, &tasks, task).await;
    }
    task_view(services, id, task).await
}

/// Keeps the text that was made of the end of a task; the first one stays.
pub(in crate::sessions) async fn tell_task(
    services: &Arc<Services>,
    principal: &Principal,
    id: &TaskId,
    text: &TaskText,
) -> Result<TaskView, ActionError> {
    let (tasks, task) = known_task(services, principal, id).await?;
    let (which, text) = (task.opened.which, text.clone());
    let record = Record::Told(which, text);
    let (is_first, task) =
        add_to_task(services, id, tasks, which, record, |task| task.told.is_none() && task.over.is_some()).await?;
    if let (true, Some(over)) = (is_first, &task.over) {
        let caller = task.caller();
        // Only a task that ended as cancelled has no result.
        if !task.is_cancelled || over.is_running {
            let read_to = services.read_cursors.read_to(&caller, &id.session).await?.unwrap_or(0);
            if read_to < over.to {
                services.read_cursors.has_read(&caller, &id.session, (read_to, over.to));
            }
            if !over.is_running {
                services.read_cursors.note_end_reported(&caller, &id.session, id.command);
            }
        }
    }
    task_view(services, id, task).await
}

/// Interrupts the command of a task, on the first request only.
pub(in crate::sessions) async fn cancel_task(
    services: &Arc<Services>,
    principal: &Principal,
    id: &TaskId,
) -> Result<TaskView, ActionError> {
    let (tasks, task) = match known_task(services, principal, id).await {
        Err(unknown @ ActionError::NoSession { .. }) => return removed_task(services, principal, id, unknown).await,
        known => known?,
    };
    let which = task.opened.which;
    let record = Record::Cancel(which);
    let is_new = |task: &Task| !task.is_cancelled && task.over.is_none();
    let (is_first, mut task) = add_to_task(services, id, Arc::clone(&tasks), which, record, is_new).await?;
    if is_first && interrupt(services, principal, id).await {
        (_, task) = add_to_task(services, id, tasks, which, Record::Interrupted(which), |_| true).await?;
    }
    task_view(services, id, task).await
}

/// Interrupts a command if it has the terminal.
async fn interrupt(services: &Services, principal: &Principal, id: &TaskId) -> bool {
    let Ok(handle) = services.sessions.live(principal, &id.session).await else { return false };
    let runs = handle.ask(Request::Look).await.is_ok_and(|now| now.view.current_command == Some(id.command));
    let (target, signo) = (Target::Foreground, sys::signal::INT);
    runs && matches!(handle.ask(|reply| Request::Signal { target, signo, reply }).await, Ok(Ok(_)))
}

pub(super) async fn add_to_task(
    services: &Services,
    id: &TaskId,
    tasks: Arc<SessionTasks>,
    which: Which,
    record: Record,
    fits: impl FnOnce(&Task) -> bool + Send + 'static,
) -> Result<(bool, Task), ActionError> {
    let added = services.tasks.on_disk(move || tasks.add_if(which, record, fits)).await?;
    added.ok_or_else(|| no_task(id))
}

/// A task of a session that the caller may see.
pub(super) async fn known_task(
    services: &Arc<Services>,
    principal: &Principal,
    id: &TaskId,
) -> Result<(Arc<SessionTasks>, Task), ActionError> {
    services.sessions.find(principal, &id.session).await?;
    let tasks = tasks_of(services, &id.session).await?;
    let task = tasks.get(Which { command: id.command.0, wait: id.wait });
    task.map(|task| (tasks, task)).ok_or_else(|| no_task(id))
}

/// A task whose session was removed; for any other id the error of an unknown session.
async fn removed_task(
    services: &Arc<Services>,
    principal: &Principal,
    id: &TaskId,
    unknown: ActionError,
) -> Result<TaskView, ActionError> {
    let (reader, principal, task) = (Arc::clone(services), principal.clone(), id.clone());
    let removed = services.tasks.on_disk(move || reader.tasks.removed.find(&principal, &task)).await?.ok_or(unknown)?;
    let state = TaskState::Removed { at: time(removed.removed_us), cancelled: removed.cancelled };
    Ok(TaskView { id: id.clone(), opened_at: time(removed.opened_us), state })
}

/// Waits a little for the end of a task.
async fn until_over(services: &Services, tasks: &SessionTasks, task: Task) -> Task {
    let which = task.opened.which;
    let Ok(_held) = services.tasks.held.try_acquire() else { return task };
    let mut changes = tasks.changes();
    let over = async {
        let goes_on = |task: Task| task.over.is_none() && task.question.is_none();
        while tasks.get(which).is_some_and(goes_on) && changes.changed().await.is_ok() {}
    };
    let held = async {
        tokio::select! { () = over => {} () = services.sessions.stopping() => {} }
    };
    let _ = tokio::time::timeout(limits::TASK_HELD, held).await;
    tasks.get(which).unwrap_or(task)
}

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

fn no_task(id: &TaskId) -> ActionError {
    ActionError::NoCommand { session: id.session.clone(), id: CommandId(id.command.0).to_string() }
}

/// Takes a client's reply to the question of this key; one to any other question is ignored.
pub(in crate::sessions) async fn answer_task(
    services: &Arc<Services>,
    principal: &Principal,
    id: &TaskId,
    key: u32,
    reply: PersonReply,
) -> Result<TaskView, ActionError> {
    let (tasks, task) = known_task(services, principal, id).await?;
    let which = task.opened.which;
    let is_open = move |task: &Task| task.question.as_ref().is_some_and(|question| question.key == key);
    let (_, task) = add_to_task(services, id, tasks, which, Record::Replied(which, key, reply), is_open).await?;
    task_view(services, id, task).await
}
