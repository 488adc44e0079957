//! Commands in a nested shell: typed when a program inside reads a line and the caller says that it is a shell.
//!
//! ```text
//! typed ──marker──► begun ──marker──► completed, `boundary nonce`
//!   │ 5 s             │ interrupted, and the same program reads again: failed, exit code unknown
//!   └► failed: unknown whether it ran          the nested shell ends: failed, with the shell's status
//! ```
//! While such a command runs, the command that started the nested shell runs too and counts as busy.

use wire::Key;

use super::programs::Program;
use crate::action::{ActionError, Boundary, CommandStatus, EndedBy, Foreground, TargetShell, Wait};
use crate::limits;
use crate::sessions::session::machine::command_request::Line;
use crate::sessions::session::machine::context::Context;
use crate::sessions::session::machine::errors::{busy_error, busy_inside_error, key_reused};
use crate::sessions::session::machine::foreground::state::ForegroundState;
use crate::sessions::session::machine::nested_command::state::NestedShell;
use crate::sessions::session::machine::pending_commands::PendingNested;
use crate::sessions::session::machine::session::Session;
use crate::sessions::session::requests::{KeyUse, StartReply};
use crate::sessions::timeline::nested_line::NestedLine;

/// The error of a command whose end was not reported, but whose shell shows its prompt again.
const UNREPORTED: &str = "its end was not reported, but its shell shows its prompt again: exec has replaced the shell, or redirected its \
                          output (exec >/dev/tty as input restores it)";

/// The reason why a command cannot be typed now.
enum NestedRefusal {
    /// The foreground program may read in a moment.
    Soon,
    /// It passes keys on to another terminal, where a shell may read in a moment without a sign here.
    Relayed,
    Never(ActionError),
}

