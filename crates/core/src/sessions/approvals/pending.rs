//! The approvals: requests about which a policy asks a person, until they are performed or forgotten. They are in memory
//! only: after a restart, a person is asked again.
//!
//! An approval is for one caller, one session and exactly one text or input, and is valid once. Until a person has decided,
//! ptyd refuses the caller, who then sends the same again. Or the caller waits for the decision (`approval_wait.rs`), in
//! its own request and nowhere else.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use journal::Masks;

use subtle::ConstantTimeEq;
use tokio::sync::watch;
use tokio::time::Instant;
use wire::Key;

use super::approver::{Asker, check_approver};
use crate::action::{
    Action, ActionError, ApprovalState, ApprovalSubject, ApprovalView, Decision, InputBytes, TargetShell,
};
use crate::ids::{IdKind, SessionId};
use crate::limits::{APPROVAL_LIFETIME, APPROVALS_PER_PRINCIPAL_MAX};
use crate::mutex::locked;
use crate::principal::{Door, Principal};
use crate::sessions::secret_requests::random_name;

/// A request for which a person is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::sessions) struct Asked {
    session: SessionId,
    principal: String,
    /// The first maker of the principal's token, or the principal itself.
    first_maker: String,
    /// Whether a program in a session has asked.
    is_of_program: bool,
    /// The directory of the session's shell, if it is known.
    cwd: Option<PathBuf>,
    request: Request,
}

/// The request, to the byte.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Request {
    Command {
        text: String,
        shell: TargetShell,
    },
    /// A person sees only its length, because it is secret or a program asks for a password.
    Input {
        bytes: InputBytes,
        is_hidden: bool,
    },
}

/// The words for a person.
#[derive(Debug, Clone)]
pub(in crate::sessions) struct Words {
    pub(in crate::sessions) session_name: Option<String>,
    pub(in crate::sessions) owner: String,
    pub(in crate::sessions) policy: String,
    pub(in crate::sessions) rule: String,
    pub(in crate::sessions) why: String,
    /// Why none of the session's commands can be allowed for always.
    pub(super) never_provable: Option<String>,
    /// The masks of the session.
    pub(in crate::sessions) masks: Masks,
}

#[derive(Debug, Clone)]
struct Approval {
    id: String,
    asked: Asked,
    words: Words,
    /// The protocol of the request.
    door: Door,
    /// The name of its page, once one was asked for.
    page: Option<String>,
    state: ApprovalState,
    asked_at: SystemTime,
    until: Instant,
}

/// The answer to a request that needs one.
#[derive(Debug)]
pub(in crate::sessions) enum Answer {
    /// It may be performed now; the approval is used up.
    Allowed(Box<ApprovalClaim>),
    Denied {
        id: String,
        by: String,
    },
    /// A person has to decide.
    Pending {
        id: String,
        /// It is new.
        is_new: bool,
    },
    /// The principal has as many as it can have.
    TooMany,
    /// The same request, with the same idempotency key, is being performed with its approval. Soon its result is known, or
    /// the approval is valid again.
    Underway,
}

/// An approval that a request has taken. If it is dropped before the request is performed, the approval is valid again.
#[derive(Debug)]
pub(crate) struct ApprovalClaim {
    approval: Approval,
    /// The request is being performed. Whether it was cannot be known later, so the approval is not valid any more.
    is_used: bool,
    from: Approvals,
}

/// The approvals of a server; clones are the same ones.
#[derive(Debug, Clone, Default)]
pub(crate) struct Approvals(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// The number of this server, for the ids.
    node: u16,
    all: Mutex<Vec<Approval>>,
    /// Held during a decision: one for always writes a file, and no other may come in between.
    deciding: Mutex<()>,
    /// The requests with a key that are being performed, each with the id of its approval.
    underway: Mutex<Vec<(String, Asked, Key)>>,
    /// Notified of every decision, and when a request has been performed.
    decided: watch::Sender<()>,
}

