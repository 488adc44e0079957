//! `/secrets`: lists, sets and removes named secrets, for admins only. No answer has a value.

use axum::Json;
use axum::extract::{Extension, Path, State};

use super::extract::Body;
use super::state::{Rest, unexpected};
use crate::http::convert;
use crate::http::problem::ProblemResponse;
use ptyd_core::action::{Action, NamedSecretView, Outcome, SecretValue};
use ptyd_core::limits;
use ptyd_core::principal::Principal;

pub(super) async fn list(
    State(rest): State<Rest>,
    Extension(principal): Extension<Principal>,
) -> Result<Json<api::SecretList>, ProblemResponse> {
    match rest.act(&principal, Action::NamedSecrets).await? {
        Outcome::NamedSecrets(views) => Ok(Json(api::SecretList { secrets: views.into_iter().map(shown).collect() })),
        other => Err(unexpected(&other)),
    }
}

pub(super) async fn set(
    State(rest): State<Rest>,
    Extension(principal): Extension<Principal>,
    name: Option<Path<String>>,
    Body(body): Body<api::SecretRequest>,
) -> Result<Json<api::NamedSecret>, ProblemResponse> {
    one(&rest, &principal, Action::SetSecret { name: named(name), value: SecretValue(body.value) }).await
}

pub(super) async fn remove(
    State(rest): State<Rest>,
    Extension(principal): Extension<Principal>,
    name: Option<Path<String>>,
) -> Result<Json<api::NamedSecret>, ProblemResponse> {
    one(&rest, &principal, Action::RemoveSecret { name: named(name) }).await
}

/// A text that is not UTF-8 is not a secret's name, and neither is a longer one.
fn named(name: Option<Path<String>>) -> String {
    name.map(|Path(name)| name.chars().take(limits::SECRET_NAME_CHARS_MAX + 1).collect()).unwrap_or_default()
}

async fn one(rest: &Rest, principal: &Principal, action: Action) -> Result<Json<api::NamedSecret>, ProblemResponse> {
    match rest.act(principal, action).await? {
        Outcome::NamedSecret(view) => Ok(Json(shown(view))),
        other => Err(unexpected(&other)),
    }
}

fn shown(view: NamedSecretView) -> api::NamedSecret {
    api::NamedSecret { name: view.name, set_at: convert::time(view.set_at), profiles: view.profiles }
}
