//! What a server takes for itself alone: its state directory by a lock, its socket by its name.
//!
//! Only this module makes those directories, the lock and the socket, each so that nobody else can enter.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use tokio::net::UnixListener;

use crate::listen::{SOCKET_PATH_BYTES_MAX, ServeError};

/// Makes a directory that only its owner can enter; one that is there stays as it is.
pub(crate) fn private_dir(path: &Path) -> Result<(), ServeError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(ServeError::at(path))
}

/// Writes a small file of the server's own. Where somebody has put a link in its place, nothing is written through it.
pub(crate) fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let no_link = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or(0);
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).custom_flags(no_link).open(path)?;
    // An earlier version left it as the mask then was.
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    file.write_all(text.as_bytes())
}

/// Takes the state directory for this process; the kernel gives it back when the process ends, however it does.
pub(crate) fn lock(state_dir: &Path) -> Result<File, ServeError> {
    let path = state_dir.join("lock");
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(ServeError::at(&path))?;
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
    // The lock is what counts; the number is for whoever is refused, and a full disk has no room for it.
    let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
    Ok(file)
}

/// Binds the socket, in place of one that a dead server left behind.
pub(crate) fn unix_listener(path: &Path) -> Result<UnixListener, ServeError> {
    if path.as_os_str().len() > SOCKET_PATH_BYTES_MAX {
        return Err(ServeError::SocketPath(path.to_owned()));
    }
    if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
        private_dir(folder)?;
    }
    match fs::symlink_metadata(path) {
        // Only a socket is removed: a mistyped --socket must not cost anybody a file.
        Ok(there) if there.file_type().is_socket() => {
            if std::os::unix::net::UnixStream::connect(path).is_ok() {
                return Err(ServeError::SocketTaken(path.to_owned()));
            }
            fs::remove_file(path).map_err(ServeError::at(path))?;
        }
        Ok(_) | Err(_) => {}
    }
    let listener = UnixListener::bind(path).map_err(ServeError::at(path))?;
    // Whoever connects before this line is still checked by the kernel's word.
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(ServeError::at(path))?;
    Ok(listener)
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
    fn a_file_that_is_written_is_its_owners_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("listen");
        fs::write(&path, "somebody's, and longer").expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).expect("its owner may");
        write(&path, "mine").expect("written");
        assert_eq!(fs::read_to_string(&path).expect("there"), "mine");
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
    }

    #[tokio::test]
    async fn a_stale_socket_is_replaced_and_nothing_else_is() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("run/ptyd.sock");
        let first = unix_listener(&path).expect("bound");
        assert!(matches!(unix_listener(&path), Err(ServeError::SocketTaken(p)) if p == path));
        drop(first);
        unix_listener(&path).expect("bound again");
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(dir.path().join("run")).expect("there").permissions().mode() & 0o777, 0o700);
        let file = dir.path().join("file");
        fs::write(&file, "precious").expect("written");
        assert!(matches!(unix_listener(&file), Err(ServeError::File { .. })));
        assert_eq!(fs::read_to_string(&file).expect("there"), "precious");
        let long = dir.path().join("x".repeat(SOCKET_PATH_BYTES_MAX));
        assert!(matches!(unix_listener(&long), Err(ServeError::SocketPath(p)) if p == long));
    }
}
