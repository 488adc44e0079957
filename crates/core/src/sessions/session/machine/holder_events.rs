//! Handles the holder's frames, and the news of the timeline that its events and output bring.

use std::sync::Arc;

use journal::Offset;
use wire::{Echo, FromHolder, Status, ToHolder};

use crate::action::EndedBy;
use crate::host::containers::ContainerFiles;
use crate::sessions::session::machine::holder_link::Call;
use crate::sessions::session::machine::session::Session;
use crate::sessions::session::requests::Ended;
use crate::sessions::timeline::Change;
use crate::sessions::toolchains;

impl Session {
    pub(super) fn on_frame(&mut self, frame: FromHolder) {
        match frame {
            FromHolder::Hello(hello) => self.cx.on_hello(hello),
            FromHolder::Tail(tail) => self.cx.follower.on_tail(tail),
            FromHolder::Observed(observed) => self.on_observed(&observed),
            FromHolder::Done { seq, status, value, echo } => self.on_done(seq, status, value, echo),
            FromHolder::Displaced => self.cx.link.is_displaced = true,
        }
    }

    pub(super) fn on_news(&mut self, news: Vec<Change>) {
        for item in news {
            match item {
                Change::Started(id) => {
                    self.cx.note_start(id);
                    if self.cx.timeline.log().inside.as_ref().is_some_and(|inside| inside.id == id) {
                        self.foreground.doubt(self.cx.now.at);
                    } else if let Some(at) = self.cx.timeline.log().command(id).and_then(|command| command.start) {
                        self.foreground.forget_prompt(at);
                    }
                    self.waits.notify_started(|waits_for| waits_for == id);
                }
                Change::Ended(id) => {
                    self.inside.forget_input();
                    self.on_command_end(id);
                }
                Change::InsideEnded(id) => self.on_inside_end(id),
                Change::Prompt(status) => {
                    self.note_stopped_jobs(Some(status));
                    self.on_prompt();
                }
                Change::Query { query, to } => self.on_query(&query, to),
                Change::LimitHit(hit) => self.cx.notify_limit_hit(hit),
                Change::Path => {
                    let path = self.cx.timeline.shell().path.as_deref();
                    let tools = match self.cx.follower.is_replaying {
                        _ if self.cx.shared.meta.confinement.container.is_some() => {
                            toolchains::tools_on(&ContainerFiles::of_process(self.cx.timeline.shell().pid), path)
                        }
                        true => self.cx.shared.backends.toolchains.recent(self.cx.now.at, self.cx.host(), path),
                        false => toolchains::tools_on(self.cx.host(), path),
                    };
                    self.cx.timeline.set_tools(tools);
                }
            }
        }
        let awaits_marker = !self.cx.timeline.ends_without_marker().is_empty() && !self.cx.has_unread();
        self.cx.follower.marker_missed_at =
            awaits_marker.then(|| self.cx.follower.marker_missed_at.unwrap_or(self.cx.now.at));
    }

    pub(super) fn on_prompt(&mut self) {
        (self.foreground.is_heuristic, self.foreground.was_not_ready) =
            (!self.cx.shared.spec.handover.has_hooks(), false);
        self.check_shell_image();
        // The kernel's state may be newer than this prompt, which is read only now, and it is not sent again.
        let is_editing = self.cx.timeline.log().current.is_some()
            && self.foreground.state.is_some_and(|s| s.foreground == wire::Activity::Editor);
        (self.foreground.editor_since, self.foreground.report_key) = (is_editing.then_some(self.cx.now.at), None);
        self.waits.notify_prompt();
        self.run_pending();
        // A wait without a command ends at the prompt.
        self.finish_where(|w| w.command.is_none(), EndedBy::Ended);
    }

    pub(super) fn on_command_end(&mut self, id: u32) {
        self.end_limits(id);
        self.waits.notify_started(|waits_for| waits_for == id);
        self.cx.put_on_record(id);
        let code = self.cx.timeline.log().command(id).and_then(|c| c.end.as_ref()).and_then(|e| e.exit);
        self.note_stopped_jobs(code);
        self.on_prompt();
        self.finish_where(|w| w.command == Some(id), EndedBy::Ended);
    }

    pub(super) fn on_query(&mut self, query: &terminal::Query, to: u64) {
        if self.cx.follower.is_replaying {
            // A later event shows whether it was answered.
            let answered = self.cx.timeline.queries().answered;
            while self.cx.follower.unanswered.front().is_some_and(|(_, to)| *to <= answered) {
                self.cx.follower.unanswered.pop_front();
            }
            return self.cx.follower.unanswered.push_back((query.clone(), to));
        }
        if to <= self.cx.timeline.queries().answered {
            return;
        }
        let size = (self.cx.timeline.cols(), self.cx.timeline.rows());
        let mut cursor = || {
            let cursor = self.screen_at(to).cursor();
            (cursor.row, cursor.col)
        };
        let bytes = query.answer(&mut cursor, size);
        if !bytes.is_empty() {
            self.cx.timeline.set_answered(to);
            self.cx.link.send(ToHolder::Answer { query: Offset(to), bytes });
            // The program that reads waits for this reply and not for a person.
            (self.foreground.state, self.foreground.state_pending) = (None, false);
        }
    }

    pub(super) fn on_done(&mut self, seq: u32, status: Status, value: u64, shown: Echo) {
        match self.cx.link.calls.remove(&seq) {
            Some(Call::Run { wait, started }) => self.on_run_done(status, value, wait, started),
            Some(Call::Input { key, wait, sent, typed }) => {
                self.on_input_done((status, value, shown), key, wait, sent, typed);
            }
            Some(Call::Line { wait, started, .. }) => self.on_line_typed((status, value), wait, started),
            Some(Call::Signal { is_foreground, ignored_by, reply }) => {
                self.on_signal_done(status, value, (is_foreground, ignored_by), reply);
            }
            Some(Call::Plain(reply)) => {
                let _ = reply.send(self.cx.plain_result(status, value));
            }
            Some(Call::Terminate(reply)) => {
                let left = if status == Status::Ok { 0 } else { 1 };
                self.cx.link.terminators.push(reply);
                self.cx.link.notify_terminators(Ended { killed: value, left });
            }
            // The editor lost the terminal again, or the shell has not read our keys yet: retry if the state stays.
            Some(Call::Report) if status != Status::Ok => {
                self.foreground.report_key = None;
                self.foreground.editor_since = self.foreground.editor_since.map(|_| self.cx.now.at);
            }
            Some(Call::Report) => {
                // A shell without the key is known by the time alone.
                let handover = &self.cx.shared.spec.handover;
                let has_key = !handover.is_in_band() && handover.line().is_none();
                if let Some(key) = &mut self.foreground.report_key {
                    (key.is_written, key.is_read) = (true, !has_key);
                }
            }
            None => {}
        }
    }

    pub(crate) fn note_stopped_jobs(&mut self, code: Option<i32>) {
        let host = Arc::clone(&self.cx.shared.backends.host);
        self.jobs.on_end(&*host, code, (self.cx.timeline.holder_pid(), self.cx.timeline.shell().pid));
    }
}
