//! The dispatcher, through which every request passes: it checks the scope, performs the action, and logs the result.
//!
//! Dropping the future of [`Dispatcher::dispatch`] cancels the *wait*, never the program.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::action::{Action, ActionError, Outcome, PatternShare};
use crate::auth::named_tokens::Tokens;
use crate::auth::principal::Principal;
use crate::auth::tickets::Tickets;
use crate::metrics::Metrics;
use crate::sessions::Registry;

/// The dispatcher: a cheap handle that the protocols hold.
#[derive(Debug, Clone)]
pub struct Dispatcher {
    registry: Arc<Registry>,
    /// Calls that take longer are logged, unless the caller asked to wait.
    slow: Duration,
}

impl Dispatcher {
    /// A dispatcher to this registry's sessions.
    pub fn new(registry: Arc<Registry>) -> Self {
        let slow = registry.slow_call;
        Self { registry, slow }
    }

    /// Performs one action for one caller.
    pub async fn dispatch(&self, principal: &Principal, action: Action) -> Result<Outcome, ActionError> {
        let (name, needs, waits) = (name(&action), action.needs(), action.waits());
        let begun = Instant::now();
        let result = if principal.scope < needs {
            let why =
                format!("{name} needs a token of scope {}, and this one's is {}", needs.name(), principal.scope.name());
            Err(ActionError::Denied { why })
        } else if principal.pass.is_some() {
            // A wait ends at the moment its caller's token is revoked.
            tokio::select! {
                biased;
                () = principal.shut_out() => Err(ActionError::ShutOut),
                result = self.registry.act(principal, &action) => result,
            }
        } else {
            self.registry.act(principal, &action).await
        };
        let took = begun.elapsed();
        let ms = took.as_millis();
        if took >= self.slow && !waits {
            // The log line's span has the request's id.
            tracing::warn!(action = name, principal = %principal.name, ms, "slow");
        }
        match &result {
            Ok(_) => tracing::debug!(action = name, principal = %principal.name, ms, "done"),
            Err(e) => tracing::info!(action = name, principal = %principal.name, ms, error = %e, "not done"),
        }
        result
    }

    /// The caller's share for patterns, in which the protocols compile those of its requests.
    pub(crate) fn patterns(&self, principal: &Principal) -> Arc<PatternShare> {
        self.registry.event_log.patterns.of(&principal.name, PatternShare::default)
    }

    /// The tickets, for the authentication layer.
    pub(crate) fn tickets(&self) -> Arc<Tickets> {
        Arc::clone(&self.registry.tickets)
    }

    /// The named tokens, for the authentication layer.
    pub(crate) fn tokens(&self) -> Arc<Tokens> {
        Arc::clone(&self.registry.tokens)
    }

    /// The metrics.
    pub(crate) fn metrics(&self) -> Arc<Metrics> {
        self.registry.metrics()
    }

    /// The number of sessions by state.
    pub(crate) async fn counts(&self) -> Vec<(&'static str, usize)> {
        self.registry.counts().await
    }

    /// The reason why the server is degraded, if it is.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.registry.trouble()
    }

    /// The free disk space in bytes.
    pub(crate) async fn free_bytes(&self) -> Option<u64> {
        let registry = Arc::clone(&self.registry);
        tokio::task::spawn_blocking(move || registry.room()).await.ok()?.map(|(free, _)| free)
    }

    /// Whether the server is stopping and refuses requests.
    pub fn is_stopping(&self) -> bool {
        self.registry.is_stopping()
    }

    /// Waits until the server stops.
    pub(crate) fn stopping(&self) -> impl Future<Output = ()> + Send + use<> {
        self.registry.stopping()
    }

    /// A stdio client disconnected: its sessions end after their grace period.
    pub fn client_gone(&self, client: &str, grace: crate::auth::principal::Detach) {
        self.registry.client_gone(client, grace);
    }

    /// A stdio client has connected: its sessions continue.
    pub fn client_here(&self, client: &str) {
        self.registry.client_here(client);
    }
}

fn name(action: &Action) -> &'static str {
    match action {
        Action::Create(_) => "create",
        Action::List(_) => "list",
        Action::Show(_) => "show",
        Action::Terminate(_) => "terminate",
        Action::Resize { .. } => "resize",
        Action::Execute(_) => "execute",
        Action::Commands { .. } => "commands",
        Action::Command { .. } => "command",
        Action::Input(_) => "input",
        Action::Type { .. } => "type",
        Action::Watch { .. } => "watch",
        Action::Ticket { .. } => "ticket",
        Action::Signal { .. } => "signal",
        Action::NamedAction { .. } => "react",
        Action::Processes(_) => "processes",
        Action::Environment(_) => "environment",
        Action::Signals(_) => "signals",
        Action::Wait { .. } => "wait",
        Action::Output(_) => "output",
        Action::Search(_) => "search",
        Action::Recording(..) => "recording",
        Action::Screen(_) => "screen",
        Action::Terminal(_) => "terminal",
        Action::Events(_) => "events",
        Action::Tokens => "tokens",
        Action::MakeToken { .. } => "make token",
        Action::RevokeToken { .. } => "revoke token",
    }
}
