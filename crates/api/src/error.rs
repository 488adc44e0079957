//! The closed list of error codes, and the problem document that carries one (RFC 9457).
//!
//! A code answers three questions without a look at the message: which HTTP status, is the same request worth sending
//! again, and has anything happened. Every match in here is exhaustive, so that a new code cannot be half defined.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Everything that can go wrong, as a client sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The body is not JSON.
    MalformedBody,
    /// A field is missing, unknown, of the wrong type or out of bounds; `field` names it.
    InvalidField,
    /// The body is larger than any request needs.
    BodyTooLarge,
    /// The body did not arrive in time.
    BodyLate,
    /// The request's head breaks the rules of HTTP.
    MalformedHead,
    /// No valid bearer token.
    Unauthorized,
    /// The Host header names another machine: a rebound name in a browser looks like this.
    HostRefused,
    /// The request comes from a web page of another origin.
    OriginRefused,
    /// The caller may not do this.
    Forbidden,
    /// The session's policy denies the command or input; `detail` names the rule.
    PolicyDenied,
    /// The session's policy leaves the command or input to a person, and nobody can be asked yet.
    ApprovalNeeded,
    /// No such path.
    RouteNotFound,
    /// The method is not allowed for this path.
    MethodNotAllowed,
    /// The path only serves connections that ask for another protocol.
    UpgradeRequired,
    /// No such session for this caller.
    SessionNotFound,
    /// The session is on another node, whose number its id has.
    OtherNode,
    /// No such command in this session.
    CommandNotFound,
    /// No such token.
    TokenNotFound,
    /// The session has ended.
    SessionEnded,
    /// The session is alive, and the request is only for ended ones.
    SessionAlive,
    /// Another command runs in the session.
    SessionBusy,
    /// The session's shell is not at its prompt.
    SessionNotReady,
    /// No program runs that could read input.
    NothingRuns,
    /// The program took only a part of the input.
    InputStalled,
    /// Another client has taken the keyboard of the session.
    SessionDriven,
    /// A secret was not typed, because the terminal echoes input.
    WouldEcho,
    /// The approval has another decision, which stands.
    AlreadyDecided,
    /// A limit was reached.
    LimitReached,
    /// Too many requests, or too many wrong tokens; `Retry-After` gives the seconds to wait.
    RateLimited,
    /// The idempotency key was used with another request.
    KeyReused,
    /// Another live session of the owner has the name; `detail` names it.
    NameTaken,
    /// The session could not be started.
    StartFailed,
    /// The session is alive, but its holder process does not answer; `Retry-After` gives the seconds to wait.
    SessionUnreachable,
    /// The machine or the server lacks descriptors, memory, processes or disk space;
    /// `Retry-After` gives the seconds to wait.
    ResourcesExhausted,
    /// A session is being removed, which takes longer than a request waits: the same request waits for its end;
    /// `Retry-After` gives the seconds to wait.
    RemovalContinues,
    /// The server drains: it takes no new sessions.
    ServerDraining,
    /// The server is stopping; the next one has the same sessions.
    ServerRestarting,
    /// The session is on another node, which does not answer this one; `Retry-After` gives the seconds to wait.
    NodeUnreachable,
    /// A fault of the server.
    Internal,
}

impl ErrorCode {
    /// All codes, for documents and tests.
    pub const ALL: [Self; 39] = [
        Self::MalformedBody,
        Self::InvalidField,
        Self::BodyTooLarge,
        Self::BodyLate,
        Self::MalformedHead,
        Self::Unauthorized,
        Self::HostRefused,
        Self::OriginRefused,
        Self::Forbidden,
        Self::PolicyDenied,
        Self::ApprovalNeeded,
        Self::RouteNotFound,
        Self::MethodNotAllowed,
        Self::UpgradeRequired,
        Self::SessionNotFound,
        Self::OtherNode,
        Self::CommandNotFound,
        Self::TokenNotFound,
        Self::SessionEnded,
        Self::SessionAlive,
        Self::SessionBusy,
        Self::SessionNotReady,
        Self::NothingRuns,
        Self::InputStalled,
        Self::SessionDriven,
        Self::WouldEcho,
        Self::AlreadyDecided,
        Self::LimitReached,
        Self::RateLimited,
        Self::KeyReused,
        Self::NameTaken,
        Self::StartFailed,
        Self::SessionUnreachable,
        Self::ResourcesExhausted,
        Self::RemovalContinues,
        Self::ServerDraining,
        Self::ServerRestarting,
        Self::NodeUnreachable,
        Self::Internal,
    ];

