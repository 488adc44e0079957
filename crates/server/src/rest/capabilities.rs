//! `/capabilities`: the tiers of confinement that this machine can give.

use axum::Json;
use axum::extract::{Extension, State};

use super::state::{Rest, unexpected};
use crate::http::convert;
use crate::http::problem::ProblemResponse;
use ptyd_core::action::{Action, CapabilitiesView, Outcome};
use ptyd_core::principal::Principal;

pub(super) async fn show(
    State(rest): State<Rest>,
    Extension(principal): Extension<Principal>,
) -> Result<Json<api::Capabilities>, ProblemResponse> {
    match rest.act(&principal, Action::Capabilities).await? {
        Outcome::Capabilities(view) => Ok(Json(shown(view))),
        other => Err(unexpected(&other)),
    }
}

fn shown(view: CapabilitiesView) -> api::Capabilities {
    let tier = |(tier, reason): (_, Option<String>)| api::ConfinementCapability {
        tier: convert::confinement(tier),
        available: reason.is_none(),
        reason,
    };
    api::Capabilities { confinement: view.confinement.into_iter().map(tier).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptyd_core::action::ConfinementTier;

    #[test]
    fn a_tier_that_the_machine_cannot_give_is_shown_with_the_reason() {
        let of = |reason: Option<&str>| {
            let confinement = vec![(ConfinementTier::Process, reason.map(str::to_owned))];
            serde_json::to_value(shown(CapabilitiesView { confinement })).expect("JSON")["confinement"][0].clone()
        };
        assert_eq!(of(None), serde_json::json!({"tier": "process", "available": true}));
        let without = serde_json::json!({"tier": "process", "available": false, "reason": "needs Landlock"});
        assert_eq!(of(Some("needs Landlock")), without);
    }
}
