//! The way by which actions are requested, without their implementation.
//!
//! A trait, so that the protocols and the composite actions know no session, and tests can answer from a script.

use std::pin::Pin;
use std::sync::Arc;

use super::{Action, ActionError, Outcome, PatternShare};
use crate::principal::Principal;

/// A future that an object-safe trait can return.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Performs actions.
pub trait Dispatch: Send + Sync {
    /// Performs one action; dropping the future ends the wait and nothing else.
    fn dispatch<'a>(&'a self, principal: &'a Principal, action: Action) -> Boxed<'a, Result<Outcome, ActionError>>;
    /// The caller's share for patterns.
    fn patterns(&self, principal: &Principal) -> Arc<PatternShare>;
    /// A handle that outlives the request.
    fn detached(&self) -> Arc<dyn Dispatch>;
}
