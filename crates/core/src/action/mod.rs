//! The program's whole interface: every action and every outcome. Composite actions alone ask for `Locate`, `Unread`, `Earlier`,
//! `FinalCommands`, `StartupDone` and `FindNamedAction`.
//!
//! The protocols (`rest/`, `mcp/`, `ws/`) only parse into an [`Action`] and render an [`Outcome`]; nothing in here
//! knows HTTP or JSON. Durations and offsets have their own types, and text is already as a person would see it.

mod approval;
mod audit;
mod await_output;
mod boxed;
mod budget;
mod command;
mod dialogue;
mod drain;
mod error;
mod events;
mod facts;
mod input;
mod limits;
mod named_secret;
mod output;
pub(crate) mod pattern;
mod processes;
mod recording;
mod report;
mod search;
mod secret;
mod session;
mod take_over;
mod task;
mod terminal_tool;
mod tokens;
mod wait;
mod watch;

use std::sync::Arc;

pub use crate::confinement_tier::{CapabilitiesView, ConfinementTier};
pub use approval::*;
pub use audit::*;
pub use await_output::*;
pub use boxed::Boxed;
pub use budget::{Budget, is_folded, runs_of_lines};
pub use command::*;
pub use dialogue::*;
pub use drain::*;
pub use error::{ActionError, EndReason, PolicyRefusal};
pub use events::*;
pub(crate) use facts::AuditClass;
pub use facts::Facts;
pub use input::*;
pub use journal::MaskedText;
pub use limits::*;
pub use named_secret::*;
pub use output::*;
pub use pattern::{Pattern, PatternShare};
pub use policy::Verdict;
pub use processes::*;
pub use recording::*;
pub use report::*;
pub use search::*;
pub use secret::*;
pub use session::*;
pub use sys::signal::{name as signal_name, parse as signal_number};
pub use take_over::*;
pub use task::*;
pub use terminal_tool::*;
pub use tokens::*;
pub use wait::*;
pub use watch::*;

use crate::ids::{CommandId, SessionId, TaskId};
use crate::principal::{Principal, TicketTarget};

