//! A session's folder, and whether it still exists. The kernel signals removals (fcntl(2), F_NOTIFY); inotify(7) allows
//! only 128 instances per user, fewer than there are sessions.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, statat, unlinkat};
use rustix::io::Errno;
use sys::signal;

use wire::{SOCKET_FILE, TEMPORARY_FOLDER};

/// Poll interval if the kernel cannot signal removals.
const CHECK_US: u64 = 60_000_000;

#[derive(Debug)]
pub(crate) struct Folder {
    fd: OwnedFd,
    /// The next check, if the kernel cannot signal removals.
    check_at: Option<u64>,
}

impl Folder {
    /// Opens the folder; the kernel sends [`signal::IO`], which must be blocked, when something is removed from it.
    pub(crate) fn watched(path: &Path, now: u64) -> io::Result<Self> {
        let fd = rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let check_at = signal::on_removals(fd.as_fd()).is_err().then_some(now + CHECK_US);
        Ok(Self { fd, check_at })
    }

    pub(crate) fn next_at(&self) -> Option<u64> {
        self.check_at
    }

    pub(crate) fn is_due(&self, now: u64) -> bool {
        self.check_at.is_some_and(|at| at <= now)
    }

    /// Whether the journal was removed from it, and with it the session's output. Moving the folder does not matter.
    pub(crate) fn is_gone(&mut self, now: u64) -> bool {
        self.check_at = self.check_at.map(|_| now + CHECK_US);
        matches!(statat(&self.fd, journal::JOURNAL_FILE, AtFlags::SYMLINK_NOFOLLOW), Err(Errno::NOENT | Errno::STALE))
    }

    /// Removes the temporary files of a confined session; without an error if there are none.
    pub(crate) fn remove_temporary(&self) {
        let _ = sys::removal::remove_folder_in(self.fd.as_fd(), TEMPORARY_FOLDER);
    }

    /// Removes the holder's socket, wherever the folder is now.
    pub(crate) fn remove_socket(&self) {
        let _ = unlinkat(&self.fd, SOCKET_FILE, AtFlags::empty());
    }
}
