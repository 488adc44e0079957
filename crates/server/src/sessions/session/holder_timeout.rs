//! Detects a holder that does not answer, fails the requests to it, and sends nothing more until it answers again.
//!
//! A holder serves its requests in every turn, also while a command waits for the prompt or the session is being ended.
//! A request that stays unanswered is therefore followed by a ping; if the ping stays unanswered too, the request
//! fails. The holder may still perform the request later.

use super::*;

/// When the holder was last called, pinged and found silent.
#[derive(Debug, Default)]
pub(super) struct HolderTimeout {
    /// Since when a call is open without any frame from the holder.
    since: Option<Instant>,
    /// When the ping was sent.
    probed: Option<Instant>,
    /// Since when the holder counts as silent.
    silent_since: Option<SystemTime>,
}

impl HolderTimeout {
    pub(super) fn is_silent(&self) -> bool {
        self.silent_since.is_some()
    }

    fn asked(&mut self) {
        self.since.get_or_insert_with(Instant::now);
    }

    /// When to check next.
    pub(super) fn next_at(&self) -> Option<Instant> {
        if self.is_silent() {
            return None;
        }
        match self.probed {
            Some(probed) => Some(probed + limits::HOLDER_PATIENCE),
            None => self.since.map(|since| since + limits::HOLDER_PROBE_AFTER),
        }
    }
}

impl Session {
    /// The holder sent a frame.
    pub(super) fn on_holder_answer(&mut self) {
        if self.holder_timeout.silent_since.take().is_some() {
            tracing::info!(session = %self.shared.id, "the holder answers again");
        }
        let since = (!self.calls.is_empty()).then(Instant::now);
        self.holder_timeout = HolderTimeout { since, ..HolderTimeout::default() };
    }

    /// Pings the holder if a call stays open, and fails the calls if the ping stays unanswered.
    pub(super) fn check_holder_timeout(&mut self) {
        if self.calls.is_empty() && self.holder_timeout.probed.is_none() {
            self.holder_timeout.since = None;
        }
        let now = Instant::now();
        if self.holder_timeout.next_at().is_none_or(|at| now < at) {
            return;
        }
        if self.holder_timeout.probed.is_none() {
            self.holder_timeout.probed = Some(now);
            let seq = self.next_seq();
            return self.connection.send(&ToHolder::Ping { seq });
        }
        self.holder_timeout.silent_since = Some(SystemTime::now());
        tracing::warn!(session = %self.shared.id, open = self.calls.len(), "the holder does not answer");
        let error = self.unreachable_error();
        self.give_up_calls(|| error.clone());
    }

    /// The error if the holder cannot be called now.
    pub(super) fn unreachable_reason(&self) -> Option<ActionError> {
        let is_full = self.connection.unsent_bytes() > limits::HOLDER_UNSENT_BYTES_MAX
            || self.calls.len() >= limits::HOLDER_CALLS_MAX;
        (self.holder_timeout.is_silent() || is_full).then(|| self.unreachable_error())
    }

    fn unreachable_error(&self) -> ActionError {
        ActionError::Unreachable { session: self.shared.id.clone(), why: self.timeout_text() }
    }

    fn timeout_text(&self) -> String {
        super::super::adoption::does_not_answer(Some((self.timeline.holder_pid, 0)))
    }

    /// The session's trouble message while its holder does not answer.
    pub(super) fn silent_trouble(&self) -> Option<String> {
        self.holder_timeout.is_silent().then(|| self.timeout_text())
    }

    /// Sends a call to the holder, or fails it at once if the holder cannot be called.
    pub(super) fn call(&mut self, call: Call, frame: impl FnOnce(u32) -> ToHolder) {
        if let Some(why) = self.unreachable_reason() {
            return give_up(call, why);
        }
        let seq = self.next_seq();
        self.calls.insert(seq, call);
        self.holder_timeout.asked();
        self.connection.send(&frame(seq));
    }

    fn next_seq(&mut self) -> u32 {
        let seq = self.next_seq;
        self.next_seq = self.next_seq.wrapping_add(1).max(1);
        seq
    }

    /// Fails a request that needs the holder while the holder cannot be called.
    pub(super) fn refuse(&self, request: Request) -> Option<Request> {
        let Some(why) = self.unreachable_reason() else { return Some(request) };
        match request {
            Request::Run { started, .. } => drop(started.send(Err(why))),
            Request::Input { typed, .. } => drop(typed.send(Err(why))),
            Request::Resize { reply, .. } | Request::Signal { reply, .. } => drop(reply.send(Err(why))),
            Request::Terminate { reply, .. } => drop(reply.send(Err(why))),
            other @ (Request::Look(_)
            | Request::Commands(_)
            | Request::Wait { .. }
            | Request::Picture(_)
            | Request::ViewerLimit(_)
            | Request::At(..)
            | Request::Times(_)
            | Request::Processes(_)
            | Request::Signals(_)
            | Request::Prompt(_)) => return Some(other),
        }
        None
    }
}

/// Fails one call.
pub(super) fn give_up(call: Call, why: ActionError) {
    match call {
        Call::Run { started, .. } | Call::Line { started, .. } => drop(started.send(Err(why))),
        Call::Input { typed, .. } => drop(typed.send(Err(why))),
        Call::Plain(reply) | Call::Signal { reply, .. } => drop(reply.send(Err(why))),
        Call::Terminate(reply) => drop(reply.send(Err(why))),
        Call::Report => {}
    }
}
