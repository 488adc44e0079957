//! Test support of the MCP modules: a dispatch that answers from a script, sessions and reports to answer with, and a client
//! that speaks the wire line by line, because what is on the wire is what is promised.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};
use tokio::sync::mpsc;

use super::dispatch_port::Server;
use super::stdio;
use ptyd_core::action::{
    Action, ActionError, Boundary, Boxed, CommandStatus, CommandView, Composite, Dispatch, EndedBy, Foreground,
    MaskedText, Outcome, PatternShare, Report, SessionStatus, SessionView, TextView, Tools, Usage,
};
use ptyd_core::dispatch::{Caller, expand};
use ptyd_core::ids::{CommandId, SessionId};
use ptyd_core::principal::{Detach, Principal, Scope};

pub(super) const ID: &str = "s0-k3v9q2m7xa";

/// Messages of one test: it receives a handful.
const WORDS_MAX: usize = 64;

/// Answers an action, or `None` to let it wait for ever.
type Script = dyn Fn(&Action) -> Option<Result<Outcome, ActionError>> + Send + Sync;

/// A dispatch without shells behind it.
pub(super) struct Fake {
    script: Box<Script>,
    /// The requests, in order.
    pub asked: Mutex<Vec<Action>>,
    /// The server stops.
    pub stopping: AtomicBool,
    words: mpsc::Sender<String>,
}

impl Fake {
    /// A dispatch, and word of who comes, goes, and gives up waiting.
    pub fn new(
        script: impl Fn(&Action) -> Option<Result<Outcome, ActionError>> + Send + Sync + 'static,
    ) -> (Arc<Self>, mpsc::Receiver<String>) {
        let (words, heard) = mpsc::channel(WORDS_MAX);
        (
            Arc::new(Self {
                script: Box::new(script),
                asked: Mutex::default(),
                stopping: AtomicBool::default(),
                words,
            }),
            heard,
        )
    }
}

/// Says so when a wait is given up.
struct GivenUp(mpsc::Sender<String>);

impl Drop for GivenUp {
    fn drop(&mut self) {
        let _ = self.0.try_send("given up".to_owned());
    }
}

impl Dispatch for Fake {
    fn dispatch<'a>(&'a self, principal: &'a Principal, action: Action) -> Boxed<'a, Result<Outcome, ActionError>> {
        if let Action::Composite(composite @ (Composite::Dialogue(_) | Composite::AwaitOutput(_))) = action {
            return Box::pin(async move {
                let time_limits = &Arc::default();
                let caller = Caller { dispatch: self, principal, soft_timeout: Duration::ZERO, time_limits };
                expand(caller, composite).await
            });
        }
        let answer = (self.script)(&action);
        self.asked.lock().expect("no test panics with it").push(action);
        Box::pin(async move {
            match answer {
                Some(answer) => answer,
                None => {
                    let _given_up = GivenUp(self.words.clone());
                    let _ = self.words.try_send("waiting".to_owned());
                    std::future::pending().await
                }
            }
        })
    }

    fn patterns(&self, _who: &Principal) -> Arc<PatternShare> {
        Arc::default()
    }

    fn detached(&self) -> Arc<dyn Dispatch> {
        panic!("no test starts a session")
    }
}

impl Server for Fake {
    fn node(&self) -> u16 {
        0
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    fn stopping(&self) -> Boxed<'static, ()> {
        Box::pin(std::future::pending())
    }

    fn client_here(&self, client: &str) {
        let _ = self.words.try_send(format!("{client} here"));
    }

    fn resume_reading<'a>(&'a self, _: &'a Principal, _: &'a BTreeMap<SessionId, u64>) -> Boxed<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    fn client_gone(&self, client: &str, grace: Detach) {
        let _ = self.words.try_send(format!("{client} gone {grace:?}"));
    }
}

/// A client on the other end of the stream.
pub(super) struct Client {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    write: WriteHalf<DuplexStream>,
}

impl Client {
    /// Connects with a hello that names the client.
    pub async fn connect(server: Arc<dyn Server>, client: &str) -> Self {
        let hello =
            json!({ "v": 1, "client": client, "cwd": "L3g=", "env": [], "umask": 18, "tools": "all", "detach": 0 });
        let mut this = Self::raw(server);
        this.send(&hello).await;
        this
    }