impl Asked {
    /// The request of this action; `hides_input` if a program asks for a password. `None` for an action that no person is
    /// asked about.
    pub(in crate::sessions) fn of(
        action: &Action,
        principal: &Principal,
        hides_input: bool,
        cwd: Option<&Path>,
    ) -> Option<Self> {
        let (session, request) = match action {
            Action::Execute(execute) => {
                (&execute.session, Request::Command { text: execute.command.clone(), shell: execute.shell })
            }
            Action::Input(input) => {
                let is_hidden = input.is_secret || hides_input;
                (&input.session, Request::Input { bytes: input.bytes.clone(), is_hidden })
            }
            _ => return None,
        };
        let (first_maker, is_of_program) =
            (principal.first_maker().to_owned(), principal.origin.from_session.is_some());
        let (session, principal) = (session.clone(), principal.name.clone());
        let cwd = cwd.map(Path::to_owned);
        Some(Self { session, principal, first_maker, is_of_program, cwd, request })
    }

    fn subject(&self, words: &Words) -> ApprovalSubject {
        match &self.request {
            Request::Command { text, shell } => {
                ApprovalSubject::Command { text: words.masks.text(text.clone()), inside: *shell == TargetShell::Nested }
            }
            Request::Input { bytes, is_hidden } => {
                let (text, length) = match bytes {
                    InputBytes::Raw(bytes) => (String::from_utf8_lossy(bytes).into_owned(), bytes.len()),
                    InputBytes::Paste { text, enters } => {
                        let text = text.clone() + if *enters { "\r" } else { "" };
                        (text.clone(), text.len())
                    }
                    InputBytes::Keys(keys) if *is_hidden => (String::new(), keys.len()),
                    InputBytes::Keys(keys) => {
                        return ApprovalSubject::Keys(keys.iter().map(ToString::to_string).collect());
                    }
                };
                ApprovalSubject::Input { text: (!is_hidden).then(|| words.masks.text(text)), length }
            }
        }
    }
}

impl Approvals {
    /// None yet, on this node.
    pub(in crate::sessions) fn on(node: u16) -> Self {
        Self(Arc::new(Shared { node, ..Shared::default() }))
    }

    /// The decision about this request, or a new approval for it. An allowed one is used up.
    pub(in crate::sessions) fn answer(
        &self,
        asked: Asked,
        key: Option<Key>,
        door: Door,
        words: Words,
        now: Instant,
    ) -> Answer {
        let mut all = locked(&self.0.all);
        all.retain(|approval| now < approval.until);
        if let Some(at) = all.iter().position(|approval| approval.asked == asked) {
            return self.decided_at(&mut all, at, key);
        }
        if key.is_some_and(|key| locked(&self.0.underway).iter().any(|(_, of, its)| *of == asked && *its == key)) {
            return Answer::Underway;
        }
        let is_denied = |one: &Approval| matches!(one.state, ApprovalState::Denied { .. });
        let of_principal = |one: &&Approval| one.asked.principal == asked.principal;
        let (mut denied, open): (Vec<_>, Vec<_>) = all.iter().filter(of_principal).partition(|one| is_denied(one));
        if open.len() >= APPROVALS_PER_PRINCIPAL_MAX {
            return Answer::TooMany;
        }
        // A denied one is kept so that a repetition learns of it. It takes no room from what a person has still to decide.
        denied.sort_by_key(|one| one.until);
        let excess = denied.len().saturating_sub(APPROVALS_PER_PRINCIPAL_MAX - 1);
        let oldest: Vec<String> = denied[..excess].iter().map(|one| one.id.clone()).collect();
        all.retain(|approval| !oldest.contains(&approval.id));
        let id = IdKind::Approval.random(self.0.node);
        let state = ApprovalState::Pending;
        let (asked_at, until) = (sys::time::wall(), now + APPROVAL_LIFETIME);
        all.push(Approval { id: id.clone(), asked, words, door, page: None, state, asked_at, until });
        Answer::Pending { id, is_new: true }
    }

    fn decided_at(&self, all: &mut Vec<Approval>, at: usize, key: Option<Key>) -> Answer {
        let id = all[at].id.clone();
        match all[at].state.clone() {
            ApprovalState::Pending => Answer::Pending { id, is_new: false },
            ApprovalState::Denied { by } => Answer::Denied { id, by },
            ApprovalState::Allowed { .. } => {
                let approval = all.remove(at);
                locked(&self.0.underway).extend(key.map(|key| (id, approval.asked.clone(), key)));
                Answer::Allowed(Box::new(ApprovalClaim { approval, is_used: false, from: self.clone() }))
            }
        }
    }

