//! Memory that a busy moment took goes back to the kernel soon after it.

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::limits::{MEMORY_GROWN_BYTES, MEMORY_LOOKED_AT};

/// Tells that requests have been performed, and gives back what they took.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    used: Notify,
}

impl Memory {
    /// A request was performed.
    pub(crate) fn was_used(&self) {
        self.used.notify_one();
    }

    /// Gives memory back, for as long as it is polled. A server without requests does nothing.
    pub(crate) async fn give_back(&self) {
        let mut kept = 0;
        loop {
            self.used.notified().await;
            // An answer can be in memory for a while after its request.
            for after in MEMORY_LOOKED_AT {
                tokio::time::sleep_until(Instant::now() + after).await;
                kept = given_back(kept).await;
            }
        }
    }
}

/// Gives back what is free if the process has grown since it was left with so many bytes; returns with how many it is left now.
async fn given_back(kept: u64) -> u64 {
    let Some(now) = sys::memory::resident_bytes() else { return kept };
    if now < kept + MEMORY_GROWN_BYTES {
        return kept.min(now);
    }
    let _ = tokio::task::spawn_blocking(sys::memory::give_back).await;
    sys::memory::resident_bytes().unwrap_or(now)
}
