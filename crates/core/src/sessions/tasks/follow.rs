//! The end of a task's wait: what ends it, also at the next server, and its record.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::question::{self, Asked};
use super::records::{Over, Record, SessionTasks, Task, Which};
use crate::action::{ActionError, CommandStatus, EndedBy, Foreground, Wait};
use crate::ids::{CommandId, SessionId};
use crate::limits;
use crate::principal::Principal;
use crate::sessions::ended::session::EndedSession;
use crate::sessions::handle::Handle;
use crate::sessions::known_sessions::SessionRef;
use crate::sessions::services::Services;
use crate::sessions::session::{Finished, Painted, Request};
use crate::sessions::timeline::micros;
use crate::sessions::wait_external_conditions::{self, ExternalConditions};

/// How long to wait before a session that cannot be reached is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// The tasks of a session. From now on, this server waits for those of an earlier one, too.
pub(in crate::sessions) async fn tasks_of(
    services: &Arc<Services>,
    id: &SessionId,
) -> Result<Arc<SessionTasks>, ActionError> {
    let (reader, session, folder) = (Arc::clone(services), id.clone(), services.backends.holders.folder(id));
    let (tasks, open) = services.tasks.on_disk(move || reader.tasks.of(&session, folder)).await?;
    for which in open {
        tokio::spawn(follow_task(Arc::clone(services), id.clone(), Arc::clone(&tasks), which));
    }
    Ok(tasks)
}

/// Continues to wait for the tasks that an earlier server has left.
pub(in crate::sessions) async fn wait_on_for_tasks(services: Arc<Services>, id: SessionId) {
    let folder = services.backends.holders.folder(&id);
    let records = services.tasks.on_disk(move || folder.tasks()).await;
    if records.is_ok_and(|records| !records.is_empty()) {
        let _ = tasks_of(&services, &id).await;
    }
}

/// Waits for the end of a task and puts it on record.
///
/// Boxed, because the end of a wait may adopt the session again, which begins to wait for its tasks.
pub(in crate::sessions) fn follow_task(
    services: Arc<Services>,
    id: SessionId,
    tasks: Arc<SessionTasks>,
    which: Which,
) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        let mut changes = tasks.changes();
        let mut cancelled_at = None;
        while let Some(task) = tasks.get(which).filter(|task| task.over.is_none()) {
            if task.is_cancelled {
                cancelled_at.get_or_insert_with(Instant::now);
            }
            let is_due = task.opened.left().is_zero()
                || cancelled_at.is_some_and(|at: Instant| at.elapsed() >= sys::fault::scaled(limits::TASK_CANCEL_WAIT));
            let cancelled = async {
                while tasks.get(which).is_some_and(|now| now.is_cancelled == task.is_cancelled) {
                    let _ = changes.changed().await;
                }
            };
            let over = tokio::select! {
                over = task_over(&services, &id, &task, is_due) => over,
                () = services.sessions.stopping() => return,
                // It shortens the wait.
                () = cancelled => continue,
            };
            let over = match over {
                Ok(over) if question::asks_person(&services, &task, &over) => {
                    match question::ask_person(&services, &id, &tasks, &task).await {
                        Ok(Asked::GoesOn) => continue,
                        Ok(Asked::Ended(reply)) => Ok(Over { person: Some(reply), ..over }),
                        Ok(Asked::Not) if services.sessions.is_stopping() => return,
                        Ok(Asked::Not) => Ok(over),
                        Err(error) => Err(error),
                    }
                }
                over => over,
            };
            let recorded = match over {
                Ok(over) => {
                    let tasks = Arc::clone(&tasks);
                    let add = move || tasks.add_if(which, Record::Over(which, over), |task| task.over.is_none());
                    services.tasks.on_disk(add).await.map(drop)
                }
                Err(ActionError::NoSession { .. }) => return,
                Err(error) => Err(error),
            };
            if let Err(error) = recorded {
                tracing::debug!(session = %id, %error, "the end of a task is not known yet");
                let left = task.opened.left();
                // Its timeout ends it, whether or not the session can be reached then.
                let pause = if left.is_zero() { AGAIN } else { left.min(AGAIN) };
                let again = tokio::time::sleep_until(Instant::now() + pause);
                tokio::select! { () = again => {} () = services.sessions.stopping() => return }
            }
        }
    })
}

