//! The REST protocol: one table of routes, and for each word of a path one file that parses into an [`Action`] and
//! renders the [`Outcome`].
//!
//! Nothing is decided in here. The caller is authenticated before a handler runs (`serve/authentication`), every
//! error becomes a problem document in one place ([`crate::http::problem`]), and every limit is in [`ptyd_core::limits`].
//!
//! [`Action`]: ptyd_core::action::Action
//! [`Outcome`]: ptyd_core::action::Outcome

mod actions;
mod approvals;
mod audit;
mod batch;
mod body_stream;
mod capabilities;
mod commands;
mod delivery;
mod docs;
mod drain;
mod events_sse;
mod extract;
mod input;
mod logins;
mod openapi;
mod operation;
mod output;
mod output_sse;
mod processes;
mod recording;
mod routes;
mod search;
mod secrets;
mod sessions;
mod state;
mod take_over;
#[cfg(test)]
mod test_support;
mod tickets;
mod tokens;
mod unrouted;

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn;

use crate::page::logins::Logins;
pub(crate) use docs::PAGE as DOCS;
pub(crate) use logins::PATH as LOGIN;
pub use openapi::document;
use ptyd_core::dispatch::Dispatcher;
#[cfg(test)]
pub(crate) use routes::Route;
pub(crate) use routes::routes;
use state::Rest;
pub(crate) use unrouted::{no_method, no_route};

/// The table as a router.
pub(crate) fn router(dispatcher: Dispatcher, logins: Arc<Logins>, base_url: &str) -> Router {
    router_without(&[], Rest { dispatcher, logins, base_url: base_url.into(), document, router_without })
}

fn router_without(left_out: &[&str], rest: Rest) -> Router {
    let served = routes().into_iter().filter(|route| !left_out.contains(&route.path));
    let router = served.fold(Router::new(), |router, route| router.route(route.path, route.handler));
    router.layer(from_fn(delivery::of_answer)).with_state(rest)
}
