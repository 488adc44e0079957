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
mod reader;
mod writer;

pub use event::{EndReason, Event, Kind, Record, TroubleKind};
pub use events::{EventsReader, EventsWriter};
pub use reader::{Read, Reader};
pub use writer::{Retained, Retention, Writer};

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
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
/// keep the caller waiting for a writer.
fn open_to_read(path: &Path) -> io::Result<File> {
    let nonblocking = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0);
    let file = OpenOptions::new().read(true).custom_flags(nonblocking).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidData, "it is not a regular file"))
    }
}
