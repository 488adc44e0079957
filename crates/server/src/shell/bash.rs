//! bash: our script is its rc file, or what a login shell reads in posix mode.

use super::scripts::{self, Script};
use super::{Shell, Start};

pub(super) fn start(start: &Start<'_>) -> Shell {
    let script = start.scripts.path(Script::Bash);
    let (argv, env) = if start.wanted.login {
        // In POSIX mode bash reads $ENV and nothing else; the script then reads the profiles as a login shell does.
        (vec![b"bash".to_vec(), b"--posix".to_vec(), b"-l".to_vec()], scripts::as_env(script, start.wanted.env))
    } else {
        (vec![b"bash".to_vec(), b"--rcfile".to_vec(), script, b"-i".to_vec()], Vec::new())
    };
    Shell { argv, env, attests: true, ..Shell::default() }
}
