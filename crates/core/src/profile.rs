//! Profiles: named settings for new sessions. A request's own fields take precedence.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Deserializer, de::Error};

use crate::action::{ConfinementTier, Limit, Limits};

/// The name of the profile for sessions that name none.
pub const DEFAULT: &str = "default";

/// The settings of a profile. By default nothing differs from a session without a profile.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Profile {
    /// A shell's name or path.
    pub shell: Option<String>,
    /// Whether to start a login shell.
    pub login: bool,
    /// The start directory; `~` is the session's HOME.
    pub cwd: Option<PathBuf>,
    /// Environment variables.
    pub env: BTreeMap<String, String>,
    /// Variables that are not inherited.
    pub unset: Vec<String>,
    /// Directories to put at the beginning of PATH.
    pub path_prepend: Vec<PathBuf>,
    /// The file mode mask.
    #[serde(deserialize_with = "octal")]
    pub umask: Option<u32>,
    /// `LANG`; no other locale variable is inherited.
    pub locale: Option<String>,
    /// `TERM`.
    pub term: Option<String>,
    /// The width in cells.
    pub cols: Option<u16>,
    /// The height in cells.
    pub rows: Option<u16>,
    /// The shell's user, if the server runs as root.
    pub user: Option<String>,
    /// The start-up files that the shell reads.
    pub rc: StartFiles,
    /// Commands to run before the session is handed over.
    pub startup: Vec<String>,
    /// The limits of a session.
    #[serde(deserialize_with = "limits")]
    pub limits: Limits,
    /// The confinement of its shell and programs.
    pub confinement: Option<Confinement>,
    /// The named secrets that it is given as variables of the same names.
    pub secrets: Vec<String>,
    /// The named secrets that it is given as files; `NAME_FILE` has the path of each.
    pub secret_files: Vec<String>,
    /// The policy of its commands and input, by its name in the policy file.
    pub policy: Option<String>,
}

impl Profile {
    /// Why ptyd can prove none of the commands of a session with this profile and shell.
    pub fn unprovable(&self, shell: &str) -> Option<String> {
        if shell != "bash" {
            Some(format!("its shell is {shell}, and ptyd can read only bash's commands"))
        } else if self.rc != StartFiles::Clean {
            Some("its shell has read its user's start-up files (the profile has no rc = \"clean\")".to_owned())
        } else {
            None
        }
    }
}

/// The confinement of a session's shell and programs, and its exceptions. In paths `~` is the profile's HOME,
/// or else the server's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Confinement {
    /// How strong it is.
    pub tier: ConfinementTier,
    /// Whether programs may use the Internet protocols.
    #[serde(default)]
    pub network: bool,
    /// More places to read.
    #[serde(default)]
    pub readable: Vec<PathBuf>,
    /// The places that can be changed, in place of the working directory.
    #[serde(default)]
    pub writable: Vec<PathBuf>,
    /// The folders among which a request chooses the one that can be changed. `*` as the last name stands for each folder there.
    #[serde(default)]
    pub workspaces: Vec<PathBuf>,
    /// Whether the settings of a project in a place to change can be changed, too ([`PROJECT_SETTINGS`]).
    ///
    /// [`PROJECT_SETTINGS`]: crate::host::sensitive_paths::PROJECT_SETTINGS
    #[serde(default)]
    pub project_settings: bool,
    /// More places that cannot be opened.
    #[serde(default)]
    pub hidden: Vec<PathBuf>,
    /// A container's image.
    pub image: Option<String>,
    /// The program of its engine: a name or a path.
    pub engine: Option<String>,
    /// The engine's OCI runtime.
    pub runtime: Option<String>,
    /// The user in the container.
    pub user: Option<String>,
}

/// The start-up files that a shell reads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartFiles {
    /// The user's own, as usual.
    #[default]
    User,
    /// None of the user's own.
    Clean,
}

/// A string, because many readers would take a number for a decimal one.
fn octal<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    let text = String::deserialize(from)?;
    let mask = u32::from_str_radix(&text, 8).ok().filter(|mask| *mask <= 0o777);
    mask.map(Some).ok_or_else(|| D::Error::custom("a umask has octal digits, such as \"027\""))
}

fn limits<'de, D: Deserializer<'de>>(from: D) -> Result<Limits, D::Error> {
    let mut limits = Limits::default();
    for (name, value) in BTreeMap::<String, f64>::deserialize(from)? {
        let Some(limit) = Limit::ALL.into_iter().find(|limit| limit.name() == name) else {
            let there: Vec<_> = Limit::ALL.into_iter().map(Limit::name).collect();
            return Err(D::Error::custom(format!("{name} is not a limit; the limits are {}", there.join(", "))));
        };
        limits.set(limit, value).map_err(|why| D::Error::custom(format!("{name}: {why}")))?;
    }
    Ok(limits)
}
