//! One live session: a machine of steps, the only owner of its state.
//!
//! ```text
//! Creating ──first prompt──► Running ──shell exits or holder gone──► Terminated
//!
//! requests ─┐                          ┌─► frames for the holder, rows of the history
//! frames ───┼─► Session::step(now, …) ─┼─► events for viewers, counts
//! time ─────┘         │                └─► answers of callers (oneshot)
//!                events, then output up to the tail
//! ```
//! A step reads the session's files up to the tail that its holder has published, and the machine through its host; it reads
//! no clock, waits for nothing and sends nothing. [`actor`] makes inputs of what wakes it, and does what a step wants done.

mod actor;
mod errors;
mod exit;
mod expiry;
mod foreground;
mod fullscreen;
mod holder_events;
mod holder_link;
mod journal_follower;
mod limit_enforcement;
mod lost_hooks;
mod nested_command;
mod now;
mod open_waits;
mod pattern_matching;
mod pending_commands;
mod publish;
mod requests;
mod snapshot;
mod stopped_jobs;
#[cfg(test)]
mod tests;
mod typed_commands;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::SystemTime;

use journal::EventsReader;
use terminal::Screen;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use wire::{FromHolder, Key, Tail, Target, ToHolder};

use super::processes::Meter;
use super::render::handover::RecentHandovers;
use super::render::published::Noted;
use super::shared::Shared;
use super::timeline::Timeline;
use crate::action::{
    ActionError, CommandView, EndedBy, InputBytes, ProcessView, ScreenView, SessionView, SignalView, Wait,
};
use crate::host::Host;
use crate::host::holders::Traces;
use crate::limits;
use crate::store::HistoryRow;
pub(crate) use actor::Actor;
use expiry::Expiry;
use foreground::ForegroundState;
pub(crate) use fullscreen::{Fullscreen, Painted};
use holder_link::HolderLink;
use journal_follower::JournalFollower;
use limit_enforcement::LimitEnforcer;
use nested_command::NestedShell;
pub(crate) use now::Now;
use open_waits::OpenWaits;
use pending_commands::PendingCommands;
use stopped_jobs::StoppedJobs;

/// A request to a live session.
#[derive(Debug)]
pub(crate) enum Request {
    Look(oneshot::Sender<Snapshot>),
    Commands(oneshot::Sender<(Snapshot, Vec<CommandView>)>),
    Run {
        text: Vec<u8>,
        key: Key,
        patience_ms: u32,
        wait: Option<Wait>,
        /// Whether the command is for the shell nested inside the running command.
        is_inside: bool,
        started: oneshot::Sender<Result<Started, ActionError>>,
    },
    Input {
        bytes: InputBytes,
        key: Key,
        is_secret: bool,
        wait: Option<Wait>,
        typed: oneshot::Sender<Result<Typed, ActionError>>,
    },
    /// Waits for this command, or for the running one.
    Wait {
        wait: Wait,
        command: Option<u32>,
        from: Option<u64>,
        reply: oneshot::Sender<Finished>,
    },
    Resize {
        cols: u16,
        rows: u16,
        reply: oneshot::Sender<Result<(), ActionError>>,
    },
    Signal {
        target: Target,
        signo: i32,
        reply: oneshot::Sender<Result<(), ActionError>>,
    },
    Terminate {
        signo: i32,
        grace_ms: u32,
        reply: oneshot::Sender<Result<Ended, ActionError>>,
    },
    /// The screen, for a viewer that follows from there or for a single snapshot; built in turns, so that no other
    /// request waits for it.
    Picture(oneshot::Sender<ScreenSnapshot>),
    /// How far viewers may read, and which markers before that are attested.
    ViewerLimit(oneshot::Sender<ViewerLimit>),
    /// The journal's offset at this time.
    At(SystemTime, oneshot::Sender<u64>),
    /// Offsets, each with the time when the journal had reached it.
    Times(oneshot::Sender<VecDeque<(u64, u64)>>),
    Processes(oneshot::Sender<Vec<ProcessView>>),
    Signals(oneshot::Sender<Vec<SignalView>>),
    Prompt(oneshot::Sender<()>),
}

impl Request {
    /// The wait that is part of the request.
    fn wait(&self) -> Option<&Wait> {
        match self {
            Self::Run { wait, .. } | Self::Input { wait, .. } => wait.as_ref(),
            Self::Wait { wait, .. } => Some(wait),
            Self::Look(_)
            | Self::Commands(_)
            | Self::Resize { .. }
            | Self::Signal { .. }
            | Self::Terminate { .. }
            | Self::Picture(_)
            | Self::ViewerLimit(_)
            | Self::At(..)
            | Self::Times(_)
            | Self::Processes(_)
            | Self::Signals(_)
            | Self::Prompt(_) => None,
        }
    }
}

