//! The capabilities of the server on this machine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::session::ConfinementTier;

/// `GET /capabilities`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Capabilities {
    /// The tiers of confinement, the weakest first.
    pub confinement: Vec<ConfinementCapability>,
}

/// A tier of confinement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfinementCapability {
    /// The tier.
    pub tier: ConfinementTier,
    /// Whether sessions can be started with it.
    pub available: bool,
    /// Why they cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
