//! The dispatcher, through which every action passes: it checks the scope, asks the session's policy, records the action in the
//! audit log, performs it, and records the result.
//!
//! A composite action expands into primitive ones (`composites/`), which come back here one by one, so each is authorized
//! and recorded with the session, the text or keys, and the principal that it has in the end. Dropping the future of
//! [`Dispatcher::dispatch`] cancels the *wait*, never the program.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tracing::Instrument;

use crate::action::{
    Action, ActionError, AuditClass, Boxed, Dispatch, Execute, Facts, Input, Outcome, PatternShare, Terminate,
    check_command,
};
use crate::approval_wait::ApprovalWait;
use crate::audit::{AuditLog, Entry};
pub use crate::composites::{Caller, TimeLimits, expand};
use crate::credentials::named_tokens::Tokens;
use crate::credentials::tickets::Tickets;
use crate::ids::SessionId;
use crate::lane::{Lane, Lanes};
use crate::metrics::Metrics;
use crate::principal::{Detach, Principal};
use crate::sessions::{self, ApprovalClaim, Judged, NewTokens, Services, Target, UnixPeers};
use crate::traces;

/// Records every action: each primitive before and after it is performed, and each composite after.
pub(crate) trait Recorder: fmt::Debug + Send + Sync {
    /// A primitive action that its principal may perform is about to be performed.
    fn begins(&self, principal: &Principal, action: &Action);
    /// An action was performed or refused; `waits` is whether its caller asked to wait.
    fn ended(&self, principal: &Principal, done: &Completion<'_>);
}

/// The end of an action.
#[derive(Debug)]
pub(crate) struct Completion<'a> {
    facts: Facts,
    took: Duration,
    error: Option<&'a ActionError>,
}

/// The recorder that writes to the server's log; the log line's span has the request's id.
#[derive(Debug)]
struct Log {
    /// Actions that take longer are logged, unless the caller asked to wait.
    slow: Duration,
}

impl Recorder for Log {
    fn begins(&self, principal: &Principal, action: &Action) {
        tracing::trace!(action = action.facts().name, principal = %principal.name, "begins");
    }

    fn ended(&self, principal: &Principal, done: &Completion<'_>) {
        let (action, ms) = (done.facts.name, done.took.as_millis());
        if done.took >= self.slow && !done.facts.waits {
            tracing::warn!(action, principal = %principal.name, ms, "slow");
        }
        match done.error {
            None => tracing::debug!(action, principal = %principal.name, ms, "done"),
            Some(e) => tracing::info!(action, principal = %principal.name, ms, error = %e, "not done"),
        }
    }
}

/// The dispatcher: a cheap handle that the protocols hold.
#[derive(Debug, Clone)]
pub struct Dispatcher {
    services: Arc<Services>,
    recorder: Arc<dyn Recorder>,
    time_limits: Arc<TimeLimits>,
}

impl Dispatcher {
    /// A dispatcher to these services.
    pub fn new(services: Arc<Services>) -> Self {
        let recorder = Arc::new(Log { slow: services.settings.slow_call });
        Self { services, recorder, time_limits: Arc::default() }
    }

    /// The same with another recorder.
    #[cfg(test)]
    pub(crate) fn recorded_by(services: Arc<Services>, recorder: Arc<dyn Recorder>) -> Self {
        Self { services, recorder, time_limits: Arc::default() }
    }

    /// Performs one action for one caller.
    pub async fn dispatch(&self, principal: &Principal, action: Action) -> Result<Outcome, ActionError> {
        let span = traces::action(action.facts().name);
        let result = self.record_and_perform(principal, action).instrument(span.clone()).await;
        if let Err(error) = &result {
            traces::failed(&span, error.code());
        }
        result
    }

    async fn record_and_perform(&self, principal: &Principal, mut action: Action) -> Result<Outcome, ActionError> {
        let facts = action.facts();
        let begun = Instant::now();
        let (audit, lanes) = (&self.services.server_events.audit, &self.services.server_events.lanes);
        let entry = || audit.entry(principal, &action, |session| self.services.sessions.name_and_masks(session));
        let mut entry = lanes.work(&principal.name, action.command_bytes(), entry).await;
        let result = match self.admit(principal, facts, &mut action, &mut entry).await {
            Err(error) => Err(error),
            Ok((target, approval)) => {
                let result = if principal.pass.is_some() {
                    // A wait ends at the moment its caller's token is revoked.
                    tokio::select! {
                        biased;
                        () = principal.shut_out() => Err(ActionError::ShutOut),
                        result = self.perform(principal, action, target) => result,
                    }
                } else {
                    self.perform(principal, action, target).await
                };
                if let (
                    Some(used),
                    Err(ActionError::Busy { .. } | ActionError::NotReady { .. } | ActionError::Driven { .. }),
                ) = (approval, &result)
                {
                    used.put_back();
                }
                result
            }
        };
        entry.end(&result).await;
        self.count(facts, begun.elapsed(), &result);
        let done = Completion { facts, took: begun.elapsed(), error: result.as_ref().err() };
        self.recorder.ended(principal, &done);
        self.services.server_events.memory.was_used();
        result
    }

