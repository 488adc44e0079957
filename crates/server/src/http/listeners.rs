//! The listeners: one server per state directory, loopback TCP and a Unix socket, one router behind both.
//!
//! Starting takes the lock first and accepts clients last. Stopping closes the listeners, answers open waits with
//! `server_restarting` and leaves every session to its holder: nothing in here ends a program.

use std::fs;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::get;
use axum::serve::Listener;
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::action::ActionError;
use crate::auth::middleware::{Guard, check};
use crate::auth::server_token::Token;
use crate::config::Config;
use crate::dispatch::Dispatcher;
use crate::http::connections::Transport;
use crate::http::connections::{self, Bounds};
use crate::http::problem::label;
use crate::http::unread_body;
use crate::mcp::stdio_upgrade;
use crate::metrics::{self, Scraped, measure};
use crate::rest::{self, Rest};
use crate::sessions::Registry;
use crate::state_dir::{self, lock, private_dir, unix_listener};
use crate::ws::{self, SocketCount};

/// The longest path of a socket: sockaddr_un has 108 bytes including the NUL (unix(7)).
pub const SOCKET_PATH_BYTES_MAX: usize = 107;
/// How long answers may take once the server stops; two seconds in total are promised.
const LAST_ANSWERS: Duration = Duration::from_millis(1_500);

/// The addresses of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listening {
    /// The TCP address, with the actual port.
    pub address: SocketAddr,
    /// The Unix socket.
    pub socket: PathBuf,
    /// The file with the token; `None` if the token was given.
    pub token_file: Option<PathBuf>,
}

