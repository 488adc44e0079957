//! `ptyd shell-prefix`: runs the commands of a host's own shell tool in sessions. A host such as Claude Code gives each command as one
//! word, with `CLAUDE_CODE_SHELL_PREFIX` in front of it.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use api::{CreateRequest, ErrorCode, ExecuteRequest, Foreground, SessionListQuery, SessionStatus, TerminalSession};
use clap::Args;
use client::Client;

use crate::exit::Failure;
use crate::paths::Paths;
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

/// The arguments, with the subcommand that the binary's name stands for.
pub fn arguments() -> Vec<OsString> {
    let mut arguments: Vec<_> = env::args_os().collect();
    let is_prefix = arguments.first().is_some_and(|name| Path::new(name).file_name() == Some(LINK.as_ref()));
    if is_prefix {
        // A command may begin with a dash.
        arguments.splice(1..1, ["shell-prefix".into(), "--".into()]);
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
    let folder = env::current_dir()?.into_os_string().into_string().map_err(|_| {
        Failure::usage("the directory's name is not UTF-8, and a session cannot start there; use another directory")
    })?;
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

fn environment() -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, String> = env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| !NOT_PASSED.contains(&name.as_str()) && !name.starts_with("PTYD_"))
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
    /// The command in a fresh shell: like the host's own, it begins in the host's directory and leaves no variables behind.
    fn text(&self, command: &str) -> String {
        format!("(cd -- {} && exec {} -c {})", quoted(&self.folder), quoted(&self.shell), quoted(command))
    }

    /// A session whose own shell reads no file of the user's, so the command gets the host's environment.
    fn request(&self, name: Option<String>) -> CreateRequest {
        CreateRequest {
            shell: Some("sh".to_owned()),
            fallback_cwd: Some(self.folder.clone()),
            env: self.env.clone(),
            inactivity_timeout: name.is_some().then_some(IDLE_SECONDS),
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
            let session = self.session(client, None).await?;
            let result = self.run_within(client, paths, command, &session.id).await;
            client.terminate(&session.id, true, None).await?;
            return result;
        };
        let name = self.name(conversation);
        let query = SessionListQuery { name: Some(name.clone()), ..SessionListQuery::default() };
        let is_idle = |session: &TerminalSession| {
            session.status == SessionStatus::Running && session.foreground == Foreground::Idle
        };
        for session in client.list_as(&query).await?.terminals.into_iter().filter(is_idle) {
            match self.run_within(client, paths, command, &session.id).await {
                Err(failure) if failure.reason == Some(ErrorCode::SessionBusy) => {}
                result => return result,
            }
        }
        let session = self.session(client, Some(name)).await?;
        self.run_within(client, paths, command, &session.id).await
    }

    /// A new session without those variables of the server that the host does not have.
    async fn session(&self, client: &Client, name: Option<String>) -> Result<TerminalSession, Failure> {
        let session = client.create(&self.request(name), None).await?;
        let all = client.environment(&session.id).await?.variables;
        let is_foreign = |name: &&String| {
            !self.env.contains_key(*name) && !NOT_PASSED.contains(&name.as_str()) && !name.starts_with("PTYD_")
        };
        let foreign: Vec<_> = all.keys().filter(is_foreign).map(|name| quoted(name)).collect();
        if !foreign.is_empty() {
            let command = format!("unset -v {}", foreign.join(" "));
            client.execute(&session.id, &ExecuteRequest { command, ..ExecuteRequest::default() }, None).await?;
        }
        Ok(session)
    }

    async fn run_within(
        &self,
        client: &Client,
        paths: &Paths,
        command: &str,
        session: &str,
    ) -> Result<ExitCode, Failure> {
        run::run(client, paths, &RunOptions::line(session.to_owned(), self.text(command))).await
    }
}
