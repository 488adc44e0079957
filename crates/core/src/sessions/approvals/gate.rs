//! The gate of the policies: dispatch asks here, for every primitive that runs or types something, before it is performed.
//!
//! A session's policy applies to every principal, because a server cannot tell a person from an agent of the same user. C-c
//! and signals always pass, and so does a secret that a person types at its page.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use policy::{Ruling, Standing, Verdict};
use tokio::time::Instant;
use wire::Key;

use super::pending::{Answer, ApprovalClaim, Asked, Words};
use crate::action::{
    Action, ActionError, Execute, Foreground, InputBytes, PolicyRefusal, ServerEventKind, TargetShell,
};
use crate::keys;
use crate::limits::{APPROVALS_PER_PRINCIPAL_MAX, JUDGED_WEIGHT, POLICY_BYTES_MAX, UNDERWAY_INTERVAL};
use crate::policy_file::PolicyFile;
use crate::principal::Principal;
use crate::sessions::on_disk::on_disk;
use crate::sessions::services::Services;
use crate::sessions::session::{KeyUse, Request};
use crate::sessions::shared::Shared;
use crate::sessions::taint::{UNPROVABLE, overtaken};
use crate::sessions::target::Target;

/// The byte of C-c.
const INTERRUPT: u8 = 3;

/// A policy judges commands and input.
#[derive(Debug, Clone, Copy)]
enum Subject {
    Command,
    Input,
}

/// The verdict of a session's policy on an action.
#[derive(Debug)]
pub(crate) struct Judged {
    shared: Arc<Shared>,
    policy: String,
    ruling: Ruling,
    subject: Subject,
    /// The directory of the session's shell, if it is known and the request is for that shell.
    cwd: Option<PathBuf>,
    /// How many unproven requests the session had admitted before.
    admitted: u64,
    /// A person's decision, if the verdict asks for one.
    answer: Option<Answer>,
}

/// The verdict on this action by the policies of its session and of its token; `None` if neither has one.
pub(crate) async fn judged(
    services: &Services,
    principal: &Principal,
    action: &Action,
    target: &Target,
) -> Result<Option<Judged>, ActionError> {
    let is_calming = match action {
        Action::Input(input) => calms(&input.bytes),
        Action::Type { bytes, .. } => is_interrupt(bytes),
        _ => false,
    };
    // Without a live session nothing is performed, and its error is the answer.
    let (false, Ok(handle)) = (is_calming, &target.live) else { return Ok(None) };
    let shared = Arc::clone(&handle.shared);
    let admitted = shared.taint.admitted();
    let has_policy = shared.meta.policy.is_some() || principal.policy().is_some();
    // The kernel is asked, and not the shell.
    let is_nested = matches!(action, Action::Execute(Execute { shell: TargetShell::Nested, .. }));
    let shell = handle.feed.borrow().summary.as_ref().and_then(|summary| summary.pid);
    let shell = shell.filter(|_| has_policy && !is_nested);
    let cwd = shell.and_then(|pid| services.backends.host.working_directory(pid));
    let judge = || {
        let (policy, mut ruling) =
            ruling_of_both(&services.launcher.policies, principal, &shared, action, cwd.as_deref())?;
        // It may quote the command, and half a secret is not recognized.
        ruling.why = shared.folder.masks().text(ruling.why).into();
        ruling.shorten();
        Some((policy, ruling))
    };
    let judged_bytes = if has_policy { action.command_bytes().min(POLICY_BYTES_MAX) } else { 0 };
    let judging = services.server_events.lanes.work(&principal.name, judged_bytes * JUDGED_WEIGHT, judge);
    let Some((policy, ruling)) = judging.await else { return Ok(None) };
    let subject = if matches!(action, Action::Execute(_)) { Subject::Command } else { Subject::Input };
    let mut judged = Judged { shared, policy, ruling, subject, cwd, admitted, answer: None };
    let (name, used) = match action {
        Action::Execute(execute) => (execute.key.as_deref(), target.key()),
        Action::Input(input) => (input.key.as_deref(), target.key()),
        _ => (None, None),
    };
    let key = used.filter(|_| matches!(action, Action::Execute(_)));
    let hides_input = handle.feed.borrow().foreground == Some(Foreground::PasswordWanted);
    loop {
        if let Some(key) = used.filter(|_| judged.ruling.verdict != Verdict::Allow) {
            match handle.ask(|reply| Request::KeyUse(key, reply)).await {
                // A repetition is answered with its command, and runs nothing.
                Ok(KeyUse::Command(_)) => return Ok(None),
                // A person is asked about nothing that cannot be performed.
                Ok(KeyUse::OtherRequest) if judged.ruling.verdict == Verdict::Ask => {
                    return Err(ActionError::KeyReused { key: name.unwrap_or_default().to_owned() });
                }
                Ok(KeyUse::Unused | KeyUse::Underway | KeyUse::OtherRequest) | Err(_) => {}
            }
        }
        judged.answer = Asked::of(action, principal, hides_input, judged.cwd.as_deref())
            .and_then(|asked| answer_of_person(services, principal, &judged, asked, key));
        match judged.answer {
            Some(Answer::Underway) => services.approvals.changes_within(UNDERWAY_INTERVAL).await,
            _ => break,
        }
    }
    if let Some(Answer::Pending { id, is_new: true }) = &judged.answer {
        // It may have ended since it was found.
        if !services.sessions.is_live(&judged.shared.id) {
            services.approvals.forget_session(&judged.shared.id);
        }
        services.server_events.notify(&judged.shared, ServerEventKind::Approval { id: id.clone(), decision: None });
    }
    Ok(Some(judged))
}

