//! Commands: requests to run them, and their views; and the named actions of a session.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::budget::Budget;
use super::limits::Limit;
use super::wait::Wait;
use crate::ids::{CommandId, SessionId};

/// The error of a command that was typed into a program without our hooks: that is why it has no exit code.
pub const WITHOUT_HOOKS: &str = "typed into a program without ptyd's hooks, so its exit code is unknown";
/// How the error of a command begins whose nested shell has ended.
pub const INNER_SHELL_ENDED: &str = "the inner shell has ended";

/// The shell that runs a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TargetShell {
    /// The session's own shell, also while another one runs inside it: then it is busy.
    #[default]
    Own,
    /// The nested shell that is known to be at its prompt, if there is one, else the session's own.
    Foremost,
    /// The nested shell that reads now; behind a connection the caller knows that it is one.
    Nested,
    /// The session's own, for which the command is proven: it runs if the session has admitted no more than so many requests that
    /// are not.
    Proven(u64),
}

impl TargetShell {
    /// As a caller says it that may name the nested shell.
    pub fn of(is_inside: bool) -> Self {
        if is_inside { Self::Nested } else { Self::Own }
    }

    /// The same for a model, which seldom says it.
    pub fn foremost(is_inside: bool) -> Self {
        if is_inside { Self::Nested } else { Self::Foremost }
    }
}

/// Checks that a shell can take this text.
pub fn check_command(text: &str) -> Result<(), String> {
    let (bytes, most) = (text.len(), crate::limits::COMMAND_BYTES_MAX);
    if bytes > most {
        return Err(format!(
            "{bytes} bytes, and at most {most} are possible; put the commands into a file and run the file"
        ));
    }
    if text.contains('\0') {
        return Err("contains a NUL byte, which no shell accepts".to_owned());
    }
    Ok(())
}

/// A command to run.
#[derive(Debug, Clone)]
pub struct Execute {
    /// The session.
    pub session: SessionId,
    /// The text; it is handed over as data and not typed. At most [`crate::limits::COMMAND_BYTES_MAX`], no NUL.
    pub command: String,
    /// The shell that runs it.
    pub shell: TargetShell,
    /// The directory in which a person has allowed it: in another one it is refused.
    pub allowed_in: Option<PathBuf>,
    /// The wait; `None` answers as soon as the command is accepted.
    pub wait: Option<Wait>,
    /// Its time limit, which [`super::Composite::Execute`] enforces.
    pub time_limit: Option<TimeLimit>,
    /// The idempotency key: a repeated request with it gets the same command.
    pub key: Option<String>,
    /// How many characters of output to give at most.
    pub budget: Budget,
}

/// How long a command may run, from its request on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeLimit {
    /// The command may run this long.
    pub after: Duration,
    /// The server ends the command in this way then.
    pub ending: Ending,
}

/// How a command is ended whose time is up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// With C-c, which it may ignore.
    Interrupt,
    /// With C-c, TERM and KILL, each to the foreground process group if the one before did not end it.
    Kill,
}

/// The present view of a command.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct CommandView {
    /// Its id, unique in its session.
    pub id: CommandId,
    /// Its session.
    pub session: SessionId,
    /// The command's text.
    pub command: String,
    /// Its state.
    pub status: CommandStatus,
    /// When it was accepted.
    pub started_at: SystemTime,
    /// When it ended.
    pub completed_at: Option<SystemTime>,
    /// How long it ran, however the clock was set meanwhile.
    pub lasted: Option<Duration>,
    /// The shell's `$?`.
    pub exit_code: Option<i32>,
    /// The signal inferred from an exit code above 128.
    pub signal: Option<i32>,
    /// The exit codes of the last pipeline's parts.
    pub pipestatus: Vec<i32>,
    /// Why it failed, or why it has no exit code.
    pub error: Option<String>,
    /// The first byte of its output.
    pub start_offset: u64,
    /// The offset after the last byte of its output.
    pub end_offset: Option<u64>,
    /// The number of bytes of output so far.
    pub output_size: u64,
    /// The working directory when it ended.
    #[serde(skip)]
    pub cwd: Option<PathBuf>,
    /// How certain its end is.
    pub boundary: Boundary,
    /// The limits that it hit.
    pub limits_hit: Vec<Limit>,
}

/// A command's state: terminal-management.md §3.4.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum CommandStatus {
    /// It has not ended.
    Running,
    /// It has ended, with whatever exit code; without one if the shell did not report it.
    Completed,
    /// It did not run, or nobody knows whether it ran.
    Failed,
    /// It ended with its session.
    Terminated,
}

/// How certain a command's end is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Boundary {
    /// The shell itself reported it over the attestation socket.
    Attested,
    /// A marker in the output showed it: a prompt mark of the sequence given only to the shell, or a nonce typed with
    /// the command.
    Nonce,
    /// Inferred from the kernel's state only; the exit code is unknown.
    Heuristic,
}

impl Boundary {
    /// Its name in the store.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Attested => "attested",
            Self::Nonce => "nonce",
            Self::Heuristic => "heuristic",
        }
    }

    /// The boundary of this name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        [Self::Attested, Self::Nonce, Self::Heuristic].into_iter().find(|boundary| boundary.as_str() == name)
    }
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
