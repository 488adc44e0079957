//! The clocks: the wall clock for records, the monotonic clock for waits, the CPU clock for cost.

use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use rustix::time::{ClockId, clock_gettime};

use crate::fault;

/// Microseconds since the Unix epoch (`CLOCK_REALTIME`, clock_gettime(2)).
pub fn wall_us() -> u64 {
    micros(ClockId::Realtime).saturating_add_signed(fault::clock_step_us())
}

/// The wall clock, which can be set at any time: only for stamps, and for times that people name.
pub fn wall() -> SystemTime {
    let step = Duration::from_micros(fault::clock_step_us().unsigned_abs());
    let now = SystemTime::now();
    let set = if fault::clock_step_us() < 0 { now.checked_sub(step) } else { now.checked_add(step) };
    set.unwrap_or(now)
}

/// The wall clock as it was when this process first asked, and the time since then, however it was set meanwhile: for ages
/// that decide what is removed.
pub fn steady_wall() -> SystemTime {
    static BEGIN: OnceLock<(SystemTime, u64)> = OnceLock::new();
    let (wall_then, boot_then) = *BEGIN.get_or_init(|| (wall(), since_boot_us()));
    wall_then + Duration::from_micros(since_boot_us().saturating_sub(boot_then))
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
