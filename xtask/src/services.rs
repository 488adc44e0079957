//! Installs packages without starting their services: the tests need only the programs, and must not change the
//! services of this machine.
//!
//! A Debian package that brings a service enables and starts it in its maintainers' scripts, through four helpers that they
//! find by PATH. While the tests' packages are installed, others stand before those: what is new stays as if the person who
//! owns the machine had disabled it, also when the package is upgraded later; what was there before is left to the real one.

use anyhow::{Context as _, Result};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// The PATH on which root finds the real programs behind ours.
const ROOTS_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The helpers, and what each does in the real one's place.
const HELPERS: [(&str, &str); 4] = [
    (
        "deb-systemd-helper",
        "\
# A unit that this machine has never had counts as one that was disabled: its state is written, and no link is made.
state=/var/lib/systemd/deb-systemd-helper-enabled
[ \"$1\" != --user ] && [ \"$2\" != --user ] || state=/var/lib/systemd/deb-systemd-user-helper-enabled
for word in \"$@\"; do
  case $word in
    was-enabled) asks=yes ;;
    -*) ;;
    *) unit=$word ;;
  esac
done
if [ -n \"${asks-}\" ] && [ ! -e \"$state/$unit.dsh-also\" ]; then exit 1; fi
exec /usr/bin/deb-systemd-helper \"$@\"
",
    ),
    (
        "deb-systemd-invoke",
        "\
# Only what runs already is restarted.
for word in \"$@\"; do
  case $word in
    -* | start | stop | restart | reload) ;;
    *) systemctl is-active --quiet \"$word\" 2>/dev/null || exit 0 ;;
  esac
done
exec /usr/bin/deb-systemd-invoke \"$@\"
",
    ),
    ("invoke-rc.d", "exit 0\n"),
    (
        "update-rc.d",
        "\
# A script of System V's that is new is left disabled.
if [ \"${2-}\" = defaults ] && ! ls /etc/rc?.d/[SK]??\"$1\" >/dev/null 2>&1; then set -- \"$1\" defaults-disabled; fi
exec /usr/sbin/update-rc.d \"$@\"
",
    ),
];

/// Writes the helpers into a folder, and gives root's search path with it in front.
pub fn keep_off(folder: &Path) -> Result<String> {
    fs::create_dir_all(folder)?;
    for (name, script) in HELPERS {
        let path = folder.join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}")).with_context(|| format!("cannot write {}", path.display()))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    }
    Ok(format!("{}:{ROOTS_PATH}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    // promise: check-2
    fn a_service_that_is_new_counts_as_disabled_and_is_not_started() {
        let folder = std::env::temp_dir().join(format!("ptyd-services-{}", std::process::id()));
        let path = keep_off(&folder).unwrap();
        let code = |line: &str| {
            let status = Command::new("sh").args(["-c", line]).env("PATH", &path).status().unwrap();
            status.code()
        };
        for line in [
            "deb-systemd-helper --quiet was-enabled ptyd-no-such.service",
            "deb-systemd-helper --user was-enabled ptyd-no-such.socket",
        ] {
            assert_eq!(code(line), Some(1), "{line}");
        }
        for line in ["deb-systemd-invoke start ptyd-no-such.service", "invoke-rc.d ptyd-no-such start"] {
            assert_eq!(code(line), Some(0), "{line}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
