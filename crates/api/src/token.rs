//! Named tokens: made for one agent or program each, with a scope, listed and revoked by an admin.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::null::null_is_default;
use crate::session::ConfinementTier;

/// `POST /tokens`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TokenRequest {
    /// Its name, and the owner of the sessions that are started with it: letters, digits, `-`, `_` and `.`, 64 at most.
    #[schemars(regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"))]
    pub name: String,
    /// Its scope.
    #[serde(default, deserialize_with = "null_is_default")]
    #[schemars(with = "Option<TokenScope>")]
    pub scope: TokenScope,
    /// For how many seconds it is good; without it until it is revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.001, max = 316_224_000.0))]
    pub expires_in: Option<f64>,
    /// The only profiles with which it may start sessions; the first one is its default. Without any it may use all, and none.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(with = "Option<Vec<String>>", length(max = 16), inner(length(min = 1, max = 100)))]
    pub profiles: Vec<String>,
    /// The least confinement of the sessions that it starts; not for scope `admin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confinement: Option<ConfinementTier>,
    /// The policy that counts for its requests besides the sessions' own, and is that of its sessions which have none; not
    /// for scope `admin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub policy: Option<String>,
    /// The named secrets that the sessions which it starts get besides the profile's: `NAME`, or `NAME=VARIABLE`.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(with = "Option<Vec<String>>", length(max = 16), inner(length(min = 1, max = 200)))]
    pub secrets: Vec<String>,
}

/// The scope of a token; each includes the ones before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TokenScope {
    /// Read its own sessions.
    Read,
    /// Start its own sessions, and use them.
    #[default]
    Write,
    /// Read and use all sessions, and make and revoke tokens.
    Admin,
}

/// The answer, the only one that shows the token itself. It has no `Debug`, so that no log contains it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewToken {
    /// Live sessions of this name that the token cannot use, because they are outside its bounds.
    pub sessions_out_of_bounds: usize,
    /// For `Authorization: Bearer …`.
    pub token: String,
    /// Its name.
    pub name: String,
    /// Its scope.
    pub scope: TokenScope,
    /// RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub created_at: String,
    /// When it is no longer good, if ever; RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub expires_at: Option<String>,
    /// The only profiles with which it may start sessions; empty if it may use all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<String>,
    /// The least confinement of the sessions that it starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confinement: Option<ConfinementTier>,
    /// The policy that counts for its requests besides the sessions' own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// The named secrets that its sessions get besides the profile's: `NAME`, or `NAME=VARIABLE`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
}

/// A token, without the token itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenInfo {
    /// Its name.
    pub name: String,
    /// Its scope.
    pub scope: TokenScope,
    /// RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub created_at: String,
    /// When it is no longer good, if ever; RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub expires_at: Option<String>,
    /// The named token that made it, or that made the one which did, and so on; none where the user has made it. Tokens with
    /// one first maker, and that one, decide on none of each other's requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_maker: Option<String>,
    /// The only profiles with which it may start sessions; empty if it may use all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<String>,
    /// The least confinement of the sessions that it starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confinement: Option<ConfinementTier>,
    /// The policy that counts for its requests besides the sessions' own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// The named secrets that its sessions get besides the profile's: `NAME`, or `NAME=VARIABLE`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
}

/// `GET /tokens`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenList {
    /// The tokens, by name.
    pub tokens: Vec<TokenInfo>,
}
