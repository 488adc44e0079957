//! Commands in a nested shell: typed when a program inside reads a line and the caller says that it is a shell.
//!
//! ```text
//! typed ──marker──► begun ──marker──► completed, `boundary nonce`
//!   │ 5 s             │ interrupted, and the same program reads again: failed, exit code unknown
//!   └► failed: unknown whether it ran          the nested shell ends: failed, with the shell's status
//! ```
//! While such a command runs, the command that started the nested shell runs too and counts as busy.

use std::path::Path;

use wire::{Key, State};

use super::programs::{Program, indents_lines};
use crate::action::{ActionError, Boundary, CommandStatus, EndedBy, Foreground, TargetShell, Wait};
use crate::host::Process;
use crate::limits;
use crate::sessions::session::machine::errors::key_reused;
use crate::sessions::session::machine::pending_commands::PendingNested;
use crate::sessions::session::machine::session::Session;
use crate::sessions::session::machine::typed_commands::Line;
use crate::sessions::session::requests::{KeyUse, StartReply};
use crate::sessions::timeline::nested_line::NestedLine;

/// The error of a command whose end was not reported, but whose shell shows its prompt again.
const UNREPORTED: &str = "its end was not reported, but its shell shows its prompt again: exec has replaced the shell, or redirected its \
                          output (exec >/dev/tty as input brings it back)";

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
    pub(in crate::sessions::session::machine) fn ask_run_inside(
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
    pub(in crate::sessions::session::machine) fn run_pending_inside(&mut self) {
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
            match self.reads_inside() {
                Ok(()) if self.may_react(pending.shell) && self.cx.now.at < pending.until => {
                    self.pending.nested.push(pending);
                }
                Ok(()) if pending.shell == TargetShell::Foremost && !self.is_known_shell() => self.run_outside(pending),
                Ok(()) => self.type_inside(pending),
                Err(NestedRefusal::Soon) if self.cx.now.at < pending.until => self.pending.nested.push(pending),
                Err(_) if pending.shell == TargetShell::Foremost => self.run_outside(pending),
                Err(NestedRefusal::Relayed) if self.cx.now.at < pending.until => self.pending.nested.push(pending),
                Err(NestedRefusal::Soon | NestedRefusal::Relayed) => {
                    let error = self.busy_inside_error();
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

    /// Whether a program reads that may be a shell; for another user's program the kernel shows only the terminal's
    /// modes.
    fn reads_inside(&self) -> Result<(), NestedRefusal> {
        if self.cx.has_exited() {
            return Err(NestedRefusal::Never(self.cx.ended_error()));
        }
        if let Some(inside) = &self.cx.timeline.log().inside {
            let is_being_thrown_away = self.inside.is_interrupted;
            return Err(if is_being_thrown_away {
                NestedRefusal::Soon
            } else {
                NestedRefusal::Never(self.busy_error(inside.id))
            });
        }
        // The session's own shell reads: at its prompt, in an unfinished line, or in `read`.
        let own_shell_reads =
            self.is_idle() || self.foreground.state.is_some_and(|s| s.group == self.cx.timeline.shell().pid);
        if own_shell_reads && !self.foreground.is_heuristic {
            if self.cx.timeline.log().current.is_some() {
                return Err(NestedRefusal::Never(self.busy_inside_error()));
            }
            let problem = "no program in this session can be a nested shell; without inside, the session's own shell runs the command";
            return Err(NestedRefusal::Never(ActionError::Invalid { field: "inside", problem: problem.to_owned() }));
        }
        if self.cx.timeline.shell().line_is_begun {
            let why = "the program has an unfinished line of input; C-c clears it";
            return Err(NestedRefusal::Never(self.cx.not_ready(why)));
        }
        let is_settling = self.inside.is_settling(self.cx.now.at);
        if self.seems_at_a_prompt() {
            // The process that the kernel showed last may have ended since: a subshell of the command before.
            let has_ended = is_settling && self.foreground_program().is_none();
            return if has_ended {
                Err(NestedRefusal::Soon)
            } else {
                self.check_is_a_shell().map_err(NestedRefusal::Never)
            };
        }
        let is_unknown = self.foreground.typing > 0 || self.foreground.state.is_none();
        let is_quiet = matches!(self.foreground(), Foreground::Running | Foreground::Idle);
        Err(match is_quiet {
            true if is_settling || is_unknown => NestedRefusal::Soon,
            true if self.is_relayed() => NestedRefusal::Relayed,
            _ => NestedRefusal::Never(self.busy_inside_error()),
        })
    }

    /// Whether a command can be run inside: a shell is at its prompt, or may be, behind a connection.
    pub(in crate::sessions::session::machine) fn may_be_a_shell(&self) -> bool {
        self.is_on_its_way_to_prompt() || self.seems_at_a_prompt() && self.check_is_a_shell().is_ok()
    }

    /// Whether a nested shell has reported a command's end, and the kernel has shown nothing since.
    pub(in crate::sessions::session::machine) fn is_on_its_way_to_prompt(&self) -> bool {
        self.foreground.typing == 0
            && self.foreground.state.is_none()
            && self.cx.timeline.log().nested_shell_reads_next()
    }

    /// Whether a nested shell is known to be at its prompt, or is on its way to it.
    pub(in crate::sessions::session::machine) fn is_inside_a_shell(&self) -> bool {
        match self.reads_inside() {
            Ok(()) => self.is_known_shell() || self.may_react(TargetShell::Foremost),
            Err(NestedRefusal::Soon) => {
                self.cx.timeline.log().inside.is_some() || self.inside.is_settling(self.cx.now.at)
            }
            Err(NestedRefusal::Relayed | NestedRefusal::Never(_)) => false,
        }
    }

    /// Whether the program that seems to be at its prompt may still react to the last event: its output has not come, or
    /// came after the kernel was asked. The other end of a connection may react without a sign here.
    fn may_react(&self, shell: TargetShell) -> bool {
        let is_old = self.foreground.sampled_at < self.cx.timeline.output().scanner.position();
        let is_unknown = || !self.is_known_shell() && (is_old || shell == TargetShell::Foremost && self.is_relayed());
        let has_reacted = !self.cx.has_unread() && self.has_reacted();
        self.inside.is_settling(self.cx.now.at) && (!has_reacted || is_unknown())
    }

    /// Whether the foreground program passes the keys on.
    fn is_relayed(&self) -> bool {
        self.foreground_program().is_some_and(|(program, _)| program == Program::Carrier)
    }

    /// Whether output has come behind the newest line that was typed and was no command.
    fn has_reacted(&self) -> bool {
        self.inside.has_reacted(self.cx.timeline.output().scanner.position())
    }

    /// Whether a nested shell is known to be at its prompt.
    pub(in crate::sessions::session::machine) fn is_at_nested_prompt(&self) -> bool {
        self.reads_inside().is_ok() && self.is_known_shell()
    }

    /// Whether the program that reads is known to be a nested shell at its prompt.
    fn is_known_shell(&self) -> bool {
        let reader = self.foreground.state;
        // The shell's own process is nested once `exec` has put another program there.
        let is_own = reader.is_some_and(|s| s.pid == self.cx.timeline.shell().pid);
        let shell = self.foreground_program().filter(|(program, _)| program.is_shell());
        self.cx.shared.spec.handover.has_hooks()
            && (!is_own || self.is_replaced())
            && (shell.is_some() || reader.is_some_and(|s| self.inside.is_known(s.group)))
            && self.has_reacted()
            && self.inside.is_at_prompt(
                reader.map_or(0, |s| s.pid),
                || self.cx.unfinished_line(self.cx.timeline.output().scanner.position()),
                |line| shell.as_ref().is_some_and(|(program, process)| program.shows_prompt(&process.name, line)),
            )
    }

    /// The program that reads the terminal, and its process.
    fn foreground_program(&self) -> Option<(Program, Process)> {
        let state = self.foreground.state?;
        let process = self.cx.host().process(state.pid).or_else(|| self.cx.host().process(state.group))?;
        Some((Program::of(&process.name), process))
    }

    /// Whether a program reads the keys here, in a mode of its own, and is known to pass them on to no other terminal.
    pub(in crate::sessions::session::machine) fn is_read_here(&self) -> bool {
        self.foreground.state.is_some_and(|state| !state.canonical)
            && self.foreground_program().is_some_and(|(program, _)| program != Program::Carrier)
    }

    /// Whether the editor that reads here indents each line as the one before it and has asked for no pastes. A virtual environment
    /// gives the program another name than its file has.
    pub(in crate::sessions::session::machine) fn indents_what_is_typed(&self) -> bool {
        let reader = self.foreground.state.filter(|state| !state.canonical && state.foreground.waits());
        let executable = reader.and_then(|state| self.cx.host().executable(state.pid));
        let has_asked = self.cx.timeline.output().scanner.modes().bracketed_paste;
        !has_asked && executable.as_deref().and_then(Path::file_name).is_some_and(indents_lines)
    }

    /// Whether the nested command that runs may be a shell itself, which waits at its prompt.
    pub(in crate::sessions::session::machine) fn may_run_a_shell(&self) -> bool {
        let reader = self.foreground_program().map(|(program, _)| program);
        let is_another = self.foreground.state.is_some_and(|s| !self.inside.is_read_as_before(s));
        self.cx.timeline.log().inside.is_some()
            && self.foreground() == Foreground::InputWanted
            && reader.is_some_and(|program| program == Program::Carrier || program.is_shell() && is_another)
            && self.check_is_a_shell().is_ok()
    }

    /// Refuses what is not a shell at its prompt: it would take the line for its own input.
    fn check_is_a_shell(&self) -> Result<(), ActionError> {
        let reader = self.foreground_program();
        let (name, why) = match (self.foreground.state, &reader) {
            (Some(state), Some((program, process))) => {
                let line = self.cx.host().command_line(process.pid());
                if program.may_be_at_prompt(state.canonical, self.foreground.read_bytes, &line) {
                    return Ok(());
                }
                (process.name.as_str(), if program.is_shell() { "is not at its prompt" } else { "is not a shell" })
            }
            _ => ("the program that reads", "is not known to be a shell"),
        };
        let name = terminal::quote::line(name);
        let problem =
            format!("{name} {why}, and nothing was typed; give it a line as input (is_input, send_input_to_terminal)");
        Err(ActionError::Invalid { field: "inside", problem })
    }

    /// Whether the foreground program waits for a line, as a shell does at its prompt.
    fn seems_at_a_prompt(&self) -> bool {
        let is_others = |s: State| s.foreground == wire::Activity::Unknown && (s.echo || !s.canonical);
        match self.foreground() {
            _ if self.foreground.typing > 0 || self.cx.timeline.log().inside.is_some() => false,
            Foreground::InputWanted => true,
            Foreground::Idle => self.foreground.is_heuristic && self.reads_commands(),
            Foreground::Running => {
                self.foreground.state.is_some_and(is_others) && self.cx.timeline.output().scanner.line_is_open()
            }
            Foreground::PasswordWanted | Foreground::Fullscreen | Foreground::Stopped => false,
        }
    }

    fn busy_inside_error(&self) -> ActionError {
        self.cx.timeline.log().current.map_or_else(|| self.typed_busy_error(), |id| self.busy_error(id))
    }

    fn type_inside(&mut self, pending: PendingNested) {
        let PendingNested { text, key, wait, started, .. } = pending;
        let inside = NestedLine::new();
        let line = match inside.line(&text) {
            Ok(line) => line,
            Err(bytes) => {
                let most = limits::INSIDE_LINE_BYTES_MAX;
                let problem = format!(
                    "a nested shell receives a command as one line, which would have {bytes} bytes here, and {most} is the most; send it in parts, or write a file there and run that"
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

    /// Input or a signal was sent that makes a shell discard the rest of its line.
    pub(in crate::sessions::session::machine) fn check_interrupt(&mut self) {
        // A command that used the shell's editor may have been ended. Other input leaves it there, or its end is reported:
        // the report key would become its input.
        self.cx.timeline.set_editor_in_use(false);
        self.inside.interrupt(self.cx.now.at, self.cx.timeline.log().inside.is_some());
    }

    /// The marker of the command's end came.
    pub(in crate::sessions::session::machine) fn on_inside_end(&mut self, id: u32) {
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
            self.judge(id);
        }
        self.finish_where(|w| w.command == Some(id), if is_over { EndedBy::Exited } else { EndedBy::Ended });
    }

    /// Ends the command without a marker: its outcome is unknown.
    pub(in crate::sessions::session::machine) fn give_up_inside(&mut self, status: CommandStatus, why: &str) {
        if let Some(id) = self.cx.timeline.give_up_inside(status, why, Boundary::Heuristic, self.cx.now.us) {
            self.judge(id);
            self.on_inside_end(id);
        }
    }

    /// The timers of nested commands.
    pub(in crate::sessions::session::machine) fn check_nested_command(&mut self) {
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
        let is_back = self.seems_back_at_its_prompt();
        if self.inside.is_back_for_long(now, is_back) {
            return self.give_up_inside(CommandStatus::Completed, UNREPORTED);
        }
        // Over a connection, the kernel shows the same program all the time, while a handler of the interrupt may run
        // at the other end: it is given time.
        let seems_thrown_away = self.seems_thrown_away();
        if self.inside.is_thrown_away(now, seems_thrown_away) || seems_thrown_away && is_back {
            let why = "interrupted; over a connection it may still run";
            self.give_up_inside(CommandStatus::Completed, why);
        }
    }

    /// Whether the command's end will be decided in a moment: it was interrupted, or only its mark has not come.
    pub(in crate::sessions::session::machine) fn is_undecided(&self) -> bool {
        let is_unknown =
            self.cx.timeline.log().inside.is_some() && self.inside.is_interrupted && self.foreground.state.is_none();
        is_unknown || self.seems_thrown_away() || self.seems_back_at_its_prompt()
    }

    /// Whether, after an interrupt, the same program reads in the same mode as before the command: as a rule this is
    /// the nested shell.
    pub(in crate::sessions::session::machine) fn seems_thrown_away(&self) -> bool {
        self.cx.timeline.log().inside.is_some()
            && self.inside.is_interrupted
            && !self.cx.has_unread()
            && self.foreground.state.is_some_and(|s| self.inside.is_read_as_before(s))
            && self.waits_for_a_line()
    }

    /// Whether the program that read before is a shell that the kernel names, reads as at its prompt, and shows the prompt
    /// at which the command was typed.
    fn seems_back_at_its_prompt(&self) -> bool {
        self.cx.timeline.log().inside.is_some()
            && !self.cx.has_unread()
            && self.foreground.state.is_some_and(|s| self.inside.is_read_as_before(s))
            && self.waits_for_a_line()
            && self.foreground_program().is_some_and(|(program, _)| program.is_shell())
            && self.check_is_a_shell().is_ok()
            && self.inside.is_its_prompt(&self.cx.unfinished_line(self.cx.timeline.output().scanner.position()))
    }

    /// Whether the foreground waits for a line, as a shell does at its prompt.
    fn waits_for_a_line(&self) -> bool {
        self.foreground.typing == 0 && self.foreground() == Foreground::InputWanted
    }
}
