//! The events file of a session: records behind a 64-byte header, written whole, and read as far as they are whole.
//!
//! A record is `len u32 | crc32 u32 | kind u8 | time_us u64 | offset u64 | payload`; `len` counts and the checksum
//! covers everything behind the checksum. A record is there completely or not at all: a torn or damaged record ends the
//! file for a reader, and is cut off when the file is opened for writing.

use crate::event::{Event, Kind, Record};
use crate::{EVENTS_FILE, Masks, Offset, header};
use rustix::fs::FallocateFlags;
use rustix::io::{Errno, retry_on_intr};
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

/// `len` and `crc32`.
const FRAME_BYTES: usize = 8;
/// `kind`, `time_us` and `offset`.
const HEAD_BYTES: usize = 17;
/// The maximum number of parts of a payload.
const PARTS_MAX: usize = 7;

/// Room reserved for a session's last records: the exit, the reason, and a page of text.
const LAST_WORDS_BYTES: u64 = 16 << 10;
/// Room is reserved in steps of this size, so that a record rarely costs a second system call.
const RESERVE_STEP_BYTES: u64 = 64 << 10;

/// Appends to a session's events.
#[derive(Debug)]
pub struct EventsWriter {
    file: File,
    end: u64,
    /// Blocks are reserved up to here, whatever else fills the disk.
    reserved_to: u64,
    reserve_error: Option<Errno>,
}

impl EventsWriter {
    /// Creates the events file of a new session; an error if it exists.
    pub fn create(dir: &Path) -> io::Result<Self> {
        let file =
            OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(dir.join(EVENTS_FILE))?;
        header::write(&file)?;
        Ok(Self::on(file, header::HEADER_BYTES))
    }

    /// Continues behind the last whole record, and cuts off the rest.
    pub fn open(dir: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(dir.join(EVENTS_FILE))?;
        let mut reader = EventsReader::on(file.try_clone()?, Masks::default())?;
        let size = reader.len()?;
        while reader.next(size)?.is_some() {}
        file.set_len(reader.at())?;
        Ok(Self::on(file, reader.at()))
    }

    fn on(file: File, end: u64) -> Self {
        let mut writer = Self { file, end, reserved_to: end, reserve_error: None };
        writer.reserve(RESERVE_STEP_BYTES);
        writer
    }

    /// The offset of the next record: everything before it may be read.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Appends one record and returns the new end of the file. After an error nothing was appended, and the caller may
    /// retry.
    ///
    /// On a full disk only a session's last records ([`Kind::is_last_word`]) may use the room reserved for them.
    pub fn append(&mut self, kind: Kind, time_us: u64, offset: Offset, parts: &[&[u8]]) -> io::Result<u64> {
        let payload_bytes: usize = parts.iter().map(|part| part.len()).sum();
        let too_large = || io::Error::new(io::ErrorKind::InvalidInput, "the event is too large");
        let len = u32::try_from(HEAD_BYTES + payload_bytes).map_err(|_| too_large())?;
        if parts.len() > PARTS_MAX {
            return Err(too_large());
        }
        let record_bytes = (FRAME_BYTES + HEAD_BYTES + payload_bytes) as u64;
        self.make_room(kind, record_bytes)?;

        let head = head(kind, time_us, offset);
        let mut crc = crc32fast::Hasher::new();
        crc.update(&head);
        for part in parts {
            crc.update(part);
        }
        let frame = u64::from(len) | (u64::from(crc.finalize()) << 32);
        let frame = frame.to_le_bytes();

        let mut slices = [IoSlice::new(&[]); PARTS_MAX + 2];
        let sources = [&frame as &[u8], &head];
        for (slot, part) in slices.iter_mut().zip(sources.iter().chain(parts)) {
            *slot = IoSlice::new(part);
        }
        let written = retry_on_intr(|| rustix::io::pwritev(&self.file, &slices, self.end))? as u64;
        if written != record_bytes {
            self.blot(written)?;
            return Err(Errno::NOSPC.into());
        }
        self.end += record_bytes;
        self.reserved_to = self.reserved_to.max(self.end);
        Ok(self.end)
    }

