//! Events of all sessions on the wire: `GET /events`, as server-sent events whose data is an [`Event`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CommandStatus, Decision, Driver, Exit, Foreground, Limit, TakeOverEnd};

/// The data of one event. Only what belongs to its kind is there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// The kind of event, which is also its name.
    pub event: EventKind,
    /// When; RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub at: String,
    /// The session; none for a gap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Its owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The command that began, ended, or ran into a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_id: Option<String>,
    /// The end of the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<CommandStatus>,
    /// The command's exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The awaited input: `input_wanted` or `password_wanted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreground: Option<Foreground>,
    /// The limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    /// The end of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
    /// The approval, whose request `GET /approvals` has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<String>,
    /// The person's decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// The client that has taken the keyboard, or had it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<Driver>,
    /// How its take-over ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<TakeOverEnd>,
}

/// The kind of event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum EventKind {
    /// A session was started.
    #[serde(rename = "session.created")]
    SessionCreated,
    /// A session has ended.
    #[serde(rename = "session.terminated")]
    SessionTerminated,
    /// A command's output begins.
    #[serde(rename = "command.started")]
    CommandStarted,
    /// A command has ended.
    #[serde(rename = "command.completed")]
    CommandCompleted,
    /// A program waits for input.
    #[serde(rename = "attention")]
    Attention,
    /// A session ran into a limit.
    #[serde(rename = "limit")]
    Limit,
    /// A request waits for a person's decision.
    #[serde(rename = "approval.requested")]
    ApprovalRequested,
    /// A person has decided.
    #[serde(rename = "approval.decided")]
    ApprovalDecided,
    /// A client has taken the keyboard.
    #[serde(rename = "keyboard.taken")]
    KeyboardTaken,
    /// Its take-over has ended.
    #[serde(rename = "keyboard.returned")]
    KeyboardReturned,
    /// Events before the next one are no longer kept; `GET /terminals` gives the present state.
    #[serde(rename = "gap")]
    Gap,
}

impl EventKind {
    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::SessionCreated => "session.created",
            Self::SessionTerminated => "session.terminated",
            Self::ApprovalRequested => "approval.requested",
            Self::ApprovalDecided => "approval.decided",
            Self::CommandStarted => "command.started",
            Self::CommandCompleted => "command.completed",
            Self::Attention => "attention",
            Self::Limit => "limit",
            Self::KeyboardTaken => "keyboard.taken",
            Self::KeyboardReturned => "keyboard.returned",
            Self::Gap => "gap",
        }
    }
}
