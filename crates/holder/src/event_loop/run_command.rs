//! Commands: each waits for the shell's prompt, and is recorded before it is handed over.

use std::io;

use journal::Record;
use rustix::io::Errno;
use sys::{process, time};
use wire::{Activity, Key, Status};

use super::context::Context;
use super::reports::Reports;
use crate::connections::Caller;
use crate::handover::{CommandHandover, WaitingCommand};
use crate::shell_state::{HandoverKeys, Phase};

/// The private key that makes the shell report.
const KEY_REPORT: &[u8] = b"\x1b\x0e";
/// A line that every editor accepts and no shell does anything with.
const EMPTY_LINE: &[u8] = b"\n";

impl CommandHandover {
    pub(super) fn accept(&mut self, from: Caller, key: Key, text: Vec<u8>, until: u64, context: &mut Context) {
        if let Some((status, id)) = context.shell.earlier(&key) {
            return context.connections.answer(from, status, id);
        }
        if context.end.has_begun() {
            return context.connections.answer(from, Status::Ended, 0);
        }
        if text.contains(&0) {
            let invalid = Errno::INVAL.raw_os_error().unsigned_abs();
            return context.connections.answer(from, Status::Failed, invalid.into());
        }
        match self.join(from, &key) {
            Some(Ok(())) => return,
            Some(Err(status)) => return context.connections.answer(from, status, 0),
            None => {}
        }
        match context.shell.phase() {
            Phase::Running(id) => context.connections.answer(from, Status::Busy, u64::from(id)),
            Phase::Starting | Phase::Ready | Phase::Typed if self.is_waiting() => {
                context.connections.answer(from, Status::Busy, u64::from(context.shell.next_id()));
            }
            Phase::Starting | Phase::Ready | Phase::Typed => {
                self.wait(WaitingCommand::new(from, key, text, time::monotonic_us(), until));
            }
        }
    }

    /// The atomic step: if the prompt is ready and the editor has the terminal, record the command, stage it and press
    /// the key.
    pub(super) fn start(&mut self, is_writing: bool, context: &mut Context, now: u64) {
        if !self.is_waiting() {
            return;
        }
        if context.keys.are_a_line() && context.shell.is_cleared(now) && shell_reads_commands(context) {
            context.shell.seen();
        }
        if context.shell.has_answered_a_hook() && editor_waits(context) {
            context.shell.edits_behind_a_hook();
        }
        let is_quiet = !is_writing && !context.shell.is_unsettled(now);
        let is_ready = context.shell.phase() == Phase::Ready && is_quiet;
        if !is_ready || !shell_reads_commands(context) {
            if is_quiet {
                self.wake_editor(context);
            }
            if self.is_overdue(now)
                || self.waits_at_unfinished_line(is_writing, context, now)
                || self.typed_line_runs(context, now)
            {
                // It may be a line that was typed ahead.
                let is_ahead = context.shell.input_since_handover() && !context.terminal.shell_is_foreground();
                let is_typed = context.shell.phase() == Phase::Typed || is_ahead;
                let status = if is_typed { Status::Typed } else { Status::NotReady };
                self.refuse_waiting(status, context);
            }
            return;
        }
        let Some(WaitingCommand { from, key, text, .. }) = self.take_waiting() else {
            return;
        };
        if context.keys.are_a_line() {
            // busybox queries the cursor's position behind its prompt, and reads on without the reply.
            context.move_output(now);
            context.replies.drop_before(context.records.end());
        }
        let id = context.shell.next_id();
        match self.hand_over(id, key, &text, context) {
            Ok((nonce, with)) => {
                context.shell.begin(id, with, now);
                context.shell.awaits_marker(nonce, context.records.end());
                context.shell.remember(key, Status::Ok, u64::from(id));
                context.sampler.start_over(now);
                context.publication.command_began(now);
                // The server reads the acceptance record before the answer that names it; both may wait for the
                // command's first output.
                context.answer_later(&from, u64::from(id), now);
            }
            Err(e) => context.connections.answer_all(&from, Status::Failed, errno_of(&e)),
        }
    }

    /// Another process may have set the terminal to read lines while the editor waits for keys (`stty sane`). An empty line makes the
    /// editor set its own modes for the next prompt.
    fn wake_editor(&mut self, context: &mut Context) {
        let (leader, shell_pid) = (context.terminal.leader(), context.terminal.shell_pid());
        let reads_lines = context.terminal.modes().is_some_and(|modes| modes.canonical);
        let is_asleep =
            reads_lines && context.shell.has_an_empty_line() && context.sampler.waits_for_keys(leader, shell_pid);
        if is_asleep && self.takes_waking() && context.terminal.write(EMPTY_LINE).is_ok() {
            context.shell.typed(EMPTY_LINE, false);
        }
    }

