//! The waits of tasks: how a request's wait becomes one, and what ends it, also at the next server.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::report::plain_report;
use super::task_question::{self, Asked};
use super::wait_external_conditions::{self, ExternalConditions};
use crate::action::{
    ActionError, CommandStatus, CommandView, EndedBy, Foreground, OpenedTask, Report, TaskNote, TaskOffer, TextView,
    Until, Wait,
};
use crate::ids::{CommandId, SessionId, TaskId};
use crate::limits;
use crate::principal::Principal;
use crate::sessions::ended::session::EndedSession;
use crate::sessions::handle::Handle;
use crate::sessions::known_sessions::SessionRef;
use crate::sessions::render::range;
use crate::sessions::services::Services;
use crate::sessions::session::{Finished, Painted, Request};
use crate::sessions::tasks::records::{Opened, Over, Record, SessionTasks, Task, Which};
use crate::sessions::timeline::{micros, time};

/// How long to wait before a session that cannot be reached is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// How many bytes are searched for an unfinished line.
const LINE_BYTES_MAX: u64 = 4 << 10;

/// A request's wait, and what its task would need.
#[derive(Debug)]
pub(super) struct TaskWait {
    pub(super) wait: Wait,
    pub(super) ports: Option<JoinHandle<Vec<u16>>>,
    /// Output from before the command that is shown with it.
    pub(super) background: Option<(u64, u64)>,
    /// The idempotency key of the request.
    pub(super) key: Option<String>,
}

/// The end of a request's wait.
#[derive(Debug)]
pub(super) enum Waited {
    /// It continues as a task.
    Task(Box<Report>),
    Finished(Box<Finished>),
}

/// Begins to read the ports that are open now, if the wait may become a task that ends with a new one.
pub(super) fn open_ports(handle: &Handle, wait: Option<&Wait>) -> Option<JoinHandle<Vec<u16>>> {
    let awaits_port = |until: &Until| matches!(until, Until::Listening(None));
    wait.filter(|wait| wait.until.iter().any(awaits_port))?.grace()?;
    let handle = handle.clone();
    Some(tokio::spawn(async move {
        let Ok(snapshot) = handle.ask(Request::Look).await else { return Vec::new() };
        let host = Arc::clone(&handle.shared.backends.host);
        let ports = handle.shared.lane().look(move || host.listening_ports(snapshot.holder_pid)).await;
        ports.map(|ports| ports.into_iter().collect()).unwrap_or_default()
    }))
}

/// The wait with the time after which it becomes a task, if its caller takes one.
pub(super) fn with_grace(services: &Services, wait: Wait) -> Wait {
    let task = wait.task.map(|offer| TaskOffer { grace: Some(services.settings.task_grace), ..offer });
    Wait { task, ..wait }
}

/// Makes a task of a wait that is not over when its grace is.
pub(super) async fn or_task(
    services: &Arc<Services>,
    principal: &Principal,
    handle: &Handle,
    finished: Finished,
    task: Option<TaskWait>,
) -> Result<Waited, ActionError> {
    let Some(task) = task else { return Ok(finished.into()) };
    let wait = &task.wait;
    let asks = wait.asks_person
        && services.settings.secret_page
        && finished.ended_by == EndedBy::InputWanted
        && finished.snapshot.view.foreground == Foreground::PasswordWanted;
    let is_task = finished.ended_by == EndedBy::TimedOut || asks;
    match (wait.task, wait.grace(), is_task) {
        // Boxed: nearly every wait is over, and its future would have the room for this.
        (Some(offer), Some(_), true) => Box::pin(as_task(services, principal, handle, finished, task, offer)).await,
        _ => Ok(finished.into()),
    }
}

