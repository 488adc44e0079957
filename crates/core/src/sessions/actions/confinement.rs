//! The rules of a confined session: what its shell and programs may read, change and reach.
//!
//! All can be read but secrets, other homes, shared folders for temporary files and ptyd's own; the workspace can be
//! changed. The holder adds the session's terminal and its folder for temporary files.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use wire::{Namespaces, Rules};

use super::directory::from_home;
use super::environment::Setting;
use crate::action::ActionError;
use crate::confinement_tier::ConfinementTier;
use crate::host::places::{DEVICES, HIDDEN, HOME_SECRETS, NAME_SERVERS, OWN_OF_SANDBOX, SYSTEM};
use crate::profile::Confinement;
use crate::sessions::registry::Registry;

/// The places of one session.
pub(super) struct Places<'a> {
    /// The home that the profile or the server names. A request's own `HOME` gives nothing: it could be a folder of secrets.
    pub(super) home: Option<&'a Path>,
    /// The session's own `HOME`, where secrets are hidden, too.
    pub(super) session_home: Option<&'a Path>,
    /// The directory that the profile names, or else the session's; without links.
    pub(super) workspace: &'a Path,
    /// Whether the profile names it.
    pub(super) is_of_profile: bool,
    /// Places of the server.
    pub(super) own: &'a [PathBuf],
    /// Follows links, as far as the path exists.
    pub(super) resolved: &'a dyn Fn(&Path) -> PathBuf,
}

