//! The `terminal` tool and the client's default session: the part of the program's interface ([`crate::action`]) of
//! one-tool clients.

use super::budget::Budget;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::command::{CommandView, Execute, TimeLimit};
use super::input::Input;
use super::output::TextView;
use super::pattern::Pattern;
use super::report::Report;
use super::session::{SessionView, Variables};
use super::wait::TaskSupport;
use crate::ids::{CommandId, SessionId};
use crate::principal::Detach;

/// A call of the `terminal` tool.
#[derive(Debug, Clone)]
pub struct TerminalCall {
    /// A session other than the default one.
    pub session: Option<SessionId>,
    /// The command, `""` to continue or look, or exactly `C-c`, `C-z`, `C-d`.
    pub command: String,
    /// Whether it is input for the running program.
    pub is_input: bool,
    /// Whether it is a command for the nested shell that reads now.
    pub is_inside: bool,
    /// The total timeout.
    pub timeout: Option<Duration>,
    /// The time limit of its command.
    pub time_limit: Option<TimeLimit>,
    /// The part of it that is over, because the call waited for its turn.
    pub waited: Duration,
    /// Start a new shell first.
    pub reset: bool,
    /// The pattern that ends the wait.
    pub pattern: Option<Pattern>,
    /// The client whose default session is used.
    pub client: ClientContext,
    /// Whether the caller takes the answer later, if the wait takes long.
    pub tasks: TaskSupport,
    /// The idempotency key: a repeated call with it does not run again.
    pub key: Option<String>,
    /// How many characters of output to give at most.
    pub budget: Budget,
}

impl TerminalCall {
    /// Whether a text is a command where it is not input: neither a key nor a look.
    pub fn is_command(text: &str) -> bool {
        !matches!(text, "C-c" | "C-z" | "C-d") && !text.trim().is_empty()
    }
}

/// The context of a client: a stdio client's directory, environment and mask, and the name of its default session.
#[derive(Debug, Clone, Default)]
pub struct ClientContext {
    /// The client's id for as long as it lives; `None` for a caller without a default session.
    pub client: Option<String>,
    /// Its directory.
    pub cwd: Option<PathBuf>,
    /// Its environment.
    pub env: Option<Arc<Variables>>,
    /// Its file mode mask.
    pub umask: Option<u32>,
    /// The fate of its sessions when it disconnects.
    pub detach: Detach,
}

/// The answer of the `terminal` tool.
#[derive(Debug, Clone)]
pub struct TerminalView {
    /// The event.
    pub report: Report,
    /// The reason why a new shell was started for this call, if one was.
    pub fresh: Option<Fresh>,
    /// The result of a call that sends no command or input; `None` for the others.
    pub look: Option<Look>,
    /// Commands last reported to this caller as running that have ended since, except the one of this answer.
    pub missed: Vec<MissedEnd>,
    /// The quiet time that ends the wait.
    pub soft_timeout: Duration,
}

/// A command whose end has not been reported to the caller yet.
#[derive(Debug, Clone)]
pub struct MissedEnd {
    /// The session it ran in.
    pub session: SessionView,
    /// The ended command.
    pub command: CommandView,
    /// The caller's read cursor in the session at that time.
    pub read_to: u64,
    /// Its output behind that, if it is short.
    pub unread: Option<TextView>,
}

/// The reason why a new shell was started.
#[derive(Debug, Clone)]
pub enum Fresh {
    /// It is the client's first call. The live sessions of the same owner whose client has disconnected.
    First(Vec<SessionView>),
    /// The previous shell had ended.
    Ended {
        /// The previous session.
        session: SessionId,
        /// How it ended, as text.
        how: String,
        /// Whether this one begins in its directory.
        keeps_cwd: bool,
    },
    /// A reset was requested; the command that it killed, if one ran.
    Reset(Option<String>),
}

/// The result of a call that runs nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look {
    /// A program runs.
    Running,
    /// Nothing runs; the output is what came since the caller's last call.
    Idle,
    /// A key was requested, but nothing runs, so nothing was sent.
    NothingToInterrupt,
    /// Only a reset was requested.
    Reset,
}

/// The session that a call is meant for.
#[derive(Debug, Clone)]
pub enum Locate {
    /// This one, which must live.
    Session(SessionId),
    /// The default session of this client.
    DefaultOf(String),
}

/// The result of [`Locate`].
#[derive(Debug, Clone)]
pub enum LocatedSession {
    /// It lives.
    Live(Box<LiveSession>),
    /// The client's last default session has ended.
    Ended {
        /// The ended session.
        session: SessionId,
        /// How it ended, as text.
        how: String,
        /// Its directory at the end.
        cwd: PathBuf,
        /// The caller's read cursor in it.
        read_to: u64,
    },
    /// The client has had no default session.
    Nothing,
}

/// A live session at the begin of a call.
#[derive(Debug, Clone)]
pub struct LiveSession {
    /// The session.
    pub session: SessionView,
    /// The text of the running command.
    pub running: Option<String>,
    /// The shell refused a command because its line editor did not have the terminal.
    pub was_not_ready: bool,
    /// The caller's read cursor.
    pub read_to: u64,
}

/// A request that may have been performed earlier, in a session that it ended.
#[derive(Debug, Clone)]
pub enum Earlier {
    /// A command.
    Execute(Execute),
    /// Input.
    Input(Input),
}

/// A request for the commands whose end was not reported to the caller yet.
#[derive(Debug, Clone)]
pub struct ReadMissed {
    /// The session.
    pub session: SessionId,
    /// The command that the present answer reports, and whether as running.
    pub told: Option<(SessionId, CommandId, bool)>,
    /// The caller's read cursor before the present call.
    pub read_to: u64,
}
