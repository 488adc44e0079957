//! The routes of the other protocols at the same address, described here so that one document has everything.
//!
//! `/mcp/stdio` is left out: it is part of `ptyd mcp`, and only on the Unix socket.

use api::ErrorCode;
use axum::http::Method;
use serde_json::{Map, Value, json};

use crate::rest::operation::{Content, Operation, Tag};

pub(super) fn operations() -> [(Method, &'static str, Operation); 7] {
    let say = |id, summary| Operation::new(id, Tag::Server, summary);
    [
        (
            Method::GET,
            "/terminals/{session}/socket",
            Operation::new("openSocket", Tag::Output, "Show a session live")
                .details(
                    "A WebSocket. Without a sub-protocol it speaks JSON texts (`input`, `output`, `status`); with `ptyd.v1`, \
                     binary frames carry bytes with their offsets, and text frames carry events and the viewer's requests. \
                     docs/websocket.md describes both. A client that cannot send headers gives its token or ticket in the \
                     first message. If the session does not exist, the server closes with 4404.",
                )
                .query::<api::SocketQuery>()
                .empty(101, "The connection is now a WebSocket.")
                .refuses(&[ErrorCode::UpgradeRequired]),
        ),
        (
            Method::POST,
            "/mcp",
            say("postMcp", "Speak MCP")
                .details(
                    "Streamable HTTP of the Model Context Protocol, whose own specification describes the messages \
                     and refusals. A client that initializes with a revision before 2026-07-28 gets an MCP session.",
                )
                .body::<Map<String, Value>>(json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }))
                .needed()
                .json::<Map<String, Value>>(200, "The answer to a message.")
                .or("text/event-stream", Content::Text)
                .foreign()
                .empty(202, "The message was not a request, and has no answer.")
                .json::<Map<String, Value>>(400, "Refused with a JSON-RPC error; -32700 means that the body is not JSON.")
                .empty(404, "The MCP session that it names is unknown or has ended; initialize again.")
                .empty(406, "`Accept` must name application/json and text/event-stream.")
                .empty(413, "The message is too large.")
                .empty(415, "`Content-Type` is not application/json."),
        ),
        (
            Method::GET,
            "/mcp",
            say("getMcp", "Follow an MCP session")
                .details("The notifications for a client of a revision before 2026-07-28. The stream ends with the \
                    MCP session or the server.")
                .of_mcp()
                .text(200, "A message in each event.", "text/event-stream")
                .empty(404, "The MCP session is unknown or has ended; initialize again.")
                .empty(405, "The request names no MCP session.")
                .empty(406, "`Accept` must name text/event-stream."),
        ),
        (
            Method::DELETE,
            "/mcp",
            say("deleteMcp", "End an MCP session")
                .details("Terminals continue.")
                .of_mcp()
                .empty(204, "It has ended.")
                .empty(404, "The MCP session is unknown or has ended.")
                .empty(405, "The request names no MCP session."),
        ),
        (
            Method::GET,
            "/metrics",
            say("getMetrics", "Counters for an operator")
                .details("No label names a session, an owner or a command.")
                .text(200, "The text that Prometheus reads.", "application/openmetrics-text; version=1.0.0; charset=utf-8"),
        ),
        (Method::GET, "/livez", say("getLivez", "Check whether the server runs").text(200, "It runs.", PLAIN).open()),
        (
            Method::GET,
            "/readyz",
            say("getReadyz", "Check whether the server is ready")
                .details("The server is not ready while it drains, a session waits for disk space, or the history is being rebuilt.")
                .text(200, "It is ready.", PLAIN)
                .text(503, "The reason why it is not ready; other requests are still answered.", PLAIN)
                .open(),
        ),
    ]
}

const PLAIN: &str = "text/plain; charset=utf-8";
