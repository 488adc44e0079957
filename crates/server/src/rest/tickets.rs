//! `POST /tickets`: the way in for a browser's WebSocket, which cannot show a token.

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::error::Refusal;
use super::extract::Body;
use super::{Rest, unexpected};
use crate::action::{Action, Outcome};
use crate::identity::Principal;
use crate::ids::SessionId;

pub(super) async fn create(
    State(rest): State<Rest>,
    Extension(who): Extension<Principal>,
    Body(body): Body<api::TicketRequest>,
) -> Result<Response, Refusal> {
    let session = SessionId::parse(&body.session).map_err(|_| Refusal::field("session", "must be a session's id"))?;
    let may_write = body.scope == api::TicketScope::Write;
    match rest.act(&who, Action::Ticket { session, may_write }).await? {
        Outcome::Ticket(made) => {
            let ticket = api::Ticket { ticket: made.ticket, expires_in: made.lifetime.as_secs() };
            Ok((StatusCode::CREATED, [(header::CACHE_CONTROL, "no-store")], Json(ticket)).into_response())
        }
        other => Err(unexpected(&other)),
    }
}
