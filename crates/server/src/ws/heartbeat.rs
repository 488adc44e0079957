//! The heartbeat of a WebSocket: a silent client is pinged, and counts as gone if it does not answer.

use tokio::time::Instant;

use ptyd_core::limits::{PING_EVERY, PONG_PATIENCE};

/// The due step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// Send a ping.
    Ping,
    /// The client is gone.
    Dead,
    /// Nothing yet.
    Nothing,
}

/// The heartbeat of one connection. Any message counts as an answer, so only silent clients are pinged.
#[derive(Debug)]
pub(super) struct Heartbeat {
    ping_at: Instant,
    /// A ping was sent, and is to be answered until then.
    answer_until: Option<Instant>,
}

impl Heartbeat {
    pub(super) fn new(now: Instant) -> Self {
        Self { ping_at: now + PING_EVERY, answer_until: None }
    }

    /// Something was received.
    pub(super) fn alive(&mut self) {
        self.answer_until = None;
    }

    /// The next deadline.
    pub(super) fn next_at(&self) -> Instant {
        self.answer_until.unwrap_or(self.ping_at)
    }

    /// The step that is due now; a ping counts as sent.
    pub(super) fn due(&mut self, now: Instant) -> Due {
        if self.answer_until.is_some_and(|until| now >= until) {
            return Due::Dead;
        }
        if self.answer_until.is_none() && now >= self.ping_at {
            (self.ping_at, self.answer_until) = (now + PING_EVERY, Some(now + PONG_PATIENCE));
            return Due::Ping;
        }
        Due::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    // promise: view-4
    fn a_viewer_is_pinged_every_15_s_and_closed_after_10_s_without_an_answer() {
        let start = Instant::now();
        let at = |s: u64| start + Duration::from_secs(s);
        let mut pulse = Heartbeat::new(start);
        assert_eq!((pulse.next_at(), pulse.due(at(14))), (at(15), Due::Nothing));
        assert_eq!((pulse.due(at(15)), pulse.next_at()), (Due::Ping, at(25)));
        pulse.alive();
        assert_eq!((pulse.due(at(29)), pulse.due(at(30))), (Due::Nothing, Due::Ping));
        assert_eq!([pulse.due(at(39)), pulse.due(at(40))], [Due::Nothing, Due::Dead]);
    }
}
