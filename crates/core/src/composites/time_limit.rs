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

use tokio::runtime::Handle;
use tokio::time::{Instant, sleep_until};

use super::caller::{Caller, mismatch};
use super::limited_commands::{Enforced, TimeLimits};
use crate::action::{
    Action, ActionError, Budget, CommandStatus, Dispatch, EndedBy, Ending, Execute, Outcome, ProcessState, Report,
    SignalTarget, TaskNote, TimeLimit, Wait, signal_number,
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

/// The reader in whose name the enforcement waits: no client can have it, and no client's read cursor moves. A colon is in
/// no client's name.
const READER: &str = "ptyd:time-limit";

/// Runs the command, and enforces its limit, if it has one.
pub(super) async fn run(caller: Caller<'_>, mut execute: Execute) -> Result<Report, ActionError> {
    let Some(limit) = execute.time_limit else { return caller.report(Action::Execute(execute)).await };
    // By its key the enforcement finds the command of a client that goes away before it is answered.
    execute.key.get_or_insert_with(fresh_key);
    if let Some(task) = execute.wait.as_mut().and_then(|wait| wait.task.as_mut()) {
        task.ending = longest(limit.ending);
    }
    let budget = execute.budget;
    let enforcer = Unanswered::new(caller, &execute, limit);
    let answered = caller.report(Action::Execute(execute)).await;
    let enforcer = enforcer.answered();
    let report = answered?;
    let running = report.command.as_ref().filter(|c| c.status == CommandStatus::Running).map(|c| c.id);
    let Some(command) = running else { return Ok(report) };
    let session = report.session.id.clone();
    // A task is not waited for: its answer is the end.
    let is_over = report.ended_by == EndedBy::TimedOut && !matches!(report.task, Some(TaskNote::Opened(_)));
    // The client may go away at any time.
    let enforced = tokio::spawn(async move { enforcer.enforce(command).await });
    if !is_over || !enforced.await.map_err(|e| ActionError::Internal { why: e.to_string() })?? {
        return Ok(report);
    }
    answer(caller, session, command, report, limit.ending, budget).await
}

/// How long the end of a command takes at most, once its time is up.
fn longest(ending: Ending) -> Duration {
    match ending {
        Ending::Interrupt => INTERRUPT_WAIT,
        Ending::Kill => INTERRUPT_ALONE + limits::TERMINATE_GRACE + KILL_WAIT,
    }
}

fn fresh_key() -> String {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).expect("invariant: the kernel gives random bytes");
    format!("time-limit:{:032x}", u128::from_le_bytes(bytes))
}

/// The answer about a command whose time was up, with all of its output.
async fn answer(
    caller: Caller<'_>,
    session: SessionId,
    command: CommandId,
    before: Report,
    ending: Ending,
    budget: Budget,
) -> Result<Report, ActionError> {
    // The output that is shown now counts as read.
    let wait = Wait::at_most(Duration::ZERO);
    caller
        .report(Action::Wait {
            session: session.clone(),
            wait,
            command: Some(command),
            budget: Budget::NONE,
            moves_cursor: true,
        })
        .await?;
    let shown = before.background.as_ref().map_or(0, |text| text.head.len() + text.tail.len());
    let budget = budget.less(shown);
    let now = caller.report(Action::Command { session, command, budget }).await?;
    let ended_by = match now.command.as_ref().map(|c| c.status) {
        Some(CommandStatus::Running) => EndedBy::TimedOut,
        Some(CommandStatus::Terminated) => EndedBy::Exited,
        Some(CommandStatus::Completed | CommandStatus::Failed) | None => EndedBy::Ended,
    };
    Ok(Report { ended_by, waited: before.waited, background: before.background, time_limit: Some(ending), ..now })
}

/// The enforcement of one command's limit, independent of the request.
struct Enforcer {
    dispatch: Arc<dyn Dispatch>,
    principal: Principal,
    soft_timeout: Duration,
    time_limits: Arc<TimeLimits>,
    execute: Execute,
    limit: TimeLimit,
    begun: Instant,
}

/// An enforcer that takes over the request if that is dropped: its client has gone, and its limit holds.
struct Unanswered(Option<Enforcer>, Handle);

impl Unanswered {
    fn new(caller: Caller<'_>, execute: &Execute, limit: TimeLimit) -> Self {
        // The limit was set while the token was good: a token that is revoked meanwhile, or a log-out, does not lift it.
        let principal = Principal {
            pass: None,
            log_in: None,
            client: Some(READER.to_owned()),
            delivery: None,
            ..caller.principal.clone()
        };
        let enforcer = Enforcer {
            dispatch: caller.dispatch.detached(),
            principal,
            soft_timeout: caller.soft_timeout,
            time_limits: Arc::clone(caller.time_limits),
            execute: execute.clone(),
            limit,
            begun: Instant::now(),
        };
        Self(Some(enforcer), Handle::current())
    }

    fn answered(mut self) -> Enforcer {
        self.0.take().expect("invariant: only this takes it")
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        if let Some(enforcer) = self.0.take() {
            self.1.spawn(enforcer.take_over());
        }
    }
}

impl Enforcer {
    /// Sends the request of a client that has gone again, which runs nothing twice.
    async fn take_over(self) {
        let mut execute = self.execute.clone();
        if let Some(wait) = &mut execute.wait {
            wait.waited = self.begun.elapsed();
        }
        if let Ok(report) = self.caller().report(Action::Execute(execute)).await
            && let Some(command) = report.command.filter(|c| c.status == CommandStatus::Running)
        {
            // Nobody waits for the result.
            let _ = self.enforce(command.id).await;
        }
    }

    fn caller(&self) -> Caller<'_> {
        let Self { dispatch, principal, soft_timeout, time_limits, .. } = self;
        Caller { dispatch: &**dispatch, principal, soft_timeout: *soft_timeout, time_limits }
    }

    /// Ends the command when its time is up; whether that was done here.
    async fn enforce(self, command: CommandId) -> Result<bool, ActionError> {
        let session = self.execute.session.clone();
        let Some(_enforced) = Enforced::begin(&self.time_limits, (session.clone(), command)) else { return Ok(false) };
        let limited = Limited { caller: self.caller(), session, command };
        if !limited.outlasts(self.begun + self.limit.after).await {
            return Ok(false);
        }
        let result = limited.end(self.limit.ending).await;
        tracing::info!(session = %limited.session, %command, ?result, "its time was up");
        result.map(|()| true)
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
                    | ActionError::NotRecorded { .. }
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
        let report = self
            .caller
            .report(Action::Wait {
                session,
                wait,
                command: Some(self.command),
                budget: Budget::NONE,
                moves_cursor: false,
            })
            .await?;
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

    /// Sends a signal; that a process has ended meanwhile is not an error.
    async fn signal(&self, target: SignalTarget, signo: i32) -> Result<(), ActionError> {
        match self.caller.act(Action::Signal { session: self.session.clone(), target, signo }).await {
            Ok(_) | Err(ActionError::NothingRuns { .. } | ActionError::Ended { .. } | ActionError::Invalid { .. }) => {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}
