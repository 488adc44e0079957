//! The end of the session: the shell's exit, and a holder that is gone.

use crate::action::{ActionError, Boundary, CommandStatus, EndedBy, SessionEvent};
use crate::host::holders::Traces;
use crate::sessions::ended::unrecorded_end::explain_unrecorded_end;
use crate::sessions::session::machine::holder_link::Call;
use crate::sessions::session::machine::session::Session;
use crate::sessions::session::requests::Ended;
use crate::sessions::views;

impl Session {
    /// Handles the shell's exit while the holder still ends its descendants. The last output belongs to the last
    /// command, so this runs only after everything up to the tail is read.
    pub(super) fn check_exit(&mut self) {
        if self.cx.exit_told || self.cx.timeline.end().exit.is_none() {
            return;
        }
        // No marker comes any more: these commands have ended before the shell.
        self.expire_markers();
        let reason = views::exit_of(&self.cx.timeline).map_or_else(String::new, |e| e.reason);
        let now_us = self.cx.timeline.end().exit.map_or(0, |(_, _, us)| us);
        self.end_all(&reason, now_us);
    }

    /// Ends what runs in the session that has ended, and answers everybody who waits for something of it.
    fn end_all(&mut self, reason: &str, now_us: u64) {
        self.cx.exit_told = true;
        self.give_up_inside(CommandStatus::Terminated, reason);
        if let Some(id) = self.cx.timeline.end_current(CommandStatus::Terminated, reason, Boundary::Attested, now_us) {
            self.cx.put_on_record(id);
        }
        self.cx.note(
            self.cx.timeline.output().scanner.held_from(),
            SessionEvent::Exited(views::exit_of(&self.cx.timeline)),
        );
        self.finish_where(|_| true, EndedBy::Exited);
        self.waits.notify_started(|_| true);
        for pending in std::mem::take(&mut self.pending.at_prompt) {
            let _ = pending.started.send(Err(self.cx.ended_error()));
        }
        self.run_pending_inside();
        self.waits.notify_prompt();
    }

    /// All output has been read.
    pub(super) fn on_holder_gone(&mut self, traces: Option<&Traces>) {
        self.cx.link.is_gone = true;
        self.check_exit();
        if let Some(traces) = traces {
            self.cx.timeline.set_unrecorded_end_time(self.cx.now.us);
            explain_unrecorded_end(&mut self.cx.timeline, traces);
            let why = self.cx.timeline.end().unrecorded.clone().unwrap_or_default();
            self.end_all(&why, self.cx.now.us);
        }
        let asked = |call: &Call| matches!(call, Call::Terminate(_));
        for (_, call) in self.cx.link.calls.extract_if(|_, call| asked(call)) {
            if let Call::Terminate(reply) = call {
                self.cx.link.terminators.push(reply);
            }
        }
        self.cx.link.notify_terminators(Ended { killed: 0, left: 0 });
        let ended = self.cx.ended_error();
        self.give_up_calls(|| ended.clone());
    }

    /// Fails the calls that were sent over the old connection.
    pub(super) fn give_up_calls(&mut self, why: impl Fn() -> ActionError) {
        (self.foreground.typing, self.foreground.report_key) = (0, None);
        self.cx.timeline.forget_requests();
        self.cx.link.give_up_calls(why);
    }
}
