//! zsh: our script replaces its first start-up file, and reads the user's own.

use super::scripts::Script;
use super::start::{Shell, Start};

pub(super) fn start(start: &Start<'_>) -> Shell {
    let mut env = vec![(b"ZDOTDIR".to_vec(), start.script(Script::Zsh))];
    env.extend(start.wanted.zdotdir.map(|own| (b"PTYD_ZDOTDIR".to_vec(), own.to_vec())));
    if start.wanted.clean {
        env.push((b"PTYD_ZSH_CLEAN".to_vec(), b"1".to_vec()));
    }
    let mut argv = vec![b"zsh".to_vec()];
    if start.wanted.login {
        argv.push(b"-l".to_vec());
    }
    let mut shell = Shell::with_keys(argv, env);
    shell.handover.hooks_in_editor_modes = true;
    shell
}
