//! `ptyd shell-prefix`: runs the commands of a host's own shell tool in sessions. A host such as Claude Code gives each command as one
//! word, with `CLAUDE_CODE_SHELL_PREFIX` in front of it.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use api::{CreateRequest, ErrorCode, Foreground, SessionListQuery, SessionStatus, TerminalSession};
use clap::Args;
use client::Client;

use crate::exit::Failure;
use crate::paths::Paths;
use crate::piped_stdin::Input;
use crate::run::{self, RunOptions};
use crate::serve::quoted;
use crate::{daemon, print};

/// The options of `shell-prefix`.
#[derive(Debug, Args)]
pub struct ShellPrefixOptions {
    /// The command, as one word [default: print the path to set CLAUDE_CODE_SHELL_PREFIX to]
    command: Option<String>,
}

/// The name by which this binary is a prefix of one word: Claude Code passes no options in front of the command.
const LINK: &str = "ptyd-shell-prefix";

/// Claude Code sets this variable for hooks and MCP servers, and not for its shell tool.
const HOOK_OR_SERVER: &str = "CLAUDE_PROJECT_DIR";

/// The conversation, whose commands share sessions.
const CONVERSATION: &str = "CLAUDE_CODE_SESSION_ID";

/// The variables that belong to one process or terminal; those that begin with `PTYD_` belong to the server.
const NOT_PASSED: [&str; 9] = ["_", "PWD", "OLDPWD", "SHLVL", "TERM", "COLUMNS", "LINES", "PS1", "ENV"];

/// Programs must not wait for a person at a pager, unless the host says so.
const PAGERS: [&str; 2] = ["PAGER", "GIT_PAGER"];

/// A session ends after it was idle for this long.
const IDLE_SECONDS: f64 = 3_600.0;

/// The arguments, with the subcommand that the binary's name stands for. The link is in the state directory of its server.
pub fn arguments() -> Vec<OsString> {
    let mut arguments: Vec<_> = env::args_os().collect();
    let Some(name) = arguments.first().map(PathBuf::from).filter(|name| name.ends_with(LINK)) else { return arguments };
    // A command may begin with a dash.
    arguments.splice(1..1, ["shell-prefix".into(), "--".into()]);
    if let Some(state_dir) = name.parent().and_then(Path::parent).filter(|folder| folder.is_absolute()) {
        arguments.splice(1..1, ["--state-dir".into(), state_dir.into()]);
    }
    arguments
}

/// Runs the command, or prints the path of the prefix.
pub async fn shell_prefix(paths: &Paths, options: &ShellPrefixOptions) -> Result<ExitCode, Failure> {
    let Some(command) = &options.command else {
        print::line(link(&paths.state_dir)?.display())?;
        return Ok(ExitCode::SUCCESS);
    };
    let shell = shell();
    if env::var_os(HOOK_OR_SERVER).is_some() {
        let error = Command::new(&shell).arg("-c").arg(command).exec();
        return Err(Failure::new(format!("{shell}: {error}")));
    }
    let folder = folder()?;
    let place = Place { shell, folder, env: environment() };
    // The host's commands are for this machine, whatever server a person uses.
    let paths = &Paths { url: None, ..paths.clone() };
    let client = daemon::client(paths)?;
    let conversation = env::var(CONVERSATION).ok();
    place.run(&client, paths, command, conversation.as_deref()).await
}

/// The link to this binary by the name of the prefix.
fn link(state_dir: &Path) -> Result<PathBuf, Failure> {
    let (binary, folder) = (env::current_exe()?, state_dir.join("bin"));
    let link = folder.join(LINK);
    let failed = |error: io::Error| Failure::new(format!("{}: {error}", link.display()));
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(failed)?;
    if std::fs::read_link(&link).ok().as_ref() != Some(&binary) {
        let new = folder.join(format!("{LINK}.{}", std::process::id()));
        symlink(&binary, &new).and_then(|()| std::fs::rename(&new, &link)).map_err(failed)?;
    }
    Ok(link)
}

/// The host's shell: Claude Code writes its commands for bash or zsh.
fn shell() -> String {
    let is_known = |shell: &String| shell.ends_with("/bash") || shell.ends_with("/zsh");
    ["CLAUDE_CODE_SHELL", "SHELL"].iter().filter_map(|name| env::var(name).ok()).find(is_known).unwrap_or("bash".into())
}

/// The host's directory, by the name that the host has for it.
fn folder() -> Result<String, Failure> {
    let here = std::fs::metadata(".");
    let is_here = |named: &PathBuf| {
        let there = std::fs::metadata(named);
        named.is_absolute()
            && here.as_ref().is_ok_and(|h| there.is_ok_and(|t| (h.dev(), h.ino()) == (t.dev(), t.ino())))
    };
    let named = env::var_os("PWD").map(PathBuf::from).filter(is_here).map_or_else(env::current_dir, Ok);
    let named = named
        .map_err(|error| Failure::new(format!("the current directory has no name: {error}; change to another one")))?;
    named.into_os_string().into_string().map_err(|_| {
        Failure::usage("the directory's name is not UTF-8, and a session cannot start there; use another directory")
    })
}

