//! nushell: our script runs after the user's configuration and before the first prompt.

use super::scripts::Script;
use super::{Shell, Start};

/// As for the other shells that a child has to read for: dash takes one digit.
const ATTESTATION_FD: u32 = 9;

pub(super) fn start(start: &Start<'_>) -> Shell {
    let mut argv = vec![b"nu".to_vec()];
    if start.wanted.clean {
        argv.push(b"--no-config-file".to_vec());
    }
    if start.wanted.login {
        argv.push(b"--login".to_vec());
    }
    // It looks for the names of what it sources, also where it is given a descriptor.
    if start.wanted.is_anothers {
        return Shell { argv, ..Shell::default() };
    }
    // Between these nothing means anything but the same two characters once more.
    let source = [b"source r#'", start.script(Script::Nu).as_slice(), b"'#"].concat();
    argv.extend([b"--execute".to_vec(), source]);
    Shell { argv, attests: true, attestation_fd: ATTESTATION_FD, speaks_in_band: true, ..Shell::default() }
}
