//! `ptyd send` and `ptyd keys`: input for a session, and what comes of it.

use std::process::ExitCode;
use std::time::Duration;

use api::InputRequest;
use clap::Args;
use client::Client;
use ptyd_core::keys::{parse, with_text};

use crate::completion;
use crate::exit::Failure;
use crate::sessions::{Habits, find};
use crate::wait::{code, words};
use crate::{print, screen, tty, units};

/// The options of `send`.
#[derive(Debug, Args)]
pub struct SendOptions {
    /// The session: its id, a unique beginning of its id, or its name
    #[arg(add = completion::sessions())]
    session: String,
    /// The input; several words are joined with spaces. Put -- before text that begins with -
    #[arg(required_unless_present = "secret")]
    text: Vec<String>,
    /// Press keys: each word is the name of a key, such as C-c, Up or Enter
    #[arg(long)]
    keys: bool,
    /// Do not press Enter after the text
    #[arg(long, short = 'n')]
    no_newline: bool,
    // Enter is the default.
    #[arg(long = "enter", hide = true, conflicts_with = "no_newline")]
    _enter: bool,
    /// Type one line from standard input and never record it (other users of the machine can read arguments)
    #[arg(long, conflicts_with_all = ["text", "keys"])]
    secret: bool,
    #[command(flatten)]
    waits: WaitAfterInput,
    #[command(flatten)]
    habits: Habits,
}

/// Types input at a session.
pub async fn send(client: &Client, options: &SendOptions) -> Result<ExitCode, Failure> {
    let session = find(client, &options.session).await?;
    let (input, keys) = match options.keys {
        true => (None, Some(options.text.clone())),
        false if options.secret => (Some(line_of_input()?), None),
        false => (Some(options.text.join(" ")), None),
    };
    let end_with_newline = !options.keys && !options.no_newline;
    let request = InputRequest { input, keys, end_with_newline, secret: options.secret, ..InputRequest::default() };
    options.waits.input(client, &session.id, request).await
}

/// The options of `keys`.
#[derive(Debug, Args)]
pub struct KeysOptions {
    /// The session: its id, a unique beginning of its id, or its name
    #[arg(add = completion::sessions())]
    session: String,
    /// The names of the keys, such as C-c, Up, Enter or Down*3; ptyd types every other word as it is
    #[arg(required = true)]
    keys: Vec<String>,
    #[command(flatten)]
    waits: WaitAfterInput,
    #[command(flatten)]
    habits: Habits,
}

/// Presses keys at a session.
pub async fn keys(client: &Client, options: &KeysOptions) -> Result<ExitCode, Failure> {
    let session = find(client, &options.session).await?;
    let names = &options.keys;
    let (input, keys) = match with_text(names) {
        Some(sequence) => (None, Some(vec![sequence])),
        None if names.iter().all(|name| parse(name).is_err()) => (Some(names.concat()), None),
        None => (None, Some(names.clone())),
    };
    let request = InputRequest { input, keys, end_with_newline: false, ..InputRequest::default() };
    options.waits.input(client, &session.id, request).await
}

/// Whether `send` and `keys` wait.
#[derive(Debug, Default, Args)]
pub struct WaitAfterInput {
    /// Wait until the program ends or wants input, for at most this long (without a time: 30s), and print the new output or the
    /// screen
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "30s", value_parser = units::time)]
    wait: Option<Duration>,
}

impl WaitAfterInput {
    /// Types the input; prints what came of it if that is awaited.
    pub async fn input(&self, client: &Client, session: &str, request: InputRequest) -> Result<ExitCode, Failure> {
        let request = InputRequest { timeout: self.wait.map(|most| most.as_secs_f64()), ..request };
        let answer = client.input(session, &request, None).await?;
        if self.wait.is_none() {
            return Ok(ExitCode::SUCCESS);
        }
        let screen = answer.screen.as_ref().map(|screen| screen::used_rows(screen).join("\n"));
        let shown = print::harmless(screen.as_deref().unwrap_or(answer.output.trim_end_matches('\n')));
        if !shown.is_empty() {
            print::line(shown)?;
        }
        print::line(format_args!("[{}]", words(&answer)))?;
        Ok(code(&answer))
    }
}

/// One line of standard input; a terminal does not show it.
fn line_of_input() -> Result<String, Failure> {
    if let Some(line) = tty::unseen_line("Secret: ")? {
        return Ok(line);
    }
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
