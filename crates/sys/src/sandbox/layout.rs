//! The mounts of a sandbox, prepared before the fork: the machine's file system, read-only, and over it in the order of
//! their paths empty folders in the place of hidden ones, private places, and what can be read or changed.

use std::ffi::CString;
use std::io;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};

use crate::confinement::{Namespaces, Rules, resolved, resolved_all};

/// Folders for temporary files that every sandbox has for itself.
pub const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];
/// Where a sandbox has a file system of its own: nothing outside is shown there.
pub const OWN: [&str; 3] = ["/dev/pts", "/dev/ptmx", "/proc"];

/// A small file system of our own, with empty folders, is at this place until the sandbox's `/proc` is.
const EMPTY: &str = "/proc";
/// Its folder of devices.
const DEVICES: &str = "/proc/dev";

/// The mounts of a sandbox.
#[derive(Debug)]
pub struct Layout {
    pub(super) network: bool,
    /// Only the mounts are the session's own.
    pub(super) is_shared: bool,
    pub(super) entries: Vec<Entry>,
    /// One line each of uid_map and gid_map (user_namespaces(7)): the caller's own ids, unchanged.
    pub(super) uid: CString,
    pub(super) gid: CString,
}

/// A mount.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) target: CString,
    /// Folders above the target to make first.
    pub(super) made: Vec<CString>,
    pub(super) kind: Kind,
    /// The place that is shown there; of a hidden folder the name of an empty one.
    pub(super) source: CString,
    /// The detached copy of the source, -1 if there is none.
    pub(super) tree: RawFd,
    pub(super) is_directory: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing is there.
    Hidden,
    /// The folder of devices.
    Devices,
    Device,
    Readable,
    Writable,
}

/// Targets with their kinds and sources, in order: parents come before what is in them. A map of the standard library would be
/// most of the code here.
#[derive(Default)]
struct Plan(Vec<(PathBuf, Kind, PathBuf)>);

impl Plan {
    /// The machine's files, of which some can be changed.
    fn shared(rules: &Rules, temporary: Option<&Path>) -> Self {
        let mut plan = Self::default();
        for path in rules.writable.iter().map(PathBuf::as_path).chain(temporary) {
            plan.set(path.to_owned(), Kind::Writable, path.to_owned());
        }
        plan.show(&rules.kept, Kind::Readable);
        plan
    }

    fn place(&self, target: &Path) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, ..)| known.as_path().cmp(target))
    }

    fn kind(&self, target: &Path) -> Option<Kind> {
        self.place(target).ok().and_then(|at| self.0.get(at)).map(|(_, kind, _)| *kind)
    }

    fn set(&mut self, target: PathBuf, kind: Kind, source: PathBuf) {
        match self.place(&target) {
            Ok(at) => self.0[at] = (target, kind, source),
            Err(at) => self.0.insert(at, (target, kind, source)),
        }
    }

    /// Shows these paths, but none where the sandbox has its own.
    fn show(&mut self, paths: &[PathBuf], kind: Kind) {
        for path in paths.iter().filter(|path| !is_own(path)) {
            self.set(path.clone(), kind, path.clone());
        }
    }

    /// The kind of the nearest mount above a path.
    fn above(&self, path: &Path) -> Option<Kind> {
        path.ancestors().skip(1).find_map(|above| self.kind(above))
    }

    /// Whether a path is in a folder that begins empty, and not in one that shows the machine's own.
    fn is_private(&self, path: &Path) -> bool {
        let above = path.ancestors().skip(1).find_map(|above| self.place(above).ok().and_then(|at| self.0.get(at)));
        above.is_some_and(|(target, _, source)| target != source)
    }

    /// Whether something is shown in the folder at this place, which is therefore made where it is missing.
    fn has_content(&self, at: usize, folder: &Path) -> bool {
        let inside = self.0.iter().skip(at + 1).take_while(|(path, ..)| path.starts_with(folder));
        inside.into_iter().any(|(_, kind, _)| *kind != Kind::Hidden)
    }

    /// Whether it was there.
    fn remove(&mut self, target: &Path) -> bool {
        self.place(target).map(|at| self.0.remove(at)).is_ok()
    }
}

