//! `…/take`: takes the keyboard of a session, and returns it.

use axum::Json;
use axum::extract::State;

use super::extract::{self, Body, Params, Reader, Session};
use super::state::{Rest, unexpected};
use crate::http::convert;
use crate::http::problem::ProblemResponse;
use ptyd_core::action::{Action, Outcome, Take};
use ptyd_core::limits;

pub(super) async fn take(
    State(rest): State<Rest>,
    Reader(principal): Reader,
    Session(session): Session,
    Body(body): Body<api::TakeRequest>,
) -> Result<Json<api::TerminalSession>, ProblemResponse> {
    let default = if body.hold { limits::TAKE_OVER_MAX } else { limits::TAKE_OVER };
    let lasts = extract::seconds("for", body.lasts, default)?;
    let take = Take { session: session.clone(), lasts, forces: body.force, is_held: body.hold };
    match rest.act(&principal, Action::Take(take)).await? {
        Outcome::Taken(taken) => match taken.hold {
            // Dropped with this future, whose connection it is.
            Some(mut hold) => {
                hold.over().await;
                rest.session(&principal, Action::Show(session)).await
            }
            None => Ok(Json(convert::session(taken.session, &rest.base_url))),
        },
        other => Err(unexpected(&other)),
    }
}

pub(super) async fn give_back(
    State(rest): State<Rest>,
    Reader(principal): Reader,
    Session(session): Session,
    Params(query): Params<api::ReturnQuery>,
) -> Result<Json<api::TerminalSession>, ProblemResponse> {
    rest.session(&principal, Action::GiveBack { session, forces: query.force }).await
}
