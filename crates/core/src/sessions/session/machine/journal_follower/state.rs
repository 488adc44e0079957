//! The position in the session's files, up to the tail that its holder publishes, and the frames that wait for the rest.

use std::collections::VecDeque;

use journal::EventsReader;
use tokio::sync::watch;
use tokio::time::Instant;
use wire::{FromHolder, Tail};

use crate::limits;
use crate::sessions::replay_order::ReplayOrder;

/// The state of reading a session's events and output.
pub(crate) struct JournalFollower {
    /// How far the session may be read; readers follow it.
    tail: watch::Sender<Tail>,
    pub(crate) order: ReplayOrder,
    /// Events up to the tail were not read yet, so later frames wait.
    pub(crate) has_events: bool,
    pub(crate) frames: VecDeque<FromHolder>,
    /// Events or output up to the tail were not read yet.
    pub(crate) is_behind: bool,
    /// The rest of the output up to the tail cannot be read.
    pub(crate) journal_unreadable: bool,
    /// Events and output from before this server are being read. Until then no request is answered: a partial replay
    /// would name the wrong command as the running one.
    pub(crate) is_replaying: bool,
    /// The end of the output that existed when this server connected.
    pub(crate) replays_to: u64,
    /// Queries in that output for which no reply was found yet.
    pub(crate) unanswered: VecDeque<(terminal::Query, u64)>,
    /// Since when the marker of an ended command is missing although all output was read.
    pub(crate) marker_missed_at: Option<Instant>,
}

impl JournalFollower {
    pub(crate) fn new(events: Option<EventsReader>, tail: watch::Sender<Tail>, early: Vec<FromHolder>) -> Self {
        Self {
            tail,
            order: ReplayOrder::new(events),
            has_events: false,
            frames: early.into(),
            is_behind: false,
            journal_unreadable: false,
            is_replaying: true,
            replays_to: 0,
            unanswered: VecDeque::new(),
            marker_missed_at: None,
        }
    }

    /// The next frame that can be handled now. The events that it refers to must have been read; a state of the foreground
    /// also needs all output from before it.
    pub(crate) fn next_frame(&mut self) -> Option<FromHolder> {
        let is_state = matches!(self.frames.front(), Some(FromHolder::Observed(_)));
        let is_early = self.has_events || is_state && self.is_replaying && self.is_behind;
        if is_early { None } else { self.frames.pop_front() }
    }

    /// When the commands end whose markers did not come.
    pub(crate) fn markers_expire_at(&self) -> Option<Instant> {
        self.marker_missed_at.map(|at| at + limits::MARKER_PATIENCE)
    }

    /// How far the session may be read.
    pub(crate) fn tail(&self) -> Tail {
        *self.tail.borrow()
    }

    /// The holder has published this tail.
    pub(crate) fn on_tail(&mut self, tail: Tail) {
        let is_newer = self.tail.send_if_modified(|t| {
            let is_newer = tail != *t && tail.events >= t.events;
            if is_newer {
                *t = tail;
            }
            is_newer
        });
        if is_newer {
            (self.has_events, self.is_behind, self.journal_unreadable) = (true, true, false);
        }
    }
}
