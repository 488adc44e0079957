//! `/mcp`: MCP over streamable HTTP, for both eras of the protocol.
//!
//! From 2026-07-28 on every request is independent, and so is an earlier one that names no MCP session. A client of the
//! older era that initializes gets an MCP session ([`super::http_sessions`]), for its notifications. A terminal session
//! is an explicit handle in any case, and the caller is the principal found by `serve/authentication`.

use std::collections::HashMap;
use std::convert::Infallible;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Extension, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use http_body_util::Full;
use http_body_util::combinators::BoxBody;
use hyper::body::{Body as _, Frame, SizeHint};
use rmcp::handler::server::ServerHandler;
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::dispatch_port::{Boxed, Server};
use super::handshake::StructuredAnswers;
use super::http_session_store::HttpSessionStore;
use super::http_sessions::{Held, HttpSessions};
use super::{Handler, ToolSet};
use crate::http::misdirected::{Forwarding, Misdirected};
use crate::http::request_body::{Inbox, NotTaken};
use ptyd_core::action::ClientContext;
use ptyd_core::delivery::{Delivery, Undelivered};
use ptyd_core::dispatch::Dispatcher;
use ptyd_core::ids::{IdKind, node_of};
use ptyd_core::limits::{
    BODY_BYTES_MAX, BODY_PLAIN_BYTES_MAX, MCP_SESSION_IDLE, MCP_SESSIONS_LOOKED_AT_EVERY, MCP_SESSIONS_MAX,
};
use ptyd_core::principal::{Detach, Principal};

/// The route.
pub(crate) const PATH: &str = "/mcp";
/// The header in which a client of the older era names its MCP session.
pub(super) const SESSION: &str = "mcp-session-id";

/// The header by which a client asks for structured answers, and the name in the query that does the same.
const STRUCTURED_HEADER: &str = "ptyd-structured";
const STRUCTURED_QUERY: &str = "structured";

/// JSON-RPC's codes for a body that is not JSON, and for one that is not a message.
const PARSE_ERROR: i32 = -32_700;
const INVALID_REQUEST: i32 = -32_600;
const INTERNAL_ERROR: i32 = -32_603;
/// The code that other servers use for an unknown MCP session.
const SESSION_NOT_FOUND: i32 = -32_001;

/// One entrance per principal: its handler keeps the reported state for the next request, and an MCP session of one
/// principal is inaccessible to others. A named token belongs to one agent, so it has a default session of its own;
/// users of the server's own token cannot be distinguished.
#[derive(Clone)]
struct McpState {
    dispatcher: Dispatcher,
    /// The `host:port` of the server.
    base_url: Arc<str>,
    /// The folder of the stored MCP sessions.
    folder: PathBuf,
    places: Arc<Semaphore>,
    of: Arc<Mutex<Entrances>>,
}

/// By principal name.
type Entrances = HashMap<String, (Principal, Arc<Entrance<Handler>>)>;

/// The route's handler.
pub(crate) fn router(dispatcher: Dispatcher, base_url: &str, folder: PathBuf) -> Router {
    if let Err(error) = HttpSessionStore::tidy(&folder) {
        tracing::warn!(%error, path = %folder.display(), "sessions of MCP will end with this server");
    }
    let places = Arc::new(Semaphore::new(MCP_SESSIONS_MAX));
    let state = McpState { dispatcher, base_url: base_url.into(), folder, places, of: Arc::default() };
    Router::new().route(PATH, any(serve)).with_state(state)
}

async fn serve(
    State(state): State<McpState>,
    Extension(principal): Extension<Principal>,
    request: Request,
) -> Response {
    state.of(principal).answer(request).await
}

impl McpState {
    fn of(&self, principal: Principal) -> Arc<Entrance<Handler>> {
        let mut state = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, entrance)) = state.get(&principal.name).filter(|(of, _)| *of == principal) {
            return Arc::clone(entrance);
        }
        // Over HTTP a client's disconnect is unknown, so no session ends with it.
        let client = principal.pass.is_some().then(|| format!("token {}", principal.name));
        let context = ClientContext { client, detach: Detach::Keep, ..ClientContext::default() };
        let server: Arc<dyn Server> = Arc::new(self.dispatcher.clone());
        let handler = Handler::on(Arc::clone(&server), principal.clone(), context, ToolSet::All, &self.base_url);
        let conversing = handler.clone();
        let kept = HttpSessionStore::of(&self.folder, &principal.name);
        let begin = move || conversing.with_a_stream();
        let entrance = Arc::new(Entrance::new(handler, begin, Arc::clone(&self.places), Some(kept), server));
        let (of, gone, looked_after) = (Arc::clone(&self.of), principal.clone(), Arc::clone(&entrance));
        tokio::spawn(async move {
            looked_after.end_over_time(gone.shut_out()).await;
            let mut state = of.lock().unwrap_or_else(PoisonError::into_inner);
            if state.get(&gone.name).is_some_and(|(of, _)| *of == gone) {
                state.remove(&gone.name);
            }
        });
        // A token of the same name was revoked before this one was made: its entrance admits no request any more.
        state.insert(principal.name.clone(), (principal, Arc::clone(&entrance)));
        entrance
    }
}

