//! Taking the keyboard of a session on the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::null::null_is_default;

/// `POST …/take`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct TakeRequest {
    /// Seconds until the take-over ends by itself; the default is 600, and 43,200 with `hold`. The same client may take the keyboard
    /// again, which begins this time anew.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.001, max = 43_200.0))]
    pub lasts: Option<f64>,
    /// Take it from another driver.
    #[serde(skip_serializing_if = "std::ops::Not::not", deserialize_with = "null_is_default")]
    #[schemars(with = "Option<bool>")]
    pub force: bool,
    /// Answer only when the take-over has ended, and end it when this request's connection does.
    #[serde(skip_serializing_if = "std::ops::Not::not", deserialize_with = "null_is_default")]
    #[schemars(with = "Option<bool>")]
    pub hold: bool,
}

/// The query of `DELETE …/take`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ReturnQuery {
    /// Free it also from another driver.
    #[serde(skip_serializing_if = "std::ops::Not::not", deserialize_with = "null_is_default")]
    #[schemars(with = "Option<bool>")]
    pub force: bool,
}

/// The client that has taken the keyboard of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Driver {
    /// The principal.
    pub name: String,
    /// The client's own name (`Ptyd-Client`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Since when; RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub since: String,
    /// When the take-over ends at the latest; RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub until: String,
}

/// How a take-over ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TakeOverEnd {
    /// The driver has returned the keyboard.
    Returned,
    /// Another client has taken or freed it by force.
    Forced,
    /// Its time was up.
    TimedOut,
    /// The driver's last connection has ended.
    Disconnected,
}
