//! A request to run a command: admits or refuses it, has the holder hand it over (`run_command.rs` of its event loop), and answers
//! its caller.
//!
//! A command that comes before the shell's first prompt waits for that. One for a program without our hooks is typed as a line
//! by the holder, as is one for a nested shell (`nested_command/`).

use std::path::Path;

use wire::{Key, Status, ToHolder};

use super::errors::{holder_failed, key_reused};
use crate::action::{ActionError, Boundary, CommandStatus, EndedBy, TargetShell, WITHOUT_HOOKS, Wait};
use crate::limits;
use crate::sessions::session::machine::context::Context;
use crate::sessions::session::machine::errors::{busy_error, typed_busy_error, why_not_ready};
use crate::sessions::session::machine::foreground::state::ForegroundState;
use crate::sessions::session::machine::holder_link::Call;
use crate::sessions::session::machine::nested_command::state::NestedShell;
use crate::sessions::session::machine::pending_commands::Pending;
use crate::sessions::session::machine::session::Session;
use crate::sessions::session::requests::{KeyUse, StartReply, Started};
use crate::sessions::taint::{ELSEWHERE, UNPROVABLE, overtaken};
use crate::sessions::timeline::{Channel, Command};

/// The line of a command.
pub(super) struct Line {
    pub(super) key: Key,
    pub(super) text: String,
    /// For a nested shell: the nonce of the markers in the line, by which it reports the end.
    pub(super) nonce: Option<u64>,
    pub(super) bytes: Vec<u8>,
}

impl Session {
    pub(super) fn ask_run(
        &mut self,
        text: Vec<u8>,
        key: Key,
        shell: TargetShell,
        patience_ms: u32,
        wait: Option<Wait>,
        started: StartReply,
    ) {
        match self.cx.key_use(&key) {
            KeyUse::Command(earlier) => return self.hand_out(earlier, wait, started),
            KeyUse::OtherRequest => return drop(started.send(Err(key_reused()))),
            // The holder answers with the command that it has under this key.
            KeyUse::Underway => return self.run_typed(&text, key, wait, started),
            KeyUse::Unused => {}
        }
        if matches!(shell, TargetShell::Proven(most) if self.cx.shared.taint.admitted() > most) {
            return drop(started.send(Err(overtaken(&self.cx.shared.meta, UNPROVABLE))));
        }
        if self.cx.has_exited() {
            return drop(started.send(Err(self.cx.ended_error())));
        }
        if self.cx.timeline.damage().is_some() {
            // The command's beginning and end might be reported in a part of the journal that cannot be read.
            return drop(started.send(Err(self.cx.not_ready(&why_not_ready(&self.cx, &self.foreground)))));
        }
        if let Some(inside) = self.cx.timeline.log().inside.as_ref().map(|inside| inside.id) {
            return drop(started.send(Err(busy_error(&self.cx, &self.foreground, &self.inside, inside))));
        }
        let is_unread = self.foreground.is_heuristic
            && self.cx.timeline.log().current.is_none()
            && !self.foreground.reads_commands(&self.cx);
        if self.foreground.is_heuristic && !is_unread {
            return self.run_typed(&text, key, wait, started);
        }
        if !self.cx.timeline.shell().prompt_seen || is_unread {
            let until = self.cx.now.at + std::time::Duration::from_millis(u64::from(patience_ms));
            self.pending.at_prompt.push(Pending { text, key, shell, until, wait, started });
            return self.pending.refuse(&self.cx, &self.foreground, &mut self.waits);
        }
        if let Some(enforcer) = &mut self.limit_enforcer {
            enforcer.count_before_command(&mut self.cx);
        }
        self.cx.link.call(self.cx.now.at, Call::Run { wait, started }, |seq| ToHolder::Run {
            seq,
            key,
            patience_ms,
            text,
        });
    }