    /// Appends one record of a kind known to this crate.
    pub fn record(&mut self, time_us: u64, offset: Offset, record: &Record<'_>) -> io::Result<u64> {
        let (fixed, rest) = record.encode();
        self.append(record.kind(), time_us, offset, &[fixed.as_bytes(), rest])
    }

    /// Reserves `bytes` more on this disk. A refusal is remembered and is not an error: if a file system cannot
    /// reserve, events are written without.
    pub fn reserve(&mut self, bytes: u64) {
        // Beyond the file's size: a reader must not take reserved room for records.
        let flags = FallocateFlags::KEEP_SIZE;
        match retry_on_intr(|| rustix::fs::fallocate(&self.file, flags, self.end, bytes)) {
            Ok(()) => {
                self.reserved_to = self.reserved_to.max(self.end.saturating_add(bytes));
                self.reserve_error = None;
            }
            Err(errno) => self.reserve_error = Some(errno),
        }
    }

    /// Releases the remaining reservation, after a session's very last record.
    pub fn release(&mut self) -> io::Result<()> {
        self.file.set_len(self.end)?;
        self.reserved_to = self.end;
        Ok(())
    }

    /// Why the newest reservation was refused, if it was.
    #[must_use]
    pub fn reserve_error(&self) -> Option<Errno> {
        self.reserve_error
    }

    /// Syncs everything written so far.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Publishes the journal's first offset. To be called before anything before `first` is freed.
    pub fn publish_first(&self, first: Offset) -> io::Result<()> {
        header::set_first(&self.file, first)
    }

    /// The journal's first offset as last published.
    pub fn first(&self) -> io::Result<Offset> {
        header::first(&self.file)
    }

    /// Keeps the record from using the room of the last records, unless it is one of them.
    fn make_room(&mut self, kind: Kind, record_bytes: u64) -> io::Result<()> {
        let needed = record_bytes.saturating_add(LAST_WORDS_BYTES);
        if self.reserved_to.saturating_sub(self.end) >= needed {
            return Ok(());
        }
        self.reserve(record_bytes.saturating_add(RESERVE_STEP_BYTES));
        match self.reserve_error {
            Some(errno @ (Errno::NOSPC | Errno::DQUOT)) if !kind.is_final() => Err(errno.into()),
            _ => Ok(()),
        }
    }

    /// Overwrites a torn record with zeros, which no reader takes for a record. Its own bytes might pass for one: a
    /// client chose some of them, and a shorter record in their place would leave the rest.
    fn blot(&self, torn_bytes: u64) -> io::Result<()> {
        let zeros = [0u8; 4096];
        let mut at = self.end;
        let torn_end = self.end + torn_bytes;
        while at < torn_end {
            let n = usize::try_from(torn_end - at).unwrap_or(usize::MAX);
            at += self.file.write_at(zeros.get(..n).unwrap_or(&zeros), at)? as u64;
        }
        Ok(())
    }
}

/// Reads as much of a range as there is.
fn read_some_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut got = 0;
    while got < buffer.len() {
        match file.read_at(buffer.get_mut(got..).unwrap_or_default(), at + got as u64) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(got)
}

/// Reads a session's events in order, while they grow or afterwards.
#[derive(Debug)]
pub struct EventsReader {
    file: File,
    at: u64,
    /// The masks of every payload.
    masks: Masks,
}

impl EventsReader {
    /// Opens the events in a session's folder, before the first one. A record has fields that are not text; a text of
    /// [`crate::MASKED_BYTES_MIN`] bytes is not in those by chance.
    pub fn open(dir: &Path, masks: Masks) -> io::Result<Self> {
        Self::on(crate::open_to_read(&dir.join(EVENTS_FILE))?, masks)
    }

    fn on(file: File, masks: Masks) -> io::Result<Self> {
        header::check(&file)?;
        Ok(Self { file, at: header::HEADER_BYTES, masks })
    }

    /// The next whole record that ends at or before `limit`: the end that the holder published, or the file's size if
    /// the holder is dead. `None` may change with a later limit. A damaged record is never skipped, so
    /// [`EventsReader::at`] stays short of a limit that should have been reached.
    pub fn next(&mut self, limit: u64) -> io::Result<Option<Event>> {
        let Some(event) = self.read(limit)? else {
            return Ok(None);
        };
        self.at = event.end;
        Ok(Some(event))
    }

