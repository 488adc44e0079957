//! The frame of the pages for people, and the text of others in it.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use ptyd_core::action::{ActionError, Outcome};
use terminal::quote;

use crate::http::html_page::HtmlPage;
use crate::http::problem::ProblemResponse;

/// The beginning of the path.
pub(super) const PREFIX: &str = "/ask/";
const FRAME: &str = include_str!("page.html");

pub(super) fn status_of(problem: &ProblemResponse) -> StatusCode {
    StatusCode::from_u16(problem.code.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

pub(super) fn unexpected(outcome: &Outcome) -> ActionError {
    ActionError::Internal { why: format!("the action was answered with {}", outcome.kind()) }
}

pub(super) fn page(status: StatusCode, title: &str, content: &str) -> Response {
    // Without a referrer a browser would send no origin with the form.
    let (form_action, referrer_policy) = ("self", "same-origin");
    (status, HtmlPage { frame: FRAME, title, content, form_action, referrer_policy }.response()).into_response()
}

/// Foreign text in one line, with its control and invisible characters written out.
pub(super) fn code(text: &str) -> String {
    format!("<code>{}</code>", escaped(text))
}

pub(super) fn escaped(text: &str) -> String {
    quote::line(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