impl Registry {
    /// The rules for a new session, if its profile confines it; `rules` makes those of its tier. Blocks.
    pub(super) fn confinement(
        &self,
        setting: &Setting,
        cwd: &Path,
        session_home: Option<&[u8]>,
        rules: fn(&Confinement, &Places<'_>) -> Result<Rules, ActionError>,
    ) -> Result<Option<Rules>, ActionError> {
        let Some(asked) = &setting.profile.confinement else { return Ok(None) };
        let home = setting.profile.env.get("HOME").map(PathBuf::from);
        let home = home.or_else(|| self.host().home()).filter(|home| home.is_absolute());
        let of_profile = setting.profile.cwd.as_ref().map(|cwd| below(home.as_deref(), cwd));
        if setting.user.is_some() {
            let problem =
                "confinement: a session of another user is not confined yet; leave out one of the two".to_owned();
            return Err(ActionError::Invalid { field: "profile", problem });
        }
        // The holder says why a sandbox cannot be made: it makes it.
        if let Some(why) = self.host().confinement_hindrance(ConfinementTier::Process) {
            return Err(ActionError::Start { why: format!("its confinement {why}") });
        }
        let resolved = |path: &Path| self.host().resolved_path(path);
        let workspace = resolved(of_profile.as_deref().unwrap_or(cwd));
        let own = self.launch_resources.own_places(self.holders().sessions());
        let places = Places {
            home: home.as_deref(),
            session_home: session_home.map(|home| Path::new(OsStr::from_bytes(home))),
            workspace: &workspace,
            is_of_profile: of_profile.is_some(),
            own: &own,
            resolved: &resolved,
        };
        rules(asked, &places).map(Some)
    }
}

/// Expands `~`.
pub(super) fn below(home: Option<&Path>, path: &Path) -> PathBuf {
    from_home(path, home.map(|home| home.as_os_str().as_bytes()))
}

/// The server's own places, and those of secrets in the homes.
pub(super) fn secrets(places: &Places<'_>) -> Vec<PathBuf> {
    let homes = places.home.iter().chain(&places.session_home);
    let of_homes = homes.flat_map(|home| HOME_SECRETS.iter().map(|name| home.join(name)));
    places.own.iter().cloned().chain(of_homes).collect()
}

/// A path as it is named, and the place where it led when it was looked at. The rules have this place and nobody follows links
/// again: a session could exchange a folder of its own for a link in between.
#[derive(Debug)]
pub(super) struct NamedPlace {
    pub(super) name: PathBuf,
    pub(super) at: PathBuf,
}

/// The places that a session's programs may change, and those that a profile lets them read.
pub(super) struct NamedPlaces {
    pub(super) writable: Vec<NamedPlace>,
    pub(super) readable: Vec<NamedPlace>,
}

impl NamedPlaces {
    /// Follows the links of every path, and checks the workspace where the profile names no writable one.
    pub(super) fn of(confinement: &Confinement, places: &Places<'_>, secrets: &[PathBuf]) -> Result<Self, ActionError> {
        let place = |path: &PathBuf| {
            let name = below(places.home, path);
            NamedPlace { at: (places.resolved)(&name), name }
        };
        let mut writable: Vec<_> = confinement.writable.iter().map(place).collect();
        if writable.is_empty() {
            check_workspace(places, secrets)?;
            let workspace = places.workspace.to_owned();
            writable.push(NamedPlace { name: workspace.clone(), at: workspace });
        }
        let readable: Vec<_> = confinement.readable.iter().map(place).collect();
        for place in writable.iter().chain(&readable) {
            check_link(place, &writable)?;
        }
        Ok(Self { writable, readable })
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &NamedPlace> {
        self.writable.iter().chain(&self.readable)
    }

    /// The places to change and those to read.
    pub(super) fn paths(self) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let paths = |places: Vec<NamedPlace>| places.into_iter().map(|place| place.at).collect();
        (paths(self.writable), paths(self.readable))
    }
}

/// The rules for a session with this confinement.
pub(super) fn rules(confinement: &Confinement, places: &Places<'_>) -> Result<Rules, ActionError> {
    let mut secrets = secrets(places);
    secrets.extend(confinement.hidden.iter().map(|path| below(places.home, path)));
    let named = NamedPlaces::of(confinement, places, &secrets)?;
    if confinement.tier == ConfinementTier::Sandbox {
        let settings = named.all().map(|place| &place.name).chain(&confinement.hidden);
        if let Some(path) = settings.into_iter().find(|path| OWN_OF_SANDBOX.iter().any(|own| path.starts_with(own))) {
            let shown = path.display();
            let problem =
                format!("confinement: a sandbox has its own {shown}; leave it out, or use the tier `process`");
            return Err(ActionError::Invalid { field: "profile", problem });
        }
    }
    let (writable, readable) = named.paths();
    let system = ["/"].iter().chain(&NAME_SERVERS).map(Path::new).chain(places.home);
    Ok(Rules {
        readable: system.map(|path| (places.resolved)(path)).chain(readable).collect(),
        writable,
        devices: DEVICES.map(PathBuf::from).to_vec(),
        hidden: secrets.into_iter().chain(HIDDEN.map(PathBuf::from)).collect(),
        network: confinement.network,
        namespaces: match confinement.tier {
            ConfinementTier::Sandbox => Namespaces::Own,
            _ => Namespaces::Shared,
        },
    })
}

/// Refuses a path of the profile that leads out of a folder that its sessions can change: they could have made the link.
fn check_link(place: &NamedPlace, writable: &[NamedPlace]) -> Result<(), ActionError> {
    let leaves = |folder: &&NamedPlace| {
        place.name != folder.name && place.name.starts_with(&folder.name) && !place.at.starts_with(&folder.at)
    };
    let Some(folder) = writable.iter().find(leaves) else { return Ok(()) };
    let problem = format!(
        "confinement: {} leads out of {}, which its sessions can change, by a link; name the place itself",
        place.name.display(),
        folder.name.display()
    );
    Err(ActionError::Invalid { field: "profile", problem })
}

/// Refuses a workspace that holds a secret, lies in one, or is no project's: a request chooses it, and gets no more by it.
fn check_workspace(places: &Places<'_>, secrets: &[PathBuf]) -> Result<(), ActionError> {
    let workspace = places.workspace;
    let shown = workspace.display();
    let secrets: Vec<_> = secrets.iter().map(|secret| (places.resolved)(secret)).collect();
    let problem = if secrets.iter().any(|secret| workspace.starts_with(secret)) {
        format!("{shown} cannot be the working directory of a confined session: choose a project's folder")
    } else if !places.is_of_profile && !is_a_projects(places) {
        format!(
            "{shown} cannot be the working directory of a confined session unless its profile names it (`cwd`): choose a \
             project's folder"
        )
    } else if let Some(inside) = secrets.iter().find(|secret| secret.starts_with(workspace)) {
        format!(
            "{shown} is above {}, a place of secrets, and a confined session can change its working directory: choose a \
             project's folder, or name writable folders in the profile",
            inside.display()
        )
    } else {
        return Ok(());
    };
    Err(ActionError::Invalid { field: "cwd", problem })
}

/// Whether the workspace is none of the system's, nor a shared folder or another's home as a whole, nor in a hidden folder of a
/// home: programs outside run files of such folders (`~/.config/fish`, `~/.cargo/bin`).
fn is_a_projects(places: &Places<'_>) -> bool {
    let workspace = places.workspace;
    let own = places.home.map(|home| (places.resolved)(home));
    if own.as_deref() == Some(workspace) {
        // Its secrets tell.
        return true;
    }
    let user = workspace.strip_prefix("/home").ok().and_then(|inside| inside.iter().next());
    let homes = own.into_iter().chain(user.map(|user| Path::new("/home").join(user))).chain(["/root".into()]);
    let is_the_homes = |home: PathBuf| {
        let first = workspace.strip_prefix(home).map(|inside| inside.iter().next());
        first.is_ok_and(|first| first.is_none_or(|first| first.as_encoded_bytes().starts_with(b".")))
    };
    !SYSTEM.iter().any(|folder| workspace.starts_with(folder))
        && !HIDDEN.iter().any(|folder| workspace == Path::new(folder))
        && !homes.into_iter().any(is_the_homes)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::HashSet;

    use super::*;

    fn places(workspace: &str) -> Places<'_> {
        Places {
            home: Some(Path::new("/home/ann")),
            session_home: None,
            workspace: Path::new(workspace),
            is_of_profile: false,
            own: &[],
            resolved: &resolved_by_test,
        }
    }

