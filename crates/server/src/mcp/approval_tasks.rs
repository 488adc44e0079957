//! Calls that wait for a person's decision, as tasks: their clients take the answer later. The id of such a task is that of
//! its approval.
//!
//! They are in memory only, as approvals are. A restart ends what waits here before it has run, and the next server says of
//! such an id that it is not known any more. A call that is allowed goes on here, and if that becomes a task of its own,
//! this one is its alias.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use api::ErrorCode;
use rmcp::model::{
    CallToolResponse, CreateTaskResult, DetailedTask, ErrorData, GetTaskResult, InputRequests, InputResponses, Task,
    TaskPayload, TaskStatus,
};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::caller::Caller;
use super::dispatch_port::Boxed;
use super::tasks;
use super::tool_definitions::refused;
use super::url_elicitation::{approval_question, reply_of};
use ptyd_core::action::{ActionError, PersonReply};
use ptyd_core::approval_wait::ApprovalWait;
use ptyd_core::ids::IdKind;
use ptyd_core::limits::{APPROVAL_LIFETIME, TASK_CANCEL_WAIT, TASK_HELD};

/// The key of the only question.
pub(super) const QUESTION: &str = "approval";

/// The calls of this process, by the ids of their approvals.
static CALLS: LazyLock<Mutex<HashMap<String, Arc<ApprovalTask>>>> = LazyLock::new(Mutex::default);

/// One call.
struct ApprovalTask {
    id: String,
    principal: String,
    opened_at: SystemTime,
    begun: Instant,
    wait: ApprovalWait,
    /// Its client sends people to pages.
    asks_person: bool,
    state: watch::Sender<State>,
    /// Cancelled by the client before it ran.
    cancel: CancellationToken,
    was_shown: AtomicBool,
}

#[derive(Clone)]
enum State {
    Open,
    Over(SystemTime, Box<CallToolResponse>),
    Cancelled(SystemTime),
}

/// A call on its way.
pub(super) type Work = Boxed<'static, CallToolResponse>;

/// Makes a task of a call that waits for this approval. `gone` is cancelled with the client's connection, where that is
/// known: a call that still waits is not performed then. Another call that waits for the same approval stays the request
/// that it is.
pub(super) fn open(
    caller: &Caller,
    id: &str,
    wait: &ApprovalWait,
    asks_person: bool,
    gone: Option<CancellationToken>,
    work: Work,
) -> Result<CreateTaskResult, Work> {
    let mut calls = locked();
    calls.retain(|_, call| !call.is_forgotten());
    if calls.contains_key(id) {
        return Err(work);
    }
    wait.prolong(APPROVAL_LIFETIME);
    let call = Arc::new(ApprovalTask {
        id: id.to_owned(),
        principal: caller.principal.name.clone(),
        opened_at: SystemTime::now(),
        begun: Instant::now(),
        wait: wait.clone(),
        asks_person,
        state: watch::Sender::new(State::Open),
        cancel: CancellationToken::new(),
        was_shown: AtomicBool::new(false),
    });
    calls.insert(id.to_owned(), Arc::clone(&call));
    let task = call.task(TaskStatus::Working, call.opened_at, call.message());
    tokio::spawn(async move { call.follow(work, gone).await });
    Ok(CreateTaskResult::new(task))
}

fn locked() -> MutexGuard<'static, HashMap<String, Arc<ApprovalTask>>> {
    CALLS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn found(caller: &Caller, id: &str) -> Option<Arc<ApprovalTask>> {
    locked().get(id).filter(|call| call.principal == caller.principal.name).cloned()
}

/// The present view of a task, of this kind or of a command's.
pub(super) async fn get(caller: &Caller, id: &str) -> Result<GetTaskResult, ErrorData> {
    let Some(call) = found(caller, id) else {
        return if is_here(caller, id)? {
            Ok(GetTaskResult::new(forgotten(caller, id)))
        } else {
            tasks::get(caller, id).await
        };
    };
    if call.was_shown.swap(true, Ordering::Relaxed) {
        call.changes().await;
    }
    let state = call.state.borrow().clone();
    let (task, payload) = match state {
        State::Open => {
            let page = match call.wait.approval().filter(|_| call.asks_person) {
                Some(id) => caller.approval_page(&id).await.map(|page| (id, page)),
                None => None,
            };
            let payload = match page {
                Some((id, page)) => {
                    let input_requests = InputRequests::from([(QUESTION.to_owned(), approval_question(&id, page))]);
                    TaskPayload::InputRequired { input_requests }
                }
                None => TaskPayload::Working,
            };
            (call.task(payload.status(), call.opened_at, call.message()), payload)
        }
        State::Cancelled(at) => {
            (call.task(TaskStatus::Cancelled, at, "cancelled; nothing has run".to_owned()), TaskPayload::Cancelled)
        }
        State::Over(at, response) => match *response {
            // It was allowed, and takes long.
            CallToolResponse::Task(inner) => {
                let mut view = tasks::get(caller, &inner.task.task_id).await?;
                view.task.task.task_id.clone_from(&call.id);
                return Ok(view);
            }
            CallToolResponse::Complete(result) => (
                call.task(TaskStatus::Completed, at, "decided".to_owned()),
                TaskPayload::Completed { result: tasks::object(result) },
            ),
            _ => return Err(ErrorData::internal_error("the call asked for input; this is a bug", None)),
        },
    };
    Ok(GetTaskResult::new(DetailedTask::new(task, payload)))
}

