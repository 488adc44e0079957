//! What an action carries: each kind of request with its parameters.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use regex::Regex;

use super::{Limits, OutputKind, SessionStatus, Until};
use crate::auth::principal::Detach;
use crate::ids::{CommandId, SessionId};

/// Environment variables, names and values as the kernel has them.
pub type Variables = Vec<(Vec<u8>, Vec<u8>)>;

/// How a session is to be started. Everything has a default.
#[derive(Debug, Clone, Default)]
pub struct Create {
    /// A name (`bash`) or a path; the default is the user's own shell.
    pub shell: Option<String>,
    /// As a login shell.
    pub login: bool,
    /// Where it starts; the default is where the client is, else the server's own directory.
    pub cwd: Option<PathBuf>,
    /// Variables on top of the base environment.
    pub env: Vec<(String, String)>,
    /// The base environment, when it is another process's (a stdio client's); else the server's own.
    pub base_env: Option<Arc<Variables>>,
    /// The file mode mask, when it is another process's.
    pub umask: Option<u32>,
    /// Cells; the default is 120.
    pub cols: Option<u16>,
    /// Cells; the default is 40.
    pub rows: Option<u16>,
    /// The profile by which it is started; without it the default one, if there is one.
    pub profile: Option<String>,
    /// What holds where neither this nor the profile says anything: what a client brings along.
    pub otherwise: Otherwise,
    /// For people.
    pub name: Option<String>,
    /// Whose it is, when an admin starts it for somebody.
    pub owner: Option<String>,
    /// Whether descendants stay when the session ends.
    pub keeps_descendants: bool,
    /// The stdio client whose going starts the grace period.
    pub client: Option<String>,
    /// What its going means for the session.
    pub detach: Detach,
    /// What it may use.
    pub limits: Limits,
    /// What can be asked of it by a name.
    pub reactions: BTreeMap<String, NamedAction>,
    /// It is that client's default session, the one of the `terminal` tool.
    pub is_default: bool,
    /// The same key again answers with the same session.
    pub key: Option<String>,
}

/// What a client brings along to the start of a session, behind what anybody has said.
#[derive(Debug, Clone, Default)]
pub struct Otherwise {
    /// A name or a path.
    pub shell: Option<String>,
    /// Where the client is.
    pub cwd: Option<PathBuf>,
    /// Cells.
    pub cols: Option<u16>,
    /// Cells.
    pub rows: Option<u16>,
}

/// Which sessions to list.
#[derive(Debug, Clone, Default)]
pub struct List {
    /// Only this owner's.
    pub owner: Option<String>,
    /// Only in this state; without it, all but the terminated ones.
    pub status: Option<SessionStatus>,
    /// Only those of this name.
    pub name: Option<String>,
    /// The newest first; without it the oldest.
    pub is_newest_first: bool,
    /// At most this many.
    pub limit: usize,
    /// Skip this many.
    pub offset: usize,
}

/// How to end a session.
#[derive(Debug, Clone)]
pub struct Terminate {
    /// Which session.
    pub session: SessionId,
    /// At once, with KILL.
    pub force: bool,
    /// The first signal instead of HUP.
    pub signo: Option<i32>,
    /// How long to wait after it, and after TERM, instead of [`crate::limits::TERMINATE_GRACE`].
    pub grace: Option<Duration>,
    /// Remove what is kept of it; of one that lives only with `force`.
    pub purges: bool,
}

/// What is done when its name is asked for: an application's own way to be told something.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum NamedAction {
    /// A signal to the foreground.
    Signal(i32),
    /// Keys, by name.
    Keys(Vec<String>),
    /// A command.
    Command(String),
}

/// A command to run.
#[derive(Debug, Clone)]
pub struct Execute {
    /// Which session.
    pub session: SessionId,
    /// The text, as data: nothing in it is typed. At most [`crate::limits::COMMAND_BYTES_MAX`], no NUL.
    pub command: String,
    /// In the shell that reads there now, inside the session's own.
    pub is_inside: bool,
    /// What to wait for. `None` answers as soon as the command is accepted.
    pub wait: Option<Wait>,
    /// The same key again answers with the same command.
    pub key: Option<String>,
    /// How many characters of output to give at most.
    pub budget: usize,
}

