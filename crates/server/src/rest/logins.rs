//! `POST /login` and `DELETE /login`: a browser's log-in to the page.

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::state::{Rest, unexpected};
use crate::http::problem::ProblemResponse;
use ptyd_core::action::{Action, LogInStep, Outcome};
use ptyd_core::principal::{Principal, Scope};

/// The route, where a link's ticket is a credential.
pub(crate) const PATH: &str = "/login";

pub(super) async fn open(
    State(rest): State<Rest>,
    Extension(principal): Extension<Principal>,
    headers: HeaderMap,
) -> Result<Response, ProblemResponse> {
    let is_secure = |origin: &HeaderValue| origin.as_bytes().starts_with(b"https:");
    let is_encrypted = headers.get(header::ORIGIN).is_some_and(is_secure);
    record(&rest, &principal, LogInStep::In).await?;
    let made = rest.logins.open(&principal, is_encrypted)?;
    // The new cookie takes the place of the browser's earlier one.
    end(&rest, &headers).await?;
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

/// The audit log has a line of each link and log-in before the answer, and of each end that a browser asks for.
pub(super) async fn record(rest: &Rest, principal: &Principal, step: LogInStep) -> Result<(), ProblemResponse> {
    match rest.act(principal, Action::LogIn(step)).await? {
        Outcome::Recorded => Ok(()),
        other => Err(unexpected(&other)),
    }
}

/// Ends the log-in of a request, if it has one; the value of `Set-Cookie` that makes its browser forget it.
async fn end(rest: &Rest, headers: &HeaderMap) -> Result<String, ProblemResponse> {
    if let Some(Some(principal)) = rest.logins.of(headers) {
        record(rest, &principal, LogInStep::Out).await?;
    }
    Ok(rest.logins.close(headers))
}

pub(super) async fn close(State(rest): State<Rest>, headers: HeaderMap) -> Result<Response, ProblemResponse> {
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, end(&rest, &headers).await?)]).into_response())
}
