//! Finding programs: by name on the session's PATH, by path, or as the user's own shell.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::kind::Kind;
use super::start::Wanted;

/// Finds an executable by name on a PATH, or accepts a path.
pub(crate) fn find(name: &str, path: Option<&[u8]>) -> Option<PathBuf> {
    if name.is_empty() {
        return None;
    }
    if name.contains('/') {
        let p = PathBuf::from(name);
        return (p.is_absolute() && is_executable(&p)).then_some(p);
    }
    path.unwrap_or(b"/usr/local/bin:/usr/bin:/bin")
        .split(|b| *b == b':')
        .filter(|dir| !dir.is_empty())
        .map(|dir| Path::new(OsStr::from_bytes(dir)).join(name))
        .find(|p| is_executable(p))
}

/// The user's own shell: from `SHELL`, or else from the user database; bash if that shell lacks our integration or the
/// features of an interactive shell.
pub(super) fn users_own(wanted: &Wanted<'_>) -> String {
    let told = wanted.own_shell.and_then(|s| std::str::from_utf8(s).ok()).map(str::to_owned);
    let own = told.filter(|s| find(s, None).is_some()).or_else(login_shell);
    own.filter(|s| is_other_for_people(s)).unwrap_or_else(|| "bash".to_owned())
}

/// Not bash, which is found like any program, nor a service's `/bin/sh`, nor `nologin`.
fn is_other_for_people(shell: &str) -> bool {
    let real = Path::new(shell).canonicalize().unwrap_or_default();
    let kind = real.file_name().map_or(Kind::Other, |name| Kind::of(&name.to_string_lossy()));
    shell.starts_with('/') && matches!(kind, Kind::Zsh | Kind::Fish) && is_executable(&real)
}

/// The last field of the user's line in passwd(5).
fn login_shell() -> Option<String> {
    let uid = rustix::process::getuid().as_raw().to_string();
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let line = users.lines().find(|line| line.split(':').nth(2) == Some(uid.as_str()))?;
    line.split(':').nth(6).map(str::to_owned)
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}
