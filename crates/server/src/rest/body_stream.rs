//! Response bodies that are produced while they are sent: a part is made when the one before was taken, so a slow
//! client costs one part.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use hyper::body::Frame;

/// The result of making a part: the part and the state for the next one, or the end.
pub(super) type Made<S> = io::Result<Option<(Bytes, S)>>;

type Making<S> = Pin<Box<dyn Future<Output = Made<S>> + Send>>;

struct Parts<S, M> {
    make: M,
    rest: Option<S>,
    making: Option<Making<S>>,
}

/// A body whose parts are made one after the other. An error aborts it, so that the client does not take it for
/// complete.
pub(super) fn body<S, M, F>(state: S, mut make: M) -> Body
where
    S: Send + Unpin + 'static,
    M: FnMut(S) -> F + Send + Unpin + 'static,
    F: Future<Output = Made<S>> + Send + 'static,
{
    let make = move |state| -> Making<S> { Box::pin(make(state)) };
    Body::new(Parts { make, rest: Some(state), making: None })
}

/// A response of server-sent events (the HTML standard, §9.2), made one after the other until there are no more.
pub(super) fn of_events<S, M, F>(state: S, make: M) -> Response
where
    S: Send + Unpin + 'static,
    M: FnMut(S) -> F + Send + Unpin + 'static,
    F: Future<Output = Made<S>> + Send + 'static,
{
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (headers, body(state, make)).into_response()
}

impl<S: Unpin, M: FnMut(S) -> Making<S> + Unpin> hyper::body::Body for Parts<S, M> {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let this = self.get_mut();
        if let Some(state) = this.rest.take() {
            this.making = Some((this.make)(state));
        }
        let Some(making) = &mut this.making else { return Poll::Ready(None) };
        let Poll::Ready(made) = making.as_mut().poll(cx) else { return Poll::Pending };
        this.making = None;
        match made {
            Ok(Some((part, rest))) => {
                this.rest = Some(rest);
                Poll::Ready(Some(Ok(Frame::data(part))))
            }
            Ok(None) => Poll::Ready(None),
            Err(error) => Poll::Ready(Some(Err(error))),
        }
    }
}
