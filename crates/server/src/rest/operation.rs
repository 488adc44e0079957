//! The description of one operation: its audience, its parameters, and all of its answers.
//!
//! A line of the table of routes requires one, so that no route is served without a description.

use api::ErrorCode;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

/// Makes a schema, and adds the ones that it refers to.
pub(crate) type Make = fn(&mut SchemaGenerator) -> Schema;

/// A description.
#[derive(Debug, Clone)]
pub(crate) struct Operation {
    pub(super) id: &'static str,
    pub(super) tag: Tag,
    pub(super) summary: &'static str,
    pub(super) details: &'static str,
    pub(super) query: Option<Make>,
    pub(super) headers: Vec<Header>,
    pub(super) body: Option<Body>,
    pub(super) answers: Vec<Answer>,
    pub(super) refusals: Vec<ErrorCode>,
    pub(super) is_open: bool,
}

/// The chapters of the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tag {
    /// Creating, showing and ending sessions.
    Sessions,
    /// Running commands and reading their results.
    Commands,
    /// Typing, signals and waiting.
    Input,
    /// Reading all output.
    Output,
    /// Other protocols, batches, this document.
    Server,
}

impl Tag {
    pub(super) const ALL: [(Self, &'static str, &'static str); 5] = [
        (Self::Sessions, "sessions", "Sessions are shells that stay alive: started, listed, resized and ended."),
        (Self::Commands, "commands", "Commands run in a session, one at a time; their ends are exact."),
        (Self::Input, "input", "Type input, send signals, and wait."),
        (Self::Output, "output", "A session's output, by offsets that never change."),
        (Self::Server, "server", "Everything that does not belong to one session."),
    ];

    pub(crate) fn name(self) -> &'static str {
        Self::ALL.iter().find(|(tag, ..)| *tag == self).map_or("", |(_, name, _)| name)
    }
}

/// A header of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Header {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) pattern: &'static str,
}

/// A request's body.
#[derive(Debug, Clone)]
pub(super) struct Body {
    pub(super) schema: Make,
    pub(super) example: Value,
    /// The body must not be empty, although no single field is required.
    pub(super) is_needed: bool,
}

/// The answer of a successful operation.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) about: &'static str,
    pub(super) contents: Vec<(&'static str, Content)>,
    pub(super) headers: Vec<(&'static str, &'static str)>,
}

/// The form of an answer's body.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Content {
    /// A JSON value.
    Json(Make),
    /// Text.
    Text,
    /// Server-sent events with JSON data.
    Events(Make),
}

/// The media type of server-sent events.
const EVENTS: &str = "text/event-stream";

const IDEMPOTENCY_KEY: Header = Header {
    name: "Idempotency-Key",
    about: "Makes a request safe to repeat: a repetition returns the answer of the first one, also after a restart \
        of the server. The same key with another request is refused with `key_reused`.",
    pattern: "^[!-~]{1,200}$",
};

const CLIENT: Header = Header {
    name: "Ptyd-Client",
    about: "A name that distinguishes this client from other clients of the same token or user. ptyd keeps a \
            read position for each named client, and uses it for `since=last`, for waits and for the changed \
            rows of the screen. The position survives a restart of the server. Clients without a name share one \
            read position.",
    pattern: "^[A-Za-z0-9._-]{1,64}$",
};

const LAST_EVENT_ID: Header = Header {
    name: "Last-Event-ID",
    about: "Continues server-sent events after the one with this id.",
    pattern: "^[0-9]{1,15}$",
};

const LAST_PLACE: Header = Header { pattern: "^[0-9a-f]{8}-[0-9]{1,15}$", ..LAST_EVENT_ID };

const MCP_SESSION: Header = Header {
    name: "Mcp-Session-Id",
    about: "The MCP session, as named by the answer to `initialize`.",
    pattern: "^[!-~]{1,100}$",
};

impl Operation {
    /// An operation that needs authentication.
    pub(crate) fn new(id: &'static str, tag: Tag, summary: &'static str) -> Self {
        Self {
            id,
            tag,
            summary,
            details: "",
            query: None,
            headers: Vec::new(),
            body: None,
            answers: Vec::new(),
            refusals: Vec::new(),
            is_open: false,
        }
    }

