//! Response bodies that end when their reader's token is revoked, or its browser logs out: a stream may last for hours after
//! authentication.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use hyper::body::{Frame, SizeHint};

type ShutOut = Pin<Box<dyn Future<Output = ()> + Send>>;

struct RevocableBody {
    body: Body,
    shut_out: ShutOut,
}

/// The body, until its reader is shut out; then it fails, so that the reader does not take it for complete.
pub(crate) fn when(shut_out: impl Future<Output = ()> + Send + 'static, body: Body) -> Body {
    Body::new(RevocableBody { body, shut_out: Box::pin(shut_out) })
}

impl hyper::body::Body for RevocableBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        if this.shut_out.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Some(Err(axum::Error::new(
                "the token was revoked or has expired, or the browser was logged out",
            ))));
        }
        Pin::new(&mut this.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::to_bytes;
    use hyper::body::Body as _;

    #[tokio::test]
    async fn a_body_is_complete_or_ends_when_its_reader_loses_access() {
        let whole = when(std::future::pending(), Body::from("all"));
        assert_eq!(whole.size_hint().exact(), Some(3));
        assert_eq!(to_bytes(whole, 10).await.ok(), Some(Bytes::from("all")));
        assert!(to_bytes(when(std::future::ready(()), Body::from("all")), 10).await.is_err());
    }
}
