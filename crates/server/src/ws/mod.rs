//! The WebSocket door: `GET /terminals/{session}/socket`, one task for each visitor.
//!
//! It parses into an [`Action`] and renders pieces, like every door. Where a request cannot become a socket it is refused
//! over HTTP; from then on the reason of an end is the code of the close frame ([`close`]), the only one that a page in a
//! browser can see. The bytes on the wire are in [`frame`], and docs/websocket.md describes them.
//!
//! [`Action`]: crate::action::Action

mod close;
mod event;
mod frame;
mod heartbeat;
mod query;
mod typist;
mod visit;

use api::ErrorCode;
use axum::Router;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{Extension, Path, State};
use axum::http::Uri;
use axum::response::Response;
use axum::routing::get;
use tokio::sync::watch;

use crate::dispatch::Dispatcher;
use crate::identity::{Grant, Principal, Scope};
use crate::ids::SessionId;
use crate::limits;
use query::{Mode, Query};
use visit::Visit;

/// The route.
pub const PATH: &str = "/terminals/{session}/socket";
/// The sub-protocol.
pub const PROTOCOL: &str = "ptyd.v1";

/// How a request that does not become a socket is refused: a problem document, as at every other route.
pub type Refuse = fn(ErrorCode, &str) -> Response;

/// The sockets that are open, for a server that stops and lets them say why.
#[derive(Debug, Clone)]
pub struct Visits(watch::Sender<()>);

impl Visits {
    /// None yet.
    pub fn new() -> Self {
        Self(watch::Sender::new(()))
    }

    /// How many are open.
    pub fn count(&self) -> usize {
        self.0.receiver_count()
    }

    /// Waits until every socket is closed.
    pub async fn closed(&self) {
        self.0.closed().await;
    }
}

impl Default for Visits {
    fn default() -> Self {
        Self::new()
    }
}

#[derive(Debug, Clone)]
struct Door {
    dispatcher: Dispatcher,
    refuse: Refuse,
    open: watch::Sender<()>,
}

/// The route as a router.
pub fn router(dispatcher: Dispatcher, visits: &Visits, refuse: Refuse) -> Router {
    Router::new().route(PATH, get(enter)).with_state(Door { dispatcher, refuse, open: visits.0.clone() })
}

async fn enter(
    State(door): State<Door>,
    Extension(who): Extension<Principal>,
    grant: Option<Extension<Grant>>,
    Path(session): Path<String>,
    uri: Uri,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let Ok(upgrade) = upgrade else {
        return (door.refuse)(
            ErrorCode::UpgradeRequired,
            "this path is a WebSocket; docs/websocket.md says how to speak",
        );
    };
    let query = match Query::parse(uri.query().unwrap_or_default()) {
        Ok(query) => query,
        Err(problem) => return (door.refuse)(ErrorCode::InvalidField, &problem),
    };
    let upgrade = upgrade
        .read_buffer_size(limits::SOCKET_BUFFER_BYTES)
        .write_buffer_size(limits::SOCKET_BUFFER_BYTES)
        .max_message_size(limits::MESSAGE_BYTES_MAX)
        .max_frame_size(limits::MESSAGE_BYTES_MAX)
        .protocols([PROTOCOL]);
    let speaks = upgrade.selected_protocol().is_some();
    if query.mode == Mode::Framed && !speaks {
        return (door.refuse)(
            ErrorCode::InvalidField,
            "protocol: offer the sub-protocol ptyd.v1, or ask for ?mode=raw",
        );
    }
    let may_write = who.scope >= Scope::Write && grant.is_none_or(|Extension(grant)| grant.may_write);
    let open = door.open.subscribe();
    let dispatcher = door.dispatcher;
    upgrade.on_upgrade(async move |socket| {
        // What is no id cannot be a session either, and a browser only sees a close code.
        let visit = SessionId::parse(&session).ok().map(|session| Visit { dispatcher, who, session, query, may_write });
        visit::receive(socket, visit).await;
        drop(open);
    })
}
