//! `/approvals`: lists what policies leave to a person, and records decisions.

use axum::Json;
use axum::extract::{Extension, Path, State};

use super::extract::Body;
use super::state::{Rest, unexpected};
use crate::http::convert;
use crate::http::problem::ProblemResponse;
use ptyd_core::action::{Action, ApprovalState, ApprovalSubject, ApprovalView, Decision, Outcome};
use ptyd_core::limits;
use ptyd_core::principal::Principal;

pub(super) async fn list(
    State(rest): State<Rest>,
    Extension(principal): Extension<Principal>,
) -> Result<Json<api::ApprovalList>, ProblemResponse> {
    match rest.act(&principal, Action::Approvals).await? {
        Outcome::Approvals(views) => Ok(Json(api::ApprovalList { approvals: views.into_iter().map(shown).collect() })),
        other => Err(unexpected(&other)),
    }
}

pub(super) async fn decide(
    State(rest): State<Rest>,
    Extension(principal): Extension<Principal>,
    id: Option<Path<String>>,
    Body(body): Body<api::DecisionRequest>,
) -> Result<Json<api::Approval>, ProblemResponse> {
    // A text that is not UTF-8 is not an id.
    let id = id.map(|Path(id)| id.chars().take(limits::TOKEN_NAME_CHARS_MAX).collect()).unwrap_or_default();
    let decision = match body.decision {
        api::Decision::Allow => Decision::Allow,
        api::Decision::Always => Decision::Always,
        api::Decision::Deny => Decision::Deny,
    };
    match rest.act(&principal, Action::DecideApproval { id, decision }).await? {
        Outcome::Approval(view) => Ok(Json(shown(*view))),
        other => Err(unexpected(&other)),
    }
}

/// A decision, as the wire has it.
pub(super) fn decision(decision: Decision) -> api::Decision {
    match decision {
        Decision::Allow => api::Decision::Allow,
        Decision::Always => api::Decision::Always,
        Decision::Deny => api::Decision::Deny,
    }
}

fn shown(view: ApprovalView) -> api::Approval {
    let (command, inside, input, input_length, keys) = match view.subject {
        ApprovalSubject::Command { text, inside } => (Some(text.into()), inside, None, None, None),
        ApprovalSubject::Input { text, length } => (None, false, text.map(Into::into), Some(length), None),
        ApprovalSubject::Keys(names) => (None, false, None, None, Some(names)),
    };
    let (state, decided_by) = match view.state {
        ApprovalState::Pending => (api::ApprovalState::Pending, None),
        ApprovalState::Allowed { by, .. } => (api::ApprovalState::Allowed, Some(by)),
        ApprovalState::Denied { by } => (api::ApprovalState::Denied, Some(by)),
    };
    api::Approval {
        id: view.id,
        session_id: view.session.to_string(),
        session_name: view.session_name,
        owner: view.owner,
        principal: view.principal,
        policy: view.policy,
        rule: view.rule,
        why: view.why,
        command,
        inside,
        cwd: view.cwd.map(|cwd| cwd.to_string_lossy().into_owned()),
        input,
        input_length,
        keys,
        state,
        decided_by,
        asked_at: convert::time(view.asked_at),
        expires_in: view.left.as_secs(),
    }
}
