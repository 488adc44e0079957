//! Publishes the session to its viewers: how far they may read, its events, and the screen from which a viewer
//! continues.
//!
//! Everything is published at the end of a turn, without waiting for any viewer.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::watch;

use super::{Now, ScreenSnapshot, Session};
use crate::action::{EndedBy, Foreground, ServerEventKind, SessionEvent};
use crate::limits;
use crate::sessions::event_log::EventLog;
use crate::sessions::render::published::{Noted, Published};
use crate::sessions::views;

/// Journal bytes that are fed to the screen per turn while a viewer waits for it: more than a turn reads, so that it
/// catches up, and few enough for the other sessions to get their turns.
const DRAW_CHUNK: u64 = 2 * limits::SCAN_CHUNK as u64;

/// The channels on which viewers follow the session.
pub(super) struct Publisher {
    /// The state that viewers follow.
    feed: watch::Sender<Published>,
    /// Events that will be published next.
    notes: Vec<Noted>,
    /// The event log that followers of all sessions read.
    event_log: Arc<EventLog>,
}

impl Publisher {
    pub(super) fn new(feed: watch::Sender<Published>, event_log: Arc<EventLog>) -> Self {
        Self { feed, notes: Vec::new(), event_log }
    }

    /// How many events were published.
    pub(super) fn count(&self) -> u64 {
        self.feed.borrow().count
    }

    /// Takes what a step brought: events that will be published next, waits that ended, bytes of output that were read.
    pub(super) fn take(&mut self, notes: Vec<Noted>, waited: Vec<EndedBy>, read: usize) {
        self.notes.extend(notes);
        waited.into_iter().for_each(|ended_by| self.event_log.metrics.waited(ended_by));
        if read > 0 {
            self.event_log.metrics.read(read);
        }
    }

    /// Publishes the present state. A foreground state from before the newest input is not published.
    pub(super) fn publish(&mut self, session: &Session, now: Now) {
        if session.follower.is_replaying {
            return;
        }
        self.note_room(session);
        let foreground = session.foreground();
        let is_known = session.foreground.typing == 0
            && (session.foreground.state.is_some() || session.timeline.log().current.is_none());
        let held_from = session.timeline.shown_to(now.us);
        let is_over = session.link.is_gone;
        let to = if is_over { session.timeline.output().scanner.position() } else { held_from };
        let (timeline, notes, mut told) = (&session.timeline, &mut self.notes, Vec::new());
        self.feed.send_if_modified(|now| {
            let is_new = is_known && now.foreground != Some(foreground);
            if is_new {
                // The first state, before a viewer can connect, is no event.
                if now.foreground.replace(foreground).is_some() {
                    notes.push(Noted { at: held_from, event: Arc::new(SessionEvent::Foreground(foreground)) });
                }
            }
            let has_markers = timeline.output().markers.back() != now.markers.last();
            let changed = has_markers || !notes.is_empty() || (to, is_over) != (now.to, now.is_over);
            if timeline.log().newest_handover().as_ref() != now.handovers.handovers.last() {
                now.handovers = timeline.log().handovers(0);
            }
            if has_markers {
                now.markers = timeline.output().markers.iter().copied().collect();
            }
            (now.to, now.is_over) = (to, is_over);
            told.extend(notes.iter().map(|noted| Arc::clone(&noted.event)));
            notes.drain(..).for_each(|noted| now.note(noted));
            changed
        });
        for event in told {
            self.notify_all(session, &event);
        }
    }

    /// Logs once that the session waits for disk space, and once that it continues.
    fn note_room(&self, session: &Session) {
        let (id, trouble) = (&session.shared.id, &session.timeline.trouble().full_disk);
        if session.shared.stalled.swap(trouble.is_some(), Ordering::AcqRel) == trouble.is_some() {
            return;
        }
        match trouble {
            Some(trouble) => {
                tracing::warn!(session = %id, trouble, "the session waits for room on the disk");
                self.event_log.stalled.notify_one();
            }
            None => tracing::warn!(session = %id, "the session waits for room on the disk no longer"),
        }
    }

    /// Publishes the event to the event log of all sessions, if it belongs there.
    fn notify_all(&self, session: &Session, event: &SessionEvent) {
        let what = match event {
            SessionEvent::Started(command) => ServerEventKind::Started(command.clone()),
            SessionEvent::Completed(command) => ServerEventKind::Completed(command.clone()),
            SessionEvent::Foreground(now @ (Foreground::InputWanted | Foreground::PasswordWanted)) => {
                ServerEventKind::Wanted(*now)
            }
            SessionEvent::Exited(exit) => {
                self.event_log.metrics.dropped(session.timeline.end().dropped_records);
                ServerEventKind::Terminated(exit.clone())
            }
            SessionEvent::LimitHit(hit) => ServerEventKind::LimitHit(*hit),
            SessionEvent::Foreground(_) | SessionEvent::Resized { .. } | SessionEvent::Missed(_) => return,
        };
        self.event_log.notify(&session.shared, what);
    }
}

impl Session {
    /// Queues an event that viewers get once they have the output up to `at`. Events from before this server are not
    /// published.
    pub(super) fn note(&mut self, at: u64, event: SessionEvent) {
        if !self.follower.is_replaying {
            self.effects.notes.push(Noted { at, event: Arc::new(event) });
        }
    }

    /// Publishes a command's beginning. If it ended in the same turn, its end is published at the end of its output.
    pub(super) fn note_start(&mut self, id: u32) {
        if let Some(command) = self.timeline.log().command(id) {
            let begun = crate::sessions::timeline::Command { end: None, ..command.clone() };
            let view = views::command_view(&self.shared, &begun, command.output_from());
            self.note(view.start_offset, SessionEvent::Started(Box::new(view)));
        }
    }

    /// Publishes a command's end.
    pub(super) fn note_end(&mut self, id: u32) {
        if let Some(command) = self.timeline.log().command(id) {
            let view = views::command_view(&self.shared, command, self.timeline.output().scanner.position());
            self.note(view.end_offset.unwrap_or(view.start_offset), SessionEvent::Completed(Box::new(view)));
        }
    }

    /// Feeds more output to the screen, and answers the viewers that wait for it once it is up to date.
    pub(super) fn draw_some(&mut self, count: u64) {
        self.waits.pictures.retain(|reply| !reply.is_closed());
        if self.waits.pictures.is_empty() {
            return;
        }
        let to = self.shown_to();
        let at = self.screen.as_ref().map_or_else(|| self.shared.reader.first().unwrap_or_default().0, |(_, at)| *at);
        let next = to.min(at + DRAW_CHUNK);
        self.screen_at(next);
        if next < to {
            return;
        }
        // Viewers continue at the offset that was just published: no byte is in both, and none in neither.
        for reply in std::mem::take(&mut self.waits.pictures) {
            let rows = self.timeline.rows();
            let _ = reply.send(ScreenSnapshot { screen: self.screen_view(), rows, count });
        }
    }

    /// Publishes the end and stores the command in the history, which outlives this actor.
    pub(super) fn put_on_record(&mut self, id: u32) {
        self.note_end(id);
        self.put_row(id);
    }

    /// Stores only the history row, also of a command that has not ended.
    pub(super) fn put_row(&mut self, id: u32) {
        if let Some(command) = self.timeline.log().command(id) {
            self.effects.rows.push(views::history_row(&self.shared.id, command));
        }
    }
}
