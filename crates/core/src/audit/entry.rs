//! The lines of one action: before it, and before its answer.

use std::cell::Cell;
use std::time::Instant;

use journal::Masks;

use super::details::{Details, Found, Judged, SessionName, details, found};
use super::line::{Caller, Event, Line, USUAL_BYTES, reason};
use super::share::TokenShares;
use super::{AuditLog, ReadCount, ReadKey, Recording, not_recorded};
use crate::action::{Action, ActionError, AuditClass, Outcome};
use crate::mutex::locked;
use crate::principal::Principal;

/// The outcome of an action whose caller was gone, or whose server was stopped, before it was answered.
const UNANSWERED: &str = "unanswered";
const OK: &str = "ok";

/// The lines of one action in an audit log. Dropped before its end, it records that nobody was answered.
#[derive(Debug)]
pub struct Entry<'a> {
    of: Option<Recorded<'a>>,
}

#[derive(Debug)]
struct Recorded<'a> {
    log: &'a Recording,
    caller: Caller<'a>,
    action: &'static str,
    class: AuditClass,
    details: Details,
    /// Those of all named secrets, and of the session.
    masks: Vec<Masks>,
    begun: Instant,
    /// The shares that limit its lines, and the named token that has asked for it.
    share: Option<(&'a TokenShares, &'a str)>,
    /// The token has used up its share: ptyd refuses its changes, and counts what reads or ends.
    is_over: bool,
    /// The id of its first line, once that is written.
    id: Option<String>,
}

impl AuditLog {
    /// The entry of an action that is about to be performed; nothing is written yet.
    pub(crate) fn entry<'a>(
        &'a self,
        principal: &'a Principal,
        action: &Action,
        of_session: impl FnOnce(Option<&str>) -> (Option<String>, Vec<Masks>),
    ) -> Entry<'a> {
        let of = self.on.as_ref().map(|log| {
            let (facts, mut details) = (action.facts(), details(action));
            let (session_name, masks) = of_session(details.session.as_ref().map(|session| session.0.as_str()));
            details.session_name = details.session_name.or(session_name);
            details.mask(&masks);
            details.shorten();
            let (begun, token) = (Instant::now(), principal.pass.as_ref().map(|_| &*principal.name));
            let share = log.shares.as_ref().zip(token);
            let is_over = share.is_some_and(|(shares, token)| locked(&shares.changes).is_used_up(token, begun));
            let caller = principal.into();
            Recorded {
                log,
                caller,
                action: facts.name,
                class: facts.audit,
                details,
                masks,
                begun,
                share,
                is_over,
                id: None,
            }
        });
        Entry { of }
    }
}

