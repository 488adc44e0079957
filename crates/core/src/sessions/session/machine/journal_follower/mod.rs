//! The session's files, followed up to the tail that its holder publishes.

pub(super) mod state;
mod steps;
