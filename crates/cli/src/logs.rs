//! `ptyd logs`: a session's output, ended or not, from its oldest byte on.

use std::io::{self, Write};
use std::process::ExitCode;

use api::{OutputView, SessionStatus};
use clap::Args;
use client::Client;

use crate::exit::Failure;
use crate::follow::{self, Patience};
use crate::print;
use crate::sessions;

/// The options of `logs`.
#[derive(Debug, Args)]
pub struct LogsOptions {
    /// The session: its id, a unique beginning of its id, or its name
    session: String,
    /// Continue with new output until the session ends
    #[arg(long, short)]
    follow: bool,
    /// Print every byte, not the text that a person would see
    #[arg(long)]
    raw: bool,
    /// Print each answer of the server as one line of JSON
    #[arg(long)]
    json: bool,
}

/// Prints the output.
pub async fn logs(client: &Client, options: &LogsOptions) -> Result<ExitCode, Failure> {
    let session = sessions::find(client, &options.session).await?;
    let view = if options.raw { OutputView::Raw } else { OutputView::Text };
    let mut next = session.journal.first_offset;
    let end = session.journal.end_offset;
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