/// The entrance for the requests of one principal.
pub(super) struct Entrance<S> {
    /// For independent requests.
    each: StreamableHttpService<S, NeverSessionManager>,
    /// For requests within MCP sessions.
    conversing: StreamableHttpService<S, HttpSessions>,
    pub(super) sessions: Arc<HttpSessions>,
    /// Ends all of them.
    over: CancellationToken,
    server: Arc<dyn Server>,
}

impl<S: ServerHandler + Clone> Entrance<S> {
    /// With a handler for independent requests, and a factory for those of MCP sessions.
    pub fn new(
        handler: S,
        begin: impl Fn() -> S + Send + Sync + 'static,
        places: Arc<Semaphore>,
        kept: Option<HttpSessionStore>,
        server: Arc<dyn Server>,
    ) -> Self {
        let over = CancellationToken::new();
        // Host and Origin were checked by the middleware; a second list here could only differ.
        let mut config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_max_request_body_bytes(BODY_BYTES_MAX);
        config.sse_retry = None;
        let mut conversing = config.clone().with_legacy_session_mode(true).with_cancellation_token(over.clone());
        if let Some(kept) = &kept {
            conversing.session_store = Some(Arc::new(kept.clone()));
        }
        let sessions = Arc::new(HttpSessions::new(places, kept, Arc::clone(&server)));
        Self {
            each: StreamableHttpService::new(move || Ok(handler.clone()), Arc::default(), config),
            conversing: StreamableHttpService::new(move || Ok(begin()), Arc::clone(&sessions), conversing),
            sessions,
            over,
            server,
        }
    }

    /// Ends idle MCP sessions, and all of them when their token is revoked.
    async fn end_over_time(&self, shut_out: impl Future<Output = ()>) {
        let mut shut_out = std::pin::pin!(shut_out);
        loop {
            tokio::select! {
                () = &mut shut_out => return self.over.cancel(),
                () = tokio::time::sleep_until(Instant::now() + MCP_SESSIONS_LOOKED_AT_EVERY) => {
                    self.sessions.end_idle(MCP_SESSION_IDLE).await;
                }
            }
        }
    }

