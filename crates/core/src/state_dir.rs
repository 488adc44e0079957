//! The server's state directory and the small files in it, each inaccessible to other users.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::serve_error::ServeError;

/// Creates a directory that only its owner can enter. An existing one must be ours and not writable by others: it has
/// the scripts that our shells run, the token that admits clients, and the socket that our commands connect to.
pub fn private_dir(path: &Path) -> Result<(), ServeError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(ServeError::at(path))?;
    check_private(path)
}

/// The same check for an existing directory, without creating one.
pub fn check_private(path: &Path) -> Result<(), ServeError> {
    let there = fs::metadata(path).map_err(ServeError::at(path))?;
    if there.uid() != own_uid() {
        return Err(ServeError::Foreign { path: path.to_owned(), owner: there.uid() });
    }
    if there.mode() & 0o022 != 0 {
        return Err(ServeError::Open { path: path.to_owned(), mode: there.mode() & 0o7777 });
    }
    Ok(())
}

/// The same check for the directories in a state directory that have what sessions and clients left; one of another
/// user may have been restored or put there. The scripts' own directory is checked when they are written.
pub fn check_inner(state_dir: &Path) -> Result<(), ServeError> {
    let inner = ["sessions", "conversations"].map(|name| state_dir.join(name));
    inner.iter().filter(|path| path.exists()).try_for_each(|path| check_private(path))
}

fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Reads a file of the server's own, and makes it private: a copied or restored file may be readable by others.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let there = file.metadata()?;
    if there.uid() != own_uid() {
        let why = format!("it belongs to uid {}, and this server runs as uid {}", there.uid(), own_uid());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    if there.mode() & 0o777 != 0o600 {
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Writes a small file of the server's own; does not follow a symbolic link in its place.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).custom_flags(no_link()).open(path)?;
    // A file that is there, copied or restored, may be readable by others.
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    file.write_all(text.as_bytes())
}

/// Replaces a small file of the server's own. The rename comes last, so a crash leaves either the old file or the new one.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let draft = draft(path);
    remove_draft(path);
    let written = || {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&draft, path)
    };
    written().inspect_err(|_| drop(fs::remove_file(&draft)))?;
    // From here on the new file counts, so a later failure must not be reported as if the old one did.
    let _ = File::open(path.parent().unwrap_or(Path::new("/"))).and_then(|folder| folder.sync_all());
    Ok(())
}

/// Reads a file that [`replace_sealed`] wrote; `None` if there is none. The error quotes nothing of the file.
pub(crate) fn read_sealed<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    let bytes = match read(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        bytes => bytes?,
    };
    let damaged = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    let end = bytes.trim_ascii_end().iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
    let (json, seal) = bytes.split_at(end);
    let read = serde_json::from_slice(json);
    let read = read.map_err(|e| damaged(format!("line {} is not JSON that this version of ptyd wrote", e.line())))?;
    if seal != self::seal(json).as_bytes() {
        return Err(damaged(
            "its checksum does not match its contents: it is damaged, or ptyd did not write it".to_owned(),
        ));
    }
    Ok(Some(read))
}

/// Replaces a small file with a value as JSON and its checksum: JSON with a changed bit can have another meaning, for example
/// another value of a secret or another scope of a token.
pub(crate) fn replace_sealed(path: &Path, value: &impl Serialize) -> io::Result<()> {
    let json = serde_json::to_vec_pretty(value)?;
    replace(path, &[&json[..], seal(&json).as_bytes()].concat())
}

/// The last line of a sealed file, which is JSON, too.
fn seal(json: &[u8]) -> String {
    format!("\n{{\"crc32\":{}}}\n", crc32fast::hash(json))
}

/// Removes what a killed server has left half written of such a file.
pub(crate) fn remove_draft(path: &Path) {
    let _ = fs::remove_file(draft(path));
}

fn draft(path: &Path) -> PathBuf {
    path.with_extension("new")
}

/// For open(2): follow no symbolic link in the file's place.
pub(crate) fn no_link() -> i32 {
    i32::try_from(OFlags::NOFOLLOW.bits()).expect("invariant: open(2) takes an int")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    // promise: damage-4
    fn no_changed_bit_and_no_cut_of_a_sealed_file_is_read() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("sealed.json");
        assert_eq!(read_sealed::<Vec<String>>(&path).expect("there is none"), None);
        let value = vec!["correct-horse".to_owned(), String::new(), "battery".to_owned()];
        replace_sealed(&path, &value).expect("written");
        assert_eq!(read_sealed(&path).expect("sound"), Some(value));
        let whole = fs::read(&path).expect("there");
        let mut damaged: Vec<Vec<u8>> = (0..whole.len()).map(|end| whole[..end].to_vec()).collect();
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            damaged.push(bytes);
        }
        damaged.push([&whole[..], b"\n"].concat());
        for bytes in damaged {
            fs::write(&path, &bytes).expect("written");
            let error = read_sealed::<Vec<String>>(&path).expect_err("it is not what ptyd wrote").to_string();
            assert!(!error.contains("horse"), "{error}");
        }
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

    fn with_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("ours");
    }

    #[test]
    // promise: access-2
    fn a_directory_that_others_may_write_or_own_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("state");
        private_dir(&path).expect("made");
        assert_eq!(fs::metadata(&path).expect("there").mode() & 0o777, 0o700);
        for mode in [0o770, 0o702, 0o777, 0o1777] {
            with_mode(&path, mode);
            let refused = private_dir(&path).expect_err("open").to_string();
            assert!(refused.contains(&format!("{mode:o}")) && refused.contains("chmod 700"), "{refused}");
        }
        with_mode(&path, 0o755);
        private_dir(&path).expect("others may only look");
        // Only root gives files away.
        if std::os::unix::fs::chown(&path, Some(65_534), None).is_ok() {
            let refused = private_dir(&path).expect_err("another's").to_string();
            assert!(refused.contains("65534") && refused.contains("chown"), "{refused}");
        }
    }

    #[test]
    fn a_file_becomes_private_and_no_link_is_written_through() {
        let dir = tempfile::tempdir().expect("a directory");
        let (precious, link) = (dir.path().join("precious"), dir.path().join("listen"));
        fs::write(&precious, "precious").expect("written");
        std::os::unix::fs::symlink(&precious, &link).expect("linked");
        assert!(write(&link, "127.0.0.1:1").is_err());
        assert_eq!(fs::read_to_string(&precious).expect("there"), "precious");
        with_mode(&precious, 0o666);
        write(&precious, "mine").expect("a file");
        assert_eq!(fs::metadata(&precious).expect("there").mode() & 0o777, 0o600);
        with_mode(&precious, 0o666);
        assert_eq!(read(&precious).expect("ours"), b"mine");
        assert_eq!(fs::metadata(&precious).expect("there").mode() & 0o777, 0o600);
        if std::os::unix::fs::chown(&precious, Some(65_534), None).is_ok() {
            let refused = read(&precious).expect_err("another's").to_string();
            assert!(refused.contains("65534"), "{refused}");
        }
    }
}
