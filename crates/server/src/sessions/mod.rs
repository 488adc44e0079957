//! Sessions: their manager, the actor of each, and how the past ones are read.
//!
//! `adoption.rs` takes on the sessions that are there; `session.rs` owns one live session's state; `timeline.rs` replays the ground state; `launch.rs` starts and finds
//! holders, `holders.rs` knows whether one lives; `manager.rs` keeps the handles; `reports.rs` turns what an actor says into what a caller sees; `feed.rs` is what
//! a viewer is shown; `terminal_tool.rs` is the one-tool shell; `seek.rs` asks `search.rs` for lines of the text.

mod adoption;
mod cgroup_plan;
mod create;
mod disk_space;
mod ended_session;
mod environment;
mod event_log;
mod external_conditions;
mod handover_echo;
mod holder_connection;
mod holder_liveness;
mod holder_process;
mod idempotency;
mod judged_end;
mod listing;
mod name_locks;
mod nested_shell;
mod output_text;
mod permits;
mod processes;
mod purge;
mod quota;
mod read_cursors;
mod recording;
mod registry;
mod replay_order;
mod reports;
mod retention;
mod search;
mod session;
mod session_metadata;
mod store_rebuild;
mod supervision;
mod terminal_tool;
#[cfg(test)]
mod tests;
mod timeline;
mod unreachable;
mod viewer_cursor;
mod views;
mod wait;
mod watch;
mod whole_journal_jobs;

pub use holder_process::holder_is_static;
pub use registry::Registry;
pub use viewer_cursor::ViewerCursor;

/// The variable by which a session's processes are known.
pub(crate) const TAG: &str = "PTYD_SESSION";
/// Commands that were typed into a shell without our hooks, or inside, are numbered from here: the holder does not count
/// them.
pub(crate) const TYPED_IDS_FROM: u32 = 1_000_000;