    /// Two links: a folder of secrets, and one that a session has made.
    fn resolved_by_test(path: &Path) -> PathBuf {
        let text = path.to_str().expect("ASCII").replace("/home/ann/.aws", "/home/ann/files/aws");
        text.replace("/home/ann/a/link", "/home/ann/.ssh").into()
    }

    fn refused(confinement: &Confinement, places: &Places<'_>) -> Option<String> {
        rules(confinement, places).err().map(|e| e.to_string())
    }

    #[test]
    // promise: access-15
    fn what_a_sandbox_has_of_its_own_is_refused_in_settings() {
        let of = |tier, path: &str| Confinement { tier, writable: vec![path.into()], ..Confinement::default() };
        for own in OWN_OF_SANDBOX {
            let why = refused(&of(ConfinementTier::Sandbox, own), &places("/srv/work"));
            assert!(why.is_some_and(|why| why.contains(&format!("a sandbox has its own {own}"))), "{own}");
            assert_eq!(refused(&of(ConfinementTier::Process, own), &places("/srv/work")), None);
        }
        assert_eq!(refused(&of(ConfinementTier::Sandbox, "/srv/data"), &places("/srv/work")), None);
    }

    #[test]
    // promise: access-13
    fn a_workspace_neither_holds_a_secret_nor_is_one_nor_the_systems() {
        let confinement = Confinement::default();
        for workspace in ["/home/ann/src", "/home/bob/src", "/srv/work", "/tmp/work", "/"].map(places) {
            let is_root = workspace.workspace == Path::new("/");
            assert_eq!(refused(&confinement, &workspace).is_some(), is_root, "{:?}", workspace.workspace);
        }
        for (workspace, why) in [
            ("/home/ann", "is above /home/ann/.ssh"),
            ("/home/ann/files", "is above /home/ann/files/aws"),
            ("/home/ann/files/aws/deeper", "cannot be"),
            ("/home/ann/.config/fish", "cannot be"),
            ("/home/ann/.cargo/bin", "cannot be"),
            ("/home", "cannot be"),
            ("/home/bob", "cannot be"),
            ("/home/bob/.ssh", "cannot be"),
            ("/root", "cannot be"),
            ("/root/.ssh", "cannot be"),
            ("/tmp", "cannot be"),
            ("/home/ann/.ssh/deeper", "cannot be"),
            ("/etc", "cannot be"),
            ("/usr/local/src", "cannot be"),
        ] {
            assert!(refused(&confinement, &places(workspace)).is_some_and(|said| said.contains(why)), "{workspace}");
        }
        let own = [PathBuf::from("/home/ann/state")];
        assert!(refused(&confinement, &Places { own: &own, ..places("/home/ann/state/x") }).is_some());
        // The operator's own choice of a directory, and of folders.
        assert_eq!(refused(&confinement, &Places { is_of_profile: true, ..places("/var/www") }), None);
        let chosen = Confinement { writable: vec!["~/a".into()], ..Confinement::default() };
        let given = rules(&chosen, &places("/home/ann")).expect("its home is not writable");
        assert_eq!(given.writable, [Path::new("/home/ann/a")]);
        // A link that a session could have made.
        let twice = Confinement { writable: vec!["~/a".into(), "~/a/link".into()], ..Confinement::default() };
        let read = Confinement { readable: vec!["~/a/link/id".into()], ..chosen };
        for confinement in [twice, read] {
            let said = refused(&confinement, &places("/home/ann/a"));
            assert!(said.is_some_and(|said| said.contains("leads out of /home/ann/a")), "{confinement:?}");
        }
    }

