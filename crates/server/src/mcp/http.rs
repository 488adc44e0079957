//! `/mcp`: the same door over streamable HTTP, for both eras of the protocol.
//!
//! Every request stands for itself. The protocol's own sessions are not made, so none can end and take something along:
//! a terminal session is an explicit handle, and the caller is whoever [`crate::guard`] found.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::{Extension, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use rmcp::handler::server::ServerHandler;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use super::{Door, ToolSet};
use crate::action::ClientContext;
use crate::dispatch::Dispatcher;
use crate::identity::{Detach, Principal};
use crate::limits::BODY_BYTES_MAX;

/// The route.
const PATH: &str = "/mcp";

/// One door for each principal: it remembers what was said, and the next request goes on from there. A named token is for
/// one agent, so it has a default session of its own; whoever shows the unnamed one could be any of several.
#[derive(Clone)]
struct Doors {
    dispatcher: Dispatcher,
    of: Arc<Mutex<HashMap<String, Door>>>,
}

/// The route's handler. POST carries a message; rmcp refuses the rest with what it allows.
pub(crate) fn router(dispatcher: Dispatcher) -> Router {
    Router::new().route(PATH, any(serve)).with_state(Doors { dispatcher, of: Arc::default() })
}

async fn serve(State(doors): State<Doors>, Extension(who): Extension<Principal>, request: Request) -> Response {
    answer(doors.of(who), request).await
}

/// One request and its answer, by whatever stands behind the door.
pub(super) async fn answer(handler: impl ServerHandler + Clone, request: Request) -> Response {
    // Host and Origin were checked with everything else; a second list here could only differ.
    let config = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(BODY_BYTES_MAX);
    let service =
        StreamableHttpService::new(move || Ok(handler.clone()), Arc::<NeverSessionManager>::default(), config);
    service.handle(request).await.into_response()
}

impl Doors {
    fn of(&self, who: Principal) -> Door {
        let mut doors = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(door) = doors.get(&who.name).filter(|door| *door.who == who) {
            return door.clone();
        }
        // HTTP tells nobody that a client has gone, so nothing ends with it.
        let client = who.pass.is_some().then(|| format!("token {}", who.name));
        let context = ClientContext { client, detach: Detach::Keep, ..ClientContext::default() };
        let name = who.name.clone();
        let door = Door::new(self.dispatcher.clone(), who, context, ToolSet::All);
        // A token of the same name was revoked before this one was made: its door lets nobody through any more.
        doors.insert(name, door.clone());
        door
    }
}
