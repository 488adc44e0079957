//! The REST protocol: one table of routes, and for each word of a path one file that parses into an [`Action`] and
//! renders the [`Outcome`].
//!
//! Nothing is decided in here. The caller is authenticated before a handler runs (`serve/authentication.rs`), every
//! error becomes a problem document in one place ([`crate::http::problem`]), and every limit is in [`ptyd_core::limits`].
//!
//! [`Action`]: ptyd_core::action::Action
//! [`Outcome`]: ptyd_core::action::Outcome

mod batch;
mod body_stream;
mod commands;
mod convert;
mod docs;
mod extract;
mod input;
mod named_actions;
mod openapi;
mod operation;
mod output;
mod output_events;
mod processes;
mod recording;
mod routes;
mod search;
mod server_events;
mod sessions;
#[cfg(test)]
mod test_support;
mod tickets;
mod tokens;

use std::sync::Arc;

use api::ErrorCode;
use axum::http::Method;
use axum::{Json, Router};
use serde_json::Value;

use crate::http::problem::ProblemResponse;
pub(crate) use docs::PAGE as DOCS;
pub use openapi::document;
use ptyd_core::action::{Action, Outcome, PatternShare};
use ptyd_core::dispatch::Dispatcher;
use ptyd_core::principal::Principal;
pub(crate) use routes::routes;

/// The state of every handler.
#[derive(Debug, Clone)]
pub(crate) struct Rest {
    dispatcher: Dispatcher,
    /// `host:port` of the loopback listener, for URLs in answers.
    authority: Arc<str>,
    /// The OpenAPI document. It is made of the table of routes, which holds the handlers that answer with it.
    document: fn() -> &'static Value,
    /// The table as a router without some of its paths, for the handler of a batch, which is in the table.
    router_without: fn(&[&str], Self) -> Router,
}

impl Rest {
    pub(crate) fn new(dispatcher: Dispatcher, authority: &str) -> Self {
        Self { dispatcher, authority: authority.into(), document, router_without }
    }

    /// The caller's share for patterns.
    fn patterns(&self, principal: &Principal) -> Arc<PatternShare> {
        self.dispatcher.patterns(principal)
    }

    async fn act(&self, principal: &Principal, action: Action) -> Result<Outcome, ProblemResponse> {
        self.dispatcher.dispatch(principal, action).await.map_err(ProblemResponse::from)
    }

    /// Performs an action that answers with the session.
    async fn session(
        &self,
        principal: &Principal,
        action: Action,
    ) -> Result<Json<api::TerminalSession>, ProblemResponse> {
        match self.act(principal, action).await? {
            Outcome::Session(view) => Ok(Json(convert::session(*view, &self.authority))),
            other => Err(unexpected(&other)),
        }
    }

    /// Performs an action that answers with a report.
    async fn report(&self, principal: &Principal, action: Action) -> Result<Json<api::WaitAnswer>, ProblemResponse> {
        match self.act(principal, action).await? {
            Outcome::Report(report) => Ok(Json(convert::wait(*report))),
            other => Err(unexpected(&other)),
        }
    }
}

/// The table as a router.
pub(crate) fn router(rest: Rest) -> Router {
    router_without(&[], rest)
}

fn router_without(left_out: &[&str], rest: Rest) -> Router {
    let served = routes().into_iter().filter(|route| !left_out.contains(&route.path));
    served.fold(Router::new(), |router, route| router.route(route.path, route.handler)).with_state(rest)
}

/// A path without a route.
pub(crate) async fn no_route(uri: axum::http::Uri) -> ProblemResponse {
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

/// An outcome of another kind than the action promises: a bug, and never a panic.
fn unexpected(outcome: &Outcome) -> ProblemResponse {
    ProblemResponse::new(ErrorCode::Internal, format!("the action was answered with {}", outcome.kind()))
}
