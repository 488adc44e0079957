//! Permits: how many sessions have the server's descriptors, how many waits and viewers a session has at once, and how many whole
//! journals are read at once.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use crate::action::ActionError;
use crate::host::capacity;
use crate::limits;
use crate::per_principal::PerPrincipal;

/// The sessions that have an actor at once: as many as the descriptors of the server suffice for, besides its connections. A server
/// without a free descriptor would accept no connection, so that nobody could end a session.
#[derive(Debug)]
pub(super) struct SessionPlaces {
    free: Arc<Semaphore>,
    most: usize,
}

/// The descriptors of one session, until its actor has ended.
pub(super) type SessionPlace = OwnedSemaphorePermit;

impl SessionPlaces {
    /// The places of this process.
    pub(super) fn new() -> Self {
        let most = capacity::descriptors().map_or(u64::MAX, |limit| limit.sessions());
        Self::of(usize::try_from(most).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS))
    }

    fn of(most: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(most)), most }
    }

    /// A place for a new session.
    pub(super) fn take(&self) -> Result<SessionPlace, ActionError> {
        let place = Arc::clone(&self.free).try_acquire_owned();
        place.map_err(|_| ActionError::Exhausted { why: self.why() })
    }

    /// A place as soon as one is free; sessions that wait come before new ones. `None` only while the process ends.
    pub(super) async fn next(&self) -> Option<SessionPlace> {
        Arc::clone(&self.free).acquire_owned().await.ok()
    }

    /// Why there is no place.
    pub(super) fn why(&self) -> String {
        let limit = capacity::descriptors().map(|limit| limit.with_remedy()).unwrap_or_default();
        format!("the server has no descriptors for more than {} sessions: {limit}", self.most)
    }
}

/// The permits of one session.
#[derive(Debug, Clone)]
pub(super) struct Permits {
    waits: Arc<Semaphore>,
    viewers: Arc<Semaphore>,
}

impl Default for Permits {
    fn default() -> Self {
        Self {
            waits: Arc::new(Semaphore::new(limits::WAITS_MAX)),
            viewers: Arc::new(Semaphore::new(limits::VIEWERS_MAX)),
        }
    }
}

impl Permits {
    /// A permit to wait.
    pub(super) fn wait(&self) -> Result<SemaphorePermit<'_>, ActionError> {
        self.waits.try_acquire().map_err(|_| ActionError::Limit {
            what: "the number of open waits on this session",
            limit: limits::WAITS_MAX as u64,
            hint: "let some of them end, or ask without waiting",
        })
    }

    /// A permit to view.
    pub(super) fn viewer(&self) -> Result<OwnedSemaphorePermit, ActionError> {
        Arc::clone(&self.viewers).try_acquire_owned().map_err(|_| ActionError::Limit {
            what: "the number of viewers of this session",
            limit: limits::VIEWERS_MAX as u64,
            hint: "close a viewer that is not used",
        })
    }
}

/// The permits to read a whole journal; a read waits until one is free.
#[derive(Debug)]
pub(super) struct WholeReads {
    all: Arc<Semaphore>,
    own: PerPrincipal<Semaphore>,
}

impl Default for WholeReads {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(limits::WHOLE_READS_MAX)), own: PerPrincipal::default() }
    }
}

impl WholeReads {
    /// A permit, as soon as one is free; `None` only while the process ends. Several reads of one principal wait for
    /// that principal's own permits first, so they do not block others.
    pub(super) async fn place(&self, name: &str) -> Option<[OwnedSemaphorePermit; 2]> {
        let own = self.own.of(name, || Semaphore::new(limits::WHOLE_READS_PER_PRINCIPAL_MAX));
        let own = own.acquire_owned().await.ok()?;
        Some([own, Arc::clone(&self.all).acquire_owned().await.ok()?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::{Context, Poll, Waker};

    /// The bound that a refusal names.
    fn refused<T>(asked: Result<T, ActionError>) -> Option<u64> {
        match asked {
            Err(ActionError::Limit { limit, .. }) => Some(limit),
            _ => None,
        }
    }

    #[test]
    // promise: limit-4
    fn a_session_from_before_this_server_gets_the_next_place_and_a_new_one_is_refused() {
        let places = SessionPlaces::of(1);
        let asks = &mut Context::from_waker(Waker::noop());
        let first = places.take().expect("a place");
        assert!(matches!(places.take(), Err(ActionError::Exhausted { why }) if why.contains("more than 1 sessions")));
        let mut waits = Box::pin(places.next());
        assert!(waits.as_mut().poll(asks).is_pending());
        drop(first);
        assert!(places.take().is_err(), "it is the one that waits whose turn it is");
        assert!(matches!(waits.as_mut().poll(asks), Poll::Ready(Some(_))));
    }

    #[test]
    // promise: limit-5
    fn one_wait_and_one_viewer_too_many_are_refused_and_their_bounds_are_separate() {
        let permits = Permits::default();
        let waits: Vec<_> = (0..256).map(|_| permits.wait().expect("a place")).collect();
        assert_eq!(refused(permits.wait()), Some(256));
        let mut viewers: Vec<_> = (0..1_500).map(|_| permits.viewer().expect("a place")).collect();
        assert_eq!(refused(permits.clone().viewer()), Some(1_500));
        drop(waits);
        viewers.pop();
        assert!(permits.wait().is_ok() && permits.viewer().is_ok());
        assert!(Permits::default().viewer().is_ok(), "another session has its own");
    }

    #[test]
    // promise: limit-5
    fn a_ninth_whole_read_waits_until_one_of_eight_ends() {
        let reads = WholeReads::default();
        let asks = &mut Context::from_waker(Waker::noop());
        let names: Vec<String> = (0..9).map(|i| format!("principal {i}")).collect();
        let mut all: Vec<_> = names.iter().map(|name| Box::pin(reads.place(name))).collect();
        let mut places: Vec<_> = all.iter_mut().map(|place| place.as_mut().poll(asks)).collect();
        assert_eq!(places.iter().map(Poll::is_ready).collect::<Vec<_>>(), [[true; 8].as_slice(), &[false]].concat());
        drop(places.remove(0));
        assert!(matches!(all[8].as_mut().poll(asks), Poll::Ready(Some(_))));
    }

    #[test]
    fn a_second_whole_read_of_one_principal_waits_and_delays_nobody_else() {
        let reads = WholeReads::default();
        let asks = &mut Context::from_waker(Waker::noop());
        let mut all: Vec<_> = (0..24).map(|_| Box::pin(reads.place("ann"))).collect();
        let places: Vec<_> = all.iter_mut().map(|place| place.as_mut().poll(asks)).collect();
        assert_eq!(places.iter().filter(|place| place.is_ready()).count(), 1);
        assert!(Box::pin(reads.place("bob")).as_mut().poll(asks).is_ready());
        drop(places);
        assert!(all[1].as_mut().poll(asks).is_ready());
    }
}
