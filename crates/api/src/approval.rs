//! Approvals: what a policy leaves to a person.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A command or an input that waits for a person's decision, or has one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// Its id.
    pub id: String,
    /// The session.
    pub session_id: String,
    /// The session's name, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_name: Option<String>,
    /// The session's owner.
    pub owner: String,
    /// The principal that asks: a user or a token.
    pub principal: String,
    /// The policy.
    pub policy: String,
    /// The rule that asks.
    pub rule: String,
    /// Why the rule matches.
    pub why: String,
    /// The command's whole text; absent for input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The command would run in a shell inside the session's own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inside: bool,
    /// The directory of the session's shell, where it is known. The same request in another one is asked about again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The input; absent for a command or keys, and where it is secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// How many bytes the input has, or how many keys it was where they are secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_length: Option<usize>,
    /// The keys, by their names; absent for anything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<Vec<String>>,
    /// The decision.
    pub state: ApprovalState,
    /// The principal that has decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    /// When it was asked for; RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub asked_at: String,
    /// In how many seconds it is forgotten.
    pub expires_in: u64,
}

/// The state of an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    /// Nobody has decided.
    Pending,
    /// The same request runs once.
    Allowed,
    /// The same request is refused.
    Denied,
}

/// `GET /approvals`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalList {
    /// The approvals that the caller may see, oldest first.
    pub approvals: Vec<Approval>,
}

/// `POST /approvals/{approval}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DecisionRequest {
    /// The decision.
    pub decision: Decision,
}

/// A person's decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// The same request runs once.
    Allow,
    /// The same request runs once, and its policy allows the same command from now on.
    Always,
    /// The same request is refused.
    Deny,
}
