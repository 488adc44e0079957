//! Named secrets: values that the operator sets and that profiles give to sessions.
//!
//! They are in one file that only its owner can read. No code in here puts a value into a log or an error, and none gives
//! one out but to a session that starts.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::SystemTime;

use journal::{MASKED_BYTES_MIN, Masks};
use serde::{Deserialize, Serialize};

use super::secret_masks;
use crate::action::{ActionError, SecretValue};
use crate::limits::{SECRET_BYTES_MAX, SECRET_NAME_CHARS_MAX, SECRETS_MAX};
use crate::mutex::locked;
use crate::state_dir;

/// A value with fewer different bytes is in usual output by chance: a line of dashes, an indentation.
const DIFFERENT_BYTES_MIN: usize = 4;

/// A stored secret. Fields may be added and never change their meaning.
#[derive(Clone, Serialize, Deserialize)]
struct StoredSecret {
    value: String,
    set: SystemTime,
}

#[derive(Default)]
struct Known {
    by_name: BTreeMap<String, StoredSecret>,
    /// The masks of them all.
    masks: Masks,
}

/// The named secrets of one server.
#[derive(Default)]
pub(crate) struct NamedSecrets {
    path: PathBuf,
    /// Held while the file is written.
    writing: Mutex<()>,
    /// Every action asks for the masks, so it is never held while the disk is waited for.
    known: Mutex<Known>,
}

impl fmt::Debug for NamedSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NamedSecrets(…)")
    }
}

impl Known {
    fn new(by_name: BTreeMap<String, StoredSecret>) -> Self {
        let masks = secret_masks::of_values(by_name.values().map(|secret| secret.value.as_bytes()));
        Self { by_name, masks }
    }
}

impl NamedSecrets {
    /// Reads the file. A file that cannot be parsed is an error: starting without it would lose the secrets.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        state_dir::remove_draft(path);
        let by_name = state_dir::read_sealed(path)?.unwrap_or_default();
        Ok(Self { path: path.to_owned(), writing: Mutex::default(), known: Mutex::new(Known::new(by_name)) })
    }

    /// Sets the value of a name, also of one that has another value.
    pub(crate) fn set(&self, name: &str, value: &SecretValue) -> Result<SystemTime, ActionError> {
        check_name(name)?;
        check_value(&value.0)?;
        let _one = locked(&self.writing);
        let mut by_name = locked(&self.known).by_name.clone();
        if by_name.len() >= SECRETS_MAX && !by_name.contains_key(name) {
            let hint = "remove an unused one (ptyd secret rm)";
            return Err(ActionError::Limit { what: "the number of secrets", limit: SECRETS_MAX as u64, hint });
        }
        let set = sys::time::wall();
        by_name.insert(name.to_owned(), StoredSecret { value: value.0.clone(), set });
        self.write(&by_name)?;
        *locked(&self.known) = Known::new(by_name);
        Ok(set)
    }

    /// Forgets a secret, and returns when it was set. Sessions that have it keep it.
    pub(crate) fn remove(&self, name: &str) -> Result<SystemTime, ActionError> {
        let _one = locked(&self.writing);
        let mut by_name = locked(&self.known).by_name.clone();
        let Some(removed) = by_name.remove(name) else {
            let problem = format!("there is no secret {name}; ptyd secret ls (GET /secrets) lists them");
            return Err(ActionError::Invalid { field: "name", problem });
        };
        self.write(&by_name)?;
        *locked(&self.known) = Known::new(by_name);
        Ok(removed.set)
    }

    /// Every name, and when its value was set.
    pub(crate) fn list(&self) -> Vec<(String, SystemTime)> {
        locked(&self.known).by_name.iter().map(|(name, secret)| (name.clone(), secret.set)).collect()
    }

    /// The value that a session gets.
    pub(crate) fn value(&self, name: &str) -> Option<String> {
        locked(&self.known).by_name.get(name).map(|secret| secret.value.clone())
    }

    /// The masks of all of them.
    pub(crate) fn masks(&self) -> Masks {
        locked(&self.known).masks.clone()
    }

    fn write(&self, by_name: &BTreeMap<String, StoredSecret>) -> Result<(), ActionError> {
        state_dir::replace_sealed(&self.path, by_name).map_err(|e| ActionError::Internal {
            why: format!("the file of the secrets cannot be written: {e}; nothing was changed"),
        })
    }
}

