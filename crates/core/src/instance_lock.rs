//! The lock of the one server that a state directory has.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

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
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut pid = String::new();
            let _ = file.read_to_string(&mut pid);
            let pid = if pid.trim().is_empty() { "unknown".to_owned() } else { pid.trim().to_owned() };
            return Err(ServeError::Taken { pid, state_dir: state_dir.to_owned() });
        }
        Err(TryLockError::Error(error)) => return Err(ServeError::File { path, error }),
    }
    // Only the lock matters; the pid is for the message of a refused server, and a full disk has no room for it.
    let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
    Ok(file)
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
}
