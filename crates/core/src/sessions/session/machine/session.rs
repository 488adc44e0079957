//! The state of one live session; each part of it is in a file of its own beside this one.

use std::sync::Arc;

use journal::EventsReader;
use tokio::sync::watch;
use tokio::time::Instant;
use wire::{FromHolder, Tail};

use super::drawing::state::Drawing;
use super::expiry::state::Expiry;
use super::foreground::state::ForegroundState;
use super::holder_link::HolderLink;
use super::journal_follower::state::JournalFollower;
use super::limit_enforcement::state::LimitEnforcer;
use super::nested_command::state::NestedShell;
use super::pending_commands::PendingCommands;
use super::secret_prompt::state::SecretPrompts;
use super::stopped_jobs::StoppedJobs;
use super::waits::state::OpenWaits;
use crate::host::Host;
use crate::sessions::processes::Meter;
use crate::sessions::session::effects::Effects;
use crate::sessions::session::now::Now;
use crate::sessions::shared::Shared;
use crate::sessions::timeline::Timeline;

/// The state of a live session: a machine that `Session::step` drives. It reads the session's files and the kernel. It
/// changes something outside only by [`Effects`], by answers to callers, and by the signals of its limits
/// (`limit_enforcement/`, through its host).
pub(crate) struct Session {
    pub(crate) shared: Arc<Shared>,
    /// The time of the present step.
    pub(in crate::sessions::session) now: Now,
    pub(in crate::sessions::session) effects: Effects,
    pub(in crate::sessions::session) link: HolderLink,
    pub(in crate::sessions::session) follower: JournalFollower,
    pub(crate) timeline: Timeline,
    pub(in crate::sessions::session) foreground: ForegroundState,
    pub(in crate::sessions::session) waits: OpenWaits,
    pub(in crate::sessions::session) pending: PendingCommands,
    /// The command in the nested shell.
    pub(in crate::sessions::session) inside: NestedShell,
    pub(in crate::sessions::session) jobs: StoppedJobs,
    pub(in crate::sessions::session) secret_prompts: SecretPrompts,
    pub(in crate::sessions::session) drawing: Drawing,
    pub(in crate::sessions::session) last_activity_us: u64,
    /// The running command, and when it was accepted.
    pub(in crate::sessions::session) current_since: Option<(u32, Instant)>,
    pub(in crate::sessions::session) meter: Meter,
    /// The session's limits, if it has any.
    pub(in crate::sessions::session) limit_enforcer: Option<Box<LimitEnforcer>>,
    pub(in crate::sessions::session) expiry: Expiry,
    /// Waits were ended because the shell has exited.
    pub(in crate::sessions::session) exit_told: bool,
}

impl Session {
    /// The machine of the session.
    pub(in crate::sessions::session) fn host(&self) -> &dyn Host {
        &*self.shared.backends.host
    }

    pub(crate) fn new(
        shared: Arc<Shared>,
        events: Option<EventsReader>,
        tail: watch::Sender<Tail>,
        early: Vec<FromHolder>,
        now: Now,
    ) -> Self {
        let first = shared.reader.first().map_or(0, |o| o.0);
        let timeline = Timeline::new(first, shared.spec.cols, shared.spec.rows);
        Self {
            now,
            effects: Effects::default(),
            link: HolderLink::new(shared.id.clone()),
            follower: JournalFollower::new(events, tail, early),
            timeline,
            foreground: ForegroundState::new(!shared.spec.handover.has_hooks()),
            waits: OpenWaits::default(),
            pending: PendingCommands::default(),
            inside: NestedShell::default(),
            jobs: StoppedJobs::default(),
            secret_prompts: SecretPrompts::default(),
            drawing: Drawing::default(),
            last_activity_us: 0,
            current_since: None,
            meter: Meter::default(),
            limit_enforcer: LimitEnforcer::of(&shared, now.at),
            expiry: Expiry::of(&shared, now),
            exit_told: false,
            shared,
        }
    }
}
