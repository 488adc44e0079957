//! The state that all parts of the holder use: the terminal, the clients, the records and the state of the shell.

use std::ffi::CStr;

use journal::{EndReason, Record};
use sys::time;
use wire::{FromHolder, Hello, PROTOCOL, Status};

use crate::connections::{Caller, Connections};
use crate::foreground_observer;
use crate::foreground_sampler::Sampler;
use crate::handover::CommandKeys;
use crate::output_backpressure::Output;
use crate::output_pump::Until;
use crate::publication::Publication;
use crate::query_replies::{self, QueryReplies};
use crate::records::{MARKER_SOUGHT_BYTES, Records};
use crate::session_end::SessionEnd;
use crate::shell_state::{Phase, ShellState};
use crate::terminal::Terminal;

pub(crate) struct Context {
    pub(crate) terminal: Terminal,
    pub(crate) connections: Connections,
    pub(crate) output: Output,
    pub(crate) replies: QueryReplies,
    pub(crate) records: Records,
    pub(crate) publication: Publication,
    pub(crate) shell: ShellState,
    pub(crate) keys: CommandKeys,
    pub(crate) sampler: Sampler,
    pub(crate) end: SessionEnd,
}

impl Context {
    pub(super) fn new(
        terminal: Terminal,
        connections: Connections,
        output: Output,
        records: Records,
        keys: CommandKeys,
        (tty, keeps_descendants): (&CStr, bool),
    ) -> Self {
        Self {
            terminal,
            connections,
            output,
            replies: QueryReplies::default(),
            records,
            publication: Publication::default(),
            shell: ShellState::new(),
            sampler: Sampler::new(tty, keys.are_a_line()),
            keys,
            end: SessionEnd::new(keeps_descendants),
        }
    }

    /// Moves output into the journal; true if there was any.
    pub(super) fn move_output(&mut self, now: u64) -> bool {
        let command = self.shell.command();
        // The pieces of a marker are published together.
        let until = if self.publication.expects_marker() { Until::Empty } else { Until::Pause };
        let has_moved = self.output.turn(self.terminal.leader(), &mut self.records, command, until, now);
        if has_moved {
            self.sampler.wrote(now);
            self.schedule_sample(now);
            self.records.retain(self.publication.published().journal);
        }
        has_moved
    }

    /// Reads everything that the terminal holds. False if the journal cannot take all of it now and no client asked for
    /// termination, so that the exit must wait for room.
    pub(super) fn takes_the_rest(&mut self, now: u64) -> bool {
        self.output.drain(self.terminal.leader(), &mut self.records, now) || !self.end.waits_for_disk()
    }

    /// Appends the reports that wait for room on the disk.
    pub(super) fn append_reports(&mut self, now: u64) {
        if !self.records.append_reports() {
            self.output.retry_later(now);
        }
    }

    /// Something changed: schedule a foreground sample, unless the shell is at its prompt and no input was typed ahead. Behind the
    /// end of a command and before its prompt, a hook may ask something.
    pub(super) fn schedule_sample(&mut self, now: u64) {
        let has_reported = self.shell.phase() == Phase::Ready && !self.shell.is_sampled_only();
        let is_at_rest = has_reported && !self.shell.input_since_handover();
        let may_run_hooks = self.shell.may_run_hooks() && self.keys.are_private();
        if is_at_rest && !may_run_hooks || self.end.has_exited() {
            self.sampler.suspend();
        } else if is_at_rest || self.shell.phase() == Phase::Starting && self.keys.has_hooks() {
            self.sampler.schedule_before_prompt(now);
        } else {
            self.sampler.schedule_sample(now);
        }
    }

    /// Publishes the tail if it is due.
    pub(super) fn publish(&mut self, now: u64) {
        let is_at_prompt = self.shell.phase() == Phase::Ready;
        if let Some(tail) = self.publication.due(self.records.tail(), self.end.is_over(), is_at_prompt, now) {
            self.connections.send_attached(&FromHolder::Tail(tail));
        }
    }

    /// Publishes the tail without waiting for output that belongs to it.
    pub(super) fn publish_now(&mut self, now: u64) {
        self.publication.announce_now(now);
        self.publish(now);
    }

    /// Answers requests together with the tail they belong to: with the next frame, or when the idle time is over.
    pub(super) fn answer_later(&mut self, from: &[Caller], value: u64, now: u64) {
        let tail = self.records.tail();
        if let Some(tail) = tail {
            let tail = self.publication.publish(tail);
            self.connections.hold_attached(&FromHolder::Tail(tail));
        }
        if tail.is_some() && self.publication.idle_until(now).is_some() {
            self.connections.hold_answers(from, Status::Ok, value);
        } else {
            self.connections.answer_all(from, Status::Ok, value);
        }
    }