    /// A longer description.
    pub(crate) fn details(self, details: &'static str) -> Self {
        Self { details, ..self }
    }

    /// Adds query parameters.
    pub(crate) fn query<T: JsonSchema>(self) -> Self {
        Self { query: Some(T::json_schema), ..self }.refuses(&[ErrorCode::InvalidField])
    }

    /// Adds a body, with an example.
    pub(crate) fn body<T: JsonSchema>(self, example: Value) -> Self {
        Self { body: Some(Body { schema: |g| g.subschema_for::<T>(), example, is_needed: false }), ..self }.refuses(&[
            ErrorCode::MalformedBody,
            ErrorCode::BodyTooLarge,
            ErrorCode::BodyLate,
            ErrorCode::InvalidField,
        ])
    }

    /// An empty body is invalid.
    pub(crate) fn needed(mut self) -> Self {
        if let Some(body) = &mut self.body {
            body.is_needed = true;
        }
        self
    }

    /// Another protocol reports its errors in its own form.
    pub(crate) fn foreign(self) -> Self {
        Self { refusals: Vec::new(), ..self }
    }

    /// Adds the idempotency key.
    pub(crate) fn keyed(mut self) -> Self {
        self.headers.push(IDEMPOTENCY_KEY);
        self.refuses(&[ErrorCode::KeyReused, ErrorCode::InvalidField])
    }

    /// Adds the name of the client, whose read cursor the operation uses.
    pub(crate) fn of_client(mut self) -> Self {
        self.headers.push(CLIENT);
        self
    }

    /// Adds the header to continue where a client stopped.
    pub(crate) fn resumed(mut self) -> Self {
        self.headers.push(LAST_EVENT_ID);
        self
    }

    /// Adds the header to continue at a position of the event log.
    pub(crate) fn resumed_at_a_place(mut self) -> Self {
        self.headers.push(LAST_PLACE);
        self.refuses(&[ErrorCode::InvalidField])
    }

    /// Adds the header of an MCP session.
    pub(crate) fn of_mcp(mut self) -> Self {
        self.headers.push(MCP_SESSION);
        self.foreign()
    }

    fn answer(mut self, status: u16, about: &'static str, contents: Vec<(&'static str, Content)>) -> Self {
        self.answers.push(Answer { status, about, contents, headers: Vec::new() });
        self
    }

    /// Adds a JSON answer.
    pub(crate) fn json<T: JsonSchema>(self, status: u16, about: &'static str) -> Self {
        self.answer(status, about, vec![("application/json", Content::Json(|g| g.subschema_for::<T>()))])
    }

    /// Adds a text answer.
    pub(crate) fn text(self, status: u16, about: &'static str, kind: &'static str) -> Self {
        self.answer(status, about, vec![(kind, Content::Text)])
    }

    /// Adds an answer of server-sent events.
    pub(crate) fn events<T: JsonSchema>(self, status: u16, about: &'static str) -> Self {
        self.answer(status, about, vec![(EVENTS, Content::Events(|g| g.subschema_for::<T>()))])
    }

    /// Adds an answer without a body.
    pub(crate) fn empty(self, status: u16, about: &'static str) -> Self {
        self.answer(status, about, Vec::new())
    }

    /// Its last answer has another form, too.
    pub(crate) fn or(mut self, kind: &'static str, content: Content) -> Self {
        if let Some(answer) = self.answers.last_mut() {
            answer.contents.push((kind, content));
        }
        self
    }

    /// Its last answer has a header.
    pub(crate) fn with(mut self, name: &'static str, about: &'static str) -> Self {
        if let Some(answer) = self.answers.last_mut() {
            answer.headers.push((name, about));
        }
        self
    }

    /// Adds errors besides those of its parts and of authentication.
    pub(crate) fn refuses(mut self, codes: &[ErrorCode]) -> Self {
        self.refusals.extend(codes);
        self
    }

    /// It needs no token.
    pub(crate) fn open(self) -> Self {
        Self { is_open: true, ..self }
    }
}
