//! A shell that may have lost its hooks: its editor has the terminal although a command runs. The report key makes it say
//! whether its hooks are still there; without an answer its commands are typed, and the kernel shows when they end.

use wire::{State, ToHolder};

use crate::action::{CommandStatus, WITHOUT_HOOKS};
use crate::limits;
use crate::sessions::session::machine::foreground::state::ReportKey;
use crate::sessions::session::machine::holder_link::Call;
use crate::sessions::session::machine::session::Session;

/// The error of the command that called `exec`.
const REPLACED: &str = "exec replaced the shell: commands run in the new program, with exit codes if it is a known shell \
                        (over REST with inside); reset or a new session starts a shell with hooks";

impl Session {
    /// Checks the suspicion and the answer to the report key.
    pub(super) fn check_hooks(&mut self) {
        let now = self.cx.now.at;
        if let Some(at) = self.foreground.keys_lost_at(&self.cx) {
            // A rival may take the report key as well, so silence would prove nothing.
            (self.foreground.editor_since, self.foreground.report_key) = (None, None);
            if now >= at {
                self.end_without_its_keys();
            }
            return;
        }
        let is_suspicious = self.foreground.editor_since.is_some_and(|t| now >= t + limits::EDITOR_SUSPICION);
        if is_suspicious && !self.cx.timeline.shell().prompt_seen && self.foreground.is_replaced(&self.cx) {
            self.foreground.editor_since = None;
            self.goes_without_hooks();
        } else if is_suspicious && self.foreground.is_replaced(&self.cx) {
            // The process is no longer our shell: our report key would be input for the program it has become.
            self.foreground.editor_since = None;
            let why = if self.foreground.is_heuristic { WITHOUT_HOOKS } else { REPLACED };
            self.goes_without_hooks();
            self.end_heuristically(CommandStatus::Completed, why);
        } else if is_suspicious && self.foreground.report_key.is_none() && !self.cx.keys_are_read() {
            self.foreground.editor_since = Some(now);
        } else if is_suspicious
            && self.cx.shared.spec.handover.is_in_band()
            && !self.cx.timeline.output().scanner.modes().bracketed_paste
        {
            // The shell reads keys for one of its commands: at its prompt, its editor would enable bracketed paste.
            self.cx.timeline.set_editor_in_use(true);
            (self.foreground.editor_since, self.foreground.state_pending) = (None, true);
        } else if is_suspicious && self.foreground.report_key.is_none() {
            self.foreground.report_key = Some(ReportKey::pressed(now));
            self.cx.link.call(self.cx.now.at, Call::Report, |seq| ToHolder::Report { seq });
        }
        if self.foreground.report_key.take_if(|key| now >= key.due_at()).is_some() {
            self.on_report_overdue();
        }
    }

    /// The shell did not answer the report key: its hooks are gone, and with them the exit code.
    pub(super) fn on_report_overdue(&mut self) {
        let has_begun = self
            .cx
            .timeline
            .log()
            .current
            .and_then(|id| self.cx.timeline.log().command(id))
            .is_some_and(|c| c.start.is_some());
        // One of the person's files may ask with `read`, before the shell reads our script.
        let is_in_files = self.cx.shared.spec.handover.script_is_last && !self.cx.timeline.shell().prompt_seen;
        let files_ask = is_in_files && !self.foreground.is_replaced(&self.cx);
        if files_ask || has_begun && !self.foreground.rivals.is_empty() {
            // Another process may have taken the report key. The end of the command would have come by itself.
            self.cx.timeline.set_editor_in_use(true);
        }
        if self.cx.timeline.shell().still_inside {
            // The shell has reported that the command itself uses the line editor.
            (self.foreground.editor_since, self.foreground.state_pending) = (None, true);
            return;
        }
        self.foreground.editor_since = None;
        // Such a shell has reported the beginning of its output, so its hooks work; only this end is lost.
        if !((self.cx.takes_lines() || self.cx.shared.spec.handover.is_in_band()) && has_begun) {
            self.goes_without_hooks();
        }
        let (status, lost) = if has_begun {
            (CommandStatus::Completed, "the shell's hooks are gone")
        } else {
            (
                CommandStatus::Failed,
                "the shell's hooks are gone, so it is unknown whether it ran, and with which exit code",
            )
        };
        self.end_heuristically(status, lost);
    }

    /// Switches to heuristics if the shell's process reads the terminal but runs another program (`exec` in a start-up
    /// file).
    pub(in crate::sessions::session::machine) fn check_foreign_shell(&mut self, state: State) {
        let waits = state.foreground.is_a_waiting_shell();
        if !waits
            || self.foreground.is_heuristic
            || self.cx.timeline.log().current.is_some() && self.cx.timeline.shell().prompt_seen
        {
            return;
        }
        let Some(now) = self.cx.host().executable(self.cx.timeline.shell().pid) else { return };
        let ours = std::ffi::OsStr::new(&self.cx.shared.meta.shell);
        if now.file_name() != Some(ours) && !self.cx.timeline.shell().prompt_seen {
            self.goes_without_hooks();
        }
    }

    /// The shell will send no reports: from now on the kernel's state shows when typed commands end.
    pub(in crate::sessions::session::machine) fn goes_without_hooks(&mut self) {
        // The present state means more now.
        (self.foreground.is_heuristic, self.foreground.state_pending) = (true, true);
        self.waits.notify_prompt();
        if self.foreground.reads_commands(&self.cx) {
            self.run_pending();
        }
    }

    /// Ends the command whose keys the rivals have taken. Those that the shell has read may stand in its editor as a line.
    pub(super) fn end_without_its_keys(&mut self) {
        let Some(why) = self.foreground.rivals_in_words(&self.cx) else { return };
        self.end_heuristically(CommandStatus::Failed, &why);
        self.cx.timeline.set_typed_line(true);
        self.foreground.state_pending = true;
    }
}
