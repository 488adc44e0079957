//! A command with a time limit: when its time is up it is interrupted, or ended by force. The session's shell stays.
//!
//! ```text
//! interrupt: C-c
//! kill:      C-c ── 0.5 s ── TERM ── grace ── KILL, to the processes in the foreground but the shell
//! ```
//! C-c comes first for both: after a TERM a shell goes on with the next command of a list or a loop.
//! The limit holds although the client goes away or its wait ends before. The server that was asked enforces it; a
//! limit that outlives the server is the session's (`limits.commandSeconds`).

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use super::caller::{Caller, mismatch};
use super::limited_commands::Enforced;
use crate::action::{
    Action, ActionError, CommandStatus, EndedBy, Ending, Execute, Outcome, ProcessState, Report, SignalTarget,
    TimeLimit, Wait, signal_number,
};
use crate::ids::{CommandId, SessionId};
use crate::limits;
use crate::principal::Principal;

/// How long an interrupted command may take before the answer says that it still runs.
const INTERRUPT_WAIT: Duration = Duration::from_secs(5);
/// How long only C-c is given where TERM follows.
const INTERRUPT_ALONE: Duration = Duration::from_millis(500);
/// How long the kernel and the shell may take after a KILL.
const KILL_WAIT: Duration = Duration::from_secs(5);
/// The interval after which a wait that was refused or that a stopped command ended is asked for again.
const AGAIN: Duration = Duration::from_secs(1);

/// Runs the command, and enforces its limit, if it has one.
pub(super) async fn run(caller: Caller<'_>, execute: Execute) -> Result<Report, ActionError> {
    let Some(limit) = execute.time_limit else { return caller.report(Action::Execute(execute)).await };
    let deadline = Instant::now() + limit.after;
    let (dispatch, soft_timeout) = (caller.dispatch.detached(), caller.soft_timeout);
    let time_limits = Arc::clone(caller.time_limits);
    // The limit was set while the token was good: a token that is revoked meanwhile does not lift it.
    let principal = Principal { pass: None, ..caller.principal.clone() };
    let (answer, answered) = oneshot::channel();
    tokio::spawn(async move {
        let caller = Caller { dispatch: &*dispatch, principal: &principal, soft_timeout, time_limits: &time_limits };
        run_limited(caller, execute, limit, deadline, answer).await;
    });
    answered.await.map_err(|e| ActionError::Internal { why: e.to_string() })?
}

async fn run_limited(
    caller: Caller<'_>,
    execute: Execute,
    limit: TimeLimit,
    deadline: Instant,
    answer: oneshot::Sender<Result<Report, ActionError>>,
) {
    let (session, budget) = (execute.session.clone(), execute.budget);
    let report = match caller.report(Action::Execute(execute)).await {
        Ok(report) => report,
        Err(error) => return drop(answer.send(Err(error))),
    };
    let running = report.command.as_ref().filter(|c| c.status == CommandStatus::Running).map(|c| c.id);
    let Some(command) = running else { return drop(answer.send(Ok(report))) };
    let Some(_enforced) = Enforced::begin(caller.time_limits, (session.clone(), command)) else {
        return drop(answer.send(Ok(report)));
    };
    let limited = Limited { caller, session, command };
    if report.ended_by == EndedBy::TimedOut {
        let ended = limited.end(limit.ending).await;
        let answered = match ended {
            Ok(()) => limited.answer(report, limit.ending, budget).await,
            Err(error) => Err(error),
        };
        return drop(answer.send(answered));
    }
    // Its caller was answered before the time is up.
    let _ = answer.send(Ok(report));
    if limited.outlasts(deadline).await {
        let result = limited.end(limit.ending).await;
        tracing::info!(session = %limited.session, command = %limited.command, ?result, "its time was up");
    }
}

/// A running command with a limit.
struct Limited<'a> {
    caller: Caller<'a>,
    session: SessionId,
    command: CommandId,
}

