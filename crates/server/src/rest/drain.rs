//! `/drain`: whether the server takes new sessions, for admins.

use std::time::Duration;

use axum::Json;
use axum::extract::{Extension, State};

use super::extract::{self, Params};
use super::state::{Rest, unexpected};
use crate::http::convert;
use crate::http::problem::ProblemResponse;
use ptyd_core::action::{Action, Outcome, ReadDrain};
use ptyd_core::principal::Principal;

pub(super) async fn show(
    State(rest): State<Rest>,
    Extension(principal): Extension<Principal>,
    Params(query): Params<api::DrainQuery>,
) -> Result<Json<api::Drain>, ProblemResponse> {
    let wait = query.wait_ms.map(|ms| extract::millis("waitMs", ms)).transpose()?.unwrap_or(Duration::ZERO);
    let sessions = query.sessions.map(|count| usize::try_from(count).unwrap_or(usize::MAX));
    answer(&rest, &principal, Action::Drain(ReadDrain { sessions, wait })).await
}

pub(super) async fn begin(
    State(rest): State<Rest>,
    Extension(principal): Extension<Principal>,
) -> Result<Json<api::Drain>, ProblemResponse> {
    answer(&rest, &principal, Action::SetDrain(true)).await
}

pub(super) async fn end(
    State(rest): State<Rest>,
    Extension(principal): Extension<Principal>,
) -> Result<Json<api::Drain>, ProblemResponse> {
    answer(&rest, &principal, Action::SetDrain(false)).await
}

async fn answer(rest: &Rest, principal: &Principal, action: Action) -> Result<Json<api::Drain>, ProblemResponse> {
    match rest.act(principal, action).await? {
        Outcome::Drain(view) => Ok(Json(api::Drain {
            node: rest.dispatcher.node(),
            draining: view.since.is_some(),
            since: view.since.map(convert::time),
            sessions: view.sessions as u64,
        })),
        other => Err(unexpected(&other)),
    }
}
