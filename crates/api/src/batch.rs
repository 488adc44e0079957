//! Several operations in one request.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `POST /batch`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BatchRequest {
    /// The operations, performed in this order; at most 64.
    #[schemars(length(min = 1, max = 64))]
    pub operations: Vec<Operation>,
}

/// One operation: a request as it would be sent on its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Operation {
    /// The method.
    pub method: Method,
    /// The path with its query, such as `/terminals?limit=10`.
    pub path: String,
    /// The body, where the operation takes one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// The operation's `Idempotency-Key`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 200))]
    pub idempotency_key: Option<String>,
}

/// A method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// Reads.
    Get,
    /// Does.
    Post,
    /// Ends.
    Delete,
}

/// The results of the operations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BatchAnswer {
    /// One answer for each operation, in the same order.
    pub responses: Vec<OperationAnswer>,
}

/// The result of one operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OperationAnswer {
    /// The status that it would have had on its own.
    pub status: u16,
    /// The body: JSON as it is, text as a string, other bytes as base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
}
