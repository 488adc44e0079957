//! One wait in several sessions. No read cursor moves, so the waits that are given up when another one is over lose nothing.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use super::await_output;
use super::caller::Caller;
use crate::action::{ActionError, AwaitSessions, AwaitedOutput, EndedBy};
use crate::limits;

type Waiting<'a> = Pin<Box<dyn Future<Output = Result<AwaitedOutput, ActionError>> + Send + 'a>>;

/// The waits that are over, each at the place of its request; a session that is gone ends its own wait alone.
pub(super) async fn wait(
    caller: Caller<'_>,
    request: AwaitSessions,
) -> Result<Vec<Option<Result<AwaitedOutput, ActionError>>>, ActionError> {
    let AwaitSessions { waits, all } = request;
    if waits.len() > limits::SESSIONS_AWAITED_MAX {
        return Err(ActionError::Limit {
            what: "sessions of one wait",
            limit: limits::SESSIONS_AWAITED_MAX as u64,
            hint: "wait in fewer at once",
        });
    }
    let mut waiting: Vec<Option<Waiting<'_>>> = Vec::with_capacity(waits.len());
    for wait in waits {
        waiting.push(Some(Box::pin(await_output::wait(caller, wait, false))));
    }
    let mut over: Vec<_> = waiting.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (wait, over) in waiting.iter_mut().zip(&mut over) {
            let Some(running) = wait else { continue };
            if let Poll::Ready(awaited) = running.as_mut().poll(context) {
                *wait = None;
                *over = Some(awaited);
            }
        }
        let is_met = |over: &Option<Result<_, _>>| over.as_ref().is_some_and(|awaited| !is_timed_out(awaited));
        let is_done = waiting.iter().all(Option::is_none) || !all && over.iter().any(is_met);
        if is_done { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    over.iter_mut().for_each(|over| *over = over.take().filter(|awaited| !is_timed_out(awaited)));
    Ok(over)
}

fn is_timed_out(awaited: &Result<AwaitedOutput, ActionError>) -> bool {
    let report = awaited.as_ref().ok().and_then(|awaited| awaited.report.as_ref());
    report.is_some_and(|report| report.ended_by == EndedBy::TimedOut)
}
