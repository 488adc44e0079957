//! Draining: the server takes no new sessions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The query of `GET /drain`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DrainQuery {
    /// Wait while the server drains and this many sessions are left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<u64>,
    /// Wait this many milliseconds at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 86_400_000))]
    pub wait_ms: Option<u64>,
}

/// `/drain`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Drain {
    /// The number of the server among several behind one load balancer.
    pub node: u16,
    /// Whether the server refuses new sessions.
    pub draining: bool,
    /// Since when it drains; RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub since: Option<String>,
    /// How many sessions live.
    pub sessions: u64,
}
