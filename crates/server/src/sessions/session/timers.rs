//! Timers: wait deadlines, missing hooks and markers, heuristic command ends; and session exit.

use super::super::timeline::{Channel, WITHOUT_HOOKS};
use super::*;

/// The error of the command that called `exec`.
const REPLACED: &str = "exec has put another program in the place of the shell, which is typed at from now on: what runs there has no \
                        exit code, but inside gives one where it is a shell";

impl Session {
    pub(super) fn on_time(&mut self) {
        let now = Instant::now();
        self.waiters.retain(|w| !w.is_abandoned());
        let overdue: Vec<u32> =
            self.start_waiters.iter().filter(|(_, until, _)| now >= *until).map(|(id, ..)| *id).collect();
        self.notify_started(|id| overdue.contains(&id));
        if self.is_undecided() {
            self.waiters.iter_mut().for_each(|w| w.defer_quiet_timer(now));
        }
        let due: Vec<usize> =
            (0..self.waiters.len()).rev().filter(|i| self.waiters[*i].by_time(now).is_some()).collect();
        for i in due {
            let waiter = self.waiters.swap_remove(i);
            if let Some((ended_by, matched)) = waiter.by_time(now) {
                self.finish(waiter, ended_by, matched);
            }
        }
        if let Some(painted) = self.painted_at.filter(|_| self.foreground() == Foreground::Fullscreen) {
            self.finish_where(|w| w.still_at(painted).is_some_and(|at| now >= at), EndedBy::Quiet);
        }
        let is_suspicious = self.editor_since.is_some_and(|t| now >= t + limits::EDITOR_SUSPICION);
        if is_suspicious && !self.timeline.prompt_seen && self.is_replaced() {
            self.editor_since = None;
            self.goes_without_hooks();
        } else if is_suspicious && self.is_replaced() {
            // The process is no longer our shell: our report key would be input for the program it has become.
            self.editor_since = None;
            let why = if self.is_heuristic { WITHOUT_HOOKS } else { REPLACED };
            self.goes_without_hooks();
            self.end_heuristically(why);
        } else if is_suspicious && self.reported_at.is_none() && !self.keys_are_read() {
            self.editor_since = Some(now);
        } else if is_suspicious
            && self.shared.spec.handover.is_in_band()
            && !self.timeline.scanner.modes().bracketed_paste
        {
            // The shell reads keys for one of its commands: at its prompt, its editor would enable bracketed paste.
            (self.editor_since, self.timeline.still_inside, self.state_pending) = (None, true, true);
        } else if is_suspicious && self.reported_at.is_none() {
            self.reported_at = Some(now);
            self.call(Call::Report, |seq| ToHolder::Report { seq });
        }
        if self.reported_at.is_some_and(|t| now >= t + limits::REPORT_PATIENCE) {
            self.reported_at = None;
            self.on_report_overdue();
        }
        if self.marker_missed_at.is_some_and(|t| now >= t + limits::MARKER_PATIENCE) {
            self.marker_missed_at = None;
            let mut news = Vec::new();
            let at = self.timeline.scanner.position();
            for id in self.timeline.ends_without_marker() {
                self.timeline.expire(id, at, &mut news);
            }
            self.on_news(news);
        }
        self.check_holder_timeout();
        self.check_typed_command();
        self.refuse_pending();
        self.check_nested_command();
        self.check_limits();
        self.check_expiry();
    }

    /// Ends the waits that the new foreground state ends. Its meaning depends on the output before it, so that output
    /// is read first.
    pub(super) fn check_foreground(&mut self) {
        let is_settled = self.screen_settles_at().is_none_or(|at| Instant::now() >= at);
        if self.state_pending && is_settled && !self.has_unread() {
            self.state_pending = false;
            if let Some(ended_by) = self.pause() {
                self.finish_where(Waiter::ends_on_input_wanted, ended_by);
            }
        }
    }

