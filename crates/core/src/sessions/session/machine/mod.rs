//! One live session as a machine of steps. `session.rs` has its parts, and the entrance (a time and one input in, effects
//! out). Each other module is one subject. A part does not know the session: its steps take the other parts that they need, and the
//! state that all share (`context.rs`).

mod command_request;
pub(super) mod context;
pub(super) mod drawing;
mod errors;
pub(super) mod expiry;
pub(super) mod foreground;
mod holder_events;
pub(super) mod holder_link;
mod input_request;
pub(super) mod journal_follower;
pub(super) mod limit_enforcement;
mod lost_hooks;
pub(super) mod nested_command;
pub(super) mod pending_commands;
mod requests;
mod rivals;
pub(super) mod secret_prompt;
pub(super) mod session;
mod signal_request;
pub(super) mod snapshot;
pub(super) mod stopped_jobs;
pub(super) mod take_over;
pub(super) mod waits;
