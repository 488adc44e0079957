//! The form of a line of the audit log.

use std::borrow::Cow;
use std::time::SystemTime;

use journal::Masks;
use serde::Serialize;

use super::details::{Details, Found, SessionName, cut, is_zero, masked};
use crate::action::{ActionError, CommandStatus, CommandView, Driver, TakeOverEnd};
use crate::ids::{CommandId, SessionId};
use crate::limits::{AUDIT_LINE_BYTES_MAX, AUDIT_NAME_BYTES_MAX, AUDIT_PATH_BYTES_MAX};
use crate::principal::Principal;
use crate::store::HistoryRow;

/// The subject of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Event {
    /// An action that changes something is about to be performed.
    Request,
    /// It was performed, or not.
    Answer,
    /// An action that only reads, or one that was refused before it began.
    Action,
    /// A command has ended.
    End,
    /// A take-over has ended.
    Returned,
    /// The authentication refused a request.
    Refused,
    /// Lines could not be written.
    Gap,
}

/// A caller as its lines have it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Caller<'a> {
    principal: Cow<'a, str>,
    /// Its scope.
    scope: &'static str,
    /// Whether it is the user that runs the server, or has a named token, whose name is the principal's.
    credential: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_name: Option<Cow<'a, str>>,
    door: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    transport: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from_session: Option<Cow<'a, str>>,
}

impl Caller<'_> {
    pub(super) fn into_owned(self) -> Caller<'static> {
        let owned = |text: Option<Cow<'_, str>>| text.map(|text| Cow::Owned(text.into_owned()));
        Caller {
            principal: Cow::Owned(self.principal.into_owned()),
            client: owned(self.client),
            client_name: owned(self.client_name),
            from_session: owned(self.from_session),
            ..self
        }
    }
}

impl<'a> From<&'a Principal> for Caller<'a> {
    fn from(principal: &'a Principal) -> Self {
        Self {
            principal: Cow::Borrowed(&principal.name),
            scope: principal.scope.name(),
            credential: if principal.pass.is_some() { "token" } else { "user" },
            client: principal.client.as_deref().map(|client| cut(client, AUDIT_NAME_BYTES_MAX).into()),
            client_name: principal.origin.client_name.as_deref().map(|name| cut(name, AUDIT_NAME_BYTES_MAX).into()),
            door: principal.origin.door.name(),
            transport: principal.origin.transport.map(|transport| transport.name()),
            from_session: principal.origin.from_session.as_ref().map(|session| session.as_str().into()),
        }
    }
}

/// One line. Fields that say nothing are left out; a later version adds fields (an approval).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Line<'a> {
    pub time: String,
    pub event: Event,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<&'a str>,
    #[serde(flatten)]
    pub caller: Option<&'a Caller<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<&'a str>,
    #[serde(flatten)]
    pub details: Option<&'a Details>,
    #[serde(flatten)]
    pub found: Option<&'a Found>,
    #[serde(flatten)]
    pub ended: Option<&'a Ended>,
    #[serde(flatten)]
    pub returned: Option<&'a Returned>,
    #[serde(flatten)]
    pub refusal: Option<&'a Refusal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
}

/// The end of a command.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Ended {
    owner: String,
    session: SessionName,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_name: Option<String>,
    command: String,
    status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    output_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    boundary: Option<String>,
}

impl Ended {
    /// The same of a command that ended while no server ran.
    pub(super) fn of_row(owner: &str, session_name: Option<&str>, row: &HistoryRow) -> Self {
        Self {
            owner: owner.to_owned(),
            session: SessionName(row.session.clone()),
            session_name: session_name.map(str::to_owned),
            command: CommandId(row.id).to_string(),
            status: row.status.clone(),
            exit_code: row.exit,
            output_bytes: row.end_offset.saturating_sub(row.start_offset),
            boundary: row.boundary.clone(),
        }
    }

    pub(super) fn of(owner: &str, session_name: Option<&str>, command: &CommandView) -> Self {
        Self {
            owner: owner.to_owned(),
            session: (&command.session).into(),
            session_name: session_name.map(str::to_owned),
            command: command.id.to_string(),
            status: match command.status {
                CommandStatus::Running => "running",
                CommandStatus::Completed => "completed",
                CommandStatus::Failed => "failed",
                CommandStatus::Terminated => "terminated",
            }
            .to_owned(),
            exit_code: command.exit_code,
            output_bytes: command.output_size,
            boundary: Some(command.boundary.as_str().to_owned()),
        }
    }
}

/// The end of a take-over.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Returned {
    owner: String,
    session: SessionName,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_name: Option<String>,
    principal: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<String>,
    #[serde(rename = "outcome")]
    end: &'static str,
}

impl Returned {
    pub(super) fn of(session: (&SessionId, &str, Option<&str>), driver: &Driver, end: TakeOverEnd) -> Self {
        let (session, owner, name) = session;
        Self {
            owner: owner.to_owned(),
            session: session.into(),
            session_name: name.map(str::to_owned),
            principal: driver.name.clone(),
            client: driver.client.as_deref().map(|client| cut(client, AUDIT_NAME_BYTES_MAX).to_owned()),
            end: end.name(),
        }
    }
}

/// A request that the authentication refused.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Refusal {
    /// `tcp` or `unix`.
    pub transport: &'static str,
    /// The address or the user at the other end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// The request's method.
    pub method: String,
    /// The request's path, without its query, which may have a ticket.
    pub path: String,
    /// The code of the answer.
    #[serde(rename = "outcome")]
    pub code: &'static str,
    /// How many refusals before this one have no line of their own.
    #[serde(skip_serializing_if = "is_zero")]
    pub unrecorded: u64,
}

impl Refusal {
    /// Bounds what a caller without a token wrote freely.
    pub(super) fn shortened(&self) -> Self {
        let (path, method) = (cut(&self.path, AUDIT_PATH_BYTES_MAX), cut(&self.method, AUDIT_NAME_BYTES_MAX));
        Self { path: path.to_owned(), method: method.to_owned(), ..self.clone() }
    }
}

/// Few lines are longer.
pub(super) const USUAL_BYTES: usize = 400;

impl<'a> Line<'a> {
    pub(super) fn new(event: Event, at: SystemTime) -> Self {
        Self {
            time: stamp(at),
            event,
            id: None,
            caller: None,
            action: None,
            details: None,
            found: None,
            ended: None,
            returned: None,
            refusal: None,
            outcome: None,
            reason: None,
            ms: None,
            count: None,
            lost: None,
        }
    }

    /// Appends it as one line.
    pub(super) fn write(&self, to: &mut Vec<u8>) {
        to.reserve(USUAL_BYTES);
        let begin = to.len();
        serde_json::to_writer(&mut *to, self).expect("invariant: a line is plain data");
        to.push(b'\n');
        debug_assert!(to.len() - begin <= AUDIT_LINE_BYTES_MAX, "each text of a caller is bounded");
    }
}

/// Why an action was not performed.
pub(super) fn reason(error: &ActionError, masks: &[Masks]) -> String {
    cut(&masked(error.to_string(), masks), AUDIT_PATH_BYTES_MAX).to_owned()
}

/// RFC 3339 in UTC, with microseconds.
pub(super) fn stamp(at: SystemTime) -> String {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let micros = i64::try_from(since.as_micros()).unwrap_or(i64::MAX);
    format!("{:.6}", jiff::Timestamp::from_microsecond(micros).unwrap_or(jiff::Timestamp::MAX))
}
