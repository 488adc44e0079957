//! nushell: our script runs after the user's configuration and before the first prompt.

use super::scripts::Script;
use super::{Shell, Start};

/// As for the other shells that a child has to read for: dash takes one digit.
const ATTESTATION_FD: u32 = 9;

pub(super) fn start(start: &Start<'_>) -> Shell {
    // Between these nothing means anything but the same two characters once more.
    let source = [b"source r#'", start.scripts.path(Script::Nu).as_slice(), b"'#"].concat();
    let mut argv = vec![b"nu".to_vec(), b"--execute".to_vec(), source];
    if start.wanted.login {
        argv.push(b"--login".to_vec());
    }
    Shell { argv, attests: true, attestation_fd: ATTESTATION_FD, speaks_in_band: true, ..Shell::default() }
}
