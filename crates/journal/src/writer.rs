//! The journal's one writer, in the session's holder: bytes go on at the end, old ones are freed in place.
//!
//! The rule it keeps: a byte's offset never changes, and a byte is given up (published in the events' header) before it
//! is freed, so that a reader who looks at the header after its read can never take a hole for data.

use crate::{EventsWriter, JOURNAL_FILE, Offset};
use rustix::fs::{FallocateFlags, SeekFrom};
use rustix::io::{Errno, retry_on_intr};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

/// No file system of note has smaller blocks, and a punch inside a block frees nothing.
const BLOCK_BYTES_MIN: u64 = 4096;

/// How much output a session keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retention {
    /// The newest bytes that are always kept.
    pub bytes_max: u64,
    /// How much more may gather before it is freed in one go: each punch is a transaction of the file system.
    pub slack_bytes: u64,
}

impl Retention {
    /// Everything is kept.
    pub const UNLIMITED: Self = Self { bytes_max: u64::MAX, slack_bytes: 0 };

    /// Keeps the newest `bytes_max`, and frees in steps of a mebibyte, which costs less than writing it did.
    #[must_use]
    pub fn newest(bytes_max: u64) -> Self {
        Self { bytes_max, slack_bytes: 1 << 20 }
    }
}

/// What [`Writer::retain`] did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Retained {
    /// Nothing had to go, or freeing was refused earlier and is not tried again.
    All,
    /// The journal now begins here; what was before is freed.
    From(Offset),
    /// The file system cannot free a part of a file. Said once; the journal keeps all from now on.
    Refused(Errno),
}

/// The end of a journal that grows.
#[derive(Debug)]
pub struct Writer {
    file: File,
    retention: Retention,
    /// Punches are aligned to this; a part of a block would only be overwritten with zeros.
    block_bytes: u64,
    end: Offset,
    first: Offset,
    /// Up to here holes were really punched; behind `first` after a punch that failed, which is then made up for.
    punched: Offset,
    punch: Punch,
}

/// What is known about this file system's willingness to punch holes.
#[derive(Debug)]
enum Punch {
    Untried,
    Works,
    Refused,
}

impl Writer {
    /// Makes the journal of a new session; it is an error if there is one.
    pub fn create(dir: &Path, retention: Retention) -> io::Result<Self> {
        // Not O_APPEND: splice refuses such files, and every write names its place anyway.
        let file =
            OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(dir.join(JOURNAL_FILE))?;
        Self::on(file, Offset::ZERO, retention)
    }

