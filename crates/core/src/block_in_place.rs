//! CPU-bound work inside a task: other tasks of its thread move to another thread meanwhile.

use std::future::poll_fn;
use std::pin::pin;

use tokio::runtime::{Handle, RuntimeFlavor};

/// Runs the work now, after other tasks of this thread have been moved. That costs some ten microseconds, so shorter
/// work is better done without.
pub fn block_in_place<T>(work: impl FnOnce() -> T) -> T {
    let has_others = Handle::try_current().is_ok_and(|h| h.runtime_flavor() == RuntimeFlavor::MultiThread);
    if has_others { tokio::task::block_in_place(work) } else { work() }
}

/// The same for a future that works on its first poll and only waits afterwards.
pub async fn block_in_place_at_first<T>(work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    let mut is_first = true;
    poll_fn(|cx| {
        if std::mem::take(&mut is_first) { block_in_place(|| work.as_mut().poll(cx)) } else { work.as_mut().poll(cx) }
    })
    .await
}
