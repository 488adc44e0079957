//! Fault injection for tests: a process can be made to die or wait at a named point, to read in small pieces, and to wait
//! for less time than it otherwise would.
//!
//! A release has none of it: without debug assertions and the feature `faults` no function here does anything.

use std::ffi::OsString;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

/// `<point>:<file>`: a process at this point kills itself, panics, or waits while the file exists.
const FAULT: &str = "PTYD_FAULT";
/// A seed: terminals are read in pieces of 1 to 4,096 bytes.
const READ_SIZES: &str = "PTYD_TEST_READ_SIZES";
/// A factor from 0 to 1: a test that sits out one of the server's long waits makes it shorter.
const TIME_SCALE: &str = "PTYD_TEST_TIME_SCALE";
/// The path of a file with seconds, which are added to the wall clock while it is there: a test sets the clock of all its
/// processes, and no other's.
const WALL_CLOCK: &str = "PTYD_TEST_WALL_CLOCK";
/// The largest of those pieces.
const READ_BYTES_MAX: u64 = 4096;

/// Whether fault injection is compiled in.
const IS_HEEDED: bool = cfg!(any(debug_assertions, feature = "faults"));

/// The variables that a holder inherits from this process.
pub fn passed_on() -> Vec<(&'static str, OsString)> {
    if !IS_HEEDED {
        return Vec::new();
    }
    [FAULT, READ_SIZES, WALL_CLOCK].into_iter().filter_map(|name| Some((name, std::env::var_os(name)?))).collect()
}

/// Kills this process by SIGKILL if a test requests it at this point.
pub fn point(name: &str) {
    if !IS_HEEDED {
        return;
    }
    let fault = std::env::var(FAULT).unwrap_or_default();
    if fault.split_once(':').is_some_and(|(point, file)| point == name && Path::new(file).exists()) {
        // Cannot fail for the own process, and does not return.
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
}

/// Waits, like at a disk that hangs, if a test requests it at this point: the file is a named pipe (fifo(7)), and this
/// returns when the test, which has opened it for writing, closes it.
pub fn stall(name: &str) {
    if !IS_HEEDED {
        return;
    }
    let fault = std::env::var(FAULT).unwrap_or_default();
    if let Some((_, file)) = fault.split_once(':').filter(|(point, _)| *point == name) {
        // A missing file is like an end of file: the test does not request it, or not any more.
        let _ = std::fs::read(file);
    }
}

/// Panics once if a test requests it at this point: the file is removed first.
///
/// # Panics
/// On request of a test.
pub fn stumble(name: &str) {
    if !IS_HEEDED {
        return;
    }
    let fault = std::env::var(FAULT).unwrap_or_default();
    let wanted = fault.split_once(':').filter(|(point, _)| *point == name);
    assert!(wanted.is_none_or(|(_, file)| std::fs::remove_file(file).is_err()), "a test wants a fault at {name}");
}

/// A time that the server waits, as long as a test wants it.
pub fn scaled(time: Duration) -> Duration {
    static SCALE: OnceLock<Option<f64>> = OnceLock::new();
    let of_environment = || std::env::var(TIME_SCALE).ok()?.parse().ok().filter(|scale| (0.0..=1.0).contains(scale));
    let scale = if IS_HEEDED { *SCALE.get_or_init(of_environment) } else { None };
    scale.map_or(time, |scale| time.mul_f64(scale))
}

/// By how many microseconds a test has set the wall clock.
pub(crate) fn clock_step_us() -> i64 {
    static FILE: OnceLock<Option<OsString>> = OnceLock::new();
    let of_environment = || std::env::var_os(WALL_CLOCK);
    let file = if IS_HEEDED { FILE.get_or_init(of_environment).as_ref() } else { None };
    let seconds = file.and_then(|file| std::fs::read_to_string(file).ok()?.trim().parse::<i64>().ok());
    seconds.map_or(0, |seconds| seconds.saturating_mul(1_000_000))
}

/// How much of a terminal is read at once: as much as there is, or a random size for tests.
#[derive(Debug)]
pub struct ReadSizes(Option<u64>);

impl ReadSizes {
    /// As configured in the environment.
    pub fn of_environment() -> Self {
        let seed = if IS_HEEDED { std::env::var(READ_SIZES).ok() } else { None };
        Self(seed.and_then(|seed| seed.parse().ok()))
    }

    /// Random sizes, the same for the same seed.
    pub fn seeded(seed: u64) -> Self {
        Self(Some(seed))
    }

    /// Whether the sizes are random, so that each piece ends a turn.
    pub fn are_random(&self) -> bool {
        self.0.is_some()
    }

    /// The size of the next read, at most `most`.
    pub fn next(&mut self, most: usize) -> usize {
        let Some(state) = &mut self.0 else { return most };
        // Knuth's linear congruential generator (MMIX); its upper bits are the random ones.
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Small sizes as often as large ones, because they cut the most.
        let bytes = 1 + (*state >> 33) % READ_BYTES_MAX;
        let bytes = if *state >> 63 == 0 { bytes } else { 1 + bytes % 16 };
        most.min(usize::try_from(bytes).unwrap_or(most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_within_their_bounds_and_the_same_for_the_same_seed() {
        let mut sizes = [ReadSizes::seeded(7), ReadSizes::seeded(7)];
        let [ones, others] = sizes.each_mut().map(|s| (0..10_000).map(|_| s.next(100_000)).collect::<Vec<_>>());
        assert_eq!(ones, others);
        assert_eq!((ones.iter().min(), ones.iter().all(|n| *n <= 4096)), (Some(&1), true));
        assert_eq!(ReadSizes(None).next(100_000), 100_000);
    }
}
