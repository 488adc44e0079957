//! `kill`: ends sessions, many at once.

use std::process::ExitCode;

use api::{ErrorCode, Terminated};
use clap::Args;
use client::Client;
use futures_util::stream::{self, StreamExt};

use crate::completion;
use crate::exit::Failure;
use crate::print;
use crate::sessions::{self, AT_ONCE_MAX, Habits};

/// The options of `kill`.
#[derive(Debug, Args)]
pub struct KillOptions {
    /// The sessions: their ids, unique beginnings of their ids, or their names
    #[arg(required_unless_present = "all")]
    #[arg(add = completion::sessions())]
    sessions: Vec<String>,
    /// End all live sessions
    #[arg(long, conflicts_with = "sessions")]
    all: bool,
    /// Kill all processes at once, without a chance to clean up
    #[arg(long, short, short_alias = '9')]
    force: bool,
    /// Send this signal first; TERM and KILL follow [default: HUP]
    #[arg(long, short)]
    signal: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    habits: Habits,
}

/// Ends sessions. A failure of one does not affect the others.
pub async fn kill(client: &Client, options: &KillOptions) -> Result<ExitCode, Failure> {
    let meant = if options.all {
        client.list(None).await?.terminals.into_iter().map(|session| session.id).collect()
    } else {
        options.sessions.clone()
    };
    let end = async |text: String| {
        let id = if options.all { text } else { sessions::find(client, &text).await?.id };
        match client.terminate(&id, options.force, options.signal.as_deref()).await {
            // The list has the sessions of all nodes, and each node ends its own.
            Err(error) if options.all && error.code() == Some(ErrorCode::OtherNode) => Ok(None),
            ended => Ok(Some(ended?)),
        }
    };
    let (mut done, mut elsewhere) = (Outcomes::default(), 0);
    let mut ends = stream::iter(meant.into_iter().map(end)).buffered(AT_ONCE_MAX);
    while let Some(ended) = ends.next().await {
        let Some(ended) = ended.transpose() else {
            elsewhere += 1;
            continue;
        };
        if let (Ok(ended), false) = (&ended, options.json) {
            let over = if ended.was_over { "; the session had already ended" } else { "" };
            let processes = counted(ended.killed, "process", "processes");
            print::note(format_args!("{}: {processes} ended{over}", ended.session.id));
        }
        done.add(ended);
    }
    drop(ends);
    if elsewhere > 0 {
        let them = counted(elsewhere, "session", "sessions");
        print::note(format_args!("ptyd: {them} of other nodes not ended; run `ptyd kill --all` on each node"));
    }
    let left: u64 = done.answers.iter().map(|ended| ended.left).sum();
    if options.json {
        print::json(&done.answers)?;
    }
    if left > 0 {
        return Err(Failure::new(format!("{} did not end", counted(left, "process", "processes"))));
    }
    done.outcome()
}

/// A number with its noun.
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// The outcomes of one request for each of many sessions.
#[derive(Debug, Default)]
pub struct Outcomes {
    /// The answers.
    pub answers: Vec<Terminated>,
    failed: Option<Failure>,
}

impl Outcomes {
    /// Records an answer; failures are printed as they come, and the last one is the command's.
    pub fn add(&mut self, answer: Result<Terminated, Failure>) {
        match answer {
            Ok(answer) => self.answers.push(answer),
            Err(failure) => self.fail(failure),
        }
    }

    /// Records a failure.
    pub fn fail(&mut self, failure: Failure) {
        if let Some(before) = self.failed.replace(failure) {
            print::note(format_args!("ptyd: {before}"));
        }
    }

    /// Whether there is no answer, only a failure.
    pub fn only_failed(&self) -> bool {
        self.answers.is_empty() && self.failed.is_some()
    }

    /// The exit code, or the failure that is still to be printed.
    pub fn outcome(self) -> Result<ExitCode, Failure> {
        self.failed.map_or(Ok(ExitCode::SUCCESS), Err)
    }
}
