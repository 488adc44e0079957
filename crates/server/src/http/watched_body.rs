//! A body that says when it was read to its end. If it is dropped before, it drops what it would have said.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};

struct WatchedBody<F> {
    inner: Body,
    at_end: Option<F>,
}

/// The same body; `at_end` is called once, at its end.
pub(crate) fn watched(inner: Body, at_end: impl FnOnce() + Unpin + Send + 'static) -> Body {
    Body::new(WatchedBody { inner, at_end: Some(at_end) })
}

impl<F: FnOnce() + Unpin> HttpBody for WatchedBody<F> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(context));
        // Many readers do not ask again behind the last frame.
        let is_end = frame.as_ref().is_none_or(|frame| frame.is_ok() && self.inner.is_end_stream());
        if is_end && let Some(at_end) = self.at_end.take() {
            at_end();
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use http_body_util::BodyExt as _;

    use super::*;

    #[tokio::test]
    async fn the_last_frame_is_the_end_and_a_dropped_body_says_nothing() {
        let was_read = Arc::new(AtomicBool::new(false));
        let body = || {
            let noted = Arc::clone(&was_read);
            watched(Body::from("x"), move || noted.store(true, Ordering::Relaxed))
        };
        drop(body());
        assert!(!was_read.load(Ordering::Relaxed));
        let frame = body().frame().await.expect("one frame").expect("no error");
        assert_eq!((frame.into_data().ok().as_deref(), was_read.load(Ordering::Relaxed)), (Some(&b"x"[..]), true));
    }
}
