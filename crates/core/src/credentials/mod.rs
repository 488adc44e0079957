//! Credentials, and the principals that they stand for. Every request is checked in `serve/authentication`.

pub mod named_secrets;
pub mod named_tokens;
pub mod peer_users;
pub(crate) mod secret_masks;
pub mod server_token;
pub mod tickets;
