//! Authentication: maps credentials to a principal, and the layer that checks them on every route.

pub(crate) mod middleware;
pub(crate) mod named_tokens;
pub(crate) mod rate_limit;
pub(crate) mod server_token;
pub(crate) mod tickets;
