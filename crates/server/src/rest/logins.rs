//! `POST /login` and `DELETE /login`: a browser's log-in to the page.

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::state::{Rest, unexpected};
use crate::http::problem::ProblemResponse;
use ptyd_core::action::{Action, Outcome};
use ptyd_core::principal::{Principal, Scope, TicketTarget};

/// The route, where a link's ticket is a credential.
pub(crate) const PATH: &str = "/login";

pub(super) async fn open(
    State(rest): State<Rest>,
    Extension(principal): Extension<Principal>,
    headers: HeaderMap,
) -> Result<Response, ProblemResponse> {
    let is_secure = |origin: &HeaderValue| origin.as_bytes().starts_with(b"https:");
    let is_encrypted = headers.get(header::ORIGIN).is_some_and(is_secure);
    record(&rest, &principal).await?;
    let made = rest.logins.open(&principal, is_encrypted)?;
    // The new cookie takes the place of the browser's earlier one.
    rest.logins.close(&headers);
    tracing::info!(principal = principal.name, "a browser has logged in to the page");
    let scope = match principal.scope {
        Scope::Read => api::TokenScope::Read,
        Scope::Write => api::TokenScope::Write,
        Scope::Admin => api::TokenScope::Admin,
    };
    let login = api::Login { key: made.key, expires_in: made.lifetime.as_secs(), principal: principal.name, scope };
    let fields = [(header::CACHE_CONTROL, "no-store".to_owned()), (header::SET_COOKIE, made.set_cookie)];
    Ok((StatusCode::CREATED, fields, Json(login)).into_response())
}

/// The audit log has a line of a ticket for each link and log-in, with its scope, before the answer. The core's own ticket, which that
/// line is about, is used up at once.
pub(super) async fn record(rest: &Rest, principal: &Principal) -> Result<(), ProblemResponse> {
    let may_write = principal.scope >= Scope::Write;
    match rest.act(principal, Action::Ticket { place: TicketTarget::Docs, may_write }).await? {
        Outcome::Ticket(made) => {
            rest.dispatcher.tickets().redeem(&made.ticket);
            Ok(())
        }
        other => Err(unexpected(&other)),
    }
}

pub(super) async fn close(State(rest): State<Rest>, headers: HeaderMap) -> Response {
    (StatusCode::NO_CONTENT, [(header::SET_COOKIE, rest.logins.close(&headers))]).into_response()
}
