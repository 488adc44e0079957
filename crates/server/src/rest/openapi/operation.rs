//! What is said about one operation: for whom it is, what it takes, and everything that it answers.
//!
//! A line of the table of routes cannot be made without one, so that nothing is served that is not described.

use api::ErrorCode;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

/// Makes a schema, and puts the ones that it refers to beside it.
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
    /// Their life.
    Sessions,
    /// Running them and asking what came of it.
    Commands,
    /// Typing, signals and waiting.
    Input,
    /// Everything that was shown.
    Output,
    /// Other doors, batches, this document.
    Server,
}

impl Tag {
    pub(super) const ALL: [(Self, &'static str, &'static str); 5] = [
        (Self::Sessions, "sessions", "Sessions are shells that stay alive: started, listed, resized and ended."),
        (Self::Commands, "commands", "Commands run in a session, one at a time; their ends are exact."),
        (Self::Input, "input", "Programs are typed at, signalled and waited for."),
        (Self::Output, "output", "What a session has shown, by offset, for ever the same."),
        (Self::Server, "server", "Everything that is about no single session."),
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
    /// Something must be in it, although no single field must.
    pub(super) is_needed: bool,
}

/// What an operation answers when it is done.
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
    /// A value of ours.
    Json(Make),
    /// Words, or lines.
    Text,
    /// Server-sent events, the data of each a value of ours.
    Events(Make),
    /// Bytes as they are.
    Bytes,
}

/// The media type of server-sent events.
const EVENTS: &str = "text/event-stream";

const IDEMPOTENCY_KEY: Header = Header {
    name: "Idempotency-Key",
    about: "Makes the same request harmless to repeat: it answers with what the first one did, over a restart of the \
            server too. The same key with another request is `key_reused`.",
    pattern: "^[!-~]{1,200}$",
};

const LAST_EVENT_ID: Header = Header {
    name: "Last-Event-ID",
    about: "Goes on with server-sent events behind the one with this id.",
    pattern: "^[0-9]{1,15}$",
};

const LAST_PLACE: Header = Header { pattern: "^[0-9a-f]{8}-[0-9]{1,15}$", ..LAST_EVENT_ID };

const MCP_SESSION: Header = Header {
    name: "Mcp-Session-Id",
    about: "The session of MCP, as the answer to `initialize` named it.",
    pattern: "^[!-~]{1,100}$",
};

impl Operation {
    /// An operation behind the guard.
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

    /// More than a line about it.
    pub(crate) fn details(self, details: &'static str) -> Self {
        Self { details, ..self }
    }

    /// It takes these parameters in its address.
    pub(crate) fn query<T: JsonSchema>(self) -> Self {
        Self { query: Some(T::json_schema), ..self }.refuses(&[ErrorCode::InvalidField])
    }

    /// It takes this body, for example.
    pub(crate) fn body<T: JsonSchema>(self, example: Value) -> Self {
        Self { body: Some(Body { schema: |g| g.subschema_for::<T>(), example, is_needed: false }), ..self }.refuses(&[
            ErrorCode::MalformedBody,
            ErrorCode::BodyTooLarge,
            ErrorCode::BodyLate,
            ErrorCode::InvalidField,
        ])
    }

    /// An empty body says nothing.
    pub(crate) fn needed(mut self) -> Self {
        if let Some(body) = &mut self.body {
            body.is_needed = true;
        }
        self
    }

    /// Another protocol refuses in its own words what comes this way.
    pub(crate) fn foreign(self) -> Self {
        Self { refusals: Vec::new(), ..self }
    }

    /// It can be repeated under a key.
    pub(crate) fn keyed(mut self) -> Self {
        self.headers.push(IDEMPOTENCY_KEY);
        self.refuses(&[ErrorCode::KeyReused, ErrorCode::InvalidField])
    }

    /// It goes on where a client stopped.
    pub(crate) fn resumed(mut self) -> Self {
        self.headers.push(LAST_EVENT_ID);
        self
    }

    /// It goes on at a place among the events of a server.
    pub(crate) fn resumed_at_a_place(mut self) -> Self {
        self.headers.push(LAST_PLACE);
        self.refuses(&[ErrorCode::InvalidField])
    }

    /// It is for a session of MCP's own.
    pub(crate) fn of_mcp(mut self) -> Self {
        self.headers.push(MCP_SESSION);
        self.foreign()
    }

    fn answer(mut self, status: u16, about: &'static str, contents: Vec<(&'static str, Content)>) -> Self {
        self.answers.push(Answer { status, about, contents, headers: Vec::new() });
        self
    }

    /// It answers with a value.
    pub(crate) fn json<T: JsonSchema>(self, status: u16, about: &'static str) -> Self {
        self.answer(status, about, vec![("application/json", Content::Json(|g| g.subschema_for::<T>()))])
    }

    /// It answers with words.
    pub(crate) fn text(self, status: u16, about: &'static str, kind: &'static str) -> Self {
        self.answer(status, about, vec![(kind, Content::Text)])
    }

    /// It answers with server-sent events, and goes on with them.
    pub(crate) fn events<T: JsonSchema>(self, status: u16, about: &'static str) -> Self {
        self.answer(status, about, vec![(EVENTS, Content::Events(|g| g.subschema_for::<T>()))])
    }

    /// Its last answer comes as server-sent events, too, where they are asked for.
    pub(crate) fn or_events<T: JsonSchema>(self) -> Self {
        self.or(EVENTS, Content::Events(|g| g.subschema_for::<T>()))
    }

    /// It answers with nothing but the status.
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

    /// Its last answer carries a header.
    pub(crate) fn with(mut self, name: &'static str, about: &'static str) -> Self {
        if let Some(answer) = self.answers.last_mut() {
            answer.headers.push((name, about));
        }
        self
    }

    /// What it refuses besides what its parts and the guard do.
    pub(crate) fn refuses(mut self, codes: &[ErrorCode]) -> Self {
        self.refusals.extend(codes);
        self
    }

    /// It needs no token.
    pub(crate) fn open(self) -> Self {
        Self { is_open: true, ..self }
    }
}
