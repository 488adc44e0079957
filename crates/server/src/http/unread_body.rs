//! Adds `connection: close` to an answer whose request body was not read, for example of a refused request: the rest of
//! the body would be parsed as the next request. HTTP/1.1 requires the header (RFC 9112, 9.6); without it a client
//! sends its next request into a connection that closes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use hyper::body::Body as _;

use super::watched_body::watched;

/// Adds the header if the body was not read.
pub(crate) async fn say<F: Future<Output = Response>>(request: Request, next: impl FnOnce(Request) -> F) -> Response {
    if request.body().is_end_stream() {
        return next(request).await;
    }
    let was_read = Arc::new(AtomicBool::new(false));
    let noted = Arc::clone(&was_read);
    let note = move || noted.store(true, Ordering::Relaxed);
    let mut response = next(request.map(|body| watched(body, note))).await;
    if !was_read.load(Ordering::Relaxed) {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
