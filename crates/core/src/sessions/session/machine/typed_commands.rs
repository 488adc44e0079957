//! Commands that are typed as lines: into a program without our hooks, or into a nested shell. The holder records each
//! before it types it, and types it once per idempotency key, so a later server knows the command and reports the same.

use tokio::time::Instant;
use wire::{Key, Status, ToHolder};

use super::errors::{holder_failed, key_reused};
use crate::action::{ActionError, Boundary, CommandStatus, EndedBy, WITHOUT_HOOKS, Wait};
use crate::limits;
use crate::sessions::session::machine::holder_link::Call;
use crate::sessions::session::machine::session::Session;
use crate::sessions::session::requests::StartReply;
use crate::sessions::timeline::{Channel, judged_end};

/// The line of a command.
pub(super) struct Line {
    pub(super) key: Key,
    pub(super) text: String,
    /// For a nested shell: the nonce of the markers in the line, by which it reports the end.
    pub(super) nonce: Option<u64>,
    pub(super) bytes: Vec<u8>,
}

impl Session {
    /// Types the command into a shell without our hooks; the kernel's foreground state shows its end.
    pub(super) fn run_typed(&mut self, text: &[u8], key: Key, wait: Option<Wait>, started: StartReply) {
        if let Some(id) = self.cx.timeline.log().current {
            return drop(started.send(Err(self.busy_error(id))));
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
        self.count_before_command();
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
                    "the program reads lines, and one of more than {value} bytes with control characters in it cannot be \
                     handed over whole; it was not typed"
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

    /// Has the holder record the end of a command that the shell did not report.
    pub(super) fn judge(&mut self, id: u32) {
        let is_hookless = self.foreground.is_heuristic && self.cx.shared.spec.handover.has_hooks();
        if let Some(frame) = self.cx.timeline.log().command(id).and_then(|c| judged_end::to_holder(c, is_hookless)) {
            self.cx.link.send(frame);
        }
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

    /// When a typed command that seems to have ended is old enough for its end to count.
    pub(super) fn typed_command_at(&self) -> Option<Instant> {
        let typed = self.cx.timeline.log().current_command().filter(|c| c.channel == Channel::Line)?;
        self.reads_commands().then(|| self.cx.begun_at(typed.id) + limits::TYPED_AGE_MIN)
    }

    /// Ends a typed command when the shell reads the terminal again; output from before that is read first.
    pub(super) fn check_typed_command(&mut self) {
        if self.foreground.is_heuristic
            && (self.cx.follower.journal_unreadable || !self.cx.has_unread())
            && self.typed_command_at().is_some_and(|at| at <= self.cx.now.at)
        {
            match self.rivals_in_words() {
                Some(rivals) => self.end_heuristically(CommandStatus::Failed, &rivals),
                None => self.end_heuristically(CommandStatus::Completed, WITHOUT_HOOKS),
            }
        }
    }

    pub(super) fn end_heuristically(&mut self, status: CommandStatus, error: &str) {
        let now_us = self.cx.now.us;
        self.give_up_inside(status, error);
        if let Some(id) = self.cx.timeline.end_current(status, error, Boundary::Heuristic, now_us) {
            self.judge(id);
            self.cx.put_on_record(id);
            self.finish_where(|w| w.command == Some(id) || w.command.is_none(), EndedBy::Ended);
        }
    }
}
