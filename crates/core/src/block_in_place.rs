//! CPU-bound work inside a task: other tasks of its thread move to another thread meanwhile.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Runs the work now, after other tasks of this thread have been moved. That costs some ten microseconds, so shorter
/// work is better done without.
pub fn block_in_place<T>(work: impl FnOnce() -> T) -> T {
    let has_others = Handle::try_current().is_ok_and(|h| h.runtime_flavor() == RuntimeFlavor::MultiThread);
    if has_others { tokio::task::block_in_place(work) } else { work() }
}
