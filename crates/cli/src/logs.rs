//! `ptyd logs`: a session's output, ended or not, from its oldest byte on, or a part of it.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use api::{OutputQuery, OutputView, SessionStatus, TerminalSession};
use clap::Args;
use client::Client;
use jiff::Timestamp;

use crate::completion;
use crate::exit::Failure;
use crate::follow::{self, Patience};
use crate::print;
use crate::sessions;
use crate::units;

/// The options of `logs`.
#[derive(Debug, Args)]
pub struct LogsOptions {
    /// The session: its id, a unique beginning of its id, or its name [default: the only live session]
    #[arg(add = completion::sessions())]
    session: Option<String>,
    /// Continue with new output until the session ends
    #[arg(long, short)]
    follow: bool,
    /// Begin with this many of the last lines
    #[arg(long, short = 'n', alias = "lines", value_name = "LINES", conflicts_with_all = ["raw", "since"])]
    tail: Option<u64>,
    /// Begin with the output since this time: an age such as 10m, or an RFC 3339 time
    #[arg(long, value_name = "TIME", value_parser = moment)]
    since: Option<Timestamp>,
    /// Print only the output of this command, such as c7 (`ptyd history` lists them)
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["follow", "tail", "since"])]
    command: Option<String>,
    /// Print every byte, not the text that a person would see
    #[arg(long)]
    raw: bool,
    /// Print each answer of the server as one line of JSON
    #[arg(long)]
    json: bool,
    // With docker it adds timestamps, with tmux it names the session: neither is guessed.
    #[arg(short = 't', hide = true)]
    timestamps_or_target: bool,
}

/// A time of day, or so long ago.
fn moment(text: &str) -> Result<Timestamp, String> {
    if let Ok(at) = text.parse() {
        return Ok(at);
    }
    let ago: Duration = units::time(text.trim_end_matches("ago").trim_end())
        .map_err(|_| "must be an age, such as 10m, or an RFC 3339 time".to_owned())?;
    Timestamp::now().checked_sub(ago).map_err(|e| e.to_string())
}

/// Prints the output.
pub async fn logs(client: &Client, options: &LogsOptions) -> Result<ExitCode, Failure> {
    if options.timestamps_or_target {
        return Err(Failure::usage(
            "`ptyd logs` prints output without timestamps, and takes the session without -t; for times, use `ptyd history` (of \
             commands) or `ptyd record` (of output)",
        ));
    }
    let session = sessions::find_or_only(client, options.session.as_deref()).await?;
    let view = if options.raw { OutputView::Raw } else { OutputView::Text };
    let (mut next, end) = range(client, &session, options).await?;
    let mut patience = Patience::default();
    let mut out = io::stdout().lock();
    while options.follow || next < end {
        let answer = match options.follow {
            true => follow::next(client, &session.id, next, view).await,
            false => follow::until(client, &session.id, next, end, view).await,
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                patience.after(error).await?;
                continue;
            }
        };
        patience.rewarded();
        if let Some(gap) = answer.gap {
            print::note(format_args!("ptyd: {} bytes are no longer kept", gap.to - gap.from));
        }
        let is_stuck = answer.next_offset <= next && !options.follow;
        let is_over = answer.is_final && answer.next_offset >= answer.end_offset;
        next = answer.next_offset;
        if options.json {
            writeln!(out, "{}", serde_json::to_string(&answer).map_err(Failure::new)?)?;
        } else {
            out.write_all(&follow::bytes(answer)?)?;
        }
        out.flush()?;
        if is_stuck {
            break;
        }
        // A stopping server reports its released sessions as over.
        if is_over {
            match client.session(&session.id).await {
                Ok(now) if now.status == SessionStatus::Terminated || !options.follow => break,
                Ok(_) => {}
                Err(error) => patience.after(error).await?,
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The range of the output that is to be printed.
async fn range(client: &Client, session: &TerminalSession, options: &LogsOptions) -> Result<(u64, u64), Failure> {
    let (first, end) = (session.journal.first_offset, session.journal.end_offset);
    if let Some(id) = &options.command {
        let command = client.command(&session.id, id, 0).await?;
        return Ok((command.start_offset, command.end_offset.unwrap_or(end)));
    }
    if let Some(since) = options.since {
        let query = OutputQuery { since: Some(since.to_string()), max_bytes: Some(1), ..OutputQuery::default() };
        return Ok((client.output(&session.id, &query).await?.from_offset, end));
    }
    match options.tail {
        None => return Ok((first, end)),
        Some(0) => return Ok((end, end)),
        Some(_) => {}
    }
    // The answer names the bytes before these lines.
    let query = OutputQuery { max_lines: options.tail, max_chars: Some(1_000_000), ..OutputQuery::default() };
    let answer = client.output(&session.id, &query).await?;
    let from = answer.omitted.map_or(answer.from_offset, |omitted| omitted.to_offset);
    Ok((from, answer.next_offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_time_or_so_long_ago() {
        assert_eq!(moment("2026-01-02T03:04:05Z").expect("a time").to_string(), "2026-01-02T03:04:05Z");
        let before = Timestamp::now();
        for text in ["2h", "2h ago", "7200"] {
            let ago = before.duration_since(moment(text).expect("a time")).as_secs();
            assert!((7_199..=7_200).contains(&ago), "{text}: {ago}");
        }
        assert!(moment("yesterday").is_err());
    }
}
