//! The effects of a step outside of the session: events for viewers, and rows of the history.

use std::sync::Arc;

use crate::action::SessionEvent;
use crate::sessions::session::machine::session::Session;
use crate::sessions::timeline::Command;
use crate::sessions::viewer_feed::Noted;
use crate::sessions::views;

impl Session {
    /// Queues an event that viewers get once they have the output up to `at`. Events from before this server are not
    /// published.
    pub(super) fn note(&mut self, at: u64, event: SessionEvent) {
        if !self.follower.is_replaying {
            self.effects.notes.push(Noted { at, event: Arc::new(event) });
        }
    }

    /// Whether it still reads what an earlier server has read.
    pub(crate) fn is_replaying(&self) -> bool {
        self.follower.is_replaying
    }

    /// Publishes a command's beginning. If it ended in the same turn, its end is published at the end of its output.
    pub(super) fn note_start(&mut self, id: u32) {
        if let Some(command) = self.timeline.log().command(id) {
            let begun = Command { end: None, ..command.clone() };
            let view = views::command_view(&self.shared, &begun, command.output_from());
            self.note(view.start_offset, SessionEvent::Started(Arc::new(view)));
        }
    }

    /// Publishes a command's end.
    pub(super) fn note_end(&mut self, id: u32) {
        if let Some(command) = self.timeline.log().command(id) {
            let view = views::command_view(&self.shared, command, self.timeline.output().scanner.position());
            self.note(view.end_offset.unwrap_or(view.start_offset), SessionEvent::Completed(Arc::new(view)));
        }
    }

    /// Publishes the end and stores the command in the history, which outlives this actor.
    pub(super) fn put_on_record(&mut self, id: u32) {
        self.note_end(id);
        if let Some(command) = self.timeline.log().command(id) {
            self.effects.rows.push(views::history_row(&self.shared.id, command));
        }
    }
}
