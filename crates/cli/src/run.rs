//! `ptyd run`: a command in a session of its own (or a given one), its bytes on stdout, its exit code as our own.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use api::{
    CommandExecution, CommandStatus, ErrorCode, ExecuteRequest, NumberOrName, OutputView, SignalRequest,
    TerminalSession, WaitRequest,
};
use clap::Args;
use client::{Client, ClientError};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::Failure;
use crate::follow::{self, Patience};
use crate::serve::quoted;
use crate::sessions::{self, StartOptions};

/// The options of `run`.
#[derive(Debug, Args)]
pub struct RunOptions {
    /// In this session instead of one of its own, which ends with the command
    #[arg(long, short, conflicts_with_all = ["cwd", "shell", "env"])]
    session: Option<String>,
    #[command(flatten)]
    start: StartOptions,
    /// Give up after this long, with exit code 124
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
    /// Print the command as JSON when it has ended, not its output
    #[arg(long)]
    json: bool,
    /// The command: one word is a line for the shell, several are a program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| "must be seconds, such as 30 or 0.5".to_owned())?;
    Duration::try_from_secs_f64(number).map_err(|e| e.to_string())
}

/// A shell may take this long to its first prompt.
const FIRST_PROMPT: Duration = Duration::from_secs(10);

/// The first wait. The first byte of a command's output is known once the shell has reported its start, which takes a
/// millisecond; output that comes before this is over is shown after it.
const START: Duration = Duration::from_millis(50);

/// Runs the command.
pub async fn run(client: &Client, options: &RunOptions) -> Result<ExitCode, Failure> {
    let text = match options.command.as_slice() {
        [line] => line.clone(),
        words => words.iter().map(|w| quoted(w)).collect::<Vec<_>>().join(" "),
    };
    // Caught before there is anything to interrupt, so that no ^C is lost and no session stays behind.
    let interrupts = signal(SignalKind::interrupt())?;
    let terminations = signal(SignalKind::terminate())?;
    let session = match &options.session {
        Some(given) => sessions::find(client, given).await?,
        None => client.create(&options.start.request(None)?, None).await?,
    };
    let within = async {
        let running = one(client, &session, &text, options.json, interrupts, terminations);
        match options.timeout {
            Some(most) => tokio::time::timeout(most, running).await.unwrap_or_else(|_| {
                Err(Failure::timed_out(format!("the command still ran after {} s", most.as_secs_f64())))
            }),
            None => running.await,
        }
    };
    let result = within.await;
    if options.session.is_none() {
        // An ended session is no error; a server that is gone cannot be asked and ends nothing.
        let _ = client.terminate(&session.id, result.is_err(), None).await;
    }
    result
}

async fn one(
    client: &Client,
    session: &TerminalSession,
    text: &str,
    json: bool,
    mut interrupts: Signal,
    mut terminations: Signal,
) -> Result<ExitCode, Failure> {
    let command = accepted(client, session, text).await?;
    let following = async {
        let done = if json { finished(client, &command).await? } else { printed(client, &command).await? };
        let code = code(client, &done).await?;
        if json {
            let whole = client.command(&done.session_id, &done.id, 1_000_000).await?;
            sessions::print_json(&whole)?;
        }
        Ok(code)
    };
    tokio::pin!(following);
    let mut interrupted = false;
    loop {
        tokio::select! {
            done = &mut following => return done,
            // The first is the program's, as if it had been typed; one that does not end by it is left by the second.
            _ = interrupts.recv() => {
                if interrupted {
                    return Err(Failure::new("interrupted"));
                }
                interrupted = true;
                let request = SignalRequest { signal: NumberOrName::Name("INT".to_owned()), target: None };
                let _ = client.signal(&session.id, &request).await;
            }
            _ = terminations.recv() => return Err(Failure::new("terminated")),
        }
    }
}