impl Layout {
    /// Looks at the paths of these rules. `temporary` is shown as each folder for temporary files.
    pub fn prepare(rules: &Rules, temporary: Option<&Path>) -> io::Result<Self> {
        if rules.namespaces == Namespaces::Shared {
            return Self::of(rules, &Plan::shared(rules, temporary));
        }
        let mut plan = Plan::default();
        let hidden: Vec<PathBuf> = resolved_all(&rules.hidden).into_iter().filter(|path| !is_own(path)).collect();
        for path in &hidden {
            plan.set(path.clone(), Kind::Hidden, PathBuf::new());
        }
        for place in TEMPORARY.iter().map(Path::new).filter(|place| place.is_dir()) {
            let kind = if temporary.is_some() { Kind::Writable } else { Kind::Hidden };
            plan.set(resolved(place), kind, temporary.unwrap_or(Path::new("")).to_owned());
        }
        plan.set("/dev".into(), Kind::Devices, PathBuf::new());
        plan.show(&rules.devices, Kind::Device);
        let is_there = |path: &&PathBuf| path.symlink_metadata().is_ok() && *path != Path::new("/") && !is_own(path);
        let mut readable: Vec<_> = rules.readable.iter().filter(is_there).cloned().collect();
        // The outer ones first.
        while let Some(at) = (0..readable.len()).min_by_key(|at| readable.get(*at)) {
            read(&mut plan, readable.swap_remove(at), &hidden)?;
        }
        plan.show(&rules.writable, Kind::Writable);
        // Last: over what can be changed.
        plan.show(&rules.kept, Kind::Readable);
        Self::of(rules, &plan)
    }

    fn of(rules: &Rules, plan: &Plan) -> io::Result<Self> {
        let ids = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        Ok(Self {
            network: rules.network,
            is_shared: rules.namespaces == Namespaces::Shared,
            entries: entries(plan)?,
            uid: text(format!("{0} {0} 1", ids.0))?,
            gid: text(format!("{0} {0} 1", ids.1))?,
        })
    }
}

fn is_own(path: &Path) -> bool {
    path == Path::new("/dev") || OWN.iter().any(|own| path.starts_with(own))
}

/// Shows a path that can be read, where something above it is not the machine's own.
fn read(plan: &mut Plan, path: PathBuf, hidden: &[PathBuf]) -> io::Result<()> {
    match plan.above(&path) {
        Some(Kind::Writable) => return read_in_part(plan, path, hidden),
        Some(Kind::Hidden) => plan.set(path.clone(), Kind::Readable, path),
        // It is there, unless it was hidden itself.
        _ => drop(plan.remove(&path)),
    }
    Ok(())
}

/// Shows a path in a folder for temporary files. A right of Landlock to that folder holds for all that is mounted in it. So, as
/// Landlock's own rules do it, a folder with something hidden below is shown entry by entry: what is hidden or made later is not there.
fn read_in_part(plan: &mut Plan, path: PathBuf, hidden: &[PathBuf]) -> io::Result<()> {
    if !hidden.iter().any(|it| *it != path && it.starts_with(&path)) {
        plan.set(path.clone(), Kind::Readable, path);
        return Ok(());
    }
    let entries = match std::fs::read_dir(&path) {
        Ok(entries) => entries.collect::<io::Result<Vec<_>>>()?,
        // Nothing in it can be named then, or it is gone.
        Err(e) if matches!(e.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound) => Vec::new(),
        Err(e) => return Err(e),
    };
    plan.set(path, Kind::Hidden, PathBuf::new());
    for entry in entries {
        let inside = entry.path();
        if !hidden.contains(&inside) && !entry.file_type()?.is_symlink() {
            read_in_part(plan, inside, hidden)?;
        }
    }
    Ok(())
}

fn entries(plan: &Plan) -> io::Result<Vec<Entry>> {
    let mut all = Vec::with_capacity(plan.0.len());
    for (at, (target, kind, source)) in plan.0.iter().enumerate() {
        // An empty folder is of no use unless something is shown there.
        let mut made = Vec::new();
        if plan.is_private(target) && (*kind != Kind::Hidden || plan.has_content(at, target)) {
            for folder in target.ancestors().take_while(|it| *it == target || plan.kind(it).is_none()) {
                made.insert(0, path_text(folder)?);
            }
        }
        let source = match kind {
            Kind::Hidden => text(format!("{EMPTY}/{at}"))?,
            Kind::Devices => text(DEVICES)?,
            _ => path_text(source)?,
        };
        all.push(Entry { target: path_text(target)?, made, kind: *kind, source, tree: -1, is_directory: true });
    }
    Ok(all)
}

fn text(bytes: impl Into<Vec<u8>>) -> io::Result<CString> {
    CString::new(bytes).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))
}

fn path_text(path: &Path) -> io::Result<CString> {
    text(path.as_os_str().as_encoded_bytes())
}
