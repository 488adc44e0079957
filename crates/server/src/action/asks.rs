//! The requests of actions, with their parameters.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::{Limits, OutputKind, Pattern, SessionStatus, Until};
use crate::auth::principal::Detach;
use crate::ids::{CommandId, SessionId};

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
    /// The file mode mask, if it is another process's.
    pub umask: Option<u32>,
    /// The width in cells; the default is 120.
    pub cols: Option<u16>,
    /// The height in cells; the default is 40.
    pub rows: Option<u16>,
    /// The profile to start it with; without one, the default profile if there is one.
    pub profile: Option<String>,
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
    /// What happens to the session when that client disconnects.
    pub detach: Detach,
    /// Its limits.
    pub limits: Limits,
    /// Its named actions.
    pub reactions: BTreeMap<String, NamedAction>,
    /// Whether it is that client's default session, the one of the `terminal` tool.
    pub is_default: bool,
    /// The idempotency key: a repeated request with it gets the same session.
    pub key: Option<String>,
}

/// A client's context: values used where neither request nor profile sets any.
#[derive(Debug, Clone, Default)]
pub struct Otherwise {
    /// A shell's name or path.
    pub shell: Option<String>,
    /// The client's directory.
    pub cwd: Option<PathBuf>,
    /// The width in cells.
    pub cols: Option<u16>,
    /// The height in cells.
    pub rows: Option<u16>,
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

/// A request to end a session.
#[derive(Debug, Clone)]
pub struct Terminate {
    /// Which session.
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

/// A named action of a session.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum NamedAction {
    /// Send a signal to the foreground.
    Signal(i32),
    /// Type keys, by name.
    Keys(Vec<String>),
    /// Run a command.
    Command(String),
}

/// A command to run.
#[derive(Debug, Clone)]
pub struct Execute {
    /// Which session.
    pub session: SessionId,
    /// The text; it is handed over as data and not typed. At most [`crate::limits::COMMAND_BYTES_MAX`], no NUL.
    pub command: String,
    /// Run it in the nested shell that reads now.
    pub is_inside: bool,
    /// The wait; `None` answers as soon as the command is accepted.
    pub wait: Option<Wait>,
    /// The idempotency key: a repeated request with it gets the same command.
    pub key: Option<String>,
    /// How many characters of output to give at most.
    pub budget: usize,
}

/// A request to type input.
#[derive(Debug, Clone)]
pub struct Input {
    /// Which session.
    pub session: SessionId,
    /// The input; key names are parsed by the protocols ([`crate::keys`]).
    pub bytes: InputBytes,
    /// Keep the bytes out of every record.
    pub is_secret: bool,
    /// The wait afterwards; `None` answers once the input is typed.
    pub wait: Option<Wait>,
    /// The idempotency key: a repeated request with it is not typed again.
    pub key: Option<String>,
    /// How many characters of output to give at most.
    pub budget: usize,
}

/// The input to type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputBytes {
    /// These bytes, unchanged.
    Raw(Vec<u8>),
    /// Named keys, which depend on the terminal's modes at the moment of typing.
    Keys(Vec<crate::keys::Key>),
    /// Text as from a clipboard, in bracketed paste mode if the program has enabled it.
    Paste {
        /// The text.
        text: String,
        /// Whether Enter follows.
        enters: bool,
    },
}

/// The conditions that end a wait; the first one to be met does. The end of the command and of the session always end
/// it.
#[derive(Debug, Clone)]
pub struct Wait {
    /// This expression matches the plain text since the call began, or the screen of a full-screen program.
    pub pattern: Option<Pattern>,
    /// One of these conditions is met.
    pub until: Vec<Until>,
    /// The program wants input (ignored if there is a pattern or another condition).
    pub input_wanted: bool,
    /// No new output for this long.
    pub quiet: Option<Duration>,
    /// The timeout.
    pub timeout: Duration,
}

/// A request to read output.
#[derive(Debug, Clone)]
pub struct ReadOutput {
    /// Which session.
    pub session: SessionId,
    /// The position to start at.
    pub since: Since,
    /// Only the next range of output of this kind.
    pub kind: Option<OutputKind>,
    /// The form of the output.
    pub view: View,
    /// At most this many bytes of the journal.
    pub limit: usize,
    /// Only this many of the newest lines (text).
    pub lines_max: Option<usize>,
    /// Wait this long for at least one new byte.
    pub wait: Duration,
    /// How many characters of text to give at most.
    pub budget: usize,
}

/// A position in the output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Since {
    /// The oldest retained byte.
    First,
    /// This offset.
    Offset(u64),
    /// The first output at or after this time.
    Time(SystemTime),
    /// The caller's read cursor.
    Last,
    /// The output of this command.
    Command(CommandId),
}

/// The forms of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// Text as a terminal shows it.
    Text,
    /// Every byte, markers included.
    Raw,
    /// The bytes for a terminal: without our markers and without the queries that ptyd answers itself.
    Stream,
}

/// The target of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalTarget {
    /// The foreground process group.
    Foreground,
    /// Every process of the session.
    Session,
    /// One process of the session.
    Process(u32),
}