/// A request.
#[derive(Debug, Clone)]
pub enum Action {
    /// An action that expands into others, which are dispatched one by one.
    Composite(Composite),
    /// Start a session, and wait for its first prompt. → [`Outcome::Created`]
    Start(Box<Create>),
    /// End a session by force, and start the same shell again. → [`Outcome::Created`]
    Restart(SessionId),
    /// The start-up commands of a session have been run; records those that failed. → [`Outcome::Session`]
    StartupDone {
        /// The session.
        session: SessionId,
        /// The failed ones, each with the reason.
        failed: Vec<(String, String)>,
    },
    /// List the sessions that the caller may see. → [`Outcome::Sessions`]
    List(List),
    /// Find the id of the session that a client names, by its id or by its name. → [`Outcome::SessionId`]
    FindSession(String),
    /// Show one session. → [`Outcome::Session`]
    Show(SessionId),
    /// End a session. → [`Outcome::Terminated`]
    Terminate(Terminate),
    /// Change a session's name. → [`Outcome::Session`]
    Rename {
        /// The session.
        session: SessionId,
        /// The new name.
        name: String,
    },
    /// Change a terminal's size. → [`Outcome::Session`]
    Resize {
        /// The session.
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
        /// The session.
        session: SessionId,
        /// At most this many.
        limit: usize,
        /// Skip this many.
        offset: usize,
    },
    /// Show one command with its output so far. → [`Outcome::Report`]
    Command {
        /// The session.
        session: SessionId,
        /// The command.
        command: CommandId,
        /// How many characters of output to give at most.
        budget: Budget,
    },
    /// Type input at the terminal. → [`Outcome::Report`]
    Input(Input),
    /// Make the request by which a person can type the secret that the session's program reads, or find the one there is.
    /// → [`Outcome::SecretRequest`]
    AskSecret(SessionId),
    /// Show a request for a secret, by its name. → [`Outcome::SecretRequest`]
    ShowSecretRequest(String),
    /// Type a secret for a request, by its name; each is good once. → [`Outcome::Typed`]
    TypeSecret {
        /// The request's name.
        name: String,
        /// The secret.
        secret: Secret,
    },
    /// Type bytes for a viewer, without a wait. → [`Outcome::Typed`]
    Type {
        /// The session.
        session: SessionId,
        /// The bytes to type, unchanged.
        bytes: Vec<u8>,
        /// The idempotency key: a repeated request with it is not typed again.
        key: String,
    },
    /// Take the keyboard of a session, so that nobody else types there. → [`Outcome::Taken`]
    Take(Take),
    /// Return it; frees it by force from another driver. → [`Outcome::Session`]
    GiveBack {
        /// The session.
        session: SessionId,
        /// Also from another driver.
        forces: bool,
    },
    /// Follow a session as a viewer. → [`Outcome::Watching`]
    Watch {
        /// The session.
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
    /// A browser's log-in to the page of sessions, whose doors keep it. → [`Outcome::Recorded`]
    LogIn(LogInStep),
    /// Send a signal. → [`Outcome::Session`]
    Signal {
        /// The session.
        session: SessionId,
        /// The target.
        target: SignalTarget,
        /// The signal's number.
        signo: i32,
    },
    /// Look up a named action of a session. → [`Outcome::NamedAction`]
    FindNamedAction {
        /// The session.
        session: SessionId,
        /// The name.
        name: String,
    },
    /// List the processes of a session. → [`Outcome::Processes`]
    Processes(SessionId),
    /// Show the environment with which the session's shell was started. → [`Outcome::Environment`]
    Environment(SessionId),
    /// List the signals sent in a session. → [`Outcome::Signals`]
    Signals(SessionId),
    /// Wait for a condition. → [`Outcome::Report`]
    Wait {
        /// The session.
        session: SessionId,
        /// The conditions and the timeout.
        wait: Wait,
        /// The command whose end ends the wait, instead of whatever runs.
        command: Option<CommandId>,
        /// How many characters of output to give at most.
        budget: Budget,
        /// The caller's read cursor moves to the end of the output of this wait; not for a wait that may be given up
        /// before its caller reads.
        moves_cursor: bool,
    },
    /// Read output from a position on. → [`Outcome::Output`]
    Output(ReadOutput),
    /// Search the output for lines. → [`Outcome::Found`]
    Search(Search),
    /// Record the session as an asciicast. → [`Outcome::Recording`]
    Recording(SessionId, CastVersion),
    /// Show the present screen. → [`Outcome::Screen`]
    Screen(SessionId),
    /// Show a task; from the second time on that it goes on, the answer waits for its end a little. → [`Outcome::Task`]
    Task(TaskId),
    /// The text of an ended task was made for its caller; the first one stays. → [`Outcome::Task`]
    TellTask {
        /// The task.
        task: TaskId,
        /// The text.
        text: TaskText,
    },
    /// A person's reply to a question of a task; one to a question that is over is ignored. → [`Outcome::Task`]
    AnswerTask {
        /// The task.
        task: TaskId,
        /// The question's number in it.
        key: u32,
        /// The reply.
        reply: PersonReply,
    },
    /// Interrupt the command of a task, once. → [`Outcome::Task`]
    CancelTask(TaskId),
    /// Find the session that a call of the `terminal` tool is meant for. → [`Outcome::Located`]
    Locate(Locate),
    /// Show the output that this caller has not seen, and the newest command. → [`Outcome::Report`]
    Unread {
        /// The session.
        session: SessionId,
        /// How many characters of output to give at most.
        budget: Budget,
    },
    /// List the commands reported to this caller as running that have ended since. → [`Outcome::Missed`]
    Missed(ReadMissed),
    /// Find the result of a request that was performed earlier and ended its session. → [`Outcome::Earlier`]
    Earlier(Earlier),
    /// List the commands of a session that has just ended, once its records are complete. → [`Outcome::Commands`]
    FinalCommands(SessionId),
    /// Read the events of all sessions that the caller may see. → [`Outcome::Events`]
    Events(ReadEvents),
    /// List the named tokens. → [`Outcome::Tokens`]
    Tokens,
    /// Make a token. → [`Outcome::FreshToken`]
    MakeToken(MakeToken),
    /// Revoke a token. → [`Outcome::Token`]
    RevokeToken {
        /// Its name.
        name: String,
    },
    /// List the named secrets, without their values. → [`Outcome::NamedSecrets`]
    NamedSecrets,
    /// Set the value of a named secret. → [`Outcome::NamedSecret`]
    SetSecret {
        /// Its name.
        name: String,
        /// Its value.
        value: SecretValue,
    },
    /// Remove a named secret; sessions that have it keep it. → [`Outcome::NamedSecret`]
    RemoveSecret {
        /// Its name.
        name: String,
    },
    /// List the approvals that the caller may see. → [`Outcome::Approvals`]
    Approvals,
    /// The name of the page on which a person decides on an approval, for the client whose request it is. → [`Outcome::ApprovalPage`]
    AskApproval(String),
    /// Show the approval of such a page. → [`Outcome::Approval`]
    ShowApproval(String),
    /// Decide on an approval. → [`Outcome::Approval`]
    DecideApproval {
        /// Its id.
        id: String,
        /// The decision.
        decision: Decision,
    },
    /// Read the capabilities of the server on this machine. → [`Outcome::Capabilities`]
    Capabilities,
    /// Refuse new sessions, or accept them again. → [`Outcome::Drain`]
    SetDrain(bool),
    /// Show whether the server drains, or wait until fewer sessions are left. → [`Outcome::Drain`]
    Drain(ReadDrain),
    /// Read the audit log. → [`Outcome::Audit`]
    Audit(ReadAudit),
}

/// A step of a browser's log-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogInStep {
    /// A link is made, by which a browser logs in.
    Link,
    /// A browser logs in.
    In,
    /// It logs out.
    Out,
}

