//! Who asks, and whether they may: credentials to a principal, and the layer around every route that checks them.

pub(crate) mod middleware;
pub(crate) mod named_tokens;
pub mod principal;
pub(crate) mod rate_limit;
pub(crate) mod server_token;
pub(crate) mod tickets;
