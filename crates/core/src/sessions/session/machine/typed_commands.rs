//! Commands that are typed as lines: into a program without our hooks, or into a nested shell. The holder records each
//! before it types it, and types it once per idempotency key, so a later server knows the command and reports the same.

use tokio::time::Instant;
use wire::{Key, Status, ToHolder};

use super::errors::{key_reused, os_error};
use crate::action::{ActionError, Boundary, CommandStatus, EndedBy, WITHOUT_HOOKS, Wait};
use crate::limits;
use crate::sessions::session::machine::holder_link::Call;
use crate::sessions::session::machine::session::Session;
use crate::sessions::session::requests::{KeyUse, StartReply};
use crate::sessions::timeline::Channel;
use crate::sessions::timeline::judged_end;
use crate::sessions::timeline::nested_line::NestedLine;

/// The error of a command that an earlier server typed.
pub(super) const TYPED_BEFORE: &str = "it was typed before the server restarted; its result is unknown";

/// The line of a command.
pub(super) struct Line {
    /// Its number if the holder does not give it one, else 0.
    pub(super) id: u32,
    pub(super) key: Key,
    pub(super) text: String,
    /// For a nested shell, which reports the end by the markers in the line.
    pub(super) inside: Option<NestedLine>,
    pub(super) bytes: Vec<u8>,
}

impl Session {
    /// Types the command into a shell without our hooks; the kernel's foreground state shows its end.
    pub(super) fn run_typed(&mut self, text: &[u8], key: Key, wait: Option<Wait>, started: StartReply) {
        if let Some(id) = self.timeline.log().current {
            return drop(started.send(Err(self.busy_error(id))));
        }
        let text = String::from_utf8_lossy(text).into_owned();
        if text.trim_end().contains('\n') {
            let why = "it runs without ptyd's hooks, so commands are typed; give one line at a time";
            return drop(started.send(Err(self.not_ready(why))));
        }
        // A line editor takes a carriage return as the end of a line; a program in canonical mode gets a newline from
        // the kernel.
        let end = if self.foreground.state.is_some_and(|s| !s.canonical) { '\r' } else { '\n' };
        // A private key that the shell did not know may have left characters in its editor.
        let clear = if end == '\r' && self.shared.spec.handover.has_hooks() { "\x15" } else { "" };
        let bytes = format!("{clear}{}{end}", text.trim_end()).into_bytes();
        let id = self.id_to_propose();
        self.type_line(Line { id, key, text, inside: None, bytes }, wait, started);
    }

    /// The number of a typed command if the holder does not number it, else 0.
    pub(super) fn id_to_propose(&self) -> u32 {
        if self.link.protocol >= wire::NUMBERS_LINES {
            0
        } else {
            self.timeline.log().unused_id(self.timeline.clock().started_us, self.now.us)
        }
    }

    /// Asks the holder to type a command's line.
    pub(super) fn type_line(&mut self, line: Line, wait: Option<Wait>, started: StartReply) {
        let Line { id, key, text, inside, bytes } = line;
        let patience_ms = u32::try_from(limits::INPUT_PATIENCE.as_millis()).unwrap_or(u32::MAX);
        self.foreground.forget_state();
        self.count_before_command();
        let call = Call::Line { id, key, wait, started };
        if self.link.protocol >= wire::TYPES_LINES {
            let (is_inside, nonce) = (inside.is_some(), inside.as_ref().map_or(0, |inside| inside.nonce));
            let text = text.into_bytes();
            let typed = |seq| ToHolder::Type { seq, key, patience_ms, id, is_inside, nonce, text, line: bytes };
            return self.link.call(self.now.at, call, typed);
        }
        // An older holder records only the bytes it types.
        let at = self.timeline.output().scanner.position();
        self.timeline.line_typed((id, key, &text), inside, self.now.us, at);
        self.put_row(id);
        self.link.call(self.now.at, call, |seq| ToHolder::Input { seq, key, is_secret: false, patience_ms, bytes });
    }

