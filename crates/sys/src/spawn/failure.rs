//! Why a process could not be started: the step that failed, reported by the child over a descriptor.

use std::io;
use std::os::fd::RawFd;

/// The step between fork and exec that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Step {
    /// fork(2) itself.
    Fork = 0,
    /// setsid(2).
    Session = 1,
    /// TIOCSCTTY, the controlling terminal.
    Terminal = 2,
    /// dup2(2) of the descriptors.
    Descriptors = 3,
    /// chdir(2) to the working directory.
    Directory = 4,
    /// execve(2).
    Exec = 5,
    /// Joining a control group.
    Group = 6,
    /// setrlimit(2).
    Limit = 7,
    /// Becoming another user.
    User = 8,
    /// Confining the process.
    Confinement = 9,
    /// Making or entering namespaces.
    Namespaces = 10,
    /// The mounts of a sandbox.
    Mounts = 11,
    /// Its /proc.
    Proc = 12,
}

impl Step {
    /// The step of this number; an unknown number is a step shortly before the shell runs.
    #[must_use]
    pub fn of_code(code: u8) -> Self {
        match code {
            0 => Self::Fork,
            1 => Self::Session,
            2 => Self::Terminal,
            3 => Self::Descriptors,
            4 => Self::Directory,
            6 => Self::Group,
            7 => Self::Limit,
            8 => Self::User,
            9 => Self::Confinement,
            10 => Self::Namespaces,
            11 => Self::Mounts,
            12 => Self::Proc,
            _ => Self::Exec,
        }
    }
}

/// Why the shell could not be started.
#[derive(Debug)]
pub struct SpawnError {
    /// The step that failed.
    pub step: Step,
    /// The errno.
    pub errno: i32,
}

pub(crate) fn last_errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// Reports the error and exits without running any destructor.
///
/// # Safety
/// Only in the child.
pub(crate) unsafe fn fail(report: RawFd, step: Step) -> ! {
    let e = last_errno().to_ne_bytes();
    let note = [step as u8, e[0], e[1], e[2], e[3]];
    // SAFETY: write(2) reads five bytes of a local array; _exit(2) ends the process without unwinding.
    unsafe {
        libc::write(report, note.as_ptr().cast(), note.len());
        libc::_exit(127)
    }
}