    /// Counts a primitive action in the metrics; a composite's are counted one by one.
    fn count(&self, facts: Facts, took: Duration, result: &Result<Outcome, ActionError>) {
        let metrics = &self.services.server_events.metrics;
        if facts.audit != AuditClass::Composite {
            if facts.waits {
                metrics.waited_for(took);
            }
            if let Err(error) = result {
                metrics.refused(error.code());
            }
        }
    }

    /// Whether an action may be performed: by its principal's scope, its size, its session's policy, and as the audit log can have
    /// it. Returns the session in which it runs or types something, and the approval that it uses up.
    async fn admit(
        &self,
        principal: &Principal,
        facts: Facts,
        action: &mut Action,
        entry: &mut Entry<'_>,
    ) -> Result<(Option<Target>, Option<Box<ApprovalClaim>>), ActionError> {
        if principal.scope < facts.needs {
            let (name, needs, has) = (facts.name, facts.needs.name(), principal.scope.name());
            let why = format!("{name} needs a token of scope {needs}, and this token has scope {has}");
            return Err(ActionError::Denied { why });
        }
        if let Action::Execute(execute) = &action {
            check_command(&execute.command).map_err(|problem| ActionError::Invalid { field: "command", problem })?;
        }
        let wait = principal.approval_wait.as_ref();
        let (target, judged) = loop {
            let target = Target::of(&self.services, principal, action).await?;
            let judged = match &target {
                Some(target) => sessions::judged(&self.services, principal, action, target).await?,
                None => None,
            };
            let pending = judged.as_ref().and_then(Judged::waits_for);
            let Some((id, wait)) = pending.zip(wait.filter(|wait| !wait.is_over())) else { break (target, judged) };
            let waited = Box::pin(self.decided(principal, id, wait)).await?;
            if let Action::Execute(Execute { wait: Some(wait), .. }) | Action::Input(Input { wait: Some(wait), .. }) =
                action
            {
                wait.waited += waited;
            }
            // The approval, the policy and the session may be others by now.
        };
        if let Some(judged) = &judged {
            entry.judged(judged.verdict(), judged.rule(), judged.approval());
            if let Some(refusal) = judged.refusal() {
                return Err(refusal);
            }
        }
        entry.begin().await?;
        let approval = match judged {
            Some(judged) => judged.admit(action).await?,
            None => None,
        };
        Ok((target, approval))
    }

    /// Waits in this request for a person's decision; nothing else does, so whatever ends the request ends the wait. Returns
    /// how much of its timeout it took.
    async fn decided(&self, principal: &Principal, id: &str, wait: &ApprovalWait) -> Result<Duration, ActionError> {
        let approvals = &self.services.approvals;
        tokio::select! {
            biased;
            () = principal.shut_out() => Err(ActionError::ShutOut),
            () = self.services.sessions.stopping() => Err(ActionError::Restarting),
            waited = wait.until(id, approvals.decided(id)) => Ok(waited.unwrap_or_default()),
        }
    }

    async fn perform(
        &self,
        principal: &Principal,
        action: Action,
        target: Option<Target>,
    ) -> Result<Outcome, ActionError> {
        match action {
            Action::Composite(composite) => {
                let (soft_timeout, time_limits) = (self.services.settings.soft_timeout, &self.time_limits);
                let caller = Caller { dispatch: self, principal, soft_timeout, time_limits };
                Box::pin(expand(caller, composite)).await
            }
            primitive => {
                self.recorder.begins(principal, &primitive);
                sessions::perform(&self.services, principal, &primitive, target).await
            }
        }
    }

    /// The caller's share for patterns, in which the protocols compile those of its requests.
    pub fn patterns(&self, principal: &Principal) -> Arc<PatternShare> {
        self.services.server_events.patterns_of(&principal.name)
    }

    /// The caller's lane, in which the protocols do long work on its requests and answers.
    pub fn lane(&self, principal: &Principal) -> Arc<Lane> {
        self.services.server_events.lanes.of(&principal.name)
    }

