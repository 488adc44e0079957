//! The wire types of REST and the closed list of error codes, for the server, its clients and the schema; and the
//! quoting of foreign text.
//!
//! These are not domain types: nothing in here knows how a session works. Bodies are camelCase, times are RFC 3339
//! strings, durations are seconds with fractions, offsets are bytes of a session's journal. Requests refuse unknown
//! fields, so that a misspelt option is an error and not a silent default.

mod approval;
mod audit;
mod batch;
mod capabilities;
mod command;
mod drain;
mod error;
mod event;
mod input;
mod limits;
mod null;
mod output;
mod process;
mod secret;
mod session;
mod socket;
mod take_over;
mod ticket;
mod token;

pub use approval::{Approval, ApprovalList, ApprovalState, Decision, DecisionRequest};
pub use audit::{AuditList, AuditQuery};
pub use batch::{BatchAnswer, BatchRequest, Method, Operation, OperationAnswer};
pub use capabilities::{Capabilities, ConfinementCapability};
pub use command::{
    CommandExecution, CommandList, CommandListQuery, CommandQuery, CommandStatus, CommandView, EndedBy, ExecuteRequest,
    OnTimeout,
};
pub use drain::{Drain, DrainQuery};
pub use error::{ErrorCode, Problem};
pub use event::{Event, EventKind};
pub use input::{InputRequest, SignalRequest, WaitAnswer, WaitRequest};
pub use limits::{Enforcer, Limit, LimitHit, Limits};
pub use output::{
    Cursor, Gap, Match, Omitted, Output, OutputKind, OutputQuery, OutputStreamQuery, OutputStreamView, OutputView,
    RecordingQuery, Screen, SearchAnswer, SearchQuery, Span,
};
pub use process::{NumberOrName, Process, ProcessList, ProcessState, Receiver, SentSignal, SignalList};
pub use secret::{NamedSecret, SecretList, SecretRequest};
pub use session::{
    Boundary, ConfinementTier, Connection, CreateRequest, Dimensions, Exit, Foreground, Journal, OnEnd, Order,
    RenameRequest, Resized, ResourceUsage, SessionAction, SessionEnvironment, SessionList, SessionListQuery,
    SessionPolicy, SessionStatus, StartupFailure, TerminalSession, TerminateQuery, Terminated,
};
pub use socket::{SocketEvent, SocketInput, SocketMessage, SocketQuery, SocketRequest};
pub use take_over::{Driver, ReturnQuery, TakeOverEnd, TakeRequest};
pub use ticket::{Login, Ticket, TicketPage, TicketRequest, TicketScope};
pub use token::{NewToken, TokenInfo, TokenList, TokenRequest, TokenScope};
