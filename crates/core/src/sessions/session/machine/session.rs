//! One live session: its parts, which are in files of their own beside this one, and its steps. A step gives an input to the parts
//! that it concerns, and says when the next step is due.

use std::sync::Arc;
use std::time::Duration;

use journal::EventsReader;
use tokio::sync::watch;
use tokio::time::Instant;
use wire::{FromHolder, Tail, ToHolder};

use super::context::Context;
use super::drawing::state::Drawing;
use super::expiry::Expiry;
use super::foreground::state::ForegroundState;
use super::limit_enforcement::state::LimitEnforcer;
use super::nested_command::state::NestedShell;
use super::pending_commands::PendingCommands;
use super::secret_prompt::SecretPrompts;
use super::waits::state::OpenWaits;
use crate::action::ActionError;
use crate::sessions::processes::Meter;
use crate::sessions::session::effects::Effects;
use crate::sessions::session::now::Now;
use crate::sessions::session::step_input::StepInput;
use crate::sessions::shared::Shared;

/// The state of a live session: a machine that `Session::step` drives. It reads the session's files and the kernel. It
/// changes something outside only by the effects of a step, by answers to callers, and by the signals of its limits
/// (`limit_enforcement/`, through its host).
pub(crate) struct Session {
    pub(crate) cx: Context,
    pub(in crate::sessions::session) foreground: ForegroundState,
    pub(in crate::sessions::session) waits: OpenWaits,
    pub(in crate::sessions::session) pending: PendingCommands,
    /// The command in the nested shell.
    pub(in crate::sessions::session) inside: NestedShell,
    pub(in crate::sessions::session) secret_prompts: SecretPrompts,
    pub(in crate::sessions::session) drawing: Drawing,
    pub(in crate::sessions::session) meter: Meter,
    /// The session's limits, if it has any.
    pub(in crate::sessions::session) limit_enforcer: Option<Box<LimitEnforcer>>,
    pub(in crate::sessions::session) expiry: Expiry,
}

impl Session {
    pub(crate) fn new(
        shared: Arc<Shared>,
        events: Option<EventsReader>,
        tail: watch::Sender<Tail>,
        early: Vec<FromHolder>,
        now: Now,
    ) -> Self {
        Self {
            foreground: ForegroundState::new(!shared.spec.handover.has_hooks()),
            waits: OpenWaits::default(),
            pending: PendingCommands::default(),
            inside: NestedShell::default(),
            secret_prompts: SecretPrompts::default(),
            drawing: Drawing::default(),
            meter: Meter::default(),
            limit_enforcer: LimitEnforcer::of(&shared, now.at),
            expiry: Expiry::of(&shared, now),
            cx: Context::new(shared, events, tail, early, now),
        }
    }

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
                self.foreground.give_up_calls(&mut self.cx, || ActionError::Restarting);
                self.cx.link.send(ToHolder::Hello { protocol: wire::PROTOCOL, attaches: true });
            }
            StepInput::Adrift => {
                self.cx.link.is_adrift = true;
                // Callers get `Restarting` and retry; none gets the answer that the session has ended.
                self.foreground.give_up_calls(&mut self.cx, || ActionError::Restarting);
            }
            StepInput::LastTail => self.cx.on_last_tail(),
            StepInput::HolderGone(traces) => self.on_holder_gone(traces.as_ref()),
            StepInput::Published { count } => self.drawing.draw_some(&self.cx, &mut self.waits, count),
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
        !self.cx.follower.is_replaying && !self.foreground.awaits_first_state(&self.cx)
    }

    /// Everything up to the tail is read, or the rest is read in the next turns: ends what ends with it.
    fn settle(&mut self) {
        if !self.cx.follower.is_behind {
            self.check_exit();
        }
        self.check_take_over();
        self.check_foreground();
        self.foreground.note_question(&self.cx, &self.inside, &self.waits);
        self.check_nested_command();
        self.secret_prompts.note_secret_prompt(&self.cx, &self.foreground);
        self.drawing.draw_ahead(&mut self.cx, &self.waits);
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
        self.waits.check_waits(&mut self.cx, &self.foreground, &self.inside);
        self.check_hooks();
        self.check_marker();
        if self.cx.link.is_overdue(self.cx.now) {
            let error = self.cx.link.unreachable_error();
            self.foreground.give_up_calls(&mut self.cx, || error.clone());
        }
        self.check_typed_command();
        self.pending.refuse(&self.cx, &self.foreground, &mut self.waits);
        if let Some(enforcer) = &mut self.limit_enforcer {
            enforcer.check(&mut self.cx);
        }
        self.expiry.check(&mut self.cx, &self.foreground);
        self.check_take_over();
    }

    /// When something is due.
    pub(in crate::sessions::session) fn next_wake(&self) -> Option<Instant> {
        let settles_at = self.foreground.settles_at().max(self.foreground.believed_at);
        let may_settle =
            self.foreground.state_pending && !self.cx.has_unread() && !self.foreground.keys_are_on_their_way(&self.cx);
        let screen = settles_at.filter(|_| may_settle);
        // The holder does not repeat a state, so nothing may follow the paint of a start-up file.
        let awaits_prompt = !self.waits.at_prompt.is_empty() || !self.pending.at_prompt.is_empty();
        let painted = self.foreground.settles_at().filter(|at| awaits_prompt && *at > self.cx.now.at);
        let still = self
            .foreground
            .screen_painted_at(&self.cx)
            .and_then(|at| self.waits.open.iter().filter_map(|w| w.still_at(at)).min());
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
            self.foreground.keys_due_at(&self.cx),
            self.foreground.first_awaited_until,
            self.cx.follower.markers_expire_at(),
            self.pending.next_at(),
            // Checked again when the typed command is old enough to have begun.
            self.foreground.typed_command_at(&self.cx),
            screen,
            self.limit_enforcer.as_ref().and_then(|s| s.next_at()),
            self.expiry.next_at(),
            self.cx.take_over.next_at(),
        ]
        .into_iter()
        .flatten()
        .min()
    }
}
