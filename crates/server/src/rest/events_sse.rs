//! `GET /events`: the events of all sessions that the caller may see, as server-sent events. `server_events.rs` of
//! the core decides which.
//!
//! Nothing is queued: a part is read from the ring when the one before was taken. An event's id is the position behind
//! it, which `Last-Event-ID` sends back.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Extension, State};
use axum::http::HeaderMap;
use axum::response::Response;
use tokio::sync::OwnedSemaphorePermit;

use super::body_stream;
use super::output_sse::{LAST_EVENT_ID, RETRY};
use super::state::{Rest, unexpected};
use crate::http::convert;
use crate::http::problem::ProblemResponse;
use ptyd_core::action::{Action, EventPlace, EventsView, Outcome, ReadEvents, ServerEvent, ServerEventKind};
use ptyd_core::limits;
use ptyd_core::principal::Principal;

/// The route.
pub(super) const PATH: &str = "/events";

/// The state of the stream.
struct Following {
    rest: Rest,
    principal: Principal,
    read: ReadEvents,
    first: Option<EventsView>,
    _follower: Option<Arc<OwnedSemaphorePermit>>,
}

pub(super) async fn follow(
    State(rest): State<Rest>,
    Extension(principal): Extension<Principal>,
    headers: HeaderMap,
) -> Result<Response, ProblemResponse> {
    let since = headers.get(LAST_EVENT_ID).map(|id| id.to_str().ok().and_then(|id| id.parse::<EventPlace>().ok()));
    if since == Some(None) {
        return Err(ProblemResponse::field("Last-Event-ID", "must be the id of an event of this stream"));
    }
    let mut read = ReadEvents { since: since.flatten(), wait: std::time::Duration::ZERO, follows: true };
    let first = match rest.act(&principal, Action::Events(read)).await? {
        Outcome::Events(view) => view,
        other => return Err(unexpected(&other)),
    };
    (read.wait, read.follows) = (limits::HEARTBEAT, false);
    let follower = first.follower.clone();
    let following = Following { rest, principal, read, first: Some(first), _follower: follower };
    let next = |mut it: Following| async move { Ok(it.next().await.map(|part| (part, it))) };
    Ok(body_stream::of_events(following, next))
}

impl Following {
    /// The next events, or a heartbeat; none when the server stops, or the caller's token is revoked.
    async fn next(&mut self) -> Option<Bytes> {
        let mut text = String::new();
        let view = match self.first.take() {
            Some(view) => {
                // The position of the stream, also for a client that disconnects before the first event.
                text.push_str(&format!("{RETRY}id: {}\n:\n\n", view.next));
                view
            }
            None => match self.rest.act(&self.principal, Action::Events(self.read)).await {
                Ok(Outcome::Events(view)) => view,
                Ok(_) | Err(_) => return None,
            },
        };
        self.read.since = Some(view.next);
        if view.is_gap {
            let gap = api::Event { event: api::EventKind::Gap, ..blank(std::time::SystemTime::now()) };
            push(&mut text, None, &gap);
        }
        for server_event in &view.events {
            let place = EventPlace { number: server_event.number, ..view.next };
            push(&mut text, Some(place), &event(server_event));
        }
        if text.is_empty() {
            // Also the position behind events of others: a client that reconnects must not get a gap for events that it
            // may not see.
            text = format!("id: {}\n:\n\n", view.next);
        }
        Some(text.into())
    }
}

fn push(text: &mut String, place: Option<EventPlace>, event: &api::Event) {
    let data = serde_json::to_string(event).expect("invariant: an event is plain data");
    let id = place.map(|place| format!("id: {place}\n")).unwrap_or_default();
    text.push_str(&format!("{id}event: {}\ndata: {data}\n\n", event.event.name()));
}

fn blank(at: std::time::SystemTime) -> api::Event {
    api::Event {
        event: api::EventKind::Gap,
        at: convert::time(at),
        session_id: None,
        owner: None,
        name: None,
        command_id: None,
        status: None,
        exit_code: None,
        foreground: None,
        limit: None,
        exit: None,
        approval_id: None,
        decision: None,
        driver: None,
        ended_by: None,
    }
}

fn event(server_event: &ServerEvent) -> api::Event {
    let common = api::Event {
        session_id: Some(server_event.session.to_string()),
        owner: Some(server_event.owner.clone()),
        name: server_event.name.clone(),
        ..blank(server_event.at)
    };
    match &server_event.what {
        ServerEventKind::Created => api::Event { event: api::EventKind::SessionCreated, ..common },
        ServerEventKind::Terminated(exit) => {
            api::Event { event: api::EventKind::SessionTerminated, exit: exit.clone().map(convert::exit), ..common }
        }
        ServerEventKind::Started(command) => {
            api::Event { event: api::EventKind::CommandStarted, command_id: Some(command.id.to_string()), ..common }
        }
        ServerEventKind::Completed(command) => api::Event {
            event: api::EventKind::CommandCompleted,
            command_id: Some(command.id.to_string()),
            status: Some(convert::command_status(command.status)),
            exit_code: command.exit_code,
            ..common
        },
        ServerEventKind::Wanted(foreground) => api::Event {
            event: api::EventKind::Attention,
            foreground: Some(convert::foreground(*foreground)),
            ..common
        },
        ServerEventKind::LimitHit(hit) => api::Event {
            event: api::EventKind::Limit,
            command_id: hit.command.map(|id| id.to_string()),
            limit: Some(convert::limit(hit.limit)),
            ..common
        },
        ServerEventKind::Taken(driver) => {
            api::Event { event: api::EventKind::KeyboardTaken, driver: Some(convert::driver(driver)), ..common }
        }
        ServerEventKind::Returned(driver, end) => api::Event {
            event: api::EventKind::KeyboardReturned,
            driver: Some(convert::driver(driver)),
            ended_by: Some(convert::take_over_end(*end)),
            ..common
        },
        ServerEventKind::Approval { id, decision } => {
            let event = match decision {
                None => api::EventKind::ApprovalRequested,
                Some(_) => api::EventKind::ApprovalDecided,
            };
            let decision = decision.map(super::approvals::decision);
            api::Event { event, approval_id: Some(id.clone()), decision, ..common }
        }
    }
}