    /// The decision about a request that no longer needs one, if there is one. An allowed one is used up.
    pub(super) fn decision_before(&self, asked: &Asked, key: Option<Key>, now: Instant) -> Option<Answer> {
        let mut all = locked(&self.0.all);
        all.retain(|approval| now < approval.until);
        let at = all.iter().position(|approval| approval.asked == *asked)?;
        match all[at].state.clone() {
            ApprovalState::Pending => None,
            _ => Some(self.decided_at(&mut all, at, key)),
        }
    }

    /// Forgets the approvals of a token that is revoked, or that expired before this one of its name was made.
    pub(in crate::sessions) fn forget_principal(&self, name: &str) {
        self.keep(|asked| asked.principal != name);
    }

    /// Forgets the approvals of a session that has ended. A request that waits for one continues, and learns of the end.
    pub(in crate::sessions) fn forget_session(&self, session: &SessionId) {
        self.keep(|asked| asked.session != *session);
    }

    fn keep(&self, is_kept: impl Fn(&Asked) -> bool) {
        locked(&self.0.all).retain(|approval| is_kept(&approval.asked));
        self.0.decided.send_replace(());
    }

    /// Waits until a person has decided, or another request has used the approval up. If the approval expires, waits for
    /// ever.
    pub(crate) async fn decided(&self, id: &str) {
        let mut decided = self.0.decided.subscribe();
        loop {
            decided.borrow_and_update();
            let is_pending = |one: &&Approval| one.id == id && one.state == ApprovalState::Pending;
            let Some(until) = locked(&self.0.all).iter().find(is_pending).map(|one| one.until) else { return };
            tokio::select! {
                _ = decided.changed() => {}
                () = tokio::time::sleep_until(until) => std::future::pending().await,
            }
        }
    }

    /// Waits for the next decision, or until a request has been performed, but not longer than this.
    pub(super) async fn changes_within(&self, time: Duration) {
        let mut decided = self.0.decided.subscribe();
        let _ = tokio::time::timeout(time, decided.changed()).await;
    }

    /// The name of the page on which a person decides. Only the client that made the request over MCP learns it, to send its person
    /// there, and no program in a session does. The name proves nothing: `decide` judges who sends the form.
    pub(in crate::sessions) fn page(&self, principal: &Principal, id: &str, now: Instant) -> Option<String> {
        if principal.origin.door != Door::Mcp || principal.origin.from_session.is_some() {
            return None;
        }
        let mut all = locked(&self.0.all);
        let is_it = |one: &&mut Approval| one.id == id && one.asked.principal == principal.name && now < one.until;
        let approval = all.iter_mut().find(is_it).filter(|one| one.state == ApprovalState::Pending)?;
        Some(approval.page.get_or_insert_with(|| IdKind::Approval.id(self.0.node, &random_name())).clone())
    }

    /// The approval of this page; the comparison takes constant time.
    pub(in crate::sessions) fn on_page(&self, principal: &Principal, name: &str, now: Instant) -> Option<ApprovalView> {
        let all = locked(&self.0.all);
        let is_it =
            |one: &&Approval| one.page.as_ref().is_some_and(|page| page.as_bytes().ct_eq(name.as_bytes()).into());
        let approval = all.iter().find(is_it).filter(|one| now < one.until)?;
        (principal.is_admin() || approval.asked.principal == principal.name).then(|| approval.view(now))
    }

    /// Those that this principal may see, oldest first.
    pub(in crate::sessions) fn list(&self, principal: &Principal, now: Instant) -> Vec<ApprovalView> {
        let mut all = locked(&self.0.all);
        all.retain(|approval| now < approval.until);
        let seen = |one: &&Approval| principal.is_admin() || one.words.owner == principal.name;
        all.iter().filter(seen).map(|approval| approval.view(now)).collect()
    }

    /// The number of requests about which nobody has decided.
    pub(crate) fn waiting(&self) -> usize {
        let now = Instant::now();
        let waits = |one: &&Approval| one.state == ApprovalState::Pending && now < one.until;
        locked(&self.0.all).iter().filter(waits).count()
    }

