//! Gives each request the [`Delivery`] of its answer. The answer is delivered when the server's HTTP has taken its body whole.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use hyper::body::Body as _;
use ptyd_core::delivery::{Delivery, Undelivered};

use crate::http::watched_body::watched;

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
    response.map(|body| watched(body, || undelivered.delivered()))
}
