//! The folder of a session, and whether it is still there. The kernel tells of removals by a signal (fcntl(2), F_NOTIFY),
//! because of inotify(7)'s watchers a user has 128, which are fewer than sessions.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, statat, unlinkat};
use rustix::io::Errno;
use sys::signal;

use wire::SOCKET_FILE;

/// How often it is looked at where the kernel does not tell.
const LOOK_US: u64 = 60_000_000;

#[derive(Debug)]
pub(crate) struct Folder {
    fd: OwnedFd,
    /// The next look, where the kernel does not tell of removals.
    look_at: Option<u64>,
}

impl Folder {
    /// Signals [`signal::IO`], which must be blocked, when something was removed from it.
    pub(crate) fn watched(path: &Path, now: u64) -> io::Result<Self> {
        let fd = rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let look_at = signal::on_removals(fd.as_fd()).is_err().then_some(now + LOOK_US);
        Ok(Self { fd, look_at })
    }

    pub(crate) fn next_at(&self) -> Option<u64> {
        self.look_at
    }

    pub(crate) fn is_due(&self, now: u64) -> bool {
        self.look_at.is_some_and(|at| at <= now)
    }

    /// Whether the journal is gone from it, and with it all that the session is for. Where the folder is now does not matter.
    pub(crate) fn is_gone(&mut self, now: u64) -> bool {
        self.look_at = self.look_at.map(|_| now + LOOK_US);
        matches!(statat(&self.fd, journal::JOURNAL_FILE, AtFlags::SYMLINK_NOFOLLOW), Err(Errno::NOENT | Errno::STALE))
    }

    /// Removes our socket, wherever the folder is now.
    pub(crate) fn remove_socket(&self) {
        let _ = unlinkat(&self.fd, SOCKET_FILE, AtFlags::empty());
    }
}
