//! The start of a program without the standard library's set-up of its main thread: that reads /proc/self/maps to find the
//! stack, and keeps a stack for a message about its overflow. A holder is started for each session and says nothing.

use std::ffi::{CStr, OsStr, OsString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;

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
    let argument = |at| OsStr::from_bytes(unsafe { CStr::from_ptr(*arguments.add(at)) }.to_bytes()).to_owned();
    (0..count).map(argument).collect()
}