/// Waits for the end of a task's wait. A wait whose time is over ends even if the session cannot be reached.
async fn task_over(services: &Services, id: &SessionId, task: &Task, is_due: bool) -> Result<Over, ActionError> {
    let caller = task.caller();
    let handle = match services.sessions.find(&caller, id).await? {
        SessionRef::Live(handle) => handle,
        SessionRef::Unreachable(unreachable) if is_due => {
            return Ok(over_without_holder(&*services.sessions.story_of(&unreachable).await?, task));
        }
        SessionRef::Unreachable(unreachable) => return Err(unreachable.error()),
        SessionRef::EndedSession(past) => return Ok(over_with(&past, task)),
    };
    match live_task_over(services, &caller, &handle, task).await {
        // The session's end is on record once its actor is gone.
        Err(ended @ ActionError::Ended { .. }) => {
            handle.gone().await;
            match services.sessions.find(&caller, id).await? {
                SessionRef::EndedSession(past) => Ok(over_with(&past, task)),
                SessionRef::Live(_) | SessionRef::Unreachable(_) => Err(ended),
            }
        }
        over => over,
    }
}

async fn live_task_over(
    services: &Services,
    caller: &Principal,
    handle: &Handle,
    task: &Task,
) -> Result<Over, ActionError> {
    let opened = &task.opened;
    let command = Some(opened.which.command);
    let ask = |wait, from| handle.ask(move |reply| Request::Wait { wait, command, from: Some(from), reply });
    if task.is_cancelled {
        let finished = ask(Wait::at_most(sys::fault::scaled(limits::TASK_CANCEL_WAIT)), opened.from).await;
        return finished.map(|finished| over_of(&finished));
    }
    let patterns = services.server_events.patterns_of(&caller.name);
    let pattern = match &opened.pattern {
        Some(text) => Some(patterns.compile("wait_for", "", text).await?),
        None => None,
    };
    let quiet = opened.quiet_ms.map(Duration::from_millis);
    let wait = Wait { pattern, input_wanted: opened.input, quiet, ..Wait::at_most(opened.left()) };
    let wait = wait.until(&patterns, &opened.conditions).await?;
    let wait = Wait { listens: opened.listens, ..wait };
    let outside = ExternalConditions::of(handle, Some(&wait), true).await?;
    let outside = outside.map(|outside| outside.knowing(&opened.ports));
    // The request's own wait has looked at everything before, without the echo of what it typed.
    let from = if wait.pattern.is_some() { opened.from.max(opened.matches_from) } else { opened.from };
    let finished = wait_external_conditions::either(handle, ask(wait, from), outside, (command, Some(from))).await?;
    let finished = Finished { from: opened.from, ..finished };
    Ok(over_of(&finished))
}

/// The end of a wait in a live session, and the state then.
fn over_of(finished: &Finished) -> Over {
    let Finished { ended_by, from, matched, snapshot, .. } = finished;
    let (command, paint) = (snapshot.command.as_ref(), &snapshot.paint);
    let to = command.and_then(|command| command.end_offset).unwrap_or(snapshot.shown_to);
    let foreground = snapshot.view.foreground;
    let text_to = match foreground {
        Foreground::Fullscreen if paint.covers(*from) => *from,
        Foreground::Fullscreen => paint.main_from().map_or(to, |paint| paint.min(to)),
        _ => to,
    };
    Over {
        at_us: micros(sys::time::wall()),
        by: *ended_by,
        matched: matched.clone().map(String::from),
        to,
        text_to,
        in_paint: paint.was_at(*from) == Some(Painted::Alternate),
        cols: snapshot.view.cols,
        foreground,
        is_running: *ended_by != EndedBy::Exited
            && command.is_some_and(|command| command.status == CommandStatus::Running),
        person: None,
    }
}

/// The end of a task whose session has ended.
fn over_with(past: &EndedSession, task: &Task) -> Over {
    let which = CommandId(task.opened.which.command);
    let command = past.commands().into_iter().find(|command| command.id == which);
    let position = past.timeline.output().scanner.position();
    let to = command.as_ref().and_then(|command| command.end_offset).unwrap_or(position);
    let has_ended = command.is_some_and(|command| command.status == CommandStatus::Completed);
    Over {
        at_us: past.ended_us(),
        by: if has_ended { EndedBy::Ended } else { EndedBy::Exited },
        matched: None,
        to,
        text_to: to,
        in_paint: false,
        cols: past.shared.spec.cols,
        foreground: Foreground::Idle,
        is_running: false,
        person: None,
    }
}

/// The end of a task whose time is over while its session cannot be reached, with the recorded state.
fn over_without_holder(past: &EndedSession, task: &Task) -> Over {
    let over = over_with(past, task);
    let at_us = micros(sys::time::wall());
    match over.by {
        EndedBy::Ended => Over { at_us, ..over },
        _ => Over { at_us, by: EndedBy::TimedOut, foreground: Foreground::Running, is_running: true, ..over },
    }
}
