//! The `terminal` tool: a client's default session, and the meaning of `terminal(command, is_input, timeout, reset)`.
//!
//! terminal-mcp.md is the requirement; docs/deviations.md lists where its figures differ from the shell's.

use std::time::{Duration, SystemTime};

use super::caller::{Caller, mismatch};
use super::{startup, time_limit};
use crate::action::{
    Action, ActionError, CommandStatus, Create, Created, Earlier, EndReason, Execute, Foreground, Fresh, Input,
    InputBytes, LiveSession, Locate, LocatedSession, Look, MissedEnd, Otherwise, Outcome, ReadMissed, Report,
    SessionView, SignalTarget, TargetShell, TaskNote, TaskSupport, TerminalCall, TerminalView, Wait,
};
use crate::ids::SessionId;
use crate::keys;
use crate::limits;

/// How long an interrupted program may take to end before the answer says that it still runs.
const INTERRUPT_WAIT: Duration = Duration::from_secs(5);

/// The byte of C-d.
const END_OF_FILE: &[u8] = b"\x04";

/// The meaning of a call.
enum Ask {
    Look,
    Signal(i32),
    EndOfFile,
    Input(InputBytes),
    Command(String),
}

/// The session of a call.
enum Target {
    /// This session, the reason if it is a new one, and the read cursor of the caller in the session before it.
    At(Box<LiveSession>, Option<Fresh>, (SessionId, u64)),
    /// The call was performed earlier, in a session that it ended.
    Done(Box<Report>, u64),
}

/// Performs a call.
pub(super) async fn call(caller: Caller<'_>, call: &TerminalCall) -> Result<TerminalView, ActionError> {
    let asked_at = sys::time::wall();
    match call_once(caller, call).await {
        // The shell ended at this very moment: a command that has not run goes to the next shell.
        Err(ActionError::Ended { session, .. })
            if call.session.is_none() && !call.is_input && has_not_run(caller, session.clone(), asked_at).await =>
        {
            call_once(caller, call).await
        }
        answer => answer,
    }
}

/// Whether a session that has just ended recorded no command since then.
async fn has_not_run(caller: Caller<'_>, session: SessionId, asked_at: SystemTime) -> bool {
    match caller.act(Action::FinalCommands(session)).await {
        Ok(Outcome::Commands(all, _)) => all.iter().all(|command| command.started_at < asked_at),
        Ok(_) | Err(_) => false,
    }
}

async fn call_once(caller: Caller<'_>, call: &TerminalCall) -> Result<TerminalView, ActionError> {
    if call.reset && call.is_input {
        let problem = "cannot be combined with is_input: a fresh shell runs nothing that could read it".to_owned();
        return Err(ActionError::Invalid { field: "reset", problem });
    }
    let (mut at, mut fresh, before) = match target(caller, call).await? {
        Target::At(at, fresh, before) => (at, fresh, before),
        Target::Done(report, read_to) => {
            let before = (report.session.id.clone(), read_to);
            return answer(caller, *report, None, None, before).await;
        }
    };
    if call.reset {
        let mut lost = None;
        if fresh.is_none() {
            lost = at.running.take();
            let restarted = startup::start(caller, Action::Restart(at.session.id.clone())).await?;
            *at = started(restarted)?;
        }
        fresh = Some(Fresh::Reset(lost));
    }
    let id = at.session.id.clone();
    // The answer of a fresh shell names the lost state at once, so it is not a task.
    let is_plain = match &fresh {
        None => true,
        Some(Fresh::First(left_behind)) => at.session.startup_failed.is_empty() && left_behind.is_empty(),
        Some(Fresh::Ended { .. } | Fresh::Reset(_)) => false,
    };
    let tasks = if is_plain { call.tasks } else { TaskSupport::None };
    let call = &TerminalCall { tasks, ..call.clone() };
    let ask = ask(call);
    let only_reset = call.reset && matches!(ask, Ask::Look);
    let (report, look) = match ask {
        Ask::Look if only_reset => (unread(caller, id, call).await?, Some(Look::Reset)),
        Ask::Look if is_idle(&at.session) => (unread(caller, id, call).await?, Some(Look::Idle)),
        Ask::Look => {
            // By its id: it may end before the wait begins.
            // A server that is ready has nothing more to say; a caller that gives a time waits for it.
            let wait = Wait { listens: call.timeout.is_none(), ..wait_of(caller, call) };
            (wait_for(caller, &at.session, wait, call).await?, Some(Look::Running))
        }
        Ask::Signal(signo) => interrupt(caller, &at, call, signo).await?,
        Ask::EndOfFile if is_idle(&at.session) => (unread(caller, id, call).await?, Some(Look::NothingToInterrupt)),
        Ask::EndOfFile => {
            (type_at(caller, typing(caller, &at.session, InputBytes::Raw(END_OF_FILE.to_vec()), call)).await?, None)
        }
        Ask::Input(_) if is_idle(&at.session) => return Err(ActionError::NothingRuns { session: id }),
        Ask::Input(bytes) => (type_at(caller, typing(caller, &at.session, bytes, call)).await?, None),
        Ask::Command(command) => {
            let execute = execution(caller, id, command, call);
            (Box::pin(time_limit::run(caller, execute)).await?, None)
        }
    };
    answer(caller, report, fresh, look, before).await
}