/// If the ruling asks a person: the decision about the request, or a new approval for it.
fn answer_of_person(
    services: &Services,
    principal: &Principal,
    judged: &Judged,
    asked: Asked,
    key: Option<Key>,
) -> Option<Answer> {
    let Judged { shared, policy, ruling, .. } = judged;
    let approvals = &services.approvals;
    match ruling.verdict {
        Verdict::Ask => {}
        // A decision on this very request goes before the rule that was made of one.
        Verdict::Allow if ruling.is_remembered => return approvals.decision_before(&asked, key, Instant::now()),
        Verdict::Allow | Verdict::Deny => return None,
    }
    let words = Words {
        session_name: shared.meta.name.get(),
        owner: shared.meta.owner.clone(),
        policy: policy.clone(),
        rule: ruling.rule.clone(),
        why: ruling.why.clone(),
        never_provable: shared.meta.unprovable.clone(),
        masks: shared.folder.masks().clone(),
    };
    Some(approvals.answer(asked, key, principal.origin.door, words, Instant::now()))
}

/// The ruling of the session's policy and of the token's, with the name of the policy that gave it. The stricter one
/// counts; if both say the same, the session's.
fn ruling_of_both(
    policies: &PolicyFile,
    principal: &Principal,
    shared: &Shared,
    action: &Action,
    cwd: Option<&Path>,
) -> Option<(String, Ruling)> {
    let of_session = shared.meta.policy.as_deref();
    let of_token = principal.policy().filter(|name| of_session != Some(name));
    let ruled = [of_session, of_token].into_iter().flatten();
    ruled.map(|name| (name.to_owned(), ruling(policies, shared, name, action, cwd))).reduce(
        |(one, before), (other, ruling)| {
            let (taints, is_proven) = (before.taints || ruling.taints, before.is_proven && ruling.is_proven);
            let is_remembered = before.is_remembered || ruling.is_remembered;
            let counts = ruling.verdict > before.verdict || (ruling.verdict == before.verdict && ruling.is_remembered);
            let (name, of) = if counts { (other, ruling) } else { (one, before) };
            (name, Ruling { taints, is_proven, is_remembered, ..of })
        },
    )
}

fn ruling(policies: &PolicyFile, shared: &Shared, name: &str, action: &Action, cwd: Option<&Path>) -> Ruling {
    let policies = match policies.policies() {
        Ok(policies) => policies,
        Err(why) => return denied(why),
    };
    let Some(policy) = policies.get(name) else {
        return denied(format!("the policy file has no policy {name:?} any more"));
    };
    let Action::Execute(execute) = action else { return policy.typed_input() };
    let taint = shared.taint.reason();
    let hindrance = match (execute.shell, &shared.meta.unprovable) {
        (TargetShell::Nested, _) => Some("a nested shell runs it"),
        (_, Some(why)) => Some(why.as_str()),
        _ if shared.meta.policy.is_none() => Some("the session was started without a policy"),
        _ => taint.as_deref(),
    };
    policy.command(&execute.command, hindrance.map_or(Standing::Provable(cwd), Standing::Unprovable))
}

