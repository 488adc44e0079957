//! Where memory is exhausted, the kernel kills a session's program rather than its server or holder.

use std::ffi::{CStr, CString};

/// The preference of this process and its children (proc(5), -1000 to 1000 thousandths of the memory).
const FILE: &CStr = c"/proc/self/oom_score_adj";
const MOST: i32 = 1_000;
/// Half of the memory of the machine or of the control group: a program counts as if it had that much more. Then the
/// server and the holders come first only where they alone have taken more, so that no end of a program would help. With
/// 1000, every idle shell would come before another program of the machine that has taken nearly everything.
const MORE: i32 = 500;

/// The text that [`prefer`] writes, relative to this process: a service manager may have set another value. It is empty
/// if the kernel has no such file.
pub(super) fn preference() -> CString {
    let own = std::fs::read_to_string("/proc/self/oom_score_adj").ok().and_then(|text| text.trim().parse::<i32>().ok());
    own.and_then(|own| CString::new(own.saturating_add(MORE).min(MOST).to_string()).ok()).unwrap_or_default()
}

/// Sets the preference of the calling process and the children that it will have. Every process may raise its own; if
/// the kernel has no such file, the program starts without.
///
/// # Safety
/// Only async-signal-safe calls are made, so a fresh child may call it.
pub(super) unsafe fn prefer(value: &CStr) {
    // SAFETY: both strings are valid, and the descriptor is ours.
    unsafe {
        let file = libc::open(FILE.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        if file != -1 {
            libc::write(file, value.as_ptr().cast(), value.count_bytes());
            libc::close(file);
        }
    }
}
