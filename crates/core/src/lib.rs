//! Actions, the dispatcher, sessions, shells and the store: everything of the server except its protocols.
//!
//! No `unsafe`, and no writing of journals: a session's holder does that. `action` is the interface between protocols and
//! sessions; `dispatch` is the only way in; `composites/` expands composite actions into primitive ones; `sessions/` owns the
//! state. No protocol is named here: HTTP, WebSocket and MCP are in the crate `server`.

pub mod action;
pub mod agent_defaults;
pub mod approval_wait;
pub mod audit;
pub mod block_in_place;
mod composites;
pub mod config;
pub mod config_file;
pub mod confinement_tier;
pub mod credentials;
pub mod delivery;
pub mod dispatch;
mod host;
pub mod ids;
pub mod instance_lock;
pub mod keys;
pub mod lane;
pub mod limits;
pub mod low_priority;
mod machine_pause;
mod memory;
pub mod metrics;
mod mutex;
pub mod per_principal;
pub mod policy_file;
pub mod principal;
pub mod profile;
pub mod serve_error;
pub mod sessions;
mod shell;
pub mod state_dir;
mod store;
pub mod syslog_address;
pub mod token_bounds;
pub mod traces;
pub mod unix_socket;
pub mod unix_stream;
pub mod web_origin;
