//! `/tokens`: creates, lists and revokes named tokens, for admins only.

use std::time::Duration;

use axum::Json;
use axum::extract::{Extension, Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::extract::Body;
use super::state::{Rest, unexpected};
use crate::http::convert;
use crate::http::problem::ProblemResponse;
use ptyd_core::action::{Action, MakeToken, Outcome, TokenView};
use ptyd_core::limits;
use ptyd_core::principal::{Principal, Scope};
use ptyd_core::token_bounds::{TokenBounds, TokenSecret};

pub(super) async fn create(
    State(rest): State<Rest>,
    Extension(principal): Extension<Principal>,
    Body(body): Body<api::TokenRequest>,
) -> Result<Response, ProblemResponse> {
    let lifetime = body.expires_in.map(lifetime).transpose()?;
    let scope = match body.scope {
        api::TokenScope::Read => Scope::Read,
        api::TokenScope::Write => Scope::Write,
        api::TokenScope::Admin => Scope::Admin,
    };
    let confinement = body.confinement.map(convert::to_confinement);
    let bounds = TokenBounds {
        profiles: body.profiles,
        confinement,
        policy: body.policy,
        secrets: body.secrets.iter().map(|given| secret(given)).collect(),
    };
    let request = MakeToken { name: body.name, scope, lifetime, bounds };
    match rest.act(&principal, Action::MakeToken(request)).await? {
        Outcome::FreshToken(made) => {
            let api::TokenInfo { name, scope, created_at, expires_at, profiles, confinement, policy, secrets, .. } =
                info(made.view);
            let (token, sessions_out_of_bounds) = (made.token, made.sessions_out_of_bounds);
            let token = api::NewToken {
                token,
                name,
                scope,
                created_at,
                expires_at,
                profiles,
                confinement,
                policy,
                secrets,
                sessions_out_of_bounds,
            };
            Ok((StatusCode::CREATED, [(header::CACHE_CONTROL, "no-store")], Json(token)).into_response())
        }
        other => Err(unexpected(&other)),
    }
}

/// `NAME`, or `NAME=VARIABLE`.
fn secret(given: &str) -> TokenSecret {
    let (name, variable) = given.split_once('=').unwrap_or((given, given));
    TokenSecret { name: name.to_owned(), variable: variable.to_owned() }
}

fn shown(secret: &TokenSecret) -> String {
    let TokenSecret { name, variable } = secret;
    if name == variable { name.clone() } else { format!("{name}={variable}") }
}

/// Seconds with fractions; zero would make a token that is never valid.
fn lifetime(seconds: f64) -> Result<Duration, ProblemResponse> {
    let most = limits::TOKEN_LIFETIME_MAX;
    let given = Duration::try_from_secs_f64(seconds).ok().filter(|d| !d.is_zero() && *d <= most);
    given.ok_or_else(|| {
        ProblemResponse::field("expiresIn", format!("must be more than 0 and at most {} seconds", most.as_secs()))
    })
}

pub(super) async fn list(
    State(rest): State<Rest>,
    Extension(principal): Extension<Principal>,
) -> Result<Json<api::TokenList>, ProblemResponse> {
    match rest.act(&principal, Action::Tokens).await? {
        Outcome::Tokens(views) => Ok(Json(api::TokenList { tokens: views.into_iter().map(info).collect() })),
        other => Err(unexpected(&other)),
    }
}

pub(super) async fn revoke(
    State(rest): State<Rest>,
    Extension(principal): Extension<Principal>,
    name: Option<Path<String>>,
) -> Result<Json<api::TokenInfo>, ProblemResponse> {
    // A text that is not UTF-8 is not a token's name.
    let name = name.map(|Path(name)| name.chars().take(limits::TOKEN_NAME_CHARS_MAX + 1).collect()).unwrap_or_default();
    match rest.act(&principal, Action::RevokeToken { name }).await? {
        Outcome::Token(view) => Ok(Json(info(view))),
        other => Err(unexpected(&other)),
    }
}

fn info(view: TokenView) -> api::TokenInfo {
    let scope = match view.scope {
        Scope::Read => api::TokenScope::Read,
        Scope::Write => api::TokenScope::Write,
        Scope::Admin => api::TokenScope::Admin,
    };
    let (created_at, expires_at) = (convert::time(view.created_at), view.expires_at.map(convert::time));
    let (first_maker, bounds) = (view.first_maker, view.bounds);
    let TokenBounds { profiles, confinement, policy, secrets } = bounds;
    let confinement = confinement.map(convert::confinement);
    let secrets = secrets.iter().map(shown).collect();
    api::TokenInfo {
        name: view.name,
        scope,
        created_at,
        expires_at,
        first_maker,
        profiles,
        confinement,
        policy,
        secrets,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_lives_for_some_time_but_not_for_ever() {
        assert_eq!(lifetime(0.5).ok(), Some(Duration::from_millis(500)));
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9, 1e300] {
            assert_eq!(lifetime(bad).err().and_then(|r| r.field), Some("expiresIn".to_owned()), "{bad}");
        }
    }
}
