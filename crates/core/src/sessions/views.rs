//! Views of a session and its commands as plain data, built from a timeline: the same for live and ended sessions.

use std::sync::Arc;

use journal::EndReason;

use super::processes;
use super::shared::Shared;
use super::summary::Summary;
use super::timeline::{Channel, Command, Hit, Sent, Timeline, time};
use crate::action::{
    Boundary, CommandStatus, CommandView, Foreground, Limit, LimitHit, Receiver, SessionExit, SessionStatus,
    SignalTarget, SignalView,
};
use crate::host::{Host, Identity};
use crate::ids::{CommandId, SessionId};
use crate::store::HistoryRow;

/// The part of a session's view that changes.
pub(crate) fn summary(
    timeline: &Timeline,
    status: SessionStatus,
    foreground: Foreground,
    boundary: Boundary,
    end_offset: u64,
) -> Summary {
    let is_over = status == SessionStatus::Terminated;
    let current = timeline.log().newest_running();
    Summary {
        status,
        pid: (!is_over && timeline.shell().pid > 0).then_some(timeline.shell().pid),
        cwd: timeline.shell().cwd.clone(),
        last_activity_us: timeline.clock().last_us,
        size: (timeline.cols(), timeline.rows()),
        foreground,
        boundary,
        current_command: current.map(CommandId),
        current_command_text: current.and_then(|id| timeline.log().command(id)).map(|c| Arc::clone(&c.text)),
        last_ended: timeline.log().commands.iter().rev().find(|c| c.end.is_some()).map(|c| CommandId(c.id)),
        end_offset,
        exit: is_over.then(|| exit_of(timeline)).flatten(),
        trouble: timeline.damage().map(str::to_owned).or_else(|| timeline.trouble().message()),
        is_unreachable: false,
        tools: Arc::clone(&timeline.shell().tools),
        limits_hit: timeline.hits().iter().map(limit_hit).collect(),
        driver: None,
        holder_pid: timeline.holder_pid(),
    }
}

pub(crate) fn command_views(shared: &Shared, timeline: &Timeline) -> Vec<CommandView> {
    let at = timeline.output().scanner.position();
    let mut views: Vec<CommandView> = timeline.log().commands.iter().map(|c| command_view(shared, c, at)).collect();
    if let Some(damage) = &timeline.damage() {
        // Its output reaches into the unreadable part, or its markers may have been there.
        let is_cut = |c: &Command| c.start.is_none() || c.end.as_ref().is_none_or(|e| e.at >= at);
        for (view, _) in views.iter_mut().zip(&timeline.log().commands).filter(|(_, c)| is_cut(c)) {
            view.error = Some(format!("output may be missing: {damage}"));
        }
    }
    views
}

pub(crate) fn command_view(shared: &Shared, c: &Command, journal_end: u64) -> CommandView {
    let end = c.end.as_ref();
    let exit_code = end.and_then(|e| e.exit);
    CommandView {
        id: CommandId(c.id),
        session: shared.id.clone(),
        command: c.text.to_string(),
        status: end.map_or(CommandStatus::Running, |e| e.status),
        started_at: time(c.accepted_us),
        completed_at: end.map(|e| time(e.time_us)),
        lasted: c.lasted(),
        exit_code,
        signal: exit_code.and_then(sys::signal::of_exit_code),
        pipestatus: end.map(|e| e.pipestatus.clone()).unwrap_or_default(),
        error: end.and_then(|e| e.error.clone()),
        start_offset: c.output_from(),
        end_offset: end.map(|e| e.at),
        output_size: end.map_or(journal_end, |e| e.at).saturating_sub(c.output_from()),
        cwd: end.and_then(|e| e.cwd.clone()),
        boundary: end.map_or(open_boundary(shared, c), |e| e.boundary),
        limits_hit: c.limits_hit.clone(),
    }
}

/// The signals sent, oldest first, with the present state of their receivers.
pub(crate) fn signal_views(host: &dyn Host, timeline: &Timeline) -> Vec<SignalView> {
    let receiver = |(identity, name): &(Identity, String)| Receiver {
        pid: identity.0,
        name: name.clone(),
        state: processes::state_of(host, *identity),
    };
    let view = |sent: &Sent| SignalView {
        signo: sent.signo,
        target: match sent.target {
            0 => SignalTarget::Foreground,
            pid if pid > 0 => SignalTarget::Process(pid.unsigned_abs()),
            _ => SignalTarget::Session,
        },
        at: time(sent.at_us),
        error: (sent.errno != 0).then(|| std::io::Error::from_raw_os_error(sent.errno).to_string()),
        receivers: sent.receivers.iter().map(receiver).collect(),
    };
    timeline.signals().recorded.iter().map(view).collect()
}

pub(super) fn limit_hit(hit: &Hit) -> LimitHit {
    let command = (hit.command > 0).then_some(CommandId(hit.command));
    LimitHit { limit: hit.limit, command, at: time(hit.at_us), count: hit.count }
}

