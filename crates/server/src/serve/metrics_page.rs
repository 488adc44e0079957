//! `GET /metrics`: the counters, with what is looked up for each answer. Any token may read them.

use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use tracing::Instrument;

use crate::traces;
use crate::ws::SocketCount;
use ptyd_core::dispatch::Dispatcher;
use ptyd_core::metrics::Metrics;

/// The route.
pub(super) const PATH: &str = "/metrics";
/// The content type.
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The state of the route.
#[derive(Debug, Clone)]
pub(super) struct MetricsPage {
    pub(super) dispatcher: Dispatcher,
    pub(super) visits: SocketCount,
}

/// The route's handler.
pub(super) async fn show(State(page): State<MetricsPage>) -> impl IntoResponse {
    let metrics = page.dispatcher.metrics();
    metrics.set_sessions(&page.dispatcher.counts().await);
    metrics.set_build(env!("CARGO_PKG_VERSION"));
    metrics.set_approvals(page.dispatcher.waiting_approvals());
    metrics.set_sockets(page.visits.count());
    // An unknown number is left as it was.
    if let Some(free) = page.dispatcher.free_bytes().await {
        metrics.set_free(free);
    }
    metrics.look_at_process();
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], metrics.text())
}

/// The layer that measures every answer by its route template and status class.
pub(super) async fn measure<F: Future<Output = Response>>(
    metrics: &Metrics,
    request: Request,
    next: impl FnOnce(Request) -> F,
) -> Response {
    let route = request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str).to_owned();
    let begun = Instant::now();
    let span = traces::request(request.method(), &route, request.headers());
    let response = next(request).instrument(span.clone()).await;
    traces::answered(&span, response.status());
    let class = format!("{}xx", response.status().as_u16() / 100);
    metrics.answered(route, class, begun.elapsed());
    response
}
