//! The Rust client: typed calls over `api`, HTTP/1.1 on the server's Unix socket, on loopback, or at a URL with TLS.
//!
//! Connections are persistent. A request is repeated only if its connection turned out to be closed before any part of
//! it was sent, so no command runs twice.

mod connection;
mod error;
pub mod owner;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use api::{
    Approval, ApprovalList, Capabilities, CommandExecution, CommandList, CommandListQuery, CreateRequest, Decision,
    DecisionRequest, Dimensions, Drain, DrainQuery, ExecuteRequest, InputRequest, NamedSecret, NewToken, Output,
    OutputQuery, Problem, ProcessList, RenameRequest, Screen, SearchAnswer, SearchQuery, SecretList, SecretRequest,
    SessionEnvironment, SessionList, SessionListQuery, SignalList, SignalRequest, TakeRequest, TerminalSession,
    Terminated, Ticket, TicketRequest, TokenInfo, TokenList, TokenRequest, WaitAnswer, WaitRequest,
};
use connection::{Answer, Pool};
pub use connection::{ServerAddress, ServerUrl};
pub use error::ClientError;
use hyper::Method;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A client of one server. Cheap to clone; dropping a call's future cancels its wait and nothing else.
#[derive(Debug)]
pub struct Client {
    pool: Pool,
}

/// One call: everything in the request besides the path.
struct Call<'a> {
    method: Method,
    path: String,
    body: Option<Vec<u8>>,
    key: Option<&'a str>,
    /// The wait that the request asks for.
    waits: Duration,
}

/// The server's default wait.
const WAIT_DEFAULT: f64 = 30.0;
/// Searching a long journal takes its time.
const SEARCH: Duration = Duration::from_secs(240);
/// The longest take-over.
const TAKE_OVER_MAX: Duration = Duration::from_secs(12 * 3_600);
/// The server sends a heartbeat to followers of events more often.
const EVENTS: Duration = Duration::from_secs(60);

fn seconds(given: Option<f64>) -> Duration {
    // An invalid time is refused by the server at once.
    Duration::try_from_secs_f64(given.unwrap_or(WAIT_DEFAULT)).unwrap_or_default()
}

impl Client {
    /// Over the Unix socket; the kernel tells the server our user, and us that the server runs as this user or root.
    pub fn unix(socket: impl Into<PathBuf>) -> Self {
        Self { pool: Pool::new(ServerAddress::Unix { path: socket.into(), owner: None }, None) }
    }

    /// The same, also for a server that runs as the user `owner`.
    pub fn unix_of(socket: impl Into<PathBuf>, owner: u32) -> Self {
        Self { pool: Pool::new(ServerAddress::Unix { path: socket.into(), owner: Some(owner) }, None) }
    }

    /// Over loopback, with the bearer token.
    pub fn tcp(address: SocketAddr, token: impl Into<String>) -> Self {
        Self { pool: Pool::new(ServerAddress::Tcp(address), Some(token.into())) }
    }

    /// At a URL, with the bearer token.
    pub fn url(url: ServerUrl, token: impl Into<String>) -> Self {
        Self { pool: Pool::new(ServerAddress::Url(url), Some(token.into())) }
    }

