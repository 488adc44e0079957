//! HTTP errors: one exhaustive mapping from [`ActionError`] to a code, and one place that writes problem documents.
//!
//! Handlers and layers answer with a [`ProblemResponse`]; [`label`], the outermost layer, gives every request its id
//! and turns the refusal into the document with that id.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use api::{ErrorCode, Problem};
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use tracing::Instrument;

use crate::http::request_body::NotTaken;
use ptyd_core::action::{ActionError, SecretRefusal};

/// The header with the request's id, in both directions.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const VERSION: HeaderName = HeaderName::from_static("ptyd-version");
/// A client's own id is echoed up to this length: longer ones only fill logs.
const REQUEST_ID_CHARS_MAX: usize = 64;

/// Why a request was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProblemResponse {
    pub(crate) code: ErrorCode,
    pub(crate) detail: String,
    pub(crate) field: Option<String>,
}

impl ProblemResponse {
    pub(crate) fn new(code: ErrorCode, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into(), field: None }
    }

    /// A field that does not validate.
    pub(crate) fn field(field: impl Into<String>, problem: impl std::fmt::Display) -> Self {
        let field = field.into();
        Self { code: ErrorCode::InvalidField, detail: format!("{field}: {problem}"), field: Some(field) }
    }
}

impl From<ActionError> for ProblemResponse {
    fn from(error: ActionError) -> Self {
        let detail = error.to_string();
        let (code, field) = match error {
            ActionError::NoSession { .. } => (ErrorCode::SessionNotFound, None),
            ActionError::OtherNode { .. } => (ErrorCode::OtherNode, None),
            ActionError::NoCommand { .. } => (ErrorCode::CommandNotFound, None),
            ActionError::Invalid { field, .. } => (ErrorCode::InvalidField, Some(field.to_owned())),
            ActionError::Busy { .. } => (ErrorCode::SessionBusy, None),
            ActionError::NotReady { .. } => (ErrorCode::SessionNotReady, None),
            ActionError::NothingRuns { .. } | ActionError::InputTooLate { .. } => (ErrorCode::NothingRuns, None),
            ActionError::Ended { .. } => (ErrorCode::SessionEnded, None),
            ActionError::Alive { .. } => (ErrorCode::SessionAlive, None),
            ActionError::Stalled { .. } => (ErrorCode::InputStalled, None),
            ActionError::Driven { .. } => (ErrorCode::SessionDriven, None),
            ActionError::WouldEcho { .. } => (ErrorCode::WouldEcho, Some("secret".to_owned())),
            ActionError::SecretRefused(SecretRefusal::Unknown) => (ErrorCode::RouteNotFound, None),
            ActionError::SecretRefused(SecretRefusal::Answered | SecretRefusal::Over) => (ErrorCode::NothingRuns, None),
            ActionError::Denied { .. } => (ErrorCode::Forbidden, None),
            ActionError::PolicyDenied(_) => (ErrorCode::PolicyDenied, None),
            ActionError::ApprovalNeeded(_) => (ErrorCode::ApprovalNeeded, None),
            ActionError::AlreadyDecided { .. } => (ErrorCode::AlreadyDecided, None),
            ActionError::ShutOut => (ErrorCode::Unauthorized, None),
            ActionError::NoToken { .. } => (ErrorCode::TokenNotFound, None),
            ActionError::Limit { .. } => (ErrorCode::LimitReached, None),
            ActionError::KeyReused { .. } => (ErrorCode::KeyReused, None),
            ActionError::NameTaken { .. } => (ErrorCode::NameTaken, Some("name".to_owned())),
            ActionError::Start { .. } => (ErrorCode::StartFailed, None),
            ActionError::Unreachable { .. } => (ErrorCode::SessionUnreachable, None),
            ActionError::Exhausted { .. } | ActionError::NotRecorded { .. } => (ErrorCode::ResourcesExhausted, None),
            ActionError::Removing { .. } => (ErrorCode::RemovalContinues, None),
            ActionError::Draining => (ErrorCode::ServerDraining, None),
            ActionError::Restarting => (ErrorCode::ServerRestarting, None),
            ActionError::Internal { .. } => (ErrorCode::Internal, None),
        };
        Self { code, detail, field }
    }
}

impl From<NotTaken> for ProblemResponse {
    fn from(why: NotTaken) -> Self {
        let code = match why {
            NotTaken::TooLong(_) | NotTaken::TooMany => ErrorCode::BodyTooLarge,
            NotTaken::Late => ErrorCode::BodyLate,
            NotTaken::Busy => ErrorCode::RateLimited,
            NotTaken::Broken => ErrorCode::MalformedBody,
        };
        Self::new(code, why.to_string())
    }
}