impl Entry<'_> {
    /// Its lines have what the session's policy says of it.
    pub(crate) fn judged(&mut self, verdict: &'static str, rule: &str, approval: Option<(&str, &str)>) {
        if let Some(of) = &mut self.of {
            let (approval, approved_by) = approval.map(|(id, by)| (id.to_owned(), by.to_owned())).unzip();
            of.details.judged = Some(Judged { verdict, rule: rule.to_owned(), approval, approved_by });
        }
    }

    /// Writes the line before an action that changes something. An error means that it may not be performed.
    pub(crate) async fn begin(&mut self) -> Result<(), ActionError> {
        let Some(of) = self.of.as_mut().filter(|of| matches!(of.class, AuditClass::Change | AuditClass::Ending)) else {
            return Ok(());
        };
        if let (true, Some((shares, _))) = (of.is_over, of.share) {
            let what = "this token's share of the audit log (bytes an hour)";
            let hint = "you can still read and end sessions; the share refills within an hour, or the operator \
                raises it (ptyd serve --audit-share)";
            let used_up = ActionError::Limit { what, limit: shares.bytes, hint };
            return if of.class == AuditClass::Change { Err(used_up) } else { Ok(()) };
        }
        let id = of.log.next_id();
        let mut bytes = Vec::new();
        Line {
            id: Some(&id),
            caller: Some(&of.caller),
            action: Some(of.action),
            details: Some(&of.details),
            ..Line::new(Event::Request, sys::time::wall())
        }
        .write(&mut bytes);
        // The text can be long, and the answer's line does not repeat it.
        of.details.text = None;
        of.charge(bytes.len());
        match of.log.write(&bytes).await {
            Ok(()) => {}
            Err(why) if of.log.is_required && of.class == AuditClass::Change => return Err(not_recorded(why)),
            Err(_) => of.log.keep(&bytes),
        }
        of.id = Some(id);
        Ok(())
    }

    /// Writes the line before the answer. The action is done and cannot be refused any more, so a line that cannot be written
    /// now is kept for later.
    pub(crate) async fn end(&mut self, result: &Result<Outcome, ActionError>) {
        let Some(mut of) = self.of.take() else { return };
        // A new session's policy is known only while it is started.
        if let (None, Err(ActionError::PolicyDenied(refusal) | ActionError::ApprovalNeeded(refusal))) =
            (&of.details.judged, result)
        {
            let (verdict, rule) = (refusal.verdict.name(), refusal.rule.clone());
            of.details.judged = Some(Judged { verdict, rule, approval: None, approved_by: None });
        }
        let is_denied = matches!(result, Err(ActionError::Denied { .. }));
        match (of.class, result) {
            (AuditClass::Composite, Ok(_)) => {}
            _ if of.is_counted(is_denied) => {
                of.count(result.as_ref().err().map_or(OK, ActionError::code), result.as_ref().err());
            }
            _ => {
                let line = of.line(
                    result.as_ref().err().map_or(OK, ActionError::code),
                    result.as_ref().map(found).unwrap_or_default(),
                    result.as_ref().err(),
                );
                of.charge(line.len());
                let is_late = matches!(result, Err(ActionError::NotRecorded { .. }));
                if is_late { of.log.keep(&line) } else { of.log.write_or_keep(line).await }
            }
        }
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        let Some(of) = self.of.take() else { return };
        match of.class {
            AuditClass::Composite => {}
            _ if of.is_counted(false) => of.count(UNANSWERED, None),
            AuditClass::Reading => {}
            // Without an id the wait for its first line was given up: it was not performed.
            AuditClass::Change | AuditClass::Ending => of.log.keep(&of.line(UNANSWERED, Found::default(), None)),
        }
    }
}

impl Recorded<'_> {
    /// The line of its answer, or its only line if there was none before it.
    fn line(&self, outcome: &'static str, mut found: Found, error: Option<&ActionError>) -> Vec<u8> {
        let only_session;
        let details = if self.id.is_some() {
            let session = self.details.session.clone().or_else(|| found.session.take());
            only_session = Details { session, judged: self.details.judged.clone(), ..Details::default() };
            &only_session
        } else {
            &self.details
        };
        let mut bytes = Vec::new();
        Line {
            id: self.id.as_deref(),
            caller: Some(&self.caller),
            action: Some(self.action),
            details: Some(details),
            found: self.id.is_some().then_some(&found),
            outcome: Some(outcome),
            reason: error.map(|error| reason(error, &self.masks)),
            ms: Some(u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)),
            ..Line::new(if self.id.is_some() { Event::Answer } else { Event::Action }, sys::time::wall())
        }
        .write(&mut bytes);
        bytes
    }

    /// Whether it has no line of its own.
    fn is_counted(&self, is_denied: bool) -> bool {
        (self.class == AuditClass::Reading && !is_denied) || (self.is_over && self.id.is_none())
    }

    /// Its token has written so many bytes about a change.
    fn charge(&self, bytes: usize) {
        if let Some((shares, token)) = self.share {
            locked(&shares.changes).charge(token, bytes, Instant::now());
        }
    }

    fn count(&self, outcome: &'static str, error: Option<&ActionError>) {
        let Details { session, session_name, command, .. } = &self.details;
        let reads = self.share.map(|(shares, token)| (&shares.reads, token));
        let reads_are_over = reads.is_some_and(|(reads, token)| locked(reads).is_used_up(token, self.begun));
        // A line for each name that the token invents would fill the log all the same.
        let is_named = !reads_are_over && (outcome == OK || !self.is_over);
        let (session, command) = if is_named { (session.as_ref(), command.as_ref()) } else { (None, None) };
        let key = ReadKey {
            caller: self.caller.clone(),
            action: self.action,
            session: session.map(|SessionName(name)| name.into()),
            command: command.map(Into::into),
            outcome,
        };
        self.log.count(key, || {
            if let Some((reads, token)) = reads {
                locked(reads).charge(token, USUAL_BYTES, Instant::now());
            }
            ReadCount {
                since: sys::time::wall(),
                count: Cell::new(1),
                session_name: session_name.clone().filter(|_| is_named),
                reason: error.map(|error| reason(error, &self.masks)),
            }
        });
    }
}
