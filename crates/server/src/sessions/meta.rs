//! What only the server knows about a session; kept in the session's own folder, inside the spec, so that the folder
//! alone is enough to bring everything back.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::action::{Limits, Reaction};
use crate::identity::Detach;

/// The part of a spec that a holder does not read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Meta {
    pub(crate) name: Option<String>,
    pub(crate) owner: String,
    /// The shell's name.
    pub(crate) shell: String,
    pub(crate) login: bool,
    pub(crate) created_us: u64,
    /// The variables that were asked for.
    pub(crate) env: Vec<(String, String)>,
    /// The stdio client that it belongs to.
    pub(crate) client: Option<String>,
    /// What that client's going means.
    pub(crate) detach: Detach,
    /// It is that client's default session.
    pub(crate) is_default: bool,
    /// The idempotency key that created it.
    pub(crate) key: Option<String>,
    /// What was asked for with that key, as a name for it.
    pub(crate) asked: Option<u64>,
    /// What it may use.
    pub(crate) limits: Limits,
    /// What can be asked of it by a name.
    pub(crate) reactions: BTreeMap<String, Reaction>,
    /// The profile that it was started with.
    pub(crate) profile: Option<String>,
    /// Another user whose shell it is.
    pub(crate) user: Option<String>,
    /// Commands that are run first.
    pub(crate) startup: Vec<String>,
}

/// Whether the value of a variable of this name is not shown.
pub(crate) fn is_secret(name: &str) -> bool {
    /// Parts of such names.
    const SECRETS: [&str; 6] = ["TOKEN", "SECRET", "PASS", "KEY", "CREDENTIAL", "AUTH"];
    SECRETS.iter().any(|s| name.to_ascii_uppercase().contains(s))
}

impl Meta {
    pub(crate) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("invariant: strings and numbers are JSON")
    }

    /// An unreadable one must not lose the session: the output is still there.
    pub(crate) fn decode(bytes: &[u8]) -> Self {
        serde_json::from_slice(bytes).unwrap_or_default()
    }

    /// The variables with values that look like secrets left out.
    pub(crate) fn shown_env(&self) -> Vec<(String, String)> {
        self.env.iter().map(|(n, v)| (n.clone(), if is_secret(n) { "***".to_owned() } else { v.clone() })).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_secret_looking_names_are_not_shown() {
        let meta = Meta {
            limits: Limits {
                memory: Some(1 << 28),
                cpu: Some(std::time::Duration::from_millis(1_500)),
                ..Limits::default()
            },
            env: vec![("API_KEY".into(), "x".into()), ("github_token".into(), "y".into()), ("A".into(), "z".into())],
            ..Meta::default()
        };
        let shown: Vec<String> = meta.shown_env().into_iter().map(|(_, v)| v).collect();
        assert_eq!(shown, ["***", "***", "z"]);
        assert_eq!(Meta::decode(&meta.encode()), meta);
        assert_eq!(Meta::decode(b"garbage"), Meta::default());
    }
}
