//! What this door needs of the rest: the one road, and word of who comes and goes.
//!
//! A trait, so that the door can be driven in tests without a shell behind it; [`Dispatcher`] is the only real one.

use std::pin::Pin;

use crate::action::{Action, ActionError, Outcome};
use crate::auth::principal::{Detach, Principal};
use crate::dispatch::Dispatcher;

/// A future that can be put in a table of tools.
pub(super) type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Where actions go.
pub(super) trait Dispatch: Send + Sync + 'static {
    /// Does one action; dropping the future ends the wait and nothing else.
    fn dispatch<'a>(&'a self, principal: &'a Principal, action: Action) -> Boxed<'a, Result<Outcome, ActionError>>;
    /// The server stops: its connections end in a moment, and the next one is there soon.
    fn is_stopping(&self) -> bool;
    /// Waits until it does.
    fn stopping(&self) -> Boxed<'static, ()>;
    /// A stdio client is there (again).
    fn client_here(&self, client: &str);
    /// A stdio client has gone.
    fn client_gone(&self, client: &str, grace: Detach);
}

impl Dispatch for Dispatcher {
    fn dispatch<'a>(&'a self, principal: &'a Principal, action: Action) -> Boxed<'a, Result<Outcome, ActionError>> {
        Box::pin(self.dispatch(principal, action))
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
