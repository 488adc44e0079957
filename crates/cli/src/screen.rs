//! `ptyd screen`: the screen of a session as it is now.

use std::io::{self, Write};
use std::process::ExitCode;

use api::Screen;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use client::Client;

use crate::completion;
use crate::exit::Failure;
use crate::{print, sessions};

/// The options of `screen`.
#[derive(Debug, Args)]
pub struct ScreenOptions {
    /// The session: its id, a unique beginning of its id, or its name [default: the only live session]
    #[arg(add = completion::sessions())]
    session: Option<String>,
    /// Print the bytes that paint the screen, with its colours
    #[arg(long, short = 'e', conflicts_with = "json")]
    ansi: bool,
    /// Print JSON, with the cursor, the title and the rows that changed
    #[arg(long)]
    json: bool,
    // tmux prints its pane only with this option.
    #[arg(short = 'p', hide = true)]
    _prints: bool,
    #[command(flatten)]
    habits: sessions::Habits,
}

/// Prints the screen.
pub async fn screen(client: &Client, options: &ScreenOptions) -> Result<ExitCode, Failure> {
    let session = sessions::find_or_only(client, options.session.as_deref()).await?;
    let screen = client.screen(&session.id).await?;
    if options.json {
        print::json(&screen)?;
    } else if options.ansi {
        let mut out = io::stdout().lock();
        out.write_all(&STANDARD.decode(&screen.ansi_base64).map_err(Failure::new)?)?;
        out.flush()?;
    } else {
        for row in used_rows(&screen) {
            print::line(print::harmless(row))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The rows down to the last one with text.
pub fn used_rows(screen: &Screen) -> &[String] {
    let used = screen.rows.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1);
    screen.rows.get(..used).unwrap_or_default()
}
