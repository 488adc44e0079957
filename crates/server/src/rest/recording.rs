//! `…/recording`: the session as an asciicast, read from its journal while it is sent.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};

use super::body_stream;
use super::extract::{Params, Session};
use super::state::{Rest, unexpected};
use crate::http::problem::ProblemResponse;
use ptyd_core::action::{Action, CastVersion, Outcome};
use ptyd_core::principal::Principal;

pub(super) async fn recording(
    State(rest): State<Rest>,
    Extension(principal): Extension<Principal>,
    Session(session): Session,
    Params(query): Params<api::RecordingQuery>,
) -> Result<Response, ProblemResponse> {
    let version = match query.version {
        None | Some(2) => CastVersion::V2,
        Some(3) => CastVersion::V3,
        Some(other) => return Err(ProblemResponse::field("version", format!("{other} is neither 2 nor 3"))),
    };
    let pages = match rest.act(&principal, Action::Recording(session, version)).await? {
        Outcome::Recording(recording) => recording.take(),
        other => return Err(unexpected(&other)),
    };
    let body = pages.map_or_else(Body::empty, |pages| {
        let lane = rest.dispatcher.lane(&principal);
        body_stream::body(pages, move |mut pages| {
            let lane = Arc::clone(&lane);
            async move { Ok(lane.work(usize::MAX, || pages.next()).await?.map(|page| (page.into(), pages))) }
        })
    });
    Ok(([(header::CONTENT_TYPE, "application/x-asciicast")], body).into_response())
}
