//! Named tokens: made for one agent or program each, with a scope, listed and revoked by an admin.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `POST /tokens`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TokenRequest {
    /// Its name, and the owner of the sessions that are started with it: letters, digits, `-`, `_` and `.`, 64 at most.
    #[schemars(regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"))]
    pub name: String,
    /// What it allows.
    #[serde(default)]
    pub scope: TokenScope,
    /// For how many seconds it is good; without it until it is revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.001, max = 316_224_000.0))]
    pub expires_in: Option<f64>,
}

/// What the holder of a token may do; each holds what is before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TokenScope {
    /// Look at its own sessions.
    Read,
    /// Start its own sessions, and use them.
    #[default]
    Write,
    /// See and use everybody's, and make and revoke tokens.
    Admin,
}

/// The answer, the one time that the token itself is shown. It has no `Debug`, so that it stands in no log.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewToken {
    /// For `Authorization: Bearer …`.
    pub token: String,
    /// Its name.
    pub name: String,
    /// What it allows.
    pub scope: TokenScope,
    /// RFC 3339.
    pub created_at: String,
    /// When it is no longer good, if ever; RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

/// A token, without the token itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenInfo {
    /// Its name.
    pub name: String,
    /// What it allows.
    pub scope: TokenScope,
    /// RFC 3339.
    pub created_at: String,
    /// When it is no longer good, if ever; RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

/// `GET /tokens`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenList {
    /// The tokens, by name.
    pub tokens: Vec<TokenInfo>,
}
