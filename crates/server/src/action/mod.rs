//! The program's whole interface: every action that clients can request, and every outcome.
//!
//! The protocols (`rest/`, `mcp/`, `ws/`) only parse into an [`Action`] and render an [`Outcome`]; nothing in here
//! knows HTTP or JSON. Durations and offsets have their own types, and text is already as a person would see it.

mod answers;
mod asks;
mod error;
pub(crate) mod events;
mod limits;
pub(crate) mod pattern;
mod processes;
pub(crate) mod search;
mod wait_conditions;
pub(crate) mod watch;

use std::time::Duration;

pub use answers::*;
pub use asks::*;
pub use error::{ActionError, EndReason};
pub use limits::{Keeper, KeptLimit, Limit, LimitHit, Limits};
pub use pattern::{Pattern, PatternShare};
pub use processes::{ProcessState, ProcessView, Receiver, SignalView};
pub use wait_conditions::Until;

pub use crate::action::events::{EventPlace, EventsView, Happened, Happening, ReadEvents};
pub use crate::action::search::{CastVersion, FoundView, MatchView, OutputKind, Recording, Search};
pub use crate::action::watch::{Piece, SessionEvent, TicketView, Watching};
use crate::auth::principal::{Scope, TicketTarget};
use crate::ids::{CommandId, SessionId};
pub use crate::sessions::ViewerCursor;

/// A request.
#[derive(Debug, Clone)]
pub enum Action {
    /// Start a session. → [`Outcome::Session`]
    Create(Box<Create>),
    /// List the sessions that the caller may see. → [`Outcome::Sessions`]
    List(List),
    /// Show one session. → [`Outcome::Session`]
    Show(SessionId),
    /// End a session. → [`Outcome::Terminated`]
    Terminate(Terminate),
    /// Change a terminal's size. → [`Outcome::Session`]
    Resize {
        /// Which session.
        session: SessionId,
        /// Cells, 1 to [`crate::limits::COLS_MAX`].
        cols: u16,
        /// Cells, 1 to [`crate::limits::ROWS_MAX`].
        rows: u16,
    },
    /// Run a command in the session's shell. → [`Outcome::Report`]
    Execute(Execute),
    /// List the commands of a session, oldest first. → [`Outcome::Commands`]
    Commands {
        /// Which session.
        session: SessionId,
        /// At most this many.
        limit: usize,
        /// Skip this many.
        offset: usize,
    },
    /// Show one command with its output so far. → [`Outcome::Report`]
    Command {
        /// Which session.
        session: SessionId,
        /// Which command.
        command: CommandId,
        /// How many characters of output to give at most.
        budget: usize,
    },
    /// Type input at the terminal. → [`Outcome::Report`]
    Input(Input),
    /// Type bytes for a viewer, without a wait. → [`Outcome::Typed`]
    Type {
        /// Which session.
        session: SessionId,
        /// The bytes to type, unchanged.
        bytes: Vec<u8>,
        /// The idempotency key: a repeated request with it is not typed again.
        key: String,
    },
    /// Follow a session as a viewer. → [`Outcome::Watching`]
    Watch {
        /// Which session.
        session: SessionId,
        /// The offset to start at; without it, the present end of the output.
        since: Option<u64>,
    },
    /// Issue a one-time ticket for a browser. → [`Outcome::Ticket`]
    Ticket {
        /// The socket or page that it admits to.
        place: TicketTarget,
        /// Whether its holder may also type and resize.
        may_write: bool,
    },
    /// Send a signal. → [`Outcome::Session`]
    Signal {
        /// Which session.
        session: SessionId,
        /// The target.
        target: SignalTarget,
        /// The signal's number.
        signo: i32,
    },
    /// Perform a named action of the session. → [`Outcome::Report`]
    NamedAction {
        /// Which session.
        session: SessionId,
        /// The name.
        name: String,
        /// The idempotency key: a repeated request with it is not performed again.
        key: Option<String>,
    },
    /// List the processes of a session. → [`Outcome::Processes`]
    Processes(SessionId),
    /// Show the environment with which the session's shell was started. → [`Outcome::Environment`]
    Environment(SessionId),
    /// List the signals sent in a session. → [`Outcome::Signals`]
    Signals(SessionId),
    /// Wait for a condition. → [`Outcome::Report`]
    Wait {
        /// Which session.
        session: SessionId,
        /// The conditions and the timeout.
        wait: Wait,
        /// How many characters of output to give at most.
        budget: usize,
    },
    /// Read output from a position on. → [`Outcome::Output`]
    Output(ReadOutput),
    /// Search the output for lines. → [`Outcome::Found`]
    Search(Search),
    /// Record the session as an asciicast. → [`Outcome::Recording`]
    Recording(SessionId, CastVersion),
    /// Show the present screen. → [`Outcome::Screen`]
    Screen(SessionId),
    /// Call the `terminal` tool, on this client's default session. → [`Outcome::Terminal`]
    Terminal(TerminalCall),
    /// Read the events of all sessions that the caller may see. → [`Outcome::Events`]
    Events(ReadEvents),
    /// List the named tokens. → [`Outcome::Tokens`]
    Tokens,
    /// Make a token. → [`Outcome::FreshToken`]
    MakeToken {
        /// Its name, which is the owner of sessions started with it.
        name: String,
        /// Its scope.
        scope: Scope,
        /// Its lifetime; without one it is valid until it is revoked.
        lifetime: Option<Duration>,
    },
    /// Revoke a token. → [`Outcome::Token`]
    RevokeToken {
        /// Its name.
        name: String,
    },
}