    /// Records a decision, and returns whether it is the first: a later one changes nothing. For always, `remember` first
    /// makes a rule of the policy and the command. It may block.
    pub(in crate::sessions) fn decide(
        &self,
        principal: &Principal,
        id: &str,
        decision: Decision,
        now: Instant,
        remember: &dyn Fn(&str, &str, &Path) -> Result<(), ActionError>,
    ) -> Result<(ApprovalView, bool), ActionError> {
        principal.may_be_a_person()?;
        if let Some(node) = IdKind::Approval.node_of(id).filter(|node| *node != self.0.node) {
            return Err(ActionError::OtherNode { id: id.to_owned(), node });
        }
        let unknown = || {
            let problem = "there is no approval with this id; it may have been used or have expired".to_owned();
            ActionError::Invalid { field: "approval", problem }
        };
        let _deciding = locked(&self.0.deciding);
        let mut all = locked(&self.0.all);
        all.retain(|approval| now < approval.until);
        let approval = all.iter_mut().find(|approval| approval.id == id).ok_or_else(unknown)?;
        let Asked { first_maker, is_of_program, .. } = &approval.asked;
        check_approver(principal, &Asker { first_maker, is_of_program: *is_of_program, door: approval.door })?;
        let stands = match &approval.state {
            ApprovalState::Pending => None,
            ApprovalState::Allowed { by, for_always: false } => Some((Decision::Allow, by, "allowed it")),
            ApprovalState::Allowed { by, for_always: true } => Some((Decision::Always, by, "allowed it permanently")),
            ApprovalState::Denied { by } => Some((Decision::Deny, by, "denied it")),
        };
        match stands {
            Some((before, ..)) if before == decision => return Ok((approval.view(now), false)),
            Some((_, by, decision)) => {
                let (id, by) = (id.to_owned(), by.clone());
                return Err(ActionError::AlreadyDecided { id, by, decision });
            }
            None => {}
        }
        if decision == Decision::Always {
            let (policy, command, cwd) = approval.rule_of_it()?;
            // It is not forgotten while the rule is written, and other requests are not held up by that.
            approval.until = now + APPROVAL_LIFETIME;
            drop(all);
            remember(&policy, &command, &cwd)?;
            all = locked(&self.0.all);
        }
        let approval = all.iter_mut().find(|approval| approval.id == id).ok_or_else(unknown)?;
        let by = principal.name.clone();
        approval.state = match decision {
            Decision::Allow => ApprovalState::Allowed { by, for_always: false },
            Decision::Always => ApprovalState::Allowed { by, for_always: true },
            Decision::Deny => ApprovalState::Denied { by },
        };
        // The caller has the whole time from now on.
        approval.until = now + APPROVAL_LIFETIME;
        let view = approval.view(now);
        self.0.decided.send_replace(());
        Ok((view, true))
    }
}

impl ApprovalClaim {
    pub(in crate::sessions) fn id(&self) -> &str {
        &self.approval.id
    }

    /// Whether its input was not shown to the person.
    pub(in crate::sessions) fn is_hidden(&self) -> bool {
        matches!(self.approval.asked.request, Request::Input { is_hidden: true, .. })
    }

    /// The principal that allowed it.
    pub(in crate::sessions) fn by(&self) -> &str {
        match &self.approval.state {
            ApprovalState::Allowed { by, .. } | ApprovalState::Denied { by } => by,
            ApprovalState::Pending => "",
        }
    }

    /// The request is performed from now on.
    pub(in crate::sessions) fn used(mut self: Box<Self>) -> Box<Self> {
        self.is_used = true;
        self
    }

    /// The request was not performed, because the session was busy: the approval is valid again.
    pub(crate) fn put_back(mut self) {
        self.is_used = false;
    }
}

impl Drop for ApprovalClaim {
    fn drop(&mut self) {
        if !self.is_used {
            // Before a newer one for the same request.
            locked(&self.from.0.all).insert(0, self.approval.clone());
        }
        locked(&self.from.0.underway).retain(|(id, ..)| *id != self.approval.id);
        // Another request that waits for the same may have it.
        self.from.0.decided.send_replace(());
    }
}

