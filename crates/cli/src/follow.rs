//! Reads a session's output as it comes, from an offset on, and retries while the server restarts.
//!
//! Offsets mean the same in every server, so a client that remembers its offset loses nothing and sees nothing twice.

use std::time::{Duration, Instant};

use api::{Output, OutputQuery, OutputView};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use client::{Client, ClientError};

use crate::daemon;
use crate::exit::Failure;
use crate::paths::Paths;
use crate::print;

/// How long one request waits for new output; an answer without any is simply requested again.
const POLL_MS: u64 = 20_000;
/// The size of one answer: large enough for a flood, small enough to be shown while the next one is in transit.
const CHUNK: u64 = 256 << 10;
/// How long a restart may take.
const OUTAGE_MAX: Duration = Duration::from_secs(30);
/// The pause between two attempts.
const AGAIN: Duration = Duration::from_millis(100);

/// Output from `since` on, at least one byte unless the poll timed out or the session has ended.
pub async fn next(client: &Client, session: &str, since: u64, view: OutputView) -> Result<Output, ClientError> {
    let query = OutputQuery {
        since: Some(format!("o:{since}")),
        view: Some(view),
        max_bytes: Some(CHUNK),
        wait_ms: Some(POLL_MS),
        max_chars: Some(1_000_000),
        ..OutputQuery::default()
    };
    client.output(session, &query).await
}

/// Existing output, at most up to `end`.
pub async fn until(
    client: &Client,
    session: &str,
    since: u64,
    end: u64,
    view: OutputView,
) -> Result<Output, ClientError> {
    let query = OutputQuery {
        since: Some(format!("o:{since}")),
        view: Some(view),
        max_bytes: Some(CHUNK.min(end - since)),
        max_chars: Some(1_000_000),
        ..OutputQuery::default()
    };
    client.output(session, &query).await
}

/// The bytes of an answer in any view.
pub fn bytes(output: Output) -> Result<Vec<u8>, Failure> {
    match (output.data_base64, output.text) {
        (Some(data), _) => STANDARD.decode(data).map_err(Failure::new),
        (None, text) => Ok(print::harmless(&text.unwrap_or_default()).into_bytes()),
    }
}

/// The pause before an attempt whose success no event announces.
pub async fn moment() {
    tokio::time::sleep_until(tokio::time::Instant::now() + AGAIN).await;
}

/// Retries during a restart of the server, up to a time limit.
#[derive(Debug, Default)]
pub struct Patience {
    since: Option<Instant>,
    /// The paths for starting the next server, if there is none.
    starts: Option<Paths>,
}

impl Patience {
    /// With starting the next server, as `ptyd mcp` does.
    pub fn that_starts(paths: &Paths) -> Self {
        Self { since: None, starts: Some(paths.clone()).filter(|paths| paths.url.is_none()) }
    }

    /// Repeats a request until there is an answer, or a refusal that a retry would not change.
    pub async fn ask<T>(&mut self, mut question: impl AsyncFnMut() -> Result<T, ClientError>) -> Result<T, Failure> {
        loop {
            match question().await {
                Ok(answer) => {
                    self.rewarded();
                    return Ok(answer);
                }
                Err(error) => self.after(error).await?,
            }
        }
    }

    /// Pauses before the next attempt; fails if a retry would not help.
    pub async fn after(&mut self, error: ClientError) -> Result<(), Failure> {
        let since = *self.since.get_or_insert_with(Instant::now);
        if !error.is_outage() || since.elapsed() > OUTAGE_MAX {
            return Err(error.into());
        }
        if let (ClientError::NoServer(_), Some(paths)) = (&error, self.starts.clone()) {
            // If starting fails, the next attempt looks for a server again.
            let _ = tokio::task::spawn_blocking(move || daemon::connect_or_start(&paths)).await;
        }
        moment().await;
        Ok(())
    }

    /// The server answers again.
    pub fn rewarded(&mut self) {
        self.since = None;
    }
}
