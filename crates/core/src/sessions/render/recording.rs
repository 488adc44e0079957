//! Records a session as an asciicast, version 2 or 3: read from the journal a page at a time, as its consumer asks for
//! it.
//!
//! The journal has no times of its own. Output is stamped with the first time at which it is known to exist: never too
//! early, and at the latest with the next event. The recording omits ptyd's markers and the queries that ptyd answers.
//! Input is not in the recording at all, so a password cannot be.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use journal::{Event, Offset, Read, Record};
use terminal::{Boundaries, Nonce, ScanEvent, Scanner};

use super::handover::Handovers;
use crate::action::{CastVersion, Pages};
use crate::lane::AnswerRoom;
use crate::sessions::replay_order::{ReplayOrder, Step};
use crate::sessions::shared::Shared;
use crate::sessions::timeline::nested_line::NestedLine;

/// Journal bytes in one event of the recording, at most.
const CHUNK_BYTES: usize = 64 << 10;
/// A page is returned at this size.
const PAGE_BYTES: usize = 64 << 10;

/// The range to record, and its known times.
pub(in crate::sessions) struct Extent {
    pub(in crate::sessions) events_end: u64,
    pub(in crate::sessions) end: u64,
    /// Offsets, each with the time when the journal had reached it.
    pub(in crate::sessions) marks: VecDeque<(u64, u64)>,
    /// The time when the journal had reached its end.
    pub(in crate::sessions) end_us: u64,
}

/// The state of a recording.
pub(in crate::sessions) struct Recorder {
    shared: Arc<Shared>,
    replay: ReplayOrder,
    version: CastVersion,
    extent: Extent,
    scanner: Scanner,
    boundaries: Boundaries,
    /// The journal was read up to this offset.
    at: u64,
    /// Bytes that were read but not recorded, because a marker may begin in them, with their offset.
    held: (u64, Vec<u8>),
    /// Ranges to leave out of them.
    hidden: VecDeque<std::ops::Range<u64>>,
    handovers: Handovers,
    /// The command of a nested shell, whose markers are omitted, too.
    inside: Option<NestedLine>,
    /// An incomplete UTF-8 character.
    character: Vec<u8>,
    /// New sizes, with offset and time.
    resizes: VecDeque<(u64, u64, (u16, u16))>,
    /// The newest event known to be behind the bytes that were read: its offset and time.
    witness: (u64, u64),
    exit: Option<(u64, i32)>,
    begun_us: u64,
    told_us: u64,
    page: Vec<u8>,
    is_over: bool,
    /// The room that it takes among the answers of the session's owner.
    _room: AnswerRoom,
}

impl Recorder {
    pub(in crate::sessions) fn new(
        shared: Arc<Shared>,
        room: AnswerRoom,
        version: CastVersion,
        extent: Extent,
    ) -> io::Result<Self> {
        let first = shared.reader.first()?.0.min(extent.end);
        let replay = ReplayOrder::new(crate::sessions::replay_order::events(&shared.folder)?);
        let begun_us = shared.meta.created_us;
        let mut recorder = Self {
            replay,
            version,
            extent,
            scanner: Scanner::new(first),
            boundaries: Boundaries::new(),
            at: first,
            held: (first, Vec::new()),
            hidden: VecDeque::new(),
            handovers: Handovers::default(),
            inside: None,
            character: Vec::new(),
            resizes: VecDeque::new(),
            witness: (0, begun_us),
            exit: None,
            begun_us,
            told_us: begun_us,
            page: Vec::new(),
            is_over: false,
            _room: room,
            shared,
        };
        recorder.header();
        Ok(recorder)
    }

