//! The lock of the one server that a state directory has.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Read;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::mpsc;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::limits::LOCK_PATIENCE;
use crate::serve_error::ServeError;
use crate::state_dir::no_link;

/// More digits than a pid has.
const PID_BYTES_MAX: u64 = 16;

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
        let mut holder = Vec::new();
        let _ = (&mut file).take(PID_BYTES_MAX).read_to_end(&mut holder);
        let holder_pid = std::str::from_utf8(&holder)
            .ok()
            .and_then(|pid| Pid::from_raw(pid.trim().parse().ok().filter(|pid| *pid > 0)?));
        // Without a pid it may have ended as well.
        let lives = holder_pid.is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH));
        file = if lives { None } else { released(file) }.ok_or_else(|| {
            let pid = holder_pid.map_or_else(|| "unknown".to_owned(), |pid| pid.as_raw_pid().to_string());
            ServeError::Taken { pid, state_dir: state_dir.to_owned() }
        })?;
    }
    // Only the lock matters; the pid is for the message of a refused server, and a full disk has no room for it.
    let pid = format!("{}\n", std::process::id());
    let _ = file.set_len(0).and_then(|()| file.write_all_at(pid.as_bytes(), 0));
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
        let mut held = Some(held);
        // Linux has no pid that is greater (2^22). A damaged one is that of nobody.
        for pid in [&b"4194305"[..], b"\0\0\xff7", b"-1"] {
            std::fs::write(dir.path().join("lock"), pid).expect("a write");
            let next = std::thread::scope(|scope| {
                let waits = scope.spawn(|| lock(dir.path()));
                drop(held.take());
                waits.join().expect("no panic").expect("free again")
            });
            let written = std::fs::read_to_string(dir.path().join("lock")).expect("a pid");
            assert_eq!(written, format!("{}\n", std::process::id()));
            held = Some(next);
        }
    }
}
