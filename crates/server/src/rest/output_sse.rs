//! `…/output/stream`, output as server-sent events: each event is an answer of the long poll, and its id is the offset to continue at.
//!
//! Nothing is queued. An event is read from the journal when the one before was taken, so a slow client costs one
//! event, and a client that reconnects with `Last-Event-ID` continues with the next byte, at any server.

use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};

use super::body_stream;
use super::state::{Rest, unexpected};
use crate::http::convert;
use crate::http::problem::ProblemResponse;
use ptyd_core::action::{Action, Outcome, OutputView, ReadOutput, Since};
use ptyd_core::limits;
use ptyd_core::principal::Principal;

/// The header with the offset where the client stopped.
pub(super) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// How soon a client is to reconnect; a restart takes about that long.
pub(super) const RETRY: &str = "retry: 500\n\n";

/// The offset where the client stopped.
pub(super) fn resumed(headers: &HeaderMap) -> Result<Option<Since>, ProblemResponse> {
    let Some(id) = headers.get(LAST_EVENT_ID) else { return Ok(None) };
    let offset = id.to_str().ok().and_then(|id| id.parse().ok()).map(Since::Offset);
    offset.map(Some).ok_or_else(|| ProblemResponse::field("Last-Event-ID", "must be the id of an event of this stream"))
}

/// The state of the stream.
struct Following {
    rest: Rest,
    principal: Principal,
    read: ReadOutput,
    /// The first answer, which was requested before the stream began.
    first: Option<OutputView>,
    is_over: bool,
}

/// Follows the output. An invalid request is refused as usual, before the first event.
pub(super) async fn follow(
    rest: Rest,
    principal: Principal,
    mut read: ReadOutput,
    silence: Duration,
    is_resumed: bool,
) -> Result<Response, ProblemResponse> {
    // One answer without an end: its events name offsets, from which a client that reconnects goes on.
    let principal = Principal { delivery: None, ..principal };
    read.budget = limits::BUDGET_CHARS_MAX.into();
    let first = match rest.act(&principal, Action::Output(read.clone())).await? {
        Outcome::Output(view) => view,
        other => return Err(unexpected(&other)),
    };
    if is_resumed && first.is_final && first.next <= first.from {
        // This status tells a reconnecting client to stop.
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    read.wait = silence;
    let following = Following { rest, principal, read, first: Some(first), is_over: false };
    let next = |mut it: Following| async move { Ok(it.next().await.map(|event| (event, it))) };
    Ok(body_stream::of_events(following, next))
}

impl Following {
    /// The next event, or a heartbeat; none at the end, or when the server stops.
    async fn next(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        let mut text = String::new();
        let view = match self.first.take() {
            Some(view) => {
                text.push_str(RETRY);
                view
            }
            None => match self.rest.act(&self.principal, Action::Output(self.read.clone())).await {
                Ok(Outcome::Output(view)) => view,
                // The client reconnects and gets the error as an answer.
                Ok(_) | Err(_) => return None,
            },
        };
        self.read.since = Since::Offset(view.next);
        self.is_over = view.is_final;
        if view.next > view.from || view.gap.is_some() || view.is_final {
            let (next, kind) = (view.next, if view.is_final { "end" } else { "output" });
            let data = serde_json::to_string(&convert::output(view)).expect("invariant: an output is plain data");
            text.push_str(&format!("id: {next}\nevent: {kind}\ndata: {data}\n\n"));
        } else {
            text.push_str(":\n\n");
        }
        Some(text.into())
    }
}
