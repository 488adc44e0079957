//! The gate before what anybody types, and the requests that take and return the keyboard.

use std::sync::Arc;

use super::state::{NewTake, WaitingRequest};
use crate::action::{ActionError, Driver, SessionEvent, TakeOverEnd};
use crate::limits;
use crate::principal::Typist;
use crate::sessions::session::machine::context::Context;
use crate::sessions::session::requests::{KeyUse, NewInput, Request, Typing};
use crate::sessions::timeline::time;

/// The gate: returns a request that may be performed now. One of another client than the driver, which would run or type
/// something, waits or is refused.
pub(in crate::sessions::session::machine) fn pass_keyboard(cx: &mut Context, request: Request) -> Option<Request> {
    let Some(Typing { by, patience, .. }) = request.typing() else { return Some(request) };
    let Some(driver) = cx.take_over.other_driver(by) else { return Some(request) };
    // An earlier request of the same key has passed the gate, and a session that has ended has its own answer.
    if cx.has_exited() || is_repeated(cx, &request) {
        return Some(request);
    }
    if patience.is_zero() || cx.take_over.waiting.len() >= limits::KEYBOARD_WAITS_MAX {
        request.refuse_typing(driven(cx, driver));
    } else {
        let until = cx.now.at + *patience;
        cx.take_over.waiting.push(WaitingRequest { request, until });
    }
    None
}

/// Takes the keyboard.
pub(in crate::sessions::session::machine) fn ask_take(cx: &mut Context, take: NewTake) -> Result<(), ActionError> {
    if cx.has_exited() {
        return Err(cx.ended_error());
    }
    let was_free = cx.take_over.driver().is_none();
    let lost = cx.take_over.take(cx.now.at, time(cx.now.us), take).map_err(|driver| driven(cx, &driver))?;
    let is_new = was_free || lost.is_some();
    if let Some(lost) = lost {
        note(cx, SessionEvent::Returned(lost, TakeOverEnd::Forced));
    }
    if let Some(driver) = cx.take_over.driver().cloned().filter(|_| is_new) {
        note(cx, SessionEvent::Taken(driver));
    }
    Ok(())
}

/// Returns the keyboard. If nobody drives, nothing is to be done.
pub(in crate::sessions::session::machine) fn ask_give_back(
    cx: &mut Context,
    typist: &Typist,
    forces: bool,
) -> Result<(), ActionError> {
    let returned = cx.take_over.give_back(typist, forces).map_err(|driver| driven(cx, &driver))?;
    if let Some((driver, end)) = returned {
        note(cx, SessionEvent::Returned(driver, end));
    }
    Ok(())
}

/// Ends a take-over that is over. Returns the requests that may be performed now, and refuses those that have waited long enough.
pub(in crate::sessions::session::machine) fn freed_requests(cx: &mut Context) -> Vec<Request> {
    if let Some((driver, end)) = cx.take_over.take_ended(cx.now.at) {
        note(cx, SessionEvent::Returned(driver, end));
    }
    if cx.has_exited() {
        cx.take_over.clear();
    }
    // A caller that has gone is not there to see its command run.
    cx.take_over.waiting.retain_mut(|waiting| !waiting.request.is_abandoned());
    let Some(driver) = cx.take_over.driver().cloned() else {
        return std::mem::take(&mut cx.take_over.waiting).into_iter().map(|waiting| waiting.request).collect();
    };
    let now = cx.now.at;
    let overdue: Vec<_> = cx.take_over.waiting.extract_if(.., |waiting| now >= waiting.until).collect();
    for WaitingRequest { request, .. } in overdue {
        request.refuse_typing(driven(cx, &driver));
    }
    // Some may be those of the client that drives by now.
    let waiting = std::mem::take(&mut cx.take_over.waiting);
    let is_anothers = |by: &Typing| cx.take_over.other_driver(&by.by).is_some();
    let (others, own): (Vec<_>, Vec<_>) =
        waiting.into_iter().partition(|waiting| waiting.request.typing().is_some_and(is_anothers));
    cx.take_over.waiting = others;
    own.into_iter().map(|waiting| waiting.request).collect()
}

/// Whether a request of the same key was admitted before: the answer to it types nothing.
fn is_repeated(cx: &Context, request: &Request) -> bool {
    match request {
        Request::Run { key, .. } => !matches!(cx.key_use(key), KeyUse::Unused),
        Request::Input(NewInput { key, .. }) => cx.timeline.log().typed_with(key).is_some(),
        _ => false,
    }
}

fn driven(cx: &Context, driver: &Arc<Driver>) -> ActionError {
    ActionError::Driven { session: cx.shared.id.clone(), driver: Arc::clone(driver) }
}

fn note(cx: &mut Context, event: SessionEvent) {
    cx.note(cx.timeline.output().scanner.held_from(), event);
}
