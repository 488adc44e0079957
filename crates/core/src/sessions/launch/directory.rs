//! The directory in which a new session's shell starts.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::variables::{get, set};
use crate::action::{ActionError, Variables};
use crate::host::{Host, User};

/// Expands `~` to the session's home, which may differ from the server's.
pub(in crate::sessions) fn from_home(path: &Path, home: Option<&[u8]>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => Path::new(OsStr::from_bytes(home)).join(rest),
        _ => path.to_owned(),
    }
}

/// Refuses a directory that is not there. Another user learns no more about it than that user can see.
pub(super) fn check_directory(host: &dyn Host, user: Option<&User>, cwd: &Path) -> Result<(), ActionError> {
    let identity = user.map(User::identity).unwrap_or_default();
    let problem = match (host.file_as(&identity, cwd), user) {
        (Some(file), _) if file.is_directory => return Ok(()),
        (_, Some(user)) => format!("{} is not a directory that {} can use", cwd.display(), user.name),
        (None, None) => format!("{} does not exist", cwd.display()),
        (Some(_), None) => format!("{} is not a directory", cwd.display()),
    };
    Err(ActionError::Invalid { field: "cwd", problem })
}

/// The directory that is asked for, as a whole path.
pub(super) fn full_directory(cwd: Option<&PathBuf>, home: Option<&[u8]>) -> Result<Option<PathBuf>, ActionError> {
    let Some(cwd) = cwd else { return Ok(None) };
    if cwd.starts_with("~") && home.is_none() {
        let problem = format!("{}: HOME is not set in this session's environment", cwd.display());
        return Err(ActionError::Invalid { field: "cwd", problem });
    }
    let cwd = from_home(cwd, home);
    if cwd.is_absolute() && !cwd.as_os_str().as_bytes().contains(&0) {
        return Ok(Some(cwd));
    }
    Err(ActionError::Invalid { field: "cwd", problem: format!("{} is not an absolute path", cwd.display()) })
}

/// Sets `PWD` if it names another directory than the session's, for example the client's own.
pub(super) fn set_directory(host: &dyn Host, env: &mut Variables, cwd: &Path) {
    let which = |path: &Path| host.file(path).map(|file| file.which);
    let told = get(env, b"PWD").map(|told| which(Path::new(OsStr::from_bytes(told))));
    if told.is_none_or(|told| told != which(cwd)) {
        let physical = host.real_path(cwd).unwrap_or_else(|| cwd.to_owned());
        set(env, b"PWD", physical.as_os_str().as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::LocalHost;

    #[test]
    // promise: access-13
    fn another_users_directory_is_refused_in_the_same_words_whether_it_exists_or_not() {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::create_dir_all(dir.path().join("shut/in")).expect("made");
        std::fs::write(dir.path().join("shut/file"), "text").expect("written");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(dir.path().join("shut"), mode).expect("changed");
        let (uid, gid) = (65_534, 65_534);
        let user = User { name: "ann".into(), uid, gid, groups: vec![gid], home: Vec::new(), shell: Vec::new() };
        for name in ["shut/in", "shut/file", "shut/none"].map(|name| dir.path().join(name)) {
            let said = check_directory(&LocalHost::default(), Some(&user), &name).expect_err("it is shut");
            assert_eq!(said.to_string(), format!("cwd: {} is not a directory that ann can use", name.display()));
        }
        assert!(check_directory(&LocalHost::default(), None, &dir.path().join("shut/in")).is_ok());
    }

    #[test]
    fn the_variable_pwd_is_the_sessions_directory_by_its_logical_path() {
        let dir = tempfile::tempdir().expect("a directory");
        let (real, connection) =
            (dir.path().canonicalize().expect("it is there").join("real"), dir.path().join("link"));
        std::fs::create_dir(&real).expect("made");
        std::os::unix::fs::symlink(&real, &connection).expect("made");
        for (told, cwd, expected) in [
            (Some("/"), &connection, &real),
            (None, &real, &real),
            (connection.to_str(), &real, &connection),
            (Some(""), &real, &real),
        ] {
            let mut env: Vec<_> = told.map(|told| (b"PWD".to_vec(), told.as_bytes().to_vec())).into_iter().collect();
            set_directory(&LocalHost::default(), &mut env, cwd);
            assert_eq!(env, [(b"PWD".to_vec(), expected.as_os_str().as_bytes().to_vec())], "{told:?}");
        }
    }
}