    /// The holder's answer: it has typed this line, an earlier one of the same key, or none.
    pub(super) fn on_line_typed(
        &mut self,
        (id, key): (u32, Key),
        (status, value): (Status, u64),
        wait: Option<Wait>,
        started: StartReply,
    ) {
        self.foreground.on_typed();
        let names_command = self.link.protocol >= wire::TYPES_LINES;
        // Of a line that was typed in part, the answer has the command's number in its upper half.
        let (numbered, value) = wire::typed_in_part(value);
        let id = match (status, self.key_use(&key)) {
            (Status::Ok | Status::Duplicate, _) if names_command => u32::try_from(value).unwrap_or(id),
            _ if numbered != 0 => numbered,
            (_, KeyUse::Command(earlier)) => earlier,
            (_, KeyUse::Unused | KeyUse::Underway | KeyUse::OtherRequest) => id,
        };
        let is_inside = self.timeline.log().inside.as_ref().is_some_and(|inside| inside.id == id);
        let is_own = is_inside || self.timeline.log().current == Some(id);
        let why = match status {
            Status::Ok | Status::Duplicate if names_command || status == Status::Ok => {
                if is_inside {
                    self.inside.typed_at = Some(self.now.at);
                }
                return self.hand_out(id, wait, started);
            }
            Status::KeyReused if names_command => return drop(started.send(Err(key_reused()))),
            Status::Ended => return drop(started.send(Err(self.ended_error()))),
            Status::Stalled if is_own => {
                format!(
                    "the program does not read its input: only {value} bytes of the line were typed; C-c clears them"
                )
            }
            Status::Stalled => {
                let why = "the program does not read its input: nothing was typed";
                return drop(started.send(Err(self.not_ready(why))));
            }
            Status::LineTooLong => {
                let problem = format!(
                    "the program reads lines, and one of more than {value} bytes with control characters in it cannot be \
                     handed over whole; it was not typed"
                );
                return drop(started.send(Err(ActionError::Invalid { field: "command", problem })));
            }
            // From an older holder.
            Status::Duplicate => TYPED_BEFORE.to_owned(),
            Status::KeyReused => "its idempotency key was used for something else; it was not typed".to_owned(),
            Status::Busy
            | Status::NotReady
            | Status::Typed
            | Status::Failed
            | Status::NoProcess
            | Status::WouldEcho
            | Status::Ok => {
                let why = format!("the line could not be typed: {}", os_error(value));
                return drop(started.send(Err(ActionError::Internal { why })));
            }
        };
        if is_inside {
            self.give_up_inside(CommandStatus::Failed, &why);
        } else if is_own {
            self.end_heuristically(CommandStatus::Failed, &why);
        }
        self.hand_out(id, wait, started);
    }

    /// Has the holder record the end of a command that the shell did not report.
    pub(super) fn judge(&mut self, id: u32) {
        let is_hookless = self.foreground.is_heuristic && self.shared.spec.handover.has_hooks();
        if let Some(frame) = self.timeline.log().command(id).and_then(|c| judged_end::to_holder(c, is_hookless)) {
            // A holder of an earlier version ignores the unknown frame.
            self.link.send(frame);
        }
    }

    /// Takes over the typed command that an earlier server left running.
    pub(super) fn take_up_typed(&mut self) {
        self.foreground.is_heuristic |= self.timeline.shell().is_hookless;
        if self.timeline.log().inside.as_ref().is_some_and(|inside| !inside.has_begun) {
            self.inside.typed_at = Some(self.now.at);
        }
        let is_typed = self.timeline.log().current_command().is_some_and(|c| c.channel == Channel::Line);
        debug_assert!(!is_typed || self.foreground.is_heuristic);
    }

    /// When a typed command that seems to have ended is old enough for its end to count.
    pub(super) fn typed_command_at(&self) -> Option<Instant> {
        let typed = self.timeline.log().current_command().filter(|c| c.channel == Channel::Line)?;
        let (reads_again, typed_us) = (self.reads_commands(), typed.accepted_us);
        let age = std::time::Duration::from_micros(self.now.us.saturating_sub(typed_us));
        reads_again.then(|| self.now.at + limits::TYPED_AGE_MIN.saturating_sub(age))
    }

    /// Ends a typed command when the shell reads the terminal again; output from before that is read first.
    pub(super) fn check_typed_command(&mut self) {
        if self.foreground.is_heuristic
            && (self.follower.journal_unreadable || !self.has_unread())
            && self.typed_command_at().is_some_and(|at| at <= self.now.at)
        {
            self.end_heuristically(CommandStatus::Completed, WITHOUT_HOOKS);
        }
    }

    pub(super) fn end_heuristically(&mut self, status: CommandStatus, error: &str) {
        let now_us = self.now.us;
        self.give_up_inside(status, error);
        if let Some(id) = self.timeline.end_current(status, error, Boundary::Heuristic, now_us) {
            self.judge(id);
            self.put_on_record(id);
            self.finish_where(|w| w.command == Some(id) || w.command.is_none(), EndedBy::Ended);
        }
    }
}
