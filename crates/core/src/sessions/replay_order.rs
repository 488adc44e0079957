//! Replays events and output in the order in which they happened, for an ended session or one from before this server.
//!
//! A record has the length of the journal when it was written, and a marker's record is written before the marker is
//! announced. So an event is replayed after the output up to the previous event, and before its own output. Then every
//! marker finds its record, and only pending ones have to be remembered.

use std::io;

use journal::{Event, EventsReader, Kind};

use crate::host::holders::MaskedFolder;

/// The events that were not replayed yet.
#[derive(Debug)]
pub(crate) struct ReplayOrder {
    events: Option<EventsReader>,
    next: Option<Event>,
    /// The journal's length when the newest replayed event was written.
    reached: u64,
}

/// The next step of a replay.
#[derive(Debug)]
pub(crate) enum Step {
    Event(Event),
    /// Output up to here, before the next event.
    OutputTo(u64),
    /// There is no further event: all output.
    AllOutput,
}

impl ReplayOrder {
    /// Without events if they cannot be read at all.
    pub(crate) fn new(events: Option<EventsReader>) -> Self {
        Self { events, next: None, reached: 0 }
    }

    /// The next step, if events may be read up to `events_end` and output, which was read up to `at`, up to `end`. With
    /// `is_live`, records are read at once, but for a typed line.
    pub(crate) fn next(&mut self, events_end: u64, at: u64, end: u64, is_live: bool) -> io::Result<Step> {
        if self.next.is_none() {
            self.next = self.events.as_mut().map(|events| events.next(events_end)).transpose()?.flatten();
        }
        let Some(next) = &self.next else { return Ok(Step::AllOutput) };
        // A typed line is recorded before anything of it is typed, so all markers up to there are of earlier commands.
        let is_line = next.kind == Kind::TYPED;
        let from = if is_line { next.offset.0 } else { self.reached };
        // The journal may be shorter than its events say, if the machine went down.
        let before = from.min(end);
        if (is_line || !is_live && next.offset.0 > self.reached) && at < before {
            return Ok(Step::OutputTo(before));
        }
        self.reached = self.reached.max(next.offset.0);
        Ok(self.next.take().map_or(Step::AllOutput, Step::Event))
    }

    /// The size of the events file.
    pub(crate) fn events_end(&self) -> io::Result<u64> {
        self.events.as_ref().map_or(Ok(0), EventsReader::len)
    }

    /// The error for records before `events_end` that cannot be read, once all others were replayed. A living holder
    /// publishes only ends of whole records; the file of a dead one may end with zeros, which are not damage.
    pub(crate) fn damage(&self, events_end: u64, is_published: bool) -> io::Result<Option<String>> {
        let Some(events) = &self.events else { return Ok(None) };
        let at = if is_published {
            Some(events.at()).filter(|at| *at < events_end)
        } else {
            events.damaged_at(events_end)?
        };
        Ok(at.map(|at| format!("damaged: events cannot be read from byte {at} on; later events are unknown")))
    }
}

/// The events of a session; `None` if their header is damaged, which [`open`] reports.
pub(crate) fn events(folder: &MaskedFolder) -> io::Result<Option<EventsReader>> {
    match folder.events() {
        Err(e) if is_damage(&e) => Ok(None),
        events => events.map(Some),
    }
}

/// Whether the file itself cannot be read as it is: damaged, gone, or closed to this server. Other errors pass.
pub(in crate::sessions) fn is_damage(e: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, IsADirectory, NotADirectory, NotFound, PermissionDenied, UnexpectedEof};
    [InvalidData, UnexpectedEof, NotFound, IsADirectory, NotADirectory, PermissionDenied].contains(&e.kind())
}