    pub(super) fn hello(&self) -> FromHolder {
        let (cols, rows) = self.terminal.size();
        FromHolder::Hello(Hello {
            protocol: PROTOCOL,
            holder_pid: std::process::id(),
            shell_pid: self.terminal.shell_pid(),
            cols,
            rows,
            command: self.shell.command(),
            tail: self.publication.published(),
        })
    }

    /// Answers a request of which nothing was typed. A server that sent input discards the foreground state it knew, so
    /// the state is sent again.
    pub(super) fn answer_untyped(&mut self, from: &[Caller], status: Status, value: u64, now: u64) {
        self.sampler.forget();
        self.schedule_sample(now);
        self.connections.answer_all(from, status, value);
    }

    /// Notes that the line editor has the terminal. It takes that before it paints its prompt.
    pub(super) fn note_editor(&mut self) {
        if self.shell.may_begin_to_edit() && self.terminal.shell_is_foreground() && self.has_modes_of_an_editor() {
            self.shell.edits();
        }
    }

    pub(super) fn has_modes_of_an_editor(&self) -> bool {
        self.terminal.modes().is_some_and(|modes| foreground_observer::modes(&modes).are_an_editors())
    }

    /// Whether a command that was handed over has not begun. While the shell's line editor has the terminal, its modes map no
    /// carriage return to a newline, so the command would read a line without an end. A moment later, an interrupt would meet a
    /// shell that has read a part of our line.
    pub(super) fn awaits_beginning(&mut self, now: u64) -> bool {
        self.note_beginning(now);
        let may_begin = self.shell.awaited_marker(now).is_some() && self.terminal.shell_is_foreground();
        may_begin && (self.shell.may_have_keys_to_read(now) || self.has_modes_of_an_editor())
    }

    /// Notes that the command which was handed over has begun, once its marker has come.
    pub(super) fn note_beginning(&mut self, now: u64) {
        let Some((nonce, from)) = self.shell.awaited_marker(now) else { return };
        let bytes = self.records.end().since(from);
        // bash prints another mark with this number before its editor has given the terminal up.
        let mark = format!("C;{nonce}");
        let has_come = || self.records.newest_place_of(mark.as_bytes(), bytes).is_some();
        if bytes > MARKER_SOUGHT_BYTES as u64 || has_come() {
            self.shell.has_begun();
        }
    }

    /// The shell is at its next prompt and has not taken the command: presses the load key there.
    pub(super) fn press_load_key_again(&mut self, now: u64) {
        let is_editing = || self.terminal.modes().is_some_and(|modes| !modes.canonical);
        if self.shell.awaits_load_key(now) && is_editing() {
            self.shell.load_key_pressed();
            // If the write fails, the report key finds the shell at its prompt.
            let _ = self.terminal.write(&self.keys.keys(0, 0, self.shell.input_since_handover()));
        }
    }

    /// Whether a command was handed over so recently that the shell may not have read its keys yet.
    pub(super) fn has_keys_of_ours_to_read(&mut self) -> bool {
        let now = time::monotonic_us();
        self.note_beginning(now);
        self.shell.may_have_keys_to_read(now) && self.terminal.shell_is_foreground()
    }

    /// Writes the query replies whose turn has come.
    pub(super) fn send_query_replies(&mut self, now: u64) {
        while !self.replies.is_empty() {
            let is_echoed = self.terminal.modes().is_some_and(|m| m.canonical && m.echo);
            match self.replies.next(is_echoed, now) {
                Some(query_replies::Next::Write(bytes)) => {
                    // A reply that does not fit is lost, as on a real terminal.
                    let _ = self.terminal.write(&bytes);
                    self.shell.touch();
                }
                Some(query_replies::Next::Drop) => {}
                None => return,
            }
            // The program that waited for the reply was not reported as waiting for a person.
            self.sampler.typed(now, is_echoed);
            self.schedule_sample(now);
        }
    }

    /// Records why the session ends, and sends the first signal to its processes.
    pub(super) fn begin_end(&mut self, (reason, text): (EndReason, &[u8]), signo: i32, grace_us: u64, now: u64) {
        self.records.note(&Record::Ending { reason, text });
        self.end.terminate(signo, grace_us, self.terminal.shell_pid(), now);
    }

    pub(super) fn go_on_ending(&mut self, now: u64) {
        let Some((status, ended)) = self.end.turn(now) else {
            return;
        };
        // The last output of the processes that were ended with the shell is still in the terminal.
        if self.takes_the_rest(now) {
            let callers = self.end.complete();
            self.connections.answer_all(&callers, status, ended);
        }
    }
}