    /// Whether a shell without private keys waits for a line without a prompt mark: a person's line is unfinished, or
    /// the prompt was changed by hand. The two look the same, and in the first case our line would become part of
    /// theirs.
    fn waits_at_unfinished_line(&mut self, is_writing: bool, context: &Context, now: u64) -> bool {
        let is_typed = context.keys.are_a_line() && context.shell.phase() == Phase::Typed && !is_writing;
        let waits = is_typed && !context.shell.is_interrupted() && shell_reads_commands(context);
        self.is_at_unfinished_line(waits, now)
    }

    /// Whether a line typed at the prompt still runs while a command waits. The command waits for a program of the prompt itself
    /// as long as its caller does.
    fn typed_line_runs(&self, context: &Context, now: u64) -> bool {
        context.shell.phase() == Phase::Typed && self.has_waited_for_typed_line(now)
    }

    /// Stages and records the command, then presses the keys; returns the nonce of its first marker, and the kind of the keys.
    fn hand_over(&mut self, id: u32, key: Key, text: &[u8], context: &mut Context) -> io::Result<(u64, HandoverKeys)> {
        let is_touched = context.shell.input_since_handover();
        let short = context.shell.short_keys().and_then(|keys| context.keys.short_keys(text, keys));
        let nonce = self.stage(id, text)?;
        context.records.append(&Record::Accepted { id, nonce, key, text })?;
        let (with, keys) = match short {
            Some(keys) => (HandoverKeys::Short, keys),
            None => (HandoverKeys::Load, context.keys.keys(id, nonce, is_touched)),
        };
        // The editor has the terminal and the input queue is empty, so the few bytes fit.
        context.terminal.write(&keys)?;
        Ok((nonce, with))
    }

    /// Answers the waiting command, if there is one, without running it.
    pub(super) fn refuse_waiting(&mut self, status: Status, context: &mut Context) {
        if let Some(waiting) = self.take_waiting() {
            context.connections.answer_all(&waiting.from, status, 0);
        }
    }
}

/// Whether the line editor of a shell that is given keys has read all input and waits for more.
fn editor_waits(context: &Context) -> bool {
    let (leader, shell_pid) = (context.terminal.leader(), context.terminal.shell_pid());
    !context.keys.are_a_line() && context.has_modes_of_an_editor() && context.sampler.waits_for_keys(leader, shell_pid)
}

/// Whether typed bytes are read as a command now: by the line editor that has the terminal, or by a shell that
/// waits for a line.
fn shell_reads_commands(context: &Context) -> bool {
    let (leader, shell_pid) = (context.terminal.leader(), context.terminal.shell_pid());
    if context.keys.are_a_line() {
        return context.sampler.is_at_line(leader, shell_pid);
    }
    // A hook may read a key in other modes. Input typed ahead may start a program that reads next.
    let is_untouched = !context.shell.input_since_handover();
    let do_modes_prove_it = is_untouched && !context.keys.hooks_in_editor_modes();
    // A stopped shell reads the keys when it continues.
    let is_stopped = || is_untouched && process::is_stopped(shell_pid);
    let reads = || context.sampler.waits_for_keys(leader, shell_pid) || is_stopped();
    context.has_modes_of_an_editor() && (do_modes_prove_it || reads())
}

pub(super) fn press_report_key(from: Caller, reports: &Reports, is_writing: bool, context: &mut Context) {
    let (leader, shell_pid) = (context.terminal.leader(), context.terminal.shell_pid());
    if reports.are_in_prompts() {
        // The shell has no report key; the kernel shows whether it waits at its prompt.
        let is_there = match context.keys.are_a_line() {
            true => context.sampler.is_at_line(leader, shell_pid),
            false => context.sampler.waits_for_keys(leader, shell_pid),
        };
        if is_there {
            context.shell.seen();
        }
        return context.connections.answer(from, if is_there { Status::Ok } else { Status::NotReady }, 0);
    }
    let sample = context.sampler.sample(leader, shell_pid);
    let at_editor = sample.is_some_and(|sample| sample.state.foreground == Activity::Editor);
    if !at_editor || is_writing {
        return context.connections.answer(from, Status::NotReady, 0);
    }
    context.shell.asked();
    let status = if context.terminal.write(KEY_REPORT).is_ok() { Status::Ok } else { Status::Failed };
    context.connections.answer(from, status, 0);
    // The next state says whether the shell has read the key: no state is reported before it has.
    let now = time::monotonic_us();
    context.sampler.typed(now, false);
    context.sampler.schedule_sample(now);
}

/// The error's number, as an answer's value.
pub(super) fn errno_of(error: &io::Error) -> u64 {
    error.raw_os_error().unwrap_or(0).unsigned_abs().into()
}