impl Action {
    /// Whether the request waits for events that take their own time.
    pub fn waits(&self) -> bool {
        match self {
            Self::Execute(execute) => execute.wait.is_some(),
            Self::Input(input) => input.wait.is_some(),
            Self::Output(read) => !read.wait.is_zero(),
            Self::Events(read) => !read.wait.is_zero(),
            // These give programs time to exit or to read.
            Self::Wait { .. } | Self::Terminal(_) | Self::Terminate(_) | Self::Type { .. } => true,
            Self::Create(_)
            | Self::List(_)
            | Self::Show(_)
            | Self::Resize { .. }
            | Self::Commands { .. }
            | Self::Command { .. }
            | Self::Watch { .. }
            | Self::Ticket { .. }
            | Self::Signal { .. }
            | Self::NamedAction { .. }
            | Self::Processes(_)
            | Self::Signals(_)
            | Self::Environment(_)
            | Self::Search(_)
            | Self::Recording(..)
            | Self::Screen(_)
            | Self::Tokens
            | Self::MakeToken { .. }
            | Self::RevokeToken { .. } => false,
        }
    }

    /// The scope that the caller needs for this action.
    pub fn needs(&self) -> Scope {
        match self {
            Self::List(_)
            | Self::Show(_)
            | Self::Commands { .. }
            | Self::Command { .. }
            | Self::Watch { .. }
            | Self::Wait { .. }
            | Self::Output(_)
            | Self::Search(_)
            | Self::Recording(..)
            | Self::Events(_)
            | Self::Processes(_)
            | Self::Signals(_)
            | Self::Screen(_)
            // A read-only ticket allows no more than its requester may do.
            | Self::Ticket { may_write: false, .. } => Scope::Read,
            Self::Create(_)
            | Self::Terminate(_)
            | Self::Resize { .. }
            | Self::Execute(_)
            | Self::Input(_)
            | Self::Type { .. }
            | Self::Ticket { may_write: true, .. }
            | Self::Signal { .. }
            | Self::NamedAction { .. }
            // The environment has what the server inherited: as much as a caller that may type there can print.
            | Self::Environment(_)
            // Even a call that only looks may start a shell.
            | Self::Terminal(_) => Scope::Write,
            Self::Tokens | Self::MakeToken { .. } | Self::RevokeToken { .. } => Scope::Admin,
        }
    }
}

/// The answer to a request.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// A session.
    Session(Box<SessionView>),
    /// Some sessions, and their total number.
    Sessions(Vec<SessionView>, usize),
    /// Some commands, and their total number.
    Commands(Vec<CommandView>, usize),
    /// The report of a command, an input or a wait.
    Report(Box<Report>),
    /// Output.
    Output(OutputView),
    /// Lines that match.
    Found(FoundView),
    /// A recording, to be read page by page.
    Recording(Recording),
    /// The screen.
    Screen(ScreenView),
    /// The result of terminating a session.
    Terminated(Box<TerminatedView>),
    /// The answer of the `terminal` tool.
    Terminal(Box<TerminalView>),
    /// Processes, parents before children.
    Processes(Vec<ProcessView>),
    /// Signals, oldest first.
    Signals(Vec<SignalView>),
    /// The environment of a shell.
    Environment(Box<EnvironmentView>),
    /// How many bytes were typed.
    Typed(usize),
    /// A viewer's cursor in a session.
    Watching(Box<Watching>),
    /// A ticket.
    Ticket(TicketView),
    /// Events.
    Events(EventsView),
    /// The named tokens.
    Tokens(Vec<TokenView>),
    /// A new token, shown only this once.
    FreshToken(FreshToken),
    /// The token that was revoked.
    Token(TokenView),
}
