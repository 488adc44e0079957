//! A server's additions to the timeline: its own actions that the holder has not recorded yet, its conclusions, and facts
//! without an event.

use std::sync::Arc;

use wire::Key;

use super::{Sent, Timeline};
use crate::action::Tools;

impl Timeline {
    /// The holder's greeting, with the same facts as its first event.
    pub(crate) fn record_hello(&mut self, holder_pid: u32, shell_pid: u32, cols: u16, rows: u16) {
        (self.holder_pid, self.shell.pid) = (holder_pid, shell_pid);
        (self.cols, self.rows) = (cols, rows);
    }

    /// A part of the session's files cannot be read. The first damage counts.
    pub(crate) fn set_damage(&mut self, what: String) -> bool {
        let is_first = self.damage.is_none();
        self.damage.get_or_insert(what);
        is_first
    }

    /// Another process has cut the journal before this offset.
    pub(crate) fn record_cut(&mut self, before: u64) {
        self.trouble.is_cut(before);
    }

    /// No event says when anything happened last; the files do.
    pub(crate) fn set_last_write(&mut self, us: u64) {
        if self.clock.last_us == 0 {
            self.clock.last_us = us;
        }
    }

    /// The session ended at this time, and no event says so.
    pub(crate) fn set_unrecorded_end_time(&mut self, us: u64) {
        self.clock.last_us = us;
    }

    /// Only the bytes of the session can be read, whatever its shell did.
    pub(crate) fn set_unreadable(&mut self, written_us: u64) {
        self.shell.prompt_seen = true;
        self.set_last_write(written_us);
    }

    /// Nothing is recorded of how the session ended.
    pub(crate) fn set_unrecorded_end(&mut self, how: String) {
        self.end.unrecorded = Some(how);
    }

    /// The toolchains on the shell's path.
    pub(crate) fn set_tools(&mut self, tools: Arc<Tools>) {
        self.shell.tools = tools;
    }

    /// This output was read at this time.
    pub(crate) fn record_read(&mut self, from: u64, to: u64, us: u64) {
        self.clock.note(from, us);
        self.clock.note(to, us);
    }

    /// Input is on its way. A wait that begins with it must not end at the prompt where it is typed.
    pub(crate) fn record_input(&mut self, key: Key, bytes: &[u8]) {
        self.shell.expects(key, bytes, self.log.current.is_some());
    }

    /// The holder has typed nothing of this input, or has recorded it before.
    pub(crate) fn forget_input(&mut self, key: &Key) {
        self.shell.forget_input(key);
    }

    /// The program that reads now has received no part of a line.
    pub(crate) fn clear_begun_line(&mut self) {
        self.shell.line_is_begun = false;
    }

    /// Whether a line typed at the prompt has not ended.
    pub(crate) fn set_typed_line(&mut self, has: bool) {
        self.shell.has_typed_line = has;
        if !has {
            self.shell.typed_lines.end_all();
        }
    }

    /// The shell's editor waits for a line, so all lines that were typed before have ended.
    pub(crate) fn end_typed_lines(&mut self) {
        self.set_typed_line(false);
        if self.shell.typed_lines.are_interrupted() {
            // The report of the last line may be missing.
            self.shell.typed_lines.forget_exit();
        }
        self.forget_interrupts();
    }

    /// The shell's editor waits for a line, so the shell has handled every interrupt.
    pub(crate) fn forget_interrupts(&mut self) {
        self.shell.typed_lines.forget_interrupts();
    }

    /// Whether the shell's editor is in use inside a command.
    pub(crate) fn set_editor_in_use(&mut self, uses: bool) {
        self.shell.still_inside = uses;
    }

    /// Full-screen painting on the main screen has ended.
    pub(crate) fn end_main_paint(&mut self) {
        self.output.scanner.end_main_paint();
    }

    /// A query up to this offset was answered; the holder does not know that yet.
    pub(crate) fn set_answered(&mut self, to: u64) {
        self.queries.answered = to;
    }

    /// The holder knows of the answers up to this offset.
    pub(crate) fn record_known_answers(&mut self, to: u64) {
        self.queries.known_to_holder = self.queries.known_to_holder.max(to);
    }

    /// Requests over the earlier connection are lost: the holder records none of those any more.
    pub(crate) fn forget_requests(&mut self) {
        self.queries.known_to_holder = self.queries.answered;
        self.signals.on_their_way.clear();
        self.shell.typed_lines.forget_expected();
    }

    /// A signal is on its way; the holder records it.
    pub(crate) fn expect_signal(&mut self, sent: Sent) {
        self.signals.on_their_way.push_back(sent);
    }

    /// The holder does not record signals to this process: there is none.
    pub(crate) fn forget_signal(&mut self, target: i32) {
        self.signals.on_their_way.retain(|sent| sent.target != target);
    }
}
