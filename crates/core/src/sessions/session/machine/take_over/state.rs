//! The driver, and the requests that wait for the keyboard.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::action::{Driver, TakeOverEnd};
use crate::principal::Typist;
use crate::sessions::session::requests::Request;

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
pub(super) struct WaitingRequest {
    pub(super) request: Request,
    pub(super) until: Instant,
}

/// The driver, and the requests that wait for the end of the take-over, oldest first.
#[derive(Default)]
pub(in crate::sessions) struct TakeOver {
    driving: Option<Driving>,
    pub(super) waiting: Vec<WaitingRequest>,
}

impl TakeOver {
    /// The driver.
    pub(crate) fn driver(&self) -> Option<&Arc<Driver>> {
        self.driving.as_ref().map(|driving| &driving.shown)
    }

    /// The driver, if it is not this client.
    pub(super) fn other_driver(&self, typist: &Typist) -> Option<&Arc<Driver>> {
        self.driving.as_ref().filter(|driving| driving.typist != *typist).map(|driving| &driving.shown)
    }

    /// Nobody drives a session that has ended.
    pub(super) fn clear(&mut self) {
        self.driving = None;
    }

    /// Takes the keyboard, and returns the driver who lost it. Another driver keeps it, unless the take forces.
    pub(super) fn take(
        &mut self,
        now: Instant,
        wall: SystemTime,
        take: NewTake,
    ) -> Result<Option<Arc<Driver>>, Arc<Driver>> {
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
    pub(super) fn give_back(
        &mut self,
        typist: &Typist,
        forces: bool,
    ) -> Result<Option<(Arc<Driver>, TakeOverEnd)>, Arc<Driver>> {
        let end = match self.other_driver(typist) {
            Some(other) if !forces => return Err(Arc::clone(other)),
            Some(_) => TakeOverEnd::Forced,
            None => TakeOverEnd::Returned,
        };
        Ok(self.driving.take().map(|driving| (driving.shown, end)))
    }

    /// Ends a take-over whose time is up, or whose last connection has ended.
    pub(super) fn take_ended(&mut self, now: Instant) -> Option<(Arc<Driver>, TakeOverEnd)> {
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
    fn poll_left(&mut self, cx: &mut Context<'_>) -> Poll<()> {
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
