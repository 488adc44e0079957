//! `token`: named tokens are made, listed and revoked.

use std::process::ExitCode;

use api::{TokenInfo, TokenRequest, TokenScope};
use clap::{Args, Subcommand, ValueEnum};
use client::Client;

use crate::exit::Failure;
use crate::say;
use crate::sessions::{table, word};

/// The options of `token`.
#[derive(Debug, Args)]
pub struct TokenOptions {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Make a token and print it, this once; its name owns the sessions that are started with it
    New {
        /// Letters, digits, `-`, `_` and `.`
        name: String,
        /// What it allows; each holds what is before it
        #[arg(long, value_enum, default_value_t = Allowed::Write)]
        scope: Allowed,
        /// How long it is good, such as 30m, 12h or 90d [default: until it is revoked]
        #[arg(long, value_name = "TIME", value_parser = span)]
        expires: Option<f64>,
        /// Print all there is to know as JSON
        #[arg(long)]
        json: bool,
    },
    /// List the tokens
    Ls {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Take tokens back; what is open on them ends at once, their sessions live on
    Revoke {
        /// Their names
        #[arg(required = true)]
        names: Vec<String>,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Allowed {
    /// Look at its own sessions
    Read,
    /// Start its own sessions, and use them
    Write,
    /// Everybody's sessions, and tokens
    Admin,
}

impl TokenOptions {
    /// Whether a server is started for it where none runs: what there is not can be neither listed nor revoked.
    pub fn makes(&self) -> bool {
        matches!(self.what, What::New { .. })
    }
}

/// Seconds, or a number with a unit.
fn span(text: &str) -> Result<f64, String> {
    let (number, unit) = match text.char_indices().last() {
        Some((at, 's')) => (&text[..at], 1.0),
        Some((at, 'm')) => (&text[..at], 60.0),
        Some((at, 'h')) => (&text[..at], 3_600.0),
        Some((at, 'd')) => (&text[..at], 86_400.0),
        _ => (text, 1.0),
    };
    let seconds = number.parse::<f64>().ok().map(|n| n * unit).filter(|s| s.is_finite() && *s > 0.0);
    seconds.ok_or_else(|| "must be seconds, or a number with s, m, h or d".to_owned())
}

/// Does what was asked.
pub async fn token(client: &Client, options: &TokenOptions) -> Result<ExitCode, Failure> {
    match &options.what {
        What::New { name, scope, expires, json } => {
            let scope = match scope {
                Allowed::Read => TokenScope::Read,
                Allowed::Write => TokenScope::Write,
                Allowed::Admin => TokenScope::Admin,
            };
            let made = client.make_token(&TokenRequest { name: name.clone(), scope, expires_in: *expires }).await?;
            if *json {
                say::json(&made)?;
            } else {
                say::line(&made.token)?;
                say::note(format_args!("ptyd: this is the only time that the token of {} is shown", made.name));
            }
        }
        What::Ls { json } => {
            let all = client.tokens().await?.tokens;
            if *json {
                say::json(&all)?;
            } else if !all.is_empty() {
                let head = ["NAME", "SCOPE", "CREATED", "EXPIRES"].map(str::to_owned);
                say::data(table(std::iter::once(head).chain(all.iter().map(row)).collect()))?;
            }
        }
        What::Revoke { names } => {
            for name in names {
                client.revoke_token(name).await?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn row(token: &TokenInfo) -> [String; 4] {
    let expires = token.expires_at.clone().unwrap_or_else(|| "-".to_owned());
    [token.name.clone(), word(&token.scope), token.created_at.clone(), expires]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_seconds_or_has_a_unit() {
        assert_eq!(
            ["90", "0.5s", "30m", "12h", "90d"].map(|t| span(t).ok()),
            [Some(90.0), Some(0.5), Some(1_800.0), Some(43_200.0), Some(7_776_000.0)]
        );
        assert!(["", "d", "0", "-1d", "soon", "infd", "5w", "1ä"].iter().all(|t| span(t).is_err()));
    }
}
