//! The state of a live session: `session.rs` has all of it, and each part is a file of its own, which does not know the session.

pub(super) mod expiry;
pub(super) mod foreground;
pub(super) mod holder_link;
pub(super) mod journal_follower;
pub(super) mod limit_enforcement;
pub(super) mod nested_command;
pub(super) mod pending_commands;
pub(super) mod session;
pub(super) mod stopped_jobs;
pub(super) mod waits;
