//! A profile: how sessions are started that name it. Everything in it goes behind what a request says itself.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Deserializer, de::Error};

use crate::action::{Limit, Limits};

/// The profile of sessions that name none, where there is one of this name.
pub const DEFAULT: &str = "default";

/// How a session is started. Everything has a default, which is to leave things as they are without a profile.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Profile {
    /// A shell's name or path.
    pub shell: Option<String>,
    /// As a login shell.
    pub login: bool,
    /// Where it starts; `~` is the session's HOME.
    pub cwd: Option<PathBuf>,
    /// Variables.
    pub env: BTreeMap<String, String>,
    /// Variables that are not inherited.
    pub unset: Vec<String>,
    /// Directories that PATH begins with.
    pub path_prepend: Vec<PathBuf>,
    /// The file mode mask.
    #[serde(deserialize_with = "octal")]
    pub umask: Option<u32>,
    /// `LANG`, and no other variable of the locale is inherited.
    pub locale: Option<String>,
    /// `TERM`.
    pub term: Option<String>,
    /// Cells.
    pub cols: Option<u16>,
    /// Cells.
    pub rows: Option<u16>,
    /// Whose shell it is, where the server is root's.
    pub user: Option<String>,
    /// Which start-up files the shell reads.
    pub rc: StartFiles,
    /// Commands that are run before the session is handed over.
    pub startup: Vec<String>,
    /// What it may use.
    #[serde(deserialize_with = "limits")]
    pub limits: Limits,
}

/// Which start-up files a shell reads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartFiles {
    /// The user's, as everywhere.
    #[default]
    User,
    /// None of the user's own.
    Clean,
}

/// A number would be taken for a decimal one by half of its readers.
fn octal<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    let text = String::deserialize(from)?;
    let mask = u32::from_str_radix(&text, 8).ok().filter(|mask| *mask <= 0o777);
    mask.map(Some).ok_or_else(|| D::Error::custom("a mask has octal digits, such as \"027\""))
}

fn limits<'de, D: Deserializer<'de>>(from: D) -> Result<Limits, D::Error> {
    let mut limits = Limits::default();
    for (name, value) in BTreeMap::<String, f64>::deserialize(from)? {
        let Some(limit) = Limit::ALL.into_iter().find(|limit| limit.name() == name) else {
            let there: Vec<_> = Limit::ALL.into_iter().map(Limit::name).collect();
            return Err(D::Error::custom(format!("{name} is no limit; there are {}", there.join(", "))));
        };
        limits.set(limit, value).map_err(|why| D::Error::custom(format!("{name}: {why}")))?;
    }
    Ok(limits)
}
