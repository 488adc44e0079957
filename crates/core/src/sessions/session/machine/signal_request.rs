//! Signals that callers send to the session's processes: the holder sends them (`send_signal.rs` of its
//! event loop), and the event log records them.

use tokio::sync::oneshot;
use wire::{Status, Target, ToHolder};

use crate::action::ActionError;
use crate::host::{Process, descendants};
use crate::sessions::session::machine::context::Context;
use crate::sessions::session::machine::foreground::state::ForegroundState;
use crate::sessions::session::machine::holder_link::Call;
use crate::sessions::session::machine::nested_command::state::NestedShell;
use crate::sessions::timeline::Sent;

/// ESRCH of errno(3), as the holder sends it.
const NO_SUCH_PROCESS: u64 = 3;

pub(super) fn ask_signal(
    cx: &mut Context,
    foreground: &mut ForegroundState,
    inside: &mut NestedShell,
    target: Target,
    signo: i32,
    reply: oneshot::Sender<Result<Option<String>, ActionError>>,
) {
    cx.jobs.may_have_stopped |= signo == sys::signal::TSTP;
    let is_foreground = target == Target::Foreground;
    let sent = about_to_send(cx, target, signo);
    let ignored_by = if is_foreground { ignored_by(cx, foreground, &sent) } else { None };
    if is_foreground {
        foreground.forget_state();
    }
    if [sys::signal::INT, sys::signal::QUIT, sys::signal::TSTP].contains(&signo) {
        inside.check_interrupt(cx);
        if is_foreground {
            // Their keys discard the line, too.
            cx.timeline.clear_begun_line();
        }
    }
    cx.timeline.expect_signal(sent);
    cx.link.call(cx.now.at, Call::Signal { is_foreground, ignored_by, reply }, |seq| ToHolder::Signal {
        seq,
        target,
        signo,
    });
}

/// The name of the program whose processes all ignore the interrupt that is about to be sent to the foreground.
pub(super) fn ignored_by(cx: &Context, foreground: &ForegroundState, sent: &Sent) -> Option<String> {
    // For a program that reads keys it may be a key. To one that reads nothing the holder sends the signal.
    let may_be_key = foreground.state.is_some_and(|state| !state.canonical && state.foreground != wire::Activity::Busy);
    if sent.signo != sys::signal::INT || may_be_key {
        return None;
    }
    let ignore = || sent.receivers.iter().all(|(process, _)| cx.host().ignores(process.0, sent.signo));
    sent.receivers.first().filter(|_| ignore()).map(|(_, name)| name.clone())
}

/// The same for a key that sends a signal to the foreground.
pub(super) fn key_is_ignored_by(cx: &Context, foreground: &ForegroundState, signo: i32) -> Option<String> {
    ignored_by(cx, foreground, &about_to_send(cx, Target::Foreground, signo))
}

/// The holder's answer: it has sent the signal, or could not.
pub(super) fn on_signal_done(
    cx: &mut Context,
    foreground: &mut ForegroundState,
    status: Status,
    value: u64,
    (is_foreground, ignored_by): (bool, Option<String>),
    reply: oneshot::Sender<Result<Option<String>, ActionError>>,
) {
    if is_foreground {
        foreground.on_typed();
    }
    if status == Status::NoProcess {
        // The holder does not record this signal.
        let gone = u32::try_from(value).unwrap_or(0).cast_signed();
        cx.timeline.forget_signal(gone);
    }
    // The foreground process group can be empty: the attempt is recorded, and the error is not the
    // server's.
    let is_nobody = is_foreground && status == Status::Failed && value == NO_SUCH_PROCESS;
    let nothing = || Err(ActionError::NothingRuns { session: cx.shared.id.clone() });
    let _ = reply.send(if is_nobody { nothing() } else { cx.plain_result(status, value).map(|()| ignored_by) });
}

/// The signal as the event log will record it, with the processes that will receive it.
fn about_to_send(cx: &Context, target: Target, signo: i32) -> Sent {
    let all = descendants(cx.host(), cx.timeline.holder_pid());
    let foreground = all.iter().find(|s| s.pid() == cx.timeline.shell().pid).and_then(|s| s.foreground_group);
    let gets = |it: &Process| match target {
        Target::Foreground => Some(it.group) == foreground,
        Target::Session => true,
        Target::Process(pid) => it.pid() == pid,
    };
    let receivers = all.into_iter().filter(gets).map(|it| (it.identity, it.name)).collect();
    let target = match target {
        Target::Foreground => 0,
        Target::Session => -1,
        Target::Process(pid) => pid.cast_signed(),
    };
    Sent { target, signo, errno: 0, at_us: 0, receivers }
}
