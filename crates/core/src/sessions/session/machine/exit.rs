//! The end of the session: the shell's exit, and a holder that is gone.

use wire::Tail;

use crate::action::{ActionError, Boundary, CommandStatus, EndedBy, SessionEvent};
use crate::host::Identity;
use crate::host::holders::Traces;
use crate::sessions::ended::unrecorded_end::explain_unrecorded_end;
use crate::sessions::session::machine::holder_link::Call;
use crate::sessions::session::machine::session::Session;
use crate::sessions::session::requests::Ended;
use crate::sessions::views;

impl Session {
    /// Whether the shell has exited, or its holder has ended without recording that.
    pub(super) fn has_exited(&self) -> bool {
        self.exit_told || self.timeline.end().exit.is_some()
    }

    /// Handles the shell's exit while the holder still ends its descendants. The last output belongs to the last
    /// command, so this runs only after everything up to the tail is read.
    pub(super) fn check_exit(&mut self) {
        if self.exit_told || self.timeline.end().exit.is_none() {
            return;
        }
        // No marker comes any more: these commands have ended before the shell.
        self.expire_markers();
        let reason = views::exit_of(&self.timeline).map_or_else(String::new, |e| e.reason);
        let now_us = self.timeline.end().exit.map_or(0, |(_, _, us)| us);
        self.end_all(&reason, now_us);
    }

    /// Ends what runs in the session that has ended, and answers everybody who waits for something of it.
    fn end_all(&mut self, reason: &str, now_us: u64) {
        self.exit_told = true;
        self.give_up_inside(CommandStatus::Terminated, reason);
        if let Some(id) = self.timeline.end_current(CommandStatus::Terminated, reason, Boundary::Attested, now_us) {
            self.put_on_record(id);
        }
        self.note(self.timeline.output().scanner.held_from(), SessionEvent::Exited(views::exit_of(&self.timeline)));
        self.finish_where(|_| true, EndedBy::Exited);
        self.waits.notify_started(|_| true);
        for pending in std::mem::take(&mut self.pending.at_prompt) {
            let _ = pending.started.send(Err(self.ended_error()));
        }
        self.run_pending_inside();
        self.waits.notify_prompt();
    }

    /// The connection has ended: everything that the holder wrote is on disk.
    pub(super) fn on_last_tail(&mut self) {
        self.link.is_tail_last = true;
        let journal = self.shared.reader.len().unwrap_or_default();
        self.follower.on_tail(Tail { journal, events: self.follower.order.events_end().unwrap_or_default() });
    }

    /// All output has been read.
    pub(super) fn on_holder_gone(&mut self, traces: Option<&Traces>) {
        self.link.is_gone = true;
        self.check_exit();
        if let Some(traces) = traces {
            self.timeline.set_unrecorded_end_time(self.now.us);
            explain_unrecorded_end(&mut self.timeline, traces);
            let why = self.timeline.end().unrecorded.clone().unwrap_or_default();
            self.end_all(&why, self.now.us);
        }
        let asked = |call: &Call| matches!(call, Call::Terminate(_));
        for (_, call) in self.link.calls.extract_if(|_, call| asked(call)) {
            if let Call::Terminate(reply) = call {
                self.link.terminators.push(reply);
            }
        }
        self.link.notify_terminators(Ended { killed: 0, left: 0 });
        let ended = self.ended_error();
        self.give_up_calls(|| ended.clone());
    }

    /// Fails the calls that were sent over the old connection.
    pub(super) fn give_up_calls(&mut self, why: impl Fn() -> ActionError) {
        (self.foreground.typing, self.foreground.report_key) = (0, None);
        self.timeline.forget_requests();
        self.link.give_up_calls(why);
    }

    /// Whether the session continues without this actor.
    pub(crate) fn is_adrift(&self) -> bool {
        self.link.is_adrift
    }

    /// The process of its holder.
    pub(crate) fn holder(&self) -> Option<Identity> {
        self.link.process
    }

    /// Whether the session has ended for good, so that its actor can go.
    pub(crate) fn is_over(&self) -> bool {
        self.link.is_gone
    }
}
