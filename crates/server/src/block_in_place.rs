//! Long work of the processor on a task: other tasks of its thread go on elsewhere meanwhile.

use std::future::poll_fn;
use std::pin::pin;

use tokio::runtime::{Handle, RuntimeFlavor};

/// Does this at once, on a thread on which nobody else waits. What takes less time than to hand tasks to another thread, some
/// ten microseconds, is better done without.
pub(crate) fn block_in_place<T>(work: impl FnOnce() -> T) -> T {
    let has_others = Handle::try_current().is_ok_and(|h| h.runtime_flavor() == RuntimeFlavor::MultiThread);
    if has_others { tokio::task::block_in_place(work) } else { work() }
}

/// The same for what does its work when it is asked first, and waits afterwards.
pub(crate) async fn block_in_place_at_first<T>(work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    let mut is_first = true;
    poll_fn(|cx| {
        if std::mem::take(&mut is_first) { block_in_place(|| work.as_mut().poll(cx)) } else { work.as_mut().poll(cx) }
    })
    .await
}
