//! bash: our script is its rc file, or the $ENV file of a login shell in posix mode. Its builtins are beside it.

use super::scripts::{self, Script};
use super::start::{Shell, Start};

/// The alias in the script that takes a command from its descriptor.
const SHORT_LINE: &[u8] = b"__ptyd";

pub(super) fn start(start: &Start<'_>) -> Shell {
    let script = [&start.script(Script::Bash), &b"/bash.sh"[..]].concat();
    let (argv, mut env) = if start.wanted.login {
        // In posix mode bash reads only $ENV; the script then reads the profiles as a login shell does.
        (vec![b"bash".to_vec(), b"--posix".to_vec(), b"-l".to_vec()], scripts::as_env(script, start.wanted.env))
    } else {
        (vec![b"bash".to_vec(), b"--rcfile".to_vec(), script, b"-i".to_vec()], Vec::new())
    };
    if start.wanted.clean {
        env.push((b"PTYD_CLEAN".to_vec(), b"1".to_vec()));
    }
    let mut shell = Shell::with_keys(argv, env);
    shell.handover.short_line = SHORT_LINE.to_vec();
    shell
}
