//! Everything that can be asked of ptyd, and everything that it can answer: the program's whole interface.
//!
//! The doors (`rest/`, `mcp/`) only parse into an [`Action`] and render an [`Outcome`]; nothing in here knows HTTP or
//! JSON. Durations and offsets are real types, text is already what a person would see.

mod answers;
mod asks;
mod error;
pub(crate) mod events;
mod limits;
mod processes;
pub(crate) mod search;
mod wait_conditions;
pub(crate) mod watch;

use std::time::Duration;

pub use answers::*;
pub use asks::*;
pub use error::ActionError;
pub use limits::{Keeper, KeptLimit, Limit, LimitHit, Limits};
pub use processes::{ProcessState, ProcessView, Receiver, SignalView};
pub use wait_conditions::{Until, pattern};

pub use crate::action::events::{EventPlace, EventsView, Happened, Happening, ReadEvents};
pub use crate::action::search::{CastVersion, FoundView, MatchView, OutputKind, Recording, Search};
pub use crate::action::watch::{Piece, SessionEvent, TicketView, Watching};
use crate::auth::principal::{Scope, TicketTarget};
use crate::ids::{CommandId, SessionId};
pub use crate::sessions::ViewerCursor;

/// One request.
#[derive(Debug, Clone)]
pub enum Action {
    /// Start a session. → [`Outcome::Session`]
    Create(Box<Create>),
    /// Sessions that the caller may see. → [`Outcome::Sessions`]
    List(List),
    /// One session. → [`Outcome::Session`]
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
    /// The commands of a session, oldest first. → [`Outcome::Commands`]
    Commands {
        /// Which session.
        session: SessionId,
        /// At most this many.
        limit: usize,
        /// Skip this many.
        offset: usize,
    },
    /// One command with its output so far. → [`Outcome::Report`]
    Command {
        /// Which session.
        session: SessionId,
        /// Which command.
        command: CommandId,
        /// How many characters of output to give at most.
        budget: usize,
    },
    /// Type at the terminal. → [`Outcome::Report`]
    Input(Input),
    /// Type bytes for a viewer, who waits for nothing. → [`Outcome::Typed`]
    Type {
        /// Which session.
        session: SessionId,
        /// What to type, as it is.
        bytes: Vec<u8>,
        /// The same key again is not typed again.
        key: String,
    },
    /// Follow a session as it is shown. → [`Outcome::Watching`]
    Watch {
        /// Which session.
        session: SessionId,
        /// From this offset; without it from where the output ends now.
        since: Option<u64>,
    },
    /// A ticket with which a browser comes in, once. → [`Outcome::Ticket`]
    Ticket {
        /// For which socket or page.
        place: TicketTarget,
        /// Whether it may type and resize there, too.
        may_write: bool,
    },
    /// Send a signal. → [`Outcome::Session`]
    Signal {
        /// Which session.
        session: SessionId,
        /// Whom to.
        target: SignalTarget,
        /// Its number.
        signo: i32,
    },
    /// Do what the session has under a name. → [`Outcome::Report`]
    NamedAction {
        /// Which session.
        session: SessionId,
        /// The name.
        name: String,
        /// The same key again is not done again.
        key: Option<String>,
    },
    /// The processes of a session. → [`Outcome::Processes`]
    Processes(SessionId),
    /// What the shell of a session was started with. → [`Outcome::Environment`]
    Environment(SessionId),
    /// The signals that were sent in a session. → [`Outcome::Signals`]
    Signals(SessionId),
    /// Wait for something to happen. → [`Outcome::Report`]
    Wait {
        /// Which session.
        session: SessionId,
        /// What for, and how long.
        wait: Wait,
        /// How many characters of output to give at most.
        budget: usize,
    },
    /// Read output from a position on. → [`Outcome::Output`]
    Output(ReadOutput),
    /// Look for lines in the output. → [`Outcome::Found`]
    Search(Search),
    /// The session as an asciicast. → [`Outcome::Recording`]
    Recording(SessionId, CastVersion),
    /// The screen as it is now. → [`Outcome::Screen`]
    Screen(SessionId),
    /// The one-tool shell: this client's own default session. → [`Outcome::Terminal`]
    Terminal(TerminalCall),
    /// What happens in all sessions that the caller may see. → [`Outcome::Events`]
    Events(ReadEvents),
    /// The named tokens. → [`Outcome::Tokens`]
    Tokens,
    /// Make a token. → [`Outcome::FreshToken`]
    MakeToken {
        /// Its name, and the owner of what is started with it.
        name: String,
        /// What it allows.
        scope: Scope,
        /// How long it is good, if not until it is revoked.
        lifetime: Option<Duration>,
    },
    /// Take a token back. → [`Outcome::Token`]
    RevokeToken {
        /// Its name.
        name: String,
    },
}

impl Action {
    /// Whether its caller asks to wait for something that takes its own time.
    pub fn waits(&self) -> bool {
        match self {
            Self::Execute(execute) => execute.wait.is_some(),
            Self::Input(input) => input.wait.is_some(),
            Self::Output(read) => !read.wait.is_zero(),
            Self::Events(read) => !read.wait.is_zero(),
            // Programs get time to leave, or to read.
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

    /// What a caller must be allowed in order to ask for this.
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
            // A ticket does no more than who asked for it.
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
            // It holds what the server inherited: no more than who may type there can print, and no less.
            | Self::Environment(_)
            // Even a look starts a shell where there is none.
            | Self::Terminal(_) => Scope::Write,
            Self::Tokens | Self::MakeToken { .. } | Self::RevokeToken { .. } => Scope::Admin,
        }
    }
}

/// One answer.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// A session.
    Session(Box<SessionView>),
    /// Some sessions, and how many there are in all.
    Sessions(Vec<SessionView>, usize),
    /// Some commands, and how many there are in all.
    Commands(Vec<CommandView>, usize),
    /// What a wait came to.
    Report(Box<Report>),
    /// Output.
    Output(OutputView),
    /// Lines that match.
    Found(FoundView),
    /// A recording that is yet to be read.
    Recording(Recording),
    /// The screen.
    Screen(ScreenView),
    /// The session has ended.
    Terminated(Box<TerminatedView>),
    /// The one-tool shell's answer.
    Terminal(Box<TerminalView>),
    /// Processes, parents before children.
    Processes(Vec<ProcessView>),
    /// Signals, oldest first.
    Signals(Vec<SignalView>),
    /// What a shell was started with.
    Environment(Box<EnvironmentView>),
    /// How many bytes were typed.
    Typed(usize),
    /// A viewer's place in a session.
    Watching(Box<Watching>),
    /// A ticket.
    Ticket(TicketView),
    /// What happened.
    Events(EventsView),
    /// The named tokens.
    Tokens(Vec<TokenView>),
    /// A token, this once.
    FreshToken(FreshToken),
    /// The token that was revoked.
    Token(TokenView),
}
