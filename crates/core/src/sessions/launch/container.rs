//! The container of a session: the settings for its engine, and the places of the machine that are mounted in it.

use std::collections::HashSet;
use std::path::Path;

use wire::{Namespaces, Rules};

use super::confinement::{self, NamedPlace, NamedPlaces, Places, of_profile as invalid};
use super::effective_profile::EffectiveProfile;
use super::launcher::Launcher;
use crate::action::ActionError;
use crate::confinement_tier::ConfinementTier;
use crate::host::Programs;
use crate::host::containers::{ContainerSettings, GivenFiles, IN_CONTAINER, StartedContainer, usual_engine};
use crate::ids::SessionId;
use crate::profile::Confinement;
use crate::shell::{Shell, Wanted};

/// The rules for a new session, if its profile confines it. Blocks.
pub(super) fn rules(
    launcher: &Launcher,
    effective: &EffectiveProfile,
    is_bound: bool,
    cwd: &Path,
    session_home: Option<&[u8]>,
) -> Result<Option<Rules>, ActionError> {
    let tier = effective.profile.confinement.as_ref().map(|confinement| confinement.tier);
    let of_tier = if tier == Some(ConfinementTier::Container) { mounts } else { confinement::rules };
    confinement::confinement(launcher, effective, is_bound, cwd, session_home, of_tier)
}

/// The shell of a session in a container; if the request names none, bash if the image has it, else sh.
pub(super) fn shell_inside(
    launcher: &Launcher,
    settings: &ContainerSettings,
    inside: &StartedContainer,
    wanted: &Wanted<'_>,
) -> Result<Shell, ActionError> {
    let has = |name: &str| inside.files.resolve_program(name, wanted.path).is_some();
    let usual = || if has("bash") { "bash".to_owned() } else { "sh".to_owned() };
    let picked = launcher.integration.pick_among(&inside.files, wanted, usual);
    picked.map_err(|e| match e {
        ActionError::Invalid { field: "shell", .. } if !has("sh") && !has("bash") => {
            let image = &settings.image;
            not_started(format!("the image {image} has no shell for the session; choose an image that has one"))
        }
        ActionError::Invalid { field: "shell", problem } => {
            ActionError::Invalid { field: "shell", problem: format!("in the image {}: {problem}", settings.image) }
        }
        other => other,
    })
}

/// If a new session is confined to a container, starts it and waits until its first process has connected. Blocks.
pub(super) fn start_container(
    launcher: &Launcher,
    id: &SessionId,
    effective: &EffectiveProfile,
    rules: Option<&Rules>,
) -> Result<Option<(ContainerSettings, StartedContainer)>, ActionError> {
    let (Some(confinement), Some(rules)) = (&effective.profile.confinement, rules) else { return Ok(None) };
    if confinement.tier != ConfinementTier::Container {
        return Ok(None);
    }
    let settings = settings(confinement)?;
    let inside = run_container(launcher, id, &settings, rules, &effective.secrets.files)?;
    Ok(Some((settings, inside)))
}

/// Starts a container with these settings. Blocks.
pub(super) fn run_container(
    launcher: &Launcher,
    id: &SessionId,
    settings: &ContainerSettings,
    rules: &Rules,
    secrets: &[(String, String)],
) -> Result<StartedContainer, ActionError> {
    let integration = &launcher.integration;
    let scripts = integration.all().map_err(|e| not_started(format!("the shell integration: {e}")))?;
    let given = GivenFiles { secrets, scripts: (&integration.folder(), &scripts) };
    launcher.backends.containers.start(id, settings, rules, &given).map_err(not_started)
}

/// The error of a container that cannot be started.
fn not_started(why: String) -> ActionError {
    ActionError::Start { why: format!("its container: {why}") }
}

/// The settings of a profile, checked.
fn settings(confinement: &Confinement) -> Result<ContainerSettings, ActionError> {
    let Some(image) = confinement.image.clone() else {
        return Err(invalid("the tier `container` needs a profile whose confinement names an `image`".to_owned()));
    };
    let engine = confinement.engine.clone().unwrap_or_else(usual_engine);
    let more = [("runtime", &confinement.runtime), ("user", &confinement.user)];
    let more = more.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
    // An engine would take a word with a dash for an option.
    for (name, value) in [("image", &image), ("engine", &engine)].into_iter().chain(more) {
        if value.is_empty() || value.starts_with('-') || value.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(invalid(format!("{name}: {value:?} is empty, begins with a dash, or has a blank in it")));
        }
    }
    if engine.contains('/') && !engine.starts_with('/') {
        return Err(invalid(format!(
            "engine: {engine:?} is a relative path; give a name or a path that begins with /"
        )));
    }
    let (runtime, user) = (confinement.runtime.clone(), confinement.user.clone());
    Ok(ContainerSettings { engine, image, runtime, user })
}

