//! A step of the session: which part handles an input, and when the next step is due.

use std::time::Duration;

use tokio::time::Instant;
use wire::ToHolder;

use crate::action::ActionError;
use crate::limits;
use crate::sessions::session::effects::Effects;
use crate::sessions::session::machine::session::Session;
use crate::sessions::session::now::Now;
use crate::sessions::session::step_input::StepInput;

impl Session {
    /// Takes one step: something happened, at this time.
    pub(in crate::sessions::session) fn step(&mut self, now: Now, input: StepInput) {
        self.cx.now = now;
        match input {
            StepInput::Frames => self.handle_frames(),
            StepInput::Unread => self.follow_some(),
            StepInput::Settled => self.settle(),
            StepInput::Request(request) => {
                if let Some(request) = self.cx.link.refuse(*request) {
                    self.on_request(request);
                }
            }
            StepInput::Received(frames) => {
                self.cx.follower.frames.extend(frames);
                self.cx.link.on_answer(now.at);
            }
            StepInput::Reconnected => {
                self.give_up_calls(|| ActionError::Restarting);
                self.cx.link.send(ToHolder::Hello { protocol: wire::PROTOCOL, attaches: true });
            }
            StepInput::Adrift => {
                self.cx.link.is_adrift = true;
                // Callers get `Restarting` and retry; none gets the answer that the session has ended.
                self.give_up_calls(|| ActionError::Restarting);
            }
            StepInput::LastTail => self.cx.on_last_tail(),
            StepInput::HolderGone(traces) => self.on_holder_gone(traces.as_ref()),
            StepInput::Published { count } => self.draw_some(count),
            StepInput::Time => self.on_time(),
        }
        self.cx.note_current_command();
    }

    /// Whether there is something to read or to draw without waiting.
    pub(in crate::sessions::session) fn has_work(&self) -> bool {
        self.cx.is_behind() || !self.waits.pictures.is_empty()
    }

    /// Whether requests can be handled: what happened before this server, and what runs now, is known.
    pub(in crate::sessions::session) fn takes_requests(&mut self) -> bool {
        !self.cx.follower.is_replaying && !self.awaits_first_state()
    }

    /// Everything up to the tail is read, or the rest is read in the next turns: ends what ends with it.
    fn settle(&mut self) {
        if !self.cx.follower.is_behind {
            self.check_exit();
        }
        self.check_foreground();
        self.note_question();
        self.check_nested_command();
        self.note_secret_prompt();
        self.draw_ahead();
        if self.waits.open.is_empty() {
            // The room of one wait is 2.9 KiB.
            self.waits.open = Vec::new();
        }
    }

    /// Takes what this session wants done outside of itself.
    pub(in crate::sessions::session) fn take_effects(&mut self) -> Effects {
        Effects { frames: std::mem::take(&mut self.cx.link.unsent), ..std::mem::take(&mut self.cx.effects) }
    }

    /// Does what is due, but for what [`Self::settle`] does in the same turn.
    fn on_time(&mut self) {
        self.check_waits();
        self.check_hooks();
        self.check_marker();
        if self.cx.link.is_overdue(self.cx.now) {
            let error = self.cx.link.unreachable_error();
            self.give_up_calls(|| error.clone());
        }
        self.check_typed_command();
        self.refuse_pending();
        self.check_limits();
        self.check_expiry();
    }

    /// When something is due.
    pub(in crate::sessions::session) fn next_wake(&self) -> Option<Instant> {
        let marker = self.cx.follower.marker_missed_at.map(|t| t + limits::MARKER_PATIENCE);
        let settles_at = self.foreground.settles_at().max(self.foreground.believed_at);
        let may_settle = self.foreground.state_pending && !self.cx.has_unread() && !self.keys_are_on_their_way();
        let screen = settles_at.filter(|_| may_settle);
        // The holder does not repeat a state, so nothing may follow the paint of a start-up file.
        let awaits_prompt = !self.waits.at_prompt.is_empty() || !self.pending.at_prompt.is_empty();
        let painted = self.foreground.settles_at().filter(|at| awaits_prompt && *at > self.cx.now.at);
        let still = self.screen_painted_at().and_then(|at| self.waits.open.iter().filter_map(|w| w.still_at(at)).min());
        let question = self.foreground.asks_since;
        let question = question.and_then(|at| self.waits.open.iter().filter_map(|w| w.outlasted_at(at)).min());
        let inside = self.cx.timeline.log().inside.as_ref();
        let now_us = self.cx.now.us;
        let echo = self.cx.timeline.handover_until_us(now_us);
        let echo = echo.map(|until| self.cx.now.at + Duration::from_micros(until - now_us));
        [
            self.cx.link.next_at(),
            inside.and_then(|inside| self.inside.next_at(inside.has_begun)),
            echo,
            painted,
            still,
            question,
            self.waits.next_at(),
            self.foreground.next_at(),
            self.keys_due_at(),
            self.foreground.first_awaited_until,
            marker,
            self.pending.next_at(),
            // Checked again when the typed command is old enough to have begun.
            self.typed_command_at(),
            screen,
            self.limit_enforcer.as_ref().and_then(|s| s.next_at()),
            self.expiry.next_at(),
        ]
        .into_iter()
        .flatten()
        .min()
    }
}
