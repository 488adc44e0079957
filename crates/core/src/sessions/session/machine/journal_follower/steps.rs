//! Follows the session's files up to the tail that its holder publishes: first events, then bytes, in chunks.

use journal::{Offset, Read};

use crate::action::SessionEvent;
use crate::limits;
use crate::sessions::replay_order::Step;
use crate::sessions::session::machine::context::Context;
use crate::sessions::session::machine::session::Session;
use crate::sessions::timeline::micros;

impl Session {
    /// Handles received frames; a frame may refer to events before it, so those are read first.
    pub(crate) fn handle_frames(&mut self) {
        while let Some(frame) = self.cx.follower.next_frame() {
            self.on_frame(frame);
            if self.cx.follower.has_events {
                self.read_events();
            }
        }
    }

    /// Reads some of the events up to the tail. During replay, events and output are read in the order in which they
    /// happened. Afterwards events are read at once, except a typed line: the output up to it is read first.
    fn read_events(&mut self) {
        let tail = self.cx.follower.tail();
        let size = (self.cx.timeline.cols(), self.cx.timeline.rows());
        let cut_before = self.cx.timeline.trouble().cut_before;
        let mut news = Vec::new();
        let mut output_to = None;
        for _ in 0..limits::EVENTS_CHUNK {
            if !self.cx.follower.has_events {
                break;
            }
            let at = if self.cx.follower.journal_unreadable {
                u64::MAX
            } else {
                self.cx.timeline.output().scanner.position()
            };
            let is_live = !self.cx.follower.is_replaying;
            match self.cx.follower.order.next(tail.events, at, tail.journal.0, is_live) {
                Ok(Step::Event(event)) => {
                    if is_end(&event) {
                        // The kernel's state was about the ended command; newer states arrive after this event.
                        self.foreground.state = None;
                    }
                    self.cx.timeline.event(&event, &mut news);
                }
                Ok(Step::OutputTo(to)) => {
                    output_to = Some(to);
                    break;
                }
                Ok(Step::AllOutput) => {
                    self.cx.follower.has_events = false;
                    match self.cx.follower.order.damage(tail.events, !self.cx.link.is_tail_last) {
                        Ok(damage) => damage.into_iter().for_each(|what| self.cx.is_damaged(what)),
                        Err(e) => self.cx.events_unreadable(&e),
                    }
                }
                Err(e) => self.cx.events_unreadable(&e),
            }
        }
        self.cx.log_cut(cut_before);
        let (cols, rows) = (self.cx.timeline.cols(), self.cx.timeline.rows());
        if (cols, rows) != size {
            self.cx.note(self.cx.timeline.output().scanner.held_from(), SessionEvent::Resized { cols, rows });
            self.drawing.resize(cols, rows);
        }
        self.on_news(news);
        if let Some(to) = output_to {
            self.cx.follower.journal_unreadable = !self.read_output(Offset(to));
        }
    }

    /// Ends the replay once its events and output are read; until then requests wait.
    fn end_replay(&mut self) {
        let is_told = !self.cx.follower.has_events
            && (self.cx.follower.journal_unreadable
                || self.cx.timeline.output().scanner.position() >= self.cx.follower.replays_to);
        if is_told && std::mem::take(&mut self.cx.follower.is_replaying) {
            if self.cx.timeline.log().current.is_some() {
                // Input that an earlier server typed may have started another program in it.
                self.inside.note_input(None);
            }
            self.take_up_typed();
            for id in self.cx.timeline.log().untimed.clone() {
                self.foreground.judge(&mut self.cx, id);
            }
            for (query, to) in std::mem::take(&mut self.cx.follower.unanswered) {
                self.on_query(&query, to);
            }
            // Input and commands are events with a time; output has none, but the journal file's modification time is
            // known.
            self.cx.last_activity_us = self.cx.timeline.clock().last_us.max(self.cx.written_us());
            match self.cx.now.was_clock_set_since(&self.cx.shared.meta) {
                true => self.expiry.touch(self.cx.now.at),
                false => self.expiry.quiet_since(self.cx.last_activity_us, self.cx.now),
            }
            // On a busy machine the first prompt may come before the server has connected.
            if self.foreground.is_idle(&self.cx) {
                self.foreground.check_shell_image(&self.cx);
            }
            self.handle_frames();
            self.foreground.await_first_state(&self.cx);
        }
    }