    fn header(&mut self) {
        let spec = &self.shared.spec;
        let env = |name: &str| {
            let value = spec.env.iter().find_map(|v| v.strip_prefix(name.as_bytes())?.strip_prefix(b"="));
            value.map(|v| String::from_utf8_lossy(v).into_owned())
        };
        let shell = String::from_utf8_lossy(&spec.program).into_owned();
        let (timestamp, term) = (self.begun_us / 1_000_000, env("TERM").unwrap_or_default());
        let mut header = match self.version {
            CastVersion::V2 => serde_json::json!({ "version": 2, "width": spec.cols, "height": spec.rows,
                "timestamp": timestamp, "env": { "SHELL": shell, "TERM": term } }),
            CastVersion::V3 => serde_json::json!({ "version": 3, "timestamp": timestamp,
                "term": { "cols": spec.cols, "rows": spec.rows, "type": term }, "env": { "SHELL": shell } }),
        };
        if let Some(name) = &self.shared.meta.name.get() {
            header["title"] = name.as_str().into();
        }
        self.page.extend(header.to_string().into_bytes());
        self.page.push(b'\n');
    }

    /// Appends one line of the recording.
    fn notify(&mut self, us: u64, code: &str, data: &str) {
        let us = us.max(self.told_us);
        let time = match self.version {
            CastVersion::V2 => us - self.begun_us,
            CastVersion::V3 => us - self.told_us,
        };
        self.told_us = us;
        let data = serde_json::Value::from(data);
        let line = format!("[{}.{:06}, \"{code}\", {data}]\n", time / 1_000_000, time % 1_000_000);
        self.page.extend(line.into_bytes());
    }

    fn event(&mut self, event: &Event) {
        if event.offset.0 > self.witness.0 || event.offset.0 == 0 {
            self.witness = (event.offset.0, event.time_us);
        }
        let lost = match event.record() {
            Some(Record::Accepted { id, nonce, .. }) => Nonce::parse(nonce.to_string().as_bytes())
                .and_then(|nonce| self.boundaries.record(terminal::Record::Started { nonce, id })),
            Some(Record::Attested { report }) => {
                terminal::parse_record(report).and_then(|record| self.boundaries.record(record))
            }
            Some(Record::Typed { id, is_inside: true, nonce, .. }) => {
                self.inside = Some(NestedLine::known(id, nonce));
                None
            }
            Some(Record::Resized { cols, rows }) => {
                self.resizes.push_back((event.offset.0, event.time_us, (cols, rows)));
                None
            }
            Some(Record::Exited { wait_status, .. }) => {
                self.exit = Some((event.time_us, wait_status));
                None
            }
            _ => None,
        };
        // An expired record has no marker, so nothing is left out for it.
        drop(lost);
    }

    /// Reads some output up to `to`; false if there is none.
    fn output(&mut self, to: u64, otherwise_us: u64) -> io::Result<bool> {
        let mut to = to.min(self.at + CHUNK_BYTES as u64);
        if let Some((offset, ..)) = self.resizes.iter().find(|(offset, ..)| *offset > self.at) {
            to = to.min(*offset);
        }
        while self.extent.marks.front().is_some_and(|(offset, _)| *offset <= self.at) {
            self.extent.marks.pop_front();
        }
        let us = match self.extent.marks.front() {
            Some((offset, us)) if *offset < to => {
                to = *offset;
                (*us).min(otherwise_us)
            }
            Some((_, us)) => (*us).min(otherwise_us),
            None => otherwise_us,
        };
        let mut buffer = vec![0; usize::try_from(to - self.at).unwrap_or(CHUNK_BYTES).min(CHUNK_BYTES)];
        match self.shared.reader.read(Offset(self.at), Offset(to), &mut buffer)? {
            Read::Bytes(n) => {
                self.bytes(&buffer[..n], us)?;
                self.at += n as u64;
            }
            Read::Gap { to, .. } | Read::Cut { to, .. } => {
                self.at = to.0;
                (self.scanner, self.held) = (Scanner::new(to.0), (to.0, Vec::new()));
                self.hidden.clear();
            }
            Read::End => return Ok(false),
        }
        Ok(true)
    }