impl Session {
    /// Types the command into the foreground program, or returns why it cannot.
    pub(crate) fn ask_run_inside(
        &mut self,
        text: Vec<u8>,
        key: Key,
        patience_ms: u32,
        wait: Option<Wait>,
        shell: TargetShell,
        started: StartReply,
    ) {
        match self.cx.key_use(&key) {
            KeyUse::Command(earlier) => return self.hand_out(earlier, wait, started),
            KeyUse::OtherRequest => return drop(started.send(Err(key_reused()))),
            KeyUse::Underway | KeyUse::Unused => {}
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        let patience_until = self.cx.now.at + std::time::Duration::from_millis(u64::from(patience_ms));
        let until = patience_until.min(self.cx.now.at + limits::INSIDE_SETTLES);
        let pending = PendingNested { text, key, until, patience_until, wait, shell, started };
        self.pending.nested.push(pending);
        self.run_pending_inside();
    }

    /// Types the waiting commands if the nested shell reads now.
    pub(crate) fn run_pending_inside(&mut self) {
        for pending in std::mem::take(&mut self.pending.nested) {
            match self.cx.key_use(&pending.key) {
                KeyUse::Command(earlier) => {
                    self.hand_out(earlier, pending.wait, pending.started);
                    continue;
                }
                // The holder answers with the command that it has under this key.
                KeyUse::Underway => {
                    self.type_inside(pending);
                    continue;
                }
                KeyUse::OtherRequest | KeyUse::Unused => {}
            }
            match self.inside.reads_inside(&self.cx, &self.foreground) {
                Ok(())
                    if self.inside.may_react(&self.cx, &self.foreground, pending.shell)
                        && self.cx.now.at < pending.until =>
                {
                    self.pending.nested.push(pending);
                }
                Ok(())
                    if pending.shell == TargetShell::Foremost
                        && !self.inside.is_known_shell(&self.cx, &self.foreground) =>
                {
                    self.run_outside(pending)
                }
                Ok(()) => self.type_inside(pending),
                Err(NestedRefusal::Soon) if self.cx.now.at < pending.until => self.pending.nested.push(pending),
                Err(_) if pending.shell == TargetShell::Foremost => self.run_outside(pending),
                Err(NestedRefusal::Relayed) if self.cx.now.at < pending.until => self.pending.nested.push(pending),
                Err(NestedRefusal::Soon | NestedRefusal::Relayed) => {
                    let error = busy_inside_error(&self.cx, &self.foreground, &self.inside);
                    drop(pending.started.send(Err(error)));
                }
                Err(NestedRefusal::Never(error)) => drop(pending.started.send(Err(error))),
            }
        }
    }

    /// Hands the command to the session's own shell, or returns why the shell does not take it.
    fn run_outside(&mut self, pending: PendingNested) {
        let left = pending.patience_until.saturating_duration_since(self.cx.now.at);
        let patience_ms = u32::try_from(left.as_millis()).unwrap_or(u32::MAX);
        self.ask_run(pending.text.into_bytes(), pending.key, pending.shell, patience_ms, pending.wait, pending.started);
    }

    fn type_inside(&mut self, pending: PendingNested) {
        let PendingNested { text, key, wait, started, .. } = pending;
        let inside = NestedLine::new();
        let line = match inside.line(&text) {
            Ok(line) => line,
            Err(bytes) => {
                let most = limits::INSIDE_LINE_BYTES_MAX;
                let problem = format!(
                    "a nested shell receives a command as one line of at most {most} bytes, and this one would have {bytes}; send it in parts, or write a file there and run that"
                );
                return drop(started.send(Err(ActionError::Invalid { field: "command", problem })));
            }
        };
        if self.cx.timeline.log().inside.is_none() {
            self.inside
                .begin(self.foreground.state, self.cx.unfinished_line(self.cx.timeline.output().scanner.position()));
        }
        // A line editor takes a carriage return as the end of a line; a program in canonical mode gets a newline from
        // the kernel.
        let end = if self.foreground.state.is_some_and(|s| s.canonical) { '\n' } else { '\r' };
        let bytes = format!("{line}{end}").into_bytes();
        self.type_line(Line { key, text, nonce: Some(inside.nonce), bytes }, wait, started);
    }

    /// The marker of the command's end came.
    pub(crate) fn on_inside_end(&mut self, id: u32) {
        let end = self.cx.timeline.log().command(id).and_then(|c| c.end.as_ref());
        let is_over = end.is_some_and(|end| end.status == CommandStatus::Terminated);
        let is_reported = end.is_some_and(|end| end.boundary == Boundary::Nonce);
        let is_busy = self.foreground.state.is_some_and(|s| s.foreground == wire::Activity::Busy);
        if is_busy || self.foreground.sampled_at < end.map_or(0, |end| end.at) {
            // The state was about the ended command.
            self.foreground.state = None;
        }
        self.inside.end(self.cx.now.at, is_reported);
        self.waits.notify_started(|waits_for| waits_for == id);
        self.cx.put_on_record(id);
        if !self.cx.follower.is_replaying && self.cx.timeline.log().untimed.contains(&id) {
            self.foreground.judge(&mut self.cx, id);
        }
        self.waits.finish_where(
            &mut self.cx,
            &self.foreground,
            |w| w.command == Some(id),
            if is_over { EndedBy::Exited } else { EndedBy::Ended },
        );
    }

    /// Ends the command without a marker: its outcome is unknown.
    pub(crate) fn give_up_inside(&mut self, status: CommandStatus, why: &str) {
        if let Some(id) = self.cx.timeline.give_up_inside(status, why, Boundary::Heuristic, self.cx.now.us) {
            self.foreground.judge(&mut self.cx, id);
            self.on_inside_end(id);
        }
    }

    /// The timers of nested commands.
    pub(crate) fn check_nested_command(&mut self) {
        let now = self.cx.now.at;
        if !self.pending.nested.is_empty() {
            self.run_pending_inside();
        }
        let Some(has_begun) = self.cx.timeline.log().inside.as_ref().map(|inside| inside.has_begun) else { return };
        if !has_begun {
            if self.inside.is_overdue(now) {
                let why = "the line was typed, but no nested shell has reported a start: whether it ran is unknown; \
                           read the output; C-c clears an unread line";
                self.give_up_inside(CommandStatus::Failed, why);
            }
            return;
        }
        let is_back = self.inside.seems_back_at_its_prompt(&self.cx, &self.foreground);
        if self.inside.is_back_for_long(now, is_back) {
            return self.give_up_inside(CommandStatus::Completed, UNREPORTED);
        }
        // Over a connection, the kernel shows the same program all the time, while a handler of the interrupt may run
        // at the other end: it is given time.
        let seems_thrown_away = self.inside.seems_thrown_away(&self.cx, &self.foreground);
        if self.inside.is_thrown_away(now, seems_thrown_away) || seems_thrown_away && is_back {
            let why = "interrupted; over a connection it may still run";
            self.give_up_inside(CommandStatus::Completed, why);
        }
    }
}

impl NestedShell {
    /// Whether a program reads that may be a shell; for another user's program the kernel shows only the terminal's
    /// modes.
    fn reads_inside(&self, cx: &Context, foreground: &ForegroundState) -> Result<(), NestedRefusal> {
        if cx.has_exited() {
            return Err(NestedRefusal::Never(cx.ended_error()));
        }
        if let Some(inside) = &cx.timeline.log().inside {
            let is_being_thrown_away = self.is_interrupted;
            return Err(if is_being_thrown_away {
                NestedRefusal::Soon
            } else {
                NestedRefusal::Never(busy_error(cx, foreground, self, inside.id))
            });
        }
        // The session's own shell reads: at its prompt, in an unfinished line, or in `read`.
        let own_shell_reads =
            foreground.is_idle(cx) || foreground.state.is_some_and(|s| s.group == cx.timeline.shell().pid);
        if own_shell_reads && !foreground.is_heuristic {
            if cx.timeline.log().current.is_some() {
                return Err(NestedRefusal::Never(busy_inside_error(cx, foreground, self)));
            }
            let problem = "no program in this session can be a nested shell; without inside, the session's own shell runs the command";
            return Err(NestedRefusal::Never(ActionError::Invalid { field: "inside", problem: problem.to_owned() }));
        }
        if cx.timeline.shell().line_is_begun {
            let why = "the program has an unfinished line of input; C-c clears it";
            return Err(NestedRefusal::Never(cx.not_ready(why)));
        }
        let is_settling = self.is_settling(cx.now.at);
        if foreground.seems_at_a_prompt(cx) {
            // The process that the kernel showed last may have ended since: a subshell of the command before.
            let has_ended = is_settling && foreground.foreground_program(cx).is_none();
            return if has_ended {
                Err(NestedRefusal::Soon)
            } else {
                foreground.check_is_a_shell(cx).map_err(NestedRefusal::Never)
            };
        }
        let is_unknown = foreground.typing > 0 || foreground.state.is_none();
        let is_quiet = matches!(foreground.foreground(cx), Foreground::Running | Foreground::Idle);
        Err(match is_quiet {
            true if is_settling || is_unknown => NestedRefusal::Soon,
            true if foreground.is_relayed(cx) => NestedRefusal::Relayed,
            _ => NestedRefusal::Never(busy_inside_error(cx, foreground, self)),
        })
    }

