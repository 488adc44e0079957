//! The rules of a confined session: what its shell and programs may read, change and reach.
//!
//! Programs can read everything except secrets, other homes, shared temporary folders and ptyd's own files, and can change
//! the workspace. The holder adds the session's terminal and its temporary folder.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use wire::{Namespaces, Rules};

use super::directory::from_home;
use super::effective_profile::EffectiveProfile;
use super::launcher::Launcher;
use crate::action::ActionError;
use crate::confinement_tier::ConfinementTier;
use crate::host::sensitive_paths::{
    ABOVE_PROJECTS, DEVICES, GIT, HIDDEN, HOME_SECRETS, NAME_SERVERS, OWN_OF_SANDBOX, PROGRAM_FOLDERS,
    PROJECT_SETTINGS, SYSTEM, TEMPORARY,
};
use crate::profile::Confinement;

/// The places of one session.
pub(super) struct Places<'a> {
    /// The home that the profile or the server names. A request's own `HOME` has no effect: it could be a folder of
    /// secrets.
    pub(super) home: Option<&'a Path>,
    /// The session's own `HOME`, where secrets are hidden, too.
    pub(super) session_home: Option<&'a Path>,
    /// The directory in which the shell starts; without links.
    pub(super) directory: &'a Path,
    /// The directory that the profile names.
    pub(super) of_profile: Option<&'a Path>,
    /// Whether the request's token is bound to its profile.
    pub(super) is_bound: bool,
    /// Places of the server.
    pub(super) own: &'a [PathBuf],
    /// The folders of the server's PATH.
    pub(super) programs: &'a [PathBuf],
    /// Follows links, as far as the path exists.
    pub(super) resolved: &'a dyn Fn(&Path) -> PathBuf,
    /// Follows only the machine's own links; the error is another link.
    pub(super) place: &'a dyn Fn(&Path) -> Result<PathBuf, PathBuf>,
    /// Whether something is there, and whether it is a folder.
    pub(super) is_folder: &'a dyn Fn(&Path) -> Option<bool>,
}

