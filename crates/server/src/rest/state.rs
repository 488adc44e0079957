//! The state of every handler, and how a handler performs an action.

use std::sync::Arc;

use api::ErrorCode;
use axum::{Json, Router};
use serde_json::Value;

use crate::http::convert;
use crate::http::problem::ProblemResponse;
use crate::page::logins::Logins;
use ptyd_core::action::{Action, Boxed, Outcome, PatternShare};
use ptyd_core::dispatch::Dispatcher;
use ptyd_core::principal::Principal;

/// The state of every handler.
#[derive(Debug, Clone)]
pub(super) struct Rest {
    pub(super) dispatcher: Dispatcher,
    /// The log-ins of browsers.
    pub(super) logins: Arc<Logins>,
    /// `host:port` of the loopback listener, for URLs in answers.
    pub(super) base_url: Arc<str>,
    /// The OpenAPI document. It is made of the table of routes, which holds the handlers that answer with it.
    pub(super) document: fn() -> &'static Value,
    /// The table as a router without some of its paths, for the handler of a batch, which is in the table.
    pub(super) router_without: fn(&[&str], Self) -> Router,
}

impl Rest {
    /// The caller's share for patterns.
    pub(super) fn patterns(&self, principal: &Principal) -> Arc<PatternShare> {
        self.dispatcher.patterns(principal)
    }

    /// Performs an action. Boxed, because axum names the whole type of each handler's future again and again: the compiler
    /// took a minute for it.
    pub(super) fn act<'a>(
        &'a self,
        principal: &'a Principal,
        action: Action,
    ) -> Boxed<'a, Result<Outcome, ProblemResponse>> {
        Box::pin(async move { self.dispatcher.dispatch(principal, action).await.map_err(ProblemResponse::from) })
    }

    /// Performs an action that answers with the session.
    pub(super) async fn session(
        &self,
        principal: &Principal,
        action: Action,
    ) -> Result<Json<api::TerminalSession>, ProblemResponse> {
        match self.act(principal, action).await? {
            Outcome::Session(view) | Outcome::Signalled(view, _) => Ok(Json(convert::session(*view, &self.base_url))),
            other => Err(unexpected(&other)),
        }
    }

    /// Performs an action that answers with a report.
    pub(super) async fn report(
        &self,
        principal: &Principal,
        action: Action,
    ) -> Result<Json<api::WaitAnswer>, ProblemResponse> {
        match self.act(principal, action).await? {
            Outcome::Report(report) => Ok(Json(convert::wait(*report))),
            other => Err(unexpected(&other)),
        }
    }
}

/// An outcome of another kind than the action promises: a bug, and never a panic.
pub(super) fn unexpected(outcome: &Outcome) -> ProblemResponse {
    ProblemResponse::new(ErrorCode::Internal, format!("the action was answered with {}", outcome.kind()))
}
