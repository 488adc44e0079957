//! Returns memory to the kernel that an idle process does not need.

use rustix::process::getpid;
use rustix::thread::gettid;

/// How far below the present position the stack of a busy moment may have reached.
const STACK_BYTES: usize = 512 << 10;

/// How much of the stack the call needs that returns it.
const CALL_BYTES: usize = 512;

/// Returns the pages of the free heap and, on the first thread, of the stack below this call. They come back, zeroed,
/// when they are touched.
pub fn give_back() {
    // SAFETY: malloc_trim(3) releases what is free, and touches nothing that is in use.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0)
    };
    if gettid() == getpid() {
        stack_below();
    }
}

/// Only for the first thread, below whose stack the kernel keeps more room than this free of other mappings
/// (`mmap_base` in mm/util.c); another thread's stack has a neighbour.
#[inline(never)]
fn stack_below() {
    let here = 0u8;
    // SAFETY: it takes a number and touches no memory.
    let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(0);
    if !page.is_power_of_two() {
        return;
    }
    // So much is left to the call itself.
    let end = (std::ptr::from_ref(&here).addr() - CALL_BYTES) & !(page - 1);
    let from = (end - STACK_BYTES) as *mut libc::c_void;
    // SAFETY: everything below the frame of this function is dead, but for the frame of the call, which is smaller than what is left;
    // what of the range is not mapped is left alone (madvise(2), ENOMEM).
    unsafe { libc::madvise(from, STACK_BYTES, libc::MADV_DONTNEED) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_use_stays() {
        let heap: Vec<u64> = (0..100_000).collect();
        let stack = std::hint::black_box([7u8; 64 << 10]);
        give_back();
        stack_below_is_only_for_the_first_thread();
        assert!(heap.iter().copied().eq(0..100_000) && stack.iter().all(|byte| *byte == 7));
    }

    fn stack_below_is_only_for_the_first_thread() {
        // A test runs on a thread of its own, and gives back its heap alone.
        assert!(gettid() != getpid());
    }
}
