//! Input: requests are typed in the order of arrival, once per idempotency key, recorded before they are written, and a
//! secret only while the terminal does not echo. Query replies are written beside them.

use sys::pty::Modes;
use wire::{ShownBy, Status};

use super::context::Context;
use super::input_record::{put_on_record, shell_edits};
use super::run_command::errno_of;
use crate::foreground_observer;
use crate::input::{Admission, Input, InputRequest, Next};
use crate::input_queue::InputDone;

impl Input {
    /// Takes a request; true if input was typed.
    pub(super) fn queue(&mut self, request: InputRequest, context: &mut Context, now: u64) -> bool {
        let Some(from) = request.from.first().copied() else { return false };
        if let Some((status, value)) = context.shell.earlier(&request.key) {
            context.answer_untyped(&[from], status, value, now);
            return false;
        }
        match self.admit(request) {
            Admission::Waits => return self.start(context, now),
            Admission::Joined => {}
            Admission::Refused(status, value) => context.answer_untyped(&[from], status, value, now),
        }
        false
    }

    /// Moves every request that may be typed now into the input queue, in order; true if there was one.
    pub(super) fn start(&mut self, context: &mut Context, now: u64) -> bool {
        let has_exited = context.end.has_exited();
        if !self.has_waiting() || !has_exited && context.awaits_beginning(now) {
            return false;
        }
        let mut has_typed = false;
        loop {
            let is_shown = || context.terminal.modes().is_some_and(|m| m.echo || !m.canonical && shell_edits(context));
            match self.next(has_exited, is_shown, now) {
                Some(Next::Typed(request)) => has_typed |= self.take(request, context, now),
                Some(Next::WouldShow(request)) => context.answer_untyped(&request.from, Status::WouldEcho, 0, now),
                None => return has_typed,
            }
        }
    }

    /// Whether a hook of the prompt reads a line, on a terminal that reads lines: the shell itself waits for one and runs nothing.
    fn hook_reads(&self, context: &Context) -> bool {
        let (leader, shell_pid) = (context.terminal.leader(), context.terminal.shell_pid());
        let is_possible = context.shell.command() == 0 && !context.keys.are_a_line() && !self.is_writing();
        is_possible && context.sampler.is_seen_to_read(leader, shell_pid)
    }

    /// Types a request; false if it is refused.
    fn take(&mut self, request: InputRequest, context: &mut Context, now: u64) -> bool {
        if context.end.has_exited() {
            context.connections.answer_all(&request.from, Status::Ended, 0);
            return false;
        }
        let modes = context.terminal.modes();
        if let Err((status, value)) = self.takes(&request.bytes, modes) {
            context.answer_untyped(&request.from, status, value, now);
            return false;
        }
        let is_hidden = request.is_secret || self.may_be_secret(modes, context);
        let command = request.command.as_ref().map(|line| (context.shell.number(), line));
        if let Err(e) = put_on_record(request.key, &request.bytes, is_hidden, command, context) {
            context.answer_untyped(&request.from, Status::Failed, errno_of(&e), now);
            return false;
        }
        let hook_reads = modes.is_some_and(|modes| modes.canonical) && self.hook_reads(context);
        context.shell.typed(&request.bytes, hook_reads);
        if request.bytes.last() == Some(&0x03) {
            context.shell.interrupted(now);
        }
        context.publication.typed(now);
        let command = command.map_or(0, |(id, _)| id);
        // Behind other input it is written later, in other modes.
        let shown_by = if self.is_writing() { ShownBy::Unknown } else { modes.map_or(ShownBy::Unknown, shown_by) };
        self.push(request, command, now);
        self.write_shown(shown_by, context, now);
        true
    }

    pub(super) fn go_on_writing(&mut self, context: &mut Context, now: u64) {
        self.write_shown(ShownBy::Unknown, context, now);
    }

    /// Writes input that is shown so if it is written whole.
    fn write_shown(&mut self, shown_by: ShownBy, context: &mut Context, now: u64) {
        if !self.is_writing() {
            return;
        }
        for done in self.write(context.terminal.leader(), now) {
            // The program that waited has input now, so an earlier foreground sample is out of date.
            context.sampler.typed(now, context.terminal.modes().is_some_and(|modes| modes.echo));
            on_done(&done, shown_by, context, now);
        }
        context.schedule_sample(now);
    }

    /// Drops the queued input together with unread terminal input; each sender gets the number of written bytes.
    pub(super) fn drop_queued(&mut self, context: &mut Context, now: u64) {
        for done in self.give_up() {
            on_done(&done, ShownBy::Unknown, context, now);
        }
    }
}

fn on_done(done: &InputDone, shown_by: ShownBy, context: &mut Context, now: u64) {
    context.shell.remember(done.key, done.status, done.value);
    if done.is_command {
        // The command's record is published before the answer that names it.
        context.publish_now(now);
    }
    for caller in &done.from {
        context.connections.answer_typed(*caller, done.status, done.value, shown_by);
    }
}

/// How input is shown in these modes.
fn shown_by(modes: Modes) -> ShownBy {
    match modes.echo {
        true => ShownBy::Terminal,
        false if foreground_observer::modes(&modes).are_an_editors() => ShownBy::Editor,
        false => ShownBy::Unknown,
    }
}