impl Listening {
    /// The base URL of REST and MCP.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Another server uses the state directory.
    #[error("another ptyd (pid {pid}) serves {}; use that one, stop it, or choose another --state-dir", .state_dir.display())]
    Taken {
        /// The other server's pid.
        pid: String,
        /// The locked directory.
        state_dir: PathBuf,
    },
    /// The address is not loopback.
    #[error("{0} is not a loopback address; ptyd listens on this machine only (127.0.0.1 or [::1])")]
    NotLoopback(SocketAddr),
    /// The socket's path is too long.
    #[error("the socket's path {} has {} bytes, {SOCKET_PATH_BYTES_MAX} at most fit; choose a shorter one with --socket or PTYD_RUNTIME_DIR", .0.display(), .0.as_os_str().len())]
    SocketPath(PathBuf),
    /// Another program answers on the socket.
    #[error("another program answers on {}; stop it or choose another --socket", .0.display())]
    SocketTaken(PathBuf),
    /// The token cannot be sent in a header.
    #[error("PTYD_TOKEN must be visible ASCII characters without spaces")]
    Token,
    /// The address cannot be bound, for example because it is in use.
    #[error("cannot listen on {address}: {error}; choose another --listen (port 0 takes a free one)")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error.
        error: io::Error,
    },
    /// A file cannot be created or read.
    #[error("{}: {error}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// A directory belongs to another user.
    #[error("{} belongs to uid {owner}, who could change what this server runs; use a directory of your own (--state-dir, PTYD_RUNTIME_DIR), or take it over: chown -R {} {}", .path.display(), rustix::process::geteuid().as_raw(), .path.display())]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// Its owner.
        owner: u32,
    },
    /// Other users may write to a directory.
    #[error("{} can be written by others (mode {mode:o}), who could change what this server runs; look at what is in it, then close it: chmod 700 {}", .path.display(), .path.display())]
    Open {
        /// The directory.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// A file of the server's own cannot be used.
    #[error("{what} ({}) cannot be used: {why}; {remedy}", .path.display())]
    Unusable {
        /// Its purpose.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// The signal handlers cannot be installed.
    #[error("cannot wait for signals: {0}")]
    Signals(io::Error),
    /// The sessions cannot be managed.
    #[error(transparent)]
    Sessions(#[from] ActionError),
}

impl ServeError {
    /// Wraps an error at this path.
    pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |error| Self::File { path, error }
    }

    /// An unusable file of the server's own, with the remedy.
    pub(crate) fn unusable(what: &'static str, path: &Path, why: &dyn std::fmt::Display, remedy: &'static str) -> Self {
        Self::Unusable { what, path: path.to_owned(), why: why.to_string(), remedy }
    }
}

/// Serves until the process gets TERM, INT or HUP. Calls `ready` once clients can connect.
pub async fn serve(config: Config, ready: impl FnOnce(&Listening)) -> Result<(), ServeError> {
    if !config.listen.ip().is_loopback() {
        return Err(ServeError::NotLoopback(config.listen));
    }
    // Signals are caught first, so that a stop during the start is not lost.
    let stop = stop_signal().map_err(ServeError::Signals)?;
    private_dir(&config.state_dir)?;
    state_dir::check_inner(&config.state_dir)?;
    let _lock = lock(&config.state_dir)?;
    let (token, token_file) = match &config.token {
        Some(given) => (Token::given(given).ok_or(ServeError::Token)?, None),
        None => {
            let path = config.state_dir.join("token");
            let remedy = "remove it, and the next start makes another one";
            let token = Token::kept(&path).map_err(|e| ServeError::unusable("the token", &path, &e, remedy))?;
            (token, Some(path))
        }
    };
    let cannot = |error| ServeError::Listen { address: config.listen, error };
    let tcp = TcpListener::bind(config.listen).await.map_err(cannot)?;
    let address = tcp.local_addr().map_err(cannot)?;
    let unix = unix_listener(&config.socket)?;
    let registry = Registry::start(&config).await?;
    registry.keep_tidy();
    registry.keep_whole();

    let dispatcher = Dispatcher::new(Arc::clone(&registry));
    tokio::spawn(dispatcher.clone().end_sessions_of_gone_clients());
    let uid = own_uid().map_err(ServeError::at(&config.socket))?;
    let guard = Guard::new(token, &dispatcher, uid, &config);
    let visits = SocketCount::new();
    let app = app(dispatcher, guard, &visits, &address.to_string(), &config.state_dir);
    let chosen = config.state_dir.join("listen");
    // Only programs that read the address there are affected: a full disk must not prevent clients from ending
    // sessions.
    if let Err(e) = state_dir::write(&chosen, &format!("{address}\n")) {
        tracing::warn!(file = %chosen.display(), error = %e, "the address is not written there");
    }

    let (stopping, stopped) = watch::channel(false);
    let from = |stream: &TcpStream| Transport::Tcp { peer: stream.peer_addr().ok() };
    let over_tcp = connections::serve(NoDelayListener(tcp), app.clone(), from, Bounds::default(), stopped.clone());
    let peer = |stream: &UnixStream| Transport::Unix { peer: stream.peer_cred().ok().map(|c| c.uid()) };
    let over_unix = connections::serve(unix, app, peer, Bounds::default(), stopped);
    let mut serving = pin!(async { tokio::join!(over_tcp, over_unix) });

    ready(&Listening { address, socket: config.socket.clone(), token_file });
    tokio::select! {
        _ = stop => {}
        // A listener never ends by itself; if one did, the server must not continue without it.
        _ = &mut serving => tracing::error!("the listeners have ended"),
    }
    tracing::info!("stopping; sessions live on");
    let _ = stopping.send(true);
    let last = async { tokio::join!(registry.stop(), serving, visits.closed()) };
    if tokio::time::timeout(LAST_ANSWERS, last).await.is_err() {
        tracing::info!("some connections did not end in time");
    }
    // Best effort: the next server removes what is left.
    let _ = fs::remove_file(&config.socket);
    let _ = fs::remove_file(&chosen);
    Ok(())
}

/// Every route behind the guard; the guard's refusals become problem documents, too.
pub(crate) fn app(
    dispatcher: Dispatcher,
    guard: Guard,
    visits: &SocketCount,
    authority: &str,
    state_dir: &Path,
) -> Router {
    let metrics = dispatcher.metrics();
    let ready = dispatcher.clone();
    let scraped = Scraped { dispatcher: dispatcher.clone(), visits: visits.clone() };
    rest::router(Rest::new(dispatcher.clone(), authority))
        .merge(stdio_upgrade::router(dispatcher.clone()))
        .merge(crate::mcp::http_router(dispatcher.clone(), state_dir.join("conversations")))
        .merge(ws::router(dispatcher, visits))
        .merge(Router::new().route(metrics::PATH, get(metrics::serve)).with_state(scraped))
        .merge(Router::new().route("/readyz", get(is_ready)).with_state(ready))
        .route("/livez", get(async || "ok\n"))
        .fallback(rest::no_route)
        .method_not_allowed_fallback(rest::no_method)
        .layer(from_fn_with_state(Arc::new(guard), check))
        .layer(from_fn(label))
        .layer(from_fn_with_state(metrics, measure))
        .layer(from_fn(unread_body::say))
}

/// The readiness check; the reason if the server is degraded.
async fn is_ready(State(dispatcher): State<Dispatcher>) -> Result<&'static str, (StatusCode, String)> {
    dispatcher.trouble().map_or(Ok("ok\n"), |why| Err((StatusCode::SERVICE_UNAVAILABLE, why + "\n")))
}

