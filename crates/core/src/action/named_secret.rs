//! Named secrets: values that profiles give to sessions, and that nobody reads back.

use std::fmt;
use std::time::SystemTime;

/// The value of a named secret: no record and no message shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretValue(pub String);

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretValue(…)")
    }
}

/// A named secret, without its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedSecretView {
    /// Its name.
    pub name: String,
    /// When its value was set.
    pub set_at: SystemTime,
    /// The profiles that give it to their sessions.
    pub profiles: Vec<String>,
}