    /// Whether the shell's process runs another program since `exec`: its command line is not the one we started, or
    /// its program image is not the one that has reported.
    pub(super) fn is_replaced(&self) -> bool {
        if self.image.is_some_and(|ours| sys::process::image(self.timeline.shell_pid).is_some_and(|now| now != ours)) {
            return true;
        }
        let ours: Vec<_> = self.shared.spec.argv.iter().map(|a| String::from_utf8_lossy(a)).collect();
        let now = sys::process::command_line(self.timeline.shell_pid);
        // A process that has ended has no command line.
        !now.is_empty() && now != ours.join(" ")
    }

    /// Whether the shell has read the keys that handed the command over; a report key pressed before that would become
    /// the command's input.
    fn keys_are_read(&self) -> bool {
        let Some(command) = self.timeline.current.and_then(|id| self.timeline.command(id)) else {
            return !self.timeline.prompt_seen;
        };
        // The kernel showed that a shell without private keys reads again and has nothing left to read.
        if self.takes_lines() {
            return true;
        }
        let age = micros(SystemTime::now()).saturating_sub(command.accepted_us);
        command.start.is_some() || std::time::Duration::from_micros(age) > limits::KEYS_READ
    }

    /// Whether commands are handed over as lines, because the shell has no private keys.
    pub(super) fn takes_lines(&self) -> bool {
        self.shared.spec.handover.line().is_some()
    }

    /// The shell did not answer the report key: its hooks are gone, and with them the exit code.
    pub(super) fn on_report_overdue(&mut self) {
        if self.timeline.still_inside {
            // The shell has reported that the command itself uses the line editor.
            (self.editor_since, self.state_pending) = (None, true);
            return;
        }
        self.editor_since = None;
        let has_begun =
            self.timeline.current.and_then(|id| self.timeline.command(id)).is_some_and(|c| c.start.is_some());
        // Such a shell has reported the beginning of its output, so its hooks work; only this end is lost.
        if !((self.takes_lines() || self.shared.spec.handover.is_in_band()) && has_begun) {
            self.goes_without_hooks();
        }
        let lost = if has_begun || !self.takes_lines() {
            "the shell's hooks are gone, so its exit code is not known"
        } else {
            "the shell's hooks are gone, so it is not known whether it has run, nor its exit code"
        };
        self.end_heuristically(lost);
    }

    /// When a typed command that seems to have ended is old enough for its end to count.
    pub(super) fn typed_command_at(&self) -> Option<Instant> {
        let typed = self.timeline.current_command().filter(|c| c.channel == Channel::Line)?;
        let (reads_again, typed_us) = (self.reads_commands(), typed.accepted_us);
        let age = std::time::Duration::from_micros(micros(SystemTime::now()).saturating_sub(typed_us));
        reads_again.then(|| Instant::now() + limits::TYPED_AGE_MIN.saturating_sub(age))
    }

    /// Ends a typed command when the shell reads the terminal again; output from before that is read first.
    pub(super) fn check_typed_command(&mut self) {
        if self.is_heuristic
            && (self.journal_unreadable || !self.has_unread())
            && self.typed_command_at().is_some_and(|at| at <= Instant::now())
        {
            self.end_heuristically(WITHOUT_HOOKS);
        }
    }

    pub(super) fn end_heuristically(&mut self, error: &str) {
        let now_us = micros(SystemTime::now());
        self.give_up_inside(CommandStatus::Failed, error);
        if let Some(id) = self.timeline.end_current(CommandStatus::Failed, error, Boundary::Heuristic, now_us) {
            self.judge(id);
            self.put_on_record(id);
            self.finish_where(|w| w.command == Some(id) || w.command.is_none(), EndedBy::Ended);
        }
    }

    /// Publishes the end and stores the command in the history, which outlives this actor.
    pub(super) fn put_on_record(&mut self, id: u32) {
        self.note_end(id);
        self.put_row(id);
    }

    /// Stores only the history row, also of a command that has not ended.
    pub(super) fn put_row(&self, id: u32) {
        if let Some(command) = self.timeline.command(id) {
            self.shared.store.put_command(views::history_row(&self.shared.id, command));
        }
    }

