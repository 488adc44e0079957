//! A future that wakes itself is polled again at once, and not after the other tasks of its thread.
//!
//! A request's handler and its connection are one task, and wake each other while they pass the body on. Tokio takes a
//! task that wakes itself for one that gives way, and wakes another thread to take it over.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// How often in a row: a body passes in fewer, and others get their turn from one that never ends.
const TIMES: usize = 8;

/// The waker of the future: while it is polled, to be woken means to be polled again.
struct Waking {
    task: Mutex<Waker>,
    is_polled: AtomicBool,
    is_woken: AtomicBool,
}

impl Wake for Waking {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::SeqCst);
        // The poll ends with a look at `is_woken`, so either it or this sees the other.
        if !self.is_polled.load(Ordering::SeqCst) {
            self.wake_task();
        }
    }
}

impl Waking {
    fn wake_task(&self) {
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).clone();
        task.wake();
    }
}

/// The same future, polled again at once when it has woken itself.
pub(crate) async fn polled_again<F: Future + ?Sized>(mut future: Pin<&mut F>) -> F::Output {
    let waking = Arc::new(Waking {
        task: Mutex::new(Waker::noop().clone()),
        is_polled: AtomicBool::new(false),
        is_woken: AtomicBool::new(false),
    });
    let waker = Waker::from(Arc::clone(&waking));
    poll_fn(move |context| {
        waking.task.lock().unwrap_or_else(PoisonError::into_inner).clone_from(context.waker());
        for _ in 0..TIMES {
            waking.is_polled.store(true, Ordering::SeqCst);
            waking.is_woken.swap(false, Ordering::SeqCst);
            let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
            waking.is_polled.store(false, Ordering::SeqCst);
            if polled.is_ready() || !waking.is_woken.load(Ordering::SeqCst) {
                return polled;
            }
        }
        waking.wake_task();
        Poll::Pending
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::time::Duration;

    /// Whether the task gave way until a future that wakes itself this often had ended.
    async fn gives_way(times: usize) -> bool {
        let mut left = times;
        let future = poll_fn(move |context| {
            if left == 0 {
                return Poll::Ready(());
            }
            left -= 1;
            context.waker().wake_by_ref();
            Poll::Pending
        });
        let mut future = pin!(future);
        let mut polls = 0;
        let mut again = pin!(polled_again(future.as_mut()));
        poll_fn(|context| {
            polls += 1;
            again.as_mut().poll(context)
        })
        .await;
        polls > 1
    }

    #[tokio::test]
    async fn a_future_that_wakes_itself_yields_only_after_several_polls() {
        assert!(!gives_way(TIMES - 1).await);
        assert!(gives_way(TIMES).await);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_wake_of_another_thread_is_lost() {
        let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
        let sends = tokio::spawn(async move {
            for i in 0..20_000 {
                sender.send(i).await.expect("it receives");
            }
        });
        let mut sum = pin!(async move {
            let mut count = 0;
            while receiver.recv().await.is_some() {
                count += 1;
            }
            count
        });
        let count = tokio::time::timeout(Duration::from_secs(60), polled_again(sum.as_mut())).await;
        assert_eq!(count.expect("in time"), 20_000);
        sends.await.expect("no panic");
    }
}