/// Has the command accepted; a fresh shell may not be at its prompt yet.
async fn accepted(client: &Client, session: &TerminalSession, text: &str) -> Result<CommandExecution, Failure> {
    let request = ExecuteRequest {
        command: text.to_owned(),
        timeout: Some(START.as_secs_f64()),
        max_chars: Some(0),
        ..ExecuteRequest::default()
    };
    // A server that restarts meanwhile is asked again, and the key keeps the command from running twice.
    let key = format!("run-{}-{}", std::process::id(), session.id);
    let begun = std::time::Instant::now();
    let mut patience = Patience::default();
    loop {
        match client.execute(&session.id, &request, Some(&key)).await {
            Ok(command) => return Ok(command),
            Err(e) if e.code() == Some(ErrorCode::SessionNotReady) && begun.elapsed() < FIRST_PROMPT => {
                follow::moment().await;
            }
            Err(e) => patience.after(e).await?,
        }
    }
}

/// Prints the command's bytes as they come, and exactly those, until it has ended.
async fn printed(client: &Client, command: &CommandExecution) -> Result<CommandExecution, Failure> {
    let mut next = command.start_offset;
    let ended = finished(client, command);
    tokio::pin!(ended);
    let mut patience = Patience::default();
    let done = loop {
        let chunk = tokio::select! {
            done = &mut ended => break done?,
            chunk = follow::next(client, &command.session_id, next, OutputView::Stream) => chunk,
        };
        // The chunk may begin before the command's output or reach beyond it; only what is known after it was read tells.
        let looked = match chunk {
            Ok(chunk) => client.command(&command.session_id, &command.id, 0).await.map(|now| (chunk, now)),
            Err(e) => Err(e),
        };
        let chunk = match looked {
            Ok((_, now)) if now.status != CommandStatus::Running => break now,
            Ok((_, now)) if now.start_offset > next => {
                next = now.start_offset;
                continue;
            }
            Ok((chunk, _)) => chunk,
            Err(e) => {
                patience.after(e).await?;
                continue;
            }
        };
        patience.rewarded();
        say_gap(&chunk);
        next = chunk.next_offset;
        write(&follow::bytes(chunk)?)?;
    };
    next = next.max(done.start_offset);
    let end = done.end_offset.unwrap_or(next);
    let mut view = OutputView::Stream;
    while next < end {
        let chunk = follow::until(client, &command.session_id, next, end, view).await?;
        say_gap(&chunk);
        // A sequence that the command left unfinished is held back as long as it could become a marker; now it cannot.
        if chunk.next_offset <= next {
            if view == OutputView::Raw {
                break;
            }
            view = OutputView::Raw;
            continue;
        }
        next = chunk.next_offset;
        write(&follow::bytes(chunk)?)?;
    }
    Ok(done)
}

/// The command once it has ended.
async fn finished(client: &Client, command: &CommandExecution) -> Result<CommandExecution, Failure> {
    let request = WaitRequest { timeout: Some(3_600.0), max_chars: Some(0), ..WaitRequest::default() };
    let mut patience = Patience::default();
    loop {
        let looked: Result<_, ClientError> = async {
            let now = client.command(&command.session_id, &command.id, 0).await?;
            if now.status == CommandStatus::Running {
                client.wait(&command.session_id, &request).await?;
            }
            Ok(now)
        }
        .await;
        match looked {
            Ok(now) if now.status != CommandStatus::Running => return Ok(now),
            Ok(_) => patience.rewarded(),
            // The session ended while it was waited for: the command's record says how.
            Err(e) if e.code() == Some(ErrorCode::SessionEnded) => {}
            Err(e) => patience.after(e).await?,
        }
    }
}

/// The command's own code; that of its shell when the shell ended with it.
async fn code(client: &Client, done: &CommandExecution) -> Result<ExitCode, Failure> {
    let as_u8 = |code: i32| ExitCode::from(u8::try_from(code & 0xff).unwrap_or(1));
    if let Some(code) = done.exit_code {
        return Ok(as_u8(code));
    }
    if done.status == CommandStatus::Terminated {
        let exit = client.session(&done.session_id).await?.exit;
        let signo = exit.as_ref().and_then(|e| e.signal.as_deref()).and_then(sys::signal::parse);
        if let Some(code) = exit.as_ref().and_then(|e| e.exit_code).or(signo.map(|s| 128 + s)) {
            return Ok(as_u8(code));
        }
    }
    Err(Failure::new(done.error.clone().unwrap_or_else(|| "the exit code is not known".to_owned())))
}

fn say_gap(chunk: &api::Output) {
    if let Some(gap) = chunk.gap {
        eprintln!("ptyd: {} bytes of output are gone", gap.to - gap.from);
    }
}

fn write(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(Failure::new)
}
