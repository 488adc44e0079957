//! Users of this machine, from its databases (getpwnam(3)): files, LDAP, or whatever is configured.

use std::ffi::{CStr, CString};
use std::io;

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
    fn root_is_known_by_name_and_nobody_else_is_made_up() {
        let root = named("root").expect("a database").expect("on every machine");
        assert_eq!((root.uid, root.gid, root.groups.contains(&0)), (0, 0, true));
        assert!(named("no such user").expect("a database").is_none());
    }
}
