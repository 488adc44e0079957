//! Makes a task of a request's wait. `tasks/follow.rs` waits for its end.

use std::sync::Arc;

use tokio::task::JoinHandle;

use super::report::plain_report;
use crate::action::{
    ActionError, CommandStatus, CommandView, EndedBy, Foreground, OpenedTask, Report, TaskNote, TaskOffer, TextView,
    Until, Wait,
};
use crate::ids::{CommandId, SessionId, TaskId};
use crate::principal::Principal;
use crate::sessions::handle::Handle;
use crate::sessions::render::range;
use crate::sessions::services::Services;
use crate::sessions::session::{Finished, Request};
use crate::sessions::tasks::follow::{follow_task, tasks_of};
use crate::sessions::tasks::records::{Opened, Task, Which};
use crate::sessions::timeline::{micros, time};
use crate::sessions::wait_external_conditions::{self, ExternalConditions};

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