/// Tells a caller that its command was accepted.
type StartReply = oneshot::Sender<Result<Started, ActionError>>;

/// An accepted command, and the channel on which its wait answers.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) id: u32,
    /// It was accepted long ago and has ended; only the history has it.
    pub(crate) is_history: bool,
    pub(crate) finished: Option<oneshot::Receiver<Finished>>,
}

/// The state of a session that a viewer needs.
#[derive(Debug, Default)]
pub(crate) struct ViewerLimit {
    /// The end of the last complete control sequence.
    pub(crate) to: u64,
    /// Viewers may be sent bytes up to here.
    pub(crate) stream_to: u64,
    /// The ranges of attested markers.
    pub(crate) markers: Vec<(u64, u64)>,
    pub(crate) handovers: RecentHandovers,
    /// The shell has exited, and the holder is ending its descendants.
    pub(crate) has_exited: bool,
}

/// A screen, and the position from which a viewer that shows it continues.
#[derive(Debug)]
pub(crate) struct ScreenSnapshot {
    pub(crate) screen: ScreenView,
    /// Height in cells.
    pub(crate) rows: u16,
    /// The number of events before it.
    pub(crate) count: u64,
}

/// Accepted input, and the channel on which its wait answers.
#[derive(Debug)]
pub(crate) struct Typed {
    pub(crate) accepted: usize,
    pub(crate) from: u64,
    pub(crate) finished: Option<oneshot::Receiver<Finished>>,
}

/// A wait that is over.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) ended_by: EndedBy,
    pub(crate) from: u64,
    pub(crate) waited: std::time::Duration,
    pub(crate) matched: Option<String>,
    pub(crate) accepted_bytes: Option<usize>,
    pub(crate) snapshot: Snapshot,
}

/// A session that was ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended {
    pub(crate) killed: u64,
    pub(crate) left: u64,
}

/// A session as it is now.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    pub(crate) view: SessionView,
    /// The command that the request was about.
    pub(crate) command: Option<CommandView>,
    pub(crate) paint: Fullscreen,
    /// The newest command was refused because the shell was not at its prompt.
    pub(crate) was_not_ready: bool,
    /// The offset at which background output begins while no command runs.
    pub(crate) background_from: u64,
    /// Viewers may be sent bytes up to here.
    pub(crate) shown_to: u64,
    /// The parent of all processes of the session.
    pub(crate) holder_pid: u32,
    /// The hand-overs in the output that the request was about.
    pub(crate) handovers: RecentHandovers,
}

/// An input of the session's state machine.
#[derive(Debug)]
pub(super) enum Input {
    /// Frames that were received can be handled.
    Frames,
    /// There are events or output that were not read.
    Unread,
    /// The frames and the output of this turn were handled.
    Settled,
    Request(Request),
    Received(Vec<FromHolder>),
    /// The connection to the holder broke, and there is another one.
    Reconnected,
    /// The connection to the holder is lost, and the holder lives.
    Adrift,
    /// The holder has ended, so its files have their last length.
    LastTail,
    /// All output of the holder that has ended was read; what it left in its folder.
    HolderGone(Option<Traces>),
    /// So many events were published so far.
    Published {
        count: u64,
    },
    Time,
}

/// The effects of a step outside of the session's state, in this order.
#[derive(Debug, Default)]
pub(super) struct Effects {
    /// Frames for the holder.
    pub(super) frames: Vec<ToHolder>,
    /// Commands for the history.
    pub(super) rows: Vec<HistoryRow>,
    /// The waits that ended.
    pub(super) waited: Vec<EndedBy>,
    /// Bytes of output that were read.
    pub(super) read: usize,
    /// Events for viewers.
    pub(super) notes: Vec<Noted>,
}