    /// Answers one request.
    pub async fn answer(&self, request: Request) -> Response {
        let (mut parts, body) = request.into_parts();
        let inbox = parts.extensions.remove::<Inbox>().unwrap_or_else(Inbox::alone);
        let body = match inbox.take(body, BODY_BYTES_MAX).await {
            Ok(body) => body,
            Err(why) => return not_taken(why),
        };
        let (method, is_json) = (parts.method.clone(), is_json(&parts.headers));
        if ![Method::GET, Method::POST, Method::DELETE].contains(&method) {
            let refused = refusal(
                StatusCode::METHOD_NOT_ALLOWED,
                INVALID_REQUEST,
                "this path accepts only the methods in the header Allow",
            );
            return ([(header::ALLOW, "GET, POST, DELETE")], refused).into_response();
        }
        let delivery = Delivery::default();
        let undelivered = Undelivered::new(delivery.clone());
        parts.extensions.insert(delivery);
        match asks_for_structured_answers(&parts) {
            Ok(true) => drop(parts.extensions.insert(StructuredAnswers)),
            Ok(false) => {}
            Err(why) => return refusal(StatusCode::BAD_REQUEST, INVALID_REQUEST, &why),
        }
        let is_forwarded = parts.extensions.get::<Forwarding>().is_some();
        if let Some(node) = is_forwarded.then(|| elsewhere(&body, self.server.node())).flatten() {
            let mut response = StatusCode::MISDIRECTED_REQUEST.into_response();
            response.extensions_mut().insert(Misdirected { node, body });
            return response;
        }
        // A body that is not a message is refused below, by the full parser.
        let size = body.len();
        let look = || {
            let glance = Glance::of(&body);
            let broken = glance.is_none().then(|| serde_json::from_slice::<IgnoredAny>(&body).err()).flatten();
            (glance, broken)
        };
        let (glance, broken) = inbox.work(size, look).await;
        let glance = glance.unwrap_or_default();
        // Only tools take commands or input.
        if size > BODY_PLAIN_BYTES_MAX && glance.method.as_deref() != Some("tools/call") {
            return not_taken(NotTaken::TooLong(BODY_PLAIN_BYTES_MAX));
        }
        // A request with the id of another node's MCP session came here for the sake of its terminal.
        let is_here = |id: &&str| IdKind::Conversation.node_of(id).is_none_or(|node| node == self.server.node());
        let named = parts.headers.get(SESSION).and_then(|id| id.to_str().ok()).filter(is_here).map(str::to_owned);
        if let (Some(id), Some("resources/subscribe" | "logging/setLevel")) = (&named, glance.method.as_deref()) {
            self.sessions.forget(id);
        }
        if method == Method::DELETE && named.as_deref().is_some_and(|id| !self.sessions.knows(id)) {
            return not_found();
        }
        let held = named.as_deref().and_then(|id| self.sessions.hold(id));
        let begins = method == Method::POST && glance.method.as_deref() == Some("initialize");
        // A request that waits for its answer does not keep its own text.
        let request = Request::from_parts(parts, Full::new(body));
        // Without room the client is served without an MCP session, and sees that from the offered capabilities.
        let mut response = if named.is_some() || (begins && self.sessions.has_room()) {
            inbox.work_at_first(size, self.conversing.handle(request)).await
        } else {
            inbox.work_at_first(size, self.each.handle(request)).await
        };
        if !response.status().is_success() {
            return as_json_rpc(response, is_json, broken).await;
        }
        if method == Method::DELETE {
            // The session has ended already, and common clients expect this status.
            *response.status_mut() = StatusCode::NO_CONTENT;
        }
        // An MCP session of an earlier server is open only now.
        let held = held.or_else(|| named.as_deref().and_then(|id| self.sessions.hold(id)));
        // A notification stream continues until the server stops; an answer is awaited.
        let stop = (method == Method::GET && held.is_some()).then(|| self.server.stopping());
        let is_awaited = glance.method.is_some() && response.body().size_hint().exact().is_none();
        let cancel = glance.id.filter(|_| is_awaited && held.is_some()).and_then(|id| cancelled(&id));
        let undelivered = Some(undelivered);
        response.map(|body| Body::new(AnswerStream { body, stop, cancel, held, undelivered })).into_response()
    }
}

/// Whether a request asks for structured answers, by its header or its query.
fn asks_for_structured_answers(parts: &Parts) -> Result<bool, String> {
    let headers = parts.headers.get_all(STRUCTURED_HEADER).iter().map(|value| value.to_str().unwrap_or_default());
    let pairs =
        parts.uri.query().unwrap_or_default().split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "true")));
    let in_query = pairs.filter(|(name, _)| *name == STRUCTURED_QUERY).map(|(_, value)| value);
    let mut asks = false;
    for word in headers.chain(in_query) {
        asks |= match word {
            "true" => true,
            "false" => false,
            _ => return Err(format!("{STRUCTURED_HEADER} and ?{STRUCTURED_QUERY}= must be true or false")),
        };
    }
    Ok(asks)
}

/// The fields that decide where a message goes.
#[derive(Default, Deserialize)]
struct Glance {
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    id: Option<Box<RawValue>>,
}

impl Glance {
    fn of(body: &[u8]) -> Option<Self> {
        serde_json::from_slice(body).ok()
    }
}

/// The other node whose terminal or task a message names in its body, as clients do that know no header for it.
fn elsewhere(body: &[u8], own: u16) -> Option<u16> {
    #[derive(Deserialize)]
    struct Message {
        params: Params,
    }
    #[derive(Deserialize)]
    struct Params {
        arguments: Option<Arguments>,
        #[serde(rename = "taskId")]
        task: Option<String>,
    }
    #[derive(Deserialize)]
    struct Arguments {
        session_id: Option<String>,
    }
    let Params { arguments, task } = serde_json::from_slice::<Message>(body).ok()?.params;
    let id = arguments.and_then(|arguments| arguments.session_id).or(task)?;
    node_of(&id).filter(|node| *node != own)
}

/// The message that cancels a request.
fn cancelled(id: &RawValue) -> Option<ClientJsonRpcMessage> {
    let id: Value = serde_json::from_str(id.get()).ok()?;
    let message = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
    serde_json::from_value(message).ok()
}

