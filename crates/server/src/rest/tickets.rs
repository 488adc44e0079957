//! `POST /tickets`: authentication for a browser, whose sockets and pages cannot send a token.

use api::ErrorCode;
use axum::Json;
use axum::extract::{Extension, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::extract::Body;
use super::logins;
use super::state::{Rest, unexpected};
use crate::http::problem::ProblemResponse;
use ptyd_core::action::{Action, LogInStep, Outcome};
use ptyd_core::ids::SessionId;
use ptyd_core::principal::{Principal, TicketTarget};

pub(super) async fn create(
    State(rest): State<Rest>,
    Extension(principal): Extension<Principal>,
    Body(body): Body<api::TicketRequest>,
) -> Result<Response, ProblemResponse> {
    let place = match (body.session, body.page) {
        (Some(session), None) => TicketTarget::Socket(
            SessionId::parse(&session).map_err(|_| ProblemResponse::field("session", "must be a session's id"))?,
        ),
        (None, Some(api::TicketPage::Docs)) => TicketTarget::Docs,
        (None, Some(api::TicketPage::Sessions)) => return link(&rest, &principal).await,
        (None, None) => return Err(ProblemResponse::field("session", "one of session and page is needed")),
        (Some(_), Some(_)) => return Err(ProblemResponse::field("page", "only one of session and page can be given")),
    };
    let may_write = body.scope == api::TicketScope::Write;
    match rest.act(&principal, Action::Ticket { place, may_write }).await? {
        Outcome::Ticket(made) => {
            let ticket = api::Ticket { ticket: made.ticket, expires_in: made.lifetime.as_secs(), url: None };
            Ok((StatusCode::CREATED, [(header::CACHE_CONTROL, "no-store")], Json(ticket)).into_response())
        }
        other => Err(unexpected(&other)),
    }
}

/// A link by which a browser logs in. A log-in outlives the program that made it, so a program in a session makes none.
async fn link(rest: &Rest, principal: &Principal) -> Result<Response, ProblemResponse> {
    if principal.origin.from_session.is_some() {
        let help = "a program in a session cannot make a link to the page; run `ptyd open` outside of ptyd's sessions";
        return Err(ProblemResponse::new(ErrorCode::Forbidden, help));
    }
    logins::record(rest, principal, LogInStep::Link).await?;
    let made = rest.logins.link(principal)?;
    let ticket = api::Ticket { ticket: made.ticket, expires_in: made.lifetime.as_secs(), url: Some(made.url) };
    Ok((StatusCode::CREATED, [(header::CACHE_CONTROL, "no-store")], Json(ticket)).into_response())
}
