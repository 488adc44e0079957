//! The take-over of the session: who drives it, and the only gate before what anybody types.
//!
//! ```text
//! free ──take──► driven ──returned, forced, time, last hold dropped, session's end──► free
//! ```
//! While somebody drives, a request of another client that runs or types something waits as long as it says, and is refused then.
//! What was admitted before goes on. Signals and ends pass: nobody may be kept from calming what runs.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::{Duration, SystemTime};

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::action::{ActionError, Driver, SessionEvent, TakeOverEnd};
use crate::limits;
use crate::principal::Typist;
use crate::sessions::session::machine::context::Context;
use crate::sessions::session::machine::session::Session;
use crate::sessions::session::requests::{KeyUse, NewInput, Request, Typing};
use crate::sessions::timeline::time;

/// A dropped hold resolves it.
type Dropped = oneshot::Receiver<Infallible>;

/// A new take, or the same driver's for longer.
pub(in crate::sessions::session) struct NewTake {
    pub(in crate::sessions::session) typist: Typist,
    pub(in crate::sessions::session) lasts: Duration,
    pub(in crate::sessions::session) forces: bool,
    pub(in crate::sessions::session) hold: Option<Dropped>,
}

/// The client that drives.
struct Driving {
    typist: Typist,
    shown: Arc<Driver>,
    until: Instant,
    /// The take-over ends with the last of its connections; `None` where only time and requests end it.
    holds: Option<Vec<Dropped>>,
}

/// A request that waits for the keyboard.
struct WaitingRequest {
    request: Request,
    until: Instant,
}

/// The driver, and the requests that wait for the end of the take-over, oldest first.
#[derive(Default)]
pub(in crate::sessions) struct TakeOver {
    driving: Option<Driving>,
    waiting: Vec<WaitingRequest>,
}

impl TakeOver {
    /// The driver.
    pub(crate) fn driver(&self) -> Option<&Arc<Driver>> {
        self.driving.as_ref().map(|driving| &driving.shown)
    }

    /// The driver, if it is not this client.
    fn other_driver(&self, typist: &Typist) -> Option<&Arc<Driver>> {
        self.driving.as_ref().filter(|driving| driving.typist != *typist).map(|driving| &driving.shown)
    }

    /// Takes the keyboard, and returns the driver who lost it. Another driver keeps it, unless the take forces.
    fn take(&mut self, now: Instant, wall: SystemTime, take: NewTake) -> Result<Option<Arc<Driver>>, Arc<Driver>> {
        let NewTake { typist, lasts, forces, hold } = take;
        let lost = match self.other_driver(&typist) {
            Some(other) if !forces => return Err(Arc::clone(other)),
            lost => lost.cloned(),
        };
        let own = self.driving.take().filter(|_| lost.is_none());
        let since = own.as_ref().map_or(wall, |own| own.shown.since);
        let holds = match own {
            Some(Driving { holds: Some(mut holds), .. }) => {
                holds.extend(hold);
                Some(holds)
            }
            Some(Driving { holds: None, .. }) | None => hold.map(|hold| vec![hold]),
        };
        let shown = Driver { name: typist.name.clone(), client: typist.client.clone(), since, until: wall + lasts };
        self.driving = Some(Driving { typist, shown: Arc::new(shown), until: now + lasts, holds });
        Ok(lost)
    }

    /// Frees the keyboard, and returns the driver who lost it and whether that was another client.
    fn give_back(&mut self, typist: &Typist, forces: bool) -> Result<Option<(Arc<Driver>, TakeOverEnd)>, Arc<Driver>> {
        let end = match self.other_driver(typist) {
            Some(other) if !forces => return Err(Arc::clone(other)),
            Some(_) => TakeOverEnd::Forced,
            None => TakeOverEnd::Returned,
        };
        Ok(self.driving.take().map(|driving| (driving.shown, end)))
    }

    /// Ends a take-over whose time is up, or whose last connection has ended.
    fn take_ended(&mut self, now: Instant) -> Option<(Arc<Driver>, TakeOverEnd)> {
        let driving = self.driving.as_mut()?;
        let end = if driving.is_left() {
            TakeOverEnd::Disconnected
        } else if now >= driving.until {
            TakeOverEnd::TimedOut
        } else {
            return None;
        };
        self.driving.take().map(|driving| (driving.shown, end))
    }

    /// How many requests wait.
    #[cfg(test)]
    pub(in crate::sessions::session) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// When something is due.
    pub(in crate::sessions::session) fn next_at(&self) -> Option<Instant> {
        let waiting = self.waiting.iter().map(|waiting| waiting.until);
        self.driving.iter().map(|driving| driving.until).chain(waiting).min()
    }

