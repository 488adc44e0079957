//! The person at this terminal: sends typed bytes to a session unchanged, and resizes the session to the terminal.
//!
//! Both survive a restart of the server: the idempotency keys keep anything from being typed twice.

use std::io::{self, Read};

use api::{Dimensions, ErrorCode, InputRequest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use client::{Client, ClientError};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use crate::detach_key::{DetachScan, DetachScanner};
use crate::exit::Failure;
use crate::follow::Patience;
use crate::print;
use crate::tty;

/// Reads of the keyboard that may wait to be sent: during a paste the terminal waits, and our memory does not grow.
const KEYBOARD_READS_MAX: usize = 16;

/// Why typing ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TypingEnd {
    /// By the detach keys.
    Detached,
    /// The terminal was closed.
    Gone,
}

/// Sends typed bytes until the person detaches; in read-only mode only the detach keys have an effect.
pub async fn typing(
    client: &Client,
    session: &str,
    mut keyboard: DetachScanner,
    looks_on: bool,
    mut patience: Patience,
) -> Result<TypingEnd, Failure> {
    let key_prefix = format!("typed-{}-{}", std::process::id(), jiff::Timestamp::now().as_nanosecond());
    let mut typed = read_keyboard();
    let mut count = 0u64;
    while let Some(mut bytes) = typed.recv().await {
        // Bytes typed during the last request are sent together.
        while let Ok(more) = typed.try_recv() {
            bytes.extend(more);
        }
        let (bytes, detaches) = match keyboard.take(&bytes) {
            DetachScan::Bytes(bytes) => (bytes, false),
            DetachScan::Detach(bytes) => (bytes, true),
        };
        if !bytes.is_empty() && !looks_on {
            count += 1;
            enter(client, session, &bytes, &format!("{key_prefix}-{count}"), &mut patience).await?;
        }
        if detaches {
            return Ok(TypingEnd::Detached);
        }
    }
    Ok(TypingEnd::Gone)
}

/// Reads the keyboard in a thread of its own, because a read of a terminal cannot be cancelled; it ends with the
/// process.
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

async fn enter(
    client: &Client,
    session: &str,
    bytes: &[u8],
    key: &str,
    patience: &mut Patience,
) -> Result<(), Failure> {
    let request = InputRequest { input_base64: Some(STANDARD.encode(bytes)), ..InputRequest::default() };
    loop {
        match client.input(session, &request, Some(key)).await {
            Ok(_) => break,
            // The person hears that somebody else drives.
            Err(e) if e.code() == Some(ErrorCode::SessionDriven) => {
                print::lines("\x07");
                break;
            }
            // A program that does not read loses input, as on any terminal; the watching loop notices the session's
            // end.
            Err(e) if matches!(e.code(), Some(ErrorCode::InputStalled | ErrorCode::SessionEnded)) => break,
            Err(e) => patience.after(e).await?,
        }
    }
    patience.rewarded();
    Ok(())
}

/// Resizes the session to this terminal; returns the size.
pub async fn fit(client: &Client, session: &str) -> Result<Option<Dimensions>, ClientError> {
    match tty::size() {
        Some(size) => client.resize(session, size).await.map(|_| Some(size)),
        None => Ok(None),
    }
}

/// The changes of this terminal's size from now on.
pub fn size_changes() -> io::Result<Signal> {
    signal(SignalKind::window_change())
}

/// Follows the size of this terminal; ends only with an error.
pub async fn resizing(
    mut changes: Signal,
    mut patience: Patience,
    mut fit: impl AsyncFnMut() -> Result<(), ClientError>,
) -> Failure {
    loop {
        changes.recv().await;
        while let Err(error) = fit().await {
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
