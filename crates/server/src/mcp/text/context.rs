//! The context of an answer: its caller, and what the caller knows already.

use std::time::{Duration, SystemTime};

use crate::mcp::host::Host;
use crate::mcp::password_place::PasswordPlace;
use crate::mcp::reported_state::ReportedState;

/// The context of an answer.
#[derive(Debug, Clone)]
pub(in crate::mcp) struct AnswerContext<'a> {
    /// The user and the machine.
    pub host: &'a Host,
    /// The state reported to this caller before; `None` reports everything.
    pub shown: Option<&'a ReportedState>,
    /// The present time, for how long a program has run.
    pub now: SystemTime,
    /// The caller's quiet time, if it is worth mentioning.
    pub quiet: Option<Duration>,
    /// Whether the command's id is mentioned even when it has ended.
    pub names_command: bool,
    /// Whether this client has `get_terminal_output`.
    pub has_read_tool: bool,
    /// Where a person types the password that a program wants.
    pub password: PasswordPlace,
}
