//! The output log and the events of one session: append, read, retain, recover. No async, no VT.
//!
//! A session's folder holds two files. `journal` is what the terminal printed, byte for byte: a logical offset *is* a
//! file offset, for ever, because old bytes are freed by punching holes and never by moving what follows. `events` is
//! what happened beside the bytes, each record with the time and the journal's end at that moment.
//!
//! Only the session's holder names [`Writer`] and [`EventsWriter`]; everybody else reads. A reader takes the published
//! tail as its limit and never looks past it, so it needs no lock against the writer.
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

/// The journal's file in a session's folder.
pub const JOURNAL_FILE: &str = "journal";

/// The events' file in a session's folder.
pub const EVENTS_FILE: &str = "events";

/// A place in a session's output: the number of bytes the terminal printed before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Offset(pub u64);

impl Offset {
    /// Where every journal begins.
    pub const ZERO: Self = Self(0);

    /// The offset `n` bytes further on.
    #[must_use]
    pub fn plus(self, n: u64) -> Self {
        Self(self.0.saturating_add(n))
    }

    /// How many bytes lie from `earlier` up to here; none when `earlier` is the later one.
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
