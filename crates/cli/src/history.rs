//! `ptyd history`: the commands of a session, with their exit codes and times.

use std::process::ExitCode;
use std::time::Duration;

use api::{CommandExecution, CommandListQuery, CommandStatus};
use clap::Args;
use client::Client;
use jiff::Timestamp;
use terminal::quote;

use crate::completion;
use crate::exit::Failure;
use crate::print;
use crate::sessions::{self, age, wire_name};
use crate::table::table;

/// The options of `history`.
#[derive(Debug, Args)]
pub struct HistoryOptions {
    /// The session: its id, a unique beginning of its id, or its name [default: the only live session]
    #[arg(add = completion::sessions())]
    session: Option<String>,
    /// Print at most this many of the last commands
    #[arg(long, short = 'n', alias = "tail", value_name = "COUNT", default_value_t = 100)]
    limit: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Commands per request.
const PAGE: u64 = 1_000;

/// Prints the commands, oldest first.
pub async fn history(client: &Client, options: &HistoryOptions) -> Result<ExitCode, Failure> {
    let session = sessions::find_or_only(client, options.session.as_deref()).await?;
    let page = async |offset: u64, limit: u64| {
        client.commands_as(&session.id, &CommandListQuery { limit: Some(limit), offset: Some(offset) }).await
    };
    let total = page(0, 1).await?.total as u64;
    let mut next = total.saturating_sub(options.limit);
    let mut all = Vec::new();
    while next < total {
        let commands = page(next, PAGE.min(total - next)).await?.commands;
        if commands.is_empty() {
            break;
        }
        next += commands.len() as u64;
        all.extend(commands);
    }
    if options.json {
        print::json(&all)?;
    } else if all.is_empty() {
        print::note("ptyd: no commands yet");
    } else {
        let head = ["ID", "CODE", "TIME", "AGE", "COMMAND"].map(str::to_owned).to_vec();
        let now = Timestamp::now();
        print::data(table(std::iter::once(head).chain(all.iter().map(|command| row(command, now))).collect()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn row(command: &CommandExecution, now: Timestamp) -> Vec<String> {
    let code = match (command.status, command.exit_code, &command.signal) {
        (_, Some(code), Some(signal)) => format!("{code} ({signal})"),
        (_, Some(code), None) => code.to_string(),
        (CommandStatus::Completed, None, _) => "unknown".to_owned(),
        (status, None, _) => wire_name(&status),
    };
    let begun: Option<Timestamp> = command.started_at.parse().ok();
    let took = command.duration_ms.map(|ms| match ms {
        0 => "< 1ms".to_owned(),
        ms => format!("{:.1?}", Duration::from_millis(ms)),
    });
    vec![
        command.id.clone(),
        code,
        took.unwrap_or_else(|| "-".to_owned()),
        begun.map_or_else(|| "-".to_owned(), |begun| age(now.duration_since(begun))),
        quote::line(&command.command).into_owned(),
    ]
}