/// An action that expands into others: each of those is authorized and recorded for itself.
#[derive(Debug, Clone)]
pub enum Composite {
    /// Start a session, and run the start-up commands of its profile. → [`Outcome::Session`]
    Create(Box<Create>),
    /// Run a command, and end it when its time is up. → [`Outcome::Report`]
    Execute(Box<Execute>),
    /// Perform a named action of the session. → [`Outcome::Report`]
    NamedAction {
        /// The session.
        session: SessionId,
        /// The name.
        name: String,
        /// The idempotency key: a repeated request with it is not performed again.
        key: Option<String>,
    },
    /// Call the `terminal` tool, on this client's default session. → [`Outcome::Terminal`]
    Terminal(Box<TerminalCall>),
    /// Play a dialogue with the running program. → [`Outcome::Dialogue`]
    Dialogue(Box<Dialogue>),
    /// Wait for output that may be there already. → [`Outcome::Awaited`]
    AwaitOutput(Box<AwaitOutput>),
    /// Wait in several sessions at once. → [`Outcome::AwaitedSessions`]
    AwaitSessions(AwaitSessions),
}

impl Action {
    /// Runs a command, and enforces its time limit, if it has one.
    pub fn execute(execute: Execute) -> Self {
        match execute.time_limit {
            Some(_) => Self::Composite(Composite::Execute(Box::new(execute))),
            None => Self::Execute(execute),
        }
    }

    /// The bytes of its command: to judge and to record a long one is long work.
    pub(crate) fn command_bytes(&self) -> usize {
        if let Self::Execute(execute) = self {
            return execute.command.len();
        }
        if let Self::Composite(Composite::Execute(execute)) = self { execute.command.len() } else { 0 }
    }
}

