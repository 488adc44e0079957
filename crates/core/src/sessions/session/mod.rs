//! The actor of one live session: the only owner of its mutable state.
//!
//! ```text
//! Creating ──first prompt──► Running ──shell exits or holder gone──► Terminated
//! ```
//! It follows the tail that its holder publishes: first events, then bytes, then the waits. Handlers are not async;
//! frames for the holder go through the connection's buffer, answers through oneshot channels.

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
mod open_waits;
mod pattern_matching;
mod pending_commands;
mod publish;
mod requests;
mod snapshot;
mod stopped_jobs;
mod typed_commands;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use journal::{EventsReader, Reader};
use terminal::Screen;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use wire::Spec;
use wire::{FromHolder, Key, Tail, Target, ToHolder};

use super::event_log::EventLog;
use super::holder_connection::HolderConnection;
use super::holder_liveness::{self, Liveness};
use super::processes::Meter;
use super::session_metadata::SessionMetadata;
use super::supervision::FaultAlarm;
use super::timeline::{Timeline, micros};
use super::viewer_cursor::Published;
use crate::action::{
    ActionError, CommandView, EndedBy, InputBytes, ProcessView, ScreenView, SessionView, SignalView, StartupFailure,
    Wait,
};
use crate::ids::SessionId;
use crate::limits;
use crate::store::Store;
use expiry::Expiry;
use foreground::ForegroundState;
pub(crate) use fullscreen::{Fullscreen, Painted};
use holder_link::HolderLink;
use journal_follower::JournalFollower;
use limit_enforcement::LimitEnforcer;
use nested_command::NestedShell;
use open_waits::OpenWaits;
use pending_commands::PendingCommands;
use publish::Publisher;
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
    /// Where background output begins while no command runs.
    pub(crate) background_from: u64,
    /// Viewers may be sent bytes up to here.
    pub(crate) shown_to: u64,
    /// The parent of all processes of the session.
    pub(crate) holder_pid: u32,
}

/// Everything that wakes the actor.
enum Event {
    Asked(Request),
    Everyone,
    Frames(Vec<FromHolder>),
    HolderGone,
    Time,
}

/// The state that the registry and readers share with the actor: positions, never bytes.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) id: SessionId,
    pub(crate) folder: PathBuf,
    pub(crate) meta: SessionMetadata,
    pub(crate) spec: Spec,
    pub(crate) reader: Reader,
    pub(crate) store: Arc<Store>,
    /// Start-up commands of the profile that failed; forgotten at the server's restart.
    pub(crate) startup_failed: Mutex<Vec<StartupFailure>>,
    /// The actor has panicked or lost its holder.
    pub(crate) faulted: AtomicBool,
    /// The session waits for disk space.
    pub(crate) stalled: AtomicBool,
}

impl Shared {
    /// Whether the actor ended before the session did, so that the registry starts another one.
    pub(crate) fn has_faulted(&self) -> bool {
        self.faulted.load(Ordering::Acquire)
    }
}

pub(crate) struct Session {
    /// The first field: fields are dropped in order.
    _alarm: FaultAlarm,
    pub(crate) shared: Arc<Shared>,
    link: HolderLink,
    follower: JournalFollower,
    pub(crate) timeline: Timeline,
    mailbox: mpsc::Receiver<Request>,
    pub(crate) publisher: Publisher,
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
    pub(crate) fn new(
        shared: Arc<Shared>,
        connection: HolderConnection,
        events: Option<EventsReader>,
        mailbox: mpsc::Receiver<Request>,
        (tail, feed): (watch::Sender<Tail>, watch::Sender<Published>),
        early: Vec<FromHolder>,
        event_log: Arc<EventLog>,
    ) -> Self {
        let first = shared.reader.first().map_or(0, |o| o.0);
        let timeline = Timeline::new(first, shared.spec.cols, shared.spec.rows);
        let matching = pattern_matching::Matching::of(&event_log, &shared.meta.owner);
        Self {
            _alarm: FaultAlarm(Arc::clone(&shared)),
            link: HolderLink::new(shared.id.clone(), connection),
            follower: JournalFollower::new(events, early),
            timeline,
            mailbox,
            publisher: Publisher { tail, feed, notes: Vec::new(), event_log },
            foreground: ForegroundState::new(!shared.spec.handover.has_hooks()),
            waits: OpenWaits::new(matching),
            pending: PendingCommands::default(),
            inside: NestedShell::default(),
            jobs: StoppedJobs::default(),
            screen: None,
            last_activity_us: 0,
            meter: Meter::default(),
            limit_enforcer: LimitEnforcer::of(&shared),
            expiry: Expiry::of(&shared),
            exit_told: false,
            shared,
        }
    }

