//! `ptyd setup`: adds ptyd to the MCP clients of this user, and takes it away again.
//!
//! Claude Code and Codex have a command for that, which ptyd runs. For Cursor, VS Code and Zed, ptyd edits the file of settings and
//! keeps its comments. It shows each step first, and remembers it for `--undo`.

mod file_edit;

use std::io::{self, BufRead};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use clap::{Args, ValueEnum};
use etcetera::BaseStrategy;
use etcetera::base_strategy::Xdg;
use serde::{Deserialize, Serialize};
use terminal::quote;

use crate::exit::Failure;
use crate::paths::Paths;
use crate::serve::quoted;
use crate::{print, skill, tty};
use file_edit::{FileEdit, Part, Value};

/// The options of `setup`.
#[derive(Debug, Args)]
pub struct SetupOptions {
    /// The MCP clients [default: those that this user has]
    hosts: Vec<Host>,
    /// Print the steps, and change nothing
    #[arg(long)]
    print: bool,
    /// Remove everything that earlier setups have added
    #[arg(long, conflicts_with_all = ["print", "allow", "instructions", "skill"])]
    undo: bool,
    /// Take every step without asking
    #[arg(long, short)]
    yes: bool,
    /// Also let Claude Code use ptyd's tools without asking each time
    #[arg(long)]
    allow: bool,
    /// Also tell the agent to prefer ptyd, in CLAUDE.md or AGENTS.md
    #[arg(long)]
    instructions: bool,
    /// Also add the skill that teaches an agent ptyd's command line
    #[arg(long)]
    skill: bool,
}

/// An MCP client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Host {
    /// Claude Code
    #[value(alias = "claude-code")]
    Claude,
    /// Codex
    Codex,
    /// Cursor
    Cursor,
    /// Visual Studio Code
    #[value(alias = "code")]
    Vscode,
    /// Zed
    Zed,
}

/// The line that makes an agent prefer ptyd.
const INSTRUCTIONS: &str = "Use ptyd's `terminal` tool for shell commands: its shell keeps its directory and variables, programs may ask \
                            questions, and each answer has the exact exit code.\n";

/// The line for every other MCP client.
const OTHERS: &str = "npx add-mcp 'ptyd mcp' --name=ptyd --global";

/// A step of a setup.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Step {
    /// A command of the host, and the one that reverts it.
    Run {
        adds: Vec<String>,
        removes: Vec<String>,
    },
    Edit(FileEdit),
}

/// A step that was done for a host.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Done {
    host: Host,
    step: Step,
}

/// This user's folders.
struct Folders {
    home: PathBuf,
    config: PathBuf,
    claude: PathBuf,
    codex: PathBuf,
}

impl Folders {
    fn find() -> io::Result<Self> {
        let xdg = Xdg::new().map_err(|_| io::Error::other("there is no home directory: set HOME"))?;
        let home = xdg.home_dir().to_owned();
        let of = |variable: &str, name: &str| {
            std::env::var_os(variable).filter(|v| !v.is_empty()).map_or_else(|| home.join(name), PathBuf::from)
        };
        let (claude, codex) = (of("CLAUDE_CONFIG_DIR", ".claude"), of("CODEX_HOME", ".codex"));
        Ok(Self { config: xdg.config_dir(), claude, codex, home })
    }
}

impl Host {
    const ALL: [Self; 5] = [Self::Claude, Self::Codex, Self::Cursor, Self::Vscode, Self::Zed];

    fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Cursor => "Cursor",
            Self::Vscode => "VS Code",
            Self::Zed => "Zed",
        }
    }

    /// Whether this user has it.
    fn is_there(self, folders: &Folders) -> bool {
        match self {
            Self::Claude => on_path("claude").is_some(),
            Self::Codex => on_path("codex").is_some(),
            Self::Cursor => folders.home.join(".cursor").is_dir(),
            Self::Vscode => folders.config.join("Code/User").is_dir(),
            Self::Zed => folders.config.join("zed").is_dir(),
        }
    }

    /// The step that adds ptyd.
    fn entry(self, folders: &Folders, program: &str) -> Result<Step, Failure> {
        let command = ("command".to_owned(), Value::Text(program.to_owned()));
        let args = ("args".to_owned(), Value::List(vec!["mcp".to_owned()]));
        let of_type = |name: &str, value: &str| (name.to_owned(), Value::Text(value.to_owned()));
        let member = |path: PathBuf, list: &str, value: Vec<(String, Value)>| {
            let at = vec![list.to_owned(), "ptyd".to_owned()];
            Ok(Step::Edit(FileEdit::plan(path, Part::Member { at, value })?))
        };
        match self {
            Self::Claude => run(
                "claude",
                &["mcp", "add", "--scope", "user", "ptyd", "--", program, "mcp"],
                &["mcp", "remove", "--scope", "user", "ptyd"],
            ),
            Self::Codex => run("codex", &["mcp", "add", "ptyd", "--", program, "mcp"], &["mcp", "remove", "ptyd"]),
            Self::Cursor => member(folders.home.join(".cursor/mcp.json"), "mcpServers", vec![command, args]),
            Self::Vscode => member(
                folders.config.join("Code/User/mcp.json"),
                "servers",
                vec![of_type("type", "stdio"), command, args],
            ),
            Self::Zed => {
                let value = vec![of_type("source", "custom"), command, args];
                member(folders.config.join("zed/settings.json"), "context_servers", value)
            }
        }
    }

    /// The further steps that the options ask for.
    fn extras(self, folders: &Folders, options: &SetupOptions) -> Result<Vec<Step>, Failure> {
        let mut all = Vec::new();
        let mut edit = |path: PathBuf, part: Part| -> Result<(), Failure> {
            all.push(Step::Edit(FileEdit::plan(path, part)?));
            Ok(())
        };
        if options.allow && self == Self::Claude {
            let at = vec!["permissions".to_owned(), "allow".to_owned()];
            edit(folders.claude.join("settings.json"), Part::Item { at, item: "mcp__ptyd".to_owned() })?;
        }
        let instructions = match self {
            Self::Claude => Some(folders.claude.join("CLAUDE.md")),
            Self::Codex => Some(folders.codex.join("AGENTS.md")),
            Self::Cursor | Self::Vscode | Self::Zed => None,
        };
        if let Some(path) = instructions.filter(|_| options.instructions) {
            edit(path, Part::Lines(INSTRUCTIONS.to_owned()))?;
        }
        if options.skill {
            let folder =
                if self == Self::Claude { folders.claude.join("skills") } else { folders.home.join(".agents/skills") };
            edit(folder.join("ptyd/SKILL.md"), Part::Whole(skill::TEXT.to_owned()))?;
        }
        Ok(all)
    }
}

fn run(program: &str, adds: &[&str], removes: &[&str]) -> Result<Step, Failure> {
    let program = on_path(program).ok_or_else(|| {
        Failure::new(format!(
            "there is no {program} on PATH; install it first, or add ptyd to it by hand (docs/clients.md)"
        ))
    })?;
    let words = |rest: &[&str]| {
        let rest = rest.iter().map(|word| (*word).to_owned());
        std::iter::once(program.to_string_lossy().into_owned()).chain(rest).collect()
    };
    Ok(Step::Run { adds: words(adds), removes: words(removes) })
}

fn on_path(program: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(program)).find(|path| path.is_file())
}

impl Step {
    fn shown(&self) -> String {
        match self {
            Self::Run { adds, .. } => format!("run {}\n", words(adds)),
            Self::Edit(edit) if edit.is_done() => format!("{} has it already\n", edit.path.display()),
            Self::Edit(edit) => format!("edit {}\n{}", edit.path.display(), edit.shown()),
        }
    }

    /// Does it; false if there was nothing to do.
    fn apply(&mut self) -> Result<bool, Failure> {
        match self {
            Self::Run { adds, .. } => match output_of(adds)? {
                (true, _) => Ok(true),
                (false, said) if said.contains("already exists") => Ok(false),
                (false, said) => Err(Failure::new(format!("{}: {said}", words(adds)))),
            },
            Self::Edit(edit) if edit.is_done() => Ok(false),
            Self::Edit(edit) => Ok(edit.apply().map(|()| true)?),
        }
    }

    fn undo(&self) -> Result<(), Failure> {
        match self {
            Self::Run { removes, .. } => match output_of(removes)? {
                (true, _) => Ok(()),
                // Somebody has removed it meanwhile.
                (false, said) if said.contains("No ") || said.contains("not found") => Ok(()),
                (false, said) => Err(Failure::new(format!("{}: {said}", words(removes)))),
            },
            Self::Edit(edit) => Ok(edit.undo()?),
        }
    }
}

