//! Returns memory to the kernel that an idle process does not need.

use rustix::process::getpid;
use rustix::thread::gettid;

/// Two, so that a thread that gives back a heap keeps the others from one half of the allocations at most.
#[cfg(target_env = "gnu")]
const HEAPS: libc::c_int = 2;
/// The smallest block that has a mapping of its own. The allocator's default grows with each such block that is freed.
#[cfg(target_env = "gnu")]
const LARGE_BYTES: libc::c_int = 1 << 20;
/// Free bytes at the end of a heap that are kept for the next allocations.
#[cfg(target_env = "gnu")]
const FREE_BYTES: libc::c_int = 4 << 20;

/// How far below the present position the stack of a busy moment may have reached.
const STACK_BYTES: usize = 512 << 10;

/// How much of the stack the call needs that returns it.
const CALL_BYTES: usize = 512;

/// Has all threads share two heaps, before there are any: with one for each thread, as is the default, each keeps what its
/// busiest moment took. Large blocks are mapped one by one, and given back when they are freed.
pub fn share_heaps() {
    // SAFETY: mallopt(3) sets numbers of the allocator.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, HEAPS);
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES);
        libc::mallopt(libc::M_TRIM_THRESHOLD, FREE_BYTES);
    };
}

/// The bytes of this process that are in memory (proc_pid_statm(5)); `None` where the kernel does not say.
pub fn resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * page_bytes()? as u64)
}

/// The bytes of the heaps that are in use, less whole 4 GiB; 0 where the allocator does not say. mallinfo2(3), which counts further, needs
/// glibc 2.33.
pub fn used_bytes() -> u64 {
    // SAFETY: mallinfo(3) counts, under the locks of the heaps.
    #[cfg(target_env = "gnu")]
    return unsafe { libc::mallinfo() }.uordblks.cast_unsigned().into();
    #[cfg(not(target_env = "gnu"))]
    0
}

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

fn page_bytes() -> Option<usize> {
    // SAFETY: it takes a number and touches no memory.
    let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok()?;
    page.is_power_of_two().then_some(page)
}

/// Only for the first thread, below whose stack the kernel keeps more room than this free of other mappings
/// (`mmap_base` in mm/util.c); another thread's stack has a neighbour.
#[inline(never)]
fn stack_below() {
    let here = 0u8;
    let Some(page) = page_bytes() else { return };
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
    fn memory_in_use_stays() {
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