    /// The holder's answer: it has handed the command over, or refuses it.
    pub(super) fn on_run_done(&mut self, status: Status, value: u64, wait: Option<Wait>, started: StartReply) {
        let id = u32::try_from(value).unwrap_or(0);
        self.foreground.was_not_ready = status == Status::NotReady;
        let result = match status {
            Status::Ok | Status::Duplicate => return self.hand_out(id, wait, started),
            Status::Busy => Err(busy_error(&self.cx, &self.foreground, &self.inside, id)),
            Status::Ended => Err(self.cx.ended_error()),
            Status::KeyReused => Err(key_reused()),
            Status::Typed if self.foreground.foreign_program_runs(&self.cx) => {
                Err(typed_busy_error(&self.cx, &self.foreground))
            }
            Status::Typed => {
                self.cx.timeline.set_typed_line(true);
                let or = if self.cx.takes_lines() {
                    " (or the prompt, PS1, was changed by hand and no longer reports)"
                } else {
                    ""
                };
                let why = format!(
                    "a line typed at the prompt has not ended{or} (C-c clears it), or a hook of the prompt asks something \
                     (answer it with send_input_to_terminal)"
                );
                Err(self.cx.not_ready(&why))
            }
            Status::NotReady => Err(self.cx.not_ready(&why_not_ready(&self.cx, &self.foreground))),
            Status::Failed | Status::NoProcess | Status::LineTooLong | Status::Stalled | Status::WouldEcho => {
                Err(holder_failed("ptyd could not pass the command to the shell", value))
            }
        };
        let _ = started.send(result);
    }

    /// Answers the caller of a command that was accepted, now or earlier.
    pub(super) fn hand_out(&mut self, id: u32, wait: Option<Wait>, started: StartReply) {
        if self.cx.timeline.log().command(id).is_none() && id <= self.cx.timeline.log().last_id {
            let known = Started { id, is_history: true, finished: None };
            return drop(started.send(Ok(known)));
        }
        let begins = self.cx.timeline.log().command(id).is_some_and(Command::is_about_to_begin);
        if wait.is_none() && begins {
            // The answer includes the offset of the output, which the shell is about to report.
            let until = self.cx.now.at + limits::START_WAIT;
            return self.waits.at_start.push((id, until, started));
        }
        let begun =
            self.waits.begin_of_command(&mut self.cx, &mut self.foreground, &self.inside, &mut self.drawing, id, wait);
        let _ = started.send(Ok(begun));
    }

    /// The first prompt came: hands over the commands that waited for it, one at a time.
    pub(super) fn run_pending(&mut self) {
        /// The shell is at its prompt; only its painting may be unfinished.
        const PATIENCE_MS: u32 = 5_000;
        for Pending { text, key, shell, wait, started, .. } in std::mem::take(&mut self.pending.at_prompt) {
            self.ask_run(text, key, shell, PATIENCE_MS, wait, started);
        }
    }

    /// Types the command into a shell without our hooks; the kernel's foreground state shows its end.
    pub(super) fn run_typed(&mut self, text: &[u8], key: Key, wait: Option<Wait>, started: StartReply) {
        if let Some(id) = self.cx.timeline.log().current {
            return drop(started.send(Err(busy_error(&self.cx, &self.foreground, &self.inside, id))));
        }
        let text = String::from_utf8_lossy(text).into_owned();
        if text.trim_end().contains('\n') {
            let why = "it runs without ptyd's hooks, so ptyd types commands; send one line at a time";
            return drop(started.send(Err(self.cx.not_ready(why))));
        }
        // A line editor takes a carriage return as the end of a line; a program in canonical mode gets a newline from
        // the kernel. A shell that is handed lines may have no editor, and an editor takes a newline, too.
        let has_editor = self.foreground.state.is_some_and(|s| !s.canonical) && !self.cx.takes_lines();
        let end = if has_editor { '\r' } else { '\n' };
        // A private key that the shell did not know may have left characters in its editor.
        let clear = if end == '\r' && self.cx.shared.spec.handover.has_hooks() { "\x15" } else { "" };
        let bytes = format!("{clear}{}{end}", text.trim_end()).into_bytes();
        self.type_line(Line { key, text, nonce: None, bytes }, wait, started);
    }

    /// Asks the holder to type a command's line.
    pub(super) fn type_line(&mut self, line: Line, wait: Option<Wait>, started: StartReply) {
        let Line { key, text, nonce, bytes: line } = line;
        let patience_ms = u32::try_from(limits::INPUT_PATIENCE.as_millis()).unwrap_or(u32::MAX);
        self.foreground.forget_state();
        if let Some(enforcer) = &mut self.limit_enforcer {
            enforcer.count_before_command(&mut self.cx);
        }
        let call = Call::Line { key, wait, started };
        let (is_inside, nonce, text) = (nonce.is_some(), nonce.unwrap_or(0), text.into_bytes());
        self.cx.link.call(self.cx.now.at, call, |seq| ToHolder::Type {
            seq,
            key,
            patience_ms,
            is_inside,
            nonce,
            text,
            line,
        });
    }

