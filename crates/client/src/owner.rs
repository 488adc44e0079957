//! Whose server it is: the kernel says which user listens on a Unix socket.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::net::sockopt::socket_peercred;
use rustix::process::{Uid, geteuid};

/// Fails when neither this user nor root (nor the named user) listens at the other end: whoever may write the folder of a
/// socket could have put another one in its place, and would be told every command.
pub fn check(socket: impl AsFd, path: &Path, expected: Option<u32>) -> io::Result<()> {
    let uid = socket_peercred(socket)?.uid;
    if uid == geteuid() || uid.is_root() || expected.is_some_and(|expected| uid.as_raw() == expected) {
        return Ok(());
    }
    let why = format!(
        "{}: user {} listens there, and not this user ({}) or root; nothing was sent",
        path.display(),
        Uid::as_raw(uid),
        Uid::as_raw(geteuid())
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}