    /// Handles the shell's exit while the holder still ends its descendants. The last output belongs to the last
    /// command, so this runs only after everything up to the tail is read.
    pub(super) fn check_exit(&mut self) {
        if self.exit_told || self.timeline.exit.is_none() {
            return;
        }
        self.exit_told = true;
        let exit = views::exit_of(&self.timeline);
        let reason = exit.as_ref().map_or_else(String::new, |e| e.reason.clone());
        let now_us = self.timeline.exit.map_or(0, |(_, _, us)| us);
        self.give_up_inside(CommandStatus::Terminated, &reason);
        if let Some(id) = self.timeline.end_current(CommandStatus::Terminated, &reason, Boundary::Attested, now_us) {
            self.put_on_record(id);
        }
        self.note(self.timeline.scanner.held_from(), SessionEvent::Exited(exit));
        self.finish_where(|_| true, EndedBy::Exited);
        self.notify_started(|_| true);
        for pending in std::mem::take(&mut self.pending) {
            let _ = pending.started.send(Err(self.ended_error()));
        }
        self.run_pending_inside();
        for waiter in self.prompt_waiters.drain(..) {
            let _ = waiter.send(());
        }
    }

    /// The connection has ended: everything that the holder wrote is on disk.
    pub(super) fn on_last_tail(&mut self) {
        self.is_tail_last = true;
        let journal = self.shared.reader.len().unwrap_or_default();
        self.on_tail(Tail { journal, events: self.replay.events_end().unwrap_or_default() });
    }

    /// All output has been read.
    pub(super) fn on_holder_gone(&mut self) {
        self.holder_gone = true;
        self.check_exit();
        if self.timeline.exit.is_none() {
            // The holder was killed: the kernel hung the terminal up, and processes that survived this are found by the
            // session's tag.
            let swept = match holder_liveness::look(&self.shared.folder, self.holder) {
                Liveness::Dead(dead) => holder_liveness::sweep(&self.shared.id, dead),
                Liveness::Alive(_)
                | Liveness::Copy(_)
                | Liveness::Unknown(_)
                | Liveness::MayLive(_)
                | Liveness::NeverBegan => 0,
            };
            tracing::warn!(session = %self.shared.id, swept, "the holder is gone");
            let folder = &self.shared.folder;
            if self.timeline.last_us == 0 {
                self.timeline.last_us = micros(SystemTime::now());
            }
            holder_liveness::notify_unrecorded_end(&mut self.timeline, folder, holder_liveness::has_left(folder));
            let why = self.timeline.unrecorded_end.clone().unwrap_or_default();
            self.give_up_inside(CommandStatus::Terminated, &why);
            let now_us = micros(SystemTime::now());
            self.timeline.end_current(CommandStatus::Terminated, &why, Boundary::Attested, now_us);
            self.note(self.timeline.scanner.held_from(), SessionEvent::Exited(views::exit_of(&self.timeline)));
            self.finish_where(|_| true, EndedBy::Exited);
        }
        let asked = |call: &Call| matches!(call, Call::Terminate(_));
        for (_, call) in self.calls.extract_if(|_, call| asked(call)) {
            if let Call::Terminate(reply) = call {
                self.enders.push(reply);
            }
        }
        self.notify_terminators(Ended { killed: 0, left: 0 });
        let ended = self.ended_error();
        self.give_up_calls(|| ended.clone());
    }

    /// Fails the calls that were sent over the old connection.
    pub(super) fn give_up_calls(&mut self, why: impl Fn() -> ActionError) {
        (self.typing, self.reported_at) = (0, None);
        self.timeline.answer_heard = self.timeline.answered;
        self.timeline.signals_on_their_way.clear();
        for (_, call) in std::mem::take(&mut self.calls) {
            holder_timeout::give_up(call, why());
        }
    }

    pub(super) fn notify_terminators(&mut self, ended: Ended) {
        for reply in self.enders.drain(..) {
            let _ = reply.send(Ok(ended));
        }
    }

    /// Whether the session continues without this actor.
    pub(crate) fn is_adrift(&self) -> bool {
        self.is_adrift
    }

    /// The process of its holder.
    pub(crate) fn holder(&self) -> Option<Identity> {
        self.holder
    }

    /// Whether the session has ended for good, so that its actor can go.
    pub(crate) fn is_over(&self) -> bool {
        self.holder_gone
    }
}
