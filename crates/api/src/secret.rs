//! Named secrets: set and removed by an admin, given to sessions by profiles, and never shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `PUT /secrets/{secret}`. It has no `Debug`, so that no log contains the value.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SecretRequest {
    /// Its value: text of 8 to 8,192 bytes.
    #[schemars(length(min = 8, max = 8192))]
    pub value: String,
}

/// A named secret, without its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamedSecret {
    /// Its name, which is a variable's.
    pub name: String,
    /// When its value was set; RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub set_at: String,
    /// The profiles that give it to their sessions.
    pub profiles: Vec<String>,
}

/// `GET /secrets`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecretList {
    /// The secrets, by name.
    pub secrets: Vec<NamedSecret>,
}