/// The answer, with the commands whose end was not reported to the caller yet.
async fn answer(
    caller: Caller<'_>,
    report: Report,
    fresh: Option<Fresh>,
    look: Option<Look>,
    (session, read_to): (SessionId, u64),
) -> Result<TerminalView, ActionError> {
    let told = |command: &crate::action::CommandView| {
        (report.session.id.clone(), command.id, command.status == CommandStatus::Running)
    };
    let read = ReadMissed { session, told: report.command.as_ref().map(told), read_to };
    if let Some(TaskNote::Opened(_)) = report.task {
        // Nothing but the task is told now; the next answer has the rest.
        let (missed, soft_timeout) = (Vec::new(), caller.soft_timeout);
        return Ok(TerminalView { report, fresh, look, missed, soft_timeout });
    }
    let missed: Vec<MissedEnd> = match caller.act(Action::Missed(read)).await? {
        Outcome::Missed(missed) => missed,
        other => return Err(mismatch(&other)),
    };
    Ok(TerminalView { report, fresh, look, missed, soft_timeout: caller.soft_timeout })
}

/// The session of the call; a client's first call, and the first after the shell's end, start a new one.
async fn target(caller: Caller<'_>, call: &TerminalCall) -> Result<Target, ActionError> {
    let client = match (&call.session, &call.client.client) {
        (Some(id), _) => {
            return match locate(caller, Locate::Session(id.clone())).await? {
                LocatedSession::Live(live) => Ok(at(live, None)),
                LocatedSession::Ended { session, how, .. } => {
                    Err(ActionError::Ended { session, reason: EndReason::Recorded(how) })
                }
                LocatedSession::Nothing => Err(ActionError::NoSession { id: id.to_string(), live: None }),
            };
        }
        (None, Some(client)) => client.clone(),
        (None, None) => {
            let problem =
                "is needed: this connection has no default session; start_terminal_session starts one".to_owned();
            return Err(ActionError::Invalid { field: "session_id", problem });
        }
    };
    let mut last_cwd = None;
    let (mut fresh, before) = match locate(caller, Locate::DefaultOf(client.clone())).await? {
        LocatedSession::Live(live) => return Ok(at(live, None)),
        LocatedSession::Ended { session, how, cwd, read_to } => {
            if let Some(report) = done_before(caller, &session, call).await? {
                return Ok(Target::Done(report, read_to));
            }
            last_cwd = Some(cwd);
            (Fresh::Ended { session: session.clone(), how, keeps_cwd: false }, Some((session, read_to)))
        }
        LocatedSession::Nothing => (Fresh::First(Vec::new()), None),
    };
    let mut created = startup::start(caller, Action::Start(Box::new(request(call, client)))).await?;
    match &mut fresh {
        Fresh::First(left_behind) => *left_behind = std::mem::take(&mut created.left_behind),
        Fresh::Ended { keeps_cwd, .. } => *keeps_cwd = last_cwd.is_some_and(|cwd| cwd == created.session.cwd),
        Fresh::Reset(_) => {}
    }
    // Another call of this client may have started it meanwhile.
    let fresh = created.is_new.then_some(fresh);
    let live = started(created)?;
    Ok(match (before, fresh) {
        (Some(before), Some(fresh)) => Target::At(Box::new(live), Some(fresh), before),
        (_, fresh) => at(Box::new(live), fresh),
    })
}

fn at(live: Box<LiveSession>, fresh: Option<Fresh>) -> Target {
    let before = (live.session.id.clone(), live.read_to);
    Target::At(live, fresh, before)
}

async fn locate(caller: Caller<'_>, locate: Locate) -> Result<LocatedSession, ActionError> {
    match caller.act(Action::Locate(locate)).await? {
        Outcome::Located(located) => Ok(located),
        other => Err(mismatch(&other)),
    }
}

/// A session that was just started, if it has not ended already.
fn started(created: Created) -> Result<LiveSession, ActionError> {
    let Created { session, .. } = created;
    match session.exit {
        Some(exit) => Err(ActionError::Ended { session: session.id, reason: EndReason::Recorded(exit.reason) }),
        None => Ok(LiveSession { session, running: None, was_not_ready: false, read_to: 0 }),
    }
}

