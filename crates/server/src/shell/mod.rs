//! Which shell a session runs, and how it gets our hooks: the script files of `shell-integration/`, embedded.

use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::action::ActionError;

const BASH_SCRIPT: &str = include_str!("../../../../shell-integration/bash.sh");

/// A shell, found and ready to be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shell {
    /// `bash`.
    pub(crate) name: String,
    pub(crate) program: PathBuf,
    pub(crate) argv: Vec<Vec<u8>>,
    /// Variables that make it read our script.
    pub(crate) env: Vec<(Vec<u8>, Vec<u8>)>,
    /// It reports over the attestation socket.
    pub(crate) attests: bool,
}

/// The script files, written out once for the shells to read.
#[derive(Debug)]
pub(crate) struct Integration {
    bash: PathBuf,
}

impl Integration {
    /// Writes the scripts into the state directory, under a name that tells their content: shells of an earlier
    /// version go on reading theirs.
    pub(crate) fn install(state_dir: &Path) -> std::io::Result<Self> {
        let folder = state_dir.join("shell-integration");
        std::fs::create_dir_all(&folder)?;
        let script = without_comments(BASH_SCRIPT);
        let bash = folder.join(format!("bash-{:08x}.sh", crc(script.as_bytes())));
        if std::fs::read(&bash).ok().as_deref() != Some(script.as_bytes()) {
            // Written aside and renamed, so that a shell never reads half a script.
            let draft = folder.join(format!(".bash-{}", std::process::id()));
            let mut file =
                std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
            file.write_all(script.as_bytes())?;
            std::fs::rename(&draft, &bash)?;
        }
        Ok(Self { bash })
    }

    /// Finds the shell that was asked for on this PATH.
    pub(crate) fn pick(
        &self,
        asked: Option<&str>,
        login: bool,
        path: Option<&[u8]>,
        original_env: Option<&[u8]>,
    ) -> Result<Shell, ActionError> {
        let asked = asked.unwrap_or("bash");
        let program = find(asked, path).ok_or_else(|| ActionError::Invalid {
            field: "shell",
            problem: format!("no program {asked:?} on PATH; give a name such as bash, or an absolute path"),
        })?;
        let name = program.file_name().map_or_else(|| asked.to_owned(), |n| n.to_string_lossy().into_owned());
        if name != "bash" {
            return Err(ActionError::Invalid {
                field: "shell",
                problem: format!("{name} is not supported yet; use bash"),
            });
        }
        let script = self.bash.as_os_str().as_bytes().to_vec();
        let (argv, env) = if login {
            // In POSIX mode bash reads $ENV and nothing else; the script then reads the profiles as a login shell does.
            let mut env = vec![(b"ENV".to_vec(), script)];
            env.extend(original_env.map(|e| (b"PTYD_ENV".to_vec(), e.to_vec())));
            (vec![b"bash".to_vec(), b"--posix".to_vec(), b"-l".to_vec()], env)
        } else {
            (vec![b"bash".to_vec(), b"--rcfile".to_vec(), script, b"-i".to_vec()], Vec::new())
        };
        Ok(Shell { name, program, argv, env, attests: true })
    }
}

/// Finds an executable by name on a PATH, or takes a path as it is.
pub(crate) fn find(name: &str, path: Option<&[u8]>) -> Option<PathBuf> {
    if name.is_empty() {
        return None;
    }
    if name.contains('/') {
        let p = PathBuf::from(name);
        return (p.is_absolute() && is_executable(&p)).then_some(p);
    }
    path.unwrap_or(b"/usr/local/bin:/usr/bin:/bin")
        .split(|b| *b == b':')
        .filter(|dir| !dir.is_empty())
        .map(|dir| Path::new(std::ffi::OsStr::from_bytes(dir)).join(name))
        .find(|p| is_executable(p))
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// The script as shells read it: half of the file is reasons, and every shell would read them at its start.
/// No string of the script has a line that begins with `#`; a test would break if one had.
fn without_comments(script: &str) -> String {
    script.lines().filter(|l| !l.trim_start().starts_with('#')).flat_map(|l| [l, "\n"]).collect()
}

/// A short name for content; nothing depends on its strength.
fn crc(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0xffff_ffff_u32, |crc, b| {
        (0..8).fold(crc ^ u32::from(*b), |c, _| if c & 1 == 1 { c >> 1 ^ 0xedb8_8320 } else { c >> 1 })
    }) ^ 0xffff_ffff
}