/// Something to type.
#[derive(Debug, Clone)]
pub struct Input {
    /// Which session.
    pub session: SessionId,
    /// The bytes; the doors translate key names into them ([`crate::keys`]).
    pub bytes: InputBytes,
    /// Keep it out of every record.
    pub is_secret: bool,
    /// What to wait for afterwards. `None` answers once it is typed.
    pub wait: Option<Wait>,
    /// The same key again is not typed again.
    pub key: Option<String>,
    /// How many characters of output to give at most.
    pub budget: usize,
}

/// What to type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputBytes {
    /// These bytes as they are.
    Raw(Vec<u8>),
    /// Named keys, which depend on the terminal's modes at the moment of typing.
    Keys(Vec<crate::keys::Key>),
    /// Text as from a clipboard, in brackets where the program has asked for them.
    Paste {
        /// The text.
        text: String,
        /// Enter follows.
        enters: bool,
    },
}

/// What ends a wait. The first of them does; the end of the command and of the session always do.
#[derive(Debug, Clone)]
pub struct Wait {
    /// This expression matches the clean text since the call began (or the screen of a full-screen program).
    pub pattern: Option<Regex>,
    /// One of these holds.
    pub until: Vec<Until>,
    /// The program wants input (not looked at while a pattern or something else is waited for).
    pub input_wanted: bool,
    /// No new output for this long.
    pub quiet: Option<Duration>,
    /// At the latest after this.
    pub timeout: Duration,
}

/// Output to read.
#[derive(Debug, Clone)]
pub struct ReadOutput {
    /// Which session.
    pub session: SessionId,
    /// From where.
    pub since: Since,
    /// Only the next stretch of output of this kind.
    pub kind: Option<OutputKind>,
    /// In which form.
    pub view: View,
    /// At most this many bytes of the journal.
    pub limit: usize,
    /// Keep only this many newest lines (text).
    pub lines_max: Option<usize>,
    /// Wait this long for at least one new byte.
    pub wait: Duration,
    /// How many characters of text to give at most.
    pub budget: usize,
}

/// A position in the output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Since {
    /// The oldest byte that is kept.
    First,
    /// This offset.
    Offset(u64),
    /// What came at or after this time.
    Time(SystemTime),
    /// Where this caller stopped the last time.
    Last,
    /// The output of this command.
    Command(CommandId),
}

/// The forms of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// As a person would see it.
    Text,
    /// Every byte as it came, markers included.
    Raw,
    /// Every byte but our markers and the queries that ptyd answers itself: what a terminal should be fed.
    Stream,
}

/// Whom a signal is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalTarget {
    /// The foreground process group.
    Foreground,
    /// Every process of the session.
    Session,
    /// One process of the session.
    Process(u32),
}

/// A call of the one-tool shell.
#[derive(Debug, Clone)]
pub struct TerminalCall {
    /// Another session than the default one.
    pub session: Option<SessionId>,
    /// The command, `""` to look, or exactly `C-c`, `C-z`, `C-d`.
    pub command: String,
    /// It is standard input for the running program.
    pub is_input: bool,
    /// It is a command for the shell that reads there now, inside the session's own.
    pub is_inside: bool,
    /// The longest wait.
    pub timeout: Option<Duration>,
    /// A fresh shell first.
    pub reset: bool,
    /// What to wait for.
    pub pattern: Option<Regex>,
    /// The client whose default session it is.
    pub client: ClientContext,
    /// The same key again does not run again.
    pub key: Option<String>,
    /// How many characters of output to give at most.
    pub budget: usize,
}

/// Where a client is: a stdio client's own directory, environment and mask, and the name of its default session.
#[derive(Debug, Clone, Default)]
pub struct ClientContext {
    /// Names the client for as long as it lives; `None` for a caller that has no default session.
    pub client: Option<String>,
    /// Its directory.
    pub cwd: Option<PathBuf>,
    /// Its environment.
    pub env: Option<Arc<Variables>>,
    /// Its mask.
    pub umask: Option<u32>,
    /// What its going means for its sessions.
    pub detach: Detach,
}
