//! Makes and revokes named tokens.

use std::sync::Arc;

use crate::action::{ActionError, FreshToken, MakeToken, TokenView};
use crate::principal::Principal;
use crate::sessions::launch::{effective_profile, policy_of_new};
use crate::sessions::node_records::exchange_changed_tokens;
use crate::sessions::on_disk::on_disk;
use crate::sessions::services::Services;
use crate::sessions::session_metadata::SessionMetadata;

/// Makes a token, and counts the live sessions of its name that are out of its bounds.
pub(in crate::sessions) async fn make(
    services: &Arc<Services>,
    principal: &Principal,
    request: &MakeToken,
) -> Result<FreshToken, ActionError> {
    principal.may_be_a_person()?;
    let (writer, maker, request) = (Arc::clone(services), principal.clone(), request.clone());
    let mut made = on_disk(move || {
        policy_of_new::check_policy_of_token(&writer.launcher.policies, &request)?;
        effective_profile::check_profiles_of_token(&writer.launcher, &request)?;
        writer.tokens.make(&maker, &request)
    })
    .await?;
    let TokenView { name, scope, bounds, .. } = &made.view;
    let profiles = &bounds.profiles;
    let is_out_of_bounds =
        |meta: &&SessionMetadata| meta.owner == *name && !bounds.hold(meta.profile.as_deref(), meta.confinement.tier);
    made.sessions_out_of_bounds =
        services.sessions.handles().iter().map(|handle| &handle.shared.meta).filter(is_out_of_bounds).count();
    services.approvals.forget_principal(name);
    exchange_changed_tokens(services).await;
    tracing::info!(by = %principal.name, token = %name, scope = scope.name(), ?profiles, "a token was made");
    Ok(made)
}

/// Revokes a token.
pub(in crate::sessions) async fn revoke(
    services: &Services,
    principal: &Principal,
    name: &str,
) -> Result<TokenView, ActionError> {
    let (tokens, name) = (Arc::clone(&services.tokens), name.to_owned());
    let revoked = on_disk(move || tokens.revoke(&name)).await?;
    services.approvals.forget_principal(&revoked.name);
    exchange_changed_tokens(services).await;
    tracing::info!(by = %principal.name, token = %revoked.name, "a token was revoked");
    Ok(revoked)
}