    /// Goes on at the end of a journal that exists; `events` knows where it begins.
    pub fn open(dir: &Path, events: &EventsWriter, retention: Retention) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(dir.join(JOURNAL_FILE))?;
        let first = first_kept(&file, events.first()?)?;
        Self::on(file, first, retention)
    }

    fn on(file: File, first: Offset, retention: Retention) -> io::Result<Self> {
        let metadata = file.metadata()?;
        Ok(Self {
            retention,
            block_bytes: metadata.blksize().max(BLOCK_BYTES_MIN),
            end: Offset(metadata.len()),
            first,
            punched: Offset::ZERO,
            punch: Punch::Untried,
            file,
        })
    }

    /// The file, for splicing to it at [`Writer::end`].
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Where the next byte goes.
    #[must_use]
    pub fn end(&self) -> Offset {
        self.end
    }

    /// Where the oldest byte is that is still kept.
    #[must_use]
    pub fn first(&self) -> Offset {
        self.first
    }

    /// Counts `n` bytes that were spliced to [`Writer::end`].
    pub fn advance(&mut self, n: u64) {
        self.end = self.end.plus(n);
    }

    /// Reads the newest bytes back, as many as there are and fit.
    ///
    /// # Errors
    ///
    /// Those of pread(2).
    pub fn newest<'a>(&self, buffer: &'a mut [u8]) -> io::Result<&'a [u8]> {
        let len = (self.end.0 - self.first.0).min(buffer.len() as u64);
        let newest = buffer.get_mut(..len as usize).unwrap_or_default();
        self.file.read_exact_at(newest, self.end.0 - len)?;
        Ok(newest)
    }

    /// Writes at the end and says how many bytes were taken. Fewer than given means that the disk is full (or the like):
    /// the rest is the caller's to offer again. The error comes only when not one byte was taken.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.file.write_at(rest, self.end.0) {
                Ok(0) => break,
                Ok(n) => {
                    self.advance(n as u64);
                    rest = rest.get(n..).unwrap_or_default();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if rest.len() == bytes.len() => return Err(error),
                Err(_) => break,
            }
        }
        Ok(bytes.len() - rest.len())
    }

    /// Frees what is too old, and nothing at or after `keep_from`. Cheap when there is nothing to do, so call it after
    /// every write. After an error it may be called again: what was given up but not freed is freed then.
    pub fn retain(&mut self, events: &EventsWriter, keep_from: Offset) -> io::Result<Retained> {
        let kept_max = self.retention.bytes_max.saturating_add(self.retention.slack_bytes);
        let is_behind = self.punched < self.first;
        let has_too_much = self.end.since(self.first) > kept_max;
        if matches!(self.punch, Punch::Refused) || !(is_behind || has_too_much) {
            return Ok(Retained::All);
        }
        if matches!(self.punch, Punch::Untried) {
            if let Some(errno) = self.try_punch()? {
                self.punch = Punch::Refused;
                return Ok(Retained::Refused(errno));
            }
            self.punch = Punch::Works;
        }
        if has_too_much {
            let oldest = self.end.0.saturating_sub(self.retention.bytes_max);
            let first = Offset(self.align_down(oldest.min(keep_from.0)));
            if first > self.first {
                events.publish_first(first)?;
                if self.first == Offset::ZERO {
                    // Once, so that a header that says zero means zero even after the machine went down.
                    events.sync()?;
                }
                self.first = first;
            }
        }
        if self.punched < self.first {
            self.punch_hole(self.punched, self.first.since(self.punched))?;
            self.punched = self.first;
            return Ok(Retained::From(self.first));
        }
        Ok(Retained::All)
    }

    /// Puts on disk what was written so far.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Asks with a punch far behind the end, where nothing is, so that nothing is given up before the answer is known.
    fn try_punch(&self) -> io::Result<Option<Errno>> {
        let nowhere = Offset(self.align_down(self.end.0)).plus(self.block_bytes);
        match self.punch_hole(nowhere, self.block_bytes) {
            Ok(()) => Ok(None),
            Err(errno @ (Errno::OPNOTSUPP | Errno::NOSYS | Errno::PERM | Errno::INVAL)) => Ok(Some(errno)),
            Err(errno) => Err(errno.into()),
        }
    }

    fn punch_hole(&self, from: Offset, bytes: u64) -> rustix::io::Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        retry_on_intr(|| rustix::fs::fallocate(&self.file, flags, from.0, bytes))
    }

    fn align_down(&self, at: u64) -> u64 {
        at - at % self.block_bytes
    }
}

/// Where a journal begins that says it begins at `first`. After the machine went down a later punch may have reached the
/// disk when the header's page did not; a journal has no other holes, so the file system knows the truth then.
///
/// It is not asked about a journal that was never punched: ZFS also calls a block a hole in which a program printed zeros.
pub(crate) fn first_kept(file: &File, first: Offset) -> io::Result<Offset> {
    if first == Offset::ZERO { Ok(first) } else { first_data(file, first) }
}

/// Where the first bytes at or after `first` are that no hole has taken.
pub(crate) fn first_data(file: &File, first: Offset) -> io::Result<Offset> {
    match rustix::fs::seek(file, SeekFrom::Data(first.0)) {
        Ok(data) => Ok(Offset(data)),
        // Nothing but a hole up to the end.
        Err(Errno::NXIO) => Ok(first.max(Offset(file.metadata()?.len()))),
        // Not every file system can tell.
        Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(first),
        Err(errno) => Err(errno.into()),
    }
}
