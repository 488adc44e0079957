//! Reads a journal while it grows and while its beginning is freed, without a lock against the writer.
//!
//! It never returns a byte that the terminal did not print, but for the `*` of its masks. The writer publishes the new first
//! offset before it frees bytes; the reader reads the bytes first and the header second, so a hole always appears as a gap.

use crate::writer::{first_data, first_kept};
use crate::{EVENTS_FILE, JOURNAL_FILE, Masks, Offset, header, open_to_read};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// The result of a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Read {
    /// This many bytes, at least one unless the buffer has no room.
    Bytes(usize),
    /// These bytes are no longer kept; continue at `to`.
    Gap {
        /// The requested offset.
        from: Offset,
        /// The first offset after the gap, never past the limit.
        to: Offset,
    },
    /// The file ends before the limit: another process has cut or removed it.
    Cut {
        /// The requested offset.
        from: Offset,
        /// The limit.
        to: Offset,
    },
    /// There is nothing at or after the limit.
    End,
}

/// A reader of one session's output, for any number of positions at once: it has none of its own.
#[derive(Debug)]
pub struct Reader {
    /// `None` if it is gone.
    journal: Option<File>,
    /// `None` if the header of the events file is damaged.
    events: Option<File>,
    /// The journal's first offset when the reader was opened.
    first_at_open: Offset,
    /// The masks of all that is read.
    masks: Masks,
}

impl Reader {
    /// Opens the journal in a session's folder, whether its holder is alive or not.
    pub fn open(dir: &Path, masks: Masks) -> io::Result<Self> {
        let events = open_to_read(&dir.join(EVENTS_FILE))?;
        header::check(&events)?;
        let journal = open_to_read(&dir.join(JOURNAL_FILE))?;
        let first_at_open = first_kept(&journal, header::first(&events)?)?;
        Ok(Self { journal: Some(journal), events: Some(events), first_at_open, masks })
    }

    /// Opens the journal of a session whose events have a damaged header: its first offset comes from the file system.
    pub fn open_alone(dir: &Path, masks: Masks) -> io::Result<Self> {
        let journal = open_to_read(&dir.join(JOURNAL_FILE))?;
        Ok(Self { journal: Some(journal), events: None, first_at_open: Offset::ZERO, masks })
    }

    /// Whether there is a journal to read from.
    #[must_use]
    pub fn has_journal(&self) -> bool {
        self.journal.is_some()
    }

    /// Reads nothing: for an ended session whose journal is gone.
    pub fn of_nothing() -> Self {
        Self { journal: None, events: None, first_at_open: Offset::ZERO, masks: Masks::default() }
    }

    /// Reads at `at`, and never at or beyond `limit`, the published tail.
    pub fn read(&self, at: Offset, limit: Offset, buf: &mut [u8]) -> io::Result<Read> {
        let wanted = limit.since(at);
        if wanted == 0 {
            return Ok(Read::End);
        }
        let Some(journal) = &self.journal else { return Ok(Read::Cut { from: at, to: limit }) };
        let room = usize::try_from(wanted).unwrap_or(usize::MAX).min(buf.len());
        let Some(room) = buf.get_mut(..room) else {
            return Ok(Read::Bytes(0));
        };
        let (n, first) = if self.masks.is_none() {
            let n = read_at(journal, room, at.0)?;
            // The order matters: the header or the holes must be read after the bytes.
            (n, self.first()?)
        } else {
            self.read_masked(journal, at, room)?
        };
        if at < first {
            return Ok(Read::Gap { from: at, to: first.min(limit) });
        }
        if n == 0 && !buf.is_empty() {
            return Ok(Read::Cut { from: at, to: limit });
        }
        Ok(Read::Bytes(n))
    }

    /// Reads with what is around: also what is behind the limit, which decides what is masked and is not given out. Returns
    /// the first offset, too.
    fn read_masked(&self, journal: &File, at: Offset, room: &mut [u8]) -> io::Result<(usize, Offset)> {
        let margin = self.masks.margin();
        let from = at.0.saturating_sub(margin as u64);
        let before = usize::try_from(at.0 - from).unwrap_or(margin);
        let mut window = vec![0; before + room.len() + margin];
        let mut length = 0;
        // Fewer bytes than asked for would seem to be the end.
        while length < window.len() {
            match read_at(journal, window.get_mut(length..).unwrap_or_default(), from + length as u64)? {
                0 => break,
                n => length += n,
            }
        }
        window.truncate(length);
        let first = self.first()?;
        let gone = usize::try_from(first.since(Offset(from))).unwrap_or(length).min(length);
        let is_headless = first > Offset::ZERO && first >= Offset(from);
        self.masks.mask_window(window.get_mut(gone..).unwrap_or_default(), is_headless);
        let asked = window.get(before..).unwrap_or_default();
        let n = asked.len().min(room.len());
        if let (Some(room), Some(asked)) = (room.get_mut(..n), asked.get(..n)) {
            room.copy_from_slice(asked);
        }
        Ok((n, first))
    }

    /// The offset of the oldest retained byte.
    pub fn first(&self) -> io::Result<Offset> {
        let first = match (&self.events, &self.journal) {
            (Some(events), _) => header::first(events)?,
            (None, Some(journal)) => first_data(journal, Offset::ZERO)?,
            (None, None) => Offset::ZERO,
        };
        Ok(first.max(self.first_at_open))
    }

    /// The file's size: the end of a journal whose holder is dead. A living holder publishes its tail instead.
    #[allow(clippy::len_without_is_empty, reason = "a size that can fail is not a collection's length")]
    pub fn len(&self) -> io::Result<Offset> {
        let Some(journal) = &self.journal else { return Ok(Offset::ZERO) };
        Ok(Offset(journal.metadata()?.len()))
    }
}

/// Reads once; interrupted, again.
fn read_at(journal: &File, buf: &mut [u8], at: u64) -> io::Result<usize> {
    loop {
        match journal.read_at(buf, at) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}
