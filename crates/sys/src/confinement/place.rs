//! Follows a path by its links: by all of them, or by those alone that no session can have made.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// A path with more links than this leads nowhere (path_resolution(7)).
const LINKS_MAX: usize = 40;

/// The folders of a server of root's in which a link is not one of its own sessions'. To them every other folder of root's
/// may be a workspace.
const ABOVE_WORKSPACES: [&str; 4] = ["/", "/home", "/usr", "/var"];

/// The path without symbolic links, as far as it exists.
#[must_use]
pub fn resolved(path: &Path) -> PathBuf {
    follow(path, |_| true).unwrap_or_else(|_| path.to_owned())
}

/// The place that a path names, as far as it exists. The error is the first link on the way that somebody else than root can
/// have made, such as a session that may change a folder above the place.
///
/// A link that comes later is not followed by those who open the place: they follow none.
pub fn place(path: &Path) -> Result<PathBuf, PathBuf> {
    follow(path, is_roots)
}

/// The path without symbolic links, as far as it exists; `None` if it leads through a link in `/proc`, because such a link
/// shows its reader what another process may not see.
#[must_use]
pub fn outside_proc(path: &Path) -> Option<PathBuf> {
    follow(path, |folder| !folder.starts_with("/proc")).ok()
}

/// The path without symbolic links as another process has it, to which `/proc/self` is another one. A link in `/proc` stays where
/// no path leads to what it shows, such as a pipe.
#[must_use]
pub fn seen_by(pid: u32, path: &Path) -> PathBuf {
    let target = |link: &Path| match link.to_str() {
        Some("/proc/self") => Some(PathBuf::from(pid.to_string())),
        Some("/proc/thread-self") => Some(PathBuf::from(format!("{pid}/task/{pid}"))),
        Some(_) | None => {
            let is_plain = !link.starts_with("/proc") || link.parent() == Some(Path::new("/proc"));
            link.read_link().ok().filter(|to| is_plain || to.is_absolute() && to.exists())
        }
    };
    follow_by(path, target, |_| true).unwrap_or_else(|_| path.to_owned())
}

/// Whether root alone can make a link in a folder whose path has no links.
fn is_roots(folder: &Path) -> bool {
    let is_closed = |folder: &Path| {
        let metadata = folder.symlink_metadata();
        metadata.is_ok_and(|it| it.uid() == 0 && (it.mode() & 0o022 == 0))
    };
    let is_above = || ABOVE_WORKSPACES.iter().any(|above| folder == Path::new(above));
    folder.ancestors().all(is_closed) && (!rustix::process::geteuid().is_root() || is_above())
}

/// Follows the links in folders for which `follows` is true; the error is another link.
fn follow(path: &Path, follows: impl Fn(&Path) -> bool) -> Result<PathBuf, PathBuf> {
    follow_by(path, |link| link.read_link().ok(), follows)
}

/// The same where each link leads to this target.
fn follow_by(
    path: &Path,
    target: impl Fn(&Path) -> Option<PathBuf>,
    follows: impl Fn(&Path) -> bool,
) -> Result<PathBuf, PathBuf> {
    let (mut place, mut rest, mut links) = (PathBuf::new(), names(path), 0);
    while let Some(name) = rest.pop_front() {
        if name == ".." {
            place.pop();
            continue;
        }
        let next = place.join(name);
        match target(&next) {
            Some(_) if links == LINKS_MAX || !follows(&place) => return Err(next),
            Some(target) => {
                links += 1;
                let mut target = names(&target);
                target.append(&mut rest);
                rest = target;
            }
            None => place = next,
        }
    }
    Ok(place)
}

/// The components of a path; the first one of an absolute path is `/`, which replaces all before it.
fn names(path: &Path) -> VecDeque<OsString> {
    let names = path.components().filter(|it| *it != Component::CurDir);
    names.map(|it| it.as_os_str().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    // promise: access-13
    fn no_link_in_proc_is_followed_for_a_confined_session() {
        let folder = tempfile::tempdir().expect("a folder");
        let link = folder.path().join("link");
        symlink("/proc/self/root", &link).expect("made");
        for path in ["/proc/self/fd/0", "/proc/self", "/dev/fd/0", link.to_str().expect("text")] {
            assert_eq!(outside_proc(Path::new(path)), None, "{path}");
        }
        for path in ["/proc/1/stat", "/dev/null"] {
            assert_eq!(outside_proc(Path::new(path)), Some(path.into()));
        }
    }

    #[test]
    // promise: wait-5
    fn a_link_to_proc_self_leads_to_the_process_that_sees_it() {
        let child = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn();
        let mut child = child.expect("cat runs");
        let pid = child.id();
        let folder = tempfile::tempdir().expect("a folder");
        let own = folder.path().canonicalize().expect("there");
        symlink("/proc/self/fd", own.join("link")).expect("made");
        let cwd = std::env::current_dir().expect("a folder");
        for (path, seen) in [
            ("/dev/fd/0", format!("/proc/{pid}/fd/0")),
            ("/dev/stdin", format!("/proc/{pid}/fd/0")),
            ("/proc/thread-self/stat", format!("/proc/{pid}/task/{pid}/stat")),
            ("/proc/../proc/self/stat", format!("/proc/{pid}/stat")),
            ("/proc/mounts", format!("/proc/{pid}/mounts")),
            ("/proc/self/cwd", cwd.display().to_string()),
            (own.join("link/0").to_str().expect("text"), format!("/proc/{pid}/fd/0")),
            ("/dev/null", "/dev/null".to_owned()),
        ] {
            assert_eq!(seen_by(pid, Path::new(path)), Path::new(&seen), "{path}");
        }
        child.kill().expect("ours");
        child.wait().expect("ours");
    }

    #[test]
    // promise: access-13
    fn a_place_is_the_written_path_except_for_links_that_root_made() {
        let folder = tempfile::tempdir().expect("a folder");
        let own = folder.path().canonicalize().expect("there");
        std::fs::create_dir_all(own.join("src/web")).expect("made");
        symlink(own.join("src"), own.join("link")).expect("made");
        symlink("../src/./web/nothing", own.join("src/relative")).expect("made");
        symlink("turns", own.join("turns")).expect("made");
        let at = |path: &str| own.join(path);
        for (path, found, link) in [
            ("src/web", "src/web", None),
            ("src/web/later/deeper", "src/web/later/deeper", None),
            ("src/../src/./web", "src/web", None),
            ("link", "src", Some("link")),
            ("link/web/later", "src/web/later", Some("link")),
            ("src/relative", "src/web/nothing", Some("src/relative")),
            ("link/relative/below", "src/web/nothing/below", Some("link")),
            ("link/../src", "src", Some("link")),
        ] {
            assert_eq!(resolved(&at(path)), at(found), "{path}");
            assert_eq!(place(&at(path)), link.map_or(Ok(at(found)), |link| Err(at(link))), "{path}");
        }
        assert_eq!((resolved(&at("turns")), place(&at("turns"))), (at("turns"), Err(at("turns"))));
        assert_eq!(place(Path::new("/..//usr/")), Ok("/usr".into()));
        // A folder of the machine that is a link in a folder of root's, where it is one (/bin).
        let programs = Path::new("/bin");
        assert_eq!(place(programs).ok(), programs.canonicalize().ok());
    }
}
