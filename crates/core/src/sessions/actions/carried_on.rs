//! A future that continues as a task of its own if its caller is dropped before it ends.
//!
//! If it were a task from the beginning, each would cost an allocation and two more turns of the scheduler.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::runtime::Handle;

/// The future, until it has ended.
pub(super) struct CarriedOn<F: Future<Output: Send> + Send + 'static>(Option<Pin<Box<F>>>);

impl<F: Future<Output: Send> + Send + 'static> CarriedOn<F> {
    pub(super) fn new(future: F) -> Self {
        Self(Some(Box::pin(future)))
    }
}

impl<F: Future<Output: Send> + Send + 'static> Future for CarriedOn<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let future = self.0.as_mut().expect("invariant: it is not polled after its end");
        let output = ready!(future.as_mut().poll(context));
        self.0 = None;
        Poll::Ready(output)
    }
}

impl<F: Future<Output: Send> + Send + 'static> Drop for CarriedOn<F> {
    fn drop(&mut self) {
        // One that has panicked does not go on, and without a runtime the server has ended.
        if let (Some(future), false, Ok(runtime)) = (self.0.take(), std::thread::panicking(), Handle::try_current()) {
            runtime.spawn(future);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn work_continues_to_its_end_after_its_caller_has_gone() {
        let (begins, begun) = oneshot::channel();
        let (ends, ended) = oneshot::channel();
        let mut work = CarriedOn::new(async move {
            begun.await.expect("sent");
            ends.send(7).expect("awaited");
        });
        let mut context = Context::from_waker(std::task::Waker::noop());
        assert!(Pin::new(&mut work).poll(&mut context).is_pending());
        drop(work);
        begins.send(()).expect("it goes on");
        assert_eq!(ended.await, Ok(7));
    }

    #[tokio::test]
    async fn awaited_work_is_answered_once() {
        assert_eq!(CarriedOn::new(async { 7 }).await, 7);
    }
}
