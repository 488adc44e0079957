//! `ptyd attach`: a session in this terminal. Its screen is painted once, then its stream is shown from that offset on;
//! what is typed goes to it as it is.
//!
//! Three loops run side by side (typing, watching, resizing), and the first that ends says how the visit ended. All of
//! them outlive a restart of the server: the offset and the idempotency keys keep anything from happening twice.

use std::fmt;
use std::io::{self, Read, Write};
use std::process::ExitCode;

use api::{ErrorCode, InputRequest, OutputView, SessionStatus};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use client::{Client, ClientError};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use crate::exit::Failure;
use crate::follow::{self, Patience};
use crate::keyboard::{DetachKey, Keyboard, Typed};
use crate::say;
use crate::{sessions, tty};

/// The options of `attach`.
#[derive(Debug, Args)]
pub struct AttachOptions {
    /// An id, a unique part of its beginning, or a name
    session: String,
    /// The keys that leave the session running and come back here
    #[arg(long, value_name = "KEYS", default_value = r"C-\ C-\")]
    detach_key: DetachKey,
}

/// How a visit ended.
enum Ending {
    /// By the keys.
    Detached,
    /// With the session; how, in words.
    Ended(String),
    /// This terminal went away, or we were told to stop.
    Stopped,
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Detached => f.write_str("detached; the session goes on"),
            Self::Ended(how) => write!(f, "session ended {how}"),
            Self::Stopped => f.write_str("stopped; the session goes on"),
        }
    }
}

/// Reads of the keyboard that may wait to be sent: at a paste the terminal waits, not our memory grows.
const KEYBOARD_READS_MAX: usize = 16;

/// Attaches until the session or the visit ends.
pub async fn attach(client: &Client, options: &AttachOptions) -> Result<ExitCode, Failure> {
    if !tty::is_interactive() {
        return Err(Failure::usage("attach needs a terminal; use logs and send in scripts"));
    }
    let session = sessions::find(client, &options.session).await?;
    if session.status == SessionStatus::Terminated {
        return Err(Failure::new(format!("session {} has ended; `ptyd logs` shows its output", session.id)));
    }
    let mut term = signal(SignalKind::terminate())?;
    let mut hup = signal(SignalKind::hangup())?;
    let ending = {
        let _raw = tty::Raw::enter()?;
        let keyboard = Keyboard::new(options.detach_key.clone());
        tokio::select! {
            ending = typing(client, &session.id, keyboard, read_keyboard()) => ending,
            ending = watching(client, &session.id) => ending,
            failure = resizing(client, &session.id) => Err(failure),
            _ = term.recv() => Ok(Ending::Stopped),
            _ = hup.recv() => Ok(Ending::Stopped),
        }
    }?;
    say::note(format_args!("[{}: {ending}]", session.name.as_deref().unwrap_or(&session.id)));
    Ok(ExitCode::SUCCESS)
}

/// The keyboard in a thread of its own, because a read of a terminal cannot be given up; it ends with the process.
fn read_keyboard() -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel(KEYBOARD_READS_MAX);
    std::thread::spawn(move || {
        let mut buffer = [0u8; 4096];
        while let Ok(read @ 1..) = io::stdin().lock().read(&mut buffer) {
            if sender.blocking_send(buffer[..read].to_vec()).is_err() {
                break;
            }
        }
    });
    receiver
}

async fn typing(
    client: &Client,
    session: &str,
    mut keyboard: Keyboard,
    mut typed: mpsc::Receiver<Vec<u8>>,
) -> Result<Ending, Failure> {
    let visit = format!("attach-{}-{}", std::process::id(), jiff::Timestamp::now().as_nanosecond());
    let mut count = 0u64;
    while let Some(mut bytes) = typed.recv().await {
        // What was typed while the last request was on its way goes out in one.
        while let Ok(more) = typed.try_recv() {
            bytes.extend(more);
        }
        let (bytes, detaches) = match keyboard.take(&bytes) {
            Typed::Bytes(bytes) => (bytes, false),
            Typed::Detach(bytes) => (bytes, true),
        };
        if !bytes.is_empty() {
            count += 1;
            enter(client, session, &bytes, &format!("{visit}-{count}")).await?;
        }
        if detaches {
            return Ok(Ending::Detached);
        }
    }
    // The terminal is gone.
    Ok(Ending::Stopped)
}

