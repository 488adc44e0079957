//! A person's decision on a request about which a policy asks. A decision for always also adds a rule to the file beside
//! the policy file.

use std::io;
use std::path::Path;
use std::sync::Arc;

use tokio::time::Instant;

use super::pending::{check_shows_no_secret, not_for_always};
use crate::action::{ActionError, ApprovalView, Decision};
use crate::principal::Principal;
use crate::sessions::on_disk::on_disk;
use crate::sessions::services::Services;

/// Records a decision. If it is the first, tells the followers of events. A rule is written before the decision counts.
pub(in crate::sessions) async fn decide_approval(
    services: &Arc<Services>,
    principal: &Principal,
    id: &str,
    decision: Decision,
) -> Result<ApprovalView, ActionError> {
    let (services, principal, id) = (Arc::clone(services), principal.clone(), id.to_owned());
    // As a whole, even if its client goes away: a rule whose decision nobody was told of would be worse than either.
    on_disk(move || {
        let remember = |policy: &str, command: &str, cwd: &Path| remember(&services, &principal, policy, command, cwd);
        let approvals = &services.approvals;
        let (decided, is_first) = approvals.decide(&principal, &id, decision, Instant::now(), &remember)?;
        if is_first {
            tracing::info!(by = %principal.name, approval = %decided.id, session = %decided.session, decision = decision.name(), "an approval was decided on");
            services.server_events.approval_decided(&decided, decision);
        }
        Ok(decided)
    })
    .await
}

/// Makes a rule of this command. Blocks.
fn remember(
    services: &Services,
    principal: &Principal,
    policy: &str,
    command: &str,
    cwd: &Path,
) -> Result<(), ActionError> {
    let (_, masks) = services.sessions.name_and_masks(None);
    check_shows_no_secret(&masks, command)?;
    services.launcher.policies.remember(policy, command, cwd, &principal.name).map_err(|e| match e.kind() {
        io::ErrorKind::InvalidInput => not_for_always(&e.to_string()),
        _ => ActionError::Exhausted { why: format!("the rule cannot be written: {e}; nothing was decided") },
    })
}
