//! `POST /batch`: several operations in one request, performed in order, each answered with its own status.
//!
//! An operation takes the same path as a request of its own, behind the authentication of the batch. Errors of the
//! batch itself are reported before any operation is performed.

use api::ErrorCode;
use axum::Json;
use axum::body::{Body as HttpBody, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, Uri, header};
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use tower::ServiceExt;

use super::extract::{Body, LongBody, Reader};
use super::state::Rest;
use super::unrouted;
use crate::http::problem::{ProblemResponse, REQUEST_ID, label};
use ptyd_core::limits;
use ptyd_core::principal::Principal;

pub(super) async fn batch(
    State(rest): State<Rest>,
    Reader(principal): Reader,
    headers: HeaderMap,
    Body(body): LongBody<api::BatchRequest>,
) -> Result<Json<api::BatchAnswer>, ProblemResponse> {
    let count = body.operations.len();
    if !(1..=limits::BATCH_OPERATIONS_MAX).contains(&count) {
        let problem = format!("{count} is not between 1 and {}", limits::BATCH_OPERATIONS_MAX);
        return Err(ProblemResponse::field("operations", problem));
    }
    let batch_id = headers.get(REQUEST_ID).and_then(|id| id.to_str().ok()).unwrap_or_default();
    let requests = body.operations.into_iter().enumerate().map(|(i, one)| request(i, one, &principal, batch_id));
    let requests: Vec<Request> = requests.collect::<Result<_, _>>()?;
    let router = (rest.router_without)(&LEFT_OUT, rest)
        .fallback(no_route)
        .method_not_allowed_fallback(unrouted::no_method)
        .layer(from_fn(async |request: Request, next: Next| label(request, |request| next.run(request)).await));
    let (mut responses, mut bytes) = (Vec::with_capacity(count), 0);
    for (i, request) in requests.into_iter().enumerate() {
        let id = format!("{batch_id}.{i}");
        if bytes > limits::BATCH_ANSWER_BYTES_MAX {
            responses.push(refused("not done: earlier answers already fill this batch; send it again", &id));
            continue;
        }
        let response = match router.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        responses.push(answer(response, &mut bytes, &id).await);
    }
    Ok(Json(api::BatchAnswer { responses }))
}

/// This route itself, which a batch must not contain.
pub(super) const PATH: &str = "/batch";
/// The paths that are not allowed in a batch; an endless stream would never yield an answer.
const LEFT_OUT: [&str; 2] = [PATH, super::events_sse::PATH];

async fn no_route(uri: Uri) -> ProblemResponse {
    if LEFT_OUT.contains(&uri.path()) {
        return ProblemResponse::new(ErrorCode::RouteNotFound, format!("{} is not allowed in a batch", uri.path()));
    }
    unrouted::no_route(uri).await
}

fn request(i: usize, one: api::Operation, principal: &Principal, batch_id: &str) -> Result<Request, ProblemResponse> {
    let at = |field: &str| format!("operations[{i}].{field}");
    let method = match one.method {
        api::Method::Get => Method::GET,
        api::Method::Post => Method::POST,
        api::Method::Delete => Method::DELETE,
    };
    let uri: Uri = one.path.parse().map_err(|_| ProblemResponse::field(at("path"), "is not a path"))?;
    if uri.scheme().is_some() || !uri.path().starts_with('/') {
        return Err(ProblemResponse::field(at("path"), "must begin with a slash"));
    }
    if uri.path() == PATH {
        return Err(ProblemResponse::field(at("path"), "a batch cannot hold another one"));
    }
    let body = one.body.map_or_else(HttpBody::empty, |body| HttpBody::from(body.to_string()));
    let mut request = Request::builder().method(method).uri(uri);
    if let Some(key) = one.idempotency_key {
        request = request.header("idempotency-key", key);
    }
    let request = request.header(REQUEST_ID, format!("{batch_id}.{i}"));
    let request = request.extension(principal.clone()).body(body);
    request.map_err(|_| ProblemResponse::field(at("idempotencyKey"), "must be visible ASCII characters"))
}

async fn answer(response: Response, bytes: &mut usize, id: &str) -> api::OperationAnswer {
    let status = response.status().as_u16();
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let (is_json, is_text) = (kind.ends_with("json"), kind.starts_with("text/"));
    let Ok(body) = to_bytes(response.into_body(), limits::BATCH_ANSWER_BYTES_MAX).await else {
        *bytes += limits::BATCH_ANSWER_BYTES_MAX;
        return refused("done, but its answer is larger than a batch may return; request it on its own", id);
    };
    *bytes += body.len();
    let body = match is_json.then(|| serde_json::from_slice(&body)) {
        Some(Ok(json)) => Some(json),
        Some(Err(_)) | None if body.is_empty() => None,
        Some(Err(_)) | None if is_text => Some(String::from_utf8_lossy(&body).into_owned().into()),
        Some(Err(_)) | None => Some(crate::http::convert::base64(&body).into()),
    };
    api::OperationAnswer { status, body }
}

fn refused(why: &str, id: &str) -> api::OperationAnswer {
    let code = ErrorCode::LimitReached;
    let problem = api::Problem::new(code, why.to_owned(), None, id.to_owned());
    api::OperationAnswer { status: code.http_status(), body: serde_json::to_value(problem).ok() }
}