/// The result of the same call, if it is a repetition and has ended the default session: a new shell must not perform
/// it again.
async fn done_before(
    caller: Caller<'_>,
    old: &SessionId,
    call: &TerminalCall,
) -> Result<Option<Box<Report>>, ActionError> {
    let old = old.clone();
    let earlier = match ask(call) {
        _ if call.reset || call.key.is_none() => return Ok(None),
        Ask::Command(command) => Earlier::Execute(execution(caller, old, command, call)),
        Ask::Input(bytes) => Earlier::Input(earlier_typing(caller, old, bytes, call)),
        Ask::EndOfFile => Earlier::Input(earlier_typing(caller, old, InputBytes::Raw(END_OF_FILE.to_vec()), call)),
        Ask::Look | Ask::Signal(_) => return Ok(None),
    };
    match caller.act(Action::Earlier(earlier)).await? {
        Outcome::Earlier(report) => Ok(report),
        other => Err(mismatch(&other)),
    }
}

fn is_idle(session: &SessionView) -> bool {
    matches!(session.foreground, Foreground::Idle | Foreground::Stopped) && session.current_command.is_none()
}

/// The output since this caller's last call, and the newest command; does not wait.
async fn unread(caller: Caller<'_>, session: SessionId, call: &TerminalCall) -> Result<Report, ActionError> {
    caller.report(Action::Unread { session, budget: call.budget }).await
}

async fn wait_for(
    caller: Caller<'_>,
    session: &SessionView,
    wait: Wait,
    call: &TerminalCall,
) -> Result<Report, ActionError> {
    let (id, command) = (session.id.clone(), session.current_command);
    caller.report(Action::Wait { session: id, wait, command, budget: call.budget, moves_cursor: true }).await
}

async fn interrupt(
    caller: Caller<'_>,
    at: &LiveSession,
    call: &TerminalCall,
    signo: i32,
) -> Result<(Report, Option<Look>), ActionError> {
    let id = at.session.id.clone();
    // A shell that refused a command because its editor had no terminal was reported as needing the key.
    if !at.was_not_ready && is_idle(&at.session) {
        return Ok((unread(caller, id, call).await?, Some(Look::NothingToInterrupt)));
    }
    let signal = Action::Signal { session: id, target: SignalTarget::Foreground, signo };
    let ignored_by = match caller.act(signal).await? {
        Outcome::Signalled(_, ignored_by) => ignored_by,
        other => return Err(mismatch(&other)),
    };
    let timeout = call.timeout.unwrap_or(INTERRUPT_WAIT);
    // The input wanted before the signal is forgotten, so the wait ends on input wanted after it.
    let wait = Wait { pattern: call.pattern.clone(), input_wanted: true, ..Wait::at_most(timeout) };
    let report = wait_for(caller, &at.session, wait.shortened_by(ignored_by.as_deref()), call).await?;
    Ok((Report { ignored_by, ..report }, None))
}

/// A given timeout bounds the whole wait; without one, silence ends it, and so does the total timeout.
fn wait_of(caller: Caller<'_>, call: &TerminalCall) -> Wait {
    if call.tasks != TaskSupport::None {
        let timeout = call.timeout.unwrap_or(limits::TOTAL_TIMEOUT);
        let (pattern, waited) = (call.pattern.clone(), call.waited);
        let wait = Wait { pattern, input_wanted: true, waited, ..Wait::at_most(timeout) };
        return wait.or_as_task(call.timeout.is_some(), call.tasks);
    }
    Wait {
        pattern: call.pattern.clone(),
        input_wanted: true,
        quiet: call.timeout.is_none().then_some(caller.soft_timeout),
        waited: call.waited,
        ..Wait::at_most(call.timeout.unwrap_or(limits::TOTAL_TIMEOUT))
    }
}

/// Types at the program that runs. Even if that ends at this moment, this tool types nothing at the shell's prompt.
async fn type_at(caller: Caller<'_>, input: Input) -> Result<Report, ActionError> {
    match caller.report(Action::Input(input)).await {
        Err(ActionError::InputTooLate { session, .. }) => Err(ActionError::NothingRuns { session }),
        report => report,
    }
}

fn typing(caller: Caller<'_>, at: &SessionView, bytes: InputBytes, call: &TerminalCall) -> Input {
    let input = earlier_typing(caller, at.id.clone(), bytes, call);
    Input { meant_for: at.current_command, ..input }
}

