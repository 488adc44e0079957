//! `ls`, `new`, `send`, `kill`, and how a session is named on the command line.

use std::collections::BTreeMap;
use std::process::ExitCode;

use api::{CreateRequest, Dimensions, InputRequest, SessionStatus, TerminalSession, quote};
use clap::Args;
use client::Client;
use serde_json::{Number, Value};

use crate::exit::Failure;
use crate::say;
use crate::tty;

/// The options of `ls`.
#[derive(Debug, Args)]
pub struct LsOptions {
    /// Show ended sessions too
    #[arg(long, short)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Lists sessions.
pub async fn ls(client: &Client, options: &LsOptions) -> Result<ExitCode, Failure> {
    let all = known(client, options.all).await?;
    if options.json {
        say::json(&all)?;
    } else if !all.is_empty() {
        let head = ["ID", "NAME", "STATUS", "DOES", "PID", "CWD"].map(str::to_owned);
        say::data(table(std::iter::once(head).chain(all.iter().map(row)).collect()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn row(session: &TerminalSession) -> [String; 6] {
    let does = if session.status == SessionStatus::Terminated { "-".to_owned() } else { word(&session.foreground) };
    [
        session.id.clone(),
        session.name.clone().unwrap_or_else(|| "-".to_owned()),
        word(&session.status),
        does,
        session.pid.map_or_else(|| "-".to_owned(), |p| p.to_string()),
        session.cwd.clone(),
    ]
}

/// The word that stands for a value on the wire.
pub fn word(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
}

/// Columns, the last one as long as it is. What stands in a cell stays in it, whoever wrote it.
pub fn table<const N: usize>(rows: Vec<[String; N]>) -> String {
    let rows: Vec<_> = rows.into_iter().map(|row| row.map(|cell| quote::line(&cell).into_owned())).collect();
    let width = |column: usize| rows.iter().map(|r| r[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(|i| if i + 1 == N { 0 } else { width(i) });
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ") + "\n"
    };
    rows.iter().map(line).collect()
}

/// The options of `new`.
#[derive(Debug, Args)]
pub struct NewOptions {
    /// A name to call it by
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    start: StartOptions,
    /// End it when it had no input, command or output for so many seconds; 0 is never [default: the server's]
    #[arg(long, value_name = "SECONDS")]
    inactivity_timeout: Option<f64>,
    /// End it when it is so many seconds old; 0 is never [default: the server's]
    #[arg(long, value_name = "SECONDS")]
    max_age: Option<f64>,
    /// What it may use: cpuSeconds, memoryMb, processes, openFiles, outputMb, outputMbPerSecond or commandSeconds; can
    /// be given more than once [default: the server's]
    #[arg(long = "limit", value_name = "NAME=NUMBER", value_parser = limit)]
    limits: Vec<(String, Number)>,
    /// Print all of the session as JSON, not only its id
    #[arg(long)]
    json: bool,
}

/// How a session is started, by `new` and `run`.
#[derive(Debug, Args)]
pub struct StartOptions {
    /// The directory to start in [default: this one]
    #[arg(long, value_name = "DIR")]
    cwd: Option<std::path::PathBuf>,
    /// A shell's name or path [default: the user's own]
    #[arg(long)]
    shell: Option<String>,
    /// A profile of the configuration file; what is said here goes before it [default: the one called default, if any]
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// A variable for the shell; can be given more than once
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    env: Vec<(String, String)>,
    /// The terminal's size [default: this one's, or 120x40]
    #[arg(long, value_name = "COLSxROWS", value_parser = size)]
    size: Option<Dimensions>,
}

fn size(text: &str) -> Result<Dimensions, String> {
    let sides = text.split_once('x').and_then(|(cols, rows)| Some((cols.parse().ok()?, rows.parse().ok()?)));
    sides.map(|(cols, rows)| Dimensions { cols, rows }).ok_or_else(|| "must be like 80x24".to_owned())
}

fn variable(text: &str) -> Result<(String, String), String> {
    text.split_once('=').map(|(n, v)| (n.to_owned(), v.to_owned())).ok_or_else(|| "must be NAME=VALUE".to_owned())
}

/// The names are REST's; the bounds are the server's business.
fn limit(text: &str) -> Result<(String, Number), String> {
    let (name, value) = text.split_once('=').ok_or("must be NAME=NUMBER")?;
    let value = serde_json::from_str(value).map_err(|_| format!("{value} is no number"))?;
    let one = (name.to_owned(), value);
    limits(std::slice::from_ref(&one)).map(|_| one)
}

fn limits(given: &[(String, Number)]) -> Result<api::Limits, String> {
    let given = given.iter().map(|(name, value)| (name.clone(), Value::Number(value.clone()))).collect();
    serde_json::from_value(Value::Object(given)).map_err(|e| e.to_string())
}

impl StartOptions {
    /// The request for a session that starts where this process is, as large as its terminal.
    pub fn request(&self, name: Option<String>) -> Result<CreateRequest, Failure> {
        let dir = match &self.cwd {
            Some(dir) => std::path::absolute(dir)?,
            None => std::env::current_dir()?,
        };
        let dir = dir.into_os_string().into_string().map_err(|_| {
            Failure::usage("the directory's name is not UTF-8; choose another --cwd and change into it in the session")
        })?;
        // Where this process happens to be goes behind a profile's directory.
        let (cwd, fallback_cwd) = if self.cwd.is_some() { (Some(dir), None) } else { (None, Some(dir)) };
        let env: BTreeMap<_, _> = self.env.iter().cloned().collect();
        Ok(CreateRequest {
            shell: self.shell.clone(),
            cwd,
            fallback_cwd,
            profile: self.profile.clone(),
            env,
            name,
            // Whoever names a profile wants its size.
            dimensions: self.size.or_else(|| if self.profile.is_none() { tty::size() } else { None }),
            ..CreateRequest::default()
        })
    }
}

/// Starts a session.
pub async fn new(client: &Client, options: &NewOptions) -> Result<ExitCode, Failure> {
    let request = CreateRequest {
        inactivity_timeout: options.inactivity_timeout,
        max_age: options.max_age,
        limits: if options.limits.is_empty() { None } else { Some(limits(&options.limits).map_err(Failure::usage)?) },
        ..options.start.request(options.name.clone())?
    };
    let session = client.create(&request, None).await?;
    for failure in &session.startup_failed {
        say::note(format_args!("ptyd: startup failed: {}: {}", failure.command, failure.reason));
    }
    if options.json {
        say::json(&session)?;
    } else {
        say::line(&session.id)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The options of `send`.
#[derive(Debug, Args)]
pub struct SendOptions {
    /// An id, a unique part of its beginning, or a name
    session: String,
    /// What to type; several are typed with a space between
    #[arg(required_unless_present = "secret", allow_hyphen_values = true)]
    text: Vec<String>,
    /// The words are names of keys, such as C-c, Up, Enter
    #[arg(long)]
    keys: bool,
    /// Do not press Enter after the text
    #[arg(long)]
    no_newline: bool,
    /// Type one line read from standard input, and keep it out of every record; arguments could be read by everybody
    #[arg(long, conflicts_with_all = ["text", "keys"])]
    secret: bool,
}

/// Types at a session.
pub async fn send(client: &Client, options: &SendOptions) -> Result<ExitCode, Failure> {
    let session = find(client, &options.session).await?;
    let (input, keys) = match options.keys {
        true => (None, Some(options.text.clone())),
        false if options.secret => (Some(line_of_input()?), None),
        false => (Some(options.text.join(" ")), None),
    };
    let end_with_newline = !options.keys && !options.no_newline;
    let request = InputRequest { input, keys, end_with_newline, secret: options.secret, ..InputRequest::default() };
    client.input(&session.id, &request, None).await?;
    Ok(ExitCode::SUCCESS)
}

fn line_of_input() -> Result<String, Failure> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

/// The options of `kill`.
#[derive(Debug, Args)]
pub struct KillOptions {
    /// Ids, unique parts of their beginnings, or names
    #[arg(required = true)]
    sessions: Vec<String>,
    /// At once, without a chance to clean up
    #[arg(long, short)]
    force: bool,
    /// The first signal instead of HUP; TERM and KILL follow
    #[arg(long, short)]
    signal: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Ends sessions.
pub async fn kill(client: &Client, options: &KillOptions) -> Result<ExitCode, Failure> {
    let mut ended = Vec::new();
    let mut left = 0;
    for text in &options.sessions {
        let session = find(client, text).await?;
        let answer = client.terminate(&session.id, options.force, options.signal.as_deref()).await?;
        left += answer.left;
        if !options.json {
            say::note(format_args!(
                "{}: {} processes ended{}",
                session.id,
                answer.killed,
                if answer.was_over { ", it was over" } else { "" }
            ));
        }
        ended.push(answer);
    }
    if options.json {
        say::json(&ended)?;
    }
    if left > 0 {
        return Err(Failure::new(format!("{left} processes did not end")));
    }
    Ok(ExitCode::SUCCESS)
}

/// Sessions, oldest first, the ended ones where asked for.
async fn known(client: &Client, with_ended: bool) -> Result<Vec<TerminalSession>, Failure> {
    let mut all = client.list(None).await?.terminals;
    if with_ended {
        all.extend(client.list(Some("terminated")).await?.terminals);
    }
    Ok(all)
}

/// The session that a person means: an id, a unique beginning of one (with or without its node), or a name.
pub async fn find(client: &Client, text: &str) -> Result<TerminalSession, Failure> {
    choose(known(client, true).await?, text)
}

fn choose(all: Vec<TerminalSession>, text: &str) -> Result<TerminalSession, Failure> {
    if let Some(exact) = all.iter().find(|s| s.id == text) {
        return Ok(exact.clone());
    }
    let starts =
        |s: &TerminalSession| s.id.starts_with(text) || s.id.split_once('-').is_some_and(|(_, t)| t.starts_with(text));
    let named = |s: &TerminalSession| s.name.as_deref() == Some(text);
    // A live one is meant before an ended one, a name before the beginning of an id.
    let alive = |s: &TerminalSession| s.status != SessionStatus::Terminated;
    let tries: [&dyn Fn(&TerminalSession) -> bool; 4] =
        [&|s| alive(s) && named(s), &|s| alive(s) && starts(s), &|s| named(s), &|s| starts(s)];
    for is_meant in tries.into_iter().filter(|_| !text.is_empty()) {
        let meant: Vec<_> = all.iter().filter(|s| is_meant(s)).collect();
        match meant.as_slice() {
            [] => {}
            [one] => return Ok((*one).clone()),
            several => {
                let ids: Vec<_> = several.iter().map(|s| s.id.as_str()).collect();
                return Err(Failure::no_session(format!("{text} could be any of {}", ids.join(", "))));
            }
        }
    }
    Err(Failure::no_session(format!("no session {text}; `ptyd ls --all` shows them")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(id: &str, name: Option<&str>, status: &str) -> TerminalSession {
        serde_json::from_value(serde_json::json!({
            "id": id, "name": name, "status": status, "shell": "bash", "cwd": "/", "env": {}, "owner": "me",
            "createdAt": "", "lastActivity": "", "dimensions": {"cols": 80, "rows": 24},
            "resourceUsage": {"cpu": 0.0, "memory": 0.0, "processes": 0}, "foreground": "idle",
            "boundary": "attested", "journal": {"firstOffset": 0, "endOffset": 0}, "logFile": "",
            "connection": {"url": "", "socket": "", "mcp": "", "attach": ""}
        }))
        .expect("a session")
    }

    #[test]
    fn a_session_is_meant_by_its_id_its_name_or_a_unique_beginning() {
        let all = || {
            vec![
                session("s0-abcd", Some("build"), "running"),
                session("s0-abxy", None, "running"),
                session("s0-zzzz", Some("build"), "terminated"),
                session("s0-yyyy", Some("old"), "terminated"),
            ]
        };
        let find = |text: &str| choose(all(), text).map(|s| s.id).map_err(|f| (f.code, f.to_string()));
        for (text, id) in
            [("s0-abcd", "s0-abcd"), ("build", "s0-abcd"), ("abx", "s0-abxy"), ("s0-z", "s0-zzzz"), ("old", "s0-yyyy")]
        {
            assert_eq!(find(text), Ok(id.to_owned()), "{text}");
        }
        assert_eq!(find("ab"), Err((3, "ab could be any of s0-abcd, s0-abxy".to_owned())));
        assert_eq!(find("nope").map_err(|(code, _)| code), Err(3));
        assert_eq!(find("").map_err(|(code, _)| code), Err(3));
    }

    #[test]
    fn a_size_is_columns_and_rows() {
        assert_eq!(size("80x24"), Ok(Dimensions { cols: 80, rows: 24 }));
        assert!(["80", "80x", "x24", "80X24", "80x24x1", "-1x2"].iter().all(|text| size(text).is_err()));
    }

    #[test]
    fn a_table_is_as_wide_as_its_widest_cells() {
        let text = table(vec![row(&session("s0-a", None, "running")), row(&session("s0-abcd", Some("é"), "creating"))]);
        assert_eq!(text, "s0-a     -  running   idle  -  /\ns0-abcd  é  creating  idle  -  /\n");
    }
}
