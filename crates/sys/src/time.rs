//! The clocks: the wall clock for records, the monotonic clock for waits, the CPU clock for cost.

use rustix::time::{ClockId, clock_gettime};

/// Microseconds since the Unix epoch (`CLOCK_REALTIME`, clock_gettime(2)).
pub fn wall_us() -> u64 {
    micros(ClockId::Realtime)
}

/// Microseconds of CPU time of this process (`CLOCK_PROCESS_CPUTIME_ID`, clock_gettime(2)).
pub fn processor_us() -> u64 {
    micros(ClockId::ProcessCPUTime)
}

/// Microseconds on a clock that never jumps (`CLOCK_MONOTONIC`, clock_gettime(2)).
pub fn monotonic_us() -> u64 {
    micros(ClockId::Monotonic)
}

/// Microseconds since the system started, including suspend (`CLOCK_BOOTTIME`): the clock of process start times.
pub fn since_boot_us() -> u64 {
    micros(ClockId::Boottime)
}

fn micros(clock: ClockId) -> u64 {
    let t = clock_gettime(clock);
    u64::try_from(t.tv_sec).unwrap_or(0) * 1_000_000 + u64::try_from(t.tv_nsec).unwrap_or(0) / 1_000
}
