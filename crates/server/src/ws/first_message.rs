//! The credential in a socket's first message: a page in a browser can set no header, and a URL is in logs.

use std::pin::Pin;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::extract::ws::{Message, WebSocket};
use axum::http::request::Parts;
use serde::Deserialize;
use tokio::time::timeout;

use super::close::Code;
use super::connection::{End, broken};
use crate::http::problem::ProblemResponse;
use api::ErrorCode;
use ptyd_core::limits;
use ptyd_core::principal::{Grant, Principal};

/// The credential of a first message.
pub(crate) enum Credential {
    /// A bearer token.
    Token(String),
    /// A ticket for this socket.
    Ticket(String),
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
enum FirstMessage {
    /// A message has exactly one of the two.
    Auth { token: Option<String>, ticket: Option<String> },
}

impl FirstMessage {
    fn credential(text: &str) -> Option<Credential> {
        // The error of the parser could repeat the credential.
        match serde_json::from_str(text).ok()? {
            Self::Auth { token: Some(token), ticket: None } => Some(Credential::Token(token)),
            Self::Auth { token: None, ticket: Some(ticket) } => Some(Credential::Ticket(ticket)),
            Self::Auth { token: Some(_), ticket: Some(_) } | Self::Auth { token: None, ticket: None } => None,
        }
    }
}

/// The principal, and the grant of its ticket if it used one.
pub(crate) type Admitted = Result<(Principal, Option<Grant>), ProblemResponse>;

/// Checks the credential of a client that opened a socket without one.
pub(crate) trait Admit: Send + Sync {
    /// Admits the client, or says why not. It counts a client that shows no credential as refused.
    fn admit(&self, credential: Option<Credential>) -> Pin<Box<dyn Future<Output = Admitted> + Send + '_>>;
}

/// The check for one socket.
#[derive(Clone)]
pub(crate) struct Admission(Arc<dyn Admit>);

impl Admission {
    /// Admits by this check.
    pub(crate) fn new(check: impl Admit + 'static) -> Self {
        Self(Arc::new(check))
    }

    /// Reads the first message, and checks its credential.
    pub(super) async fn read(self, socket: &mut WebSocket) -> Result<(Principal, Option<Grant>), End> {
        let credential = match timeout(limits::first_message_patience(), first_message(socket)).await {
            Ok(first) => first.and_then(|text| FirstMessage::credential(&text).ok_or_else(|| refuse(EXPECTED))),
            Err(_) => Err(refuse("no first message with a credential came in time")),
        };
        let credential = match credential {
            Ok(credential) => credential,
            Err(end) => {
                let _ = self.0.admit(None).await;
                return Err(end);
            }
        };
        self.0.admit(Some(credential)).await.map_err(|problem| {
            let code = match problem.code {
                ErrorCode::Forbidden => Code::Forbidden,
                ErrorCode::RateLimited => Code::TooMany,
                _ => Code::Unauthorized,
            };
            End::Close(code, problem.detail)
        })
    }
}

/// The text of the first message.
async fn first_message(socket: &mut WebSocket) -> Result<String, End> {
    loop {
        match socket.recv().await {
            Some(Ok(Message::Text(text))) => return Ok(text.as_str().to_owned()),
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            Some(Ok(Message::Binary(_))) => return Err(refuse(EXPECTED)),
            Some(Err(error)) => return Err(broken(error)),
            Some(Ok(Message::Close(_))) | None => return Err(End::Gone),
        }
    }
}

fn refuse(reason: &str) -> End {
    End::Close(Code::Unauthorized, reason.to_owned())
}

/// The client of a socket.
pub(super) enum Client {
    /// It has shown a credential, or came over the Unix socket.
    Known(Box<(Principal, Option<Grant>)>),
    /// It is to show a credential in its first message.
    Unknown(Admission),
}

impl<S: Sync> FromRequestParts<S> for Client {
    type Rejection = ProblemResponse;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ProblemResponse> {
        if let Some(principal) = parts.extensions.get::<Principal>() {
            return Ok(Self::Known(Box::new((principal.clone(), parts.extensions.get::<Grant>().cloned()))));
        }
        // Moved out, so that its place is free once the message is read.
        let admission = parts.extensions.remove::<Admission>();
        admission
            .map(Self::Unknown)
            .ok_or_else(|| ProblemResponse::new(ErrorCode::Internal, "the request has no principal"))
    }
}

/// The reason of a refusal; it fits a close frame.
const EXPECTED: &str =
    r#"the first message must be a text: {"type":"auth","token":"…"}, or "ticket" instead of "token""#;
