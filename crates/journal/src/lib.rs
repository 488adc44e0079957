//! The output journal and the events of one session: append, read, retain, recover. No async, no terminal emulation.
//!
//! A session's folder has two files. `journal` has the terminal's output, byte for byte: an offset in the output *is* a
//! file offset, for ever, because old bytes are freed by punching holes and never by moving later ones. `events` has
//! everything else that happened, each record with the time and the journal's end at that moment.
//!
//! Only the session's holder uses [`Writer`] and [`EventsWriter`]; all other processes read. A reader never reads
//! beyond the published tail, so it needs no lock against the writer.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod event;
mod events;
mod header;
mod mask;
mod reader;
mod writer;

pub use event::{EndReason, Event, Kind, Record, TroubleKind};
pub use events::{EventsReader, EventsWriter};
pub use mask::{MASKED_BYTES_MIN, MaskedText, Masks};
pub use reader::{Read, Reader};
pub use writer::{Retained, Retention, Writer};

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// The journal's file in a session's folder.
pub const JOURNAL_FILE: &str = "journal";

/// The events' file in a session's folder.
pub const EVENTS_FILE: &str = "events";

/// A position in a session's output: the number of bytes printed before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Offset(pub u64);

impl Offset {
    /// The beginning of every journal.
    pub const ZERO: Self = Self(0);

    /// The offset `n` bytes further on.
    #[must_use]
    pub fn plus(self, n: u64) -> Self {
        Self(self.0.saturating_add(n))
    }

    /// The number of bytes from `earlier` to here; 0 if `earlier` is the later one.
    #[must_use]
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Opens one of a session's files for reading. Anything else in its place is damage, and a named pipe there must not
/// keep the caller waiting for a writer. A read notes no time in the file: each write would be followed by one.
fn open_to_read(path: &Path) -> io::Result<File> {
    use rustix::io::Errno;
    let not_regular = || io::Error::new(io::ErrorKind::InvalidData, "it is not a regular file");
    let nonblocking = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0);
    let file = OpenOptions::new().read(true).custom_flags(nonblocking).open(path).map_err(|e| {
        // open(2): a socket, and a link to itself.
        let is_other = [Errno::NXIO, Errno::LOOP].iter().any(|errno| e.raw_os_error() == Some(errno.raw_os_error()));
        if is_other { not_regular() } else { e }
    })?;
    if !file.metadata()?.is_file() {
        return Err(not_regular());
    }
    // Only its owner may ask for that.
    let _ = rustix::fs::fcntl_setfl(&file, rustix::fs::OFlags::NOATIME | rustix::fs::OFlags::NONBLOCK);
    Ok(file)
}

/// Reads one of a session's files whole. It is damage, an error of the kind `InvalidData`, if it is longer than this or
/// not a regular file: neither keeps the caller waiting, and neither takes more memory than this.
pub fn read_whole(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let file = open_to_read(path)?;
    // A buffer that grows would read in small parts.
    let length = file.metadata()?.len().min(bytes_max);
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0) + 1);
    file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length <= bytes_max) {
        Ok(bytes)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidData, format!("it is longer than {bytes_max} bytes")))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_whole_up_to_its_bound_and_anything_else_in_its_place_is_damage() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name| dir.path().join(name);
        std::fs::write(path("file"), "12345678").unwrap();
        assert_eq!(read_whole(&path("file"), 8).unwrap(), b"12345678");
        let _listener = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, path("pipe"), fifo, rustix::fs::Mode::RWXU, 0).unwrap();
        std::os::unix::fs::symlink("loop", path("loop")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", path("endless")).unwrap();
        std::fs::create_dir(path("folder")).unwrap();
        let damaged = |name, bytes_max| {
            let refused = read_whole(&path(name), bytes_max).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidData, "{name}: {refused}");
            refused.to_string()
        };
        assert_eq!(damaged("file", 7), "it is longer than 7 bytes");
        for name in ["socket", "pipe", "loop", "endless", "folder"] {
            assert_eq!(damaged(name, u64::MAX), "it is not a regular file", "{name}");
        }
        assert_eq!(read_whole(&path("none"), 8).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
