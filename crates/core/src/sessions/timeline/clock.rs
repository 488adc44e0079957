//! The times of a session: when it began, when something happened last, and how long its output was when.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime};

#[derive(Debug)]
pub(crate) struct Clock {
    pub(crate) started_us: u64,
    /// The time of the newest event.
    pub(crate) last_us: u64,
    /// The journal's length when the newest event was written.
    pub(crate) reached: u64,
    /// Offsets and times of events, thinned out, to find a position by time.
    pub(crate) times: VecDeque<(u64, u64)>,
}

impl Clock {
    pub(super) fn new(first: u64) -> Self {
        Self { started_us: 0, last_us: 0, reached: first, times: VecDeque::new() }
    }

    /// The offset of the first byte at or after this time, as precise as the events.
    pub(crate) fn offset_at(&self, time: SystemTime, end: u64) -> u64 {
        let us = micros(time);
        self.times.iter().find(|(_, t)| *t >= us).map_or(end, |(offset, _)| *offset)
    }

    /// Notes the journal's length at a time; thinned to the first and the last entry in ten milliseconds, and to a
    /// bounded number.
    pub(crate) fn note(&mut self, offset: u64, us: u64) {
        /// About 40 KiB at most. A position by time is a convenience: the cursor is exact.
        const TIMES_KEPT: usize = 1024;
        const STEP_US: u64 = 10_000;
        if self.times.len() > 1 && self.times.get(self.times.len() - 2).is_some_and(|(_, t)| us < t + STEP_US) {
            self.times.pop_back();
        }
        if self.times.len() == TIMES_KEPT {
            let mut keep = false;
            self.times.retain(|_| {
                keep = !keep;
                keep
            });
        }
        self.times.push_back((offset, us));
    }
}

/// A recorded time as system time.
pub(crate) fn time(us: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_micros(us)
}

/// A system time as recorded.
pub(crate) fn micros(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| u64::try_from(d.as_micros()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_found_by_its_offset_and_the_notes_are_bounded() {
        let mut clock = Clock::new(0);
        for n in 0..10_000_u64 {
            clock.note(n, n * 20_000);
        }
        assert!(clock.times.len() <= 1_024, "{}", clock.times.len());
        let at = |us: u64| clock.offset_at(time(us), 77);
        assert!((9_990..=9_999).contains(&at(9_995 * 20_000)), "{}", at(9_995 * 20_000));
        assert_eq!(at(10_000 * 20_000), 77, "a time to come is at the end");
    }
}