/// The answer to a request.
#[derive(Debug)]
pub enum Outcome {
    /// The id of a session.
    SessionId(SessionId),
    /// A session.
    Session(Box<SessionView>),
    /// The session after a signal, and the name of a foreground program if all of them ignore an interrupt.
    Signalled(Box<SessionView>, Option<String>),
    /// A session that was started, or that an earlier request started.
    Created(Box<Created>),
    /// A page of sessions.
    Sessions(SessionPage),
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
    /// The result of a dialogue.
    Dialogue(Box<DialogueView>),
    /// The result of a wait before output is read.
    Awaited(Box<AwaitedOutput>),
    /// The result of the wait in each of several sessions; `None` where it was not over.
    AwaitedSessions(Vec<Option<Result<AwaitedOutput, ActionError>>>),
    /// A session of the `terminal` tool.
    Located(LocatedSession),
    /// Commands whose end was not reported to the caller yet.
    Missed(Vec<MissedEnd>),
    /// The report on a request performed earlier, if it was.
    Earlier(Option<Box<Report>>),
    /// The action of a session that has this name.
    NamedAction(NamedAction),
    /// Processes, parents before children.
    Processes(Vec<ProcessView>),
    /// Signals, oldest first.
    Signals(Vec<SignalView>),
    /// The environment of a shell.
    Environment(Box<EnvironmentView>),
    /// How many bytes were typed.
    Typed(usize),
    /// The keyboard is taken.
    Taken(Box<Taken>),
    /// A request for a secret; none where no program reads one, or where the operator wants no requests.
    SecretRequest(Option<Box<SecretRequest>>),
    /// A task.
    Task(Box<TaskView>),
    /// A viewer's cursor in a session.
    Watching(Box<Watching>),
    /// A ticket.
    Ticket(TicketView),
    /// The action is on record.
    Recorded,
    /// Events.
    Events(EventsView),
    /// The named tokens.
    Tokens(Vec<TokenView>),
    /// A new token, shown only this once.
    FreshToken(FreshToken),
    /// The token that was revoked.
    Token(TokenView),
    /// The named secrets, by name.
    NamedSecrets(Vec<NamedSecretView>),
    /// The secret that was set or removed.
    NamedSecret(NamedSecretView),
    /// Approvals, oldest first.
    Approvals(Vec<ApprovalView>),
    /// The name of an approval's page; none where nobody is to be sent there.
    ApprovalPage(Option<String>),
    /// An approval.
    Approval(Box<ApprovalView>),
    /// The capabilities of the server on this machine.
    Capabilities(CapabilitiesView),
    /// Whether the server drains.
    Drain(DrainView),
    /// Lines of the audit log.
    Audit(AuditView),
}

impl Outcome {
    /// Its kind, for the message about an unexpected outcome.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::SessionId(_) => "a session's id",
            Self::Session(_) => "a session",
            Self::Signalled(..) => "a signal",
            Self::Created(_) => "a new session",
            Self::Located(_) => "where a session is",
            Self::Dialogue(_) => "a dialogue",
            Self::Awaited(_) => "a wait for output",
            Self::AwaitedSessions(_) => "a wait in several sessions",
            Self::Missed(_) => "ends of commands",
            Self::Earlier(_) => "an earlier report",
            Self::NamedAction(_) => "a named action",
            Self::Sessions(..) => "sessions",
            Self::Commands(..) => "commands",
            Self::Report(_) => "a report",
            Self::Output(_) => "output",
            Self::Found(_) => "matches",
            Self::Recording(_) => "a recording",
            Self::Screen(_) => "a screen",
            Self::Terminated(_) => "an end",
            Self::Terminal(_) => "a terminal call",
            Self::Processes(_) => "processes",
            Self::Signals(_) => "signals",
            Self::Environment(_) => "an environment",
            Self::Typed(_) => "typed input",
            Self::Taken(_) => "a take-over",
            Self::SecretRequest(_) => "a request for a secret",
            Self::Task(_) => "a task",
            Self::Watching(_) => "a viewer's place",
            Self::Ticket(_) => "a ticket",
            Self::Recorded => "a record",
            Self::Events(_) => "events",
            Self::Tokens(_) => "tokens",
            Self::FreshToken(_) => "a fresh token",
            Self::Token(_) => "a token",
            Self::NamedSecrets(_) => "named secrets",
            Self::NamedSecret(_) => "a named secret",
            Self::Approvals(_) => "approvals",
            Self::ApprovalPage(_) => "the page of an approval",
            Self::Approval(_) => "an approval",
            Self::Capabilities(_) => "capabilities",
            Self::Drain(_) => "the state of the drain",
            Self::Audit(_) => "an audit log",
        }
    }
}

/// Performs actions. A trait, so that the protocols and the composite actions know no session, and tests can answer from
/// a script.
pub trait Dispatch: Send + Sync {
    /// Performs one action; dropping the future ends the wait and nothing else.
    fn dispatch<'a>(&'a self, principal: &'a Principal, action: Action) -> Boxed<'a, Result<Outcome, ActionError>>;
    /// The caller's share for patterns.
    fn patterns(&self, principal: &Principal) -> Arc<PatternShare>;
    /// A handle that outlives the request.
    fn detached(&self) -> Arc<dyn Dispatch>;
}
