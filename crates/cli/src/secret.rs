//! `secret`: sets, lists and removes named secrets. A value is never an argument, which others see in the list of
//! processes.

use std::process::ExitCode;

use api::NamedSecret;
use clap::{Args, Subcommand};
use client::Client;
use ptyd_core::credentials::named_secrets::name_problem;

use crate::exit::Failure;
use crate::table::fitted;
use crate::{print, tty};

/// The options of `secret`.
#[derive(Debug, Args)]
pub struct SecretOptions {
    #[command(subcommand)]
    what: SecretCommand,
}

#[derive(Debug, Subcommand)]
enum SecretCommand {
    /// Set a secret to the text on standard input, without its last newline, or to a line that you type and that the terminal
    /// does not show
    #[command(visible_alias = "add")]
    Set {
        /// The name: capital letters, digits and underscores
        name: String,
    },
    /// List the secrets and the profiles that give them to sessions, without their values
    #[command(visible_alias = "list")]
    Ls {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove secrets; a session that already has one keeps it, still masked
    #[command(visible_alias = "delete")]
    Rm {
        /// The names of the secrets
        #[arg(required = true)]
        names: Vec<String>,
    },
}

impl SecretOptions {
    /// Whether the command starts a server if none runs.
    pub fn sets(&self) -> bool {
        matches!(self.what, SecretCommand::Set { .. })
    }
}

/// Runs the subcommand.
pub async fn secret(client: &Client, options: &SecretOptions) -> Result<ExitCode, Failure> {
    match &options.what {
        SecretCommand::Set { name } => {
            if let Some(problem) = name_problem(name) {
                return Err(Failure::usage(format!("{name:?} is not a name for a secret: it {problem}")));
            }
            client.set_secret(name, tty::value("Value: ")?).await?;
        }
        SecretCommand::Ls { json } => {
            let all = client.secrets().await?.secrets;
            if *json {
                print::json(&all)?;
            } else if !all.is_empty() {
                let head = ["NAME", "SET", "PROFILES"].map(str::to_owned).to_vec();
                print::data(fitted(std::iter::once(head).chain(all.iter().map(row)).collect()))?;
            }
        }
        SecretCommand::Rm { names } => {
            for name in names {
                client.remove_secret(name).await?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn row(secret: &NamedSecret) -> Vec<String> {
    let profiles = if secret.profiles.is_empty() { "-".to_owned() } else { secret.profiles.join(", ") };
    vec![secret.name.clone(), secret.set_at.clone(), profiles]
}