    /// The lanes of all callers, for the bodies of their requests.
    pub fn lanes(&self) -> Arc<Lanes> {
        Arc::clone(&self.services.server_events.lanes)
    }

    /// The number of this server in the ids.
    pub fn node(&self) -> u16 {
        self.services.settings.node
    }

    /// The tickets, for the authentication layer.
    pub fn tickets(&self) -> Arc<Tickets> {
        Arc::clone(&self.services.tickets)
    }

    /// The named tokens, for the authentication layer.
    pub fn tokens(&self) -> Arc<Tokens> {
        Arc::clone(&self.services.tokens)
    }

    /// Looks for tokens that other nodes have made, for the authentication layer.
    pub fn new_tokens(&self) -> NewTokens {
        NewTokens::new(Arc::clone(&self.services))
    }

    /// The processes at the Unix socket, for the authentication layer.
    pub fn unix_peers(&self) -> UnixPeers {
        UnixPeers::new(Arc::clone(&self.services.backends))
    }

    /// The metrics.
    pub fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.services.server_events.metrics)
    }

    /// The audit log.
    pub fn audit(&self) -> Arc<AuditLog> {
        Arc::clone(&self.services.server_events.audit)
    }

    /// The number of requests that wait for a person.
    pub fn waiting_approvals(&self) -> usize {
        self.services.approvals.waiting()
    }

    /// The number of sessions by state.
    pub async fn counts(&self) -> Vec<(&'static str, usize)> {
        sessions::counts(&self.services).await
    }

    /// The reason why the server is degraded, if it is.
    pub fn trouble(&self) -> Option<String> {
        sessions::trouble(&self.services).or_else(|| self.services.server_events.audit.trouble())
    }

    /// The free disk space in bytes.
    pub async fn free_bytes(&self) -> Option<u64> {
        let services = Arc::clone(&self.services);
        tokio::task::spawn_blocking(move || sessions::room(&services)).await.ok()?.map(|(free, _)| free)
    }

    /// Whether the server is stopping and refuses requests.
    pub fn is_stopping(&self) -> bool {
        self.services.sessions.is_stopping()
    }

    /// Waits until the server stops.
    pub fn stopping(&self) -> impl Future<Output = ()> + Send + use<> {
        self.services.sessions.stopping()
    }

    /// A stdio client disconnected: its sessions end after their grace period.
    pub fn client_gone(&self, client: &str, grace: Detach) {
        self.services.clients.disconnected(client, grace);
    }

    /// A stdio client has connected: its sessions continue.
    pub fn client_here(&self, client: &str) {
        self.services.clients.connected(client);
    }

    /// A client that was connected to an earlier server has the output of these sessions up to these positions.
    pub async fn resume_reading(&self, principal: &Principal, read_to: &BTreeMap<SessionId, u64>) {
        for (id, read_to) in read_to {
            sessions::resume_reading(&self.services, principal, id, *read_to).await;
        }
    }

    /// Gives memory back to the kernel after busy moments, for as long as it is polled. It keeps nothing of the services: a server that
    /// ends closes its store.
    pub fn give_back_memory(&self) -> impl Future<Output = ()> + Send + use<> {
        let memory = Arc::clone(&self.services.server_events.memory);
        async move { memory.give_back().await }
    }

    /// Ends the sessions of stdio clients whose grace period is over, until the server stops.
    pub async fn end_sessions_of_gone_clients(self) {
        let mut stopping = std::pin::pin!(self.stopping());
        loop {
            let sessions = tokio::select! {
                biased;
                () = &mut stopping => return,
                sessions = sessions::sessions_of_gone_client(&self.services) => sessions,
            };
            let dispatcher = self.clone();
            tokio::spawn(async move {
                for (session, owner) in sessions {
                    tracing::info!(%session, "its client has gone");
                    let terminate = Terminate { session, force: false, signo: None, grace: None, purges: false };
                    // A session that does not end now was ended before, or its holder keeps it.
                    let _ = dispatcher.dispatch(&owner, Action::Terminate(terminate)).await;
                }
            });
        }
    }
}

impl Dispatch for Dispatcher {
    fn dispatch<'a>(&'a self, principal: &'a Principal, action: Action) -> Boxed<'a, Result<Outcome, ActionError>> {
        Box::pin(self.dispatch(principal, action))
    }

    fn patterns(&self, principal: &Principal) -> Arc<PatternShare> {
        self.patterns(principal)
    }

    fn detached(&self) -> Arc<dyn Dispatch> {
        Arc::new(self.clone())
    }
}
