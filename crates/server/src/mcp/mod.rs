//! The MCP door: eight tools and the transcripts as resources, over the stream of a stdio client and over HTTP.
//!
//! It parses into actions and renders outcomes; it owns no session and remembers only what it has said. Both eras of the
//! protocol are rmcp's; a terminal session is an explicit handle and never the protocol's session.

#[cfg(test)]
mod conformance;
mod conversations;
#[cfg(test)]
mod conversing;
mod dialogue;
mod door;
mod found;
mod hello;
mod host;
mod http;
mod kept;
mod log;
mod progress;
mod resources;
#[cfg(test)]
mod rig;
mod road;
mod schema;
mod shown;
mod stdio;
mod subscriptions;
#[cfg(test)]
mod tests;
mod text;
mod tools;

pub use door::{Door, tools_schema};
pub use hello::ToolSet;
pub(crate) use http::router as http_router;
pub use stdio::serve_stdio;