/// The variables by which shells and programs find other programs, load code or decide what to run: a value in one of them
/// would change what the session runs.
const LOADS_CODE: [&str; 51] = [
    "BASHOPTS",
    "BASH_ENV",
    "BROWSER",
    "CDPATH",
    "CLASSPATH",
    "DYLD_INSERT_LIBRARIES",
    "EDITOR",
    "ENV",
    "FPATH",
    "GCONV_PATH",
    "GIT_ASKPASS",
    "GIT_EDITOR",
    "GIT_EXEC_PATH",
    "GIT_PAGER",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GLOBIGNORE",
    "HISTFILE",
    "HOME",
    "IFS",
    "INPUTRC",
    "LESSOPEN",
    "LOCPATH",
    "LOGNAME",
    "MANPAGER",
    "NLSPATH",
    "NODE_OPTIONS",
    "NODE_PATH",
    "OLDPWD",
    "PAGER",
    "PATH",
    "PERL5LIB",
    "PERL5OPT",
    "PROMPT_COMMAND",
    "PS0",
    "PS1",
    "PS2",
    "PS3",
    "PS4",
    "PWD",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "RUBYLIB",
    "RUBYOPT",
    "SHELL",
    "SHELLOPTS",
    "TERM",
    "USER",
    "VISUAL",
    "ZDOTDIR",
];

/// The beginnings of such names.
const LOADS_CODE_PREFIXES: [&str; 3] = ["BASH_FUNC_", "GIT_CONFIG", "LD_"];

/// Why no secret can have this name.
pub fn name_problem(name: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    if !name.starts_with(|c: char| c.is_ascii_uppercase())
        || !name.chars().all(is_plain)
        || name.len() > SECRET_NAME_CHARS_MAX
    {
        return Some(format!(
            "must consist of at most {SECRET_NAME_CHARS_MAX} capital letters, digits and underscores, and begin with a letter"
        ));
    }
    if name.starts_with("PTYD_") {
        return Some("cannot begin with PTYD_: such variables are ptyd's own".to_owned());
    }
    None
}

/// Why no secret can be given as this variable: shells and programs find or load code by it.
pub(crate) fn variable_problem(name: &str) -> Option<String> {
    let loads_code =
        LOADS_CODE.contains(&name) || LOADS_CODE_PREFIXES.iter().any(|beginning| name.starts_with(beginning));
    loads_code
        .then(|| format!("{name} decides which code programs find or load, so ptyd gives no secret as this variable"))
}

fn check_name(name: &str) -> Result<(), ActionError> {
    match name_problem(name) {
        Some(problem) => Err(ActionError::Invalid { field: "name", problem }),
        None => Ok(()),
    }
}