fn words(command: &[String]) -> String {
    command.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// Whether a command of a host succeeded, and what it printed.
fn output_of(command: &[String]) -> Result<(bool, String), Failure> {
    let [program, rest @ ..] = command else { return Err(Failure::new("there is no command")) };
    let output = Command::new(program).args(rest).stdin(Stdio::null()).output();
    let output = output.map_err(|e| Failure::new(format!("{program}: {e}")))?;
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Ok((output.status.success(), said.trim().to_owned()))
}

/// Adds ptyd to the hosts, or takes it away.
pub fn setup(paths: &Paths, options: &SetupOptions) -> Result<ExitCode, Failure> {
    let memory = Memory { file: paths.state_dir.join("setup.json") };
    if options.undo {
        return undo(&memory, options);
    }
    let folders = Folders::find()?;
    let program = std::env::current_exe()?.into_os_string().into_string();
    let program = program.map_err(|_| Failure::new("the path of ptyd is not UTF-8"))?;
    let hosts: Vec<Host> = match options.hosts.as_slice() {
        [] => Host::ALL.into_iter().filter(|host| host.is_there(&folders)).collect(),
        given => given.to_vec(),
    };
    if hosts.is_empty() {
        print::note(format_args!("ptyd: none of {} was found", Host::ALL.map(Host::title).join(", ")));
    }
    for host in hosts {
        let entry = host.entry(&folders, &program)?;
        let steps = std::iter::once(entry).chain(host.extras(&folders, options)?);
        for mut step in steps {
            print::lines(format_args!("{}: {}", host.title(), print::harmless(&step.shown())));
            if options.print || !agreed(options)? {
                continue;
            }
            if step.apply()? {
                memory.remember(Done { host, step })?;
            } else {
                print::note(format_args!("{}: nothing to do", host.title()));
            }
        }
    }
    print::note(format_args!("Other MCP clients: {OTHERS}"));
    Ok(ExitCode::SUCCESS)
}

/// Whether the person agrees to the step that was shown.
fn agreed(options: &SetupOptions) -> Result<bool, Failure> {
    if options.yes {
        return Ok(true);
    }
    if !tty::is_interactive() {
        return Err(Failure::usage("there is no terminal to ask on; add --yes, or --print to see the steps"));
    }
    print::lines("Do this? [Y/n] ");
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(matches!(line.trim(), "" | "y" | "Y" | "yes"))
}

fn undo(memory: &Memory, options: &SetupOptions) -> Result<ExitCode, Failure> {
    let is_meant = |done: &Done| options.hosts.is_empty() || options.hosts.contains(&done.host);
    let (meant, kept): (Vec<Done>, Vec<Done>) = memory.read()?.into_iter().partition(is_meant);
    if meant.is_empty() {
        print::note("ptyd: there is nothing to undo");
        return Ok(ExitCode::SUCCESS);
    }
    let mut left = kept;
    let mut failed = None;
    // The newest first: several may be of one file.
    for done in meant.into_iter().rev() {
        match done.step.undo() {
            Ok(()) => print::note(format_args!("{}: undone", done.host.title())),
            Err(failure) => {
                print::note(format_args!("ptyd: {}: {failure}", done.host.title()));
                failed = Some(failure);
                left.push(done);
            }
        }
    }
    memory.write(&left)?;
    failed.map_or(Ok(ExitCode::SUCCESS), Err)
}

/// The steps that were done, in a file that only this user reads: it has earlier texts of the hosts' files.
struct Memory {
    file: PathBuf,
}

impl Memory {
    fn read(&self) -> Result<Vec<Done>, Failure> {
        let text = match std::fs::read_to_string(&self.file) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(Failure::new(format!("{}: {e}", self.file.display()))),
        };
        serde_json::from_str(&text).map_err(|e| {
            let place = quote::line(&self.file.display().to_string()).into_owned();
            Failure::new(format!("{place} cannot be read ({e}); remove it, and remove ptyd from the clients by hand"))
        })
    }

    fn remember(&self, done: Done) -> Result<(), Failure> {
        let mut all = self.read()?;
        all.push(done);
        self.write(&all)
    }

    fn write(&self, all: &[Done]) -> Result<(), Failure> {
        if all.is_empty() {
            return match std::fs::remove_file(&self.file) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e.into()),
                _ => Ok(()),
            };
        }
        let folder = self.file.parent().unwrap_or(Path::new("/"));
        std::fs::create_dir_all(folder)?;
        Ok(file_edit::write(&self.file, &serde_json::to_string_pretty(all).map_err(Failure::new)?)?)
    }
}
