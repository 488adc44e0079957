//! Named tokens, and tickets for browsers.

use std::fmt;
use std::time::{Duration, SystemTime};

use crate::principal::Scope;
use crate::token_bounds::TokenBounds;

/// A request for a named token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MakeToken {
    /// Its name, which is the owner of sessions started with it.
    pub name: String,
    /// Its scope.
    pub scope: Scope,
    /// Its lifetime; without one it is valid until it is revoked.
    pub lifetime: Option<Duration>,
    /// The bounds of its requests and its sessions.
    pub bounds: TokenBounds,
}

/// A named token, without the token itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenView {
    /// Its name, which is the owner of sessions started with it.
    pub name: String,
    /// Its scope.
    pub scope: Scope,
    /// When it was made.
    pub created_at: SystemTime,
    /// When it expires, if ever.
    pub expires_at: Option<SystemTime>,
    /// The named token at the head of its chain of makers; none where the user has made it.
    pub first_maker: Option<String>,
    /// The bounds of its requests and its sessions.
    pub bounds: TokenBounds,
}

/// A new token; it is shown only this once.
#[derive(Clone)]
pub struct FreshToken {
    /// The token.
    pub token: String,
    /// The token's later view.
    pub view: TokenView,
    /// Live sessions of its name that it cannot use, because they are outside its bounds.
    pub sessions_out_of_bounds: usize,
}

/// A token is a secret and must not be logged.
impl fmt::Debug for FreshToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FreshToken({:?})", self.view)
    }
}

/// A new ticket.
#[derive(Clone)]
pub struct TicketView {
    /// The ticket; it is shown only this once.
    pub ticket: String,
    /// Its lifetime.
    pub lifetime: Duration,
}

/// A ticket is a secret and must not be logged.
impl fmt::Debug for TicketView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TicketView(…)")
    }
}