/// Refuses what could not be masked, and what would be masked in usual output.
fn check_value(value: &str) -> Result<(), ActionError> {
    let mut seen = [false; 256];
    value.bytes().for_each(|byte| seen[usize::from(byte)] = true);
    let problem = if value.len() < MASKED_BYTES_MIN {
        format!(
            "has {} bytes; a secret needs at least {MASKED_BYTES_MIN}, because ptyd would mask a shorter one wherever it occurs by chance",
            value.len()
        )
    } else if value.len() > SECRET_BYTES_MAX {
        format!("has {} bytes; a secret may have at most {SECRET_BYTES_MAX}", value.len())
    } else if value.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
        "has control characters; encode it as text, for example in base64".to_owned()
    } else if !value.split(['\n', '\r']).any(|line| line.len() >= MASKED_BYTES_MIN) {
        format!("has no line of at least {MASKED_BYTES_MIN} bytes, and ptyd does not mask shorter ones")
    } else if seen.iter().filter(|seen| **seen).count() < DIFFERENT_BYTES_MIN {
        format!("has fewer than {DIFFERENT_BYTES_MIN} different bytes; ptyd would mask it in ordinary output")
    } else {
        return Ok(());
    };
    Err(ActionError::Invalid { field: "value", problem })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn set(secrets: &NamedSecrets, name: &str, value: &str) -> Result<SystemTime, ActionError> {
        secrets.set(name, &SecretValue(value.to_owned()))
    }

    #[test]
    // promise: secret-2
    fn secrets_survive_a_restart_in_a_file_that_only_the_owner_can_read() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("secrets.json");
        let secrets = NamedSecrets::open(&path).expect("none yet");
        assert!(secrets.masks().is_none());
        set(&secrets, "DEPLOY_KEY", "hunter2-hunter2").expect("set");
        set(&secrets, "OTHER", "another value").expect("set");
        set(&secrets, "DEPLOY_KEY", "a newer value").expect("set again");
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        assert_eq!(
            (format!("{secrets:?}"), format!("{:?}", SecretValue("x".into()))),
            ("NamedSecrets(…)".into(), "SecretValue(…)".into())
        );
        let next = NamedSecrets::open(&path).expect("read");
        let names: Vec<_> = next.list().into_iter().map(|(name, _)| name).collect();
        assert_eq!(
            (names, next.value("DEPLOY_KEY")),
            (vec!["DEPLOY_KEY".into(), "OTHER".into()], Some("a newer value".into()))
        );
        let mut text = b"a newer value, hunter2-hunter2".to_vec();
        next.masks().mask(&mut text);
        assert_eq!(text, b"*************, hunter2-hunter2");
        next.remove("OTHER").expect("removed");
        assert!(matches!(next.remove("OTHER"), Err(ActionError::Invalid { field: "name", .. })));
        assert_eq!(NamedSecrets::open(&path).expect("read").list().len(), 1);
        // A damaged file is not begun anew, and its error quotes nothing of it.
        let text = fs::read_to_string(&path).expect("there");
        for damaged in ["{\"A\": \"hunter2-hunter2\"}".to_owned(), text.replacen("newer", "never", 1)] {
            fs::write(&path, &damaged).expect("damaged");
            let said = NamedSecrets::open(&path).expect_err("refused").to_string();
            assert!(damaged != text && !said.contains("hunter") && !said.contains("value"), "{said}");
        }
    }

    #[test]
    // promise: secret-2
    fn a_value_that_cannot_be_masked_or_masks_by_chance_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        let secrets = NamedSecrets::open(&dir.path().join("secrets.json")).expect("none yet");
        for name in [
            "PATH",
            "LD_PRELOAD",
            "IFS",
            "BASH_ENV",
            "ENV",
            "PS4",
            "PROMPT_COMMAND",
            "HOME",
            "SHELL",
            "GIT_CONFIG_COUNT",
        ] {
            assert!(variable_problem(name).is_some_and(|why| why.contains(name)), "{name}");
        }
        assert!(
            ["DEPLOY_KEY", "GIT_TOKEN", "PYTHON_TOKEN", "ENV_KEY"].iter().all(|name| variable_problem(name).is_none())
        );
        let long = "x1y2".repeat(SECRET_BYTES_MAX / 4 + 1);
        for bad in [
            "",
            "1234567",
            "--------",
            "abababababab",
            "abcabcabcabc",
            "with\x1besc-and-more",
            "nul\0nul\0nul",
            "a\nb\nc\nd\ne\nf",
            &long,
        ] {
            assert!(matches!(set(&secrets, "A", bad), Err(ActionError::Invalid { field: "value", .. })), "{bad:?}");
        }
        for bad in ["", "a", "1A", "A-B", "_A", "PTYD_X", "Ä", &"A".repeat(SECRET_NAME_CHARS_MAX + 1)] {
            assert!(
                matches!(set(&secrets, bad, "good enough"), Err(ActionError::Invalid { field: "name", .. })),
                "{bad:?}"
            );
        }
        assert!(set(&secrets, "A1_", "12345678").is_ok());
        for n in 1..SECRETS_MAX {
            let secret = StoredSecret { value: "12345678".to_owned(), set: SystemTime::now() };
            locked(&secrets.known).by_name.insert(format!("N{n}"), secret);
        }
        assert!(matches!(set(&secrets, "ONE_MORE", "12345678"), Err(ActionError::Limit { .. })));
        assert!(set(&secrets, "A1_", "87654321").is_ok());
    }
}
