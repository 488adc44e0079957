//! `ptyd open`: a one-time link to the page of sessions.

use std::ffi::OsStr;
use std::io;
use std::process::{Command, ExitCode, Stdio};

use api::{TicketPage, TicketRequest, TicketScope};
use clap::Args;
use client::Client;

use crate::completion;
use crate::exit::Failure;
use crate::{print, sessions};

/// The options of `open`.
#[derive(Debug, Args)]
pub struct OpenOptions {
    /// The session to show: its id, a unique beginning of its id, or its name [default: all sessions]
    #[arg(add = completion::sessions())]
    session: Option<String>,
    /// Only print the link
    #[arg(long, short)]
    print: bool,
}

/// Prints the link, and opens it where there is a display.
pub async fn open(client: &Client, options: &OpenOptions) -> Result<ExitCode, Failure> {
    let session = match &options.session {
        Some(text) => Some(sessions::find(client, text).await?.id),
        None => None,
    };
    let request = TicketRequest { session: None, page: Some(TicketPage::Sessions), scope: TicketScope::Read };
    let ticket = client.ticket(&request).await?;
    let url = ticket.url.ok_or_else(|| Failure::new("this server has another version, which lacks the page"))?;
    let url = session.map_or_else(|| url.clone(), |session| format!("{url}&session={session}"));
    print::line(&url)?;
    print::note(format_args!(
        "it works once, within {} minutes; do not share it: whoever opens it acts as you",
        ticket.expires_in / 60
    ));
    let has_display =
        ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some_and(|v| !v.is_empty()));
    if has_display && !options.print {
        // The link is printed, so a missing opener is not an error.
        if let Err(error) = show(OsStr::new(&url)) {
            print::note(format_args!("ptyd: xdg-open: {error}; open the link yourself"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The opener may outlive this command.
fn show(url: &OsStr) -> io::Result<()> {
    let mut opener = Command::new("xdg-open");
    opener.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().map(drop)
}
