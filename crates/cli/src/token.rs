//! `token`: creates, lists and revokes named tokens.

use std::process::ExitCode;
use std::time::Duration;

use api::{ConfinementTier, TokenInfo, TokenRequest, TokenScope};
use clap::{Args, Subcommand, ValueEnum};
use client::Client;

use crate::exit::Failure;
use crate::sessions::{tier, wire_name};
use crate::table::fitted;
use crate::{print, units};

/// The choice that whoever makes a token of scope `write` has.
const UNBOUNDED: &str = "say what its sessions may do: --profile NAME (from the configuration file), --confinement sandbox (each session may change only the folder that it names), or --unconfined (everything that the server's user may do)";

/// The options of `token`.
#[derive(Debug, Args)]
pub struct TokenOptions {
    #[command(subcommand)]
    what: TokenCommand,
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// Make a token and print it, only this once; the sessions that it starts belong to the token's name
    #[command(visible_alias = "create")]
    New {
        /// The name: letters, digits, `-`, `_` and `.`
        name: String,
        /// The scope of the token; each scope includes the ones before it
        #[arg(long, value_enum, default_value_t = ScopeName::Write)]
        scope: ScopeName,
        /// Let the token expire after this long, such as 30m, 12h or 90d [default: never]
        #[arg(long, value_name = "TIME", value_parser = units::time)]
        expires: Option<Duration>,
        /// Let its sessions do everything that the server's user may do; scope write needs this, --profile or --confinement
        #[arg(long, conflicts_with_all = ["profiles", "confinement"])]
        unconfined: bool,
        /// Let it start sessions only with this profile; repeat the option for several; the first is the
        /// default [default: any profile, or none]
        #[arg(long = "profile", value_name = "NAME")]
        profiles: Vec<String>,
        /// Confine the sessions that it starts to this tier or a stronger one: process, sandbox or container [default: not at all]
        #[arg(long, value_name = "TIER", value_parser = tier)]
        confinement: Option<ConfinementTier>,
        /// Apply this policy to the token's commands, input and new sessions, in addition to each session's own policy [default: none]
        #[arg(long, value_name = "NAME")]
        policy: Option<String>,
        /// Give this named secret as a variable to the sessions that it starts; repeat the option for several
        #[arg(long = "secret", value_name = "NAME[=VARIABLE]")]
        secrets: Vec<String>,
        /// Print the answer as JSON
        #[arg(long)]
        json: bool,
    },
    /// List the tokens
    #[command(visible_alias = "list")]
    Ls {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Revoke tokens; their open streams end at once, and their sessions continue
    #[command(visible_aliases = ["rm", "delete"])]
    Revoke {
        /// The names of the tokens
        #[arg(required = true)]
        names: Vec<String>,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ScopeName {
    /// Read its own sessions
    Read,
    /// Also start its own sessions and use them
    Write,
    /// Also use the sessions of all owners, and manage tokens and secrets
    Admin,
}

impl TokenOptions {
    /// Whether the command starts a server if none runs: without a server there is no token to list or revoke.
    pub fn makes(&self) -> bool {
        matches!(self.what, TokenCommand::New { .. })
    }
}

/// Runs the subcommand.
pub async fn token(client: &Client, options: &TokenOptions) -> Result<ExitCode, Failure> {
    match &options.what {
        TokenCommand::New { name, scope, expires, unconfined, profiles, confinement, policy, secrets, json } => {
            let is_bounded = !profiles.is_empty() || confinement.is_some();
            if matches!(scope, ScopeName::Write) && !is_bounded && !unconfined {
                return Err(Failure::usage(UNBOUNDED));
            }
            let scope = match scope {
                ScopeName::Read => TokenScope::Read,
                ScopeName::Write => TokenScope::Write,
                ScopeName::Admin => TokenScope::Admin,
            };
            let expires_in = expires.map(|time| time.as_secs_f64());
            let (name, profiles, confinement) = (name.clone(), profiles.clone(), *confinement);
            let (policy, secrets) = (policy.clone(), secrets.clone());
            let request = TokenRequest { name, scope, expires_in, profiles, confinement, policy, secrets };
            let made = client.make_token(&request).await?;
            if *json {
                print::json(&made)?;
            } else {
                print::line(&made.token)?;
                print::note(format_args!("ptyd: store the token of {} now: it is not shown again", made.name));
            }
            let older = made.sessions_out_of_bounds;
            if older > 0 {
                let are = if older == 1 { "older session of" } else { "older sessions of" };
                let outside = if older == 1 { "is outside" } else { "are outside" };
                print::note(format_args!("ptyd: {older} {are} {} {outside} the restrictions of this token", made.name));
            }
        }
        TokenCommand::Ls { json } => {
            let all = client.tokens().await?.tokens;
            if *json {
                print::json(&all)?;
            } else if !all.is_empty() {
                let head = [
                    "NAME",
                    "SCOPE",
                    "CREATED",
                    "EXPIRES",
                    "FIRST MAKER",
                    "PROFILES",
                    "CONFINEMENT",
                    "POLICY",
                    "SECRETS",
                ];
                let head = head.map(str::to_owned).to_vec();
                print::data(fitted(std::iter::once(head).chain(all.iter().map(row)).collect()))?;
            }
        }
        TokenCommand::Revoke { names } => {
            for name in names {
                client.revoke_token(name).await?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn row(token: &TokenInfo) -> Vec<String> {
    let or_dash = |one: &Option<String>| one.clone().unwrap_or_else(|| "-".to_owned());
    let expires = or_dash(&token.expires_at);
    let all_or_dash = |all: &[String]| if all.is_empty() { "-".to_owned() } else { all.join(", ") };
    let (profiles, secrets) = (all_or_dash(&token.profiles), all_or_dash(&token.secrets));
    let (first_maker, policy) = (or_dash(&token.first_maker), or_dash(&token.policy));
    let confinement = token.confinement.as_ref().map_or_else(|| "-".to_owned(), wire_name);
    let (name, scope) = (token.name.clone(), wire_name(&token.scope));
    vec![name, scope, token.created_at.clone(), expires, first_maker, profiles, confinement, policy, secrets]
}
