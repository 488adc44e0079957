//! The query and the text messages of a viewer's WebSocket; docs/websocket.md describes the protocols.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{CommandExecution, Dimensions, Driver, ErrorCode, Exit, Foreground, Limit, SessionStatus, TakeOverEnd};

/// The query of `GET /terminals/{sessionId}/socket`. It has no `Debug`, so that no log contains a ticket.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SocketQuery {
    /// `raw` speaks plain bytes; without it the sub-protocol `ptyd.v1` is spoken, or JSON texts where none is offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^raw$"))]
    pub mode: Option<String>,
    /// Go on at this offset (`o:<offset>`) instead of a snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^(o:)?[0-9]+$"))]
    pub since: Option<String>,
    /// The viewer's own name, under which its inputs are numbered over all of its connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[A-Za-z0-9._-]{1,64}$"))]
    pub client: Option<String>,
    /// A viewer that is far behind is shown the present (`skip`) or every byte (`all`, the default for JSON texts).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^(skip|all)$"))]
    pub behind: Option<String>,
    /// Take the keyboard for as long as the connection lasts: if nobody else has it (`free`), or also from another driver (`force`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^(free|force)$"))]
    pub take: Option<String>,
    /// A ticket from `POST /tickets`, in the place of the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
}

/// A text message from the server with the sub-protocol `ptyd.v1`: something has happened in the session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum SocketEvent {
    /// The first message: the state of the session and of the connection.
    Control {
        /// The session's id.
        session: String,
        /// Its state; only with `ptyd.v1`, because other messages have it beside the event.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<SessionStatus>,
        /// The name under which this client numbers its inputs.
        client: String,
        /// Whether the client may type.
        may_write: bool,
        /// The offset at which output begins.
        offset: u64,
        /// The oldest byte that is kept.
        first_offset: u64,
        /// The offset behind the newest byte.
        end_offset: u64,
        /// The terminal's size.
        dimensions: Dimensions,
        /// The state of the foreground.
        foreground: Foreground,
        /// The command that runs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        current_command: Option<String>,
        /// The client that has taken the keyboard.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        driver: Option<Driver>,
        /// How many bytes may be unconfirmed; only with `ptyd.v1`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        window_bytes: Option<u64>,
    },
    /// A command was accepted.
    #[serde(rename = "command.started")]
    CommandStarted {
        /// The command.
        command: Box<CommandExecution>,
    },
    /// A command has ended.
    #[serde(rename = "command.completed")]
    CommandCompleted {
        /// The command, without its output.
        command: Box<CommandExecution>,
    },
    /// The session was `creating`, and is now `running`.
    Ready,
    /// Another state of the foreground.
    Foreground {
        /// The state.
        foreground: Foreground,
    },
    /// The terminal has another size.
    Resize {
        /// The size.
        dimensions: Dimensions,
    },
    /// The session has reached a limit.
    Limit {
        /// The limit.
        limit: Limit,
        /// The command that was running.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command_id: Option<String>,
    },
    /// A client has taken the keyboard.
    #[serde(rename = "keyboard.taken")]
    KeyboardTaken {
        /// The client.
        driver: Driver,
    },
    /// Its take-over has ended.
    #[serde(rename = "keyboard.returned")]
    KeyboardReturned {
        /// The client.
        driver: Driver,
        /// How it ended.
        ended_by: TakeOverEnd,
    },
    /// The shell has ended.
    Exit {
        /// How it ended, if that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit: Option<Exit>,
    },
    /// The server no longer has some events.
    Missed {
        /// Their number.
        events: u64,
    },
    /// The answer to a ping.
    Pong,
    /// A request of the client failed; the connection stays open.
    Error {
        /// The code, as in REST.
        code: ErrorCode,
        /// The reason, in words.
        detail: String,
        /// The number of the input that was not typed, or only in part.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seq: Option<u64>,
    },
}

/// A text message from the client with the sub-protocol `ptyd.v1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "lowercase", deny_unknown_fields)]
pub enum SocketRequest {
    /// Sets the size of the terminal.
    Resize {
        /// The size.
        dimensions: Dimensions,
    },
    /// Asks for a pong. A page cannot send a ping of the WebSocket.
    Ping {},
}

/// A message from the server without a sub-protocol.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum SocketMessage {
    /// Output, or the screen.
    Output {
        /// For a terminal or a reader.
        data: String,
        /// Every byte, if `data` is not exact.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data_base64: Option<String>,
        /// `data` paints the screen, and begins with a full reset.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        snapshot: bool,
        /// The size of that screen.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dimensions: Option<Dimensions>,
        /// The offset of its first byte; a screen has none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from_offset: Option<u64>,
        /// The offset to continue at.
        next_offset: u64,
    },
    /// An event of the session, with the fields of a `SocketEvent`.
    Status {
        /// The session's state.
        status: SessionStatus,
        /// The event: the fields of a [`SocketEvent`].
        #[serde(flatten)]
        #[schemars(with = "BTreeMap<String, Value>")]
        event: SocketEvent,
    },
    /// A range that the server does not send.
    Gap {
        /// Its first byte.
        from_offset: u64,
        /// Behind its last byte.
        next_offset: u64,
    },
    /// An input was typed.
    Typed {
        /// Its number.
        seq: u64,
    },
    /// The answer to a ping.
    Pong,
    /// A request of the client failed; the connection stays open.
    Error {
        /// The code, as in REST.
        code: ErrorCode,
        /// The reason, in words.
        detail: String,
        /// The number of the input that was not typed, or only in part.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seq: Option<u64>,
    },
}

/// A message from the client without a sub-protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum SocketInput {
    /// Types text or bytes: exactly one of both.
    Input {
        /// Text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<String>,
        /// Bytes that are not text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data_base64: Option<String>,
        /// A number that this client has not used; repeated, it is not typed again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seq: Option<u64>,
    },
    /// Sets the size of the terminal.
    Resize {
        /// Columns.
        cols: u16,
        /// Rows.
        rows: u16,
    },
    /// Asks for a pong. A page cannot send a ping of the WebSocket.
    Ping {},
}
