//! The first process of a session's container: it connects to its server, says as whom it runs, and lives as long as the
//! connection. The server passes that to the session's holder, which enters the container by it.
//!
//! When this process ends, the kernel ends all others in the container (pid_namespaces(7)).

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Runs until the other end of the connection is closed.
pub fn run(socket: &Path) -> io::Result<()> {
    // Orphans need no wait(2) then.
    sys::signal::ignore(sys::signal::CHLD);
    let mut connection = UnixStream::connect(socket)?;
    connection.write_all(format!("{}\n", own_ids()?).as_bytes())?;
    loop {
        match connection.read(&mut [0; 64]) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// User, group and groups of this process, as numbers; empty where its user namespace lets nobody change groups, because there is
/// only one user then (user_namespaces(7)).
fn own_ids() -> io::Result<String> {
    // Without user namespaces there is no such file.
    let denied = std::fs::read_to_string("/proc/self/setgroups").is_ok_and(|text| text.trim() == "deny");
    if denied {
        return Ok(String::new());
    }
    let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let groups = rustix::process::getgroups()?.into_iter().map(rustix::process::Gid::as_raw);
    let ids: Vec<_> = [uid, gid].into_iter().chain(groups).map(|id| id.to_string()).collect();
    Ok(ids.join(" "))
}
