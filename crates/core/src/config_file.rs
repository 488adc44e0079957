//! The configuration file: settings of the server and named profiles, in TOML.
//!
//! It is read again for each new session, so that profiles change without a restart. A file that cannot be parsed is an
//! error with its line and never ignored: a session must not get another shell than the file says.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::Deserialize;
use toml::{Spanned, Value};

use crate::profile::Profile;

/// The contents of the file.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConfigFile {
    server: BTreeMap<Spanned<String>, Value>,
    /// The line number of each server setting, from 1.
    #[serde(skip)]
    lines: BTreeMap<String, usize>,
    /// The profiles by name.
    pub profiles: BTreeMap<String, Profile>,
}

impl ConfigFile {
    /// Reads the file; a missing one is empty.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(e) => return Err(format!("{}: {e}", path.display())),
        };
        let line_of = |at: usize| text.get(..at).unwrap_or_default().matches('\n').count() + 1;
        let mut file: Self = toml::from_str(&text).map_err(|e| {
            let line = line_of(e.span().map_or(0, |span| span.start));
            format!("{}, line {line}: {}", path.display(), e.message().replace('\n', " "))
        })?;
        file.lines = file.server.keys().map(|name| (name.get_ref().clone(), line_of(name.span().start))).collect();
        Ok(file)
    }

    /// The line number of a server setting.
    pub fn line(&self, name: &str) -> Option<usize> {
        self.lines.get(name).copied()
    }

    /// The settings of the table `server`, each as the arguments of its command-line option.
    pub fn settings(&self) -> BTreeMap<String, Vec<String>> {
        let words = |value: &Value| match value {
            Value::Array(all) => all.iter().map(word).collect(),
            Value::Table(all) => all.iter().map(|(name, value)| format!("{name}={}", word(value))).collect(),
            one => vec![word(one)],
        };
        self.server.iter().map(|(name, value)| (name.get_ref().clone(), words(value))).collect()
    }
}

fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ConfigFile, String> {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("config.toml");
        std::fs::write(&path, text).expect("written");
        ConfigFile::read(&path).map_err(|e| e.replace(&dir.path().display().to_string(), ""))
    }

    #[test]
    fn a_missing_file_sets_nothing_and_settings_become_the_values_of_their_options() {
        assert_eq!(ConfigFile::read(Path::new("/nowhere/config.toml")), Ok(ConfigFile::default()));
        let file = read("[server]\nsoft_timeout = 2.5\nlisten = \"127.0.0.1:0\"\nlimit = { openFiles = 512 }\n");
        let words = |all: &[&str]| all.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        let expected = [
            ("limit".to_owned(), words(&["openFiles=512"])),
            ("listen".to_owned(), words(&["127.0.0.1:0"])),
            ("soft_timeout".to_owned(), words(&["2.5"])),
        ];
        assert_eq!(file.expect("read").settings(), expected.into());
    }

    #[test]
    // promise: profile-2
    fn each_mistake_is_reported_with_its_line() {
        for (text, why) in [
            ("[profiles.web]\nshel = 'zsh'\n", "/config.toml, line 2: unknown field `shel`"),
            ("[profiles.web]\numask = '9'\n", "/config.toml, line 2: a umask has octal digits, such as \"027\""),
            (
                "[profiles.web]\nlimits = { memoryMb = 1 }\n",
                "/config.toml, line 2: memoryMb: 1 is not between 8 and 16777216",
            ),
            (
                "[profiles.web]\nlimits = { memory = 1 }\n",
                "/config.toml, line 2: memory is not a limit; the limits are cpuSeconds,",
            ),
            ("\n\nprofiles = [", "/config.toml, line 3: "),
        ] {
            let told = read(text).expect_err(text);
            assert!(told.starts_with(why), "{told}");
        }
    }
}
