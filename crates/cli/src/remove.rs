//! `rm` and `prune`: remove ended sessions from the disk at once.

use std::process::ExitCode;
use std::time::Duration;

use api::{ErrorCode, SessionStatus, TerminalSession};
use clap::Args;
use client::Client;
use futures_util::stream::{self, StreamExt};
use jiff::{SignedDuration, Timestamp};

use crate::completion;
use crate::exit::Failure;
use crate::kill::{Outcomes, counted};
use crate::sessions::{self, AT_ONCE_MAX};
use crate::{print, units};

/// The options of `rm`.
#[derive(Debug, Args)]
pub struct RmOptions {
    /// The sessions: their ids, unique beginnings of their ids, or their names
    #[arg(required = true)]
    #[arg(add = completion::sessions())]
    sessions: Vec<String>,
    /// Also remove live sessions, which are killed first
    #[arg(long, short)]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The options of `prune`.
#[derive(Debug, Args)]
pub struct PruneOptions {
    /// Remove all ended sessions
    #[arg(long, conflicts_with = "older_than")]
    ended: bool,
    /// Remove only sessions that ended longer ago than this, such as 1d
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    older_than: Option<Duration>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Removes sessions.
pub async fn rm(client: &Client, options: &RmOptions) -> Result<ExitCode, Failure> {
    let mut meant = Vec::new();
    let mut done = Outcomes::default();
    for text in &options.sessions {
        match sessions::find(client, text).await {
            Ok(session) => meant.push(session.id),
            Err(failure) => done.fail(failure),
        }
    }
    purge(client, meant, options.force, options.json, done).await
}

/// Removes ended sessions, all of them or the older ones.
pub async fn prune(client: &Client, options: &PruneOptions) -> Result<ExitCode, Failure> {
    if !options.ended && options.older_than.is_none() {
        return Err(Failure::usage(
            "prune removes ended sessions, with all of their output, from the disk; say which: `ptyd prune --ended` for all of \
             them, `ptyd prune --older-than 1d` for those that ended more than a day ago",
        ));
    }
    let now = Timestamp::now();
    let all = client.list(Some("terminated")).await?.terminals;
    let is_old = |session: &TerminalSession| options.older_than.is_none_or(|age| ended_before(session, now, age));
    let meant = all.into_iter().filter(|s| s.status == SessionStatus::Terminated && is_old(s)).map(|s| s.id).collect();
    purge(client, meant, false, options.json, Outcomes::default()).await
}

/// True if it ended that long ago; its start counts if its end is unknown.
fn ended_before(session: &TerminalSession, now: Timestamp, age: Duration) -> bool {
    let ended = session.exit.as_ref().map_or(session.created_at.as_str(), |exit| exit.at.as_str());
    let since = ended.parse::<Timestamp>().map(|ended| now.duration_since(ended));
    since.is_ok_and(|since| SignedDuration::try_from(age).is_ok_and(|age| since >= age))
}

async fn purge(
    client: &Client,
    meant: Vec<String>,
    force: bool,
    is_json: bool,
    mut done: Outcomes,
) -> Result<ExitCode, Failure> {
    let purge = async |id: String| {
        client.purge(&id, force).await.map_err(|error| match error.code() {
            Some(ErrorCode::SessionAlive) => Failure::new(format!(
                "session {id} is alive; end it with `ptyd kill`, or end and remove it with `ptyd rm --force`"
            )),
            _ => error.into(),
        })
    };
    let mut purges = stream::iter(meant.into_iter().map(purge)).buffered(AT_ONCE_MAX);
    while let Some(purged) = purges.next().await {
        done.add(purged);
    }
    drop(purges);
    if is_json {
        print::json(&done.answers)?;
    } else if !done.only_failed() {
        let freed: u64 = done.answers.iter().filter_map(|answer| answer.freed_bytes).sum();
        let sessions = counted(done.answers.len() as u64, "session", "sessions");
        print::note(format_args!("{sessions} removed, {} freed", units::format_size(freed)));
    }
    done.outcome()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_age_of_an_ended_session_counts_from_its_end() {
        let session: TerminalSession = serde_json::from_value(serde_json::json!({
            "id": "s0-a", "status": "terminated", "shell": "bash", "cwd": "/", "env": {}, "owner": "me",
            "createdAt": "2026-01-01T00:00:00Z", "lastActivity": "", "dimensions": {"cols": 80, "rows": 24},
            "resourceUsage": {"cpu": 0.0, "memory": 0.0, "processes": 0}, "foreground": "idle",
            "boundary": "attested", "journal": {"firstOffset": 0, "endOffset": 0}, "logFile": "",
            "connection": {"url": "", "socket": "", "mcp": "", "attach": ""},
            "exit": {"exitCode": 0, "reason": "", "at": "2026-01-03T00:00:00Z"}
        }))
        .expect("a session");
        let now: Timestamp = "2026-01-04T00:00:00Z".parse().expect("a time");
        let day = Duration::from_secs(86_400);
        assert!(ended_before(&session, now, day) && !ended_before(&session, now, 2 * day));
        let unknown = TerminalSession { exit: None, ..session };
        assert!(ended_before(&unknown, now, 2 * day) && !ended_before(&unknown, now, 4 * day));
    }
}