/// The rules for a new session that starts in this directory, if its profile confines it; `rules` makes the rules of its
/// tier. Blocks.
pub(super) fn confinement(
    launcher: &Launcher,
    effective: &EffectiveProfile,
    is_bound: bool,
    cwd: &Path,
    session_home: Option<&[u8]>,
    rules: fn(&Confinement, &Places<'_>) -> Result<Rules, ActionError>,
) -> Result<Option<Rules>, ActionError> {
    let Some(asked) = &effective.profile.confinement else { return Ok(None) };
    if effective.user.is_some() {
        return Err(of_profile("ptyd cannot confine a session of another user yet; omit one of the two".to_owned()));
    }
    // The holder says why a sandbox cannot be made: it makes it.
    if let Some(why) = launcher.backends.host.confinement_hindrance(ConfinementTier::Process) {
        return Err(ActionError::Start { why: format!("its confinement {why}") });
    }
    let (resolved, place) =
        (|path: &Path| launcher.backends.host.resolved_path(path), |path: &Path| launcher.backends.host.place(path));
    let home = match effective.profile.env.get("HOME").map(Path::new) {
        Some(home) if home.is_absolute() => Some(place(home).map_err(|link| is_link(home, &link))?),
        Some(_) => None,
        None => launcher.backends.host.home().filter(|home| home.is_absolute()),
    };
    let of_profile = effective.profile.cwd.as_ref().map(|cwd| below(home.as_deref(), cwd));
    let own = launcher.own_places();
    let places = Places {
        home: home.as_deref(),
        session_home: session_home.map(|home| Path::new(OsStr::from_bytes(home))),
        directory: &resolved(cwd),
        of_profile: of_profile.as_deref(),
        is_bound,
        own: &own,
        programs: &launcher.backends.host.program_folders(),
        resolved: &resolved,
        place: &place,
        is_folder: &|path| launcher.backends.host.file(path).map(|file| file.is_directory),
    };
    rules(asked, &places).map(Some)
}

/// Expands `~`.
pub(super) fn below(home: Option<&Path>, path: &Path) -> PathBuf {
    from_home(path, home.map(|home| home.as_os_str().as_bytes()))
}

/// A path as it is named, and its place. Nobody follows links again to open it: in between, a session could replace one of
/// its folders with a link.
#[derive(Debug)]
pub(super) struct NamedPlace {
    pub(super) name: PathBuf,
    pub(super) at: PathBuf,
}

/// The places that a session's programs may change, and those that a profile lets them read.
pub(super) struct NamedPlaces {
    pub(super) writable: Vec<NamedPlace>,
    pub(super) readable: Vec<NamedPlace>,
    /// The folders of programs in a workspace that the request has chosen.
    programs: Vec<PathBuf>,
}

impl NamedPlaces {
    /// Finds and checks every place, in every tier. Where the profile names no writable one, it is the workspace.
    pub(super) fn of(confinement: &Confinement, places: &Places<'_>) -> Result<Self, ActionError> {
        let all = |paths: &[PathBuf]| paths.iter().map(|path| places.named(path)).collect::<Result<Vec<_>, _>>();
        let (mut writable, readable) = (all(&confinement.writable)?, all(&confinement.readable)?);
        let secrets: Vec<_> = secrets(places).iter().map(|secret| (places.resolved)(secret)).collect();
        // All that is below a mount is in a container.
        let is_container = confinement.tier == ConfinementTier::Container;
        for NamedPlace { name, at } in writable.iter().chain(readable.iter().filter(|_| is_container)) {
            let is_held = |secret: &&PathBuf| secret.starts_with(at) && (is_container || *secret != at);
            if let Some(secret) = secrets.iter().find(is_held) {
                let (shown, secret) = (name.display(), secret.display());
                return Err(of_profile(format!(
                    "{shown} contains {secret}, where secrets are kept; name other folders"
                )));
            }
        }
        let own: Vec<_> = places.own.iter().map(|own| (places.resolved)(own)).collect();
        for NamedPlace { name, at } in writable.iter().chain(&readable) {
            if own.iter().any(|own| at.starts_with(own)) {
                let shown = name.display();
                return Err(of_profile(format!("{shown} is the server's own, and no confined session may open it")));
            }
        }
        let mut programs = Vec::new();
        if writable.is_empty() {
            let (at, is_requests) = workspace(confinement, places)?;
            let hidden = confinement.hidden.iter().map(|path| (places.resolved)(&below(places.home, path)));
            if is_requests {
                check_project(&at, places)?;
            }
            check_secrets(&at, &secrets.into_iter().chain(hidden).collect::<Vec<_>>())?;
            if is_requests {
                check_programs(&at, places)?;
                programs = programs_in(&at, places)?;
            }
            writable.push(NamedPlace { name: at.clone(), at });
        }
        Ok(Self { writable, readable, programs })
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &NamedPlace> {
        self.writable.iter().chain(&self.readable)
    }

    /// The writable places, the readable places, and the parts of the writable ones that stay read-only.
    pub(super) fn paths(self, confinement: &Confinement, places: &Places<'_>) -> [Vec<PathBuf>; 3] {
        let paths = |places: Vec<NamedPlace>| places.into_iter().map(|place| place.at).collect();
        let (mut writable, readable): (Vec<_>, _) = (paths(self.writable), paths(self.readable));
        let mut kept = self.programs;
        if confinement.project_settings {
            return [writable, readable, kept];
        }
        let is_there = |path: &PathBuf| (places.is_folder)(path).is_some() && (places.resolved)(path) == *path;
        let of_git = writable.iter().map(|folder| folder.join(GIT)).filter(is_there);
        let (mounts, files): (Vec<_>, Vec<_>) = of_git.partition(|git| (places.is_folder)(git) == Some(true));
        let settings = writable.iter().flat_map(|folder| PROJECT_SETTINGS.iter().map(|name| folder.join(name)));
        kept.extend(settings.filter(is_there).chain(files).filter(|path| !writable.contains(path)));
        // The place of a mount can be neither renamed nor removed, so nobody puts another one there.
        writable.extend(mounts);
        [writable, readable, kept]
    }
}

impl Places<'_> {
    /// The place of a path of the profile. A link that a session may have put there is an error.
    fn named(&self, path: &Path) -> Result<NamedPlace, ActionError> {
        let name = below(self.home, path);
        if !name.is_absolute() {
            return Err(of_profile(format!("{} is relative: name a folder or a file below /", name.display())));
        }
        match (self.place)(&name) {
            Ok(at) => Ok(NamedPlace { name, at }),
            Err(link) => Err(is_link(&name, &link)),
        }
    }
}

/// The server's own places, and the places of secrets in the homes.
pub(super) fn secrets(places: &Places<'_>) -> Vec<PathBuf> {
    let homes = places.home.iter().chain(&places.session_home);
    let of_homes = homes.flat_map(|home| HOME_SECRETS.iter().map(|name| home.join(name)));
    places.own.iter().cloned().chain(of_homes).collect()
}

/// The rules for a session with this confinement.
pub(super) fn rules(confinement: &Confinement, places: &Places<'_>) -> Result<Rules, ActionError> {
    let mut secrets = secrets(places);
    secrets.extend(confinement.hidden.iter().map(|path| below(places.home, path)));
    let named = NamedPlaces::of(confinement, places)?;
    if confinement.tier == ConfinementTier::Sandbox {
        let settings = named.all().map(|place| &place.name).chain(&confinement.hidden);
        if let Some(path) = settings.into_iter().find(|path| OWN_OF_SANDBOX.iter().any(|own| path.starts_with(own))) {
            let shown = path.display();
            return Err(of_profile(format!("a sandbox has its own {shown}; omit it, or use the tier `process`")));
        }
    }
    let [writable, readable, kept] = named.paths(confinement, places);
    let system = ["/"].iter().chain(&NAME_SERVERS).map(Path::new).chain(places.home);
    let rules = Rules {
        readable: system.map(|path| (places.resolved)(path)).chain(readable).collect(),
        writable,
        kept,
        devices: DEVICES.map(PathBuf::from).to_vec(),
        hidden: secrets.into_iter().chain(HIDDEN.map(PathBuf::from)).collect(),
        network: confinement.network,
        namespaces: namespaces(confinement.tier),
    };
    check_directory(&rules, places)?;
    Ok(rules)
}

/// The namespaces in which a tier confines a process of this machine.
pub(super) fn namespaces(tier: ConfinementTier) -> Namespaces {
    match tier {
        ConfinementTier::Sandbox => Namespaces::Own,
        _ => Namespaces::Shared,
    }
}

/// Refuses to start in a hidden place, in the same words whether it exists or not.
fn check_directory(rules: &Rules, places: &Places<'_>) -> Result<(), ActionError> {
    match is_hidden(rules, places.directory, places.resolved) {
        true => Err(no_directory(places.directory)),
        false => Ok(()),
    }
}

/// Whether these rules hide this path, which has no links.
pub(in crate::sessions) fn is_hidden(rules: &Rules, path: &Path, resolved: &dyn Fn(&Path) -> PathBuf) -> bool {
    let depth = |folder: &PathBuf| folder.components().count();
    let nearest = |folders: &mut dyn Iterator<Item = PathBuf>| {
        folders.filter(|folder| path.starts_with(folder)).map(|folder| depth(&folder)).max()
    };
    let hidden = nearest(&mut rules.hidden.iter().map(|path| resolved(path)));
    let given = nearest(&mut rules.readable.iter().chain(&rules.writable).cloned());
    let is_own = rules.namespaces == Namespaces::Own && TEMPORARY.iter().any(|own| path == Path::new(own));
    hidden > given && !is_own
}

fn no_directory(folder: &Path) -> ActionError {
    let shown = folder.display();
    of_directory(format!("{shown} cannot be the working directory of a confined session: choose a project's folder"))
}

/// The folder that the session may change, and whether its request has chosen it. For a chosen folder, more checks apply.
fn workspace(confinement: &Confinement, places: &Places<'_>) -> Result<(PathBuf, bool), ActionError> {
    for pattern in &confinement.workspaces {
        if let Some(chosen) = among(pattern, places)? {
            return Ok(chosen);
        }
    }
    if let Some(cwd) = places.of_profile {
        return Ok((places.named(cwd)?.at, false));
    }
    if !confinement.workspaces.is_empty() {
        let there: Vec<_> = confinement.workspaces.iter().map(|it| it.display().to_string()).collect();
        let (shown, there) = (places.directory.display(), there.join(", "));
        return Err(of_directory(format!("{shown} is in none of the workspaces of its profile: {there}")));
    }
    if places.is_bound {
        let problem = "a token that is bound to profiles cannot choose the folder that its sessions can change; \
            give the profile a \
                       `cwd`, or its confinement `workspaces` or `writable`";
        return Err(of_profile(problem.to_owned()));
    }
    Ok((places.directory.to_owned(), true))
}

/// The workspace of this pattern that the session's directory is, or is in, and whether the pattern has more than one.
fn among(pattern: &Path, places: &Places<'_>) -> Result<Option<(PathBuf, bool)>, ActionError> {
    let (folder, each) = match pattern.parent() {
        Some(folder) if pattern.ends_with("*") => (folder, true),
        _ => (pattern, false),
    };
    if folder.as_os_str().as_bytes().contains(&b'*') {
        let shown = pattern.display();
        return Err(of_profile(format!("workspaces: {shown} has a `*` that is not the whole last name")));
    }
    let folder = places.named(folder)?.at;
    let Ok(inside) = places.directory.strip_prefix(&folder) else { return Ok(None) };
    if !each {
        return Ok(Some((folder, false)));
    }
    let Some(name) = inside.iter().next() else { return Ok(None) };
    let workspace = folder.join(name);
    if name.as_bytes().starts_with(b".") {
        return Err(no_directory(&workspace));
    }
    Ok(Some((workspace, true)))
}

/// Refuses a folder of git's own, a folder of programs, and a folder that holds one of the server's PATH: programs outside
/// run files from there.
fn check_programs(workspace: &Path, places: &Places<'_>) -> Result<(), ActionError> {
    let shown = workspace.display();
    let on_path = places.programs.iter().map(|folder| (places.resolved)(folder)).find(|it| it.starts_with(workspace));
    let why = if workspace.iter().any(|name| name == ".git") {
        format!("{shown} is git's own")
    } else if workspace.file_name().is_some_and(|name| PROGRAM_FOLDERS.iter().any(|usual| name == *usual)) {
        format!("{shown} is named like a folder of programs")
    } else if let Some(folder) = on_path {
        format!("{} is on the server's PATH", folder.display())
    } else {
        return Ok(());
    };
    Err(of_directory(format!(
        "{why}, and a confined session can change its working directory: choose a project's folder, or name it in the \
         profile (`cwd`)"
    )))
}

/// Refuses a folder that holds a secret or lies in one.
fn check_secrets(workspace: &Path, secrets: &[PathBuf]) -> Result<(), ActionError> {
    if secrets.iter().any(|secret| workspace.starts_with(secret)) {
        return Err(no_directory(workspace));
    }
    let Some(inside) = secrets.iter().find(|secret| secret.starts_with(workspace)) else { return Ok(()) };
    Err(of_directory(format!(
        "{} contains {}, where secrets are kept, and a confined session can change its working directory: choose a \
         project's folder, or name writable folders in the profile",
        workspace.display(),
        inside.display()
    )))
}

/// The folders of programs in a folder directly below a home, as in `~/go`: such folders are on the PATH of many a shell. A
/// link in the place of one is refused, because a session could replace the link.
fn programs_in(workspace: &Path, places: &Places<'_>) -> Result<Vec<PathBuf>, ActionError> {
    if !homes(workspace, places).any(|home| workspace.parent() == Some(&home)) {
        return Ok(Vec::new());
    }
    let usual = PROGRAM_FOLDERS.iter().map(|name| workspace.join(name));
    let there: Vec<_> = usual.filter(|folder| (places.is_folder)(folder) == Some(true)).collect();
    match there.iter().find(|folder| (places.resolved)(folder) != **folder) {
        Some(link) => {
            let shown = link.display();
            Err(of_directory(format!("{shown} is a link to a folder of programs: choose a project's folder")))
        }
        None => Ok(there),
    }
}

/// The server's home, the home in which a folder is, and root's.
fn homes(folder: &Path, places: &Places<'_>) -> impl Iterator<Item = PathBuf> {
    let own = places.home.map(|home| (places.resolved)(home));
    let user = folder.strip_prefix("/home").ok().and_then(|inside| inside.iter().next());
    own.into_iter().chain(user.map(|user| Path::new("/home").join(user))).chain(["/root".into()])
}

/// Refuses a folder of the system's, a shared folder, another's home as a whole, and a folder in a hidden folder of a home.
/// Programs outside run files of such folders (`~/.config/fish`, `~/.cargo/bin`).
fn check_project(workspace: &Path, places: &Places<'_>) -> Result<(), ActionError> {
    if places.home.is_some_and(|home| (places.resolved)(home) == workspace) {
        // Its secrets tell.
        return Ok(());
    }
    let is_the_homes = |home: PathBuf| {
        let first = workspace.strip_prefix(home).map(|inside| inside.iter().next());
        first.is_ok_and(|first| first.is_none_or(|first| first.as_encoded_bytes().starts_with(b".")))
    };
    let is_systems = SYSTEM.iter().any(|folder| workspace.starts_with(folder));
    let is_whole = HIDDEN.iter().chain(&ABOVE_PROJECTS).any(|folder| workspace == Path::new(folder));
    if !is_systems && !is_whole && !homes(workspace, places).any(is_the_homes) {
        return Ok(());
    }
    let shown = workspace.display();
    Err(of_directory(format!(
        "{shown} cannot be the working directory of a confined session unless its profile names it (`cwd`, or \
         `workspaces` without `*`): choose a project's folder"
    )))
}

fn is_link(name: &Path, link: &Path) -> ActionError {
    let (name, link) = (name.display(), link.display());
    of_profile(format!("{name} leads through the link {link}, which a session could have made; name the real path"))
}

pub(super) fn of_profile(problem: String) -> ActionError {
    ActionError::Invalid { field: "profile", problem: format!("confinement: {problem}") }
}

fn of_directory(problem: String) -> ActionError {
    ActionError::Invalid { field: "cwd", problem }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::HashSet;
    use std::sync::LazyLock;

    use super::*;

    fn places(workspace: &str) -> Places<'_> {
        Places {
            home: Some(Path::new("/home/ann")),
            session_home: None,
            directory: Path::new(workspace),
            of_profile: None,
            is_bound: false,
            own: &[],
            programs: programs_by_test(),
            resolved: &resolved_by_test,
            place: &place_by_test,
            is_folder: &is_folder_by_test,
        }
    }

    /// A project with settings, and one in a working tree of git's.
    fn is_folder_by_test(path: &Path) -> Option<bool> {
        match path.to_str()? {
            "/srv/a/.git" | "/srv/a/.git/hooks" | "/home/ann/src/.vscode" => Some(true),
            "/home/ann/go/bin" | "/home/ann/node_modules/.bin" | "/home/ann/opt/bin" => Some(true),
            "/srv/a/.git/config" | "/home/ann/src/.git" | "/home/ann/a/link/.envrc" => Some(false),
            _ => None,
        }
    }

    fn programs_by_test() -> &'static [PathBuf] {
        static PROGRAMS: LazyLock<Vec<PathBuf>> = LazyLock::new(|| vec!["/home/ann/tools/run".into(), "/bin".into()]);
        &PROGRAMS
    }

    /// Three links: a folder of secrets, one that a session has made, and one to a folder of programs.
    fn resolved_by_test(path: &Path) -> PathBuf {
        let text = path.to_str().expect("ASCII").replace("/home/ann/.aws", "/home/ann/files/aws");
        text.replace("/home/ann/a/link", "/home/ann/.ssh").replace("/home/ann/opt/bin", "/home/ann/opt/v1").into()
    }

    fn place_by_test(path: &Path) -> Result<PathBuf, PathBuf> {
        let link = Path::new("/home/ann/a/link");
        if path.starts_with(link) { Err(link.to_owned()) } else { Ok(path.to_owned()) }
    }

    fn refused(confinement: &Confinement, places: &Places<'_>) -> Option<String> {
        rules(confinement, places).err().map(|e| e.to_string())
    }

    #[test]
    // promise: access-15
    fn settings_for_a_sandboxs_own_places_are_refused() {
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
            let is_root = workspace.directory == Path::new("/");
            assert_eq!(refused(&confinement, &workspace).is_some(), is_root, "{:?}", workspace.directory);
        }
        for (workspace, why) in [
            ("/home/ann", "contains /home/ann/.ssh"),
            ("/home/ann/files", "contains /home/ann/files/aws"),
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
            ("/opt", "cannot be"),
            ("/opt/tool", "cannot be"),
            ("/srv", "cannot be"),
            ("/home/ann/bin", "a folder of programs"),
            ("/home/ann/go/bin", "a folder of programs"),
            ("/home/ann/node_modules/.bin", "a folder of programs"),
            ("/home/ann/src/.git", "git's own"),
            ("/home/ann/src/.git/hooks", "git's own"),
            ("/home/ann/tools", "/home/ann/tools/run is on the server's PATH"),
            ("/home/ann/tools/run", "/home/ann/tools/run is on the server's PATH"),
        ] {
            assert!(refused(&confinement, &places(workspace)).is_some_and(|said| said.contains(why)), "{workspace}");
        }
        let own = [PathBuf::from("/home/ann/state")];
        assert!(refused(&confinement, &Places { own: &own, ..places("/home/ann/state/x") }).is_some());
        // The operator's own choice of a directory, and of folders.
        let of_profile = |cwd| Places { of_profile: Some(Path::new(cwd)), ..places("/") };
        assert_eq!(refused(&confinement, &of_profile("/var/www")), None);
        let chosen = Confinement { writable: vec!["~/a".into()], ..Confinement::default() };
        let given = rules(&chosen, &places("/home/ann")).expect("its home is not writable");
        assert_eq!(given.writable, [Path::new("/home/ann/a")]);
    }

    #[test]
    // promise: access-13
    fn a_profile_names_the_writable_places_in_every_tier() {
        let paths = |path: &str| vec![PathBuf::from(path)];
        type OfTier = fn(&Confinement, &Places<'_>) -> Result<Rules, ActionError>;
        let of_tiers: [(_, OfTier); 3] = [
            (ConfinementTier::Process, rules),
            (ConfinementTier::Sandbox, rules),
            (ConfinementTier::Container, crate::sessions::launch::container::mounts),
        ];
        for (tier, rules) in of_tiers {
            let of = |change: fn(&mut Confinement, Vec<PathBuf>), path: &str| {
                let mut confinement = Confinement { tier, ..Confinement::default() };
                change(&mut confinement, paths(path));
                confinement
            };
            let write: fn(&mut Confinement, Vec<PathBuf>) = |it, paths| it.writable = paths;
            let read: fn(&mut Confinement, Vec<PathBuf>) = |it, paths| it.readable = paths;
            let own = [PathBuf::from("/home/ann/state/ptyd")];
            let usual = Places { own: &own, ..places("/home/ann/src") };
            let refused = |confinement: &Confinement, places: &Places<'_>| {
                rules(confinement, places).err().map(|e| e.to_string()).unwrap_or_default()
            };
            for (confinement, why) in [
                (of(write, "~/a/link"), "leads through the link /home/ann/a/link"),
                (of(write, "~/a/link/deeper"), "leads through the link"),
                (of(read, "~/a/link/id"), "leads through the link"),
                (of(write, "a"), "is relative"),
                (of(write, "~"), "contains /home/ann/state/ptyd"),
                (of(write, "/"), "contains /home/ann/state/ptyd"),
                (of(write, "~/.config"), "contains /home/ann/.config"),
                (of(write, "~/state/ptyd/sessions"), "is the server's own"),
                (of(read, "~/state/ptyd"), "/home/ann/state/ptyd"),
            ] {
                let said = refused(&confinement, &usual);
                assert!(said.contains(why), "{tier:?} {confinement:?}: {said}");
            }
            let linked = Places { of_profile: Some(Path::new("/home/ann/a/link")), ..usual };
            let of_profile = Confinement { tier, ..Confinement::default() };
            assert!(refused(&of_profile, &linked).contains("leads through the link"), "{tier:?}");
            assert_eq!(refused(&of(write, "~/a"), &Places { own: &own, ..places("/home/ann/src") }), "");
        }
    }

    #[test]
    // promise: access-13
    fn a_profile_names_the_folders_from_which_its_sessions_choose() {
        let of = |patterns: &[&str]| Confinement {
            workspaces: patterns.iter().map(PathBuf::from).collect(),
            ..Confinement::default()
        };
        let given = |confinement: &Confinement, places: &Places<'_>| match rules(confinement, places) {
            Ok(rules) => rules.writable.first().map(|path| path.display().to_string()).unwrap_or_default(),
            Err(e) => e.to_string(),
        };
        let systems = ["/etc/*", "/var/lib/*", "/opt/*", "/usr/local/share/*", "/var/www/site", "~/.local/share/*"];
        for (directory, expected) in [
            ("/etc/x.d", "cannot be"),
            ("/var/lib/x.d", "cannot be"),
            ("/opt/x.d", "cannot be"),
            ("/usr/local/share/x.d", "cannot be"),
            ("/home/ann/.local/share/x", "cannot be"),
            ("/var/www/site/x", "/var/www/site"),
        ] {
            let said = given(&of(&systems), &Places { is_bound: true, ..places(directory) });
            assert!(said.contains(expected), "{directory}: {said}");
        }
        let both = of(&["~/src/*", "/srv/site"]);
        for (directory, expected) in [
            ("/home/ann/src/web", "/home/ann/src/web"),
            ("/home/ann/src/web/deep/.git/bin", "/home/ann/src/web"),
            ("/srv/site/x", "/srv/site"),
            ("/home/ann/src", "is in none of the workspaces of its profile: ~/src/*, /srv/site"),
            ("/home/ann/.ssh/none", "is in none of the workspaces"),
            ("/home/ann/src/.git", "cannot be"),
            ("/home/ann/src/bin", "a folder of programs"),
        ] {
            let said = given(&both, &Places { is_bound: true, ..places(directory) });
            assert!(said.contains(expected), "{directory}: {said}");
        }
        assert!(given(&of(&["~/*"]), &places("/home/ann/tools")).contains("is on the server's PATH"));
        assert!(given(&of(&["/home/*"]), &places("/home/ann/src")).contains("contains /home/ann/.ssh"));
        assert!(given(&of(&["~/a/link/*"]), &places("/home/ann/src")).contains("leads through the link"));
        assert!(given(&of(&["~/*/web"]), &places("/home/ann/src")).contains("has a `*` that is not"));
        // The profile's own directory counts where no pattern matches, and a bound token needs one of all these.
        let cwd = Some(Path::new("/srv/own"));
        assert_eq!(given(&both, &Places { of_profile: cwd, ..places("/srv/own") }), "/srv/own");
        assert_eq!(given(&of(&[]), &Places { of_profile: cwd, is_bound: true, ..places("/") }), "/srv/own");
        let bound = Places { is_bound: true, ..places("/home/ann/src") };
        assert!(given(&of(&[]), &bound).contains("give the profile a `cwd`"));
        let writable = Confinement { writable: vec!["~/a".into()], ..Confinement::default() };
        assert_eq!(given(&writable, &bound), "/home/ann/a");
    }

    #[test]
    // promise: access-15
    fn a_projects_settings_are_read_only_unless_its_profile_allows_changes() {
        let of = |tier| Confinement { tier, ..Confinement::default() };
        let given = |confinement: &Confinement, directory| {
            let rules = rules(confinement, &places(directory)).expect("a project");
            [rules.writable, rules.kept].map(|all| all.iter().map(|it| it.display().to_string()).collect::<Vec<_>>())
        };
        let sandbox = of(ConfinementTier::Sandbox);
        let of_git = [vec!["/srv/a", "/srv/a/.git"], vec!["/srv/a/.git/config", "/srv/a/.git/hooks"]];
        assert_eq!(given(&sandbox, "/srv/a"), of_git);
        let of_tree = [vec!["/home/ann/src"], vec!["/home/ann/src/.vscode", "/home/ann/src/.git"]];
        assert_eq!(given(&sandbox, "/home/ann/src"), of_tree);
        let changed = Confinement { project_settings: true, ..sandbox.clone() };
        assert_eq!(given(&of(ConfinementTier::Process), "/srv/a"), of_git);
        assert_eq!(given(&changed, "/srv/a"), [vec!["/srv/a"], Vec::new()]);
        let named = Confinement { writable: vec!["/srv/a".into(), "/srv/a/.git/hooks".into()], ..sandbox };
        assert_eq!(given(&named, "/").last().map(Vec::as_slice), Some(&["/srv/a/.git/config".to_owned()][..]));
    }

    #[test]
    // promise: access-13
    fn a_request_that_chooses_a_folder_of_the_home_cannot_change_the_programs_in_it() {
        let kept = |confinement: &Confinement, directory| match rules(confinement, &places(directory)) {
            Ok(rules) => rules.kept.iter().map(|it| it.display().to_string()).collect::<Vec<_>>().join(" "),
            Err(e) => e.to_string(),
        };
        let of = |pattern: &str, project_settings| Confinement {
            workspaces: vec![pattern.into()],
            project_settings,
            ..Confinement::default()
        };
        for confinement in [Confinement::default(), of("~/*", false), of("~/*", true)] {
            assert_eq!(kept(&confinement, "/home/ann/go"), "/home/ann/go/bin");
            assert_eq!(kept(&confinement, "/home/ann/node_modules"), "/home/ann/node_modules/.bin");
            assert!(
                kept(&confinement, "/home/ann/opt").contains("/home/ann/opt/bin is a link to a folder of programs")
            );
            assert_eq!(kept(&confinement, "/home/ann/web"), "");
        }
        assert_eq!(kept(&of("~/go", false), "/home/ann/go"), "", "the operator's own choice");
    }

    #[test]
    // promise: access-13
    fn a_hidden_directory_is_refused_in_the_same_words_whether_it_exists_or_not() {
        let confinement = Confinement { writable: vec!["~/a".into()], ..Confinement::default() };
        let sandbox = Confinement { tier: ConfinementTier::Sandbox, ..confinement.clone() };
        for confinement in [&confinement, &sandbox] {
            for hidden in ["/home/ann/.ssh", "/home/ann/.ssh/none", "/root/none", "/home/bob/src", "/tmp/none"] {
                let said = refused(confinement, &places(hidden));
                assert!(said.is_some_and(|said| said.contains("cannot be the working directory")), "{hidden}");
            }
            for open in ["/home/ann", "/home/ann/none", "/usr/none", "/"] {
                assert_eq!(refused(confinement, &places(open)), None, "{open}");
            }
        }
        assert_eq!(refused(&sandbox, &places("/tmp")), None, "its own");
    }

    #[test]
    // promise: access-13
    fn no_link_is_followed_after_a_place_was_checked() {
        let looks = RefCell::new(HashSet::new());
        let exchanged = |path: &Path| match looks.borrow_mut().insert(path.to_owned()) {
            true => path.to_owned(),
            false => "/home/ann/.ssh".into(),
        };
        let place = |path: &Path| Ok(exchanged(path));
        let places = Places { resolved: &exchanged, place: &place, ..places("/home/ann/src") };
        exchanged(places.directory);
        let given = rules(&Confinement::default(), &places).expect("a project");
        assert_eq!(given.writable, [Path::new("/home/ann/src")]);
        let paths = |path: &str| vec![PathBuf::from(path)];
        let named = Confinement { writable: paths("/srv/b"), readable: paths("/srv/b/b"), ..Confinement::default() };
        let given = rules(&named, &places).expect("both are places of the profile");
        assert_eq!(given.writable, [Path::new("/srv/b")]);
        assert_eq!(given.readable.last().map(PathBuf::as_path), Some(Path::new("/srv/b/b")));
    }

    #[test]
    fn hidden_places_are_hidden_in_every_home_and_by_the_profile() {
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