/// The rules of a container: the places that are mounted in it, each at its own path. A mount shows all that is below it, so none may
/// hold a secret.
pub(super) fn mounts(confinement: &Confinement, places: &Places<'_>) -> Result<Rules, ActionError> {
    if !confinement.hidden.is_empty() {
        return Err(invalid(
            "a container sees only the files of the machine that its profile names, so omit `hidden`".to_owned(),
        ));
    }
    let named = NamedPlaces::of(confinement, places)?;
    let mut places_before = HashSet::new();
    for NamedPlace { name, at } in named.all() {
        let shown = name.display();
        if at.starts_with(IN_CONTAINER) {
            return Err(invalid(format!("{shown} cannot be mounted in a container: ptyd's own files are there")));
        }
        if !places_before.insert(at) {
            let problem = format!("a container mounts {shown} twice; omit one of the two");
            return Err(invalid(problem));
        }
    }
    let [writable, mut readable, kept] = named.paths(confinement, places);
    readable.extend(kept);
    Ok(Rules {
        readable,
        writable,
        network: confinement.network,
        namespaces: Namespaces::Container,
        ..Rules::default()
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn of(change: impl FnOnce(&mut Confinement)) -> Confinement {
        let image = Some("localhost/x".to_owned());
        let mut confinement = Confinement { tier: ConfinementTier::Container, image, ..Confinement::default() };
        change(&mut confinement);
        confinement
    }

    #[test]
    // promise: access-16
    fn no_value_of_a_profile_becomes_an_option_of_the_engine() {
        for (wrong, why) in [
            (of(|it| it.image = None), "names an `image`"),
            (of(|it| it.image = Some("--privileged".to_owned())), "image: \"--privileged\""),
            (of(|it| it.user = Some("-x".to_owned())), "user: \"-x\""),
            (of(|it| it.runtime = Some("a b".to_owned())), "runtime: \"a b\""),
            (of(|it| it.engine = Some(String::new())), "engine: \"\""),
            (of(|it| it.engine = Some("bin/podman".to_owned())), "engine: \"bin/podman\" is a relative path"),
        ] {
            let said = settings(&wrong).expect_err("wrong").to_string();
            assert!(said.contains(why), "{said}");
        }
        assert!(settings(&of(|it| it.user = Some("1000:1000".to_owned()))).is_ok());
    }

    #[test]
    // promise: access-16
    fn a_mount_holds_no_secret_and_nothing_of_the_server() {
        let own = [PathBuf::from("/home/ann/state")];
        let places = Places {
            home: Some(Path::new("/home/ann")),
            session_home: None,
            directory: Path::new("/home/ann/src"),
            of_profile: None,
            is_bound: false,
            own: &own,
            programs: &[],
            resolved: &Path::to_owned,
            place: &|path| Ok(path.to_owned()),
            is_folder: &|_| None,
        };
        let usual = mounts(&of(|_| {}), &places).expect("a project");
        assert_eq!((usual.writable, usual.readable, usual.network), (vec!["/home/ann/src".into()], Vec::new(), false));
        for (wrong, why) in [
            (of(|it| it.writable = vec!["~".into()]), "contains /home/ann/state"),
            (of(|it| it.readable = vec!["/".into()]), "contains /home/ann/state"),
            (of(|it| it.readable = vec!["src".into()]), "below /"),
            (of(|it| it.readable = vec!["~/.config".into()]), "contains /home/ann/.config/"),
            (of(|it| it.readable = vec!["~/.ssh".into()]), "contains /home/ann/.ssh"),
            (of(|it| it.readable = vec!["~/state/sessions".into()]), "is the server's own"),
            (of(|it| it.hidden = vec!["~/private".into()]), "omit `hidden`"),
            (of(|it| it.readable = vec!["~/src".into()]), "mounts /home/ann/src twice"),
            (of(|it| it.writable = vec!["/srv/a".into(), "/srv/a".into()]), "mounts /srv/a twice"),
            (of(|it| it.readable = vec!["/.ptyd/secrets".into()]), "/.ptyd/secrets cannot be mounted"),
        ] {
            let said = mounts(&wrong, &places).expect_err("wrong").to_string();
            assert!(said.contains(why), "{said}");
        }
        // The operator's own words.
        assert!(mounts(&of(|it| it.readable = vec!["~/.ssh/known_hosts".into()]), &places).is_ok());
    }
}
