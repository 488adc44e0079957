//! Polling for conditions without an event: the kernel's own accounts, and files that another process writes.
//!
//! Everything else is awaited by its event. Only this module polls.

use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval};

/// After this long something counts as hanging, also where two processors have the work of ten: it makes no passing test slower.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Looks until there is something, and panics with `what` after [`PATIENCE`].
pub async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    let mut looks = interval(Duration::from_millis(5));
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        if let Some(found) = look().await {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
    }
}

/// Hands a line to the reader of a FIFO, which has waited for it.
pub async fn passes(gate: std::path::PathBuf, line: &'static str) {
    // Opening it waits for its reader.
    let opened = tokio::task::spawn_blocking(move || std::fs::write(gate, line));
    opened.await.expect("no panic").expect("written");
}
