//! `/audit`: the audit log, for admins only.

use std::time::SystemTime;

use axum::Json;
use axum::extract::{Extension, State};

use super::extract::Params;
use super::sessions::page;
use super::state::{Rest, unexpected};
use crate::http::problem::ProblemResponse;
use ptyd_core::action::{Action, AuditFilter, Outcome, ReadAudit};
use ptyd_core::principal::Principal;

pub(super) async fn list(
    State(rest): State<Rest>,
    Extension(principal): Extension<Principal>,
    Params(query): Params<api::AuditQuery>,
) -> Result<Json<api::AuditList>, ProblemResponse> {
    let (limit, offset) = page(query.limit, query.offset)?;
    let filter = AuditFilter {
        session: query.session,
        principal: query.principal,
        action: query.action,
        since: query.since.map(|text| time("since", &text)).transpose()?,
        until: query.until.map(|text| time("until", &text)).transpose()?,
        text: query.text,
    };
    match rest.act(&principal, Action::Audit(ReadAudit { filter, limit, offset })).await? {
        Outcome::Audit(view) => Ok(Json(api::AuditList { lines: view.records, has_more: view.has_more })),
        other => Err(unexpected(&other)),
    }
}

fn time(field: &'static str, text: &str) -> Result<SystemTime, ProblemResponse> {
    let parsed: Result<jiff::Timestamp, _> = text.parse();
    parsed
        .map(SystemTime::from)
        .map_err(|_| ProblemResponse::field(field, "must be a time such as 2026-11-24T01:02:03Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_rfc_3339_with_its_zone() {
        for (text, is_time) in [
            ("2026-11-24T01:02:03Z", true),
            ("2026-11-24T01:02:03.123456+01:00", true),
            ("2026-11-24", false),
            ("2h", false),
            ("", false),
        ] {
            assert_eq!(time("since", text).is_ok(), is_time, "{text}");
        }
    }
}
