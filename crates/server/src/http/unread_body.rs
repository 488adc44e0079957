//! Adds `connection: close` to an answer whose request body was not read, for example of a refused request: the rest of
//! the body would be parsed as the next request. HTTP/1.1 requires the header (RFC 9112, 9.6); without it a client
//! sends its next request into a connection that closes.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};

/// Adds the header if the body was not read.
pub(crate) async fn say<F: Future<Output = Response>>(request: Request, next: impl FnOnce(Request) -> F) -> Response {
    if request.body().is_end_stream() {
        return next(request).await;
    }
    let was_read = Arc::new(AtomicBool::new(false));
    let watched = |inner| Body::new(UnreadBody { inner, was_read: Arc::clone(&was_read) });
    let mut response = next(request.map(watched)).await;
    if !was_read.load(Ordering::Relaxed) {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// A body that records whether it was read to its end.
struct UnreadBody {
    inner: Body,
    was_read: Arc<AtomicBool>,
}

impl HttpBody for UnreadBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(context));
        if frame.is_none() || self.inner.is_end_stream() {
            self.was_read.store(true, Ordering::Relaxed);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