    /// Whether a nested shell is known to be at its prompt, or is on its way to it.
    pub(crate) fn is_inside_a_shell(&self, cx: &Context, foreground: &ForegroundState) -> bool {
        match self.reads_inside(cx, foreground) {
            Ok(()) => self.is_known_shell(cx, foreground) || self.may_react(cx, foreground, TargetShell::Foremost),
            Err(NestedRefusal::Soon) => cx.timeline.log().inside.is_some() || self.is_settling(cx.now.at),
            Err(NestedRefusal::Relayed | NestedRefusal::Never(_)) => false,
        }
    }

    /// Whether the program that seems to be at its prompt may still react to the last event: its output has not come, or
    /// came after the kernel was asked. The other end of a connection may react without a sign here.
    fn may_react(&self, cx: &Context, foreground: &ForegroundState, shell: TargetShell) -> bool {
        let is_old = foreground.sampled_at < cx.timeline.output().scanner.position();
        let is_unknown = || {
            !self.is_known_shell(cx, foreground)
                && (is_old || shell == TargetShell::Foremost && foreground.is_relayed(cx))
        };
        let has_reacted = !cx.has_unread() && self.has_been_answered(cx);
        self.is_settling(cx.now.at) && (!has_reacted || is_unknown())
    }

    /// Whether output has come behind the newest line that was typed and was no command.
    fn has_been_answered(&self, cx: &Context) -> bool {
        self.has_reacted(cx.timeline.output().scanner.position())
    }