impl Approval {
    /// The policy, the command and the directory of the rule that a decision for always makes.
    fn rule_of_it(&self) -> Result<(String, String, PathBuf), ActionError> {
        let why = match &self.asked.request {
            Request::Input { .. } => "the effect of typed input depends on the program that reads it".to_owned(),
            Request::Command { shell: TargetShell::Nested, .. } => {
                "a nested shell runs it, and a rule can allow commands only in the session's own shell".to_owned()
            }
            Request::Command { text, .. } => {
                check_shows_no_secret(std::slice::from_ref(&self.words.masks), text)?;
                let never = self.words.never_provable.as_ref();
                let never = never.map(|why| format!("no rule can allow commands in its session: {why}"));
                let Some(cwd) = &self.asked.cwd else {
                    return Err(not_for_always("the directory of its shell is unknown"));
                };
                match never.or_else(|| policy::unfit_to_remember(text, cwd)) {
                    Some(why) => why,
                    None => return Ok((self.words.policy.clone(), text.clone(), cwd.clone())),
                }
            }
        };
        Err(not_for_always(&why))
    }

    fn view(&self, now: Instant) -> ApprovalView {
        let Words { session_name, owner, policy, rule, why, .. } = self.words.clone();
        ApprovalView {
            id: self.id.clone(),
            session: self.asked.session.clone(),
            session_name,
            owner,
            principal: self.asked.principal.clone(),
            policy,
            rule,
            why,
            subject: self.asked.subject(&self.words),
            cwd: self.asked.cwd.clone(),
            state: self.state.clone(),
            asked_at: self.asked_at,
            left: self.until.saturating_duration_since(now),
        }
    }
}

/// Refuses a decision for always on a command that contains one of these secrets.
pub(super) fn check_shows_no_secret(masks: &[Masks], command: &str) -> Result<(), ActionError> {
    if masks.iter().any(|masks| masks.text(command.to_owned()) != *command) {
        return Err(not_for_always("the command contains the value of a named secret, and the rule would show it"));
    }
    Ok(())
}

