//! Tickets for browsers: asked for with a token, shown once in its stead.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::TokenScope;
use crate::null::null_is_default;

/// `POST /tickets`: exactly one of `session` and `page`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TicketRequest {
    /// The session whose socket it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 200))]
    pub session: Option<String>,
    /// The page that it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<TicketPage>,
    /// The scope of the socket.
    #[serde(default, deserialize_with = "null_is_default")]
    #[schemars(with = "Option<TicketScope>")]
    pub scope: TicketScope,
}

/// A page that is entered by a ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TicketPage {
    /// `GET /docs`.
    Docs,
    /// `GET /`, where a person sees the sessions: the ticket logs a browser in, once.
    Sessions,
}

/// The scope of a ticket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TicketScope {
    /// Look.
    #[default]
    Read,
    /// Look, type and resize.
    Write,
}

/// The answer. It has no `Debug`, so that no log contains it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ticket {
    /// Good once: as `?ticket=…`, or at a socket as the sub-protocol `ptyd.ticket.…` beside `ptyd.v1`. For the page `sessions`, as the
    /// bearer token of `POST /login`.
    pub ticket: String,
    /// For so many seconds.
    pub expires_in: u64,
    /// The link to the page `sessions`, with the ticket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// The answer to `POST /login`, which also sets a cookie. It has no `Debug`, so that no log contains it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Login {
    /// Every request of the browser sends it in the header `Ptyd-Login`, beside the cookie.
    pub key: String,
    /// For so many seconds.
    pub expires_in: u64,
    /// The principal as which the browser acts.
    pub principal: String,
    /// Its scope.
    pub scope: TokenScope,
}