/// A TCP listener whose connections send small answers at once (TCP_NODELAY).
struct NoDelayListener(TcpListener);

impl Listener for NoDelayListener {
    type Io = TcpStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (TcpStream, SocketAddr) {
        let (stream, from) = Listener::accept(&mut self.0).await;
        // The option is not essential.
        let _ = stream.set_nodelay(true);
        (stream, from)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

/// Resolves when the process is asked to stop; catches the signals from this call on.
fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    let mut term = signal(SignalKind::terminate())?;
    let mut int = signal(SignalKind::interrupt())?;
    let mut hup = signal(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! { _ = term.recv() => {} _ = int.recv() => {} _ = hup.recv() => {} }
    })
}

/// The user id of this process, from the same source as those of peers.
fn own_uid() -> io::Result<u32> {
    let (one, _other) = UnixStream::pair()?;
    Ok(one.peer_cred()?.uid())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TCP: Transport = Transport::Tcp { peer: None };

    use axum::body::{Body, to_bytes};
    use axum::extract::ConnectInfo;
    use axum::http::{Method, Request, header};
    use axum::response::Response;
    use tower::ServiceExt;

    fn config(dir: &Path) -> Config {
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        Config { token: Some("right".into()), ..Config::of(listen, dir.join("run/ptyd.sock"), dir.join("state")) }
    }

    async fn app_in(dir: &Path) -> Router {
        let config = config(dir);
        private_dir(&config.state_dir).expect("a directory");
        let registry = Registry::start(&config).await.expect("a manager");
        let dispatcher = Dispatcher::new(registry);
        let guard = Guard::new(Token::given("right").expect("valid"), &dispatcher, 1_000, &config);
        app(dispatcher, guard, &SocketCount::new(), "127.0.0.1:1", &config.state_dir)
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

    /// The answer's code; `None` when it is no problem document.
    async fn code(response: Response) -> Option<String> {
        let is_problem = response.headers().get(header::CONTENT_TYPE).is_some_and(|t| t == "application/problem+json");
        assert!(response.headers().contains_key("x-request-id"));
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
            (Method::GET, metrics::PATH),
            (Method::GET, "/nowhere"),
            (Method::PUT, "/terminals"),
        ];
        let mut walked = 0;
        for (method, path) in table.chain(others) {
            let path = path.replace("{session}", "s0-aaaaaaaaaa").replace("{command}", "c1");
            for token in [None, Some("wrong")] {
                let refused = code(ask(&app, TCP, &method, &path, token).await).await;
                assert_eq!(refused.as_deref(), Some("unauthorized"), "{method} {path}");
            }
            let stranger =
                code(ask(&app, Transport::Unix { peer: Some(1_001) }, &method, &path, Some("right")).await).await;
            assert_eq!(stranger.as_deref(), Some("forbidden"), "{method} {path}");
            for (transport, token) in [(TCP, Some("right")), (Transport::Unix { peer: Some(1_000) }, None)] {
                let status = ask(&app, transport, &method, &path, token).await.status().as_u16();
                assert_ne!(status, 401, "{method} {path}");
            }
            walked += 1;
        }
        assert_eq!(walked, rest::routes().len() + 6);
        // What was started on the way lives in a process of its own.
        let mine = Transport::Unix { peer: Some(1_000) };
        let list = ask(&app, mine, &Method::GET, "/terminals", None).await.into_body();
        let list = to_bytes(list, 1 << 20).await.expect("a body");
        let list: api::SessionList = serde_json::from_slice(&list).expect("a list");
        for session in list.terminals {
            let path = format!("/terminals/{}?force=true", session.id);
            assert_eq!(ask(&app, mine, &Method::DELETE, &path, None).await.status(), 200);
        }
        for path in crate::auth::middleware::OPEN {
            assert_eq!(ask(&app, TCP, &Method::GET, path, None).await.status(), 200);
        }
    }

    /// A whole request for a route of the table, and what a token that may only read is answered. A new route needs its
    /// line here.
    fn sent_with_a_read_token(method: &Method, path: &str, session: &str) -> (String, u16) {
        let (body, status) = match (method.as_str(), path) {
            // The one holds what all may do, the other what the server inherited.
            ("GET", "/tokens" | "/terminals/{session}/environment") => ("", 403),
            ("GET", "/terminals/{session}/commands/{command}") => ("", 404),
            ("GET", "/terminals/{session}/search") => ("", 422),
            ("GET", _) => ("", 200),
            ("POST", "/terminals/{session}/wait") => (r#"{"timeout":0.01}"#, 200),
            // Each operation is answered on its own.
            ("POST", "/batch") => (r#"{"operations":[{"method":"POST","path":"/terminals"}]}"#, 200),
            ("POST", "/terminals") => ("{}", 403),
            ("POST", "/terminals/{session}/resize") => (r#"{"cols":7,"rows":7}"#, 403),
            ("POST", "/terminals/{session}/execute") => (r#"{"command":"true"}"#, 403),
            ("POST", "/terminals/{session}/input") => (r#"{"input":"x"}"#, 403),
            ("POST", "/terminals/{session}/signal") => (r#"{"signal":"INT"}"#, 403),
            ("POST", "/terminals/{session}/actions/{action}") => ("", 403),
            ("POST", "/tickets") => (r#"{"session":"ID","scope":"write"}"#, 403),
            ("POST", "/tokens") => (r#"{"name":"mine","scope":"admin"}"#, 403),
            ("DELETE", "/terminals/{session}" | "/tokens/{token}") => ("", 403),
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
        let made = ask_with(&app, &Method::POST, "/tokens", "right", r#"{"name":"eye","scope":"read"}"#).await;
        let token = json(made).await["token"].as_str().expect("a token").to_owned();
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
        for rest::Route { method, path, .. } in rest::routes() {
            let (body, status) = sent_with_a_read_token(&method, path, &id);
            let place = path
                .replace("{session}", &id)
                .replace("{command}", "c99")
                .replace("{token}", "eye")
                .replace("{action}", "reload");
            let answer = ask_with(&app, &method, &place, &token, &body).await;
            assert_eq!(answer.status(), status, "{method} {path}");
            if path == "/batch" {
                assert_eq!(json(answer).await["responses"][0]["status"], 403);
            }
        }
        let tools = crate::mcp::tools_schema();
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

    #[tokio::test]
    async fn what_is_in_no_table_is_a_problem_document_too() {
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
        let over_unix = ask(&app, Transport::Unix { peer: Some(0) }, &Method::GET, stdio_upgrade::PATH, None).await;
        assert_eq!(code(over_unix).await.as_deref(), Some("upgrade_required"));
    }

    #[tokio::test]
    async fn a_body_that_is_too_large_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        let app = app_in(dir.path()).await;
        let request = Request::builder()
            .method(Method::POST)
            .uri("/terminals")
            .extension(ConnectInfo(Transport::Unix { peer: Some(0) }))
            .header("x-request-id", "mine")
            .body(Body::from(vec![b' '; crate::limits::BODY_BYTES_MAX + 1]))
            .expect("a request");
        let response = app.oneshot(request).await.expect("never fails");
        assert_eq!(response.headers().get("x-request-id").expect("there"), "mine");
        assert_eq!(code(response).await.as_deref(), Some("body_too_large"));
    }

    #[tokio::test]
    // promise: access-1
    async fn an_address_that_others_can_reach_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        let open = Config { listen: SocketAddr::from(([0, 0, 0, 0], 0)), ..config(dir.path()) };
        assert!(matches!(serve(open, |_| ()).await, Err(ServeError::NotLoopback(_))));
    }
}