    fn bytes(&mut self, bytes: &[u8], us: u64) -> io::Result<()> {
        let Self { scanner, boundaries, hidden, inside, .. } = self;
        scanner.feed(bytes, &mut |found| match found {
            ScanEvent::Marker { kind, nonce, from, to } => {
                let is_nested = inside.as_mut().is_some_and(|inside| inside.take_mark(kind, &nonce).is_some());
                if is_nested || !boundaries.marker(kind, &nonce, from, to).is_empty() {
                    hidden.push_back(from..to);
                }
            }
            ScanEvent::Query { from, to, .. } => hidden.push_back(from..to),
        });
        self.held.1.extend_from_slice(bytes);
        self.let_go(self.scanner.held_from(), us)
    }

    /// Records the held bytes up to `to`.
    fn let_go(&mut self, to: u64, us: u64) -> io::Result<()> {
        let Shared { folder, reader, .. } = &*self.shared;
        let cuts = self.handovers.cuts(folder, reader, self.held.0, to)?;
        while self.held.0 < to {
            let is_whole = self.hidden.front().is_some_and(|range| range.end <= to);
            let hidden = if is_whole { self.hidden.pop_front() } else { None };
            let shown_to = hidden.as_ref().map_or(to, |range| range.start);
            let (from, bytes) = self.take(shown_to);
            self.print(&cuts.apply(&bytes, from), us);
            if let Some(range) = hidden {
                self.take(range.end);
            }
        }
        Ok(())
    }

    fn take(&mut self, to: u64) -> (u64, Vec<u8>) {
        let n = usize::try_from(to - self.held.0).unwrap_or(usize::MAX).min(self.held.1.len());
        (std::mem::replace(&mut self.held.0, to), self.held.1.drain(..n).collect())
    }

    /// The format is text: incomplete characters are held back, and invalid bytes become U+FFFD.
    fn print(&mut self, bytes: &[u8], us: u64) {
        let mut all = std::mem::take(&mut self.character);
        all.extend_from_slice(bytes);
        self.character = all.split_off(all.len() - terminal::unfinished_character(&all));
        if !all.is_empty() {
            self.notify(us, "o", &String::from_utf8_lossy(&all));
        }
    }

    fn resize_due(&mut self) {
        while let Some((offset, us, (cols, rows))) = self.resizes.front().copied()
            && offset <= self.at
        {
            self.resizes.pop_front();
            self.notify(us, "r", &format!("{cols}x{rows}"));
        }
    }

    fn end(&mut self) -> io::Result<()> {
        let us = self.extent.end_us;
        self.let_go(self.at, us)?;
        let rest = std::mem::take(&mut self.character);
        if !rest.is_empty() {
            self.notify(us, "o", &String::from_utf8_lossy(&rest));
        }
        if let (CastVersion::V3, Some((us, status))) = (self.version, self.exit) {
            let code = if status & 0x7f == 0 { status >> 8 & 0xff } else { 128 + (status & 0x7f) };
            self.notify(us, "x", &code.to_string());
        }
        self.is_over = true;
        Ok(())
    }
}

impl Pages for Recorder {
    fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        while self.page.len() < PAGE_BYTES && !self.is_over {
            self.resize_due();
            match self.replay.next(self.extent.events_end, self.at, self.extent.end, false)? {
                Step::Event(event) => self.event(&event),
                Step::OutputTo(to) => {
                    if !self.output(to, self.witness.1)? {
                        // A journal shorter than its events say must not hold up events.
                        self.at = self.at.max(to);
                    }
                }
                Step::AllOutput => {
                    let is_last = self.at >= self.extent.end;
                    let us = if self.witness.0 >= self.extent.end { self.witness.1 } else { self.extent.end_us };
                    if is_last || !self.output(self.extent.end, us)? {
                        self.end()?;
                    }
                }
            }
        }
        let page = std::mem::take(&mut self.page);
        Ok((!page.is_empty()).then_some(page))
    }
}