async fn enter(client: &Client, session: &str, bytes: &[u8], key: &str) -> Result<(), Failure> {
    let request = InputRequest { input_base64: Some(STANDARD.encode(bytes)), ..InputRequest::default() };
    let mut patience = Patience::default();
    loop {
        match client.input(session, &request, Some(key)).await {
            Ok(_) => return Ok(()),
            // A program that does not read loses what is typed, as on any terminal; the session's end is seen by the
            // one who watches.
            Err(e) if matches!(e.code(), Some(ErrorCode::InputStalled | ErrorCode::SessionEnded)) => return Ok(()),
            Err(e) => patience.after(e).await?,
        }
    }
}

async fn watching(client: &Client, session: &str) -> Result<Ending, Failure> {
    let mut patience = Patience::default();
    let mut from = None;
    loop {
        let step: Result<_, ClientError> = async {
            match from {
                Some(offset) => follow::next(client, session, offset, OutputView::Stream).await.map(Step::Output),
                None => {
                    fit(client, session).await?;
                    client.screen(session).await.map(Step::Screen)
                }
            }
        }
        .await;
        match step {
            Ok(Step::Screen(screen)) => {
                let paint = STANDARD.decode(&screen.ansi_base64).map_err(Failure::new)?;
                show(&[b"\x1b[0m\x1b[H\x1b[2J", paint.as_slice()].concat())?;
                from = Some(screen.offset);
            }
            // What is gone cannot be shown: the screen as it is now can.
            Ok(Step::Output(output)) if output.gap.is_some() => from = None,
            Ok(Step::Output(output)) => {
                let is_over = output.is_final && output.next_offset >= output.end_offset;
                from = Some(output.next_offset);
                show(&follow::bytes(output)?)?;
                if is_over && let Some(how) = how_it_ended(client, session, &mut patience).await? {
                    return Ok(Ending::Ended(how));
                }
            }
            Err(e) if e.code() == Some(ErrorCode::SessionEnded) => {
                if let Some(how) = how_it_ended(client, session, &mut patience).await? {
                    return Ok(Ending::Ended(how));
                }
            }
            Err(e) => {
                patience.after(e).await?;
                continue;
            }
        }
        patience.rewarded();
    }
}

/// What one question of the watcher brought.
enum Step {
    Screen(api::Screen),
    Output(api::Output),
}

/// How the session ended, in words; `None` when it has not, because a server that stops speaks of a session that it
/// has let go as of one that is over.
async fn how_it_ended(client: &Client, session: &str, patience: &mut Patience) -> Result<Option<String>, Failure> {
    let session = loop {
        match client.session(session).await {
            Ok(session) => break session,
            Err(e) => patience.after(e).await?,
        }
    };
    let words = session.exit.map(|e| match (e.exit_code, e.signal) {
        (Some(code), _) => format!("with code {code}"),
        (None, Some(signal)) => format!("by signal {signal}"),
        (None, None) => format!("({})", e.reason),
    });
    let ended = session.status == SessionStatus::Terminated;
    Ok(ended.then(|| words.unwrap_or_else(|| "(how is not known)".to_owned())))
}

fn show(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(Failure::new)
}

/// Makes the session as large as this terminal.
async fn fit(client: &Client, session: &str) -> Result<(), ClientError> {
    match tty::size() {
        Some(size) => client.resize(session, size).await.map(|_| ()),
        None => Ok(()),
    }
}

/// Follows the size of this terminal; only ends when it cannot.
async fn resizing(client: &Client, session: &str) -> Failure {
    let mut changes = match signal(SignalKind::window_change()) {
        Ok(changes) => changes,
        Err(error) => return error.into(),
    };
    let mut patience = Patience::default();
    loop {
        changes.recv().await;
        while let Err(error) = fit(client, session).await {
            if error.code() == Some(ErrorCode::SessionEnded) {
                break;
            }
            if let Err(failure) = patience.after(error).await {
                return failure;
            }
        }
        patience.rewarded();
    }
}
