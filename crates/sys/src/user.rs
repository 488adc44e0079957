//! Users of this machine, from its databases (getpwnam(3)): files, LDAP, or whatever is configured.

use std::ffi::{CStr, CString};
use std::fs::Metadata;
use std::io;
use std::path::Path;

/// A user as whom a shell can be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The login name.
    pub name: String,
    /// The user's number.
    pub uid: u32,
    /// The primary group.
    pub gid: u32,
    /// All groups, including the primary one.
    pub groups: Vec<u32>,
    /// The home directory.
    pub home: Vec<u8>,
    /// The login shell.
    pub shell: Vec<u8>,
}

impl User {
    /// The user, the primary group and all groups.
    pub fn identity(&self) -> Vec<u32> {
        [&[self.uid, self.gid][..], &self.groups].concat()
    }
}

/// The file or folder at this path, behind every link, as far as somebody with this [identity](User::identity) may look. Only root
/// can look as another user.
pub fn metadata_as(identity: &[u32], path: &Path) -> io::Result<Metadata> {
    let [uid, gid, groups @ ..] = identity else { return Err(io::ErrorKind::InvalidInput.into()) };
    // A thread takes the identity for file access, and ends with it. Nobody else can send signals to it.
    let look = || {
        // SAFETY: the pointer and the length are those of a live slice. The kernel changes only the calling thread; the C
        // library's setgroups would change all threads. setfsuid(-1) changes nothing and returns the present one.
        let is_set = unsafe {
            let is_set = libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) == 0;
            libc::syscall(libc::SYS_setfsgid, *gid);
            libc::syscall(libc::SYS_setfsuid, *uid);
            let now = |call| u32::try_from(libc::syscall(call, u32::MAX)).ok();
            is_set && now(libc::SYS_setfsgid) == Some(*gid) && now(libc::SYS_setfsuid) == Some(*uid)
        };
        if is_set { std::fs::metadata(path) } else { Err(io::ErrorKind::PermissionDenied.into()) }
    };
    std::thread::scope(|scope| {
        let looking = std::thread::Builder::new().name("look".to_owned()).spawn_scoped(scope, look)?;
        looking.join().unwrap_or_else(|_| Err(io::Error::other("the look failed")))
    })
}

/// A record of a user database has a few hundred bytes.
const RECORD_BYTES: usize = 64 << 10;
/// The limit of Linux (NGROUPS_MAX).
const GROUPS_MAX: usize = 65_536;

/// Looks a user up by login name.
pub fn named(name: &str) -> io::Result<Option<User>> {
    let Ok(name_c) = CString::new(name) else { return Ok(None) };
    let mut buffer = vec![0; RECORD_BYTES];
    let mut found = std::ptr::null_mut();
    // SAFETY: `passwd` is plain pointers and numbers, for which zeroes are valid until getpwnam_r fills them in.
    let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
    // SAFETY: all pointers are to live locals, and the length is the buffer's own.
    let failed =
        unsafe { libc::getpwnam_r(name_c.as_ptr(), &mut entry, buffer.as_mut_ptr(), buffer.len(), &mut found) };
    if failed != 0 {
        return Err(io::Error::from_raw_os_error(failed));
    }
    if found.is_null() {
        return Ok(None);
    }
    // SAFETY: getpwnam_r has found an entry, so these point at strings within `buffer`, which lives.
    let [home, shell] = unsafe { [CStr::from_ptr(entry.pw_dir), CStr::from_ptr(entry.pw_shell)] };
    let (home, shell) = (home.to_bytes().to_vec(), shell.to_bytes().to_vec());
    let groups = groups_of(&name_c, entry.pw_gid)?;
    Ok(Some(User { name: name.to_owned(), uid: entry.pw_uid, gid: entry.pw_gid, groups, home, shell }))
}

fn groups_of(name: &CStr, gid: u32) -> io::Result<Vec<u32>> {
    let mut groups = vec![0; 64];
    loop {
        let mut count = libc::c_int::try_from(groups.len()).unwrap_or(libc::c_int::MAX);
        // SAFETY: `groups` has room for `count` numbers, and the name ends with NUL.
        if unsafe { libc::getgrouplist(name.as_ptr(), gid, groups.as_mut_ptr(), &mut count) } >= 0 {
            groups.truncate(usize::try_from(count).unwrap_or(0));
            return Ok(groups);
        }
        if groups.len() >= GROUPS_MAX {
            return Err(io::Error::other("more groups than the kernel allows"));
        }
        groups.resize(groups.len() * 2, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    // promise: access-13
    fn a_check_as_another_user_sees_only_that_users_files_and_changes_nothing_else() {
        let place = tempfile::tempdir().expect("a folder");
        let (shut, file) = (place.path().join("shut"), place.path().join("shut/file"));
        std::fs::create_dir(&shut).expect("made");
        std::fs::write(&file, "text").expect("written");
        let mode = |path: &Path, mode: u32| rustix::fs::chmod(path, mode.into()).expect("changed");
        mode(&shut, 0o700);
        let own = [rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw()];
        if own[0] != 0 {
            assert!(metadata_as(&[0, 0, 0], &file).is_err(), "only root can look as another user");
            return;
        }
        let kind = |identity: &[u32]| metadata_as(identity, &file).map(|_| ()).map_err(|e| e.kind());
        mode(place.path(), 0o755);
        assert_eq!(kind(&[0, 0, 0]), Ok(()));
        assert_eq!(kind(&[65_534, 65_534, 65_534]), Err(io::ErrorKind::PermissionDenied));
        assert_eq!(metadata_as(&[65_534, 65_534], &shut).map(|it| it.is_dir()).ok(), Some(true));
        mode(&shut, 0o710);
        rustix::fs::chown(&shut, None, Some(rustix::fs::Gid::from_raw(4_242))).expect("changed");
        assert_eq!(kind(&[65_534, 65_534, 4_242]), Ok(()), "by one of the groups");
        mode(&shut, 0o700);
        assert!(std::fs::metadata(&file).is_ok(), "this thread is still the server's user");
    }

    #[test]
    fn root_has_a_name_and_no_other_user_is_invented() {
        let root = named("root").expect("a database").expect("on every machine");
        assert_eq!((root.uid, root.gid, root.groups.contains(&0)), (0, 0, true));
        assert!(named("no such user").expect("a database").is_none());
    }
}