    /// The HTTP status that goes with it.
    pub fn http_status(self) -> u16 {
        match self {
            Self::MalformedBody | Self::MalformedHead => 400,
            Self::Unauthorized => 401,
            Self::HostRefused | Self::OriginRefused | Self::Forbidden | Self::PolicyDenied | Self::ApprovalNeeded => {
                403
            }
            Self::RouteNotFound | Self::SessionNotFound | Self::CommandNotFound | Self::TokenNotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::BodyLate => 408,
            Self::SessionAlive
            | Self::SessionBusy
            | Self::SessionNotReady
            | Self::NothingRuns
            | Self::InputStalled
            | Self::SessionDriven
            | Self::WouldEcho
            | Self::NameTaken
            | Self::AlreadyDecided => 409,
            Self::SessionEnded => 410,
            Self::BodyTooLarge => 413,
            Self::OtherNode => 421,
            Self::InvalidField | Self::KeyReused | Self::StartFailed => 422,
            Self::UpgradeRequired => 426,
            Self::LimitReached | Self::RateLimited => 429,
            Self::Internal => 500,
            Self::SessionUnreachable
            | Self::ResourcesExhausted
            | Self::RemovalContinues
            | Self::ServerDraining
            | Self::ServerRestarting
            | Self::NodeUnreachable => 503,
        }
    }

    /// True if the same request may succeed later, with nothing changed by the client.
    pub fn is_retryable(self) -> bool {
        match self {
            Self::SessionBusy
            | Self::SessionNotReady
            | Self::SessionDriven
            | Self::WouldEcho
            | Self::LimitReached
            | Self::RateLimited
            | Self::BodyLate
            | Self::SessionUnreachable
            | Self::ResourcesExhausted
            | Self::RemovalContinues
            | Self::ServerDraining
            | Self::ServerRestarting
            | Self::NodeUnreachable => true,
            Self::MalformedBody
            | Self::InvalidField
            | Self::BodyTooLarge
            | Self::MalformedHead
            | Self::Unauthorized
            | Self::HostRefused
            | Self::OriginRefused
            | Self::Forbidden
            | Self::PolicyDenied
            | Self::ApprovalNeeded
            | Self::RouteNotFound
            | Self::MethodNotAllowed
            | Self::UpgradeRequired
            | Self::SessionNotFound
            | Self::OtherNode
            | Self::CommandNotFound
            | Self::TokenNotFound
            | Self::SessionEnded
            | Self::SessionAlive
            | Self::NothingRuns
            | Self::InputStalled
            | Self::AlreadyDecided
            | Self::KeyReused
            | Self::NameTaken
            | Self::StartFailed
            | Self::Internal => false,
        }
    }

    /// True if it is certain that nothing was done.
    pub fn has_no_side_effects(self) -> bool {
        match self {
            // Part of the input was typed, or part of a folder removed; a stopping server may have accepted the command before it
            // said so, and a holder or node that does not answer may do what it was asked.
            Self::InputStalled
            | Self::SessionUnreachable
            | Self::RemovalContinues
            | Self::ServerRestarting
            | Self::NodeUnreachable
            | Self::Internal => false,
            Self::MalformedBody
            | Self::InvalidField
            | Self::BodyTooLarge
            | Self::BodyLate
            | Self::MalformedHead
            | Self::Unauthorized
            | Self::HostRefused
            | Self::OriginRefused
            | Self::Forbidden
            | Self::PolicyDenied
            | Self::ApprovalNeeded
            | Self::RouteNotFound
            | Self::MethodNotAllowed
            | Self::UpgradeRequired
            | Self::SessionNotFound
            | Self::OtherNode
            | Self::CommandNotFound
            | Self::TokenNotFound
            | Self::SessionEnded
            | Self::SessionAlive
            | Self::SessionBusy
            | Self::SessionNotReady
            | Self::NothingRuns
            | Self::SessionDriven
            | Self::WouldEcho
            | Self::AlreadyDecided
            | Self::LimitReached
            | Self::RateLimited
            | Self::KeyReused
            | Self::NameTaken
            | Self::StartFailed
            | Self::ServerDraining
            | Self::ResourcesExhausted => true,
        }
    }

    /// The seconds for which a client should wait before it retries (`Retry-After`), unless the server knows a better time.
    pub fn retry_after(self) -> Option<u32> {
        match self {
            // A session has to end first, or another server to take its place.
            Self::LimitReached | Self::ServerDraining => Some(5),
            Self::SessionUnreachable | Self::ResourcesExhausted | Self::RemovalContinues | Self::NodeUnreachable => {
                Some(2)
            }
            Self::ServerRestarting | Self::RateLimited => Some(1),
            // A client waits for the session's own state, or sends the body anew at once.
            Self::SessionBusy | Self::SessionNotReady | Self::SessionDriven | Self::BodyLate => None,
            Self::MalformedBody
            | Self::MalformedHead
            | Self::InvalidField
            | Self::BodyTooLarge
            | Self::Unauthorized
            | Self::HostRefused
            | Self::OriginRefused
            | Self::Forbidden
            | Self::PolicyDenied
            | Self::ApprovalNeeded
            | Self::RouteNotFound
            | Self::MethodNotAllowed
            | Self::UpgradeRequired
            | Self::SessionNotFound
            | Self::OtherNode
            | Self::CommandNotFound
            | Self::TokenNotFound
            | Self::SessionEnded
            | Self::SessionAlive
            | Self::NothingRuns
            | Self::InputStalled
            | Self::WouldEcho
            | Self::AlreadyDecided
            | Self::KeyReused
            | Self::NameTaken
            | Self::StartFailed
            | Self::Internal => None,
        }
    }

