//! Sessions: the live ones with their actors, the ended ones, and the actions on them.
//!
//! `registry.rs` knows all sessions, and `actions/` has its methods that perform the primitive actions for their callers.
//! `session/` is one live session, `ended_session.rs` reads an ended one; both feed a `timeline/`. `render/` makes text,
//! screens, search results and recordings of output.

mod actions;
mod adoption;
mod adoption_state;
mod approval_decision;
mod approvals;
mod backends;
mod client_sessions;
mod clients;
mod create_keys;
mod disk_space;
mod ended_session;
mod ended_sessions;
mod handle;
mod history;
mod launch;
mod launch_resources;
mod live_sessions;
mod name_locks;
mod permits;
mod person;
mod person_requests;
mod policy_gate;
mod processes;
mod quota;
mod read_cursor;
mod registry;
mod removed_tasks;
mod render;
mod replay_order;
mod resource_limits;
mod retention;
mod secret_requests;
mod server_events;
mod session;
mod session_metadata;
mod shared;
mod store_rebuild;
mod summary;
mod supervision;
mod taint;
mod tasks;
#[cfg(test)]
mod tests;
mod timeline;
mod toolchains;
mod unix_peers;
mod unreachable;
mod unreachable_requests;
mod unrecorded_end;
mod views;

pub use crate::host::capacity::{KernelLimit, kernel_limits};
pub use crate::host::confinement_hindrance;
pub use crate::host::holder_is_static;
pub use crate::host::holders::splice_works;
pub(crate) use approvals::ApprovalUse;
pub(crate) use policy_gate::Judged;
pub use registry::Registry;
pub use unix_peers::UnixPeers;
