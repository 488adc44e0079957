//! The time of a step, by each clock that the session uses.

use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use crate::sessions::timeline::micros;

/// The present, read once for each step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    /// By the monotonic clock, which decides waits.
    pub(crate) at: Instant,
    /// By the wall clock in microseconds, which stamps records.
    pub(crate) us: u64,
    /// The time since the machine was started, in microseconds.
    since_boot_us: u64,
}

impl Now {
    /// Reads the clocks.
    pub(crate) fn read() -> Self {
        Self { at: Instant::now(), us: micros(SystemTime::now()), since_boot_us: sys::time::since_boot_us() }
    }

    /// The time that has passed since then by the wall clock.
    pub(crate) fn since(self, us: u64) -> Duration {
        Duration::from_micros(self.us.saturating_sub(us))
    }

    /// When the machine was started, by the wall clock in microseconds.
    pub(crate) fn booted_us(self) -> u64 {
        self.us.saturating_sub(self.since_boot_us)
    }

    /// The present later by this much.
    #[cfg(test)]
    pub(crate) fn plus(self, time: Duration) -> Self {
        let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        Self {
            at: self.at + time,
            us: self.us.saturating_add(us),
            since_boot_us: self.since_boot_us.saturating_add(us),
        }
    }
}
