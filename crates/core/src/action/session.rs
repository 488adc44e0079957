//! Sessions: requests to start, list and end them, and their views.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use journal::MaskedText;

use super::command::{Boundary, NamedAction};
use super::limits::{KeptLimit, LimitHit, Limits};
use super::take_over::{Driver, Hold};
use crate::confinement_tier::ConfinementTier;
use crate::ids::{CommandId, SessionId};
use crate::principal::Detach;

/// Environment variables: names and values as the kernel has them.
pub type Variables = Vec<(Vec<u8>, Vec<u8>)>;

/// A request to start a session. Every field has a default.
#[derive(Debug, Clone, Default)]
pub struct Create {
    /// A name (`bash`) or a path; the default is the user's own shell.
    pub shell: Option<String>,
    /// Whether to start a login shell.
    pub login: bool,
    /// The start directory; the default is the client's, or else the server's own.
    pub cwd: Option<PathBuf>,
    /// Variables added to the base environment.
    pub env: Vec<(String, String)>,
    /// The base environment, if it is another process's (a stdio client's), or else the server's own.
    pub base_env: Option<Arc<Variables>>,
    /// The width in cells; the default is 120.
    pub cols: Option<u16>,
    /// The height in cells; the default is 40.
    pub rows: Option<u16>,
    /// The profile to start it with; without one, the default profile if there is one.
    pub profile: Option<String>,
    /// The least confinement of its shell and programs; profile and token may ask for more.
    pub confinement: Option<ConfinementTier>,
    /// The client's context, used where neither request nor profile sets a value.
    pub otherwise: Otherwise,
    /// Its name, for people.
    pub name: Option<String>,
    /// The owner, if an admin starts it for another principal.
    pub owner: Option<String>,
    /// Whether descendants continue when the session ends.
    pub keeps_descendants: bool,
    /// The stdio client whose disconnect starts the grace period.
    pub client: Option<String>,
    /// The fate of the session when that client disconnects.
    pub detach: Detach,
    /// Its limits.
    pub limits: Limits,
    /// Its named actions.
    pub named_actions: BTreeMap<String, NamedAction>,
    /// Whether it is that client's default session, the one of the `terminal` tool.
    pub is_default: bool,
    /// Whether a model starts it.
    pub is_by_model: bool,
    /// The idempotency key: a repeated request with it gets the same session.
    pub key: Option<String>,
}

/// A client's context: values used where neither request nor profile sets any.
#[derive(Debug, Clone, Default)]
pub struct Otherwise {
    /// The client's directory.
    pub cwd: Option<PathBuf>,
    /// The width in cells.
    pub cols: Option<u16>,
    /// The height in cells.
    pub rows: Option<u16>,
    /// The file mode mask.
    pub umask: Option<u32>,
}

/// A new session.
#[derive(Debug, Clone)]
pub struct Created {
    /// The session at its first prompt.
    pub session: SessionView,
    /// The commands of its profile that are to be run before it is announced.
    pub startup: Vec<String>,
    /// Whether this request started it; an earlier one with the same idempotency key, or of the same client, may have.
    pub is_new: bool,
    /// For a client's default session: the live sessions of the same owner whose client has disconnected, the one used
    /// last first.
    pub left_behind: Vec<SessionView>,
}

impl Created {
    /// A session that an earlier request started.
    pub(crate) fn earlier(session: SessionView) -> Self {
        Self { session, startup: Vec::new(), is_new: false, left_behind: Vec::new() }
    }
}

/// A start-up command of a profile that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartupFailure {
    /// The command's text.
    pub command: MaskedText,
    /// The reason, as text.
    pub reason: MaskedText,
}

/// A request to list sessions.
#[derive(Debug, Clone, Default)]
pub struct List {
    /// Only sessions of this owner.
    pub owner: Option<String>,
    /// Only sessions in this state; without it, all but the terminated ones.
    pub status: Option<SessionStatus>,
    /// Only sessions with this name.
    pub name: Option<String>,
    /// The newest first instead of the oldest.
    pub is_newest_first: bool,
    /// At most this many.
    pub limit: usize,
    /// Skip this many.
    pub offset: usize,
}

/// A page of a list of sessions.
#[derive(Debug, Clone, Default)]
pub struct SessionPage {
    /// The sessions.
    pub sessions: Vec<SessionView>,
    /// How many there are on all pages.
    pub total: usize,
    /// Sessions on other nodes may be missing, because the directory of all nodes does not answer.
    pub is_degraded: bool,
}

/// A session's life: terminal-management.md §3.4.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SessionStatus {
    /// The shell has not had its first prompt.
    Creating,
    /// It accepts commands.
    Running,
    /// It has ended; its output can be read.
    Terminated,
}