    #[test]
    // promise: access-13
    fn no_link_is_followed_after_a_place_was_checked() {
        let looks = RefCell::new(HashSet::new());
        let exchanged = |path: &Path| match looks.borrow_mut().insert(path.to_owned()) {
            true => path.to_owned(),
            false => "/home/ann/.ssh".into(),
        };
        let places = Places { resolved: &exchanged, ..places("/home/ann/src") };
        exchanged(places.workspace);
        let given = rules(&Confinement::default(), &places).expect("a project");
        assert_eq!(given.writable, [Path::new("/home/ann/src")]);
        let paths = |path: &str| vec![PathBuf::from(path)];
        let named = Confinement { writable: paths("/srv/a"), readable: paths("/srv/a/b"), ..Confinement::default() };
        let given = rules(&named, &places).expect("both are places of the profile");
        assert_eq!(given.writable, [Path::new("/srv/a")]);
        assert_eq!(given.readable.last().map(PathBuf::as_path), Some(Path::new("/srv/a/b")));
    }

    #[test]
    fn what_is_hidden_is_so_in_every_home_and_by_the_profile() {
        let confinement = Confinement { hidden: vec!["~/private".into()], ..Confinement::default() };
        let given = rules(&confinement, &places("/home/ann/src")).expect("a project");
        let elsewhere = Places { session_home: Some(Path::new("/srv/ann")), ..places("/home/ann/src") };
        let other = rules(&confinement, &elsewhere).expect("a project");
        assert_eq!(other.readable, given.readable);
        assert!(other.hidden.contains(&PathBuf::from("/srv/ann/.ssh")));
        for hidden in ["/home/ann/.ssh", "/home/ann/private", "/home", "/tmp", "/etc/shadow"] {
            assert!(given.hidden.contains(&PathBuf::from(hidden)), "{hidden}");
        }
        assert!(!given.network);
    }
}
