//! `GET /mcp/stdio`: the raw MCP stream of `ptyd mcp`, over the Unix socket only.
//!
//! The connection asks for the protocol `ptyd-mcp`; after the 101 it carries no HTTP any more but the lines that the
//! client wrote to the shim's standard input.

use std::sync::Arc;

use api::ErrorCode;
use axum::Router;
use axum::extract::{ConnectInfo, Extension, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper_util::rt::TokioIo;

use crate::http::connections::Transport;
use crate::http::problem::ProblemResponse;
use ptyd_core::dispatch::Dispatcher;
use ptyd_core::principal::Principal;

/// The route.
pub(crate) const PATH: &str = "/mcp/stdio";
/// The protocol after the upgrade.
pub(crate) const PROTOCOL: &str = "ptyd-mcp";

/// The route at the server with this `host:port`.
pub(crate) fn router(dispatcher: Dispatcher, base_url: &str) -> Router {
    Router::new().route(PATH, get(upgrade)).with_state((dispatcher, base_url.into()))
}

async fn upgrade(
    State((dispatcher, base_url)): State<(Dispatcher, Arc<str>)>,
    Extension(principal): Extension<Principal>,
    ConnectInfo(transport): ConnectInfo<Transport>,
    request: Request,
) -> Result<Response, ProblemResponse> {
    if matches!(transport, Transport::Tcp { .. }) {
        let help = "this route is for the Unix socket; start `ptyd mcp`, which uses it";
        return Err(ProblemResponse::new(ErrorCode::Forbidden, help));
    }
    if !asks_for(request.headers()) {
        let help = format!("send `Connection: upgrade` and `Upgrade: {PROTOCOL}`; `ptyd mcp` does");
        return Err(ProblemResponse::new(ErrorCode::UpgradeRequired, help));
    }
    let upgraded = hyper::upgrade::on(request);
    tokio::spawn(async move {
        match upgraded.await {
            Ok(stream) => {
                crate::mcp::serve_stdio(TokioIo::new(stream), dispatcher, principal, &base_url).await;
                tracing::debug!("a stdio client has gone");
            }
            Err(error) => tracing::debug!(%error, "a stdio client did not upgrade"),
        }
    });
    let mut response = StatusCode::SWITCHING_PROTOCOLS.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static(PROTOCOL));
    Ok(response)
}

/// Whether the connection asks for our protocol (RFC 9110 §7.8; names are case-insensitive).
fn asks_for(headers: &HeaderMap) -> bool {
    let lists = |name, word: &str| {
        headers
            .get(name)
            .and_then(|v| v.to_str().ok())
            .is_some_and(|v| v.split(',').any(|p| p.trim().eq_ignore_ascii_case(word)))
    };
    lists(header::CONNECTION, "upgrade") && lists(header::UPGRADE, PROTOCOL)
}
