//! The server: the protocols over which clients reach the sessions of `ptyd_core`.
//!
//! `rest/`, `mcp/` and `ws/` parse requests into actions and render their outcomes, `http/` is common to them,
//! `page/` and `secret_page/` are for people, and `serve/` puts all together.

mod http;
pub mod mcp;
mod page;
pub mod rest;
mod secret_page;
mod serve;
pub mod traces;
pub mod ws;

pub use serve::{Listening, Sockets, Stage, serve};