    /// Runs until the session is over; returns itself so that the registry can record the end.
    pub(crate) async fn run(mut self: Box<Self>, mut everyone: watch::Receiver<bool>) -> Box<Self> {
        loop {
            sys::fault::stumble("turn");
            // A command that was handed over earlier begins its wait with the output it has already written.
            let begins = self.link.calls.values().map(|call| self.matching_work_of(call.wait())).max().unwrap_or(0);
            self.matches(if self.follower.frames.is_empty() { 0 } else { begins }, Self::handle_frames).await;
            // One chunk per turn: a flood must delay neither requests nor the other sessions of this thread.
            if self.follower.is_behind {
                self.matches(0, Self::follow_some).await;
            }
            if !self.follower.is_behind {
                self.check_exit();
            }
            if self.follower.is_behind || !self.waits.pictures.is_empty() {
                tokio::task::yield_now().await;
            }
            self.check_foreground();
            self.publish();
            self.draw_some();
            match self.next_event(&mut everyone).await {
                Event::Asked(request) => {
                    if let Some(request) = self.link.refuse(request) {
                        let new = self.matching_work_of(request.wait());
                        self.matches(new, |session| session.on_request(request)).await;
                    }
                }
                Event::Frames(frames) => {
                    self.follower.frames.extend(frames);
                    self.link.on_answer();
                }
                Event::Everyone => break,
                Event::HolderGone => match super::holder_process::connect(&self.shared.folder) {
                    // Only the connection broke; the session continues.
                    Ok((stream, _)) => {
                        tracing::warn!(session = %self.shared.id, "the connection to the holder broke; connected again");
                        self.link.connection = HolderConnection::new(stream);
                        self.give_up_calls(|| ActionError::Restarting);
                        self.link.connection.send(&ToHolder::Hello { protocol: wire::PROTOCOL, attaches: true });
                    }
                    // A connection ends a moment before its process does.
                    Err(why) if !self.holder_ends().await => {
                        tracing::warn!(session = %self.shared.id, %why, "lost the connection to the holder, which is still running");
                        self.link.is_adrift = true;
                        break;
                    }
                    Err(_) => {
                        self.on_last_tail();
                        while self.follower.is_behind {
                            self.follow_some();
                            tokio::task::yield_now().await;
                        }
                        self.on_holder_gone();
                        break;
                    }
                },
                Event::Time => {}
            }
            self.on_time();
            if self.link.is_displaced {
                tracing::warn!(session = %self.shared.id, "another program has attached itself to the holder");
                self.link.is_adrift = true;
                break;
            }
        }
        if self.link.is_adrift {
            // Callers get `Restarting` and retry; none gets the answer that the session has ended.
            self.shared.faulted.store(true, Ordering::Release);
            self.give_up_calls(|| ActionError::Restarting);
        }
        self.publish();
        self
    }

    /// Whether the holder has ended or is about to.
    async fn holder_ends(&self) -> bool {
        match holder_liveness::look(&self.shared.folder, self.link.process) {
            Liveness::Alive(holder) => holder_liveness::ends_within(holder, limits::HOLDER_ENDS).await,
            Liveness::MayLive(_) => false,
            Liveness::Dead(_) | Liveness::Copy(_) | Liveness::Unknown(_) | Liveness::NeverBegan => true,
        }
    }

    async fn next_event(&mut self, everyone: &mut watch::Receiver<bool>) -> Event {
        let takes_requests = !self.follower.is_replaying && !self.awaits_first_state();
        let wake = self.next_wake();
        let has_frames = !self.follower.frames.is_empty();
        let has_work = self.follower.has_work() || !self.waits.pictures.is_empty();
        tokio::select! {
            biased;
            frames = self.link.connection.receive(), if !has_frames => frames.map_or(Event::HolderGone, Event::Frames),
            request = self.mailbox.recv(), if takes_requests => request.map_or(Event::Everyone, Event::Asked),
            _ = everyone.changed() => Event::Everyone,
            () = sleep_until(wake) => Event::Time,
            () = self.waits.abandoned() => Event::Time,
            // Unread output comes last: requests and the holder's frames are more urgent.
            () = std::future::ready(()), if has_work => Event::Time,
        }
    }

    /// Does what is due.
    fn on_time(&mut self) {
        self.check_waits();
        self.check_hooks();
        self.check_marker();
        if self.link.is_overdue() {
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
        let painted = self.foreground.painted_at.filter(|_| self.paints());
        let still = painted.and_then(|at| self.waits.open.iter().filter_map(|w| w.still_at(at)).min());
        let now_us = micros(SystemTime::now());
        let echo = self.timeline.echo_until_us().filter(|until| *until > now_us);
        let echo = echo.map(|until| Instant::now() + std::time::Duration::from_micros(until - now_us));
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

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