/// The state of a live session: a machine that [`Session::step`] drives. It reads the session's files and the kernel, and
/// changes nothing outside of itself but by [`Effects`], by answers to callers, and by the signals of its limits
/// (`limit_enforcement.rs`, through its host).
pub(crate) struct Session {
    pub(crate) shared: Arc<Shared>,
    /// The time of the present step.
    now: Now,
    effects: Effects,
    link: HolderLink,
    follower: JournalFollower,
    pub(crate) timeline: Timeline,
    foreground: ForegroundState,
    waits: OpenWaits,
    pending: PendingCommands,
    /// The command in the nested shell.
    inside: NestedShell,
    jobs: StoppedJobs,
    screen: Option<(Screen, u64)>,
    last_activity_us: u64,
    meter: Meter,
    /// The session's limits, if it has any.
    limit_enforcer: Option<Box<LimitEnforcer>>,
    expiry: Expiry,
    /// Waits were ended because the shell has exited.
    exit_told: bool,
}

impl Session {
    /// The machine of the session.
    fn host(&self) -> &dyn Host {
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
            screen: None,
            last_activity_us: 0,
            meter: Meter::default(),
            limit_enforcer: LimitEnforcer::of(&shared, now.at),
            expiry: Expiry::of(&shared, now),
            exit_told: false,
            shared,
        }
    }

    /// Takes one step: something happened, at this time.
    pub(super) fn step(&mut self, now: Now, input: Input) {
        self.now = now;
        match input {
            Input::Frames => self.handle_frames(),
            Input::Unread => self.follow_some(),
            Input::Settled => self.settle(),
            Input::Request(request) => {
                if let Some(request) = self.link.refuse(request) {
                    self.on_request(request);
                }
            }
            Input::Received(frames) => {
                self.follower.frames.extend(frames);
                self.link.on_answer(now.at);
            }
            Input::Reconnected => {
                self.give_up_calls(|| ActionError::Restarting);
                self.link.send(ToHolder::Hello { protocol: wire::PROTOCOL, attaches: true });
            }
            Input::Adrift => {
                self.link.is_adrift = true;
                // Callers get `Restarting` and retry; none gets the answer that the session has ended.
                self.give_up_calls(|| ActionError::Restarting);
            }
            Input::LastTail => self.on_last_tail(),
            Input::HolderGone(traces) => self.on_holder_gone(traces.as_ref()),
            Input::Published { count } => self.draw_some(count),
            Input::Time => self.on_time(),
        }
    }

    /// Whether there are frames that were received and not handled.
    fn has_frames(&self) -> bool {
        !self.follower.frames.is_empty()
    }

    /// Whether there are events or output that were not read.
    fn is_behind(&self) -> bool {
        self.follower.is_behind
    }

    /// Whether there is something to read or to draw without waiting.
    fn has_work(&self) -> bool {
        self.is_behind() || !self.waits.pictures.is_empty()
    }

    /// Whether requests can be handled: what happened before this server, and what runs now, is known.
    fn takes_requests(&mut self) -> bool {
        !self.follower.is_replaying && !self.awaits_first_state()
    }

    /// Everything up to the tail is read, or the rest is read in the next turns: ends what ends with it.
    fn settle(&mut self) {
        if !self.follower.is_behind {
            self.check_exit();
        }
        self.check_foreground();
    }

    /// Takes what this session wants done outside of itself.
    pub(super) fn take_effects(&mut self) -> Effects {
        Effects { frames: std::mem::take(&mut self.link.unsent), ..std::mem::take(&mut self.effects) }
    }

    /// Does what is due.
    fn on_time(&mut self) {
        self.check_waits();
        self.check_hooks();
        self.check_marker();
        if self.link.is_overdue(self.now) {
            let error = self.link.unreachable_error();
            self.give_up_calls(|| error.clone());
        }
        self.check_typed_command();
        self.refuse_pending();
        self.check_nested_command();
        self.check_limits();
        self.check_expiry();
    }

    /// When something is due.
    fn next_wake(&self) -> Option<Instant> {
        let marker = self.follower.marker_missed_at.map(|t| t + limits::MARKER_PATIENCE);
        let screen =
            self.foreground.screen_settles_at().filter(|_| self.foreground.state_pending && !self.has_unread());
        let still = self.screen_painted_at().and_then(|at| self.waits.open.iter().filter_map(|w| w.still_at(at)).min());
        let now_us = self.now.us;
        let echo = self.timeline.handover_until_us().filter(|until| *until > now_us);
        let echo = echo.map(|until| self.now.at + std::time::Duration::from_micros(until - now_us));
        [
            self.link.next_at(),
            self.inside_wakes_at(),
            echo,
            still,
            self.waits.next_at(),
            self.foreground.next_at(),
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

fn os_error(value: u64) -> String {
    i32::try_from(value).map_or_else(|_| format!("error {value}"), |n| std::io::Error::from_raw_os_error(n).to_string())
}
