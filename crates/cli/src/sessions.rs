//! `new`, `send`, `keys` and `resize`, and how the command line identifies a session.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use api::{
    ConfinementTier, CreateRequest, Dimensions, ErrorCode, ExecuteRequest, Foreground, RenameRequest, SessionStatus,
    TerminalSession,
};
use clap::Args;
use client::{Client, ClientError};
use jiff::SignedDuration;
use serde_json::{Number, Value};

use crate::completion;
use crate::exit::Failure;
use crate::serve::quoted;
use crate::{print, tty, units};

/// Sessions handled at once: the end of each may take the grace period of its processes.
pub const AT_ONCE_MAX: usize = 16;

/// Options of other tools that change nothing here: their command acts on a terminal, and so does ours.
#[derive(Debug, Args)]
pub struct Habits {
    #[arg(short = 't', hide = true)]
    _target: bool,
}

/// The time between two lists of `ls --watch` and `top`.
pub const WATCH_EVERY: Duration = Duration::from_secs(2);

/// A duration in its largest unit.
pub fn age(since: SignedDuration) -> String {
    let seconds = since.as_secs().max(0);
    match seconds {
        ..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        86_400.. => format!("{}d", seconds / 86_400),
    }
}

/// The state of a foreground in words.
pub fn state(foreground: Foreground) -> &'static str {
    match foreground {
        Foreground::Idle => "idle",
        Foreground::Running | Foreground::Fullscreen => "running",
        Foreground::InputWanted => "wants input",
        Foreground::PasswordWanted => "wants a password",
        Foreground::Stopped => "stopped",
    }
}

/// The name of a value on the wire.
pub fn wire_name(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
}

