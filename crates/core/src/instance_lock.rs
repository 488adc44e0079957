//! The lock of the one server that a state directory has.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::mpsc;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::limits::LOCK_PATIENCE;
use crate::serve_error::ServeError;
use crate::state_dir::no_link;

/// Locks the state directory for this process; the kernel releases the lock when the process ends.
pub fn lock(state_dir: &Path) -> Result<File, ServeError> {
    let path = state_dir.join("lock");
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(no_link())
        .open(&path)
        .map_err(|e| ServeError::unusable("the lock", &path, &e, "remove it"))?;
    let is_taken = match file.try_lock() {
        Ok(()) => false,
        Err(TryLockError::WouldBlock) => true,
        Err(TryLockError::Error(error)) => return Err(ServeError::File { path, error }),
    };
    if is_taken {
        let mut holder = String::new();
        let _ = file.read_to_string(&mut holder);
        let holder = holder.trim();
        let holder_pid = holder.parse().ok().and_then(Pid::from_raw);
        let has_ended = holder_pid.is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH));
        file = if has_ended { released(file) } else { None }.ok_or_else(|| {
            let pid = if holder.is_empty() { "unknown" } else { holder }.to_owned();
            ServeError::Taken { pid, state_dir: state_dir.to_owned() }
        })?;
    }
    // Only the lock matters; the pid is for the message of a refused server, and a full disk has no room for it.
    let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
    Ok(file)
}

/// Locks the file of a server that has ended. A process that it was starting at that moment has the lock for a moment longer, until it
/// executes its program.
fn released(file: File) -> Option<File> {
    let (locked, waits) = mpsc::sync_channel(1);
    std::thread::spawn(move || {
        // Nobody receives it after that time; then this server ends.
        let _ = file.lock().map(|()| locked.send(file));
    });
    waits.recv_timeout(LOCK_PATIENCE).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_directory_has_one_server() {
        let dir = tempfile::tempdir().expect("a directory");
        let held = lock(dir.path()).expect("free");
        let refused = lock(dir.path()).expect_err("taken").to_string();
        assert!(refused.starts_with(&format!("another ptyd (pid {}) serves ", std::process::id())), "{refused}");
        drop(held);
        lock(dir.path()).expect("free again");
    }

    #[test]
    // promise: crash-1
    fn the_lock_of_a_server_that_has_ended_is_waited_for() {
        let dir = tempfile::tempdir().expect("a directory");
        let held = lock(dir.path()).expect("free");
        // Linux has no pid that is greater (2^22).
        std::fs::write(dir.path().join("lock"), "4194305").expect("a write");
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| lock(dir.path()).map(drop));
            drop(held);
            waits.join().expect("no panic").expect("free again");
        });
    }
}
