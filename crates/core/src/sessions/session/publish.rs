//! Publishes the session to its viewers: how far they may read, and its events.
//!
//! Everything is published at the end of a turn, without waiting for any viewer.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::watch;

use super::machine::session::Session;
use super::now::Now;
use crate::action::{EndedBy, Foreground, ServerEventKind, SessionEvent, SessionStatus};
use crate::sessions::server_events::ServerEvents;
use crate::sessions::session::machine::snapshot;
use crate::sessions::shared::Shared;
use crate::sessions::summary::Summary;
use crate::sessions::viewer_feed::{Noted, Published};
use crate::store::HistoryRow;

/// The channels on which viewers follow the session.
pub(super) struct Publisher {
    /// The state that viewers follow.
    feed: watch::Sender<Published>,
    /// Events that will be published next.
    notes: Vec<Noted>,
    /// The event log that followers of all sessions read.
    server_events: Arc<ServerEvents>,
}

impl Publisher {
    pub(super) fn new(feed: watch::Sender<Published>, server_events: Arc<ServerEvents>) -> Self {
        Self { feed, notes: Vec::new(), server_events }
    }

    /// How many events were published.
    pub(super) fn count(&self) -> u64 {
        self.feed.borrow().count
    }

    /// Takes what a step brought: events that will be published next, waits that ended, bytes of output that were read.
    pub(super) fn take(&mut self, notes: Vec<Noted>, waited: Vec<EndedBy>, read: usize) {
        self.notes.extend(notes);
        waited.into_iter().for_each(|ended_by| self.server_events.metrics.waited(ended_by));
        if read > 0 {
            self.server_events.metrics.read(read);
        }
    }

    /// Publishes the present state. A foreground state from before the newest input is not published.
    pub(super) fn publish(&mut self, session: &Session, now: Now) {
        if session.cx.follower.is_replaying {
            return;
        }
        self.note_room(session);
        let foreground = session.foreground.foreground(&session.cx);
        let is_known = session.foreground.typing == 0
            && (session.foreground.state.is_some() || session.cx.timeline.log().current.is_none());
        let held_from = session.cx.timeline.shown_to(now.us);
        let is_over = session.cx.link.is_gone;
        let to = if is_over { session.cx.timeline.output().scanner.position() } else { held_from };
        let summary = (!session.foreground.lacks_first_state(&session.cx)).then(|| {
            snapshot::summary(&session.cx, &session.foreground, session.foreground.told_foreground(&session.cx))
        });
        let (timeline, notes, mut told) = (&session.cx.timeline, &mut self.notes, Vec::new());
        self.feed.send_if_modified(|now| {
            let is_new = is_known && now.foreground != Some(foreground);
            if is_new {
                // The first state, before a viewer can connect, is not an event.
                if now.foreground.replace(foreground).is_some() {
                    notes.push(Noted { at: held_from, event: Arc::new(SessionEvent::Foreground(foreground)) });
                }
            }
            let status = |summary: &Option<Summary>| summary.as_ref().map(|summary| summary.status);
            if status(&now.summary) == Some(SessionStatus::Creating) && status(&summary) == Some(SessionStatus::Running)
            {
                notes.push(Noted { at: held_from, event: Arc::new(SessionEvent::Ready) });
            }
            let has_markers = timeline.output().markers.back() != now.markers.last();
            let changed = has_markers || !notes.is_empty() || (to, is_over) != (now.to, now.is_over);
            if timeline.log().newest_handover().as_ref() != now.handovers.handovers.last() {
                timeline.log().update(&mut now.handovers);
            }
            if has_markers {
                let markers = Arc::make_mut(&mut now.markers);
                markers.clear();
                markers.extend(&timeline.output().markers);
            }
            (now.to, now.is_over, now.summary) = (to, is_over, summary);
            told.extend(notes.iter().map(|noted| Arc::clone(&noted.event)));
            notes.drain(..).for_each(|noted| now.note(noted));
            changed
        });
        for event in told {
            self.notify_all(session, &event);
        }
    }

    /// Records a command's end from before this server, if an earlier one may not have.
    pub(super) fn note_missed_end(&self, shared: &Shared, row: &HistoryRow) {
        self.server_events.audit.missed_end(&shared.meta.owner, shared.meta.name.get().as_deref(), row);
    }

    /// Logs once that the session waits for disk space, and once that it continues.
    fn note_room(&self, session: &Session) {
        let (id, trouble) = (&session.cx.shared.id, &session.cx.timeline.trouble().full_disk);
        if session.cx.shared.stalled.swap(trouble.is_some(), Ordering::AcqRel) == trouble.is_some() {
            return;
        }
        match trouble {
            Some(trouble) => {
                tracing::warn!(session = %id, trouble, "the session waits for room on the disk");
                self.server_events.stalled.notify_one();
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
                self.server_events.metrics.dropped(session.cx.timeline.end().dropped_records);
                ServerEventKind::Terminated(exit.clone())
            }
            SessionEvent::LimitHit(hit) => ServerEventKind::LimitHit(*hit),
            SessionEvent::Taken(driver) => ServerEventKind::Taken(Arc::clone(driver)),
            SessionEvent::Returned(driver, end) => ServerEventKind::Returned(Arc::clone(driver), *end),
            SessionEvent::Ready
            | SessionEvent::Foreground(_)
            | SessionEvent::Resized { .. }
            | SessionEvent::Missed(_) => return,
        };
        self.server_events.notify(&session.cx.shared, what);
    }
}