/// The history row of a command.
pub(crate) fn history_row(session: &SessionId, c: &Command) -> HistoryRow {
    let status = match c.end.as_ref().map(|e| e.status) {
        None | Some(CommandStatus::Running) => "running",
        Some(CommandStatus::Completed) => "completed",
        Some(CommandStatus::Failed) => "failed",
        Some(CommandStatus::Terminated) => "terminated",
    };
    HistoryRow {
        session: session.to_string(),
        id: c.id,
        started_us: c.accepted_us,
        ended_us: c.end.as_ref().map(|e| e.time_us),
        lasted_us: c.lasted().map(|lasted| u64::try_from(lasted.as_micros()).unwrap_or(u64::MAX)),
        status: status.to_owned(),
        exit: c.end.as_ref().and_then(|e| e.exit),
        start_offset: c.output_from(),
        end_offset: c.end.as_ref().map_or(c.output_from(), |e| e.at),
        command: c.text.to_string(),
        boundary: c.end.as_ref().map(|e| e.boundary.as_str().to_owned()),
    }
}

/// How the session ended, as numbers and text.
pub(crate) fn exit_of(timeline: &Timeline) -> Option<SessionExit> {
    let Some((status, _, us)) = timeline.end().exit else {
        let reason = timeline.end().unrecorded.clone()?;
        return Some(SessionExit { code: None, signal: None, reason, at: time(timeline.clock().last_us) });
    };
    let code = libc_exit_code(status);
    let signal = sys::signal::of_wait_status(status);
    let how = match (code, signal) {
        (Some(code), _) if code != 0 && ended_by_errexit(timeline) => {
            format!("the shell exited with {code}; it had set -e (errexit) on: a failing command ends it")
        }
        (Some(code), _) if timed_out_at_prompt(timeline) => {
            format!("the shell exited with {code}; TMOUT ended it: no command came in its time")
        }
        (Some(code), _) => format!("the shell exited with {code}"),
        (None, Some(signo)) => format!("the shell was killed by {}", sys::signal::name(signo)),
        (None, None) => "the shell ended".to_owned(),
    };
    let is_over = |limit: &Limit| matches!(limit, Limit::InactivityTimeout | Limit::MaxAge);
    // A command that could not be ended took its session with it.
    let last =
        timeline.log().commands.back().filter(|c| c.end.as_ref().is_none_or(|e| e.status == CommandStatus::Terminated));
    let ends = |limit: &&Limit| **limit != Limit::OutputMbPerSecond;
    let unending = || last.and_then(|c| c.limits_hit.iter().rfind(ends).copied());
    let reason = match (&timeline.end().ending, timeline.hits().iter().map(|h| h.limit).find(is_over).or_else(unending))
    {
        (Some((EndReason::HOLDER, why)), _) => format!("{why}; {how}"),
        (Some(_), Some(limit)) => format!("it reached its {}; {how}", limit.name()),
        (Some(_), None) => format!("terminated on request; {how}"),
        (None, Some(Limit::MemoryMb)) if signal == Some(sys::signal::KILL) => {
            format!("it reached its {}; {how}{}", Limit::MemoryMb.name(), left_behind(timeline))
        }
        (None, _) => how + &left_behind(timeline),
    };
    Some(SessionExit { code, signal, reason, at: time(us) })
}

/// Whether the shell ended at its prompt and has said that it waited for as long as its variable TMOUT allows.
fn timed_out_at_prompt(timeline: &Timeline) -> bool {
    let said = timeline.output().newest_behind(timeline.log().background_from);
    let says = |words: &[u8]| memchr::memmem::find(said, words).is_some();
    let is_cut = |last: &Command| last.end.as_ref().is_none_or(|end| end.status == CommandStatus::Terminated);
    !timeline.log().commands.back().is_some_and(is_cut)
        && (says(b"timed out waiting for input: auto-logout") || says(b"zsh: timeout"))
}

/// The processes that were ended because the shell had exited, in words.
fn left_behind(timeline: &Timeline) -> String {
    let (left, names) = &timeline.end().left;
    let names = terminal::quote::line(names);
    match left {
        0 => String::new(),
        1 => format!("; 1 background process ended with it: {names}"),
        _ => {
            let more = if *left as usize > names.matches(", ").count() + 1 { ", …" } else { "" };
            format!("; {left} background processes ended with it: {names}{more}")
        }
    }
}

/// Whether the shell reported `set -e` before the command with which it ended, and nothing else may have ended it.
fn ended_by_errexit(timeline: &Timeline) -> bool {
    let Some(last) = timeline.log().commands.back() else { return false };
    let is_cut = last.end.as_ref().is_none_or(|end| end.status == CommandStatus::Terminated);
    let ends_it = ["exit", "exec", "logout", "kill", "set"].iter().any(|word| last.text.contains(word));
    timeline.shell().has_errexit && timeline.end().ending.is_none() && is_cut && !ends_it
}

/// WEXITSTATUS where WIFEXITED (wait(2)).
fn libc_exit_code(status: i32) -> Option<i32> {
    (status & 0x7f == 0).then_some(status >> 8 & 0xff)
}

/// How certain the end of a running command will be.
fn open_boundary(shared: &Shared, c: &Command) -> Boundary {
    match c.channel {
        Channel::NestedShell => Boundary::Nonce,
        Channel::Line => Boundary::Heuristic,
        Channel::Hooks if shared.spec.handover.is_in_band() => Boundary::Nonce,
        Channel::Hooks => Boundary::Attested,
    }
}