fn earlier_typing(caller: Caller<'_>, session: SessionId, bytes: InputBytes, call: &TerminalCall) -> Input {
    let (wait, key, budget) = (Some(wait_of(caller, call)), call.key.clone(), call.budget);
    let (is_secret, is_hidden, without_echo) = (false, false, true);
    Input { session, bytes, is_secret, is_hidden, wait, key, budget, without_echo, meant_for: None }
}

fn execution(caller: Caller<'_>, session: SessionId, command: String, call: &TerminalCall) -> Execute {
    // A look and an input may be about a server that listens already; so may a command behind another program.
    let wait = Wait { listens: !call.is_inside, ..wait_of(caller, call) };
    let (wait, key) = (Some(wait), call.key.clone());
    Execute {
        session,
        command,
        shell: TargetShell::foremost(call.is_inside),
        allowed_in: None,
        wait,
        time_limit: call.time_limit,
        key,
        budget: call.budget,
    }
}

/// Exactly these texts are keys; any other text is a command or input.
fn ask(call: &TerminalCall) -> Ask {
    let key = if call.is_input { control_key(&call.command) } else { None };
    match key.as_deref().unwrap_or(&call.command) {
        "C-c" => Ask::Signal(sys::signal::INT),
        "C-z" => Ask::Signal(sys::signal::TSTP),
        "C-d" => Ask::EndOfFile,
        "" if !call.is_input => Ask::Look,
        text if call.is_input => {
            if let Some(keys) = key.as_deref().and_then(|name| keys::parse(name).ok()) {
                return Ask::Input(InputBytes::Keys(keys));
            }
            Ask::Input(InputBytes::of_text(with_enter(text)))
        }
        text if !TerminalCall::is_command(text) => Ask::Look,
        text => Ask::Command(text.to_owned()),
    }
}

/// An input and Enter. A single line may bring its own, for a second one would answer the next question, and so may an empty
/// last line. The newline of a block's last line is no more than that line's end: python runs `def` behind an empty one.
///
/// The key sends a carriage return. A terminal that is read by the line makes a newline of it; a program that reads keys takes
/// a newline for C-j, which is another command in most editors.
fn with_enter(text: &str) -> String {
    let line = text.strip_suffix("\r\n").or_else(|| text.strip_suffix(['\n', '\r']));
    let lines = match line {
        Some(line) if !line.contains(['\n', '\r']) => line,
        Some(line) if line.ends_with(['\n', '\r']) => line,
        Some(_) | None => text,
    };
    lines.replace("\r\n", "\r").replace('\n', "\r") + "\r"
}

/// The name of the control key that an input consists of: `C-x`, `^X`, `Escape`. The names of other keys are words that a
/// program may want.
fn control_key(text: &str) -> Option<String> {
    let of = |letter: &str| {
        let is_key = letter.len() == 1 && letter.bytes().all(|b| b.is_ascii_alphabetic() || b"[]\\^_@".contains(&b));
        is_key.then(|| format!("C-{}", letter.to_ascii_lowercase()))
    };
    match text {
        "Escape" | "Esc" => Some(text.to_owned()),
        _ => text.strip_prefix("C-").or_else(|| text.strip_prefix('^')).and_then(of),
    }
}

/// The default session of a client.
fn request(call: &TerminalCall, client: String) -> Create {
    let context = &call.client;
    Create {
        otherwise: Otherwise { cwd: context.cwd.clone(), umask: context.umask, ..Otherwise::default() },
        base_env: context.env.clone(),
        client: Some(client),
        detach: context.detach,
        is_default: true,
        is_by_model: true,
        ..Create::default()
    }
}

#[cfg(test)]
mod tests {
    use super::{control_key, with_enter};

    #[test]
    fn enter_is_added_but_to_a_single_line_or_an_empty_one_that_has_it() {
        let returns = |text: &str| text.replace("\r\n", "\r").replace('\n', "\r");
        for text in ["\n", "y\n", "y\r", "y\r\n", "def f():\n  return 1\n\n", "a\r\n\r\n", "a\r\r"] {
            assert_eq!(with_enter(text), returns(text));
        }
        for text in ["", "y", "a\nb", "def f():\n  return 1\n", "a\r\nb\r\n", "a\rb\r"] {
            assert_eq!(with_enter(text), returns(text) + "\r");
        }
    }

    #[test]
    fn a_control_key_is_known_by_its_names_and_words_are_not() {
        for (text, key) in [("C-x", "C-x"), ("C-X", "C-x"), ("^O", "C-o"), ("^[", "C-["), ("Escape", "Escape")] {
            assert_eq!(control_key(text).as_deref(), Some(key), "{text}");
        }
        for text in ["", "^", "C-", "Enter", "End", "C-xx", "x^2", "^1", "escape", "C-x\n"] {
            assert_eq!(control_key(text), None, "{text}");
        }
    }
}
