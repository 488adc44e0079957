//! How a request waits for a person's decision, where its session's policy asks for one.
//!
//! A protocol gives its request one of these and follows it: it learns which approval is waited for, and may end the wait or
//! prolong it. Dropping the request ends the wait as well, and nothing has happened then.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// The wait of one request; clones are of the same one.
#[derive(Clone)]
pub struct ApprovalWait {
    until: watch::Sender<Instant>,
    /// The id of the approval that is waited for now.
    current: watch::Sender<Option<Arc<str>>>,
    /// It is a part of the timeout of the command or the input.
    counts: Arc<AtomicBool>,
}

impl ApprovalWait {
    /// Waits so long at most, besides the wait of the command or the input.
    pub fn at_most(time: Duration) -> Self {
        Self {
            until: watch::Sender::new(Instant::now() + time),
            current: watch::Sender::new(None),
            counts: Arc::default(),
        }
    }

    /// The same where this time is a part of the timeout of the command or the input.
    pub fn within_timeout(self) -> Self {
        self.counts.store(true, Ordering::Relaxed);
        self
    }

    /// Ends the wait now.
    pub fn give_up(&self) {
        self.until.send_replace(Instant::now());
    }

    /// From now on waits so long at most, besides the wait of the command or the input.
    pub fn prolong(&self, time: Duration) {
        self.counts.store(false, Ordering::Relaxed);
        self.until.send_replace(Instant::now() + time);
    }

    /// Whether its time is over.
    pub(crate) fn is_over(&self) -> bool {
        *self.until.borrow() <= Instant::now()
    }

    /// The id of the approval that is waited for now, if one is.
    pub fn approval(&self) -> Option<Arc<str>> {
        self.current.borrow().clone()
    }

    /// Waits until an approval is waited for, and returns its id.
    pub async fn begins(&self) -> Arc<str> {
        let mut current = self.current.subscribe();
        let id = current.wait_for(Option::is_some).await.expect("invariant: self has the sender").clone();
        id.expect("invariant: there is one")
    }

    /// Waits for the decision; `None` if it did not come in time, else how much of the timeout it took.
    pub(crate) async fn until(&self, id: &str, decided: impl Future<Output = ()>) -> Option<Duration> {
        let begun = Instant::now();
        let mut until = self.until.subscribe();
        let over = async {
            loop {
                let at = *until.borrow_and_update();
                // A change is another time, and its wait begins anew.
                if tokio::time::timeout_at(at, until.changed()).await.is_err() {
                    return;
                }
            }
        };
        let _current = CurrentApproval::set(&self.current, id);
        tokio::select! {
            biased;
            () = decided => Some(if self.counts.load(Ordering::Relaxed) { begun.elapsed() } else { Duration::ZERO }),
            () = over => None,
        }
    }
}

/// Tells the id while it lives.
struct CurrentApproval<'a>(&'a watch::Sender<Option<Arc<str>>>);

impl<'a> CurrentApproval<'a> {
    fn set(current: &'a watch::Sender<Option<Arc<str>>>, id: &str) -> Self {
        current.send_replace(Some(id.into()));
        Self(current)
    }
}

impl Drop for CurrentApproval<'_> {
    fn drop(&mut self) {
        self.0.send_replace(None);
    }
}

impl fmt::Debug for ApprovalWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ApprovalWait").field(&self.approval()).finish()
    }
}

/// It is not part of who somebody is.
impl PartialEq for ApprovalWait {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for ApprovalWait {}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    // promise: policy-8
    async fn a_wait_ends_with_the_decision_its_time_or_its_protocol() {
        let wait = ApprovalWait::at_most(Duration::from_millis(1));
        assert_eq!(wait.until("a-1", std::future::pending()).await, None);
        assert_eq!(
            wait.until("a-1", std::future::ready(())).await,
            Some(Duration::ZERO),
            "a decision that is there counts"
        );
        let wait = ApprovalWait::at_most(Duration::from_secs(600));
        let ended = async {
            assert_eq!(&*wait.begins().await, "a-2");
            wait.give_up();
        };
        let (over, ()) = tokio::join!(wait.until("a-2", std::future::pending()), ended);
        assert_eq!((over, wait.approval()), (None, None));
        wait.prolong(Duration::from_secs(600));
        let (decide, decision) = tokio::sync::oneshot::channel::<()>();
        let waiting = wait.until("a-3", async { drop(decision.await) });
        let deciding = async {
            wait.begins().await;
            decide.send(()).expect("it is waited for");
        };
        assert_eq!(tokio::join!(waiting, deciding).0, Some(Duration::ZERO));
    }
}
