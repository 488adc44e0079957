//! Credentials, and the principals that they stand for. Every request is checked in `serve/authentication.rs`.

pub(crate) mod named_tokens;
pub(crate) mod server_token;
pub(crate) mod tickets;
