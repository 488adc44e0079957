//! The server's Unix socket, inaccessible to other users.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use tokio::net::UnixListener;

use crate::limits::SOCKET_PATH_BYTES_MAX;
use crate::serve_error::ServeError;
use crate::state_dir::check_private;

/// The socket's name in the state directory.
pub const SOCKET_FILE: &str = "ptyd.sock";

/// Checks a directory for a socket: it must be private, or like /tmp, where no user can remove another's files.
fn check_sockets_folder(path: &Path) -> Result<(), ServeError> {
    let there = fs::metadata(path).map_err(ServeError::at(path))?;
    let is_shared = there.uid() == 0 && (there.mode() & 0o022 == 0 || there.mode() & 0o1000 != 0);
    if is_shared { Ok(()) } else { check_private(path) }
}

/// Binds the socket, replacing one that a dead server left behind.
pub fn listen(path: &Path) -> Result<UnixListener, ServeError> {
    if path.as_os_str().len() > SOCKET_PATH_BYTES_MAX {
        return Err(ServeError::SocketPath(path.to_owned()));
    }
    if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(ServeError::at(folder))?;
        check_sockets_folder(folder)?;
    }
    match fs::symlink_metadata(path) {
        // Only a socket is removed: a mistyped --socket must not delete a file.
        Ok(there) if there.file_type().is_socket() => {
            if std::os::unix::net::UnixStream::connect(path).is_ok() {
                return Err(ServeError::SocketTaken(path.to_owned()));
            }
            fs::remove_file(path).map_err(ServeError::at(path))?;
        }
        Ok(_) | Err(_) => {}
    }
    let listener = UnixListener::bind(path).map_err(ServeError::at(path))?;
    // A connection before this line is still checked by its peer credentials.
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(ServeError::at(path))?;
    Ok(listener)
}

/// The link in the state directory to a socket that is elsewhere: clients that know only the directory find the server. It is
/// removed with this.
#[derive(Debug)]
pub struct Link(Option<PathBuf>);

impl Link {
    /// Makes the link, in the place of an earlier server's socket or link. The caller has locked the directory.
    pub fn make(state_dir: &Path, socket: &Path) -> io::Result<Self> {
        let path = state_dir.join(SOCKET_FILE);
        if path == socket {
            return Ok(Self(None));
        }
        let is_ours = |there: fs::Metadata| there.file_type().is_socket() || there.file_type().is_symlink();
        if fs::symlink_metadata(&path).is_ok_and(is_ours) {
            fs::remove_file(&path)?;
        }
        symlink(socket, &path)?;
        Ok(Self(Some(path)))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // Best effort: the next server replaces what is left.
        self.0.take().map(fs::remove_file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stale_socket_is_replaced_and_nothing_else_is() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("run/ptyd.sock");
        let first = listen(&path).expect("bound");
        assert!(matches!(listen(&path), Err(ServeError::SocketTaken(p)) if p == path));
        drop(first);
        listen(&path).expect("bound again");
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(dir.path().join("run")).expect("there").permissions().mode() & 0o777, 0o700);
        let file = dir.path().join("file");
        fs::write(&file, "precious").expect("written");
        assert!(matches!(listen(&file), Err(ServeError::File { .. })));
        assert_eq!(fs::read_to_string(&file).expect("there"), "precious");
        let long = dir.path().join("x".repeat(SOCKET_PATH_BYTES_MAX));
        assert!(matches!(listen(&long), Err(ServeError::SocketPath(p)) if p == long));
    }

    #[tokio::test]
    async fn a_socket_elsewhere_is_found_through_the_state_directory() {
        let dir = tempfile::tempdir().expect("a directory");
        let (state, socket) = (dir.path().join("state"), dir.path().join("run/ptyd.sock"));
        fs::create_dir(&state).expect("made");
        let _listener = listen(&socket).expect("bound");
        let found = state.join(SOCKET_FILE);
        let connects = || std::os::unix::net::UnixStream::connect(&found).is_ok();
        // A killed server leaves a link that leads nowhere, or its socket.
        symlink("/nowhere", &found).expect("linked");
        let link = Link::make(&state, &socket).expect("linked");
        assert!(connects());
        drop(link);
        assert!(fs::symlink_metadata(&found).is_err());
        drop(listen(&found).expect("bound"));
        let link = Link::make(&state, &socket).expect("linked");
        assert!(connects());
        drop(link);
        // A socket in the state directory itself needs no link and keeps its place.
        let _own = listen(&found).expect("bound");
        drop(Link::make(&state, &found).expect("nothing to do"));
        assert!(connects());
    }
}