/// Whether a shell can set and remove a variable of this name.
fn is_variable(name: &str) -> bool {
    let is_word = |c: char| c == '_' || c.is_ascii_alphanumeric();
    name.chars().all(is_word) && name.starts_with(|c: char| !c.is_ascii_digit())
}

fn is_passed(name: &str) -> bool {
    is_variable(name) && !NOT_PASSED.contains(&name) && !name.starts_with("PTYD_")
}

fn environment() -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, String> = env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| is_passed(name))
        .collect();
    for pager in PAGERS {
        all.entry(pager.to_owned()).or_insert_with(|| "cat".to_owned());
    }
    all
}

/// Where a command runs: its shell, its directory and its environment.
struct Place {
    shell: String,
    folder: String,
    env: BTreeMap<String, String>,
}

impl Place {
    /// The command in a fresh shell: like the host's own, it begins in the host's directory, without the variables that only the server
    /// has, and leaves none behind.
    fn text(&self, command: &str, foreign: &[&str]) -> String {
        let unset = if foreign.is_empty() {
            String::new()
        } else {
            format!("command unset -v {} 2>/dev/null; ", foreign.join(" "))
        };
        // Without any input, a program must not read from the session's terminal.
        let input = if Input::find() == Input::None { " </dev/null" } else { "" };
        let [folder, shell, command] = [&self.folder, &self.shell, command].map(quoted);
        format!("({unset}cd -- {folder} && exec {shell} -c {command}){input}")
    }

    /// A session whose own shell reads no file of the user's, so the command gets the host's environment.
    fn request(&self, name: Option<String>) -> CreateRequest {
        CreateRequest {
            shell: Some("sh".to_owned()),
            fallback_cwd: Some(self.folder.clone()),
            env: self.env.clone(),
            // A prefix that was killed may have left it behind.
            inactivity_timeout: Some(IDLE_SECONDS),
            name,
            ..CreateRequest::default()
        }
    }

    /// The name of the sessions of a conversation with this environment.
    fn name(&self, conversation: &str) -> String {
        let mut hasher = DefaultHasher::new();
        (conversation, &self.env).hash(&mut hasher);
        let project: String = Path::new(&self.folder)
            .file_name()
            .map(|name| name.to_string_lossy().chars().filter(|c| !c.is_control()).take(60).collect())
            .unwrap_or_default();
        format!("claude/{project} {:08x}", hasher.finish() >> 32)
    }

    /// Runs it in an idle session of the conversation, or in a new one. Without a conversation, the session ends with the command.
    async fn run(
        &self,
        client: &Client,
        paths: &Paths,
        command: &str,
        conversation: Option<&str>,
    ) -> Result<ExitCode, Failure> {
        let Some(conversation) = conversation else {
            let session = client.create(&self.request(None), None).await?;
            let result = self.run_within(client, paths, command, &session.id).await;
            client.terminate(&session.id, true, None).await?;
            return result;
        };
        let name = self.name(conversation);
        let is_idle = |session: &TerminalSession| {
            session.status == SessionStatus::Running && session.foreground == Foreground::Idle
        };
        let mut number = 1;
        loop {
            // Commands at the same time have sessions of their own.
            let name = if number == 1 { name.clone() } else { format!("{name}-{number}") };
            let query = SessionListQuery { name: Some(name.clone()), ..SessionListQuery::default() };
            let session = match client.list_as(&query).await?.terminals.into_iter().next() {
                Some(session) if is_idle(&session) => session,
                Some(_) => {
                    number += 1;
                    continue;
                }
                None => match client.create(&self.request(Some(name)), None).await {
                    Ok(session) => session,
                    // Another command of the conversation was faster.
                    Err(error) if error.code() == Some(ErrorCode::NameTaken) => continue,
                    Err(error) => return Err(error.into()),
                },
            };
            match self.run_within(client, paths, command, &session.id).await {
                Err(failure) if failure.reason == Some(ErrorCode::SessionBusy) => number += 1,
                result => return result,
            }
        }
    }

    async fn run_within(
        &self,
        client: &Client,
        paths: &Paths,
        command: &str,
        session: &str,
    ) -> Result<ExitCode, Failure> {
        let all = client.environment(session).await?.variables;
        let foreign = |name: &&str| is_passed(name) && !self.env.contains_key(*name);
        let foreign: Vec<_> = all.keys().map(String::as_str).filter(foreign).collect();
        run::run(client, paths, &RunOptions::line(session.to_owned(), self.text(command, &foreign))).await
    }
}