    /// Reads one chunk of what is unread.
    pub(crate) fn follow_some(&mut self) {
        if self.cx.follower.has_events {
            self.read_events();
        } else {
            let limit = self.cx.follower.tail().journal;
            self.cx.follower.journal_unreadable = self.cx.has_unread() && !self.read_output(limit);
            self.cx.follower.is_behind = self.cx.has_unread() && !self.cx.follower.journal_unreadable;
        }
        self.end_replay();
    }

    /// Scans one chunk; false if it cannot be read.
    fn read_output(&mut self, limit: Offset) -> bool {
        let at = self.cx.timeline.output().scanner.position();
        let want = usize::try_from(limit.0.saturating_sub(at)).unwrap_or(usize::MAX).min(limits::SCAN_CHUNK);
        let mut buffer = vec![0; want];
        let mut news = Vec::new();
        match self.cx.shared.reader.read(Offset(at), limit, &mut buffer) {
            Ok(Read::Bytes(n)) => {
                let bytes = &buffer[..n];
                let now_us = if self.cx.follower.is_replaying { self.cx.written_us() } else { self.cx.now.us };
                // These bytes came after the last read and no later than now.
                self.cx.timeline.record_read(at, at + n as u64, now_us);
                if !self.cx.follower.is_replaying {
                    self.cx.effects.read += n;
                    self.cx.last_activity_us = now_us;
                    self.expiry.touch(self.cx.now.at);
                }
                sys::fault::point("index");
                self.cx.timeline.bytes(bytes, &mut news);
                self.waits.on_output(&mut self.cx, &mut self.foreground, &mut self.drawing, at, bytes, &news);
                self.on_news(news);
            }
            Ok(missing @ (Read::Gap { to, .. } | Read::Cut { to, .. })) => {
                if matches!(missing, Read::Cut { .. }) {
                    self.cx.is_cut(to.0);
                }
                self.cx.timeline.skip_to(to.0);
                self.drawing.discard();
                // Command output that the waits expect may have begun in the gap.
                self.waits.open.iter_mut().for_each(|w| w.goes_on_from(to.0));
                self.on_news(news);
            }
            Ok(Read::End) => return false,
            Err(e) => {
                tracing::error!(session = %self.cx.shared.id, error = %e, "the journal cannot be read");
                return false;
            }
        }
        true
    }

    /// Ends a command whose marker did not come although all output was read.
    pub(crate) fn check_marker(&mut self) {
        if self.cx.follower.markers_expire_at().is_some_and(|at| self.cx.now.at >= at) {
            self.expire_markers();
        }
    }

    /// Ends the commands whose markers did not come, where the output ends.
    pub(crate) fn expire_markers(&mut self) {
        self.cx.follower.marker_missed_at = None;
        let mut news = Vec::new();
        let at = self.cx.timeline.output().scanner.position();
        for id in self.cx.timeline.ends_without_marker() {
            self.cx.timeline.expire(id, at, &mut news);
        }
        self.on_news(news);
    }
}

impl Context {
    /// When output was written last.
    fn written_us(&self) -> u64 {
        self.shared.folder.output().map_or(self.now.us, |(_, written)| micros(written)).min(self.now.us)
    }

    fn events_unreadable(&mut self, e: &std::io::Error) {
        tracing::error!(session = %self.shared.id, error = %e, "the events cannot be read");
        self.follower.has_events = false;
    }

    /// Records damage once.
    pub(crate) fn is_damaged(&mut self, what: String) {
        if self.timeline.set_damage(what.clone()) {
            tracing::error!(session = %self.shared.id, what, "the session's folder is damaged");
        }
    }

    /// Records that another process has cut the journal. The session continues: later output has its offsets.
    pub(crate) fn is_cut(&mut self, before: u64) {
        let known = self.timeline.trouble().cut_before;
        self.timeline.record_cut(before);
        self.log_cut(known);
    }

    /// Logs the first cut of the journal.
    fn log_cut(&self, known: u64) {
        let before = self.timeline.trouble().cut_before;
        if known == 0 && before > 0 {
            tracing::error!(session = %self.shared.id, before, "the journal was cut by another process");
        }
    }

    pub(crate) fn has_unread(&self) -> bool {
        self.timeline.output().scanner.position() < self.follower.tail().journal.0
    }
}

/// Whether the shell reported the end of a command or line.
fn is_end(event: &journal::Event) -> bool {
    matches!(event.record(), Some(journal::Record::Attested { report }) if report.starts_with(b"D"))
}