    /// The same under this name of its own (`Ptyd-Client`).
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.pool.name = Some(name.into());
        self
    }

    /// The same as another program than `ptyd` (`User-Agent`).
    #[must_use]
    pub fn calling_itself(mut self, program: &'static str) -> Self {
        self.pool.program = program;
        self
    }

    /// Whether the server may be on another machine, where files and folders are others.
    pub fn is_elsewhere(&self) -> bool {
        self.pool.is_elsewhere()
    }

    /// Whether the server answers.
    pub async fn is_ready(&self) -> bool {
        self.send(get("/livez".to_owned())).await.is_ok_and(|a| a.status == 200)
    }

    /// `POST /terminals`.
    pub async fn create(&self, body: &CreateRequest, key: Option<&str>) -> Result<TerminalSession, ClientError> {
        self.json(Call { key, ..post("/terminals".to_owned(), body)? }).await
    }

    /// `GET /terminals`; terminated sessions only if `status` asks for them.
    pub async fn list(&self, status: Option<&str>) -> Result<SessionList, ClientError> {
        let status = status.map(|s| format!("&status={}", escaped(s))).unwrap_or_default();
        let mut all: SessionList = self.json(get(format!("/terminals?limit=1000{status}"))).await?;
        // The server returns at most a thousand at once.
        while all.terminals.len() < all.total {
            let offset = all.terminals.len();
            let next: SessionList = self.json(get(format!("/terminals?limit=1000&offset={offset}{status}"))).await?;
            if next.terminals.is_empty() {
                break;
            }
            all.terminals.extend(next.terminals);
        }
        Ok(all)
    }

    /// `GET /terminals`, with this query.
    pub async fn list_as(&self, query: &SessionListQuery) -> Result<SessionList, ClientError> {
        self.json(get(format!("/terminals?{}", query_of(query)?))).await
    }

    /// `GET /terminals/{session}`.
    pub async fn session(&self, session: &str) -> Result<TerminalSession, ClientError> {
        self.json(get(format!("/terminals/{}", escaped(session)))).await
    }

    /// `GET /terminals/{session}/environment`.
    pub async fn environment(&self, session: &str) -> Result<SessionEnvironment, ClientError> {
        self.json(get(format!("/terminals/{}/environment", escaped(session)))).await
    }

    /// `DELETE /terminals/{session}`.
    pub async fn terminate(&self, session: &str, force: bool, signal: Option<&str>) -> Result<Terminated, ClientError> {
        let signal = signal.map(|s| format!("&signal={}", escaped(s))).unwrap_or_default();
        let path = format!("/terminals/{}?force={force}{signal}", escaped(session));
        self.json(Call { method: Method::DELETE, ..get(path) }).await
    }

    /// `DELETE /terminals/{session}` with its records; a live session is only purged by force.
    pub async fn purge(&self, session: &str, force: bool) -> Result<Terminated, ClientError> {
        let path = format!("/terminals/{}?purge=true&force={force}", escaped(session));
        self.json(Call { method: Method::DELETE, ..get(path) }).await
    }

    /// `POST /tokens`.
    pub async fn make_token(&self, body: &TokenRequest) -> Result<NewToken, ClientError> {
        self.json(post("/tokens".to_owned(), body)?).await
    }

    /// `POST /tickets`.
    pub async fn ticket(&self, body: &TicketRequest) -> Result<Ticket, ClientError> {
        self.json(post("/tickets".to_owned(), body)?).await
    }

    /// `GET /capabilities`.
    pub async fn capabilities(&self) -> Result<Capabilities, ClientError> {
        self.json(get("/capabilities".to_owned())).await
    }

    /// `GET /tokens`.
    pub async fn tokens(&self) -> Result<TokenList, ClientError> {
        self.json(get("/tokens".to_owned())).await
    }

    /// `DELETE /tokens/{token}`.
    pub async fn revoke_token(&self, name: &str) -> Result<TokenInfo, ClientError> {
        self.json(Call { method: Method::DELETE, ..get(format!("/tokens/{}", escaped(name))) }).await
    }

    /// `GET /secrets`.
    pub async fn secrets(&self) -> Result<SecretList, ClientError> {
        self.json(get("/secrets".to_owned())).await
    }

    /// `PUT /secrets/{secret}`.
    pub async fn set_secret(&self, name: &str, value: String) -> Result<NamedSecret, ClientError> {
        let call = post(format!("/secrets/{}", escaped(name)), &SecretRequest { value })?;
        self.json(Call { method: Method::PUT, ..call }).await
    }

    /// `DELETE /secrets/{secret}`.
    pub async fn remove_secret(&self, name: &str) -> Result<NamedSecret, ClientError> {
        self.json(Call { method: Method::DELETE, ..get(format!("/secrets/{}", escaped(name))) }).await
    }

    /// `GET /drain`.
    pub async fn drain(&self, query: &DrainQuery) -> Result<Drain, ClientError> {
        let waits = Duration::from_millis(query.wait_ms.unwrap_or_default());
        self.json(Call { waits, ..get(format!("/drain?{}", query_of(query)?)) }).await
    }

    /// `PUT /drain`, or `DELETE /drain`.
    pub async fn set_drain(&self, is_draining: bool) -> Result<Drain, ClientError> {
        let method = if is_draining { Method::PUT } else { Method::DELETE };
        self.json(Call { method, ..get("/drain".to_owned()) }).await
    }

    /// `GET /approvals`.
    pub async fn approvals(&self) -> Result<ApprovalList, ClientError> {
        self.json(get("/approvals".to_owned())).await
    }

    /// `POST /approvals/{approval}`.
    pub async fn decide(&self, approval: &str, decision: Decision) -> Result<Approval, ClientError> {
        self.json(post(format!("/approvals/{}", escaped(approval)), &DecisionRequest { decision })?).await
    }

    /// `POST …/rename`.
    pub async fn rename(&self, session: &str, body: &RenameRequest) -> Result<TerminalSession, ClientError> {
        self.json(post(format!("/terminals/{}/rename", escaped(session)), body)?).await
    }

    /// `POST …/resize`.
    pub async fn resize(&self, session: &str, size: Dimensions) -> Result<TerminalSession, ClientError> {
        self.json(post(format!("/terminals/{}/resize", escaped(session)), &size)?).await
    }

    /// `POST …/take`, and with `hold` until the take-over has ended.
    pub async fn take(&self, session: &str, body: &TakeRequest) -> Result<TerminalSession, ClientError> {
        let waits = if body.hold { TAKE_OVER_MAX } else { Duration::ZERO };
        self.json(Call { waits, ..post(format!("/terminals/{}/take", escaped(session)), body)? }).await
    }

    /// `DELETE …/take`.
    pub async fn give_back(&self, session: &str, force: bool) -> Result<TerminalSession, ClientError> {
        let path = format!("/terminals/{}/take?force={force}", escaped(session));
        self.json(Call { method: Method::DELETE, ..get(path) }).await
    }

    /// `POST …/execute`.
    pub async fn execute(
        &self,
        session: &str,
        body: &ExecuteRequest,
        key: Option<&str>,
    ) -> Result<CommandExecution, ClientError> {
        let waits = if body.wait_for_completion == Some(false) { Duration::ZERO } else { seconds(body.timeout) };
        self.json(Call { key, waits, ..post(format!("/terminals/{}/execute", escaped(session)), body)? }).await
    }

    /// `GET …/commands`.
    pub async fn commands(&self, session: &str) -> Result<CommandList, ClientError> {
        self.json(get(format!("/terminals/{}/commands?limit=1000", escaped(session)))).await
    }

    /// The same, a page of them.
    pub async fn commands_as(&self, session: &str, query: &CommandListQuery) -> Result<CommandList, ClientError> {
        self.json(get(format!("/terminals/{}/commands?{}", escaped(session), query_of(query)?))).await
    }

    /// `GET …/commands/{command}`, with at most `max_chars` characters of its output.
    pub async fn command(&self, session: &str, command: &str, max_chars: u64) -> Result<CommandExecution, ClientError> {
        let path = format!("/terminals/{}/commands/{}?maxChars={max_chars}", escaped(session), escaped(command));
        self.json(get(path)).await
    }

    /// `POST …/input`.
    pub async fn input(
        &self,
        session: &str,
        body: &InputRequest,
        key: Option<&str>,
    ) -> Result<WaitAnswer, ClientError> {
        let waits = seconds(body.timeout);
        self.json(Call { key, waits, ..post(format!("/terminals/{}/input", escaped(session)), body)? }).await
    }

    /// `POST …/signal`.
    pub async fn signal(&self, session: &str, body: &SignalRequest) -> Result<TerminalSession, ClientError> {
        self.json(post(format!("/terminals/{}/signal", escaped(session)), body)?).await
    }

    /// `GET …/signals`.
    pub async fn signals(&self, session: &str) -> Result<SignalList, ClientError> {
        self.json(get(format!("/terminals/{}/signals", escaped(session)))).await
    }

    /// `GET …/processes`.
    pub async fn processes(&self, session: &str) -> Result<ProcessList, ClientError> {
        self.json(get(format!("/terminals/{}/processes", escaped(session)))).await
    }

    /// `POST …/actions/{action}`.
    pub async fn act(&self, session: &str, action: &str) -> Result<WaitAnswer, ClientError> {
        self.json(post(format!("/terminals/{}/actions/{}", escaped(session), escaped(action)), &())?).await
    }

    /// `POST …/wait`.
    pub async fn wait(&self, session: &str, body: &WaitRequest) -> Result<WaitAnswer, ClientError> {
        let waits = seconds(body.timeout);
        self.json(Call { waits, ..post(format!("/terminals/{}/wait", escaped(session)), body)? }).await
    }

    /// `GET …/output`.
    pub async fn output(&self, session: &str, query: &OutputQuery) -> Result<Output, ClientError> {
        let waits = Duration::from_millis(query.wait_ms.unwrap_or_default());
        self.json(Call { waits, ..get(format!("/terminals/{}/output?{}", escaped(session), query_of(query)?)) }).await
    }

    /// `GET …/search`.
    pub async fn search(&self, session: &str, query: &SearchQuery) -> Result<SearchAnswer, ClientError> {
        let path = format!("/terminals/{}/search?{}", escaped(session), query_of(query)?);
        self.json(Call { waits: SEARCH, ..get(path) }).await
    }

    /// `GET …/screen`.
    pub async fn screen(&self, session: &str) -> Result<Screen, ClientError> {
        self.json(get(format!("/terminals/{}/screen", escaped(session)))).await
    }

    /// `GET …/recording`, an asciicast of this version, piece by piece.
    pub async fn recording(
        &self,
        session: &str,
        version: u64,
        mut piece: impl FnMut(&[u8]),
    ) -> Result<(), ClientError> {
        let path = format!("/terminals/{}/recording?version={version}", escaped(session));
        let mut all = |data: &[u8]| {
            piece(data);
            true
        };
        self.pool.get(&path, Duration::ZERO, &mut all).await.and_then(|got| got.map_err(|a| refusal(&a)))
    }

    /// `GET /events`, the bytes of its server-sent events, until `piece` returns false or the server ends.
    pub async fn events(&self, mut piece: impl FnMut(&[u8]) -> bool) -> Result<(), ClientError> {
        self.pool.get("/events", EVENTS, &mut piece).await.and_then(|got| got.map_err(|a| refusal(&a)))
    }

    /// `GET /mcp/stdio`: the raw MCP stream, over the Unix socket.
    pub async fn mcp_stdio(&self) -> Result<TokioIo<Upgraded>, ClientError> {
        let upgraded = self.pool.answered(Duration::ZERO, self.pool.upgrade("/mcp/stdio", "ptyd-mcp")).await;
        upgraded.and_then(|upgraded| upgraded.map_err(|a| refusal(&a)))
    }

    async fn json<T: DeserializeOwned>(&self, call: Call<'_>) -> Result<T, ClientError> {
        let answer = self.send(call).await?;
        if !(200..300).contains(&answer.status) {
            return Err(refusal(&answer));
        }
        serde_json::from_slice(&answer.body).map_err(|e| ClientError::Strange(e.to_string()))
    }

    async fn send(&self, call: Call<'_>) -> Result<Answer, ClientError> {
        let body = call.body.unwrap_or_default().into();
        self.pool.answered(call.waits, self.pool.send(call.method, &call.path, body, call.key)).await
    }
}