/// The options of `new`.
#[derive(Debug, Args)]
pub struct NewOptions {
    /// Give the session this name
    #[arg(value_name = "NAME", conflicts_with = "name")]
    called: Option<String>,
    /// Give the session this name
    #[arg(long, short = 's')]
    name: Option<String>,
    #[command(flatten)]
    start: StartOptions,
    /// End the session after this long without input, command or output, such as 30m; 0: never [default: the server's]
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    inactivity_timeout: Option<Duration>,
    /// End the session at this age, such as 7d; 0: never [default: the server's]
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    max_age: Option<Duration>,
    /// Print the whole session as JSON, not only its id
    #[arg(long)]
    json: bool,
    // A session is always detached; `attach` shows it.
    #[arg(short = 'd', hide = true)]
    _detached: bool,
    /// Run this command in the session: one word is a line for the shell; several words are a program and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// The options that start a session, for `new` and `run`.
#[derive(Debug, Default, Args)]
pub struct StartOptions {
    /// Start in this directory [default: the profile's, else the current directory]
    #[arg(long, value_name = "DIR")]
    cwd: Option<std::path::PathBuf>,
    /// Run this shell: a name on PATH, or a path [default: the profile's, else your own if it is zsh or fish, else
    /// bash]
    #[arg(long)]
    shell: Option<String>,
    /// Use this profile of the configuration file; options take precedence over it [default: the profile called
    /// default, if there is one]
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Confine the shell and its programs to this tier or a stronger one: process, sandbox or container [default: the profile's]
    #[arg(long, value_name = "TIER", value_parser = tier)]
    confinement: Option<ConfinementTier>,
    /// Set a variable of the shell; repeat the option for several
    #[arg(long, short, value_name = "NAME=VALUE", value_parser = variable)]
    env: Vec<(String, String)>,
    /// Set a limit: cpuSeconds, memoryMb, processes, openFiles, outputMb, outputMbPerSecond or commandSeconds; repeat
    /// the option for several [default: the server's]
    #[arg(long = "limit", value_name = "NAME=NUMBER", value_parser = limit)]
    limits: Vec<(String, Number)>,
    /// Give the terminal this size [default: this terminal's, or with --profile the profile's; else 120x40]
    #[arg(long, value_name = "COLSxROWS", value_parser = size)]
    size: Option<Dimensions>,
}

pub fn tier(text: &str) -> Result<ConfinementTier, String> {
    match text {
        "process" => Ok(ConfinementTier::Process),
        "sandbox" => Ok(ConfinementTier::Sandbox),
        "container" => Ok(ConfinementTier::Container),
        _ => Err("must be process, sandbox or container".to_owned()),
    }
}

fn size(text: &str) -> Result<Dimensions, String> {
    let sides = text.split_once('x').and_then(|(cols, rows)| Some((cols.parse().ok()?, rows.parse().ok()?)));
    sides.map(|(cols, rows)| Dimensions { cols, rows }).ok_or_else(|| "must be like 80x24".to_owned())
}

fn variable(text: &str) -> Result<(String, String), String> {
    text.split_once('=').map(|(n, v)| (n.to_owned(), v.to_owned())).ok_or_else(|| "must be NAME=VALUE".to_owned())
}

/// The names are REST's; the server checks the bounds.
fn limit(text: &str) -> Result<(String, Number), String> {
    let (name, value) = text.split_once('=').ok_or("must be NAME=NUMBER")?;
    let value = serde_json::from_str(value).map_err(|_| format!("{value} is not a number"))?;
    let one = (name.to_owned(), value);
    limits(std::slice::from_ref(&one)).map(|_| one)
}

fn limits(given: &[(String, Number)]) -> Result<api::Limits, String> {
    let given = given.iter().map(|(name, value)| (name.clone(), Value::Number(value.clone()))).collect();
    serde_json::from_value(Value::Object(given)).map_err(|e| e.to_string())
}

impl StartOptions {
    /// The request for a session in the present directory, with the size of this terminal.
    pub fn request(&self, client: &Client, name: Option<String>) -> Result<CreateRequest, Failure> {
        let dir = match &self.cwd {
            Some(dir) => std::path::absolute(dir)?,
            None => std::env::current_dir()?,
        };
        let dir = dir.into_os_string().into_string().map_err(|_| {
            Failure::usage("the directory's name is not UTF-8; choose another --cwd and change into it in the session")
        })?;
        // The present directory counts only on this machine, and if the profile has none.
        let (cwd, fallback_cwd) = match &self.cwd {
            Some(_) => (Some(dir), None),
            None => (None, Some(dir).filter(|_| !client.is_elsewhere())),
        };
        let env: BTreeMap<_, _> = self.env.iter().cloned().collect();
        Ok(CreateRequest {
            shell: self.shell.clone(),
            cwd,
            fallback_cwd,
            profile: self.profile.clone(),
            confinement: self.confinement,
            env,
            name,
            limits: if self.limits.is_empty() { None } else { Some(limits(&self.limits).map_err(Failure::usage)?) },
            // A named profile sets the size.
            dimensions: self.size.or_else(|| if self.profile.is_none() { tty::size() } else { None }),
            ..CreateRequest::default()
        })
    }
}

/// Whether a program on PATH has this name.
fn is_program(name: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(name).is_file())
}

/// The command of these words: one word is a line for the shell; several words are a program and its arguments.
pub fn command_of(words: &[String]) -> String {
    match words {
        [line] => line.clone(),
        words => words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "),
    }
}

/// Runs a command in a session, and does not wait for it.
pub async fn begin(client: &Client, session: &TerminalSession, words: &[String]) -> Result<(), Failure> {
    let request =
        ExecuteRequest { command: command_of(words), wait_for_completion: Some(false), ..ExecuteRequest::default() };
    client.execute(&session.id, &request, None).await?;
    Ok(())
}

/// Starts a session.
pub async fn new(client: &Client, options: &NewOptions) -> Result<ExitCode, Failure> {
    let name = options.called.clone().or_else(|| options.name.clone());
    let request = CreateRequest {
        inactivity_timeout: options.inactivity_timeout.map(|time| time.as_secs_f64()),
        max_age: options.max_age.map(|time| time.as_secs_f64()),
        ..options.start.request(client, name.clone())?
    };
    let session = client.create(&request, None).await?;
    if !options.command.is_empty() {
        begin(client, &session, &options.command).await?;
    } else if let Some(program) = options.called.as_deref().filter(|name| is_program(name)) {
        print::note(format_args!("ptyd: the session is called {program}; `ptyd new -- {program}` runs the program"));
    }
    for failure in &session.startup_failed {
        print::note(format_args!("ptyd: startup failed: {}: {}", failure.command, failure.reason));
    }
    if options.json {
        print::json(&session)?;
    } else {
        print::line(&session.id)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The options of `resize`.
#[derive(Debug, Args)]
pub struct ResizeOptions {
    /// The session: its id, a unique beginning of its id, or its name
    #[arg(add = completion::sessions())]
    session: String,
    /// The new size
    #[arg(value_name = "COLSxROWS", value_parser = size)]
    size: Dimensions,
}

/// Gives a session's terminal another size.
pub async fn resize(client: &Client, options: &ResizeOptions) -> Result<ExitCode, Failure> {
    let session = find(client, &options.session).await?;
    client.resize(&session.id, options.size).await?;
    Ok(ExitCode::SUCCESS)
}

/// The options of `rename`.
#[derive(Debug, Args)]
pub struct RenameOptions {
    /// The session: its id, a unique beginning of its id, or its name
    #[arg(add = completion::sessions())]
    session: String,
    /// The new name: at most 100 characters
    name: String,
    #[command(flatten)]
    _habits: Habits,
}

/// Gives a live session another name.
pub async fn rename(client: &Client, options: &RenameOptions) -> Result<ExitCode, Failure> {
    let session = find(client, &options.session).await?;
    client.rename(&session.id, &RenameRequest { name: options.name.clone() }).await?;
    Ok(ExitCode::SUCCESS)
}

/// The options of `inspect`.
#[derive(Debug, Args)]
pub struct InspectOptions {
    /// The session: its id, a unique beginning of its id, or its name [default: the only live session]
    #[arg(add = completion::sessions())]
    session: Option<String>,
}

/// Prints all that the server knows of a session.
pub async fn inspect(client: &Client, options: &InspectOptions) -> Result<ExitCode, Failure> {
    print::json(&find_or_only(client, options.session.as_deref()).await?)?;
    Ok(ExitCode::SUCCESS)
}

/// Sessions, oldest first, optionally with ended ones.
pub async fn known(client: &Client, with_ended: bool) -> Result<Vec<TerminalSession>, Failure> {
    let mut all = client.list(None).await?.terminals;
    if with_ended {
        all.extend(client.list(Some("terminated")).await?.terminals);
    }
    Ok(all)
}

/// Finds a session by id, by a unique beginning of one (with or without its node), or by name.
pub async fn find(client: &Client, text: &str) -> Result<TerminalSession, Failure> {
    // The server finds a whole id; only a part of one, or a name, needs the whole list.
    if !text.is_empty() {
        match client.session(text).await {
            Ok(session) => return Ok(session),
            Err(error) if is_no_id(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
    for with_ended in [false, true] {
        if let Some(chosen) = choose(&known(client, with_ended).await?, text)? {
            return Ok(chosen);
        }
    }
    Err(Failure::no_session(format!("no session {text}; `ptyd ls --all` lists all sessions")))
}

fn is_no_id(error: &ClientError) -> bool {
    matches!(error.code(), Some(ErrorCode::SessionNotFound | ErrorCode::InvalidField | ErrorCode::RouteNotFound))
}

/// The same; without a text, the only live session.
pub async fn find_or_only(client: &Client, text: Option<&str>) -> Result<TerminalSession, Failure> {
    if let Some(text) = text {
        return find(client, text).await;
    }
    let mut all = known(client, false).await?;
    match (all.pop(), all.len()) {
        (Some(only), 0) => Ok(only),
        (Some(_), others) => {
            Err(Failure::usage(format!("there are {} sessions; name one of them (`ptyd ls` shows them)", others + 1)))
        }
        (None, _) => Err(Failure::no_session("no sessions; `ptyd new` starts one")),
    }
}

/// True if a session matches.
type IsMeant<'a> = &'a dyn Fn(&TerminalSession) -> bool;

/// The same among these.
pub fn choose(all: &[TerminalSession], text: &str) -> Result<Option<TerminalSession>, Failure> {
    if let Some(exact) = all.iter().find(|s| s.id == text) {
        return Ok(Some(exact.clone()));
    }
    let starts =
        |s: &TerminalSession| s.id.starts_with(text) || s.id.split_once('-').is_some_and(|(_, t)| t.starts_with(text));
    let named = |s: &TerminalSession| s.name.as_deref() == Some(text);
    // Live sessions come before ended ones, names before beginnings of ids.
    let alive = |s: &TerminalSession| s.status != SessionStatus::Terminated;
    let tries: [(&str, IsMeant<'_>); 4] = [
        ("are called", &|s| alive(s) && named(s)),
        ("have an id that begins with", &|s| alive(s) && starts(s)),
        ("were called", &named),
        ("had an id that begins with", &starts),
    ];
    for (alike, is_meant) in tries.into_iter().filter(|_| !text.is_empty()) {
        let meant: Vec<_> = all.iter().filter(|s| is_meant(s)).collect();
        match meant.as_slice() {
            [] => {}
            [one] => return Ok(Some((*one).clone())),
            several => {
                let ids: Vec<_> = several.iter().map(|s| s.id.as_str()).collect();
                let told = format!("{} sessions {alike} {text}; name one by its id: {}", ids.len(), ids.join(", "));
                return Err(Failure::no_session(told));
            }
        }
    }
    Ok(None)
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
    fn an_id_a_name_or_a_unique_beginning_selects_a_session() {
        let all = || {
            vec![
                session("s0-abcd", Some("build"), "running"),
                session("s0-abxy", None, "running"),
                session("s0-zzzz", Some("build"), "terminated"),
                session("s0-yyyy", Some("old"), "terminated"),
            ]
        };
        let find = |text: &str| choose(&all(), text).map(|s| s.map(|s| s.id)).map_err(|f| (f.code, f.to_string()));
        for (text, id) in
            [("s0-abcd", "s0-abcd"), ("build", "s0-abcd"), ("abx", "s0-abxy"), ("s0-z", "s0-zzzz"), ("old", "s0-yyyy")]
        {
            assert_eq!(find(text), Ok(Some(id.to_owned())), "{text}");
        }
        let several = "2 sessions have an id that begins with ab; name one by its id: s0-abcd, s0-abxy";
        assert_eq!(find("ab"), Err((3, several.to_owned())));
        let twins = vec![session("s0-a", Some("first"), "running"), session("s0-b", Some("first"), "running")];
        let told = choose(&twins, "first").expect_err("two").to_string();
        assert_eq!(told, "2 sessions are called first; name one by its id: s0-a, s0-b");
        assert_eq!((find("nope"), find("")), (Ok(None), Ok(None)));
    }

    #[test]
    fn a_size_is_columns_and_rows() {
        assert_eq!(size("80x24"), Ok(Dimensions { cols: 80, rows: 24 }));
        assert!(["80", "80x", "x24", "80X24", "80x24x1", "-1x2"].iter().all(|text| size(text).is_err()));
    }
}