/// The refusal of a decision for always. Nothing is decided then.
pub(super) fn not_for_always(why: &str) -> ActionError {
    let problem = format!("this can be allowed only once: {why}; allow it without `always`, or deny it");
    ActionError::Invalid { field: "decision", problem }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::principal::{Pass, Scope};
    use crate::token_bounds::TokenBounds;

    fn asked(principal: &str, text: &str) -> Asked {
        let session = SessionId::parse("s0-aaaaaaaaaa").expect("an id");
        let request = Request::Command { text: text.to_owned(), shell: TargetShell::Own };
        Asked {
            session,
            principal: principal.to_owned(),
            first_maker: principal.to_owned(),
            is_of_program: false,
            cwd: Some(PathBuf::from("/src")),
            request,
        }
    }

    fn words() -> Words {
        let text = || "x".to_owned();
        Words {
            session_name: None,
            owner: "bot".to_owned(),
            policy: text(),
            rule: text(),
            why: text(),
            never_provable: None,
            masks: Masks::default(),
        }
    }

    fn by(name: &str) -> Principal {
        let mut principal = Principal::named(name, Scope::Admin);
        principal.origin.door = Door::Rest;
        principal
    }

    fn forgets(_: &str, _: &str, _: &Path) -> Result<(), ActionError> {
        Ok(())
    }

    #[test]
    // promise: policy-7
    fn an_approval_is_for_one_request_and_good_once() {
        let (approvals, now) = (Approvals::default(), Instant::now());
        let ask =
            |principal: &str, text: &str, now| approvals.answer(asked(principal, text), None, Door::Mcp, words(), now);
        let pending = |principal: &str, text: &str, now| match ask(principal, text, now) {
            Answer::Pending { id, .. } => id,
            other => panic!("{other:?}"),
        };
        let id = pending("bot", "make", now);
        assert_eq!(pending("bot", "make", now), id, "the same");
        approvals.decide(&by("ada"), &id, Decision::Allow, now, &forgets).expect("decided");
        assert!([pending("bot", "make x", now), pending("eve", "make", now)].iter().all(|other| *other != id));
        let Answer::Allowed(used) = ask("bot", "make", now) else { panic!("allowed") };
        assert_eq!((used.id(), used.by()), (id.as_str(), "ada"));
        drop(used);
        let elsewhere = Asked { cwd: Some(PathBuf::from("/src/b")), ..asked("bot", "make") };
        let elsewhere = approvals.answer(elsewhere, None, Door::Mcp, words(), now);
        assert!(
            matches!(elsewhere, Answer::Pending { is_new: true, .. }),
            "in another directory it is another request"
        );
        let Answer::Allowed(used) = ask("bot", "make", now) else { panic!("it was not performed") };
        used.used().put_back();
        let keyed = |key| approvals.answer(asked("bot", "make"), Some(key), Door::Mcp, words(), now);
        let Answer::Allowed(used) = keyed([1; 16]) else { panic!("the session was busy") };
        let used = used.used();
        assert!(matches!(keyed([1; 16]), Answer::Underway), "no person is asked about a repetition");
        used.put_back();
        let Answer::Allowed(used) = keyed([1; 16]) else { panic!("the session was busy again") };
        drop(used.used());
        let next = pending("bot", "make", now);
        assert_ne!(next, id, "it is used up");
        approvals.decide(&by("ada"), &next, Decision::Deny, now, &forgets).expect("decided");
        for _ in 0..2 {
            let Answer::Denied { id, by } = ask("bot", "make", now) else { panic!("denied") };
            assert_eq!((id, by.as_str()), (next.clone(), "ada"));
        }
        let again = |decision| approvals.decide(&by("eve"), &next, decision, now, &forgets);
        assert!(again(Decision::Deny).is_ok_and(|(view, is_first)| !is_first && view.id == next));
        assert!(matches!(again(Decision::Allow), Err(ActionError::AlreadyDecided { by, .. }) if by == "ada"));
        let late = now + APPROVAL_LIFETIME;
        assert_ne!(pending("bot", "make", late), next, "forgotten");
        assert!(approvals.decide(&by("ada"), &next, Decision::Allow, late, &forgets).is_err());
    }

    #[test]
    // promise: policy-7
    fn nobody_approves_a_request_of_their_own() {
        let (approvals, now) = (Approvals::default(), Instant::now());
        let decided = |door, approver: Principal| {
            let text = format!("{door:?} {approver:?}");
            let Answer::Pending { id, .. } = approvals.answer(asked("ada", &text), None, door, words(), now) else {
                panic!("it is pending")
            };
            approvals.decide(&approver, &id, Decision::Allow, now, &forgets).is_ok()
        };
        assert_eq!([decided(Door::Rest, by("ada")), decided(Door::Mcp, by("ada"))], [false, true]);
        assert!(decided(Door::Rest, by("eve")));
        let (mut tool, mut program) = (by("eve"), by("eve"));
        tool.origin.door = Door::Mcp;
        program.origin.from_session = SessionId::parse("s0-aaaaaaaaaa").ok();
        assert_eq!([decided(Door::Mcp, tool), decided(Door::Mcp, program)], [false, false]);
        // A token's request over MCP is its own: who shows the token may be who asked with it.
        let mut token = by("ada");
        let pass = |maker: Option<&str>| {
            Some(Pass::new(watch::channel(false).1, None, maker.map(str::to_owned), TokenBounds::default()))
        };
        token.pass = pass(None);
        assert_eq!([decided(Door::Mcp, token.clone()), decided(Door::Rest, token)], [false, false]);
        let made_by = |maker| Principal { pass: pass(Some(maker)), ..by("puppet") };
        assert_eq!([decided(Door::Mcp, made_by("ada")), decided(Door::Rest, made_by("ada"))], [false, false]);
        assert!(decided(Door::Mcp, made_by("eve")));
    }

    #[test]
    fn approvals_of_one_principal_are_bounded_and_seen_by_its_owner_and_admins() {
        let (approvals, now) = (Approvals::default(), Instant::now());
        for number in 0..=APPROVALS_PER_PRINCIPAL_MAX {
            let answer = approvals.answer(asked("bot", &number.to_string()), None, Door::Mcp, words(), now);
            assert_eq!(matches!(answer, Answer::TooMany), number == APPROVALS_PER_PRINCIPAL_MAX);
        }
        let seen = |name, scope| approvals.list(&Principal::named(name, scope), now).len();
        assert_eq!(seen("bot", Scope::Read), APPROVALS_PER_PRINCIPAL_MAX);
        assert_eq!([seen("eve", Scope::Write), seen("ada", Scope::Admin)], [0, APPROVALS_PER_PRINCIPAL_MAX]);
        approvals.forget_session(&asked("bot", "").session);
        assert!(matches!(
            approvals.answer(asked("bot", "x"), None, Door::Mcp, words(), now),
            Answer::Pending { is_new: true, .. }
        ));
    }

    #[test]
    fn denied_approvals_leave_room_for_others() {
        let (approvals, now) = (Approvals::default(), Instant::now());
        let ada = Principal::named("ada", Scope::Admin);
        for number in 0..3 * APPROVALS_PER_PRINCIPAL_MAX {
            let answer = approvals.answer(asked("bot", &number.to_string()), None, Door::Mcp, words(), now);
            let Answer::Pending { id, is_new: true } = answer else { panic!("{number}: {answer:?}") };
            approvals.decide(&ada, &id, Decision::Deny, now, &|_, _, _| Ok(())).expect("decided");
        }
        let again = |number: usize| approvals.answer(asked("bot", &number.to_string()), None, Door::Mcp, words(), now);
        assert!(
            matches!(again(3 * APPROVALS_PER_PRINCIPAL_MAX - 1), Answer::Denied { .. }),
            "a repetition learns of it"
        );
        assert_eq!(approvals.list(&ada, now).len(), APPROVALS_PER_PRINCIPAL_MAX, "the newest");
    }

    #[test]
    // promise: policy-10
    fn a_decision_for_always_makes_a_rule_first_and_only_of_a_command() {
        let (approvals, now) = (Approvals::default(), Instant::now());
        let pending = |asked, words| match approvals.answer(asked, None, Door::Rest, words, now) {
            Answer::Pending { id, .. } => id,
            other => panic!("{other:?}"),
        };
        let made = Mutex::new(Vec::new());
        let remember = |policy: &str, command: &str, cwd: &Path| {
            locked(&made).push(format!("{policy}: {command} in {}", cwd.display()));
            Ok(())
        };
        let always = |id: &str| approvals.decide(&by("ada"), id, Decision::Always, now, &remember);
        let said = |id: &str| always(id).expect_err("refused").to_string();
        let with = |request| Asked { request, ..asked("bot", "") };
        let nested = Request::Command { text: "ls".to_owned(), shell: TargetShell::Nested };
        let input = |bytes, is_hidden| with(Request::Input { bytes, is_hidden });
        let key = InputBytes::Keys(crate::keys::parse("Enter").expect("a key"));
        for (asked, why) in [
            (with(nested), "a nested shell runs it"),
            (input(InputBytes::Raw(b"ls\n".to_vec()), false), "the effect of typed input"),
            (input(InputBytes::Raw(b"hunter22".to_vec()), true), "the effect of typed input"),
            (input(key, false), "the effect of typed input"),
            (asked("bot", "echo 'a"), "ptyd cannot parse the command to its end"),
        ] {
            let said = said(&pending(asked, words()));
            assert!(said.contains(why) && said.contains("allow it without `always`"), "{said}");
        }
        let never = Words { never_provable: Some("its shell is zsh".to_owned()), ..words() };
        assert!(said(&pending(asked("bot", "make"), never)).contains("its shell is zsh"));
        let nowhere = Asked { cwd: None, ..asked("bot", "make") };
        assert!(said(&pending(nowhere, words())).contains("directory of its shell is unknown"));
        assert_eq!(*locked(&made), [""; 0]);
        let id = pending(asked("bot", "make x"), words());
        let full = |_: &str, _: &str, _: &Path| Err(ActionError::Exhausted { why: "full".to_owned() });
        assert!(approvals.decide(&by("ada"), &id, Decision::Always, now, &full).is_err());
        assert!(approvals.decide(&by("bot"), &id, Decision::Always, now, &remember).is_err(), "its own");
        assert!(approvals.decision_before(&asked("bot", "make x"), None, now).is_none(), "nothing is decided");
        assert!(always(&id).is_ok_and(|(_, is_first)| is_first) && always(&id).is_ok_and(|(_, is_first)| !is_first));
        assert_eq!(*locked(&made), ["x: make x in /src"]);
        let other = approvals.decide(&by("eve"), &id, Decision::Allow, now, &forgets).expect_err("decided");
        assert!(other.to_string().contains("ada has allowed it permanently"), "{other}");
        let before = || approvals.decision_before(&asked("bot", "make x"), None, now);
        let Some(Answer::Allowed(taken)) = before() else { panic!("it is allowed") };
        drop(taken.used());
        assert!(before().is_none(), "it is used up");
    }
}
