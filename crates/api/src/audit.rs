//! The audit log: who asked for what, and how it ended.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The query of `GET /audit`; each condition that is given must hold.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AuditQuery {
    /// Only lines about the session of this id or name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Only lines of this principal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// Only lines of this action or event, such as `execute` or `refused`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// Only lines from this time on (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub since: Option<String>,
    /// Only lines up to this time (RFC 3339). New lines come at the beginning: with the time of the first page's first line,
    /// the next pages continue it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub until: Option<String>,
    /// Only lines with this text in any of their values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// At most this many; the default is 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000))]
    pub limit: Option<u64>,
    /// Skip this many of the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 9_007_199_254_740_992_u64))]
    pub offset: Option<u64>,
}

/// `GET /audit`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditList {
    /// The lines, newest first, each as it is in the file; `docs/audit.md` has their fields, and later versions add some.
    pub lines: Vec<serde_json::Map<String, serde_json::Value>>,
    /// Whether there are older ones.
    pub has_more: bool,
}
