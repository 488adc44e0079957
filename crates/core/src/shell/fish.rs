//! fish: our script runs after the user's configuration and before the first prompt.

use super::scripts::Script;
use super::start::{Shell, Start};

pub(super) fn start(start: &Start<'_>) -> Shell {
    let mut source = b"source '".to_vec();
    for byte in start.script(Script::Fish) {
        // The characters with a meaning inside the quotes.
        if matches!(byte, b'\\' | b'\'') {
            source.push(b'\\');
        }
        source.push(byte);
    }
    source.push(b'\'');
    let mut argv = vec![b"fish".to_vec(), b"-i".to_vec(), b"-C".to_vec(), source];
    if start.wanted.login {
        argv.push(b"-l".to_vec());
    }
    if start.wanted.clean {
        argv.push(b"--no-config".to_vec());
    }
    let mut shell = Shell::with_keys(argv, Vec::new());
    shell.handover.hooks_in_editor_modes = true;
    shell.handover.script_is_last = true;
    shell
}
