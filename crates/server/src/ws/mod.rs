//! The WebSocket protocol: `GET /terminals/{session}/socket`, one task per client.
//!
//! It parses requests into an [`Action`] and renders pieces. A request that cannot become a socket is refused over
//! HTTP; from then on the reason of an end is the code of the close frame ([`close`]), the only one that a page in a
//! browser can see. The bytes of `ptyd.v1` are in [`frame`], the texts of a client without a sub-protocol in [`json`], and
//! docs/websocket.md describes them.
//!
//! [`Action`]: ptyd_core::action::Action

mod close;
mod connection;
mod event;
pub(crate) mod first_message;
mod frame;
mod heartbeat;
mod input_task;
mod json;
mod query;
mod whole_characters;

use api::ErrorCode;
use axum::Router;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::sync::watch;

use crate::http::problem::ProblemResponse;
use close::Code;
use connection::{End, SocketConnection};
use first_message::Client;
use ptyd_core::action::{Action, ActionError, Outcome};
use ptyd_core::dispatch::Dispatcher;
use ptyd_core::limits;
use ptyd_core::principal::Scope;
use query::{Mode, Query};

/// The route.
pub const PATH: &str = "/terminals/{session}/socket";
/// The sub-protocol.
pub const PROTOCOL: &str = "ptyd.v1";

/// Counts the open sockets, so that a stopping server can let them send their close frames.
#[derive(Debug, Clone)]
pub struct SocketCount(watch::Sender<()>);

impl SocketCount {
    /// Without sockets yet.
    pub fn new() -> Self {
        Self(watch::Sender::new(()))
    }

    /// The number of open sockets.
    pub fn count(&self) -> usize {
        self.0.receiver_count()
    }

    /// Waits until every socket is closed.
    pub async fn closed(&self) {
        self.0.closed().await;
    }
}

impl Default for SocketCount {
    fn default() -> Self {
        Self::new()
    }
}

#[derive(Debug, Clone)]
struct SocketState {
    dispatcher: Dispatcher,
    open: watch::Sender<()>,
}

/// Refuses a request that cannot become a socket with a problem document, as on every other route.
fn refuse(code: ErrorCode, detail: &str) -> Response {
    ProblemResponse::new(code, detail).into_response()
}

/// The route as a router.
pub fn router(dispatcher: Dispatcher, visits: &SocketCount) -> Router {
    Router::new().route(PATH, get(enter)).with_state(SocketState { dispatcher, open: visits.0.clone() })
}

async fn enter(
    State(state): State<SocketState>,
    client: Client,
    Path(session): Path<String>,
    uri: Uri,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let Ok(upgrade) = upgrade else {
        return refuse(ErrorCode::UpgradeRequired, "this path is a WebSocket; docs/websocket.md says how to speak");
    };
    let query = match Query::parse(uri.query().unwrap_or_default()) {
        Ok(query) => query,
        Err(problem) => return refuse(ErrorCode::InvalidField, &problem),
    };
    let upgrade = upgrade
        .read_buffer_size(limits::SOCKET_BUFFER_BYTES)
        .write_buffer_size(limits::SOCKET_BUFFER_BYTES)
        .max_message_size(limits::MESSAGE_BYTES_MAX)
        .max_frame_size(limits::MESSAGE_BYTES_MAX)
        .protocols([PROTOCOL]);
    let mode = match upgrade.selected_protocol() {
        _ if query.is_raw => Mode::Raw,
        Some(_) => Mode::Framed,
        // A client that offers others would refuse a connection without one.
        None if headers.contains_key(header::SEC_WEBSOCKET_PROTOCOL) => {
            let detail =
                "protocol: offer the sub-protocol ptyd.v1, or none for JSON texts; ?mode=raw gives plain bytes";
            return refuse(ErrorCode::InvalidField, detail);
        }
        None => Mode::Json,
    };
    let open = state.open.subscribe();
    let dispatcher = state.dispatcher;
    upgrade.on_upgrade(async move |mut socket| {
        let admitted = match client {
            Client::Known(known) => Ok(*known),
            Client::Unknown(admission) => tokio::select! {
                biased;
                () = dispatcher.stopping() => Err(ActionError::Restarting.into()),
                admitted = admission.read(&mut socket) => admitted,
            },
        };
        let connection = match admitted {
            Ok((principal, grant)) => {
                let may_write = principal.scope >= Scope::Write && grant.is_none_or(|grant| grant.may_write);
                // A browser only sees a close code.
                match dispatcher.dispatch(&principal, Action::FindSession(session)).await {
                    Ok(Outcome::SessionId(session)) => {
                        Ok(SocketConnection { dispatcher, principal, session, mode, query, may_write })
                    }
                    Ok(_) | Err(_) => Err(End::Close(Code::NotFound, "no such session".to_owned())),
                }
            }
            Err(end) => Err(end),
        };
        connection::receive(socket, connection).await;
        drop(open);
    })
}
