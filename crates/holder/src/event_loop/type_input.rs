//! Input: requests are typed in the order of arrival, once per idempotency key, recorded before they are written, and a
//! secret only while the terminal does not echo. Query replies are written beside them.

use sys::pty::Modes;
use wire::{Echo, Status};

use super::Holder;
use super::run_command::errno_of;
use crate::connections::Caller;
use crate::foreground_observer;
use crate::input::{Admission, InputRequest, Next};
use crate::input_queue::InputDone;
use crate::query_replies;
use crate::records::MARKER_SOUGHT_BYTES;
use crate::shell_state::Phase;

impl Holder {
    pub(super) fn queue_input(&mut self, request: InputRequest, now: u64) {
        let Some(from) = request.from.first().copied() else { return };
        if let Some((status, value)) = self.shell.earlier(&request.key) {
            return self.answer_untyped(&[from], status, value, now);
        }
        match self.input.admit(request) {
            Admission::Waits => self.start_input(now),
            Admission::Joined => {}
            Admission::Refused(status, value) => self.answer_untyped(&[from], status, value, now),
        }
    }

    /// Moves every request that may be typed now into the input queue, in order.
    pub(super) fn start_input(&mut self, now: u64) {
        let has_exited = self.end.has_exited();
        if !self.input.has_waiting() || !has_exited && self.awaits_beginning(now) {
            return;
        }
        loop {
            let (terminal, phase) = (&self.terminal, self.shell.phase());
            let is_shown = || {
                let edits = || phase == Phase::Ready && terminal.shell_is_foreground();
                terminal.modes().is_some_and(|m| m.echo || !m.canonical && edits())
            };
            match self.input.next(has_exited, is_shown, now) {
                Some(Next::Typed(request)) => self.take(request, now),
                Some(Next::WouldShow(request)) => self.answer_untyped(&request.from, Status::WouldEcho, 0, now),
                None => return,
            }
        }
    }

    /// Whether a command that was handed over has not begun. While the shell's line editor has the terminal, its modes map no
    /// carriage return to a newline, so the command would read a line without an end. A moment later, an interrupt would meet a
    /// shell that has read a part of our line.
    fn awaits_beginning(&mut self, now: u64) -> bool {
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

    /// Whether a hook of the prompt reads a line, on a terminal that reads lines: the shell itself waits for one and runs nothing.
    fn hook_reads(&self) -> bool {
        let (leader, shell_pid) = (self.terminal.leader(), self.terminal.shell_pid());
        let is_possible = self.shell.command() == 0 && !self.handover.takes_lines() && !self.input.is_writing();
        is_possible && self.sampler.is_seen_to_read(leader, shell_pid)
    }

    fn take(&mut self, request: InputRequest, now: u64) {
        if self.end.has_exited() {
            return self.connections.answer_all(&request.from, Status::Ended, 0);
        }
        let modes = self.terminal.modes();
        if let Err((status, value)) = self.input.takes(&request.bytes, modes) {
            return self.answer_untyped(&request.from, status, value, now);
        }
        let is_hidden = request.is_secret || self.may_be_secret(modes);
        let command = request.command.as_ref().map(|line| (self.shell.number(), line));
        if let Err(e) = self.put_on_record(request.key, &request.bytes, is_hidden, command) {
            return self.answer_untyped(&request.from, Status::Failed, errno_of(&e), now);
        }
        self.uncertain_signal = None;
        let hook_reads = modes.is_some_and(|modes| modes.canonical) && self.hook_reads();
        self.shell.typed(&request.bytes, hook_reads);
        if request.bytes.last() == Some(&0x03) {
            self.shell.interrupted(now);
        }
        self.publication.typed(now);
        let command = command.map_or(0, |(id, _)| id);
        // Behind other input it is written later, in other modes.
        let echo = if self.input.is_writing() { Echo::Unknown } else { modes.map_or(Echo::Unknown, echo_in) };
        self.input.push(request, command, now);
        self.write_input_shown(echo, now);
    }

    pub(super) fn write_input(&mut self, now: u64) {
        self.write_input_shown(Echo::Unknown, now);
    }

    /// Writes input that is shown so if it is written whole.
    fn write_input_shown(&mut self, echo: Echo, now: u64) {
        if !self.input.is_writing() {
            return;
        }
        for done in self.input.write(self.terminal.leader(), now) {
            // The program that waited has input now, so an earlier foreground sample is out of date.
            self.sampler.typed(now, self.terminal.modes().is_some_and(|modes| modes.echo));
            self.on_input_done(&done, echo, now);
        }
        self.schedule_sample(now);
    }

    /// Drops the queued input together with unread terminal input; each sender gets the number of written bytes.
    pub(super) fn drop_queued_input(&mut self, now: u64) {
        for done in self.input.give_up() {
            self.on_input_done(&done, Echo::Unknown, now);
        }
    }

    fn on_input_done(&mut self, done: &InputDone, echo: Echo, now: u64) {
        self.shell.remember(done.key, done.status, done.value);
        if done.is_command {
            // The command's record is published before the answer that names it.
            self.publish_now(now);
        }
        for caller in &done.from {
            self.connections.answer_typed(*caller, done.status, done.value, echo);
        }
    }

    /// Answers a request of which nothing was typed. A server that sent input discards the foreground state it knew, so
    /// the state is sent again.
    fn answer_untyped(&mut self, from: &[Caller], status: Status, value: u64, now: u64) {
        self.sampler.forget();
        self.schedule_sample(now);
        self.connections.answer_all(from, status, value);
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
}

/// How input is shown in these modes.
fn echo_in(modes: Modes) -> Echo {
    match modes.echo {
        true => Echo::Terminal,
        false if foreground_observer::modes(&modes).are_an_editors() => Echo::Editor,
        false => Echo::Unknown,
    }
}
