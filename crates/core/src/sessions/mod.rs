//! Sessions: the live ones with their actors, the ended ones, and the actions on them.
//!
//! `services.rs` names the parts of a server, `known_sessions.rs` finds sessions, and `perform.rs` gives each primitive
//! action to its function in `actions/`. `launch/` starts a session, `adoption/` gives it an actor, `session/` is one live
//! session, and `ended/` reads and removes the ended ones. Live and ended sessions feed a `timeline/`, from which `render/`
//! makes text, screens, search results and recordings. `approvals/` asks policies and persons. `tasks/` has the records of
//! waits that outlive their requests.

mod actions;
mod adoption;
mod approvals;
mod backends;
mod client_sessions;
mod clients;
mod concurrency_limits;
mod create_keys;
mod drain;
mod ended;
mod handle;
mod health;
mod history;
mod known_sessions;
mod launch;
mod lifecycle;
mod live_sessions;
mod name_locks;
mod names;
mod node_directory;
mod node_records;
mod on_disk;
mod perform;
mod processes;
mod read_cursor;
mod redaction;
mod render;
mod replay_order;
mod request_fingerprint;
mod resource_limits;
mod secret_requests;
mod server_events;
mod services;
mod session;
mod session_metadata;
mod session_views;
mod shared;
mod shared_tokens;
mod silent_listener;
mod summary;
mod taint;
mod target;
mod tasks;
#[cfg(test)]
mod tests;
mod timeline;
mod toolchains;
mod unix_peers;
mod unreachable;
mod viewer_cursor;
mod viewer_feed;
mod viewers;
mod views;
mod wait_external_conditions;

pub use crate::host::capacity::{KernelLimit, connections_max, kernel_limits};
pub use crate::host::confinement_hindrance;
pub use crate::host::holder_is_static;
pub use crate::host::holders::splice_works;
pub(crate) use actions::wait_from_cursor::resume_reading;
pub(crate) use approvals::gate::{Judged, judged};
pub(crate) use approvals::pending::ApprovalClaim;
pub(crate) use client_sessions::sessions_of_gone_client;
pub use ended::retention::start_retention;
pub use ended::store_rebuild::keep_whole;
pub(crate) use health::{counts, room, trouble};
pub use launch::start::keep_spare_holder;
pub use lifecycle::{start, stop};
pub use node_records::{NewTokens, keep_directory};
pub(crate) use perform::perform;
pub use services::Services;
pub(crate) use target::Target;
pub use unix_peers::UnixPeers;
