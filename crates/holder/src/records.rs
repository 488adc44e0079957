//! The session's journal and its event log, of which this process is the only writer.
//!
//! A report of the shell that the disk does not take waits, and while one waits, no tail may be published: a reader of a
//! published tail finds every marker's record already there.

use std::collections::VecDeque;
use std::io;
use std::path::Path;

use journal::{EventsWriter, Kind, Offset, Record, Retained, Retention, TroubleKind, Writer};
use sys::time;
use wire::Tail;

/// How many of the newest bytes are searched for a marker that came together with its report: only a prompt follows it.
pub(crate) const MARKER_SOUGHT_BYTES: usize = 4096;

#[derive(Debug)]
pub(crate) struct Records {
    journal: Writer,
    events: EventsWriter,
    /// Reports that could not be appended yet, with the wall time of their arrival.
    held: VecDeque<(u64, Vec<u8>)>,
    /// The wall clock less the time since boot, as the records show it.
    clock_us: i64,
}

/// A smaller step of the wall clock changes no duration that matters. The slow adjustment of a clock adds up to one in
/// twenty seconds at most.
const STEP_US: u64 = 10_000;

/// `None` if this process did not run between the two clocks: the next record finds the step.
fn clock_us() -> Option<i64> {
    let before = time::since_boot_us();
    let wall = time::wall_us();
    let is_one_moment = time::since_boot_us() - before < STEP_US / 2;
    is_one_moment.then_some(wall.cast_signed() - before.cast_signed())
}

impl Records {
    /// Creates both files; the journal keeps at least this many bytes, 0 keeps all.
    pub(crate) fn create(folder: &Path, journal_bytes_max: u64) -> io::Result<Self> {
        let events = EventsWriter::create(folder)?;
        let retention = match journal_bytes_max {
            0 => Retention::UNLIMITED,
            n => Retention::newest(n),
        };
        Ok(Self {
            journal: Writer::create(folder, retention)?,
            events,
            held: VecDeque::new(),
            clock_us: clock_us().unwrap_or(0),
        })
    }

    /// The end of the journal.
    pub(crate) fn end(&self) -> Offset {
        self.journal.end()
    }

    /// The journal, for new output.
    pub(crate) fn journal(&mut self) -> &mut Writer {
        &mut self.journal
    }

    /// The end of both files; `None` while reports wait for the disk.
    pub(crate) fn tail(&self) -> Option<Tail> {
        self.held.is_empty().then(|| Tail { journal: self.journal.end(), events: self.events.end() })
    }

    /// Appends a record at the end of the journal.
    pub(crate) fn append(&mut self, record: &Record<'_>) -> io::Result<()> {
        self.note_step();
        self.events.record(time::wall_us(), self.journal.end(), record).map(drop)
    }

    /// Records a step of the wall clock before the first record behind it, so that readers can tell it from time that has passed.
    fn note_step(&mut self) {
        let Some(clock_us) = clock_us() else { return };
        let by_us = clock_us - self.clock_us;
        if by_us.unsigned_abs() >= STEP_US
            && self.events.record(time::wall_us(), self.journal.end(), &Record::ClockSet { by_us }).is_ok()
        {
            self.clock_us = clock_us;
        }
    }

    /// Appends a record whose loss is acceptable on a full disk; reports and the exit are retried instead.
    pub(crate) fn note(&mut self, record: &Record<'_>) {
        let _ = self.append(record);
    }

    pub(crate) fn trouble(&mut self, what: TroubleKind, errno: i32, text: &[u8]) {
        self.note(&Record::Trouble { what, errno, text });
    }

    /// Keeps a report of the shell until [`Self::append_reports`] has appended it.
    pub(crate) fn keep_report(&mut self, report: Vec<u8>) {
        self.note_step();
        self.held.push_back((time::wall_us(), report));
    }

    pub(crate) fn has_waiting_reports(&self) -> bool {
        !self.held.is_empty()
    }

    /// Appends the reports that wait; false if the disk did not take all of them.
    pub(crate) fn append_reports(&mut self) -> bool {
        while let Some((at, report)) = self.held.front() {
            if self.events.append(Kind::ATTESTED, *at, self.journal.end(), &[report]).is_err() {
                return false;
            }
            self.held.pop_front();
        }
        true
    }

    /// Frees old output as the retention says, but none behind `published`.
    pub(crate) fn retain(&mut self, published: Offset) {
        match self.journal.retain(&self.events, published) {
            Ok(Retained::From(first)) => self.note(&Record::Retained { first }),
            Ok(Retained::Refused(errno)) => {
                self.trouble(TroubleKind::PUNCH_REFUSED, errno.raw_os_error(), b"old output is kept");
            }
            Ok(Retained::All) | Err(_) => {}
        }
    }

    /// Another process has cut the journal: the output goes on at its offset, and the output before it is reported as
    /// missing.
    pub(crate) fn give_up_journal(&mut self) -> io::Result<()> {
        self.journal.give_up(&self.events)?;
        self.trouble(TroubleKind::JOURNAL_CUT, 0, b"another process has cut the journal");
        Ok(())
    }

    /// The newest bytes of the journal, as many as the buffer takes.
    pub(crate) fn newest<'b>(&self, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        self.journal.newest(buffer).ok()
    }

    /// The offset of this nonce within the newest `bytes` bytes of the journal.
    pub(crate) fn newest_place_of(&self, nonce: &[u8], bytes: u64) -> Option<Offset> {
        let bytes = bytes.min(MARKER_SOUGHT_BYTES as u64);
        let mut newest = [0; MARKER_SOUGHT_BYTES];
        let newest = self.newest(newest.get_mut(..bytes as usize)?)?;
        self.place_in(newest, nonce)
    }

    /// The offset of this nonce in these newest bytes of the journal.
    pub(crate) fn place_in(&self, newest: &[u8], nonce: &[u8]) -> Option<Offset> {
        let at = newest.windows(nonce.len()).rposition(|w| w == nonce)?;
        Some(Offset(self.journal.end().0 - newest.len() as u64 + at as u64))
    }

    /// The last record is written: the room that was reserved behind it goes back to the disk, and the event log is
    /// synced.
    pub(crate) fn close(&mut self) {
        let _ = self.events.release();
        let _ = self.events.sync();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_is_published_only_when_no_report_waits() {
        let folder = tempfile::tempdir().unwrap();
        let mut records = Records::create(folder.path(), 0).unwrap();
        let before = records.tail().unwrap();
        records.keep_report(b"D;;n;0;0;0;;/".to_vec());
        assert_eq!((records.tail(), records.has_waiting_reports()), (None, true));
        assert!(records.append_reports());
        assert!(records.tail().unwrap().events > before.events);
    }

    #[test]
    fn a_nonce_is_found_only_among_the_newest_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let mut records = Records::create(folder.path(), 0).unwrap();
        records.journal().append(b"..abc..abc...").unwrap();
        assert_eq!(records.newest_place_of(b"abc", 13), Some(Offset(7)));
        assert_eq!(records.newest_place_of(b"abc", 6), Some(Offset(7)));
        assert_eq!(records.newest_place_of(b"abc", 5), None);
        records.journal().append(&[b'.'; MARKER_SOUGHT_BYTES]).unwrap();
        assert_eq!(records.newest_place_of(b"abc", u64::MAX), None);
    }
}
