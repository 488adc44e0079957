//! The MCP handler's interface to the rest of the server: the dispatcher, and notice of clients that connect and
//! disconnect.
//!
//! A trait, so that tests can run the handler without a shell; [`Dispatcher`] is the only real implementation.

use std::pin::Pin;
use std::sync::Arc;

use crate::action::{Action, ActionError, Outcome, PatternShare};
use crate::auth::principal::{Detach, Principal};
use crate::dispatch::Dispatcher;

/// A future that fits the table of tools.
pub(super) type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Performs actions.
pub(super) trait Dispatch: Send + Sync + 'static {
    /// Performs one action; dropping the future ends the wait and nothing else.
    fn dispatch<'a>(&'a self, principal: &'a Principal, action: Action) -> Boxed<'a, Result<Outcome, ActionError>>;
    /// The caller's share for patterns.
    fn patterns(&self, principal: &Principal) -> Arc<PatternShare>;
    /// Whether the server is stopping: its connections end soon, and the next server starts soon.
    fn is_stopping(&self) -> bool;
    /// Waits until the server stops.
    fn stopping(&self) -> Boxed<'static, ()>;
    /// A stdio client has connected.
    fn client_here(&self, client: &str);
    /// A stdio client has disconnected.
    fn client_gone(&self, client: &str, grace: Detach);
}

impl Dispatch for Dispatcher {
    fn dispatch<'a>(&'a self, principal: &'a Principal, action: Action) -> Boxed<'a, Result<Outcome, ActionError>> {
        Box::pin(self.dispatch(principal, action))
    }

    fn patterns(&self, principal: &Principal) -> Arc<PatternShare> {
        self.patterns(principal)
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping()
    }

    fn stopping(&self) -> Boxed<'static, ()> {
        Box::pin(self.stopping())
    }

    fn client_here(&self, client: &str) {
        self.client_here(client);
    }

    fn client_gone(&self, client: &str, grace: Detach) {
        self.client_gone(client, grace);
    }
}