impl IntoResponse for ProblemResponse {
    fn into_response(self) -> Response {
        let mut response = StatusCode::from_u16(self.code.http_status())
            .expect("invariant: every code has a valid status")
            .into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// The outermost layer: every answer has `x-request-id` and `ptyd-version`, and every refusal becomes a problem document.
pub(crate) async fn label<F: Future<Output = Response>>(
    mut request: Request,
    next: impl FnOnce(Request) -> F,
) -> Response {
    let id = request_id(request.headers());
    // A batch names its single operations after it.
    if let Ok(value) = HeaderValue::from_str(&id) {
        request.headers_mut().insert(REQUEST_ID, value);
    }
    // Log lines of the request have the id.
    let span = tracing::info_span!("request", id = %id);
    let mut response = next(request).instrument(span).await;
    if let Some(refusal) = response.extensions_mut().remove::<ProblemResponse>() {
        let code = refusal.code;
        tracing::debug!(request = %id, code = code.as_str(), "refused");
        let problem = Problem::new(code, refusal.detail, refusal.field, id.clone());
        let body = serde_json::to_vec(&problem).expect("invariant: a problem is plain data");
        let headers = response.headers_mut();
        headers.remove(header::CONTENT_LENGTH);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let (Some(seconds), false) = (code.retry_after(), headers.contains_key(header::RETRY_AFTER)) {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if code == ErrorCode::Unauthorized {
            headers.entry(header::WWW_AUTHENTICATE).or_insert(HeaderValue::from_static("Bearer"));
        }
        *response.body_mut() = Body::from(body);
    }
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response.headers_mut().insert(VERSION, HeaderValue::from_static(env!("CARGO_PKG_VERSION")));
    response
}

/// The client's own id if it is short and plain (it goes into logs), else a fresh one.
fn request_id(headers: &HeaderMap) -> String {
    let given = headers.get(REQUEST_ID).and_then(|v| v.to_str().ok()).filter(|id| {
        (1..=REQUEST_ID_CHARS_MAX).contains(&id.len())
            && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
    });
    given.map_or_else(fresh_id, str::to_owned)
}

/// Counted from a random number: unique, and one system call for all requests of this server.
fn fresh_id() -> String {
    static LAST: LazyLock<AtomicU64> = LazyLock::new(|| {
        let mut bytes = [0u8; 8];
        getrandom::fill(&mut bytes).expect("invariant: the kernel gives random bytes");
        AtomicU64::new(u64::from_ne_bytes(bytes))
    });
    format!("r-{:016x}", LAST.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptyd_core::action::{EndReason, PolicyRefusal, Verdict};
    use ptyd_core::ids::SessionId;

    #[test]
    fn an_error_has_its_message_code_and_field() {
        let session = SessionId::parse("s0-aaaaaaaaaa").expect("an id");
        let busy =
            ActionError::Busy { session, with: "command c7 (sleep 60)".into(), command: None, may_be_a_shell: true };
        let words = busy.to_string();
        assert_eq!(
            ProblemResponse::from(busy),
            ProblemResponse { code: ErrorCode::SessionBusy, detail: words, field: None }
        );
        assert_eq!(
            ProblemResponse::from(ActionError::Invalid { field: "cwd", problem: "no such directory".into() }),
            ProblemResponse::field("cwd", "no such directory")
        );
    }

    #[test]
    // promise: audit-1
    fn the_audit_log_has_the_same_codes() {
        let session = || SessionId::parse("s0-aaaaaaaaaa").expect("an id");
        let text = || "x".to_owned();
        let refusal = |verdict| {
            let (policy, rule, why) = (text(), text(), text());
            Box::new(PolicyRefusal { what: "not run", verdict, policy, rule, why, is_advisory: true, approval: None })
        };
        let errors = [
            ActionError::NoSession { id: text(), live: None },
            ActionError::OtherNode { id: text(), node: 2 },
            ActionError::NoCommand { session: session(), id: text() },
            ActionError::Invalid { field: "x", problem: text() },
            ActionError::Busy { session: session(), with: text(), command: None, may_be_a_shell: false },
            ActionError::NotReady { session: session(), why: text() },
            ActionError::NothingRuns { session: session() },
            ActionError::InputTooLate { session: session(), command: "command c1 (less)".to_owned() },
            ActionError::Ended { session: session(), reason: EndReason::DuringRequest },
            ActionError::Alive { session: session() },
            ActionError::Stalled { accepted: 0, offered: 1 },
            ActionError::WouldEcho { session: session() },
            ActionError::SecretRefused(SecretRefusal::Unknown),
            ActionError::SecretRefused(SecretRefusal::Answered),
            ActionError::SecretRefused(SecretRefusal::Over),
            ActionError::Denied { why: text() },
            ActionError::PolicyDenied(refusal(Verdict::Deny)),
            ActionError::ApprovalNeeded(refusal(Verdict::Ask)),
            ActionError::ShutOut,
            ActionError::NoToken { name: text() },
            ActionError::Limit { what: "x", limit: 1, hint: "x" },
            ActionError::KeyReused { key: text() },
            ActionError::Start { why: text() },
            ActionError::Unreachable { session: session(), why: text() },
            ActionError::Exhausted { why: text() },
            ActionError::NotRecorded { why: text() },
            ActionError::Removing { folder: text(), patience: std::time::Duration::ZERO },
            ActionError::Draining,
            ActionError::Restarting,
            ActionError::Internal { why: text() },
        ];
        for error in errors {
            let code = error.code();
            assert_eq!(code, ProblemResponse::from(error).code.as_str());
        }
    }

    #[test]
    fn a_plain_request_id_is_echoed_and_a_strange_one_is_replaced() {
        let with = |id: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(REQUEST_ID, HeaderValue::from_str(id).expect("a header"));
            request_id(&headers)
        };
        assert_eq!(with("build-17.a_b"), "build-17.a_b");
        for strange in ["", "a b", "a\"b", &"x".repeat(65)] {
            let id = with(strange);
            assert!(id.starts_with("r-") && id.len() == 18, "{id}");
        }
    }
}
