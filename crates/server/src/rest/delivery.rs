//! Gives each request the [`Delivery`] of its answer. The answer is delivered when the server's HTTP has taken its body whole.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use ptyd_core::delivery::{Delivery, Undelivered};

/// Adds the delivery to the request, and awaits it with the body of the response.
pub(super) async fn of_answer(mut request: Request, next: Next) -> Response {
    let delivery = Delivery::default();
    let undelivered = Undelivered::new(delivery.clone());
    request.extensions_mut().insert(delivery);
    let response = next.run(request).await;
    if !response.status().is_success() {
        // An error shows nothing.
        return response;
    }
    if response.body().is_end_stream() {
        undelivered.delivered();
        return response;
    }
    response.map(|body| Body::new(Answer { body, undelivered: Some(undelivered) }))
}

/// The body of a response until it is delivered.
struct Answer {
    body: Body,
    undelivered: Option<Undelivered>,
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        let is_whole = frame.is_none() || matches!(frame, Some(Ok(_))) && self.body.is_end_stream();
        if is_whole && let Some(undelivered) = self.undelivered.take() {
            undelivered.delivered();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
