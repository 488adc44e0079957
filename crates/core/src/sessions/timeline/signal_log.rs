//! The signals that were sent to a session.

use std::collections::VecDeque;

use crate::host::Identity;

/// How many of the newest signals are kept.
const SIGNALS_KEPT: usize = 64;

/// A signal that was sent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sent {
    /// 0 for the foreground, -1 for the session, else a process.
    pub(crate) target: i32,
    pub(crate) signo: i32,
    pub(crate) errno: i32,
    pub(crate) at_us: u64,
    /// The processes that received it, with names, if this server sent it.
    pub(crate) receivers: Vec<(Identity, String)>,
}

/// The newest signals.
#[derive(Debug, Default)]
pub(crate) struct SignalLog {
    pub(crate) recorded: VecDeque<Sent>,
    /// Signals that the holder has not recorded yet.
    pub(crate) on_their_way: VecDeque<Sent>,
}

impl SignalLog {
    /// The holder has recorded a signal; if this server sent it, its receivers are known.
    pub(super) fn record(&mut self, target: i32, signo: i32, errno: i32, at_us: u64) {
        if self.recorded.len() == SIGNALS_KEPT {
            self.recorded.pop_front();
        }
        let expected = self.on_their_way.iter().position(|s| (s.target, s.signo) == (target, signo));
        let receivers = expected.and_then(|at| self.on_their_way.remove(at)).map(|s| s.receivers);
        self.recorded.push_back(Sent { target, signo, errno, at_us, receivers: receivers.unwrap_or_default() });
    }
}
