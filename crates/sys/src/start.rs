//! The start of a program without the standard library's set-up of its main thread: that reads /proc/self/maps to find the
//! stack, and keeps a stack for a message about its overflow. A holder is started for each session and says nothing.

use std::ffi::{CStr, OsStr, OsString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Makes this function of the arguments, the program's name included, the beginning of the program, which needs `#![no_main]`.
/// It returns the exit code. SIGPIPE ends the program unless it ignores it.
#[macro_export]
macro_rules! begins_with {
    ($main:path) => {
        // SAFETY: no other function of a program with `#![no_main]` has this name.
        #[unsafe(no_mangle)]
        extern "C" fn main(count: std::ffi::c_int, arguments: *const *const std::ffi::c_char) -> std::ffi::c_int {
            let main: fn(Vec<std::ffi::OsString>) -> u8 = $main;
            // SAFETY: the C library calls this with what the kernel has put on the stack.
            std::ffi::c_int::from(main(unsafe { $crate::start::arguments(count, arguments) }))
        }
    };
}

/// The arguments of the program.
///
/// # Safety
///
/// They are those that the C library has passed to `main`.
#[doc(hidden)]
pub unsafe fn arguments(count: c_int, arguments: *const *const c_char) -> Vec<OsString> {
    let count = usize::try_from(count).unwrap_or(0);
    // SAFETY: there are so many pointers, each to a string that ends with NUL and stays.
    let given = |at| unsafe { CStr::from_ptr(*arguments.add(at)) };
    let all: Vec<OsString> = (0..count).map(|at| OsStr::from_bytes(given(at).to_bytes()).to_owned()).collect();
    if count > 0 {
        COMMAND_LINE.store(given(0).as_ptr().cast_mut(), Ordering::Relaxed);
        // The kernel puts them one behind the other.
        COMMAND_LINE_BYTES.store(all.iter().map(|one| one.len() + 1).sum(), Ordering::Relaxed);
    }
    all
}

/// The memory of the arguments, which other processes see as this one's command line; null in programs that do not begin with
/// [`begins_with`].
static COMMAND_LINE: AtomicPtr<c_char> = AtomicPtr::new(std::ptr::null_mut());
static COMMAND_LINE_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Shows another name in the place of the whole command line.
///
/// # Safety
/// In a fork of the program, which has a copy of the memory. It is async-signal-safe.
pub(crate) unsafe fn show_as(name: &CStr) {
    let (at, length) = (COMMAND_LINE.load(Ordering::Relaxed), COMMAND_LINE_BYTES.load(Ordering::Relaxed));
    let name = name.to_bytes();
    if !at.is_null() && name.len() < length {
        // SAFETY: the arguments' memory is writable and stays (execve(2)); nothing else in this process reads it.
        unsafe {
            std::ptr::write_bytes(at, 0, length);
            std::ptr::copy_nonoverlapping(name.as_ptr().cast(), at, name.len());
        }
    }
}

/// Replaces the argument behind the program's name, as `ps` and /proc/PID/cmdline have it, by another one of the same length.
pub fn replace_first_argument(with: &[u8]) {
    let (at, length) = (COMMAND_LINE.load(Ordering::Relaxed), COMMAND_LINE_BYTES.load(Ordering::Relaxed));
    if at.is_null() {
        return;
    }
    // SAFETY: each argument ends with NUL, and the memory of all of them is writable and stays (execve(2)). The argument is
    // within it, as many bytes are written as it has, and nothing else in this process reads it: `arguments` has returned copies.
    unsafe {
        let behind_name = CStr::from_ptr(at).count_bytes() + 1;
        if behind_name < length && CStr::from_ptr(at.add(behind_name)).count_bytes() == with.len() {
            std::ptr::copy_nonoverlapping(with.as_ptr().cast(), at.add(behind_name), with.len());
        }
    }
}
