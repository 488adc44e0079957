//! The rules of a confined session (tier `process`): what its shell and programs may read, change and reach.
//!
//! All can be read but secrets, other homes, shared folders for temporary files and ptyd's own; the workspace can be
//! changed. The holder adds the session's terminal and its folder for temporary files.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use wire::Rules;

use super::create::from_home;
use super::environment::Setting;
use crate::action::ActionError;
use crate::host::places::{DEVICES, OF_THE_MACHINE, READABLE, SECRETS, SYSTEM};
use crate::profile::Confinement;
use crate::sessions::registry::Registry;

/// The places of one session.
#[derive(Debug)]
pub(super) struct Places<'a> {
    pub(super) home: Option<&'a [u8]>,
    /// The directory that the profile names, or else the session's; without links.
    pub(super) workspace: &'a Path,
    /// Whether the profile names it.
    pub(super) is_of_profile: bool,
    /// Places of the server.
    pub(super) own: &'a [PathBuf],
}

impl Registry {
    /// The rules for a new session, if its profile confines it. Blocks.
    pub(super) fn confinement(
        &self,
        setting: &Setting,
        cwd: &Path,
        home: Option<&[u8]>,
    ) -> Result<Option<Rules>, ActionError> {
        let Some(asked) = &setting.profile.confinement else { return Ok(None) };
        let of_profile = setting.profile.cwd.as_ref().map(|cwd| from_home(cwd, home));
        if setting.user.is_some() {
            let problem =
                "confinement: a session of another user is not confined yet; leave out one of the two".to_owned();
            return Err(ActionError::Invalid { field: "profile", problem });
        }
        if let Some(why) = self.host().confinement_hindrance() {
            return Err(ActionError::Start { why: format!("its confinement {why}") });
        }
        let workspace = of_profile.as_deref().unwrap_or(cwd);
        let workspace = self.host().real_path(workspace).unwrap_or_else(|| workspace.to_owned());
        let own = self.launch_resources.own_places(self.holders().sessions());
        let places = Places { home, workspace: &workspace, is_of_profile: of_profile.is_some(), own: &own };
        rules(asked, &places).map(Some)
    }
}

/// The rules for a session with this confinement.
pub(super) fn rules(confinement: &Confinement, places: &Places<'_>) -> Result<Rules, ActionError> {
    let all = |paths: &[PathBuf]| paths.iter().map(|path| from_home(path, places.home)).collect::<Vec<_>>();
    let home = places.home.map(|home| Path::new(OsStr::from_bytes(home)));
    let mut secrets = places.own.to_vec();
    secrets.extend(home.iter().flat_map(|home| SECRETS.iter().map(|name| home.join(name))));
    secrets.extend(all(&confinement.hidden));
    let mut writable = all(&confinement.writable);
    if writable.is_empty() {
        check_workspace(places, &secrets)?;
        writable.push(places.workspace.to_owned());
    }
    let readable = ["/"].iter().chain(&READABLE).map(PathBuf::from);
    Ok(Rules {
        readable: readable.chain(home.map(Path::to_owned)).chain(all(&confinement.readable)).collect(),
        writable,
        devices: DEVICES.map(PathBuf::from).to_vec(),
        hidden: secrets.into_iter().chain(OF_THE_MACHINE.map(PathBuf::from)).collect(),
        network: confinement.network,
    })
}

/// Refuses a workspace that holds a secret, lies in one, or is the system's: a request chooses it, and gets no more by it.
fn check_workspace(places: &Places<'_>, secrets: &[PathBuf]) -> Result<(), ActionError> {
    let workspace = places.workspace;
    let shown = workspace.display();
    let is_system = !places.is_of_profile && SYSTEM.iter().any(|folder| workspace.starts_with(folder));
    let problem = if is_system || secrets.iter().any(|secret| workspace.starts_with(secret)) {
        format!("{shown} cannot be the working directory of a confined session: choose a project's folder")
    } else if let Some(inside) = secrets.iter().find(|secret| secret.starts_with(workspace)) {
        format!(
            "{shown} holds {}, and a confined session can change its working directory: choose a project's folder, or name \
             writable folders in the profile",
            inside.display()
        )
    } else {
        return Ok(());
    };
    Err(ActionError::Invalid { field: "cwd", problem })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(workspace: &str) -> Places<'_> {
        Places { home: Some(b"/home/ann"), workspace: Path::new(workspace), is_of_profile: false, own: &[] }
    }

    fn refused(confinement: &Confinement, places: &Places<'_>) -> Option<String> {
        rules(confinement, places).err().map(|e| e.to_string())
    }

    #[test]
    // promise: access-13
    fn a_workspace_neither_holds_a_secret_nor_is_one_nor_the_systems() {
        let confinement = Confinement::default();
        for workspace in ["/home/ann/src", "/srv/work", "/tmp/work", "/"].map(places) {
            let is_root = workspace.workspace == Path::new("/");
            assert_eq!(refused(&confinement, &workspace).is_some(), is_root, "{workspace:?}");
        }
        for (workspace, why) in [
            ("/home/ann", "holds /home/ann/.ssh"),
            ("/home/ann/.config", "holds /home/ann/.config/git/credentials"),
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
    }

    #[test]
    fn what_is_hidden_is_so_in_every_home_and_by_the_profile() {
        let confinement = Confinement { hidden: vec!["~/private".into()], ..Confinement::default() };
        let given = rules(&confinement, &places("/home/ann/src")).expect("a project");
        for hidden in ["/home/ann/.ssh", "/home/ann/private", "/home", "/tmp", "/etc/shadow"] {
            assert!(given.hidden.contains(&PathBuf::from(hidden)), "{hidden}");
        }
        assert!(!given.network);
    }
}
