//! The protocol between a service and its manager, such as systemd: the state of the service (sd_notify(3)) and the sockets
//! on which it listens (sd_listen_fds(3)). Without a manager, every function does nothing.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The first descriptor that a manager passes (SD_LISTEN_FDS_START).
const FIRST: RawFd = 3;

/// How long a message waits for a manager whose queue is full.
const PATIENCE: Duration = Duration::from_millis(200);

/// Tells the manager the state, as lines like `READY=1`.
pub fn notify(state: &str) -> io::Result<()> {
    let Some(name) = std::env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else { return Ok(()) };
    let socket = UnixDatagram::unbound()?;
    // A manager that does not read must not stop the service.
    socket.set_write_timeout(Some(PATIENCE))?;
    socket.send_to_addr(state.as_bytes(), &address(&name)?).map(drop)
}

/// A path, or an abstract name after an `@`.
fn address(name: &OsStr) -> io::Result<SocketAddr> {
    match name.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(name),
    }
}

/// The time within which the manager has to hear `WATCHDOG=1` again and again (sd_watchdog_enabled(3)).
pub fn watchdog() -> Option<Duration> {
    let micros = number("WATCHDOG_USEC")?;
    let is_ours = std::env::var_os("WATCHDOG_PID").is_none() || is_own("WATCHDOG_PID");
    is_ours.then_some(Duration::from_micros(micros)).filter(|time| !time.is_zero())
}

/// The sockets that the manager has opened for this process. Only the first call returns them.
pub fn inherited_sockets() -> Vec<OwnedFd> {
    static ARE_TAKEN: AtomicBool = AtomicBool::new(false);
    if !is_own("LISTEN_PID") || ARE_TAKEN.swap(true, Ordering::AcqRel) {
        return Vec::new();
    }
    let count = number("LISTEN_FDS").and_then(|count| RawFd::try_from(count).ok()).unwrap_or(0);
    let is_open = |fd: &RawFd| {
        // SAFETY: the call takes numbers, touches no memory and fails for a number that is not an open descriptor.
        unsafe { libc::fcntl(*fd, libc::F_GETFD) != -1 }
    };
    // SAFETY: the manager opened them for this process, which has the pid that it named. Nothing else here owns them: they
    // were open before this program began, and the flag lets only one call take them.
    (FIRST..FIRST.saturating_add(count)).take_while(is_open).map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }).collect()
}

fn is_own(name: &str) -> bool {
    number(name) == Some(std::process::id().into())
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manager_is_found_by_a_path_or_by_an_abstract_name() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("notify");
        assert_eq!(address(path.as_os_str()).expect("an address").as_pathname(), Some(&*path));
        let named = address(OsStr::new("@ptyd-manager")).expect("an address");
        assert_eq!(named.as_abstract_name(), Some(&b"ptyd-manager"[..]));
    }
}
