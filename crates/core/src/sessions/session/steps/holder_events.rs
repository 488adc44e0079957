//! Handles the holder's frames, and the news of the timeline that its events and output bring.

use std::sync::Arc;

use journal::Offset;
use tokio::sync::oneshot;
use wire::{FromHolder, Hello, Status, ToHolder};

use super::errors::{key_reused, os_error};
use crate::action::{ActionError, EndedBy, Wait};
use crate::sessions::session::requests::{Ended, Started, Typed};
use crate::sessions::session::state::holder_link::Call;
use crate::sessions::session::state::session::Session;
use crate::sessions::session::state::waiter::Waiter;
use crate::sessions::timeline::Change;
use crate::sessions::views;

/// ESRCH of errno(3), as the holder sends it.
const NO_SUCH_PROCESS: u64 = 3;

impl Session {
    pub(super) fn on_frame(&mut self, frame: FromHolder) {
        match frame {
            FromHolder::Hello(hello) => self.on_hello(hello),
            FromHolder::Tail(tail) => self.follower.on_tail(tail),
            FromHolder::State(state) => self.on_state(state),
            FromHolder::Observed(observed) => self.on_observed(&observed),
            FromHolder::Done { seq, status, value } => self.on_done(seq, status, value),
            FromHolder::Displaced => self.link.is_displaced = true,
        }
    }

    pub(super) fn on_hello(&mut self, hello: Hello) {
        self.link.protocol = hello.protocol;
        self.link.process = self.shared.backends.holders.identity(hello.holder_pid);
        self.timeline.record_hello(hello.holder_pid, hello.shell_pid, hello.cols, hello.rows);
        self.follower.replays_to = hello.tail.journal.0;
        self.follower.on_tail(hello.tail);
    }

    pub(super) fn on_news(&mut self, news: Vec<Change>) {
        for item in news {
            match item {
                Change::Started(id) => {
                    self.note_start(id);
                    self.waits.notify_started(|waits_for| waits_for == id);
                }
                Change::Ended(id) => self.on_command_end(id),
                Change::InsideEnded(id) => self.on_inside_end(id),
                Change::Prompt(status) => {
                    self.note_stopped_jobs(Some(status));
                    self.on_prompt();
                }
                Change::Query { query, to } => self.on_query(&query, to),
                Change::Held(hit) => self.notify_limit_hit(hit),
                Change::Path => {
                    let tools = views::tools_on(self.host(), self.timeline.shell().path.as_deref());
                    self.timeline.set_tools(tools);
                }
            }
        }
        let awaits_marker = !self.timeline.ends_without_marker().is_empty() && !self.has_unread();
        self.follower.marker_missed_at = awaits_marker.then(|| self.follower.marker_missed_at.unwrap_or(self.now.at));
    }

    pub(super) fn on_prompt(&mut self) {
        (self.foreground.is_heuristic, self.foreground.was_not_ready) = (!self.shared.spec.handover.has_hooks(), false);
        self.check_shell_image();
        // The kernel's state may be newer than this prompt, which is read only now, and it is not sent again.
        let is_editing = self.timeline.log().current.is_some()
            && self.foreground.state.is_some_and(|s| s.foreground == wire::Activity::Editor);
        (self.foreground.editor_since, self.foreground.report_key) = (is_editing.then_some(self.now.at), None);
        self.waits.notify_prompt();
        self.run_pending();
        // A wait without a command ends at the prompt.
        self.finish_where(|w| w.command.is_none(), EndedBy::Ended);
    }

    pub(super) fn on_command_end(&mut self, id: u32) {
        self.end_limits(id);
        self.waits.notify_started(|waits_for| waits_for == id);
        self.put_on_record(id);
        let code = self.timeline.log().command(id).and_then(|c| c.end.as_ref()).and_then(|e| e.exit);
        self.note_stopped_jobs(code);
        self.on_prompt();
        self.finish_where(|w| w.command == Some(id), EndedBy::Ended);
    }

