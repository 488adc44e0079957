//! The time of a step, by each clock that the session uses.

use std::time::Duration;

use tokio::time::Instant;

use crate::sessions::session_metadata::SessionMetadata;
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
        Self { at: Instant::now(), us: micros(sys::time::wall()), since_boot_us: sys::time::since_boot_us() }
    }

    /// The time that has passed since then by the wall clock.
    pub(crate) fn since(self, us: u64) -> Duration {
        Duration::from_micros(self.us.saturating_sub(us))
    }

    /// The time since a session was created.
    pub(crate) fn age_of(self, meta: &SessionMetadata) -> Duration {
        Duration::from_micros(self.since_boot_us.saturating_sub(meta.creation.boot_us))
    }

    /// Whether the wall clock was set after a session was created: then a recorded time says nothing about an age.
    pub(crate) fn was_clock_set_since(self, meta: &SessionMetadata) -> bool {
        /// The two clocks are read one after the other, and a leap second sets nothing.
        const TOLERANCE_US: u64 = 2_000_000;
        let booted_then = meta.created_us.saturating_sub(meta.creation.boot_us);
        meta.creation.boot_us > 0 && self.booted_us().abs_diff(booted_then) > TOLERANCE_US
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
