//! `ptyd completion` and `ptyd man`: what a shell and `man` read about this command line.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::exit::Failure;

/// The options of `completion`.
#[derive(Debug, Args)]
pub struct CompletionOptions {
    /// The shell [default: the one of $SHELL]
    #[arg(value_enum)]
    shell: Option<Shell>,
}

/// Prints a script that completes this command line in a shell.
pub fn completion(mut command: Command, options: &CompletionOptions) -> Result<ExitCode, Failure> {
    let shell = options.shell.or_else(Shell::from_env).ok_or_else(|| Failure::usage("name the shell, such as bash"))?;
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "ptyd", &mut script);
    write(&script)
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
