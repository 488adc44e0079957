//! `drain`: has the server take no new sessions, and waits until the last session has ended.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use api::{Drain, DrainQuery};
use clap::Args;
use client::{Client, ClientError};
use futures_util::stream::{self, StreamExt};

use crate::exit::Failure;
use crate::kill::{Outcomes, counted};
use crate::sessions::AT_ONCE_MAX;
use crate::{print, units};

/// How long one request waits for the next end of a session.
const WAIT: Duration = Duration::from_secs(60);

const AFTER_HELP: &str = "Running sessions are not affected. Until the server stops or you run ptyd drain --cancel, it \
 refuses new sessions with server_draining, and /readyz returns 503. If you interrupt this command, the server \
 continues to drain. The next server accepts sessions again.\nExit codes: 0 no session is left, 124 the deadline has passed, 5 the server has stopped \
    meanwhile, 1 a person has cancelled the drain.";

/// The options of `drain`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct DrainOptions {
    /// Stop waiting after this time, and leave the sessions running [default: wait until the last one has ended]
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    deadline: Option<Duration>,
    /// At the deadline, end the sessions that are left, as ptyd kill does
    #[arg(long, requires = "deadline")]
    kill: bool,
    /// Accept new sessions again
    #[arg(long, conflicts_with_all = ["deadline", "kill"])]
    cancel: bool,
}

/// Drains the server.
pub async fn drain(client: &Client, options: &DrainOptions) -> Result<ExitCode, Failure> {
    let began = Instant::now();
    let mut now = client.set_drain(!options.cancel).await?;
    if options.cancel {
        return Ok(ExitCode::SUCCESS);
    }
    print::note(format_args!("{}", left(&now)));
    while now.sessions > 0 {
        let rest = options.deadline.map_or(WAIT, |deadline| deadline.saturating_sub(began.elapsed()));
        if rest.is_zero() {
            return if options.kill { end_all(client, &now).await } else { Err(Failure::timed_out(late(&now))) };
        }
        let wait_ms = u64::try_from(rest.min(WAIT).as_millis()).unwrap_or(u64::MAX).max(1);
        let query = DrainQuery { sessions: Some(now.sessions), wait_ms: Some(wait_ms) };
        let next = client.drain(&query).await.map_err(|error| lost(error, &now))?;
        if !next.draining {
            return Err(Failure::new(
                "the server takes sessions again: a person has cancelled the drain, or started another server",
            ));
        }
        if next.sessions != now.sessions {
            print::note(format_args!("{}", left(&next)));
        }
        now = next;
    }
    Ok(ExitCode::SUCCESS)
}

fn left(now: &Drain) -> String {
    match now.sessions {
        0 => "no session is left".to_owned(),
        sessions => format!("{} left", counted(sessions, "session is", "sessions are")),
    }
}

fn late(now: &Drain) -> String {
    format!("the deadline has passed, and {}; the server still drains", left(now))
}

/// The failure of a server that has gone away meanwhile.
fn lost(error: ClientError, now: &Drain) -> Failure {
    if error.is_outage() {
        return Failure::no_server(format_args!(
            "the server has stopped; {} running",
            counted(now.sessions, "session keeps", "sessions keep")
        ));
    }
    error.into()
}

/// Ends what is left on this node, and waits until it has ended.
async fn end_all(client: &Client, now: &Drain) -> Result<ExitCode, Failure> {
    print::note(format_args!("the deadline has passed: ending {}", counted(now.sessions, "session", "sessions")));
    let own = format!("s{}-", now.node);
    let mut done = Outcomes::default();
    // A list has the sessions of all nodes.
    let sessions = client.list(None).await?.terminals.into_iter().filter(|session| session.id.starts_with(&own));
    let mut ends = stream::iter(sessions.map(async |session| client.terminate(&session.id, false, None).await))
        .buffered(AT_ONCE_MAX);
    while let Some(ended) = ends.next().await {
        done.add(ended.map_err(Failure::from));
    }
    drop(ends);
    let processes: u64 = done.answers.iter().map(|ended| ended.left).sum();
    if processes > 0 {
        return Err(Failure::new(format!("{} did not end", counted(processes, "process", "processes"))));
    }
    done.outcome()
}
