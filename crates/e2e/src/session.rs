//! A session as a test speaks of it: what a command gives, what is typed, which bytes are in the journal.

use std::sync::Arc;

use api::{
    CommandExecution, CommandStatus, ErrorCode, ExecuteRequest, InputRequest, NumberOrName, OutputQuery, OutputView,
    SignalRequest, TerminalSession, Terminated, WaitAnswer, WaitRequest,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use client::{Client, ClientError};

use crate::PATIENCE;

/// A session on a server.
#[derive(Debug, Clone)]
pub struct Session {
    client: Arc<Client>,
    /// Its id.
    pub id: String,
}

/// The size of one read of a journal.
const CHUNK: u64 = 4 << 20;

impl Session {
    /// The session with this id.
    pub fn new(client: Arc<Client>, id: String) -> Self {
        Self { client, id }
    }

    /// Runs a command to its end.
    pub async fn run(&self, command: &str) -> CommandExecution {
        self.run_as(ask(command)).await
    }

    /// Runs a command in a special way.
    pub async fn run_as(&self, request: ExecuteRequest) -> CommandExecution {
        self.try_run(&request).await.unwrap_or_else(|error| panic!("{:?} in {}: {error}", request.command, self.id))
    }

    /// Runs a command that may be refused.
    pub async fn try_run(&self, request: &ExecuteRequest) -> Result<CommandExecution, ClientError> {
        self.client.execute(&self.id, request, None).await
    }

    /// Why a command is refused; panics when it is not.
    pub async fn refusal(&self, command: &str) -> Option<ErrorCode> {
        let refused = self.try_run(&ask(command)).await;
        refused.err().unwrap_or_else(|| panic!("{command:?} was accepted")).code()
    }

    /// The exit code and the output of a command that ends.
    pub async fn gives(&self, command: &str) -> (i32, String) {
        let done = self.run(command).await;
        match (done.status, done.exit_code) {
            (CommandStatus::Completed, Some(code)) => (code, done.output.unwrap_or_default()),
            (
                CommandStatus::Running | CommandStatus::Failed | CommandStatus::Terminated | CommandStatus::Completed,
                _,
            ) => {
                panic!("{command:?} did not end with a code: {done:?}")
            }
        }
    }

    /// Starts a command and does not wait.
    pub async fn begin(&self, command: &str) -> CommandExecution {
        self.run_as(ExecuteRequest { wait_for_completion: Some(false), ..ask(command) }).await
    }

    /// Runs a command until its output matches.
    pub async fn run_until(&self, command: &str, pattern: &str) -> CommandExecution {
        let done = self.run_as(ExecuteRequest { wait_for: Some(pattern.to_owned()), ..ask(command) }).await;
        assert_eq!(done.ended_by, Some(api::EndedBy::Matched), "{command:?} until {pattern:?}: {done:?}");
        done
    }

    /// Waits for the end of a command.
    pub async fn end_of(&self, command: &CommandExecution) -> CommandExecution {
        let begun = std::time::Instant::now();
        loop {
            let now = self.command(&command.id).await;
            if now.status != CommandStatus::Running {
                return now;
            }
            assert!(begun.elapsed() < PATIENCE, "{:?} still runs", now.command);
            // A wait is for the newest command that runs: after the end of this one, for the one that started its shell.
            let request = WaitRequest { timeout: Some(0.5), max_chars: Some(0), ..WaitRequest::default() };
            match self.client.wait(&self.id, &request).await {
                Ok(_) => {}
                Err(error) if error.code() == Some(ErrorCode::SessionEnded) => {}
                Err(error) => panic!("waiting for {:?}: {error}", now.command),
            }
        }
    }

    /// A command as it is now.
    pub async fn command(&self, id: &str) -> CommandExecution {
        self.client.command(&self.id, id, 30_000).await.expect("a known command")
    }

    /// Types a line, and waits for what comes of it.
    pub async fn types(&self, line: &str) -> WaitAnswer {
        let request = InputRequest {
            input: Some(line.to_owned()),
            end_with_newline: true,
            timeout: Some(PATIENCE.as_secs_f64()),
            ..InputRequest::default()
        };
        self.input(&request).await
    }

    /// Types bytes, and does not wait.
    pub async fn sends(&self, bytes: &[u8]) -> WaitAnswer {
        self.input(&InputRequest { input_base64: Some(STANDARD.encode(bytes)), ..InputRequest::default() }).await
    }

    /// Presses keys, and waits until the output (or the screen) matches where there is a pattern.
    pub async fn presses(&self, keys: &[&str], pattern: Option<&str>) -> WaitAnswer {
        let keys = Some(keys.iter().map(|key| (*key).to_owned()).collect());
        let timeout = pattern.map(|_| PATIENCE.as_secs_f64());
        self.input(&InputRequest { keys, wait_for: pattern.map(str::to_owned), timeout, ..InputRequest::default() })
            .await
    }

    /// The code of an input's refusal.
    pub async fn input_refusal(&self, request: &InputRequest) -> Option<ErrorCode> {
        let refused = self.client.input(&self.id, request, None).await;
        refused.err().unwrap_or_else(|| panic!("{request:?} was accepted")).code()
    }

    /// Types in a special way.
    pub async fn input(&self, request: &InputRequest) -> WaitAnswer {
        self.client.input(&self.id, request, None).await.unwrap_or_else(|error| panic!("input to {}: {error}", self.id))
    }

    /// Signals the foreground.
    pub async fn signal(&self, name: &str) -> TerminalSession {
        let request = SignalRequest { signal: NumberOrName::Name(name.to_owned()), target: None };
        self.client.signal(&self.id, &request).await.unwrap_or_else(|error| panic!("{name} to {}: {error}", self.id))
    }

    /// Waits in a special way.
    pub async fn wait(&self, request: &WaitRequest) -> WaitAnswer {
        self.client.wait(&self.id, request).await.unwrap_or_else(|error| panic!("a wait on {}: {error}", self.id))
    }

    /// The session as it is now.
    pub async fn look(&self) -> TerminalSession {
        self.client.session(&self.id).await.expect("a known session")
    }

    /// The screen as lines.
    pub async fn screen(&self) -> Vec<String> {
        self.client.screen(&self.id).await.expect("a known session").rows
    }

    /// Output, in whatever way.
    pub async fn output(&self, query: &OutputQuery) -> api::Output {
        self.client.output(&self.id, query).await.expect("a known session")
    }

    /// The bytes of a range, as they came.
    pub async fn bytes(&self, from: u64, to: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut next = from;
        while next < to {
            let query = OutputQuery {
                since: Some(format!("o:{next}")),
                max_bytes: Some(CHUNK.min(to - next)),
                view: Some(OutputView::Raw),
                ..OutputQuery::default()
            };
            let output = self.output(&query).await;
            assert_eq!((output.from_offset, output.gap), (next, None), "a range that is kept");
            assert!(output.next_offset > next, "nothing at {next}, although {to} was promised");
            next = output.next_offset;
            bytes.extend(STANDARD.decode(output.data_base64.expect("the raw view")).expect("base64"));
        }
        bytes
    }

    /// The bytes of a command, as they came.
    pub async fn bytes_of(&self, command: &CommandExecution) -> Vec<u8> {
        let end = command.end_offset.expect("it has ended");
        self.bytes(command.start_offset, end).await
    }

    /// Everything that is kept, as it came.
    pub async fn journal(&self) -> Vec<u8> {
        let journal = self.look().await.journal;
        self.bytes(journal.first_offset, journal.end_offset).await
    }

    /// Ends it, gently.
    pub async fn ends(&self) -> Terminated {
        self.client.terminate(&self.id, false, None).await.expect("a known session")
    }
}

fn ask(command: &str) -> ExecuteRequest {
    ExecuteRequest { command: command.to_owned(), timeout: Some(PATIENCE.as_secs_f64()), ..ExecuteRequest::default() }
}

/// The output of `seq 1 last` on a terminal.
pub fn seq(last: usize) -> Vec<u8> {
    let mut text = String::new();
    for number in 1..=last {
        text.push_str(&number.to_string());
        text.push_str("\r\n");
    }
    text.into_bytes()
}

/// Whether this bash has loaded its builtins. Without them all works, but a command takes twice the time.
pub async fn has_builtins(bash: &Session) -> bool {
    bash.gives("type -t ___ptyd_run __ptyd_run __ptyd_is_usual __ptyd_is_reading __ptyd_history").await
        == (0, "builtin\n".repeat(5))
}
