//! `ptyd login` and `ptyd logout`: the tokens with which this user reaches servers at URLs.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use client::{Client, ServerUrl};
use etcetera::BaseStrategy;
use etcetera::base_strategy::Xdg;

use crate::exit::Failure;
use crate::paths::Paths;
use crate::{print, tty};

/// The variable with a token; it takes precedence over a login.
const TOKEN: &str = "PTYD_TOKEN";

/// The options of `login` and `logout`.
#[derive(Debug, Args)]
pub struct LoginOptions {
    /// The server's URL [default: --url]
    server: Option<String>,
}

/// The client of the server that the options mean: the one at `--url`, or the one on this machine's socket.
pub fn client(paths: &Paths) -> Result<Client, Failure> {
    let Some(url) = &paths.url else { return Ok(Client::unix(&paths.socket)) };
    let server = address(url)?;
    let token = match std::env::var(TOKEN).ok().filter(|token| !token.is_empty()) {
        Some(token) => token,
        None => Logins::read()?.tokens.remove(&server.to_string()).ok_or_else(|| {
            Failure::usage(format!("there is no token for {url}: set {TOKEN}, or store one with `ptyd login {url}`"))
        })?,
    };
    Ok(Client::url(server, sendable(&token)?))
}

/// The token, if it can be one.
fn sendable(token: &str) -> Result<&str, Failure> {
    let token = token.trim();
    if token.is_empty() || !token.chars().all(|c| c.is_ascii_graphic()) {
        return Err(Failure::usage("this is not a token: a token has letters, digits and signs, and no spaces"));
    }
    Ok(token)
}

fn address(url: &str) -> Result<ServerUrl, Failure> {
    let server = ServerUrl::parse(url).map_err(Failure::usage)?;
    if server.is_readable_on_the_way() {
        return Err(Failure::usage(format!("{url} would send the token unencrypted; use https, or http on loopback")));
    }
    Ok(server)
}

/// Asks for the token, tries it, and stores it.
pub async fn login(paths: &Paths, options: &LoginOptions) -> Result<ExitCode, Failure> {
    let url = meant(paths, options)?;
    let server = address(&url)?;
    let token = tty::value("Token: ")?;
    let (name, token) = (server.to_string(), sendable(&token)?);
    Client::url(server, token).list(None).await?;
    let mut logins = Logins::read()?;
    logins.tokens.insert(name, token.to_owned());
    logins.write()?;
    print::line(format_args!("logged in to {url}; use it with --url {url} or PTYD_URL={url}"))?;
    Ok(ExitCode::SUCCESS)
}

/// Removes the token. It stays valid until it is revoked.
pub fn logout(paths: &Paths, options: &LoginOptions) -> Result<ExitCode, Failure> {
    let url = meant(paths, options)?;
    let mut logins = Logins::read()?;
    if logins.tokens.remove(&address(&url)?.to_string()).is_none() {
        return Err(Failure::new(format!("there is no token for {url}")));
    }
    logins.write()?;
    Ok(ExitCode::SUCCESS)
}

fn meant(paths: &Paths, options: &LoginOptions) -> Result<String, Failure> {
    let url = options.server.clone().or_else(|| paths.url.clone());
    url.ok_or_else(|| Failure::usage("name the server: ptyd login https://ptyd.example"))
}

/// The file of tokens, which only its user can read.
struct Logins {
    file: PathBuf,
    tokens: BTreeMap<String, String>,
}

impl Logins {
    fn read() -> Result<Self, Failure> {
        let home = Xdg::new().map_err(|_| Failure::new("there is no home directory: set HOME"))?;
        let file = home.config_dir().join("ptyd/logins.json");
        let tokens = match std::fs::read(&file) {
            Ok(text) => serde_json::from_slice(&text).map_err(|error| at(&file, error))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(at(&file, error)),
        };
        Ok(Self { file, tokens })
    }

    /// Replaces the file as a whole.
    fn write(&self) -> Result<(), Failure> {
        let folder = self.file.parent().unwrap_or(Path::new("/"));
        let new = self.file.with_extension(format!("{}.new", std::process::id()));
        let write = || -> io::Result<()> {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            let mut file: File = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
            file.write_all(&serde_json::to_vec_pretty(&self.tokens)?)?;
            std::fs::rename(&new, &self.file)
        };
        write().map_err(|error| at(&self.file, error))
    }
}

fn at(file: &Path, error: impl std::fmt::Display) -> Failure {
    Failure::new(format!("{}: {error}", file.display()))
}