    /// Whether a nested shell is known to be at its prompt.
    pub(crate) fn is_at_nested_prompt(&self, cx: &Context, foreground: &ForegroundState) -> bool {
        self.reads_inside(cx, foreground).is_ok() && self.is_known_shell(cx, foreground)
    }

    /// Whether the program that reads is known to be a nested shell at its prompt.
    fn is_known_shell(&self, cx: &Context, foreground: &ForegroundState) -> bool {
        let reader = foreground.state;
        // The shell's own process is nested once `exec` has put another program there.
        let is_own = reader.is_some_and(|s| s.pid == cx.timeline.shell().pid);
        let shell = foreground.foreground_program(cx).filter(|(program, _)| program.is_shell());
        cx.shared.spec.handover.has_hooks()
            && (!is_own || foreground.is_replaced(cx))
            && (shell.is_some() || reader.is_some_and(|s| self.is_known(s.group)))
            && self.has_been_answered(cx)
            && self.is_at_prompt(
                reader.map_or(0, |s| s.pid),
                || cx.unfinished_line(cx.timeline.output().scanner.position()),
                |line| shell.as_ref().is_some_and(|(program, process)| program.shows_prompt(&process.name, line)),
            )
    }

    /// Whether the nested command that runs may be a shell itself, which waits at its prompt.
    pub(crate) fn may_run_a_shell(&self, cx: &Context, foreground: &ForegroundState) -> bool {
        let reader = foreground.foreground_program(cx).map(|(program, _)| program);
        let is_another = foreground.state.is_some_and(|s| !self.is_read_as_before(s));
        cx.timeline.log().inside.is_some()
            && foreground.foreground(cx) == Foreground::InputWanted
            && reader.is_some_and(|program| program == Program::Carrier || program.is_shell() && is_another)
            && foreground.check_is_a_shell(cx).is_ok()
    }

    /// Input or a signal was sent that makes a shell discard the rest of its line.
    pub(crate) fn check_interrupt(&mut self, cx: &mut Context) {
        // A command that used the shell's editor may have been ended. Other input leaves it there, or its end is reported:
        // the report key would become its input.
        cx.timeline.set_editor_in_use(false);
        self.interrupt(cx.now.at, cx.timeline.log().inside.is_some());
    }

    /// Whether the command's end will be decided in a moment: it was interrupted, or only its mark has not come.
    pub(crate) fn is_undecided(&self, cx: &Context, foreground: &ForegroundState) -> bool {
        let is_unknown = cx.timeline.log().inside.is_some() && self.is_interrupted && foreground.state.is_none();
        is_unknown || self.seems_thrown_away(cx, foreground) || self.seems_back_at_its_prompt(cx, foreground)
    }

    /// Whether, after an interrupt, the same program reads in the same mode as before the command: as a rule this is
    /// the nested shell.
    pub(crate) fn seems_thrown_away(&self, cx: &Context, foreground: &ForegroundState) -> bool {
        cx.timeline.log().inside.is_some()
            && self.is_interrupted
            && !cx.has_unread()
            && foreground.state.is_some_and(|s| self.is_read_as_before(s))
            && foreground.waits_for_a_line(cx)
    }

    /// Whether the program that read before is a shell that the kernel names, reads as at its prompt, and shows the prompt
    /// at which the command was typed.
    fn seems_back_at_its_prompt(&self, cx: &Context, foreground: &ForegroundState) -> bool {
        cx.timeline.log().inside.is_some()
            && !cx.has_unread()
            && foreground.state.is_some_and(|s| self.is_read_as_before(s))
            && foreground.waits_for_a_line(cx)
            && foreground.foreground_program(cx).is_some_and(|(program, _)| program.is_shell())
            && foreground.check_is_a_shell(cx).is_ok()
            && self.is_its_prompt(&cx.unfinished_line(cx.timeline.output().scanner.position()))
    }
}
