//! The server: actions, sessions, and the doors through which they are asked for.
//!
//! No `unsafe`, and it never writes a journal: a session's holder does. `rest/` and `mcp/` parse and render; `action`
//! is what they talk; `dispatch` is the one road; `sessions/` owns the state.

pub mod action;
mod aside;
mod bodies;
pub mod config;
pub mod config_file;
mod connections;
mod cut;
pub mod dispatch;
mod guard;
mod happenings;
pub mod identity;
pub mod ids;
pub mod keys;
pub mod limits;
pub mod listen;
pub mod mcp;
mod metrics;
mod premises;
pub mod profile;
mod rates;
mod reading;
pub mod rest;
pub mod sessions;
mod shares;
mod shell;
mod stdio;
mod store;
mod tickets;
mod token;
mod tokens;
mod unread;
mod viewing;
pub mod ws;

pub use config::Config;
pub use holder::splice_works;
pub use listen::serve;
pub use premises::check_private;
pub use sessions::holder_is_static;