    /// The holder's answer: it has typed this line, an earlier one of the same key, or none.
    pub(super) fn on_line_typed(&mut self, (status, value): (Status, u64), wait: Option<Wait>, started: StartReply) {
        self.foreground.on_typed();
        // Of a line that was typed in part, the answer has the command's number in its upper half.
        let (numbered, value) = wire::typed_in_part(value);
        let id = match status {
            Status::Ok | Status::Duplicate => u32::try_from(value).unwrap_or(0),
            _ => numbered,
        };
        let is_inside = self.cx.timeline.log().inside.as_ref().is_some_and(|inside| inside.id == id);
        let is_own = is_inside || self.cx.timeline.log().current == Some(id);
        let refused = match status {
            Status::Ok | Status::Duplicate => {
                if is_inside {
                    self.inside.typed_at = Some(self.cx.now.at);
                }
                return self.hand_out(id, wait, started);
            }
            Status::Stalled if is_own => {
                let why = format!(
                    "the program does not read its input: only {value} bytes of the line were typed; C-c clears them"
                );
                if is_inside {
                    self.give_up_inside(CommandStatus::Failed, &why);
                } else {
                    self.end_heuristically(CommandStatus::Failed, &why);
                }
                return self.hand_out(id, wait, started);
            }
            Status::Stalled => self.cx.not_ready("the program does not read its input: nothing was typed"),
            Status::KeyReused => key_reused(),
            Status::Ended => self.cx.ended_error(),
            Status::LineTooLong => {
                let problem = format!(
                    "the program reads lines, and a line of more than {value} bytes with control characters in it cannot \
                     be handed over whole; it was not typed"
                );
                ActionError::Invalid { field: "command", problem }
            }
            Status::Busy
            | Status::NotReady
            | Status::Typed
            | Status::Failed
            | Status::NoProcess
            | Status::WouldEcho => holder_failed("the line could not be typed", value),
        };
        let _ = started.send(Err(refused));
    }

    /// Takes over the typed command that an earlier server left running.
    pub(super) fn take_up_typed(&mut self) {
        self.foreground.is_heuristic |= self.cx.timeline.shell().is_hookless;
        if self.cx.timeline.log().inside.as_ref().is_some_and(|inside| !inside.has_begun) {
            self.inside.typed_at = Some(self.cx.now.at);
        }
        let is_typed = self.cx.timeline.log().current_command().is_some_and(|c| c.channel == Channel::Line);
        debug_assert!(!is_typed || self.foreground.is_heuristic);
    }

    /// Ends a typed command when the shell reads the terminal again; output from before that is read first.
    pub(super) fn check_typed_command(&mut self) {
        if self.foreground.is_heuristic
            && (self.cx.follower.journal_unreadable || !self.cx.has_unread())
            && self.foreground.typed_command_at(&self.cx).is_some_and(|at| at <= self.cx.now.at)
        {
            match self.foreground.rivals_in_words(&self.cx) {
                Some(rivals) => self.end_heuristically(CommandStatus::Failed, &rivals),
                None => self.end_heuristically(CommandStatus::Completed, WITHOUT_HOOKS),
            }
        }
    }

    pub(super) fn end_heuristically(&mut self, status: CommandStatus, error: &str) {
        let now_us = self.cx.now.us;
        self.give_up_inside(status, error);
        if let Some(id) = self.cx.timeline.end_current(status, error, Boundary::Heuristic, now_us) {
            self.foreground.judge(&mut self.cx, id);
            self.cx.put_on_record(id);
            self.waits.finish_where(
                &mut self.cx,
                &self.foreground,
                |w| w.command == Some(id) || w.command.is_none(),
                EndedBy::Ended,
            );
        }
    }
}

/// Why a new request could run in another directory than this one, if it could: a running command or typed input may
/// change the directory before.
pub(super) fn may_leave(
    cx: &Context,
    foreground: &ForegroundState,
    inside: &NestedShell,
    folder: &Path,
    key: &Key,
) -> Option<ActionError> {
    if !matches!(cx.key_use(key), KeyUse::Unused) || cx.has_exited() {
        return None;
    }
    if let Some(running) = cx.timeline.log().newest_running() {
        return Some(busy_error(cx, foreground, inside, running));
    }
    let is_there = || cx.host().working_directory(cx.timeline.shell().pid).is_some_and(|now| now == folder);
    let stays = foreground.is_idle(cx) && foreground.typing == 0 && is_there();
    (!stays).then(|| overtaken(&cx.shared.meta, ELSEWHERE))
}
