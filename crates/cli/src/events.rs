//! `ptyd events`: what happens in all sessions, as it happens.

use std::process::ExitCode;

use api::Event;
use clap::Args;
use client::Client;
use terminal::quote;

use crate::exit::Failure;
use crate::print;
use crate::sessions::wire_name;

/// The options of `events`.
#[derive(Debug, Args)]
pub struct EventsOptions {
    /// Print each event as one line of JSON
    #[arg(long)]
    json: bool,
}

/// Prints a line for each event until the server ends.
pub async fn events(client: &Client, options: &EventsOptions) -> Result<ExitCode, Failure> {
    let mut rest = Vec::new();
    let mut failed = None;
    let follow = client.events(|piece| {
        rest.extend_from_slice(piece);
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            let Some(data) = line.strip_prefix("data:") else { continue };
            if let Err(failure) = told(data.trim(), options.json) {
                failed = Some(failure);
                return false;
            }
        }
        true
    });
    follow.await?;
    failed.map_or(Ok(ExitCode::SUCCESS), Err)
}

fn told(data: &str, is_json: bool) -> Result<(), Failure> {
    let event: Event = serde_json::from_str(data).map_err(Failure::new)?;
    if is_json {
        return print::compact_json(&event);
    }
    let session = event.name.clone().or(event.session_id.clone()).unwrap_or_else(|| "-".to_owned());
    let mut words = vec![event.at.clone(), wire_name(&event.event), quote::line(&session).into_owned()];
    words.extend(event.command_id.clone());
    words.extend(event.status.as_ref().map(wire_name));
    words.extend(event.exit_code.map(|code| format!("code {code}")));
    words.extend(event.foreground.as_ref().map(wire_name));
    words.extend(event.approval_id.clone());
    words.extend(event.driver.as_ref().map(|driver| quote::line(&driver.name).into_owned()));
    words.extend(event.ended_by.as_ref().map(wire_name));
    words.extend(event.exit.as_ref().map(|exit| quote::line(&exit.reason).into_owned()));
    print::line(words.join("  "))
}
