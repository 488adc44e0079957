//! The journal's only writer, in the session's holder: appends bytes at the end, and frees old ones in place.
//!
//! A byte's offset never changes, and the new first offset is published in the events header before bytes are freed, so
//! that a reader that reads the header after the bytes never takes a hole for data.

use crate::{EventsWriter, JOURNAL_FILE, Offset};
use rustix::fs::{FallocateFlags, SeekFrom};
use rustix::io::{Errno, retry_on_intr};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

/// No common file system has smaller blocks, and a punch inside a block frees nothing.
const BLOCK_BYTES_MIN: u64 = 4096;

/// How much output a session keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retention {
    /// The newest bytes that are always kept.
    pub bytes_max: u64,
    /// How many more bytes may accumulate before they are freed at once: each punch is a transaction of the file
    /// system.
    pub slack_bytes: u64,
}

impl Retention {
    /// Keeps everything.
    pub const UNLIMITED: Self = Self { bytes_max: u64::MAX, slack_bytes: 0 };

    /// Keeps the newest `bytes_max` bytes, and frees in steps of a mebibyte, which costs less than writing it did.
    #[must_use]
    pub fn newest(bytes_max: u64) -> Self {
        Self { bytes_max, slack_bytes: 1 << 20 }
    }
}

/// The result of [`Writer::retain`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Retained {
    /// Nothing had to be freed, or freeing was refused earlier and is not tried again.
    All,
    /// The journal now begins here; everything before is freed.
    From(Offset),
    /// The file system cannot free a part of a file. Reported once; the journal keeps everything from now on.
    Refused(Errno),
}

/// The writer at the end of a growing journal.
#[derive(Debug)]
pub struct Writer {
    file: File,
    retention: Retention,
    /// The alignment of punches; a part of a block would only be overwritten with zeros.
    block_bytes: u64,
    end: Offset,
    first: Offset,
    /// Holes were punched up to here; smaller than `first` after a failed punch, which is then repeated.
    punched: Offset,
    punch: Punch,
}

/// Whether this file system can punch holes.
#[derive(Debug)]
enum Punch {
    Untried,
    Works,
    Refused,
}

impl Writer {
    /// Creates the journal of a new session; an error if it exists.
    pub fn create(dir: &Path, retention: Retention) -> io::Result<Self> {
        // Not O_APPEND: splice(2) refuses such files, and every write has an explicit offset anyway.
        let file =
            OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(dir.join(JOURNAL_FILE))?;
        Self::on(file, Offset::ZERO, retention)
    }

    /// Continues an existing journal, whose first offset is in `events`.
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

    /// The file, for splice(2) to it at [`Writer::end`].
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// The offset of the next byte.
    #[must_use]
    pub fn end(&self) -> Offset {
        self.end
    }

    /// The offset of the oldest retained byte.
    #[must_use]
    pub fn first(&self) -> Offset {
        self.first
    }

    /// Counts `n` bytes that were spliced to [`Writer::end`].
    pub fn advance(&mut self, n: u64) {
        self.end = self.end.plus(n);
    }

    /// Whether another process has made the file shorter than what was written. A write at [`Writer::end`] would then
    /// leave zeros before it that nobody printed, so [`Writer::give_up`] comes first.
    ///
    /// The end is sought and not stat'ed because that costs less: every write asks. All writes have explicit offsets,
    /// so the file's own position is not used.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        rustix::fs::seek(&self.file, SeekFrom::End(0)).is_ok_and(|size| size < self.end.0)
    }

    /// Gives up everything written so far: readers get it as a gap, and later bytes keep their offsets.
    pub fn give_up(&mut self, events: &EventsWriter) -> io::Result<()> {
        self.begin_at(self.end, events)?;
        self.file.set_len(self.end.0)
    }

    /// Publishes the new first offset, before anything is freed or written.
    fn begin_at(&mut self, first: Offset, events: &EventsWriter) -> io::Result<()> {
        events.publish_first(first)?;
        if self.first == Offset::ZERO {
            // Synced once, so that a header with zero means zero even after the machine went down.
            events.sync()?;
        }
        self.first = first;
        Ok(())
    }

    /// Reads back the newest bytes, as many as exist and fit.
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

    /// Appends bytes and returns how many were written. Fewer than given means a full disk (or the like); the caller
    /// may retry the rest. An error is returned only if no byte was written.
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

    /// Frees bytes that are too old, and nothing at or after `keep_from`. Cheap if there is nothing to do, so call it
    /// after every write. After an error it may be called again: bytes that were given up but not freed are freed then.
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
                self.begin_at(first, events)?;
            }
        }
        if self.punched < self.first {
            self.punch_hole(self.punched, self.first.since(self.punched))?;
            self.punched = self.first;
            return Ok(Retained::From(self.first));
        }
        Ok(Retained::All)
    }

    /// Syncs everything written so far.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Tests with a punch far behind the end of the file, so that nothing is given up before the answer is known.
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

/// The first offset of a journal whose header says `first`. After the machine went down, a later punch may be on disk
/// without the header's page; a journal has no other holes, so the file system knows the truth then.
///
/// A journal that was never punched is not examined: ZFS also reports a block of printed zeros as a hole.
pub(crate) fn first_kept(file: &File, first: Offset) -> io::Result<Offset> {
    if first == Offset::ZERO { Ok(first) } else { first_data(file, first) }
}

/// The first offset at or after `first` that is not in a hole.
pub(crate) fn first_data(file: &File, first: Offset) -> io::Result<Offset> {
    match rustix::fs::seek(file, SeekFrom::Data(first.0)) {
        Ok(data) => Ok(Offset(data)),
        // Only a hole up to the end.
        Err(Errno::NXIO) => Ok(first.max(Offset(file.metadata()?.len()))),
        // Not every file system supports this.
        Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(first),
        Err(errno) => Err(errno.into()),
    }
}
