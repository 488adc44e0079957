//! The user and the machine of the shells: terminal-mcp.md's `username` and `hostname`.
//!
//! Read once: neither changes while the server runs.

use std::os::unix::fs::MetadataExt;

/// The user and the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Host {
    /// The user's name, or its number if it has no name.
    pub user: String,
    /// The machine's name.
    pub name: String,
}

impl Host {
    /// Those of this process.
    pub fn here() -> Self {
        let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned();
        // The variable USER may be wrong; the kernel knows the user of this process.
        let uid = std::fs::metadata("/proc/self").map_or(0, |m| m.uid());
        let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        Self { user: user_name(&passwd, uid).unwrap_or_else(|| uid.to_string()), name }
    }
}

/// The name of a user id in passwd(5).
fn user_name(passwd: &str, uid: u32) -> Option<String> {
    let uid = uid.to_string();
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == uid).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_named_by_its_number_in_passwd() {
        let passwd = "root:x:0:0:root:/root:/bin/bash\nalice:x:1000:1000::/home/alice:/bin/sh\n";
        assert_eq!(
            [0, 1000, 7].map(|uid| user_name(passwd, uid)),
            [Some("root".to_owned()), Some("alice".to_owned()), None]
        );
    }
}