    /// The offset of the next record.
    #[must_use]
    pub fn at(&self) -> u64 {
        self.at
    }

    /// The offset of the next record, if the bytes before `limit`, the size of a dead holder's file, are not a whole
    /// record. Zeros are not damage: a write cut short by a full disk was overwritten with them.
    pub fn damaged_at(&self, limit: u64) -> io::Result<Option<u64>> {
        let mut chunk = [0u8; 4096];
        let mut at = self.at;
        while at < limit {
            let wanted = usize::try_from(limit - at).unwrap_or(usize::MAX).min(chunk.len());
            let got = read_some_at(&self.file, chunk.get_mut(..wanted).unwrap_or_default(), at)?;
            if got == 0 {
                break;
            }
            if chunk.iter().take(got).any(|byte| *byte != 0) {
                return Ok(Some(self.at));
            }
            at += got as u64;
        }
        Ok(None)
    }

    /// Continues at a record's [`Event::at`] or [`Event::end`] from an earlier read.
    pub fn seek(&mut self, at: u64) {
        self.at = at.max(header::HEADER_BYTES);
    }

    /// The file's size.
    #[allow(clippy::len_without_is_empty, reason = "a size that can fail is not a collection's length")]
    pub fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read(&self, limit: u64) -> io::Result<Option<Event>> {
        let head_bytes = (FRAME_BYTES + HEAD_BYTES) as u64;
        if limit.saturating_sub(self.at) < head_bytes {
            return Ok(None);
        }
        // Most records are short, and a single call per record is half the cost.
        let mut start = [0u8; 512];
        let wanted = usize::try_from(limit - self.at).unwrap_or(usize::MAX).min(start.len());
        let got = read_some_at(&self.file, start.get_mut(..wanted).unwrap_or_default(), self.at)?;
        let (Some((frame, rest)), true) = (start.split_first_chunk::<FRAME_BYTES>(), got as u64 >= head_bytes) else {
            return Ok(None);
        };
        let Some((head, rest)) = rest.split_first_chunk::<HEAD_BYTES>() else {
            return Ok(None);
        };
        let frame = u64::from_le_bytes(*frame);
        let (len, crc) = (frame & 0xffff_ffff, (frame >> 32) as u32);
        let Some(payload_bytes) = len.checked_sub(HEAD_BYTES as u64) else {
            return Ok(None);
        };
        // The available bytes bound what a damaged length can make us allocate.
        let is_long = payload_bytes > got as u64 - head_bytes;
        let end = if is_long { limit.min(self.len()?) } else { limit };
        if len > end.saturating_sub(self.at).saturating_sub(FRAME_BYTES as u64) {
            return Ok(None);
        }
        let mut payload = if is_long {
            let mut payload = vec![0u8; payload_bytes as usize];
            self.file.read_exact_at(&mut payload, self.at + head_bytes)?;
            payload
        } else {
            rest.get(..payload_bytes as usize).unwrap_or_default().to_vec()
        };

        let mut hasher = crc32fast::Hasher::new();
        hasher.update(head);
        hasher.update(&payload);
        if hasher.finalize() != crc {
            return Ok(None);
        }
        self.masks.mask(&mut payload);
        let [kind, fields @ ..] = head;
        let (Some(time_us), Some(offset)) = (fields.first_chunk(), fields.last_chunk()) else {
            return Ok(None);
        };
        Ok(Some(Event {
            kind: Kind(*kind),
            time_us: u64::from_le_bytes(*time_us),
            offset: Offset(u64::from_le_bytes(*offset)),
            payload,
            at: self.at,
            end: self.at + FRAME_BYTES as u64 + len,
        }))
    }
}

fn head(kind: Kind, time_us: u64, offset: Offset) -> [u8; HEAD_BYTES] {
    let mut head = [0u8; HEAD_BYTES];
    let fields = [kind.0].into_iter().chain(time_us.to_le_bytes()).chain(offset.0.to_le_bytes());
    for (slot, byte) in head.iter_mut().zip(fields) {
        *slot = byte;
    }
    head
}
