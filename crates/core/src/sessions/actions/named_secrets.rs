//! Lists, sets and removes the named secrets, and gives them to the sessions of profiles.

use std::sync::Arc;

use crate::action::{ActionError, NamedSecretView, SecretValue};
use crate::config_file::ConfigFile;
use crate::principal::Principal;
use crate::profile::Profile;
use crate::sessions::launch::launcher::Launcher;
use crate::sessions::on_disk::on_disk;
use crate::sessions::services::Services;

/// All secrets without their values, by name.
pub(in crate::sessions) async fn named_secrets(
    services: &Arc<Services>,
    principal: &Principal,
) -> Result<Vec<NamedSecretView>, ActionError> {
    principal.may_be_a_person()?;
    let services = Arc::clone(services);
    on_disk(move || {
        let of = profiles_by_secret(&services.launcher);
        let all = services.backends.secrets.list().into_iter();
        Ok(all.map(|(name, set_at)| NamedSecretView { profiles: of(&name), name, set_at }).collect())
    })
    .await
}

/// Sets a value. Live sessions keep the value that they have.
pub(in crate::sessions) async fn set_secret(
    services: &Arc<Services>,
    principal: &Principal,
    name: &str,
    value: &SecretValue,
) -> Result<NamedSecretView, ActionError> {
    principal.may_be_a_person()?;
    let (services, name, value) = (Arc::clone(services), name.to_owned(), value.clone());
    let by = principal.name.clone();
    on_disk(move || {
        let set_at = services.backends.secrets.set(&name, &value)?;
        tracing::info!(by, secret = name, "a secret was set");
        Ok(NamedSecretView { profiles: profiles_by_secret(&services.launcher)(&name), name, set_at })
    })
    .await
}

/// Removes a secret. Live sessions keep it.
pub(in crate::sessions) async fn remove_secret(
    services: &Arc<Services>,
    principal: &Principal,
    name: &str,
) -> Result<NamedSecretView, ActionError> {
    principal.may_be_a_person()?;
    let (services, name, by) = (Arc::clone(services), name.to_owned(), principal.name.clone());
    on_disk(move || {
        let set_at = services.backends.secrets.remove(&name)?;
        tracing::info!(by, secret = name, "a secret was removed");
        Ok(NamedSecretView { profiles: profiles_by_secret(&services.launcher)(&name), name, set_at })
    })
    .await
}

/// Finds the profiles that give a secret. An unreadable file counts as empty; the start of a session reports the error.
fn profiles_by_secret(launcher: &Launcher) -> impl Fn(&str) -> Vec<String> + use<> {
    let file = launcher.config_file.as_deref().map(ConfigFile::read).and_then(Result::ok);
    let profiles = file.unwrap_or_default().profiles;
    move |name| {
        let gives = |profile: &Profile| profile.secrets.iter().chain(&profile.secret_files).any(|it| it == name);
        profiles.iter().filter(|(_, profile)| gives(profile)).map(|(name, _)| name.clone()).collect()
    }
}