/// An answer. If its client disconnects before the end, the wait ends, also within an MCP session; the program continues.
struct AnswerStream {
    body: BoxBody<Bytes, Infallible>,
    stop: Option<Boxed<'static, ()>>,
    cancel: Option<ClientJsonRpcMessage>,
    held: Option<Held>,
    /// Until the server's HTTP has taken the answer. Whether the client then reads it is not known.
    undelivered: Option<Undelivered>,
}

impl hyper::body::Body for AnswerStream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        if this.stop.as_mut().is_some_and(|stop| stop.as_mut().poll(cx).is_ready()) {
            return Poll::Ready(None);
        }
        let polled = Pin::new(&mut this.body).poll_frame(cx);
        let is_out = match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                this.body.is_end_stream() || frame.data_ref().is_some_and(|data| is_answer(data))
            }
            Poll::Ready(None) => true,
            Poll::Ready(Some(Err(_))) | Poll::Pending => false,
        };
        if is_out {
            this.cancel = None;
            this.undelivered.take().into_iter().for_each(Undelivered::delivered);
        }
        polled
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}

/// Whether an event of a stream is the answer, and no progress: many clients close the stream as soon as they have it.
fn is_answer(event: &[u8]) -> bool {
    let data = event.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data:"));
    data.filter_map(Glance::of).any(|message| message.method.is_none() && message.id.is_some())
}

impl Drop for AnswerStream {
    fn drop(&mut self) {
        if let (Some(cancel), Some(held)) = (self.cancel.take(), self.held.take()) {
            tokio::spawn(async move { held.say(cancel).await });
        }
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let named = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    named.split(';').next().is_some_and(|named| named.trim().eq_ignore_ascii_case("application/json"))
}

/// rmcp refuses some requests in plain text. An MCP client reads JSON-RPC, and an unparsable body is its error -32700,
/// not a wrong media type.
async fn as_json_rpc(
    response: hyper::Response<BoxBody<Bytes, Infallible>>,
    is_json: bool,
    broken: Option<serde_json::Error>,
) -> Response {
    if response.headers().get(header::CONTENT_TYPE).is_some_and(|of| of == "application/json") {
        return response.into_response();
    }
    match response.status() {
        StatusCode::UNSUPPORTED_MEDIA_TYPE if is_json => match broken {
            Some(error) => refusal(StatusCode::BAD_REQUEST, PARSE_ERROR, &format!("the body is not JSON: {error}")),
            None => refusal(StatusCode::BAD_REQUEST, INVALID_REQUEST, "the body is not a JSON-RPC message"),
        },
        StatusCode::NOT_FOUND => not_found(),
        status => {
            let code = if status.is_server_error() { INTERNAL_ERROR } else { INVALID_REQUEST };
            let allow = response.headers().get(header::ALLOW).cloned();
            let words = to_bytes(Body::new(response.into_body()), BODY_BYTES_MAX).await.unwrap_or_default();
            let mut refused = refusal(status, code, &String::from_utf8_lossy(&words));
            refused.headers_mut().extend(allow.map(|methods| (header::ALLOW, methods)));
            refused
        }
    }
}

fn not_taken(why: NotTaken) -> Response {
    let (status, wait) = match why {
        NotTaken::TooLong(_) | NotTaken::TooMany => (StatusCode::PAYLOAD_TOO_LARGE, None),
        NotTaken::Late => (StatusCode::REQUEST_TIMEOUT, None),
        NotTaken::Busy => (StatusCode::TOO_MANY_REQUESTS, Some(HeaderValue::from_static("1"))),
        NotTaken::Broken => (StatusCode::BAD_REQUEST, None),
    };
    let mut refused = refusal(status, INVALID_REQUEST, &why.to_string());
    refused.headers_mut().extend(wait.map(|seconds| (header::RETRY_AFTER, seconds)));
    refused
}

fn not_found() -> Response {
    let why = "unknown MCP session, or it has ended; initialize again without Mcp-Session-Id. Terminals keep running";
    refusal(StatusCode::NOT_FOUND, SESSION_NOT_FOUND, why)
}

fn refusal(status: StatusCode, code: i32, why: &str) -> Response {
    let error = json!({ "jsonrpc": "2.0", "id": null, "error": { "code": code, "message": why } });
    let kind = HeaderValue::from_static("application/json");
    (status, [(header::CONTENT_TYPE, kind)], error.to_string()).into_response()
}
