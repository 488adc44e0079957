//! The router: every route of every protocol, and the layers around all of them.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::get;
use tower_http::cors::{AllowHeaders, CorsLayer, ExposeHeaders};

use super::authentication::{Guard, check};
use super::metrics_page::{self, MetricsPage, measure};
use crate::http::problem::label;
use crate::http::unread_body;
use crate::mcp::{self, stdio_upgrade};
use crate::page;
use crate::rest;
use crate::secret_page;
use crate::ws::{self, SocketCount};
use ptyd_core::config::Config;
use ptyd_core::dispatch::Dispatcher;
use ptyd_core::metrics::Metrics;
use ptyd_core::web_origin::WebOrigin;

/// The headers of answers that pages of other origins may read.
const EXPOSED: [&str; 5] = ["mcp-session-id", "ptyd-version", "retry-after", "x-request-id", "www-authenticate"];

/// How long a browser may keep the answer to its question about CORS.
const CORS_AGE: Duration = Duration::from_secs(600);

/// Every route behind the guard; the guard's refusals become problem documents, too.
pub(super) fn router(
    dispatcher: Dispatcher,
    guard: Guard,
    visits: &SocketCount,
    base_url: &str,
    config: &Config,
) -> Router {
    let metrics = dispatcher.metrics();
    let ready = dispatcher.clone();
    let page = MetricsPage { dispatcher: dispatcher.clone(), visits: visits.clone() };
    let routes = rest::router(dispatcher.clone(), guard.logins(), base_url)
        .merge(page::router())
        .merge(stdio_upgrade::router(dispatcher.clone(), base_url))
        .merge(mcp::http_router(dispatcher.clone(), base_url, config.state_dir.join("conversations")))
        .merge(if config.secret_page { secret_page::router(dispatcher.clone()) } else { Router::new() })
        .merge(ws::router(dispatcher, visits))
        .merge(Router::new().route(metrics_page::PATH, get(metrics_page::show)).with_state(page))
        .merge(Router::new().route("/readyz", get(is_ready)).with_state(ready))
        .route("/livez", get(async || "ok\n"))
        .fallback(rest::no_route)
        .method_not_allowed_fallback(rest::no_method)
        .layer(from_fn_with_state(Arc::new(Around { guard: Arc::new(guard), metrics }), around));
    match cors(&config.network.allowed_origins) {
        Some(cors) => routes.layer(cors),
        None => routes,
    }
}

/// The CORS headers for web pages of these origins. They are outermost: a browser asks for them without a token.
fn cors(origins: &[WebOrigin]) -> Option<CorsLayer> {
    let origins: Vec<_> = origins.iter().filter_map(|origin| origin.to_string().parse::<HeaderValue>().ok()).collect();
    if origins.is_empty() {
        return None;
    }
    let layer = CorsLayer::new()
        .allow_origin(origins)
        .allow_methods([Method::GET, Method::POST, Method::PUT, Method::DELETE])
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers(ExposeHeaders::list(EXPOSED.map(HeaderName::from_static)))
        .max_age(CORS_AGE);
    Some(layer)
}

/// The state of the layer around all routes.
struct Around {
    guard: Arc<Guard>,
    metrics: Arc<Metrics>,
}

/// The one layer around all routes, in the order from the connection to the route. Each layer of its own would copy and
/// box the routes again for each request.
async fn around(State(state): State<Arc<Around>>, request: Request, next: Next) -> Response {
    let Around { guard, metrics } = &*state;
    let checked = |request| check(guard, request, next);
    let labelled = |request| label(request, checked);
    let measured = |request| measure(metrics, request, labelled);
    let mut response = unread_body::say(request, measured).await;
    let is_events = |kind: &HeaderValue| kind.as_bytes().starts_with(b"text/event-stream");
    if response.headers().get(header::CONTENT_TYPE).is_some_and(is_events) {
        // nginx would hold the events back until its buffer is full.
        response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    }
    response
}

