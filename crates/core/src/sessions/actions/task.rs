//! Tasks for their callers: a task's view, the text of its end, and its cancellation.

use std::sync::Arc;

use wire::Target;

use super::task_view::task_view;
use crate::action::{ActionError, PersonReply, TaskState, TaskText, TaskView};
use crate::ids::{CommandId, TaskId};
use crate::limits;
use crate::principal::Principal;
use crate::sessions::services::Services;
use crate::sessions::session::Request;
use crate::sessions::tasks::follow::tasks_of;
use crate::sessions::tasks::records::{Record, SessionTasks, Task, Which};
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
