//! The start of a program without the standard library's set-up of its main thread: that reads /proc/self/maps to find the
//! stack, and keeps a stack for a message about its overflow. A holder is started for each session and says nothing.

use std::ffi::{CStr, OsStr, OsString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The argument behind the program's name, where the kernel has put it.
static FIRST_ARGUMENT: AtomicPtr<c_char> = AtomicPtr::new(std::ptr::null_mut());

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
    if count > 1 {
        // SAFETY: there are so many pointers.
        FIRST_ARGUMENT.store(unsafe { *arguments.add(1) }.cast_mut(), Ordering::Relaxed);
    }
    // SAFETY: there are so many pointers, each to a string that ends with NUL and stays.
    let argument = |at| OsStr::from_bytes(unsafe { CStr::from_ptr(*arguments.add(at)) }.to_bytes()).to_owned();
    (0..count).map(argument).collect()
}

/// Replaces the argument behind the program's name, as `ps` and /proc/PID/cmdline have it, by another one of the same length.
pub fn replace_first_argument(with: &[u8]) {
    let argument = FIRST_ARGUMENT.load(Ordering::Relaxed);
    if argument.is_null() {
        return;
    }
    // SAFETY: the argument ends with NUL, is this program's to write (execve(2) has copied it onto the stack), and nothing else
    // refers to it: `arguments` has returned copies. As many bytes are written as it has.
    unsafe {
        if CStr::from_ptr(argument).count_bytes() == with.len() {
            std::ptr::copy_nonoverlapping(with.as_ptr().cast(), argument, with.len());
        }
    }
}