/// The readiness check; the reason if the server is degraded.
async fn is_ready(State(dispatcher): State<Dispatcher>) -> Result<&'static str, (StatusCode, String)> {
    dispatcher.trouble().map_or(Ok("ok\n"), |why| Err((StatusCode::SERVICE_UNAVAILABLE, why + "\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::net::SocketAddr;
    use std::path::Path;

    const TCP: Transport = Transport::Tcp { peer: None, server: None };

    fn over_unix(uid: u32) -> Transport {
        Transport::Unix { peer: Some(UnixPeer { uid, session: PeerSession::None }) }
    }

    use axum::body::{Body, to_bytes};
    use axum::extract::ConnectInfo;
    use axum::http::Request;
    use axum::response::Response;
    use tower::ServiceExt;

    use crate::http::connections::Transport;
    use ptyd_core::action::{AuditFilter, AuditRecord, ReadAudit};
    use ptyd_core::audit::{self, AuditLog};
    use ptyd_core::credentials::server_token::Token;
    use ptyd_core::principal::{PeerSession, UnixPeer};
    use ptyd_core::sessions;
    use ptyd_core::state_dir::private_dir;

    fn config(dir: &Path) -> Config {
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        Config { token: Some("right".into()), ..Config::of(listen, dir.join("run/ptyd.sock"), dir.join("state")) }
    }

    async fn app_in(dir: &Path) -> Router {
        app_and_audit_in(dir).await.0
    }

    async fn app_and_audit_in(dir: &Path) -> (Router, Arc<AuditLog>) {
        let config = config(dir);
        private_dir(&config.state_dir).expect("a directory");
        let services = sessions::start(&config).await.expect("services");
        let dispatcher = Dispatcher::new(services);
        let guard = Guard::new(
            Token::given("right").expect("valid"),
            dispatcher.tokens(),
            dispatcher.tickets(),
            1_000,
            &config,
        )
        .recorded_in(dispatcher.audit());
        let audit = dispatcher.audit();
        (router(dispatcher, guard, &SocketCount::new(), "http://127.0.0.1:1", &config), audit)
    }

    async fn ask(app: &Router, transport: Transport, method: &Method, path: &str, token: Option<&str>) -> Response {
        let mut request = Request::builder().method(method).uri(path).header(header::HOST, "localhost");
        if let Some(token) = token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        let request = request.extension(ConnectInfo(transport)).body(Body::empty()).expect("a request");
        app.clone().oneshot(request).await.expect("never fails")
    }

    async fn ask_with(app: &Router, method: &Method, path: &str, token: &str, body: &str) -> Response {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "localhost")
            // MCP wants both; elsewhere it would ask for a stream without an end.
            .header(header::ACCEPT, if path == "/mcp" { "application/json, text/event-stream" } else { "*/*" })
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::AUTHORIZATION, format!("Bearer {token}"))
            .extension(ConnectInfo(TCP))
            .body(Body::from(body.to_owned()))
            .expect("a request");
        app.clone().oneshot(request).await.expect("never fails")
    }

    /// The token `eye`, which the user makes at the Unix socket.
    async fn token_that_may_only_read(app: &Router) -> String {
        let request = Request::post("/tokens")
            .header(header::CONTENT_TYPE, "application/json")
            .extension(ConnectInfo(over_unix(1_000)))
            .body(Body::from(r#"{"name":"eye","scope":"read"}"#))
            .expect("a request");
        let made = app.clone().oneshot(request).await.expect("never fails").into_body();
        let made = to_bytes(made, 1 << 20).await.expect("a body");
        let made: api::NewToken = serde_json::from_slice(&made).expect("a token");
        made.token
    }

    /// The answer's code; `None` when it is not a problem document.
    async fn code(response: Response) -> Option<String> {
        let is_problem = response.headers().get(header::CONTENT_TYPE).is_some_and(|t| t == "application/problem+json");
        assert!(["x-request-id", "ptyd-version"].iter().all(|name| response.headers().contains_key(*name)));
        let status = response.status().as_u16();
        let body = to_bytes(response.into_body(), 1 << 20).await.expect("a body");
        is_problem.then(|| {
            let problem: api::Problem = serde_json::from_slice(&body).expect("a problem");
            assert_eq!(problem.status, status);
            problem.code.as_str().to_owned()
        })
    }

    #[tokio::test]
    // promise: access-1
    async fn no_route_answers_without_a_token_but_the_two_open_ones() {
        let dir = tempfile::tempdir().expect("a directory");
        let app = app_in(dir.path()).await;
        let table = rest::routes().into_iter().map(|route| (route.method, route.path));
        let others = [
            (Method::GET, stdio_upgrade::PATH),
            (Method::POST, "/mcp"),
            (Method::GET, ws::PATH),
            (Method::GET, metrics_page::PATH),
            (Method::GET, secret_page::PATH),
            (Method::POST, secret_page::PATH),
            (Method::GET, "/nowhere"),
            (Method::PUT, "/terminals"),
        ];
        let mut walked = 0;
        for (method, path) in table.chain(others) {
            let path = path.replace("{session}", "s0-aaaaaaaaaa").replace("{command}", "c1").replace("{name}", "AbC");
            for token in [None, Some("wrong")] {
                let refused = code(ask(&app, TCP, &method, &path, token).await).await;
                assert_eq!(refused.as_deref(), Some("unauthorized"), "{method} {path}");
            }
            let stranger = code(ask(&app, over_unix(1_001), &method, &path, Some("right")).await).await;
            assert_eq!(stranger.as_deref(), Some("forbidden"), "{method} {path}");
            for (transport, token) in [(TCP, Some("right")), (over_unix(1_000), None)] {
                let status = ask(&app, transport, &method, &path, token).await.status().as_u16();
                assert_ne!(status, 401, "{method} {path}");
            }
            walked += 1;
        }
        assert_eq!(walked, rest::routes().len() + 8);
        // A session that was started meanwhile is in a process of its own.
        let mine = over_unix(1_000);
        let list = ask(&app, mine.clone(), &Method::GET, "/terminals", None).await.into_body();
        let list = to_bytes(list, 1 << 20).await.expect("a body");
        let list: api::SessionList = serde_json::from_slice(&list).expect("a list");
        for session in list.terminals {
            let path = format!("/terminals/{}?force=true", session.id);
            assert_eq!(ask(&app, mine.clone(), &Method::DELETE, &path, None).await.status(), 200);
        }
        for path in crate::serve::tcp_access::OPEN {
            assert_eq!(ask(&app, TCP, &Method::GET, path, None).await.status(), 200);
        }
    }

    /// A whole request for a route of the table, and what a token that may only read is answered. A new route needs its
    /// line here.
    fn sent_with_a_read_token(method: &Method, path: &str, session: &str) -> (String, u16) {
        let (body, status) = match (method.as_str(), path) {
            // The one holds what all may do, the other what the server inherited.
            // A drain is the administrator's.
            ("GET", "/tokens" | "/secrets" | "/audit" | "/terminals/{session}/environment" | "/drain") => ("", 403),
            ("GET", "/terminals/{session}/commands/{command}") => ("", 404),
            ("GET", "/terminals/{session}/search") => ("", 422),
            ("GET", _) => ("", 200),
            ("POST", "/terminals/{session}/wait") => (r#"{"timeout":0.01}"#, 200),
            // Each operation is answered on its own.
            ("POST", "/batch") => (r#"{"operations":[{"method":"POST","path":"/terminals"}]}"#, 200),
            ("POST", "/terminals") => ("{}", 403),
            ("POST", "/terminals/{session}/rename") => (r#"{"name":"other"}"#, 403),
            ("POST", "/terminals/{session}/resize") => (r#"{"cols":7,"rows":7}"#, 403),
            ("POST", "/terminals/{session}/execute") => (r#"{"command":"true"}"#, 403),
            ("POST", "/terminals/{session}/input") => (r#"{"input":"x"}"#, 403),
            ("POST", "/terminals/{session}/take") => ("", 403),
            ("POST", "/terminals/{session}/signal") => (r#"{"signal":"INT"}"#, 403),
            ("POST", "/terminals/{session}/actions/{action}") => ("", 403),
            ("POST", "/tickets") => (r#"{"session":"ID","scope":"write"}"#, 403),
            ("POST", "/tokens") => (r#"{"name":"mine","scope":"admin"}"#, 403),
            ("POST", "/approvals/{approval}") => (r#"{"decision":"allow"}"#, 403),
            ("PUT", "/secrets/{secret}") => (r#"{"value":"long enough"}"#, 403),
            ("DELETE", "/terminals/{session}/take") => ("", 403),
            ("DELETE", "/terminals/{session}" | "/tokens/{token}" | "/secrets/{secret}" | "/drain") => ("", 403),
            ("PUT", "/drain") => ("", 403),
            ("POST", "/login") => ("", 201),
            ("DELETE", "/login") => ("", 204),
            _ => panic!("say here what {method} {path} is sent and what a token that may only read gets"),
        };
        (body.replace("ID", session), status)
    }

    #[tokio::test]
    // promise: access-5
    async fn a_token_that_may_only_read_changes_nothing_at_any_route() {
        let dir = tempfile::tempdir().expect("a directory");
        let app = app_in(dir.path()).await;
        let json = async |response: Response| -> serde_json::Value {
            let body = to_bytes(response.into_body(), 1 << 20).await.expect("a body");
            serde_json::from_slice(&body).unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&body)))
        };
        let token = token_that_may_only_read(&app).await;
        // A program that prints nothing by itself: a shell's prompt, which comes when it comes, would be a change.
        let made = ask_with(&app, &Method::POST, "/terminals", "right", r#"{"owner":"eye","shell":"cat"}"#).await;
        let made = json(made).await;
        assert_eq!(made["status"], "running");
        let id = made["id"].as_str().expect("an id").to_owned();
        let state = async || {
            let mut all = json(ask_with(&app, &Method::GET, "/terminals", "right", "").await).await;
            for session in all["terminals"].as_array_mut().expect("a list") {
                // The kernel's own, and seen a moment later.
                session["resourceUsage"].take();
                session["foreground"].take();
            }
            all["tokens"] = json(ask_with(&app, &Method::GET, "/tokens", "right", "").await).await;
            all
        };
        let before = state().await;
        for route in rest::routes() {
            let (method, path) = (route.method, route.path);
            let (body, status) = sent_with_a_read_token(&method, path, &id);
            let place = path
                .replace("{session}", &id)
                .replace("{command}", "c99")
                .replace("{token}", "eye")
                .replace("{secret}", "EYE")
                .replace("{approval}", "a0-aaaaaaaaaa")
                .replace("{action}", "reload");
            let answer = ask_with(&app, &method, &place, &token, &body).await;
            assert_eq!(answer.status(), status, "{method} {path}");
            if path == "/batch" {
                assert_eq!(json(answer).await["responses"][0]["status"], 403);
            }
        }
        let tools = mcp::tools_schema();
        for tool in tools["tools"].as_array().expect("a list") {
            let name = tool["name"].as_str().expect("a name");
            let arguments = match name {
                "terminal" => r#"{"command":"true"}"#,
                "start_terminal_session" | "list_terminal_sessions" => "{}",
                "execute_in_terminal" => r#"{"session_id":"ID","command":"true"}"#,
                "send_input_to_terminal" => r#"{"session_id":"ID","input":"x"}"#,
                "resize_terminal" => r#"{"session_id":"ID","cols":7,"rows":7}"#,
                "get_terminal_output" | "terminate_terminal_session" => r#"{"session_id":"ID"}"#,
                other => panic!("say here what {other} is sent"),
            };
            let arguments = arguments.replace("ID", &id);
            let call = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{name}","arguments":{arguments}}}}}"#
            );
            let answer = json(ask_with(&app, &Method::POST, "/mcp", &token, &call).await).await;
            let is_refused = answer["result"]["isError"].as_bool().unwrap_or(false);
            let reads = tool["annotations"]["readOnlyHint"].as_bool().expect("a hint");
            assert_eq!((is_refused, answer["error"].is_null()), (!reads, true), "{name}: {answer}");
        }
        assert_eq!(state().await, before);
        let end = format!("/terminals/{id}?force=true");
        assert_eq!(ask_with(&app, &Method::DELETE, &end, "right", "").await.status(), 200);
    }

    /// The lines of the audit log that were not there before, newest first.
    async fn new_lines(dir: &Path, audit: &AuditLog, known: &mut usize) -> Vec<AuditRecord> {
        audit.flush().await;
        let read = ReadAudit { filter: AuditFilter::default(), limit: usize::MAX, offset: 0 };
        let all = audit::page(&dir.join("state"), &read).expect("readable").records;
        let new = all.len() - std::mem::replace(known, all.len());
        all.into_iter().take(new).collect()
    }

    #[tokio::test]
    // promise: audit-1
    async fn every_route_and_every_tool_leaves_its_line_in_the_audit_log() {
        let dir = tempfile::tempdir().expect("a directory");
        let (app, audit) = app_and_audit_in(dir.path()).await;
        let body = async |response: Response| to_bytes(response.into_body(), 1 << 20).await.expect("a body");
        let token = token_that_may_only_read(&app).await;
        let made = ask_with(&app, &Method::POST, "/terminals", "right", r#"{"owner":"eye","shell":"cat"}"#).await;
        let made: api::TerminalSession = serde_json::from_slice(&body(made).await).expect("a session");
        let id = made.id.as_str();
        let mut known = 0;
        let first = new_lines(dir.path(), &audit, &mut known).await;
        let made = first.iter().filter(|line| line["action"] == "make token").count();
        assert_eq!(made, 2, "a line before it and one before its answer: {first:?}");
        let text = std::fs::read_to_string(dir.path().join("state/audit.jsonl")).expect("there");
        assert!(!text.contains(&token) && !text.contains(&token[5..]));
        // The description of the interface, which says nothing of any session, and a browser that forgets its log-in.
        let silent = ["/openapi.json", "/docs"];
        let is_silent = |route: &rest::Route| {
            silent.contains(&route.path) || route.path == rest::LOGIN && route.method == Method::DELETE
        };
        for route in rest::routes().into_iter().filter(|route| !is_silent(route)) {
            let (method, path) = (route.method, route.path);
            let (sent, status) = sent_with_a_read_token(&method, path, id);
            let query = if path.ends_with("/search") { "?q=x" } else { "" };
            let place = path
                .replace("{session}", id)
                .replace("{command}", "c99")
                .replace("{token}", "eye")
                .replace("{secret}", "EYE")
                .replace("{approval}", "a0-aaaaaaaaaa")
                .replace("{action}", "reload");
            let answer = ask_with(&app, &method, &(place + query), &token, &sent).await;
            drop(answer);
            let lines = new_lines(dir.path(), &audit, &mut known).await;
            let of_it: Vec<_> = lines.iter().filter(|line| line["principal"] == "eye").collect();
            assert!(!of_it.is_empty(), "{method} {path}");
            assert!(of_it.iter().all(|line| line["door"] == "rest" && line["transport"] == "tcp"), "{of_it:?}");
            // The line before an act has no outcome.
            let is_denied = of_it.iter().any(|line| line.get("outcome").is_some_and(|outcome| outcome == "forbidden"));
            assert_eq!(is_denied, status == 403 || path == "/batch", "{method} {path}: {of_it:?}");
        }
        let tools = mcp::tools_schema();
        for tool in tools["tools"].as_array().expect("a list") {
            let name = tool["name"].as_str().expect("a name");
            let arguments = format!(r#"{{"session_id":"{id}","command":"true","input":"x","cols":7,"rows":7}}"#);
            let all: serde_json::Value = serde_json::from_str(&arguments).expect("JSON");
            let properties = tool["inputSchema"]["properties"].as_object().expect("properties");
            let taken = all.as_object().expect("an object").iter().filter(|(field, _)| properties.contains_key(*field));
            let arguments: serde_json::Map<_, _> = taken.map(|(field, value)| (field.clone(), value.clone())).collect();
            let params = serde_json::json!({ "name": name, "arguments": arguments });
            let call = serde_json::json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
            body(ask_with(&app, &Method::POST, "/mcp", &token, &call.to_string()).await).await;
            let lines = new_lines(dir.path(), &audit, &mut known).await;
            let of_it: Vec<_> =
                lines.iter().filter(|line| line["principal"] == "eye" && line["door"] == "mcp").collect();
            assert!(!of_it.is_empty(), "{name}: {lines:?}");
        }
        // A request that is refused at the entrance leaves one, too.
        for (transport, token, code) in
            [(TCP, None, "unauthorized"), (TCP, Some("wrong"), "unauthorized"), (over_unix(1_001), None, "forbidden")]
        {
            let _ = ask(&app, transport, &Method::GET, "/terminals?ticket=secret", token).await;
            let lines = new_lines(dir.path(), &audit, &mut known).await;
            let [line] = &lines[..] else { panic!("{lines:?}") };
            assert_eq!((&line["event"], &line["outcome"]), (&"refused".into(), &code.into()));
            assert_eq!((&line["method"], &line["path"]), (&"GET".into(), &"/terminals".into()));
        }
        assert!(
            !std::fs::read_to_string(dir.path().join("state/audit.jsonl")).expect("there").contains("ticket=secret")
        );
        let end = format!("/terminals/{id}?force=true");
        assert_eq!(ask_with(&app, &Method::DELETE, &end, "right", "").await.status(), 200);
    }

    #[tokio::test]
    async fn an_unknown_route_is_a_problem_document_too() {
        let dir = tempfile::tempdir().expect("a directory");
        let app = app_in(dir.path()).await;
        let expected = [
            (Method::GET, "/nowhere", "route_not_found"),
            (Method::PATCH, "/terminals", "method_not_allowed"),
            (Method::POST, "/livez", "method_not_allowed"),
            (Method::GET, "/terminals/..%2fetc", "session_not_found"),
            (Method::GET, "/terminals/%ff", "session_not_found"),
            (Method::GET, "/terminals/s0-aaaaaaaaaa/commands/7", "command_not_found"),
            (Method::GET, "/terminals?limit=0", "invalid_field"),
            (Method::GET, "/mcp/stdio", "forbidden"),
        ];
        for (method, path, word) in expected {
            let answer = code(ask(&app, TCP, &method, path, Some("right")).await).await;
            assert_eq!(answer.as_deref(), Some(word), "{method} {path}");
        }
        let over_unix = ask(&app, over_unix(0), &Method::GET, stdio_upgrade::PATH, None).await;
        assert_eq!(code(over_unix).await.as_deref(), Some("upgrade_required"));
    }

    #[tokio::test]
    async fn a_body_that_is_too_large_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        let app = app_in(dir.path()).await;
        let request = Request::builder()
            .method(Method::POST)
            .uri("/terminals")
            .extension(ConnectInfo(over_unix(0)))
            .header("x-request-id", "mine")
            .body(Body::from(vec![b' '; ptyd_core::limits::BODY_BYTES_MAX + 1]))
            .expect("a request");
        let response = app.oneshot(request).await.expect("never fails");
        assert_eq!(response.headers().get("x-request-id").expect("there"), "mine");
        assert_eq!(code(response).await.as_deref(), Some("body_too_large"));
    }
}
