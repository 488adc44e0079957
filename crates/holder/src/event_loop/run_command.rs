//! Commands: each waits for the shell's prompt, and is recorded before it is handed over.

use std::io;

use journal::Record;
use rustix::io::Errno;
use sys::{process, time};
use wire::{Activity, Key, Status};

use super::Holder;
use crate::connections::Caller;
use crate::foreground_observer;
use crate::handover::WaitingCommand;
use crate::shell_state::{HandoverKeys, Phase};

/// The private key that makes the shell report.
const KEY_REPORT: &[u8] = b"\x1b\x0e";
/// A line that every editor accepts and no shell does anything with.
const EMPTY_LINE: &[u8] = b"\n";

impl Holder {
    pub(super) fn accept_command(&mut self, from: Caller, key: Key, text: Vec<u8>, until: u64) {
        if let Some((status, id)) = self.shell.earlier(&key) {
            return self.connections.answer(from, status, id);
        }
        if self.end.has_begun() {
            return self.connections.answer(from, Status::Ended, 0);
        }
        if text.contains(&0) {
            let invalid = Errno::INVAL.raw_os_error().unsigned_abs();
            return self.connections.answer(from, Status::Failed, invalid.into());
        }
        match self.handover.join(from, &key) {
            Some(Ok(())) => return,
            Some(Err(status)) => return self.connections.answer(from, status, 0),
            None => {}
        }
        match self.shell.phase() {
            Phase::Running(id) => self.connections.answer(from, Status::Busy, u64::from(id)),
            Phase::Starting | Phase::Ready | Phase::Typed if self.handover.is_waiting() => {
                self.connections.answer(from, Status::Busy, u64::from(self.shell.next_id()));
            }
            Phase::Starting | Phase::Ready | Phase::Typed => {
                self.handover.wait(WaitingCommand::new(from, key, text, time::monotonic_us(), until));
            }
        }
    }