    pub(super) fn on_query(&mut self, query: &terminal::Query, to: u64) {
        if self.follower.is_replaying {
            // A later event shows whether it was answered.
            let answered = self.timeline.queries().answered;
            while self.follower.unanswered.front().is_some_and(|(_, to)| *to <= answered) {
                self.follower.unanswered.pop_front();
            }
            return self.follower.unanswered.push_back((query.clone(), to));
        }
        if to <= self.timeline.queries().answered {
            return;
        }
        let size = (self.timeline.cols(), self.timeline.rows());
        let mut cursor = || {
            let cursor = self.screen_at(to).cursor();
            (cursor.row, cursor.col)
        };
        let bytes = query.answer(&mut cursor, size);
        if !bytes.is_empty() {
            self.timeline.set_answered(to);
            self.link.send(ToHolder::Answer { query: Offset(to), bytes });
            // The program that reads waits for this reply and not for a person.
            (self.foreground.state, self.foreground.state_pending) = (None, false);
        }
    }

    pub(super) fn on_done(&mut self, seq: u32, status: Status, value: u64) {
        match self.link.calls.remove(&seq) {
            Some(Call::Run { wait, started }) => self.on_run_done(status, value, wait, started),
            Some(Call::Input { key, wait, from, offered, is_signal, typed }) => {
                self.foreground.on_typed();
                if !is_signal && status != Status::Ok {
                    // The line was not typed in full, so no report of its end will come.
                    self.timeline.set_typed_line(false);
                }
                let value = if is_signal && status == Status::Ok { offered as u64 } else { value };
                let from = self.timeline.log().typed_from(&key).map_or(from, |at| at.min(from));
                self.on_typed(status, value, wait, from, offered, typed);
            }
            Some(Call::Line { id, key, wait, started }) => {
                self.on_line_typed((id, key), (status, value), wait, started);
            }
            Some(Call::Signal { is_foreground, reply }) => {
                if is_foreground {
                    self.foreground.on_typed();
                }
                if status == Status::NoProcess {
                    // The holder does not record this signal.
                    let gone = u32::try_from(value).unwrap_or(0).cast_signed();
                    self.timeline.forget_signal(gone);
                }
                // The foreground process group can be empty: the attempt is recorded, and the error is not the
                // server's.
                let is_nobody = is_foreground && status == Status::Failed && value == NO_SUCH_PROCESS;
                let nothing = || Err(ActionError::NothingRuns { session: self.shared.id.clone() });
                let _ = reply.send(if is_nobody { nothing() } else { self.plain_result(status, value) });
            }
            Some(Call::Plain(reply)) => {
                let _ = reply.send(self.plain_result(status, value));
            }
            Some(Call::Terminate(reply)) => {
                let left = if status == Status::Ok { 0 } else { 1 };
                self.link.terminators.push(reply);
                self.link.notify_terminators(Ended { killed: value, left });
            }
            // The editor lost the terminal again, or the shell has not read our keys yet: retry if the state stays.
            Some(Call::Report) if status != Status::Ok => {
                self.foreground.report_key = None;
                self.foreground.editor_since = self.foreground.editor_since.map(|_| self.now.at);
            }
            Some(Call::Report) => {
                // A shell without the key, and a holder that reports no state after it, are known by the time alone.
                let handover = &self.shared.spec.handover;
                let has_key = !handover.is_in_band() && handover.line().is_none();
                let is_shown = has_key && self.link.protocol >= wire::NUMBERS_LINES;
                if let Some(key) = &mut self.foreground.report_key {
                    (key.is_written, key.is_read) = (true, !is_shown);
                }
            }
            None => {}
        }
    }

