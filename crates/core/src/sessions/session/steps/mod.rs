//! The steps of a live session: `step.rs` is the entrance, and each other file has the methods of one subject.

mod effects;
mod errors;
mod exit;
mod expiry;
mod foreground;
mod holder_events;
mod input;
mod journal_follower;
mod limit_enforcement;
mod lost_hooks;
mod nested_command;
mod requests;
mod run_command;
mod signals;
mod snapshot;
mod step;
mod typed_commands;
mod waits;