    /// Until the driver's last connection has ended, or the caller of a waiting request is gone.
    pub(in crate::sessions::session) async fn left(&mut self) {
        let any = poll_fn(|cx| {
            let is_gone = self.waiting.iter_mut().any(|waiting| waiting.request.poll_gone(cx).is_ready());
            let is_left = self.driving.as_mut().is_some_and(|driving| driving.poll_left(cx).is_ready());
            if is_gone || is_left { Poll::Ready(()) } else { Poll::Pending }
        });
        tokio::task::unconstrained(any).await;
    }
}

impl Driving {
    /// Drops the holds that have ended; ready once there were some and none is left.
    fn poll_left(&mut self, cx: &mut TaskContext<'_>) -> Poll<()> {
        let Some(holds) = &mut self.holds else { return Poll::Pending };
        holds.retain_mut(|hold| Pin::new(hold).poll(cx).is_pending());
        if holds.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Whether the last connection has ended.
    fn is_left(&mut self) -> bool {
        let Some(holds) = &mut self.holds else { return false };
        holds.retain_mut(|hold| matches!(hold.try_recv(), Err(oneshot::error::TryRecvError::Empty)));
        holds.is_empty()
    }
}

impl Session {
    /// The gate: returns a request that may be performed now. One of another client than the driver, which would run or type
    /// something, waits or is refused.
    pub(super) fn pass_keyboard(&mut self, request: Request) -> Option<Request> {
        let Some(Typing { by, patience }) = request.typing() else { return Some(request) };
        let Some(driver) = self.cx.take_over.other_driver(by) else { return Some(request) };
        // The session is over for the driver as well, and an earlier request of the same key has passed the gate.
        if self.cx.has_exited() || is_repeated(&self.cx, &request) {
            return Some(request);
        }
        if patience.is_zero() || self.cx.take_over.waiting.len() >= limits::KEYBOARD_WAITS_MAX {
            request.refuse_typing(driven(&self.cx, driver));
        } else {
            let until = self.cx.now.at + *patience;
            self.cx.take_over.waiting.push(WaitingRequest { request, until });
        }
        None
    }

    /// Takes the keyboard.
    pub(super) fn ask_take(&mut self, take: NewTake, reply: oneshot::Sender<Result<(), ActionError>>) {
        if self.cx.has_exited() {
            return drop(reply.send(Err(self.cx.ended_error())));
        }
        let was_free = self.cx.take_over.driving.is_none();
        let result = match self.cx.take_over.take(self.cx.now.at, time(self.cx.now.us), take) {
            Ok(lost) => {
                let is_new = was_free || lost.is_some();
                if let Some(lost) = lost {
                    note_end(&mut self.cx, lost, TakeOverEnd::Forced);
                }
                if let Some(driver) = self.cx.take_over.driver().cloned().filter(|_| is_new) {
                    note(&mut self.cx, SessionEvent::Taken(driver));
                }
                Ok(())
            }
            Err(driver) => Err(driven(&self.cx, &driver)),
        };
        let _ = reply.send(result);
    }

    /// Returns the keyboard. It is no error if nobody drives.
    pub(super) fn ask_give_back(
        &mut self,
        typist: &Typist,
        forces: bool,
        reply: oneshot::Sender<Result<(), ActionError>>,
    ) {
        let result = self.cx.take_over.give_back(typist, forces);
        let result = result.map_err(|driver| driven(&self.cx, &driver));
        let _ = reply.send(result.map(|ended| {
            if let Some((driver, end)) = ended {
                note_end(&mut self.cx, driver, end);
            }
        }));
        self.check_take_over();
    }

    /// Ends a take-over that is over, and performs the requests that waited for it, or refuses those that have waited long enough.
    pub(super) fn check_take_over(&mut self) {
        if let Some((driver, end)) = self.cx.take_over.take_ended(self.cx.now.at) {
            note_end(&mut self.cx, driver, end);
        }
        if self.cx.has_exited() {
            self.cx.take_over.driving = None;
        }
        if self.cx.take_over.waiting.is_empty() {
            return;
        }
        // A caller that has gone is not there to see its command run.
        self.cx.take_over.waiting.retain(|waiting| !waiting.request.is_abandoned());
        let Some(driver) = self.cx.take_over.driver().cloned() else {
            for WaitingRequest { request, .. } in std::mem::take(&mut self.cx.take_over.waiting) {
                self.on_typing_request(request);
            }
            return;
        };
        let now = self.cx.now.at;
        let overdue: Vec<_> = self.cx.take_over.waiting.extract_if(.., |waiting| now >= waiting.until).collect();
        for WaitingRequest { request, .. } in overdue {
            request.refuse_typing(driven(&self.cx, &driver));
        }
    }
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

fn note_end(cx: &mut Context, driver: Arc<Driver>, end: TakeOverEnd) {
    note(cx, SessionEvent::Returned(driver, end));
}

fn note(cx: &mut Context, event: SessionEvent) {
    cx.note(cx.timeline.output().scanner.held_from(), event);
}
