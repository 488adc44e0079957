//! dash, busybox and mksh: interactive ones read `ENV`. They have no private keys, so a short line is typed.

use std::os::unix::ffi::OsStrExt;

use wire::{Handover, HandoverMethod};

use super::scripts::{self, Script};
use super::start::{Shell, Start};

/// dash allows one digit for a descriptor.
const ATTESTATION_FD: u32 = 9;
/// The script's `__ptyd_l` sources the text, and reports its end. The line is short, for busybox and mksh have three system calls
/// for each character of it.
const RUN_LINE: &[u8] = br#" \__ptyd_c {};\eval "$__ptyd_l""#;

pub(super) fn start(start: &Start<'_>) -> Shell {
    // A clean shell does not get the user's own file; the profile of a login shell is read by the script.
    let (clean, login) = (start.wanted.clean, start.wanted.login);
    let mut env = scripts::as_env(start.script(Script::Posix), start.wanted.env.filter(|_| !clean));
    if clean && login {
        env.push((b"PTYD_CLEAN".to_vec(), b"login".to_vec()));
    }
    env.push((b"PTYD_SHELL".to_vec(), start.program.as_os_str().as_bytes().to_vec()));
    // One program for many: its name selects the applet.
    let name = if start.name == "busybox" { "ash" } else { start.name };
    if name != start.name {
        env.push((b"PTYD_APPLET".to_vec(), name.as_bytes().to_vec()));
    }
    let mut argv = vec![name.as_bytes().to_vec(), b"-i".to_vec()];
    if login && !clean {
        argv.push(b"-l".to_vec());
    }
    let method = HandoverMethod::Line(RUN_LINE.to_vec());
    let handover = Handover { method, attestation_fd: ATTESTATION_FD, ..Handover::default() };
    Shell { argv, env, handover, ..Shell::default() }
}
