//! The link to the session's holder: open calls, and a holder that does not answer.
//!
//! A holder serves its requests in every turn, also while a command waits for the prompt or the session is being ended. So
//! if a request stays unanswered, a ping follows. If the ping stays unanswered too, the requests fail, and nothing more is
//! sent until the holder answers again. It may still perform a request later.

use std::collections::HashMap;

use tokio::sync::oneshot;
use tokio::time::Instant;
use wire::{Key, ToHolder};

use crate::action::{ActionError, Wait};
use crate::host::Identity;
use crate::ids::SessionId;
use crate::limits;
use crate::machine_pause::was_paused;
use crate::sessions::session::machine::waits::matcher::Echo;
use crate::sessions::session::now::Now;
use crate::sessions::session::requests::{Ended, NewInput, Request, StartReply, Started, Typed};
use crate::sessions::unreachable::does_not_answer;

/// When the holder was last called, pinged and found silent.
#[derive(Debug, Default)]
struct HolderTimeout {
    /// Since when a call is open without any frame from the holder.
    since: Option<Instant>,
    /// When the ping was sent.
    probed: Option<Instant>,
    /// Since when the holder counts as silent.
    silent_since: Option<u64>,
}

impl HolderTimeout {
    fn is_silent(&self) -> bool {
        self.silent_since.is_some()
    }

    fn asked(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// When to check next.
    fn next_at(&self) -> Option<Instant> {
        if self.is_silent() {
            return None;
        }
        match self.probed {
            Some(probed) => Some(probed + limits::HOLDER_PATIENCE),
            None => self.since.map(|since| since + limits::HOLDER_PROBE_AFTER),
        }
    }
}

/// A request that the holder has not answered yet.
#[derive(Debug)]
pub(crate) enum Call {
    Run {
        wait: Option<Wait>,
        started: oneshot::Sender<Result<Started, ActionError>>,
    },
    Input {
        key: Key,
        wait: Option<Wait>,
        sent: SentInput,
        typed: oneshot::Sender<Result<Typed, ActionError>>,
    },
    /// A command that is typed as a line.
    Line {
        key: Key,
        wait: Option<Wait>,
        started: StartReply,
    },
    Plain(oneshot::Sender<Result<(), ActionError>>),
    Signal {
        is_foreground: bool,
        ignored_by: Option<String>,
        reply: oneshot::Sender<Result<Option<String>, ActionError>>,
    },
    Terminate(oneshot::Sender<Result<Ended, ActionError>>),
    Report,
}

/// Input on its way to the holder.
#[derive(Debug)]
pub(crate) struct SentInput {
    pub(crate) from: u64,
    pub(crate) offered: usize,
    pub(crate) is_signal: bool,
    pub(crate) is_at_prompt: bool,
    /// The echo, which the wait's pattern does not match.
    pub(crate) echo: Option<Echo>,
    /// The program that reads is known, and passes no keys on to another terminal.
    pub(crate) is_read_here: bool,
    /// The program that ignores the interrupt.
    pub(crate) ignored_by: Option<String>,
}

impl Call {
    /// The wait that begins once the holder has answered.
    pub(crate) fn wait(&self) -> Option<&Wait> {
        match self {
            Self::Run { wait, .. } | Self::Input { wait, .. } | Self::Line { wait, .. } => wait.as_ref(),
            Self::Plain(_) | Self::Signal { .. } | Self::Terminate(_) | Self::Report => None,
        }
    }
}

/// The connection to the holder and the calls over it.
pub(crate) struct HolderLink {
    session: SessionId,
    /// Frames that the actor sends after the step.
    pub(crate) unsent: Vec<ToHolder>,
    /// How many bytes wait for the holder to read them.
    pub(crate) unsent_bytes: usize,
    /// The holder's process.
    pub(crate) process: Option<Identity>,
    pub(crate) calls: HashMap<u32, Call>,
    timeout: HolderTimeout,
    pub(crate) terminators: Vec<oneshot::Sender<Result<Ended, ActionError>>>,
    next_seq: u32,
    pub(crate) is_gone: bool,
    /// The tail is the size of the files, because the holder no longer publishes one.
    pub(crate) is_tail_last: bool,
    /// Another program has attached itself to the holder.
    pub(crate) is_displaced: bool,
    /// The session continues, but this actor has lost the connection to its holder.
    pub(crate) is_adrift: bool,
}

impl HolderLink {
    pub(crate) fn new(session: SessionId) -> Self {
        Self {
            session,
            unsent: Vec::new(),
            unsent_bytes: 0,
            process: None,
            calls: HashMap::new(),
            timeout: HolderTimeout::default(),
            terminators: Vec::new(),
            next_seq: 1,
            is_gone: false,
            is_tail_last: false,
            is_displaced: false,
            is_adrift: false,
        }
    }