impl Judged {
    pub(crate) fn verdict(&self) -> &'static str {
        self.ruling.verdict.name()
    }

    pub(crate) fn rule(&self) -> &str {
        &self.ruling.rule
    }

    /// The id of the approval, and who allowed it.
    pub(crate) fn approval(&self) -> Option<(&str, &str)> {
        match &self.answer {
            Some(Answer::Allowed(used)) => Some((used.id(), used.by())),
            _ => None,
        }
    }

    /// The approval that a person has still to give.
    pub(crate) fn waits_for(&self) -> Option<&str> {
        match &self.answer {
            Some(Answer::Pending { id, .. }) => Some(id.as_str()),
            _ => None,
        }
    }

    /// Why it is not performed, if it is not.
    pub(crate) fn refusal(&self) -> Option<ActionError> {
        match &self.answer {
            Some(Answer::Allowed(_)) => None,
            Some(Answer::Denied { id, by }) => self.denial(format!("{by} has denied approval {id}")),
            Some(Answer::Pending { id, .. }) => self.refusal_of(&self.ruling, Some(id.clone())),
            Some(Answer::TooMany) => Some(ActionError::Limit {
                what: "the number of approvals of one principal",
                limit: APPROVALS_PER_PRINCIPAL_MAX as u64,
                hint: "nothing was done, and ptyd did not ask a person; ptyd approvals lists the open approvals; ptyd \
                 removes one when it is denied, when its request has run, or 10 minutes after the request or the \
                 approval",
            }),
            Some(Answer::Underway) | None => self.refusal_of(&self.ruling, None),
        }
    }

    fn denial(&self, why: String) -> Option<ActionError> {
        self.refusal_of(&Ruling { verdict: Verdict::Deny, why, ..self.ruling.clone() }, None)
    }

    fn refusal_of(&self, ruling: &Ruling, approval: Option<String>) -> Option<ActionError> {
        let undone = match self.subject {
            Subject::Command => "not run",
            Subject::Input => "nothing was typed",
        };
        PolicyRefusal::error(undone, &self.policy, ruling, self.shared.meta.confinement.tier.is_none(), approval)
    }

    /// Prepares the session for it. A proven command runs in the shell for which it was proven; an unproven request is on
    /// record before it runs. Returns the approval that it uses up.
    pub(crate) async fn admit(mut self, action: &mut Action) -> Result<Option<Box<ApprovalClaim>>, ActionError> {
        let taken = match self.answer.take() {
            Some(Answer::Allowed(taken)) => Some(taken),
            _ => None,
        };
        let has_proof = self.ruling.is_proven || self.ruling.is_remembered;
        let needs_proof = has_proof && taken.is_none();
        let most_before = if needs_proof { self.admitted } else { u64::MAX };
        if self.ruling.taints && !self.taint(most_before).await? {
            return Err(overtaken(&self.shared.meta, UNPROVABLE));
        }
        if let Action::Execute(execute) = action
            && (taken.is_some() || self.ruling.is_remembered)
        {
            execute.allowed_in = self.cwd.take();
            // A nested shell has a directory of its own.
            if execute.allowed_in.is_some() {
                execute.shell = TargetShell::Own;
            }
        }
        match (action, &taken) {
            (Action::Execute(execute), _) if needs_proof => {
                execute.shell = TargetShell::Proven(self.admitted + u64::from(self.ruling.taints));
            }
            (Action::Execute(execute), _) if has_proof => execute.shell = TargetShell::Own,
            (Action::Input(input), Some(taken)) => input.is_hidden = taken.is_hidden(),
            _ => {}
        }
        Ok(taken.map(|taken| taken.used()))
    }

    /// Makes the session unprovable, unless more than this many requests have done so before.
    async fn taint(&self, most_before: u64) -> Result<bool, ActionError> {
        let reason = match self.subject {
            Subject::Command if self.ruling.is_proven => {
                format!("a command ran that changes later ones: {}", self.ruling.why)
            }
            Subject::Command => format!("a command ran that is not proven: {}", self.ruling.why),
            Subject::Input => "input was typed".to_owned(),
        };
        let shared = Arc::clone(&self.shared);
        on_disk(move || shared.taint.record(&shared.folder, &reason, most_before)).await
    }
}

fn denied(why: String) -> Ruling {
    Ruling {
        verdict: Verdict::Deny,
        rule: "policy_file".to_owned(),
        why,
        taints: true,
        is_proven: false,
        is_remembered: false,
    }
}

/// Whether this input can do nothing but interrupt.
fn calms(input: &InputBytes) -> bool {
    match input {
        InputBytes::Raw(bytes) => is_interrupt(bytes),
        InputBytes::Keys(pressed) => {
            let interrupt = keys::parse("C-c").unwrap_or_default();
            !pressed.is_empty() && pressed.iter().all(|key| interrupt.contains(key))
        }
        InputBytes::Paste { .. } => false,
    }
}

fn is_interrupt(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|byte| *byte == INTERRUPT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    // promise: policy-5
    fn only_an_interrupt_calms() {
        let key = |name: &str| InputBytes::Keys(keys::parse(name).expect(name));
        assert!(calms(&InputBytes::Raw(vec![3, 3])) && calms(&key("C-c")));
        for other in [InputBytes::Raw(vec![]), InputBytes::Raw(b"\x03rm x\n".to_vec()), key("Enter"), key("C-d")] {
            assert!(!calms(&other), "{other:?}");
        }
        assert!(!calms(&InputBytes::Paste { text: "\u{3}".to_owned(), enters: false }));
    }
}
