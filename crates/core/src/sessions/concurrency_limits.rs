//! Permits: how many waits and viewers a session has at once, and how many whole journals are read at once.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use crate::action::ActionError;
use crate::limits;
use crate::per_principal::PerPrincipal;

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
        let principal = ["ann", "bob", "carol", "dave", "eve"];
        let mut all: Vec<_> = (0..9).map(|i| Box::pin(reads.place(principal[i / 2]))).collect();
        let mut places: Vec<_> = all.iter_mut().map(|place| place.as_mut().poll(asks)).collect();
        assert_eq!(places.iter().map(Poll::is_ready).collect::<Vec<_>>(), [[true; 8].as_slice(), &[false]].concat());
        drop(places.remove(0));
        assert!(matches!(all[8].as_mut().poll(asks), Poll::Ready(Some(_))));
    }

    #[test]
    fn a_third_whole_read_of_one_principal_waits_and_delays_nobody_else() {
        let reads = WholeReads::default();
        let asks = &mut Context::from_waker(Waker::noop());
        let mut all: Vec<_> = (0..24).map(|_| Box::pin(reads.place("ann"))).collect();
        let places: Vec<_> = all.iter_mut().map(|place| place.as_mut().poll(asks)).collect();
        assert_eq!(places.iter().filter(|place| place.is_ready()).count(), 2);
        assert!(Box::pin(reads.place("bob")).as_mut().poll(asks).is_ready());
        drop(places);
        assert!(all[2].as_mut().poll(asks).is_ready());
    }
}
