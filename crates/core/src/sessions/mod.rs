//! Sessions: the live ones with their actors, the ended ones, and the actions on them.
//!
//! `registry.rs` knows all sessions and performs primitive actions; `execute.rs`, `input.rs`, `wait.rs`, `output.rs` and
//! `default_session.rs` are some of them. `session/` is one live session, `ended_session.rs` reads an ended one; both feed a
//! `timeline/`. `render/` makes text, screens, search results and recordings of output.

mod adoption;
mod adoption_state;
mod backends;
mod cgroup_plan;
mod client_sessions;
mod clients;
mod commands;
mod create;
mod create_keys;
mod default_session;
mod disk_space;
mod ended_session;
mod ended_sessions;
mod environment;
mod event_log;
mod execute;
mod external_conditions;
mod history;
mod idempotency;
mod input;
mod launch;
mod launch_resources;
mod listing;
mod name_locks;
mod nested_line;
mod output;
mod permits;
mod processes;
mod purge;
mod quota;
mod read_cursor;
mod registry;
mod render;
mod replay_order;
mod report;
mod resize;
mod retention;
mod session;
mod session_metadata;
mod shared;
mod signals;
mod store_rebuild;
mod supervision;
#[cfg(test)]
mod tests;
mod timeline;
mod unreachable;
mod unreachable_requests;
mod unrecorded_end;
mod views;
mod wait;
mod watch;
mod whole_journal_jobs;

pub use crate::host::holders::{holder_is_static, splice_works};
pub use registry::Registry;
