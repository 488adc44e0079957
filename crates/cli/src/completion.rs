//! `ptyd completion` and `ptyd man`: what a shell and `man` read about this command line.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use api::TerminalSession;
use clap::{Args, Command, FromArgMatches};
use clap_complete::env::{CompleteEnv, Shells};
use clap_complete::{ArgValueCandidates, CompletionCandidate, Shell};
use terminal::quote;

use crate::exit::Failure;
use crate::login;
use crate::paths::{PathOptions, Paths};
use crate::serve::quoted;

/// The options of `completion`.
#[derive(Debug, Args)]
pub struct CompletionOptions {
    /// The shell [default: the one of $SHELL]
    #[arg(value_enum)]
    shell: Option<Shell>,
}

/// The variable in which a shell's script asks this program for what can stand next.
const ASKS: &str = "PTYD_COMPLETE";
/// How long a person waits for a key.
const PATIENCE: Duration = Duration::from_secs(1);

/// Prints a script that completes this command line in a shell: it asks this program, which knows the sessions.
pub fn completion(options: &CompletionOptions) -> Result<ExitCode, Failure> {
    let shell = options.shell.or_else(Shell::from_env).ok_or_else(|| Failure::usage("name the shell, such as bash"))?;
    let shells = Shells::builtins();
    let shell = shells.completer(&shell.to_string()).expect("invariant: both lists of shells are clap's");
    let mut script = Vec::new();
    shell.write_registration(ASKS, "ptyd", "ptyd", "ptyd", &mut script)?;
    write(&script)
}

/// Answers a shell's script, if it asks, and exits.
pub fn answer(command: fn() -> Command) {
    CompleteEnv::with_factory(command).var(ASKS).complete();
}

/// Completes the names of the live sessions, and the ids of those without a name that every shell takes as a word.
pub fn sessions() -> ArgValueCandidates {
    ArgValueCandidates::new(|| live().unwrap_or_default())
}

/// The live sessions; none without a server, which completion does not start.
fn live() -> Option<Vec<CompletionCandidate>> {
    let matches = PathOptions::augment_args(Command::new("ptyd")).try_get_matches_from(["ptyd"]).ok()?;
    let paths = Paths::resolve(&PathOptions::from_arg_matches(&matches).ok()?).ok()?;
    let client = login::client(&paths).ok()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let all = runtime.block_on(async { tokio::time::timeout(PATIENCE, client.list(None)).await }).ok()?.ok()?;
    let candidate = |session: TerminalSession| {
        // A control character would reach the terminal.
        let folder = quote::line(&session.cwd).into_owned();
        let name = session.name.filter(|name| is_plain_word(name));
        CompletionCandidate::new(name.unwrap_or(session.id)).help(Some(folder.into()))
    };
    Some(all.terminals.into_iter().map(candidate).collect())
}

/// Whether a shell takes the text as one word and nothing else. Completion puts it into a person's command line unquoted, and an agent can
/// give a session any name.
fn is_plain_word(text: &str) -> bool {
    quoted(text) == text && !text.starts_with('-')
}

/// The options of `man`.
#[derive(Debug, Args)]
pub struct ManOptions {
    /// The command, such as run [default: ptyd itself]
    command: Option<String>,
}

/// Prints a manual page, for `man -l -`.
pub fn man(command: Command, options: &ManOptions) -> Result<ExitCode, Failure> {
    let mut command = command;
    command.build();
    let page = match &options.command {
        None => command,
        Some(name) => command
            .find_subcommand(name)
            .cloned()
            .ok_or_else(|| Failure::usage(format!("there is no command {name}; `ptyd --help` lists them")))?,
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(page).render(&mut text)?;
    write(&text)
}

fn write(text: &[u8]) -> Result<ExitCode, Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text)?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
