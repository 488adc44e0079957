//! The query parameters of a viewer's WebSocket; docs/websocket.md describes the protocol.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The query of `GET /terminals/{sessionId}/socket`. It has no `Debug`, so that no log contains a ticket.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SocketQuery {
    /// `raw` speaks plain bytes; without it the sub-protocol `ptyd.v1` is spoken, or JSON texts where none is offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^raw$"))]
    pub mode: Option<String>,
    /// Go on at this offset (`o:<offset>`) instead of a snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^(o:)?[0-9]+$"))]
    pub since: Option<String>,
    /// The viewer's own name, under which its inputs are numbered over all of its connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[A-Za-z0-9._-]{1,64}$"))]
    pub client: Option<String>,
    /// A viewer that is far behind is shown the present (`skip`) or every byte (`all`, the default for JSON texts).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^(skip|all)$"))]
    pub behind: Option<String>,
    /// A ticket from `POST /tickets`, in the place of the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
}
