//! `ptyd search`: prints all matching lines of a session's output, fetched in pages.

use std::io::{self, Write};
use std::process::ExitCode;

use api::{OutputKind, SearchQuery};
use clap::{Args, ValueEnum};
use client::Client;
use terminal::quote;

use crate::exit::Failure;
use crate::print;
use crate::sessions;

/// The options of `search`.
#[derive(Debug, Args)]
pub struct SearchOptions {
    /// The session: its id, a unique beginning of its id, or its name
    session: String,
    /// Print lines that match this regular expression
    pattern: String,
    /// Search only the output of this command, such as c7
    #[arg(long)]
    command: Option<String>,
    /// Search only output of this kind
    #[arg(long, value_enum)]
    kind: Option<Kind>,
    /// Search from this position: o:OFFSET, an RFC 3339 time, or last (your last reading) [default: all output]
    #[arg(long)]
    since: Option<String>,
    /// Print each match as one line of JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kind {
    Command,
    Background,
}

/// Matches per request.
const PAGE: u64 = 1_000;

/// Prints the matches, each with its command, or `-` for background output. Like `grep`, it ends with 1 if nothing
/// matched.
pub async fn search(client: &Client, options: &SearchOptions) -> Result<ExitCode, Failure> {
    let session = sessions::find(client, &options.session).await?;
    let mut query = SearchQuery {
        q: options.pattern.clone(),
        since: options.since.clone(),
        command_id: options.command.clone(),
        kind: options.kind.map(|kind| match kind {
            Kind::Command => OutputKind::Command,
            Kind::Background => OutputKind::Background,
        }),
        limit: Some(PAGE),
    };
    let mut out = io::stdout().lock();
    let mut has_found = false;
    loop {
        let answer = client.search(&session.id, &query).await?;
        if let Some(gap) = answer.gap {
            print::note(format_args!("ptyd: {} bytes are no longer kept", gap.to - gap.from));
        }
        has_found |= !answer.matches.is_empty();
        for found in &answer.matches {
            if options.json {
                writeln!(out, "{}", serde_json::to_string(found).map_err(Failure::new)?)?;
            } else {
                writeln!(out, "{}: {}", found.command_id.as_deref().unwrap_or("-"), quote::line(&found.text))?;
            }
        }
        out.flush()?;
        if !answer.more {
            return Ok(if has_found { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        query.since = Some(format!("o:{}", answer.next_offset));
    }
}
