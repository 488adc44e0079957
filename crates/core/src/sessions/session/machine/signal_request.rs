//! Signals that callers send to the session's processes: the holder sends them (`send_signal.rs` of its
//! event loop), and the event log records them.

use tokio::sync::oneshot;
use wire::{Status, Target, ToHolder};

use crate::action::ActionError;
use crate::sessions::session::machine::holder_link::Call;
use crate::sessions::session::machine::session::Session;
use crate::sessions::timeline::Sent;

/// ESRCH of errno(3), as the holder sends it.
const NO_SUCH_PROCESS: u64 = 3;

impl Session {
    pub(super) fn ask_signal(
        &mut self,
        target: Target,
        signo: i32,
        reply: oneshot::Sender<Result<Option<String>, ActionError>>,
    ) {
        self.jobs.may_have_stopped |= signo == sys::signal::TSTP;
        let is_foreground = target == Target::Foreground;
        let sent = self.cx.about_to_send(target, signo);
        let ignored_by = if is_foreground { self.ignored_by(&sent) } else { None };
        if is_foreground {
            self.foreground.forget_state();
        }
        if [sys::signal::INT, sys::signal::QUIT, sys::signal::TSTP].contains(&signo) {
            self.check_interrupt();
            if is_foreground {
                // Their keys discard the line, too.
                self.cx.timeline.clear_begun_line();
            }
        }
        self.cx.timeline.expect_signal(sent);
        self.cx.link.call(self.cx.now.at, Call::Signal { is_foreground, ignored_by, reply }, |seq| ToHolder::Signal {
            seq,
            target,
            signo,
        });
    }

    /// The name of the program whose processes all ignore the interrupt that is about to be sent to the foreground.
    fn ignored_by(&self, sent: &Sent) -> Option<String> {
        // For a program that reads keys it may be a key. To one that reads nothing the holder sends the signal.
        let may_be_key =
            self.foreground.state.is_some_and(|state| !state.canonical && state.foreground != wire::Activity::Busy);
        if sent.signo != sys::signal::INT || may_be_key {
            return None;
        }
        let ignore = || sent.receivers.iter().all(|(process, _)| self.cx.host().ignores(process.0, sent.signo));
        sent.receivers.first().filter(|_| ignore()).map(|(_, name)| name.clone())
    }

    /// The same for a key that sends a signal to the foreground.
    pub(super) fn key_is_ignored_by(&self, signo: i32) -> Option<String> {
        self.ignored_by(&self.cx.about_to_send(Target::Foreground, signo))
    }

    /// The holder's answer: it has sent the signal, or could not.
    pub(super) fn on_signal_done(
        &mut self,
        status: Status,
        value: u64,
        (is_foreground, ignored_by): (bool, Option<String>),
        reply: oneshot::Sender<Result<Option<String>, ActionError>>,
    ) {
        if is_foreground {
            self.foreground.on_typed();
        }
        if status == Status::NoProcess {
            // The holder does not record this signal.
            let gone = u32::try_from(value).unwrap_or(0).cast_signed();
            self.cx.timeline.forget_signal(gone);
        }
        // The foreground process group can be empty: the attempt is recorded, and the error is not the
        // server's.
        let is_nobody = is_foreground && status == Status::Failed && value == NO_SUCH_PROCESS;
        let nothing = || Err(ActionError::NothingRuns { session: self.cx.shared.id.clone() });
        let _ =
            reply.send(if is_nobody { nothing() } else { self.cx.plain_result(status, value).map(|()| ignored_by) });
    }
}
