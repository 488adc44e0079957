//! The MCP protocol: eight tools, and transcripts as resources, over the stream of a stdio client and over HTTP.
//!
//! It parses requests into actions and renders outcomes; it owns no session and keeps only what it has reported. Both
//! eras of the protocol are rmcp's; a terminal session is an explicit handle and never an MCP session.

mod approval_tasks;
mod caller;
mod command_turns;
#[cfg(test)]
mod conformance;
mod deliveries;
mod dispatch_port;
mod handler;
mod handshake;
mod host;
mod http;
mod http_session_store;
mod http_sessions;
#[cfg(test)]
mod http_sessions_tests;
mod log_notifications;
mod password_place;
mod progress;
mod reported_state;
mod resources;
mod schema;
mod search_results;
mod stdio;
pub(crate) mod stdio_upgrade;
mod subscriptions;
#[cfg(test)]
mod task_fixtures;
mod tasks;
#[cfg(test)]
mod test_support;
#[cfg(test)]
mod tests;
mod text;
mod tool_call_lines;
mod tool_calls;
mod tool_definitions;
mod url_elicitation;

pub use handler::{Handler, discovery, structured_tools_schema, tools_schema};
pub use handshake::ToolSet;
pub(crate) use http::{PATH as HTTP_PATH, router as http_router};
pub use stdio::serve_stdio;
