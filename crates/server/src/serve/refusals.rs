//! The audit of the authentication: the way on which a request came, and the requests that were refused.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use api::ErrorCode;
use axum::http::{HeaderMap, Method, Uri, header};

use super::rate_limit::{Buckets, Rate};
use crate::http::connections::Transport;
use crate::{mcp, secret_page};
use ptyd_core::audit::{AuditLog, Refusal};
use ptyd_core::limits::{AUDIT_REFUSALS_BURST, AUDIT_REFUSALS_PER_SECOND};
use ptyd_core::principal::{Door, Origin, PeerSession, TransportKind, UnixPeer, client_name};

/// The longest path in a line.
const PATH_CHARS_MAX: usize = 200;

/// Records refused requests, so many a second: nobody without a token can fill the audit log.
#[derive(Debug)]
pub(super) struct RefusalRecorder {
    audit: Arc<AuditLog>,
    lines: Buckets<()>,
    /// How many have no line since the last one.
    unrecorded: AtomicU64,
}

impl Default for RefusalRecorder {
    fn default() -> Self {
        Self::new(Arc::default())
    }
}

impl RefusalRecorder {
    pub(super) fn new(audit: Arc<AuditLog>) -> Self {
        let lines = Buckets::new(Rate::per_second(AUDIT_REFUSALS_PER_SECOND, AUDIT_REFUSALS_BURST));
        Self { audit, lines, unrecorded: AtomicU64::new(0) }
    }

    /// Writes the line of a refused request before its answer.
    pub(super) async fn record(&self, transport: Option<&Transport>, method: &Method, uri: &Uri, code: ErrorCode) {
        if self.lines.take((), Instant::now()).is_err() {
            self.unrecorded.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let (kind, peer) = match transport {
            Some(Transport::Tcp { peer, .. }) => {
                (Some(TransportKind::Tcp), peer.map(|peer: SocketAddr| peer.to_string()))
            }
            Some(Transport::Unix { peer }) => {
                (Some(TransportKind::Unix), peer.as_ref().map(|UnixPeer { uid, .. }| format!("uid {uid}")))
            }
            None => (None, None),
        };
        let refusal = Refusal {
            transport: kind.map_or("unknown", TransportKind::name),
            peer,
            // A method of the client's own may be of any length.
            method: method.as_str().chars().take(PATH_CHARS_MAX).collect(),
            path: shown_path(uri.path()),
            code: code.as_str(),
            unrecorded: self.unrecorded.swap(0, Ordering::Relaxed),
        };
        self.audit.refused(&refusal).await;
    }
}

/// The path for a line: the name of a request for a secret admits to its page, and no line has it.
fn shown_path(path: &str) -> String {
    if secret_page::is_here(path) {
        return "/ask/{name}".to_owned();
    }
    path.chars().take(PATH_CHARS_MAX).collect()
}

/// The way on which an admitted request came.
pub(super) fn origin(transport: Option<&Transport>, uri: &Uri, headers: &HeaderMap) -> Origin {
    let path = uri.path();
    let door = if path == mcp::HTTP_PATH || path == mcp::stdio_upgrade::PATH {
        Door::Mcp
    } else if secret_page::is_here(path) {
        Door::Page
    } else if path.ends_with("/socket") {
        Door::WebSocket
    } else {
        Door::Rest
    };
    let (transport, from_session) = match transport {
        Some(Transport::Tcp { .. }) => (Some(TransportKind::Tcp), None),
        Some(Transport::Unix { peer }) => {
            let session = peer.as_ref().and_then(|peer| match &peer.session {
                PeerSession::Of { session, .. } => Some(session.clone()),
                PeerSession::None | PeerSession::Unknown => None,
            });
            (Some(TransportKind::Unix), session)
        }
        None => (None, None),
    };
    // Its first product, without the version (RFC 9110, 10.1.5).
    let agent = headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok()?.split(['/', ' ']).next());
    Origin { door, transport, from_session, is_users_process: false, client_name: agent.and_then(client_name) }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    // promise: audit-4
    fn a_line_has_a_bounded_path_and_no_name_of_a_request_for_a_secret() {
        let long = format!("/{}", "x".repeat(1_000));
        assert_eq!(["/ask/AbC", "/terminals", &long].map(|path| shown_path(path).len()), [11, 10, PATH_CHARS_MAX]);
        assert!(!shown_path("/ask/AbC").contains("AbC"));
    }

    #[test]
    // promise: audit-1
    fn the_path_determines_the_door_and_the_process_the_session() {
        let door = |path: &str| origin(None, &path.parse().expect("a path"), &HeaderMap::new()).door;
        let all = ["/mcp", "/mcp/stdio", "/terminals/s0-aaaaaaaaaa/socket", "/ask/AbC", "/terminals"];
        assert_eq!(all.map(door), [Door::Mcp, Door::Mcp, Door::WebSocket, Door::Page, Door::Rest]);
        let session = ptyd_core::ids::SessionId::parse("s0-aaaaaaaaaa").expect("an id");
        let of = PeerSession::Of { session: session.clone(), owner: "ann".to_owned() };
        let inside = Transport::Unix { peer: Some(UnixPeer { uid: 0, session: of }) };
        let agent = HeaderMap::from_iter([(header::USER_AGENT, HeaderValue::from_static("curl/8.1 (x)"))]);
        let came = origin(Some(&inside), &"/terminals".parse().expect("a path"), &agent);
        assert_eq!(came.client_name.as_deref(), Some("curl"));
        assert_eq!((came.transport, came.from_session), (Some(TransportKind::Unix), Some(session)));
    }
}