/// The present view of a session.
#[derive(Debug, Clone)]
pub struct SessionView {
    /// Its id.
    pub id: SessionId,
    /// Its name, for people.
    pub name: Option<String>,
    /// Its state.
    pub status: SessionStatus,
    /// The shell's name.
    pub shell: String,
    /// The shell's process, while it lives.
    pub pid: Option<u32>,
    /// The shell's working directory, in its original bytes.
    pub cwd: PathBuf,
    /// The variables requested at the start, with secret-looking values redacted.
    pub env: Vec<(String, MaskedText)>,
    /// When it was created.
    pub created_at: SystemTime,
    /// The last input, command or output.
    pub last_activity: SystemTime,
    /// Its owner.
    pub owner: String,
    /// The width in cells.
    pub cols: u16,
    /// The height in cells.
    pub rows: u16,
    /// The resources used by its processes.
    pub usage: Usage,
    /// The state of its foreground.
    pub foreground: Foreground,
    /// How certain its commands' ends are.
    pub boundary: Boundary,
    /// The running command.
    pub current_command: Option<CommandId>,
    /// Its text.
    pub current_command_text: Option<Arc<str>>,
    /// The newest command that has ended.
    pub last_ended: Option<CommandId>,
    /// The offset of the oldest retained byte.
    pub first_offset: u64,
    /// The journal's end.
    pub end_offset: u64,
    /// How it ended.
    pub exit: Option<SessionExit>,
    /// A present problem, such as a full disk.
    pub trouble: Option<String>,
    /// It lives, but the server cannot reach its holder.
    pub is_unreachable: bool,
    /// Its directory was removed.
    pub is_cwd_gone: bool,
    /// The toolchains on its PATH.
    pub tools: Tools,
    /// The profile with which it was started.
    pub profile: Option<String>,
    /// How its shell and programs are confined.
    pub confinement: Option<ConfinementTier>,
    /// The policy of its commands and input.
    pub policy: Option<PolicyView>,
    /// Start-up commands of that profile that failed.
    pub startup_failed: Vec<StartupFailure>,
    /// The file with all of its output.
    pub log_file: PathBuf,
    /// Its limits.
    pub limits: Vec<KeptLimit>,
    /// The newest limits that it hit.
    pub limits_hit: Vec<LimitHit>,
    /// The client that has taken its keyboard.
    pub driver: Option<Arc<Driver>>,
    /// The name by which the client that started it calls itself.
    pub client_name: Option<String>,
    /// The principals of its viewers, one name for each viewer.
    pub viewers: Vec<String>,
}

/// The answer to a request that takes the keyboard.
#[derive(Debug)]
pub struct Taken {
    /// The session afterwards.
    pub session: SessionView,
    /// The hold of a request with [`Take::is_held`].
    pub hold: Option<Hold>,
}

/// The policy of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyView {
    /// Its name.
    pub name: String,
    /// Why none of the session's commands can be proven any more.
    pub unprovable: Option<Arc<str>>,
}

/// The state of the foreground, from the kernel and the attested reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Foreground {
    /// The shell is at its prompt.
    Idle,
    /// A program runs.
    Running,
    /// A program waits for a line or a key, with echo.
    InputWanted,
    /// A program waits for input without echo.
    PasswordWanted,
    /// A program paints the whole screen.
    Fullscreen,
    /// The last command was stopped (`^Z`), or the running program was (`kill -STOP`); it waits to be resumed.
    Stopped,
}

impl Foreground {
    /// Its name, the same in every protocol.
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Running => "running",
            Self::InputWanted => "input_wanted",
            Self::PasswordWanted => "password_wanted",
            Self::Fullscreen => "fullscreen",
            Self::Stopped => "stopped",
        }
    }
}

/// The programs found under these names on a PATH.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tools {
    /// `python`, or else `python3`.
    pub python: Option<PathBuf>,
    /// `node`.
    pub node: Option<PathBuf>,
    /// `rustc`.
    pub rustc: Option<PathBuf>,
    /// `cargo`.
    pub cargo: Option<PathBuf>,
}

impl Tools {
    /// Each tool with its name.
    pub fn named(&self) -> [(&'static str, Option<&PathBuf>); 4] {
        let Self { python, node, rustc, cargo } = self;
        [("python", python), ("node", node), ("rustc", rustc), ("cargo", cargo)].map(|(n, path)| (n, path.as_ref()))
    }
}

/// The resources used by a process tree.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Usage {
    /// Percent of one core since the previous request, or since the start.
    pub cpu_percent: f64,
    /// Resident memory in MiB.
    pub memory_mb: f64,
    /// The number of processes.
    pub processes: u32,
}

/// The environment with which a shell was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvironmentView {
    /// The profile's name.
    pub profile: Option<String>,
    /// The user, if not the server's own.
    pub user: Option<String>,
    /// The shell's program.
    pub shell: PathBuf,
    /// Whether it is a login shell.
    pub is_login: bool,
    /// The file mode mask.
    pub umask: u32,
    /// All variables, secret-looking values redacted.
    pub variables: Variables,
    /// The toolchains on its present PATH.
    pub tools: Tools,
}

/// A request to end a session.
#[derive(Debug, Clone)]
pub struct Terminate {
    /// The session.
    pub session: SessionId,
    /// End it at once with SIGKILL.
    pub force: bool,
    /// The first signal, instead of HUP.
    pub signo: Option<i32>,
    /// The grace period after it and after TERM, instead of [`crate::limits::TERMINATE_GRACE`].
    pub grace: Option<Duration>,
    /// Also remove its records; for a live session only with `force`.
    pub purges: bool,
}

/// The result of terminating a session.
#[derive(Debug, Clone)]
pub struct TerminatedView {
    /// The session afterwards.
    pub session: SessionView,
    /// How many processes were ended.
    pub killed: u64,
    /// How many processes could not be ended.
    pub left: u64,
    /// The session had ended before.
    pub was_over: bool,
    /// How many bytes of disk space a purge has freed.
    pub freed_bytes: Option<u64>,
}

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SessionExit {
    /// The shell's exit code.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The reason, as text.
    pub reason: String,
    /// When it ended.
    pub at: SystemTime,
}