    /// Connects without saying anything.
    pub fn raw(server: Arc<dyn Server>) -> Self {
        let (near, far) = tokio::io::duplex(1 << 16);
        tokio::spawn(stdio::serve(far, server, Principal::named("tester", Scope::Write), ""));
        let (read, write) = tokio::io::split(near);
        Self { lines: BufReader::new(read).lines(), write }
    }

    /// Writes one message.
    pub async fn send(&mut self, message: &Value) {
        self.write.write_all(format!("{message}\n").as_bytes()).await.expect("the door reads");
    }

    /// Reads one message.
    pub async fn next(&mut self) -> Value {
        let line = self.lines.next_line().await.expect("the door writes").expect("the door is open");
        serde_json::from_str(&line).expect("JSON")
    }

    /// Asks and returns the answer, in whatever order it comes.
    pub async fn ask(&mut self, message: Value) -> Value {
        self.send(&message).await;
        loop {
            let answer = self.next().await;
            if answer["id"] == message["id"] {
                return answer;
            }
        }
    }

    /// The handshake of the older revisions.
    pub async fn initialize(&mut self, version: &str) -> Value {
        let params =
            json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } });
        let answer =
            self.ask(json!({ "jsonrpc": "2.0", "id": "init", "method": "initialize", "params": params })).await;
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        answer
    }

    /// Calls a tool in the older revisions.
    pub async fn call(&mut self, id: u64, tool: &str, arguments: Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments, "_meta": { "ptyd/request": id } });
        self.ask(json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })).await["result"].take()
    }
}

/// A running bash at its prompt.
pub(super) fn session() -> SessionView {
    SessionView {
        id: SessionId::parse(ID).expect("an id"),
        name: None,
        status: SessionStatus::Running,
        shell: "bash".to_owned(),
        pid: Some(4711),
        cwd: PathBuf::from("/app"),
        env: Vec::new(),
        created_at: SystemTime::UNIX_EPOCH,
        last_activity: SystemTime::UNIX_EPOCH,
        owner: "alice".to_owned(),
        cols: 120,
        rows: 40,
        usage: Usage::default(),
        foreground: Foreground::Idle,
        boundary: Boundary::Attested,
        current_command: None,
        current_command_text: None,
        last_ended: None,
        first_offset: 0,
        end_offset: 100,
        exit: None,
        trouble: None,
        is_unreachable: false,
        is_cwd_gone: false,
        tools: Tools { python: Some(PathBuf::from("/usr/bin/python3")), ..Tools::default() },
        profile: None,
        confinement: None,
        policy: None,
        startup_failed: Vec::new(),
        log_file: PathBuf::from("/state/sessions/s0/journal"),
        limits: Vec::new(),
        limits_hit: Vec::new(),
        driver: None,
        client_name: None,
        viewers: Vec::new(),
    }
}

/// A command that ended with 0 within a second.
pub(super) fn command() -> CommandView {
    CommandView {
        id: CommandId(7),
        session: session().id,
        command: "make".to_owned(),
        status: CommandStatus::Completed,
        started_at: SystemTime::UNIX_EPOCH,
        completed_at: Some(SystemTime::UNIX_EPOCH + Duration::from_millis(20)),
        lasted: Some(Duration::from_millis(20)),
        exit_code: Some(0),
        signal: None,
        pipestatus: vec![0],
        limits_hit: Vec::new(),
        error: None,
        start_offset: 10,
        end_offset: Some(20),
        output_size: 10,
        cwd: None,
        boundary: Boundary::Attested,
    }
}

/// Text that is output of no session.
pub(super) fn constant(text: impl Into<String>) -> MaskedText {
    MaskedText::from(&*text.into().leak())
}

/// Its report, with this output.
pub(super) fn report(output: &str) -> Report {
    Report {
        read_before: 0,
        background: None,
        session: session(),
        command: Some(command()),
        ended_by: EndedBy::Ended,
        waited: Duration::from_millis(20),
        output: TextView { head: constant(output), to: 20, ..TextView::default() },
        screen: None,
        accepted_bytes: None,
        line_exit: None,
        is_typed_at_prompt: false,
        ignored_by: None,
        is_given_up: false,
        time_limit: None,
        task: None,
        matched: None,
    }
}
