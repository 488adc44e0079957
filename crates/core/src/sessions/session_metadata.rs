//! The server's own metadata of a session; stored inside the spec in the session's folder, so that the folder alone is
//! enough to restore the session.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use journal::{MaskedText, Masks};
use serde::{Deserialize, Serialize};

use super::redaction::redacted;
use super::timeline::micros;
use super::timeline::nested_line::as_format;
use crate::action::{ConfinementTier, Limits, NamedAction, PolicyView};
use crate::credentials::secret_masks;
use crate::host::containers::ContainerSettings;
use crate::host::holders::SessionFolder;
use crate::mutex::locked;
use crate::principal::Detach;

/// The part of a spec that the holder does not read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SessionMetadata {
    pub(crate) name: GivenName,
    pub(crate) owner: String,
    pub(crate) shell: String,
    pub(crate) login: bool,
    pub(crate) created_us: u64,
    /// The requested variables.
    pub(crate) env: Vec<(String, String)>,
    /// The stdio client that owns the session.
    pub(crate) client: Option<String>,
    /// The fate of the session when that client disconnects.
    pub(crate) detach: Detach,
    /// Its part as that client's default session, if it is one.
    #[serde(flatten)]
    pub(crate) default: DefaultMetadata,
    /// The idempotency key that created it.
    pub(crate) key: Option<String>,
    #[serde(flatten)]
    pub(crate) creation: CreationMetadata,
    pub(crate) limits: Limits,
    /// Its named actions.
    pub(crate) named_actions: BTreeMap<String, NamedAction>,
    pub(crate) profile: Option<String>,
    /// How its shell and programs are confined.
    #[serde(flatten)]
    pub(crate) confinement: ConfinementMetadata,
    /// The user of its shell, if it is not the server's.
    pub(crate) user: Option<String>,
    /// The start-up commands.
    pub(crate) startup: Vec<String>,
    /// The policy of its commands and input.
    pub(crate) policy: Option<String>,
    /// Why none of its commands can be proven, if that is so from its start on.
    pub(crate) unprovable: Option<String>,
    /// The named secrets that it was given, with their values at that time. They stay masked after they were changed or
    /// removed, and a reset gives them again.
    pub(crate) secrets: GivenSecrets,
}

/// A session's name, which a person can change while it lives.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct GivenName(Mutex<Option<String>>);

impl GivenName {
    pub(crate) fn get(&self) -> Option<String> {
        locked(&self.0).clone()
    }

    pub(crate) fn is(&self, name: &str) -> bool {
        locked(&self.0).as_deref() == Some(name)
    }

    pub(crate) fn set(&self, name: Option<String>) {
        *locked(&self.0) = name;
    }
}

impl From<Option<String>> for GivenName {
    fn from(name: Option<String>) -> Self {
        Self(Mutex::new(name))
    }
}

/// A copy is renamed for itself.
impl Clone for GivenName {
    fn clone(&self) -> Self {
        self.get().into()
    }
}

impl PartialEq for GivenName {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for GivenName {}

/// How the session was created.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct CreationMetadata {
    /// The time since the machine was started, which stays right when the clock is set.
    #[serde(rename = "created_boot_us")]
    pub(crate) boot_us: u64,
    /// The hash of the request, if it had an idempotency key.
    pub(crate) asked: Option<u64>,
    /// The name by which the client that created it calls itself.
    pub(crate) client_name: Option<String>,
}

/// A client's default session, which is started again when its shell has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct DefaultMetadata {
    pub(crate) is_default: bool,
    /// The directory of the first default session, if this one was started in the last one's directory: a reset returns to
    /// it.
    pub(crate) first_cwd: Option<Vec<u8>>,
}

/// The confinement of a session's shell and programs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ConfinementMetadata {
    #[serde(rename = "confinement")]
    pub(crate) tier: Option<ConfinementTier>,
    /// The container that they are in.
    pub(crate) container: Option<ContainerSettings>,
}

/// The named secrets that a session was given: names and values.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct GivenSecrets {
    /// Those that are variables.
    pub(crate) variables: Vec<(String, String)>,
    /// Those that are files.
    pub(crate) files: Vec<(String, String)>,
}

impl fmt::Debug for GivenSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GivenSecrets(…)")
    }
}

impl GivenSecrets {
    /// The masks of their values.
    pub(crate) fn masks(&self) -> Masks {
        let values = self.variables.iter().chain(&self.files).map(|(_, value)| value);
        Masks::new(values.flat_map(|value| {
            // A nested shell echoes the line that runs a command in it.
            let echoed = as_format(value).into_bytes();
            secret_masks::texts(value.as_bytes()).into_iter().chain([echoed])
        }))
    }

    /// The variables that have the paths of the files.
    pub(crate) fn paths(&self, path: impl Fn(&str) -> PathBuf) -> Vec<(Vec<u8>, Vec<u8>)> {
        let path = |name: &str| path(name).into_os_string().into_encoded_bytes();
        self.files.iter().map(|(name, _)| (format!("{name}_FILE").into_bytes(), path(name))).collect()
    }
}

impl SessionMetadata {
    /// When the session was created; if that is not known, when the oldest of its files was last written.
    pub(crate) fn created_us_in(&self, folder: &SessionFolder) -> u64 {
        if self.created_us > 0 {
            return self.created_us;
        }
        folder.oldest_write().map_or_else(|| folder.last_write().map_or(0, micros), micros)
    }
}

impl SessionMetadata {
    pub(crate) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("invariant: strings and numbers are JSON")
    }

    /// Unreadable metadata must not lose the session: the output is still there.
    pub(crate) fn decode(bytes: &[u8]) -> Self {
        serde_json::from_slice(bytes).unwrap_or_default()
    }

    /// The session's policy, with the reason why its commands cannot be proven any more.
    pub(crate) fn policy_view(&self, taint: Option<Arc<str>>) -> Option<PolicyView> {
        let unprovable = self.unprovable.as_deref().map(Arc::from).or(taint);
        Some(PolicyView { name: self.policy.clone()?, unprovable })
    }

    /// The variables, with secrets hidden.
    pub(crate) fn shown_env(&self, masks: &Masks) -> Vec<(String, MaskedText)> {
        let shown = |(name, value): &(String, String)| {
            let value = redacted(name, value.as_bytes());
            (name.clone(), masks.text(String::from_utf8_lossy(&value).into_owned()))
        };
        self.env.iter().map(shown).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_secret_looking_names_are_not_shown() {
        let meta = SessionMetadata {
            limits: Limits {
                memory: Some(1 << 28),
                cpu: Some(std::time::Duration::from_millis(1_500)),
                ..Limits::default()
            },
            env: vec![("API_KEY".into(), "x".into()), ("github_token".into(), "y".into()), ("A".into(), "z".into())],
            ..SessionMetadata::default()
        };
        let shown: Vec<MaskedText> = meta.shown_env(&Masks::default()).into_iter().map(|(_, v)| v).collect();
        assert_eq!(shown, ["***", "***", "z"]);
        assert_eq!(SessionMetadata::decode(&meta.encode()), meta);
        assert_eq!(SessionMetadata::decode(b"garbage"), SessionMetadata::default());
    }
}