    /// The atomic step: if the prompt is ready and the editor has the terminal, record the command, stage it and press
    /// the key.
    pub(super) fn start_waiting_command(&mut self, now: u64) {
        if !self.handover.is_waiting() {
            return;
        }
        if self.handover.takes_lines() && self.shell.is_cleared(now) && self.shell_reads_commands() {
            self.shell.seen();
        }
        if self.shell.has_answered_a_hook() && self.editor_waits() {
            self.shell.edits_behind_a_hook();
        }
        let is_quiet = !self.input.is_writing() && !self.shell.is_unsettled(now);
        let is_ready = self.shell.phase() == Phase::Ready && is_quiet;
        if !is_ready || !self.shell_reads_commands() {
            if is_quiet {
                self.wake_editor();
            }
            if self.handover.is_overdue(now) || self.waits_at_unfinished_line(now) || self.typed_line_runs(now) {
                // It may be a line that was typed ahead.
                let is_ahead = self.shell.input_since_handover() && !self.terminal.shell_is_foreground();
                let is_typed = self.shell.phase() == Phase::Typed || is_ahead;
                let status = if is_typed { Status::Typed } else { Status::NotReady };
                self.refuse_waiting(status);
            }
            return;
        }
        let Some(WaitingCommand { from, key, text, .. }) = self.handover.take_waiting() else {
            return;
        };
        if self.handover.takes_lines() {
            // busybox queries the cursor's position behind its prompt, and reads on without the reply.
            self.move_output(now);
            self.replies.drop_before(self.records.end());
        }
        let id = self.shell.next_id();
        match self.hand_over(id, key, &text) {
            Ok((nonce, with)) => {
                self.shell.begin(id, with, now);
                self.shell.awaits_marker(nonce, self.records.end());
                self.shell.remember(key, Status::Ok, u64::from(id));
                self.sampler.start_over(now);
                self.publication.command_began(now);
                // The server reads the acceptance record before the answer that names it; both may wait for the
                // command's first output.
                self.answer_later(&from, u64::from(id), now);
            }
            Err(e) => self.connections.answer_all(&from, Status::Failed, errno_of(&e)),
        }
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

    /// Whether the line editor of a shell that is given keys has read all input and waits for more.
    fn editor_waits(&self) -> bool {
        let (leader, shell_pid) = (self.terminal.leader(), self.terminal.shell_pid());
        !self.handover.takes_lines() && self.has_modes_of_an_editor() && self.sampler.waits_for_keys(leader, shell_pid)
    }

    /// Another process may have set the terminal to read lines while the editor waits for keys (`stty sane`). An empty line makes the
    /// editor set its own modes for the next prompt.
    fn wake_editor(&mut self) {
        let (leader, shell_pid) = (self.terminal.leader(), self.terminal.shell_pid());
        let reads_lines = self.terminal.modes().is_some_and(|modes| modes.canonical);
        let is_asleep = reads_lines && self.shell.has_an_empty_line() && self.sampler.waits_for_keys(leader, shell_pid);
        if is_asleep && self.handover.takes_waking() && self.terminal.write(EMPTY_LINE).is_ok() {
            self.shell.typed(EMPTY_LINE, false);
        }
    }

    /// Whether a shell without private keys waits for a line without a prompt mark: a person's line is unfinished, or
    /// the prompt was changed by hand. The two look the same, and in the first case our line would become part of
    /// theirs.
    fn waits_at_unfinished_line(&mut self, now: u64) -> bool {
        let is_typed = self.handover.takes_lines() && self.shell.phase() == Phase::Typed && !self.input.is_writing();
        let waits = is_typed && !self.shell.is_interrupted() && self.shell_reads_commands();
        self.handover.is_at_unfinished_line(waits, now)
    }

    /// Whether a line typed at the prompt still runs while a command waits. The command waits for a program of the prompt itself
    /// as long as its caller does.
    fn typed_line_runs(&self, now: u64) -> bool {
        self.shell.phase() == Phase::Typed && self.handover.has_waited_for_typed_line(now)
    }

    /// Whether typed bytes are read as a command now: by the line editor that has the terminal, or by a shell that
    /// waits for a line.
    fn shell_reads_commands(&self) -> bool {
        let (leader, shell_pid) = (self.terminal.leader(), self.terminal.shell_pid());
        if self.handover.takes_lines() {
            return self.sampler.is_at_line(leader, shell_pid);
        }
        // A hook may read a key in other modes. Input typed ahead may start a program that reads next.
        let is_untouched = !self.shell.input_since_handover();
        let do_modes_prove_it = is_untouched && !self.handover.hooks_in_editor_modes();
        // A stopped shell reads the keys when it continues.
        let is_stopped = || is_untouched && process::is_stopped(shell_pid);
        let reads = || self.sampler.waits_for_keys(leader, shell_pid) || is_stopped();
        self.has_modes_of_an_editor() && (do_modes_prove_it || reads())
    }

    /// Stages and records the command, then presses the keys; returns the nonce of its first marker, and the kind of the keys.
    fn hand_over(&mut self, id: u32, key: Key, text: &[u8]) -> io::Result<(u64, HandoverKeys)> {
        let nonce = self.nonces.next()?;
        let is_touched = self.shell.input_since_handover();
        let short = self.shell.short_keys().and_then(|keys| self.handover.short_keys(text, keys));
        self.handover.stage(id, nonce, text)?;
        self.records.append(&Record::Accepted { id, nonce, key, text })?;
        let (with, keys) = match short {
            Some(keys) => (HandoverKeys::Short, keys),
            None => (HandoverKeys::Load, self.handover.keys(id, nonce, is_touched)),
        };
        // The editor has the terminal and the input queue is empty, so the few bytes fit.
        self.terminal.write(&keys)?;
        Ok((nonce, with))
    }

    /// The shell is at its next prompt and has not taken the command: presses the load key there.
    pub(super) fn press_load_key_again(&mut self, now: u64) {
        let is_editing = || self.terminal.modes().is_some_and(|modes| !modes.canonical);
        if self.shell.awaits_load_key(now) && is_editing() {
            self.shell.load_key_pressed();
            // If the write fails, the report key finds the shell at its prompt.
            let _ = self.terminal.write(&self.handover.keys(0, 0, self.shell.input_since_handover()));
        }
    }

    /// Answers the waiting command, if there is one, without running it.
    pub(super) fn refuse_waiting(&mut self, status: Status) {
        if let Some(waiting) = self.handover.take_waiting() {
            self.connections.answer_all(&waiting.from, status, 0);
        }
    }

    /// Whether a command was handed over so recently that the shell may not have read its keys yet.
    pub(super) fn has_keys_of_ours_to_read(&mut self) -> bool {
        let now = time::monotonic_us();
        self.note_beginning(now);
        self.shell.may_have_keys_to_read(now) && self.terminal.shell_is_foreground()
    }

    pub(super) fn press_report_key(&mut self, from: Caller) {
        let (leader, shell_pid) = (self.terminal.leader(), self.terminal.shell_pid());
        if self.marks.is_some() {
            // The shell has no report key; the kernel shows whether it waits at its prompt.
            let is_there = match self.handover.takes_lines() {
                true => self.sampler.is_at_line(leader, shell_pid),
                false => self.sampler.waits_for_keys(leader, shell_pid),
            };
            if is_there {
                self.shell.seen();
            }
            return self.connections.answer(from, if is_there { Status::Ok } else { Status::NotReady }, 0);
        }
        let sample = self.sampler.sample(leader, shell_pid);
        let at_editor = sample.is_some_and(|sample| sample.state.foreground == Activity::Editor);
        if !at_editor || self.input.is_writing() {
            return self.connections.answer(from, Status::NotReady, 0);
        }
        self.shell.asked();
        let status = if self.terminal.write(KEY_REPORT).is_ok() { Status::Ok } else { Status::Failed };
        self.connections.answer(from, status, 0);
        // The next state says whether the shell has read the key: no state is reported before it has.
        let now = time::monotonic_us();
        self.sampler.typed(now, false);
        self.sampler.schedule_sample(now);
    }
}

/// The error's number, as an answer's value.
pub(super) fn errno_of(error: &io::Error) -> u64 {
    error.raw_os_error().unwrap_or(0).unsigned_abs().into()
}
