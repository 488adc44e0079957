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
    /// The session (its id, a unique beginning of its id, or its name) and a regular expression; without a session, ptyd
    /// searches all live ones
    #[arg(required = true, num_args = 1..=2, value_names = ["SESSION", "PATTERN"])]
    words: Vec<String>,
    /// Search only the output of this command, such as c7
    #[arg(long)]
    command: Option<String>,
    /// Without a session: also search ended ones
    #[arg(long, short)]
    all: bool,
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

/// Prints the matches, each with its command, or `-` for background output, behind the session if all are searched. Like `grep`,
/// it ends with 1 if nothing matched.
pub async fn search(client: &Client, options: &SearchOptions) -> Result<ExitCode, Failure> {
    let (sessions, pattern) = match options.words.as_slice() {
        [pattern] => (sessions::known(client, options.all).await?, pattern),
        [session, pattern, ..] => (vec![sessions::find(client, session).await?], pattern),
        [] => return Err(Failure::usage("name a regular expression")),
    };
    let is_one = options.words.len() > 1;
    let mut has_found = false;
    for session in sessions {
        let name = quote::line(session.name.as_deref().unwrap_or(&session.id));
        let place = if is_one { String::new() } else { format!("{name} ") };
        match search_in(client, &session.id, pattern, options, &place).await {
            Ok(found) => has_found |= found,
            // Of many sessions, one may end and be removed meanwhile.
            Err(error) if !is_one => print::note(format_args!("ptyd: {}: {error}", session.id)),
            Err(error) => return Err(error),
        }
    }
    Ok(if has_found { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn search_in(
    client: &Client,
    session: &str,
    pattern: &str,
    options: &SearchOptions,
    place: &str,
) -> Result<bool, Failure> {
    let mut query = SearchQuery {
        q: pattern.to_owned(),
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
        let answer = client.search(session, &query).await?;
        if let Some(gap) = answer.gap {
            print::note(format_args!("ptyd: {} bytes are no longer kept", gap.to - gap.from));
        }
        has_found |= !answer.matches.is_empty();
        for found in &answer.matches {
            if options.json {
                let mut json = serde_json::to_value(found).map_err(Failure::new)?;
                if !place.is_empty() {
                    json["sessionId"] = session.into();
                }
                writeln!(out, "{json}")?;
            } else {
                writeln!(out, "{place}{}: {}", found.command_id.as_deref().unwrap_or("-"), quote::line(&found.text))?;
            }
        }
        out.flush()?;
        if !answer.more {
            return Ok(has_found);
        }
        query.since = Some(format!("o:{}", answer.next_offset));
    }
}
