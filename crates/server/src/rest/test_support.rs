//! Test support of the REST modules.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// The result of a future that has nothing to wait for.
pub(super) fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("it waits"),
    }
}
