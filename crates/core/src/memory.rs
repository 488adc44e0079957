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

/// Gives back what is free if more is unused since the process was left with so many unused bytes; returns with how many it is left now.
async fn given_back(kept: u64) -> u64 {
    let Some(now) = unused_bytes() else { return kept };
    if now < kept + MEMORY_GROWN_BYTES {
        return kept.min(now);
    }
    let _ = tokio::task::spawn_blocking(sys::memory::give_back).await;
    unused_bytes().unwrap_or(now)
}

/// The bytes in memory that no block of the heaps has. They also grow when what was in use is freed, and the process stays as large.
fn unused_bytes() -> Option<u64> {
    Some(sys::memory::resident_bytes()?.saturating_sub(sys::memory::used_bytes()))
}

#[cfg(target_env = "gnu")]
#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK_BYTES: usize = 1 << 10;
    const BLOCKS: usize = 64 << 10;
    /// Every block with such a number stays, so that the heap cannot shrink from its end.
    const STAYS: usize = 64;

    #[tokio::test]
    // promise: limit-6
    async fn memory_that_was_in_use_at_the_last_look_goes_back_at_the_next() {
        let mut blocks: Vec<_> = (0..BLOCKS).map(|_| Some(Box::new([7u8; BLOCK_BYTES]))).collect();
        let kept = given_back(0).await;
        let busy = sys::memory::resident_bytes().expect("Linux says it");
        blocks.iter_mut().enumerate().filter(|(number, _)| number % STAYS != 0).for_each(|(_, block)| *block = None);
        given_back(kept).await;
        let now = sys::memory::resident_bytes().expect("Linux says it");
        assert!(now + (BLOCKS * BLOCK_BYTES / 2) as u64 <= busy, "{now} of {busy} bytes are in memory");
        assert!(blocks.iter().flatten().all(|block| block.iter().all(|byte| *byte == 7)));
    }
}