    /// The holder sent a frame.
    pub(crate) fn on_answer(&mut self, now: Instant) {
        if self.timeout.silent_since.take().is_some() {
            tracing::info!(session = %self.session, "the holder answers again");
        }
        let since = (!self.calls.is_empty()).then_some(now);
        self.timeout = HolderTimeout { since, ..HolderTimeout::default() };
    }

    /// When to check for an answer.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.timeout.next_at()
    }

    /// Pings the holder if a call stays open; returns true if the ping stays unanswered, so that the calls fail.
    pub(crate) fn is_overdue(&mut self, now: Now) -> bool {
        if self.calls.is_empty() && self.timeout.probed.is_none() {
            self.timeout.since = None;
        }
        let Some(due) = self.timeout.next_at().filter(|at| now.at >= *at) else { return false };
        // A holder that was paused with this server has had no time to answer the ping.
        if self.timeout.probed.is_none() || was_paused(due, now.at) {
            self.timeout.probed = Some(now.at);
            let seq = self.take_seq();
            self.send(ToHolder::Ping { seq });
            return false;
        }
        self.timeout.silent_since = Some(now.us);
        tracing::warn!(session = %self.session, open = self.calls.len(), "the holder does not answer");
        true
    }

    /// The error if the holder cannot be called now.
    pub(crate) fn unreachable_reason(&self) -> Option<ActionError> {
        let is_full =
            self.unsent_bytes > limits::HOLDER_UNSENT_BYTES_MAX || self.calls.len() >= limits::HOLDER_CALLS_MAX;
        (self.timeout.is_silent() || is_full).then(|| self.unreachable_error())
    }

    pub(crate) fn unreachable_error(&self) -> ActionError {
        ActionError::Unreachable { session: self.session.clone(), why: self.timeout_text() }
    }

    fn timeout_text(&self) -> String {
        does_not_answer(self.process)
    }

    /// The session's trouble message while its holder does not answer.
    pub(crate) fn silent_trouble(&self) -> Option<String> {
        self.timeout.is_silent().then(|| self.timeout_text())
    }

    /// Sends a frame that is not answered.
    pub(crate) fn send(&mut self, frame: ToHolder) {
        self.unsent.push(frame);
    }

    /// Sends a call to the holder, or fails it at once if the holder cannot be called.
    pub(crate) fn call(&mut self, now: Instant, call: Call, frame: impl FnOnce(u32) -> ToHolder) {
        if let Some(why) = self.unreachable_reason() {
            return give_up(call, why);
        }
        let seq = self.take_seq();
        self.calls.insert(seq, call);
        self.timeout.asked(now);
        self.send(frame(seq));
    }

    fn take_seq(&mut self) -> u32 {
        let seq = self.next_seq;
        self.next_seq = self.next_seq.wrapping_add(1).max(1);
        seq
    }

    /// Fails the calls that were sent over the old connection.
    pub(crate) fn give_up_calls(&mut self, why: impl Fn() -> ActionError) {
        for (_, call) in std::mem::take(&mut self.calls) {
            give_up(call, why());
        }
    }

    /// Answers the callers that have requested the session's end.
    pub(crate) fn notify_terminators(&mut self, ended: Ended) {
        for reply in self.terminators.drain(..) {
            let _ = reply.send(Ok(ended));
        }
    }

    /// Fails a request that needs the holder while the holder cannot be called.
    pub(crate) fn refuse(&self, request: Request) -> Option<Request> {
        let Some(why) = self.unreachable_reason() else { return Some(request) };
        match request {
            Request::Run { started, .. } => drop(started.send(Err(why))),
            Request::Input(NewInput { typed, .. }) | Request::Secret { typed, .. } => drop(typed.send(Err(why))),
            Request::Resize { reply, .. } | Request::Take { reply, .. } | Request::GiveBack { reply, .. } => {
                drop(reply.send(Err(why)))
            }
            Request::Signal { reply, .. } => drop(reply.send(Err(why))),
            Request::Terminate { reply, .. } => drop(reply.send(Err(why))),
            other @ (Request::Look(_)
            | Request::Commands(_)
            | Request::KeyUse(..)
            | Request::Wait { .. }
            | Request::Picture(_)
            | Request::ViewerLimit(_)
            | Request::At(..)
            | Request::Times(_)
            | Request::Processes(_)
            | Request::Signals(_)
            | Request::SecretPrompt(_)
            | Request::SecretOver(..)
            | Request::Prompt(_)) => return Some(other),
        }
        None
    }
}

/// Fails one call.
fn give_up(call: Call, why: ActionError) {
    match call {
        Call::Run { started, .. } | Call::Line { started, .. } => drop(started.send(Err(why))),
        Call::Input { typed, .. } => drop(typed.send(Err(why))),
        Call::Plain(reply) => drop(reply.send(Err(why))),
        Call::Signal { reply, .. } => drop(reply.send(Err(why))),
        Call::Terminate(reply) => drop(reply.send(Err(why))),
        Call::Report => {}
    }
}
