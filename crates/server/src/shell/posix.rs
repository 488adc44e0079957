//! dash, busybox and mksh: interactive ones read `ENV`. They have no keys of ours, so a short line is typed.

use std::os::unix::ffi::OsStrExt;

use super::scripts::{self, Script};
use super::{Shell, Start};

/// dash takes one digit for a descriptor.
const ATTESTATION_FD: u32 = 9;
/// Sourced and not read into a variable, so that a text of any length and with any error in it is contained.
const RUN_LINE: &[u8] = br#" \__ptyd_c {};\command . "$__ptyd_f";__ptyd_r=$?.$__ptyd_i;\__ptyd_d"#;

pub(super) fn start(start: &Start<'_>) -> Shell {
    let script = start.scripts.path(Script::Posix);
    let mut env = scripts::as_env(script, start.wanted.env);
    env.push((b"PTYD_SHELL".to_vec(), start.program.as_os_str().as_bytes().to_vec()));
    // One program for many: its name is which one it is to be.
    let name = if start.name == "busybox" { "ash" } else { start.name };
    if name != start.name {
        env.push((b"PTYD_APPLET".to_vec(), name.as_bytes().to_vec()));
    }
    let mut argv = vec![name.as_bytes().to_vec(), b"-i".to_vec()];
    if start.wanted.login {
        argv.push(b"-l".to_vec());
    }
    let (attestation_fd, run_line) = (ATTESTATION_FD, RUN_LINE.to_vec());
    Shell { argv, env, attests: true, attestation_fd, run_line, ..Shell::default() }
}