impl Limited<'_> {
    /// Whether it still runs at that time.
    async fn outlasts(&self, deadline: Instant) -> bool {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.wait(left).await {
                Ok(is_running) if !is_running => return false,
                Ok(_)
                | Err(
                    ActionError::Limit { .. }
                    | ActionError::Exhausted { .. }
                    | ActionError::Unreachable { .. }
                    | ActionError::Internal { .. },
                ) => {}
                Err(_) => return false,
            }
            if Instant::now() >= deadline {
                return true;
            }
            sleep_until(deadline.min(Instant::now() + AGAIN)).await;
        }
    }

    /// Waits for its end; whether it still runs.
    async fn wait(&self, timeout: Duration) -> Result<bool, ActionError> {
        let (session, wait) = (self.session.clone(), Wait::at_most(timeout));
        let report = self.caller.report(Action::Wait { session, wait, command: Some(self.command), budget: 0 }).await?;
        Ok(report.command.is_some_and(|c| c.id == self.command && c.status == CommandStatus::Running))
    }

    async fn end(&self, ending: Ending) -> Result<(), ActionError> {
        let (alone, signals) = match ending {
            Ending::Interrupt => (INTERRUPT_WAIT, &[][..]),
            Ending::Kill => (INTERRUPT_ALONE, &[("TERM", limits::TERMINATE_GRACE), ("KILL", KILL_WAIT)][..]),
        };
        if !self.interrupt().await? || !self.wait(alone).await? {
            return Ok(());
        }
        for (name, patience) in signals {
            let signo = signal_number(name).expect("invariant: these are signals");
            self.signal_foreground(signo).await?;
            if !self.wait(*patience).await? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Presses C-c, if the command still has the terminal: at the prompt it would clear the next line.
    async fn interrupt(&self) -> Result<bool, ActionError> {
        let now = match self.caller.session(Action::Show(self.session.clone())).await {
            Ok(now) => now,
            Err(ActionError::Ended { .. }) => return Ok(false),
            Err(error) => return Err(error),
        };
        if now.current_command != Some(self.command) {
            return Ok(false);
        }
        let signo = signal_number("INT").expect("invariant: it is a signal");
        self.signal(SignalTarget::Foreground, signo).await?;
        Ok(true)
    }

    /// Signals the processes in the foreground one by one, and never the shell: it has the foreground between two of its
    /// commands, and again when the last one has ended.
    async fn signal_foreground(&self, signo: i32) -> Result<(), ActionError> {
        let shell = self.caller.session(Action::Show(self.session.clone())).await?.pid;
        let processes = match self.caller.act(Action::Processes(self.session.clone())).await? {
            Outcome::Processes(processes) => processes,
            other => return Err(mismatch(&other)),
        };
        let in_foreground =
            |p: &&crate::action::ProcessView| p.is_foreground && Some(p.pid) != shell && p.state != ProcessState::Ended;
        for process in processes.iter().filter(in_foreground) {
            self.signal(SignalTarget::Process(process.pid), signo).await?;
        }
        Ok(())
    }

    /// Sends a signal; that a process has ended meanwhile is no error.
    async fn signal(&self, target: SignalTarget, signo: i32) -> Result<(), ActionError> {
        match self.caller.act(Action::Signal { session: self.session.clone(), target, signo }).await {
            Ok(_) | Err(ActionError::NothingRuns { .. } | ActionError::Ended { .. } | ActionError::Invalid { .. }) => {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// The answer, with all of the command's output.
    async fn answer(&self, before: Report, ending: Ending, budget: usize) -> Result<Report, ActionError> {
        let shown = before.background.as_ref().map_or(0, |text| text.head.len() + text.tail.len());
        let budget = budget.saturating_sub(shown);
        let look = Action::Command { session: self.session.clone(), command: self.command, budget };
        let now = self.caller.report(look).await?;
        let is_running = now.command.as_ref().is_some_and(|c| c.status == CommandStatus::Running);
        let ended_by = if is_running { EndedBy::TimedOut } else { EndedBy::Ended };
        Ok(Report { ended_by, waited: before.waited, background: before.background, time_limit: Some(ending), ..now })
    }
}