fn get<'a>(path: String) -> Call<'a> {
    Call { method: Method::GET, path, body: None, key: None, waits: Duration::ZERO }
}

fn post<'a>(path: String, body: &impl Serialize) -> Result<Call<'a>, ClientError> {
    let body = serde_json::to_vec(body).map_err(|e| ClientError::Strange(e.to_string()))?;
    Ok(Call { method: Method::POST, path, body: Some(body), key: None, waits: Duration::ZERO })
}

fn refusal(answer: &Answer) -> ClientError {
    match serde_json::from_slice::<Problem>(&answer.body) {
        Ok(problem) => ClientError::Refused(Box::new(problem)),
        Err(_) => ClientError::Strange(format!("status {}", answer.status)),
    }
}

/// A flat struct as a query string.
fn query_of(query: &impl Serialize) -> Result<String, ClientError> {
    let value = serde_json::to_value(query).map_err(|e| ClientError::Strange(e.to_string()))?;
    let pairs = value.as_object().into_iter().flatten().map(|(name, value)| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("{}={}", escaped(name), escaped(&text))
    });
    Ok(pairs.collect::<Vec<_>>().join("&"))
}

/// All characters but the unreserved ones (RFC 3986 §2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

fn escaped(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, RESERVED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_has_exactly_the_given_filters() {
        let query = OutputQuery { since: Some("o:7".into()), wait_ms: Some(500), ..OutputQuery::default() };
        assert_eq!(query_of(&query).expect("plain"), "since=o%3A7&waitMs=500");
        assert_eq!(query_of(&OutputQuery::default()).expect("plain"), "");
    }

    #[tokio::test]
    // promise: cli-7
    async fn a_command_gives_up_on_a_silent_server_after_the_requested_wait() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("socket");
        // The kernel accepts the connection; no process ever reads it.
        let _silent = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
        let mut client = Client::unix(&path);
        client.pool.answer_max = Duration::from_millis(20);
        let wait = WaitRequest { timeout: Some(0.1), ..WaitRequest::default() };
        let given_up_after = |error: ClientError| match error {
            ClientError::Silent(after) if !error.is_outage() => after.as_millis(),
            other => panic!("{other}"),
        };
        assert_eq!(client.session("s").await.map(drop).map_err(given_up_after), Err(20));
        assert_eq!(client.wait("s", &wait).await.map(drop).map_err(given_up_after), Err(120));
        assert_eq!(client.recording("s", 2, |_| ()).await.map_err(given_up_after), Err(20));
        assert_eq!(client.mcp_stdio().await.map(drop).map_err(given_up_after), Err(20));
    }

    #[test]
    fn an_error_without_a_problem_document_is_not_reported_as_a_refusal() {
        let strange = refusal(&Answer { status: 502, body: "<html>".into() });
        assert_eq!(strange.to_string(), "the server's answer cannot be read: status 502");
        assert!(!strange.is_outage());
    }
}
