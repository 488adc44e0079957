//! The state of one live session; each part of it is in a file of its own beside this one.

use std::sync::Arc;

use journal::EventsReader;
use tokio::sync::watch;
use wire::{FromHolder, Tail};

use super::context::Context;
use super::drawing::state::Drawing;
use super::expiry::state::Expiry;
use super::foreground::state::ForegroundState;
use super::limit_enforcement::state::LimitEnforcer;
use super::nested_command::state::NestedShell;
use super::pending_commands::PendingCommands;
use super::secret_prompt::state::SecretPrompts;
use super::stopped_jobs::StoppedJobs;
use super::waits::state::OpenWaits;
use crate::sessions::processes::Meter;
use crate::sessions::session::now::Now;
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
    pub(in crate::sessions::session) jobs: StoppedJobs,
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
            jobs: StoppedJobs::default(),
            secret_prompts: SecretPrompts::default(),
            drawing: Drawing::default(),
            meter: Meter::default(),
            limit_enforcer: LimitEnforcer::of(&shared, now.at),
            expiry: Expiry::of(&shared, now),
            cx: Context::new(shared, events, tail, early, now),
        }
    }
}
