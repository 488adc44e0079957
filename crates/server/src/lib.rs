//! The server: actions, sessions, and the protocols over which clients reach them.
//!
//! No `unsafe`, and no writing of journals: a session's holder does that. `rest/`, `mcp/` and `ws/` parse and render;
//! `action` is the interface between them and the sessions; `dispatch` is the only way in; `service/` expands composite
//! actions into primitive ones; `sessions/` owns the state; `serve/` puts all together.

pub mod action;
mod auth;
mod block_in_place;
pub mod config;
pub mod config_file;
pub mod dispatch;
mod http;
pub mod ids;
pub mod keys;
pub mod limits;
pub mod mcp;
mod metrics;
mod per_principal;
pub mod principal;
pub mod profile;
pub mod rest;
mod serve;
mod serve_error;
mod service;
pub mod sessions;
mod shell;
mod state_dir;
mod store;
pub mod ws;

pub use config::Config;
pub use serve::{Listening, serve};
pub use serve_error::ServeError;
pub use sessions::{holder_is_static, splice_works};
pub use state_dir::check_private;