    pub(super) fn plain_result(&self, status: Status, value: u64) -> Result<(), ActionError> {
        match status {
            Status::Ok | Status::Duplicate => Ok(()),
            Status::Ended => Err(self.ended_error()),
            Status::NoProcess => Err(ActionError::Invalid {
                field: "target",
                problem: format!("{value} is not a process of this session"),
            }),
            Status::Failed => Err(ActionError::Internal { why: os_error(value) }),
            Status::Busy
            | Status::NotReady
            | Status::Typed
            | Status::LineTooLong
            | Status::Stalled
            | Status::WouldEcho
            | Status::KeyReused => Err(ActionError::Internal { why: format!("unexpected answer {status:?}") }),
        }
    }

    pub(super) fn on_run_done(
        &mut self,
        status: Status,
        value: u64,
        wait: Option<Wait>,
        started: oneshot::Sender<Result<Started, ActionError>>,
    ) {
        let id = u32::try_from(value).unwrap_or(0);
        self.foreground.was_not_ready = status == Status::NotReady;
        let result = match status {
            Status::Ok | Status::Duplicate => return self.hand_out(id, wait, started),
            Status::Busy => Err(self.busy_error(id)),
            Status::Ended => Err(self.ended_error()),
            Status::KeyReused => Err(key_reused()),
            Status::Typed | Status::NotReady if self.foreign_program_runs() => Err(self.typed_busy_error()),
            Status::Typed => {
                self.timeline.set_typed_line(true);
                let or = if self.takes_lines() {
                    " (or the prompt, PS1, was changed by hand and no longer reports)"
                } else {
                    ""
                };
                let why = format!("a line typed at the prompt has not ended{or}; C-c clears it");
                Err(self.not_ready(&why))
            }
            Status::NotReady => Err(self.not_ready(&self.why_not_ready())),
            Status::Failed | Status::NoProcess | Status::LineTooLong | Status::Stalled | Status::WouldEcho => {
                Err(ActionError::Internal { why: format!("the command could not be handed over: {}", os_error(value)) })
            }
        };
        let _ = started.send(result);
    }

    pub(super) fn on_typed(
        &mut self,
        status: Status,
        value: u64,
        wait: Option<Wait>,
        from: u64,
        offered: usize,
        typed: oneshot::Sender<Result<Typed, ActionError>>,
    ) {
        let accepted = usize::try_from(value).unwrap_or(0);
        let result = match status {
            Status::Ok | Status::Duplicate => {
                // A repeated input was for the command that ran when it was typed.
                let command = match status {
                    Status::Duplicate => self.timeline.log().command_at(from),
                    _ => self.timeline.log().newest_running(),
                };
                let finished = wait.map(|wait| {
                    let (reply, finished) = oneshot::channel();
                    let mut waiter =
                        Waiter::new(self.now.at, wait, command, from, self.timeline.cols(), Some(accepted), reply);
                    waiter.end_on_idle_screen();
                    // A repeated input may already have been answered by the program.
                    if let Some(waiter) = self.catch_up(waiter) {
                        self.admit(waiter);
                    }
                    finished
                });
                Ok(Typed { accepted, from, finished })
            }
            Status::Stalled => Err(ActionError::Stalled { accepted, offered }),
            Status::LineTooLong => Err(ActionError::Invalid {
                field: "input",
                problem: format!(
                    "the program reads lines, and a line of more than {value} bytes with control characters in it cannot \
                     be handed over whole; nothing was sent; send shorter lines"
                ),
            }),
            Status::Ended => Err(self.ended_error()),
            Status::KeyReused => Err(key_reused()),
            Status::WouldEcho => Err(ActionError::WouldEcho { session: self.shared.id.clone() }),
            Status::Busy | Status::NotReady | Status::Typed | Status::Failed | Status::NoProcess => {
                Err(ActionError::Internal { why: os_error(value) })
            }
        };
        let _ = typed.send(result);
    }

    pub(crate) fn note_stopped_jobs(&mut self, code: Option<i32>) {
        let host = Arc::clone(&self.shared.backends.host);
        self.jobs.on_end(&*host, code, (self.timeline.holder_pid(), self.timeline.shell().pid));
    }
}
