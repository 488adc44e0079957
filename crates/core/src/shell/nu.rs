//! nushell: our script runs after the user's configuration and before the first prompt.

use wire::{Handover, HandoverMethod};

use super::scripts::Script;
use super::start::{ScriptAccess, Shell, Start};

/// A single digit: a child shell reads from it, and dash allows one digit.
const ATTESTATION_FD: u32 = 9;

pub(super) fn start(start: &Start<'_>) -> Shell {
    let mut argv = vec![b"nu".to_vec()];
    if start.wanted.clean {
        argv.push(b"--no-config-file".to_vec());
    }
    if start.wanted.login {
        argv.push(b"--login".to_vec());
    }
    // nushell checks the names of sourced files while parsing, so a descriptor does not help, and its commands are files in the
    // session's folder.
    if start.wanted.scripts != ScriptAccess::Path {
        return Shell { argv, ..Shell::default() };
    }
    // Inside this raw string only the two closing characters have a meaning.
    let source = [b"source r#'", start.script(Script::Nu).as_slice(), b"'#"].concat();
    argv.extend([b"--execute".to_vec(), source]);
    let method = HandoverMethod::InBand;
    let handover = Handover { method, attestation_fd: ATTESTATION_FD, ..Handover::default() };
    Shell { argv, handover, ..Shell::default() }
}
