//! The shell that a request wants, or its profile, of the machine or of its container.

use super::container;
use super::effective_profile::EffectiveProfile;
use super::launcher::Launcher;
use super::variables::get;
use crate::action::{ActionError, Create, Variables};
use crate::confinement_tier::ConfinementTier;
use crate::host::containers::{ContainerSettings, Containers, StartedContainer};
use crate::profile::StartFiles;
use crate::shell::{ScriptAccess, Shell, Wanted};

/// The shell of a new session, of the machine or of its container.
pub(super) fn shell(
    launcher: &Launcher,
    effective: &EffectiveProfile,
    request: &Create,
    inside: Option<&(ContainerSettings, StartedContainer)>,
    env: &Variables,
) -> Result<Shell, ActionError> {
    let profile = &effective.profile;
    let default = effective.default_shell(request).filter(|_| inside.is_none());
    let (scripts, in_container) = (launcher.integration.folder(), Containers::scripts());
    let wanted = Wanted {
        shell: request.shell.as_deref().or(profile.shell.as_deref()).or(default),
        login: effective.is_login(request),
        path: get(env, b"PATH"),
        own_shell: get(env, b"SHELL"),
        env: get(env, b"ENV"),
        zdotdir: get(env, b"ZDOTDIR"),
        clean: profile.rc == StartFiles::Clean,
        scripts: match profile.confinement.as_ref().map(|confinement| confinement.tier) {
            Some(ConfinementTier::Container) => ScriptAccess::Folder(&in_container),
            Some(_) => ScriptAccess::Folder(&scripts),
            None if effective.user.is_some() => ScriptAccess::Descriptor,
            None => ScriptAccess::Path,
        },
    };
    match inside {
        Some((settings, inside)) => container::shell_inside(launcher, settings, inside, &wanted),
        None => launcher.integration.pick(&*launcher.backends.host, &wanted),
    }
}
