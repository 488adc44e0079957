//! The answers to requests without a route, on their own and in a batch.

use api::ErrorCode;
use axum::http::{Method, Uri};

use crate::http::problem::ProblemResponse;

/// A path without a route.
pub(crate) async fn no_route(uri: Uri) -> ProblemResponse {
    let path: String = uri.path().chars().take(200).collect();
    ProblemResponse::new(ErrorCode::RouteNotFound, format!("there is no {path}; sessions are under /terminals"))
}

/// A path without this method.
pub(crate) async fn no_method(method: Method) -> ProblemResponse {
    ProblemResponse::new(
        ErrorCode::MethodNotAllowed,
        format!("{method} is not allowed for this path; see the Allow header"),
    )
}
