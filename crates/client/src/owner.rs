//! Verifies a server's owner: the kernel reports which user listens on a Unix socket.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::net::sockopt::socket_peercred;
use rustix::process::{Uid, geteuid};

/// Fails unless this user, root or the named user listens at the other end: a process that can write to the socket's
/// folder could have replaced the socket, and would get every command.
pub fn check(socket: impl AsFd, path: &Path, expected: Option<u32>) -> io::Result<()> {
    let uid = socket_peercred(socket)?.uid;
    if uid == geteuid() || uid.is_root() || expected.is_some_and(|expected| uid.as_raw() == expected) {
        return Ok(());
    }
    let why = format!(
        "{}: user {} listens there, who is neither this user ({}) nor root; nothing was sent",
        path.display(),
        Uid::as_raw(uid),
        Uid::as_raw(geteuid())
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}