    /// A short name for people, the same for every occurrence (RFC 9457, `title`).
    pub fn title(self) -> &'static str {
        match self {
            Self::MalformedBody => "The body is not JSON",
            Self::InvalidField => "A field is not valid",
            Self::BodyTooLarge => "The body is too large",
            Self::BodyLate => "The body did not arrive in time",
            Self::MalformedHead => "The head of the request is malformed",
            Self::Unauthorized => "No valid bearer token",
            Self::HostRefused => "The Host header is not a loopback name",
            Self::OriginRefused => "The Origin is not a loopback page",
            Self::Forbidden => "Not allowed",
            Self::PolicyDenied => "The policy denies it",
            Self::ApprovalNeeded => "A person must approve it",
            Self::RouteNotFound => "No such path",
            Self::MethodNotAllowed => "The method is not allowed for this path",
            Self::UpgradeRequired => "An upgrade is needed",
            Self::SessionNotFound => "No such session",
            Self::OtherNode => "The session is on another node",
            Self::CommandNotFound => "No such command",
            Self::TokenNotFound => "No such token",
            Self::SessionEnded => "The session has ended",
            Self::SessionAlive => "The session is alive",
            Self::SessionBusy => "The session is busy",
            Self::SessionNotReady => "The shell is not at its prompt",
            Self::NothingRuns => "No program runs that could read input",
            Self::InputStalled => "The program does not read its input",
            Self::SessionDriven => "Another client drives the session",
            Self::WouldEcho => "The terminal echoes input",
            Self::AlreadyDecided => "The approval has already been decided",
            Self::LimitReached => "A limit is reached",
            Self::RateLimited => "Too many requests",
            Self::KeyReused => "The idempotency key was used before",
            Self::NameTaken => "Another session has the name",
            Self::StartFailed => "The session could not be started",
            Self::SessionUnreachable => "The session's holder does not answer",
            Self::ResourcesExhausted => "The machine lacks a resource",
            Self::RemovalContinues => "The removal continues",
            Self::ServerDraining => "The server takes no new sessions",
            Self::ServerRestarting => "The server is restarting",
            Self::NodeUnreachable => "Another node does not answer",
            Self::Internal => "Internal error",
        }
    }

    /// The code as it is on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MalformedBody => "malformed_body",
            Self::InvalidField => "invalid_field",
            Self::BodyTooLarge => "body_too_large",
            Self::BodyLate => "body_late",
            Self::MalformedHead => "malformed_head",
            Self::Unauthorized => "unauthorized",
            Self::HostRefused => "host_refused",
            Self::OriginRefused => "origin_refused",
            Self::Forbidden => "forbidden",
            Self::PolicyDenied => "policy_denied",
            Self::ApprovalNeeded => "approval_needed",
            Self::RouteNotFound => "route_not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::UpgradeRequired => "upgrade_required",
            Self::SessionNotFound => "session_not_found",
            Self::OtherNode => "other_node",
            Self::CommandNotFound => "command_not_found",
            Self::TokenNotFound => "token_not_found",
            Self::SessionEnded => "session_ended",
            Self::SessionAlive => "session_alive",
            Self::SessionBusy => "session_busy",
            Self::SessionNotReady => "session_not_ready",
            Self::NothingRuns => "nothing_runs",
            Self::InputStalled => "input_stalled",
            Self::SessionDriven => "session_driven",
            Self::WouldEcho => "would_echo",
            Self::AlreadyDecided => "already_decided",
            Self::LimitReached => "limit_reached",
            Self::RateLimited => "rate_limited",
            Self::KeyReused => "key_reused",
            Self::NameTaken => "name_taken",
            Self::StartFailed => "start_failed",
            Self::SessionUnreachable => "session_unreachable",
            Self::ResourcesExhausted => "resources_exhausted",
            Self::RemovalContinues => "removal_continues",
            Self::ServerDraining => "server_draining",
            Self::ServerRestarting => "server_restarting",
            Self::NodeUnreachable => "node_unreachable",
            Self::Internal => "internal",
        }
    }
}

/// An error document: `application/problem+json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// `urn:ptyd:error:<code>`: a name, not an address.
    #[serde(rename = "type")]
    pub kind: String,
    /// The code in a few words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// The failure, and the remedy.
    pub detail: String,
    /// The code.
    pub code: ErrorCode,
    /// Names this request in the server's log.
    pub request_id: String,
    /// The field that is wrong, as the client wrote it (`dimensions.cols`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
}

impl Problem {
    /// The document of one occurrence.
    pub fn new(code: ErrorCode, detail: String, field: Option<String>, request_id: String) -> Self {
        Self {
            kind: format!("urn:ptyd:error:{}", code.as_str()),
            title: code.title().to_owned(),
            status: code.http_status(),
            detail,
            code,
            request_id,
            field,
        }
    }
}