/// Makes a task of a wait that continues.
async fn as_task(
    services: &Arc<Services>,
    principal: &Principal,
    handle: &Handle,
    finished: Finished,
    task: TaskWait,
    offer: TaskOffer,
) -> Result<Waited, ActionError> {
    let TaskWait { wait, ports, background, key } = task;
    let id = &handle.shared.id;
    let is_running = |command: &&CommandView| command.status == CommandStatus::Running;
    let Some(command) = finished.snapshot.command.as_ref().filter(is_running) else {
        return goes_on(handle, finished, Wait { timeout: offer.default_timeout.unwrap_or(wait.timeout), ..wait })
            .await;
    };
    // Its end is told once.
    let tasks = tasks_of(services, id).await?;
    if let Some(told_by) = services.tasks.tells(&principal.reader(), id, command.id) {
        let which = Which { command: told_by.command.0, wait: told_by.wait };
        let same = tasks.get(which).filter(|task| key.is_some() && task.opened.key == key);
        // A repetition may have missed the answer with the task.
        return Ok(match same {
            Some(task) => opened_report(finished, id, &task),
            None => finished.into(),
        });
    }
    let ports = match ports {
        Some(ports) => ports.await.unwrap_or_default(),
        None => Vec::new(),
    };
    let own_quiet = (offer.default_timeout.is_some() && wait.quiet.is_none()).then_some(services.settings.task_quiet);
    let quiet = wait.quiet.or(own_quiet);
    let now = sys::time::wall();
    let passed = finished.waited + wait.waited;
    let opened = Opened {
        which: Which { command: command.id.0, wait: 0 },
        began_us: micros(now.checked_sub(passed).unwrap_or(now)),
        at_us: micros(now),
        from: finished.from,
        background,
        typed: finished.accepted_bytes,
        until_boot_us: Opened::in_boot_us((wait.timeout + offer.ending).saturating_sub(passed)),
        quiet_ms: quiet.map(|quiet| u64::try_from(quiet.as_millis()).unwrap_or(u64::MAX)),
        own_quiet: own_quiet.is_some(),
        input: wait.input_wanted,
        listens: wait.listens,
        matches_from: line_of(handle, (finished.from, finished.snapshot.shown_to)),
        pattern: wait.pattern.as_ref().map(|pattern| pattern.as_str().to_owned()),
        conditions: wait.until.iter().map(Until::to_string).collect(),
        ports,
        principal: principal.name.clone(),
        client: principal.client.clone(),
        asks_person: wait.asks_person,
        key,
    };
    // Followed from where it is recorded: a slow disk may record it after this request has given up.
    let (follower, writer, session) = (Arc::clone(services), Arc::clone(&tasks), id.clone());
    let runtime = tokio::runtime::Handle::current();
    let open = move || {
        let task = writer.open(opened)?;
        if let Some(task) = &task {
            runtime.spawn(follow_task(follower, session, Arc::clone(&writer), task.opened.which));
        }
        Ok(task)
    };
    let task = match services.tasks.on_disk(open).await {
        Ok(Some(task)) => task,
        // Too many, or a disk without room: the answer is the one without tasks.
        Ok(None) | Err(_) => return Ok(finished.into()),
    };
    // A caller that was shown nothing here so far has been shown nothing of this output.
    services.read_cursors.begin(principal, id, task.opened.from).await;
    services.read_cursors.note_running(principal, id, command.id);
    Ok(opened_report(finished, id, &task))
}

/// The tasks of a session. From now on, this server waits for those of an earlier one, too.
pub(super) async fn tasks_of(services: &Arc<Services>, id: &SessionId) -> Result<Arc<SessionTasks>, ActionError> {
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
fn follow_task(
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
                Ok(over) if task_question::asks_person(&services, &task, &over) => {
                    match task_question::ask_person(&services, &id, &tasks, &task).await {
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

impl From<Finished> for Waited {
    fn from(finished: Finished) -> Self {
        Self::Finished(Box::new(finished))
    }
}

/// The report of a wait that continues as this task.
fn opened_report(finished: Finished, id: &SessionId, task: &Task) -> Waited {
    let opened = &task.opened;
    let which = TaskId { session: id.clone(), command: CommandId(opened.which.command), wait: opened.which.wait };
    let waited = opened.at().duration_since(time(opened.began_us)).unwrap_or_default();
    let note = TaskNote::Opened(OpenedTask { id: which, at: opened.at(), waited });
    let Finished { from, waited, accepted_bytes, snapshot, .. } = finished;
    let output = TextView { from, to: from, ..TextView::default() };
    let report = plain_report(snapshot.view, snapshot.command, EndedBy::TimedOut, output);
    Waited::Task(Box::new(Report { waited, accepted_bytes, task: Some(note), ..report }))
}

/// The beginning of the unfinished line at the end of this range, which a pattern may still match.
fn line_of(handle: &Handle, (from, to): (u64, u64)) -> u64 {
    let from = from.max(to.saturating_sub(LINE_BYTES_MAX)).min(to);
    let Ok(slice) = range::read(&handle.shared.reader, from, to) else { return to };
    let line = slice.bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    slice.from + line as u64
}

/// The rest of a wait that cannot become a task, because no command runs for it.
async fn goes_on(handle: &Handle, before: Finished, wait: Wait) -> Result<Waited, ActionError> {
    let wait = Wait { waited: wait.waited + before.waited, task: None, ..wait };
    let outside = ExternalConditions::of(handle, Some(&wait), true).await?;
    let from = Some(line_of(handle, (before.from, before.snapshot.shown_to)));
    let finished = handle.ask(|reply| Request::Wait { wait, command: None, from, reply });
    let finished = wait_external_conditions::either(handle, finished, outside, (None, from)).await?;
    let (from, accepted_bytes) = (before.from, before.accepted_bytes);
    Ok(Finished { from, accepted_bytes, waited: before.waited + finished.waited, ..finished }.into())
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