/// Takes a reply to the question. That the page was opened decides nothing; a person who does not go there ends the wait.
pub(super) async fn update(caller: &Caller, id: &str, replies: &InputResponses) -> Result<(), ErrorData> {
    let Some(call) = found(caller, id) else {
        return if is_here(caller, id)? { Ok(()) } else { tasks::update(caller, id, replies).await };
    };
    if let Some(inner) = call.inner() {
        return tasks::update(caller, &inner, replies).await;
    }
    if replies.get(QUESTION).is_some_and(|reply| reply_of(reply) != PersonReply::Accepted) {
        call.wait.give_up();
    }
    Ok(())
}

/// Cancels a call: one that waits is not performed, and the command of one that runs is interrupted.
pub(super) async fn cancel(caller: &Caller, id: &str) -> Result<(), ErrorData> {
    let Some(call) = found(caller, id) else {
        return if is_here(caller, id)? { Ok(()) } else { tasks::cancel(caller, id).await };
    };
    if call.wait.approval().is_none() {
        let mut state = call.state.subscribe();
        let over = state.wait_for(|state| !matches!(state, State::Open));
        let _ = tokio::time::timeout(TASK_CANCEL_WAIT, over).await;
    }
    if let Some(inner) = call.inner() {
        return tasks::cancel(caller, &inner).await;
    }
    call.cancel.cancel();
    Ok(())
}

/// Whether this is the id of an approval of this node; an error for one of another node.
fn is_here(caller: &Caller, id: &str) -> Result<bool, ErrorData> {
    match IdKind::Approval.node_of(id) {
        None => Ok(false),
        Some(node) if node == caller.server.node() => Ok(true),
        Some(node) => Err(tasks::on_other_node(&ActionError::OtherNode { id: id.to_owned(), node })),
    }
}

/// A call that this server does not know: hosts ask for an unknown id for minutes.
fn forgotten(caller: &Caller, id: &str) -> DetailedTask {
    let why = format!(
        "this task is no longer known: the wait for approval {id} has ended, or the server has restarted; look at the \
         session, and if the request has not run, send it again"
    );
    let at = tasks::time(SystemTime::now());
    let task = Task::new(id.to_owned(), TaskStatus::Completed, at.clone(), at).with_status_message(why.clone());
    let result = tasks::object(refused(caller, ErrorCode::ApprovalNeeded, why));
    DetailedTask::new(task, TaskPayload::Completed { result })
}

impl ApprovalTask {
    /// Goes on with the call to its answer.
    async fn follow(&self, mut work: Work, gone: Option<CancellationToken>) {
        let gone = async {
            match gone {
                Some(gone) => gone.cancelled().await,
                None => std::future::pending().await,
            }
        };
        let mut gone = std::pin::pin!(gone);
        let mut is_here = true;
        let over = loop {
            tokio::select! {
                biased;
                response = &mut work => break State::Over(SystemTime::now(), Box::new(response)),
                () = self.cancel.cancelled() => break State::Cancelled(SystemTime::now()),
                () = &mut gone, if is_here => {
                    is_here = false;
                    if self.wait.approval().is_some() {
                        break State::Cancelled(SystemTime::now());
                    }
                }
            }
        };
        self.state.send_replace(over);
    }

    /// Waits a little for a change.
    async fn changes(&self) {
        let mut state = self.state.subscribe();
        if !matches!(*state.borrow_and_update(), State::Open) {
            return;
        }
        let _ = tokio::time::timeout(TASK_HELD, state.changed()).await;
    }

    /// The task of the command that was allowed.
    fn inner(&self) -> Option<String> {
        match &*self.state.borrow() {
            State::Over(_, response) => match &**response {
                CallToolResponse::Task(inner) => Some(inner.task.task_id.clone()),
                _ => None,
            },
            State::Open | State::Cancelled(_) => None,
        }
    }

    fn is_forgotten(&self) -> bool {
        match &*self.state.borrow() {
            State::Open => false,
            State::Over(at, response) if matches!(**response, CallToolResponse::Task(_)) => {
                at.elapsed().is_ok_and(|age| age > ptyd_core::limits::TASK_KEEPS_SESSION)
            }
            State::Over(at, _) | State::Cancelled(at) => at.elapsed().is_ok_and(|age| age > APPROVAL_LIFETIME),
        }
    }

    fn message(&self) -> String {
        match self.wait.approval() {
            Some(id) => tasks::status_message(self.begun.elapsed(), &format!("waiting for approval {id}")),
            None => tasks::status_message(self.begun.elapsed(), "allowed"),
        }
    }

    fn task(&self, status: TaskStatus, updated: SystemTime, message: String) -> Task {
        Task::new(self.id.clone(), status, tasks::time(self.opened_at), tasks::time(updated))
            .with_status_message(message)
            .with_poll_interval_ms(tasks::POLL_MS)
    }
}
