//! The actor of one live session: the only owner of its mutable state.
//!
//! ```text
//! Creating ──first prompt──► Running ──shell exits or holder gone──► Terminated
//! ```
//! It follows the tail that its holder publishes: first events, then bytes, then the waits. Handlers are not async;
//! frames for the holder go through the connection's buffer, answers through oneshot channels.

mod expiry;
mod fullscreen;
mod holder_events;
mod holder_timeout;
mod limit_enforcement;
mod nested_command;
mod pattern_matching;
mod publish;
mod requests;
mod snapshot;
mod timers;
mod typed_commands;

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::SystemTime;

use journal::{EventsReader, Offset, Read, Reader};
use terminal::Screen;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use wire::Spec;
use wire::{FromHolder, Hello, Key, State, Status, Tail, Target, ToHolder};

use super::event_log::EventLog;
use super::handover_echo;
use super::holder_connection::HolderConnection;
use super::holder_liveness::{self, Liveness};
use super::processes::{Identity, Meter};
use super::replay_order::{ReplayOrder, Step};
use super::session_metadata::SessionMetadata;
use super::supervision::FaultAlarm;
use super::timeline::{Change, Timeline, micros, time};
use super::viewer_cursor::{Noted, Published};
use super::views;
use super::wait::Waiter;
use crate::action::{
    ActionError, Boundary, CommandStatus, CommandView, EndedBy, Foreground, InputBytes, ProcessView, ScreenView,
    SessionEvent, SessionStatus, SessionView, SignalView, StartupFailure, Wait,
};
use crate::ids::{CommandId, SessionId};
use crate::limits;
use crate::store::Store;
pub(crate) use fullscreen::{Fullscreen, Painted};

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

/// A command that waits for the shell's first prompt.
struct Pending {
    text: Vec<u8>,
    key: Key,
    until: Instant,
    wait: Option<Wait>,
    started: StartReply,
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

/// A request that the holder has not answered yet.
#[derive(Debug)]
enum Call {
    Run {
        wait: Option<Wait>,
        started: oneshot::Sender<Result<Started, ActionError>>,
    },
    Input {
        key: Key,
        wait: Option<Wait>,
        from: u64,
        offered: usize,
        is_signal: bool,
        typed: oneshot::Sender<Result<Typed, ActionError>>,
    },
    /// A command that is typed as a line.
    Line {
        id: u32,
        key: Key,
        wait: Option<Wait>,
        started: StartReply,
    },
    Plain(oneshot::Sender<Result<(), ActionError>>),
    Signal {
        is_foreground: bool,
        reply: oneshot::Sender<Result<(), ActionError>>,
    },
    Terminate(oneshot::Sender<Result<Ended, ActionError>>),
    Report,
}

impl Call {
    /// The wait that begins once the holder has answered.
    fn wait(&self) -> Option<&Wait> {
        match self {
            Self::Run { wait, .. } | Self::Input { wait, .. } | Self::Line { wait, .. } => wait.as_ref(),
            Self::Plain(_) | Self::Signal { .. } | Self::Terminate(_) | Self::Report => None,
        }
    }
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
    connection: HolderConnection,
    /// The holder's process.
    holder: Option<Identity>,
    replay: ReplayOrder,
    /// Events up to the tail were not read yet, so later frames wait.
    has_events: bool,
    frames: VecDeque<FromHolder>,
    /// Events or output up to the tail were not read yet.
    is_behind: bool,
    /// The rest of the output up to the tail cannot be read.
    journal_unreadable: bool,
    /// Events and output from before this server are being read. Until then no request is answered: a partial replay
    /// would name the wrong command as the running one.
    is_replaying: bool,
    /// The end of the output that existed when this server connected.
    replays_to: u64,
    /// Queries in that output for which no reply was found yet.
    unanswered: VecDeque<(terminal::Query, u64)>,
    pub(crate) timeline: Timeline,
    mailbox: mpsc::Receiver<Request>,
    /// How far the session may be read; receivers follow it.
    tail: watch::Sender<Tail>,
    /// The state that viewers follow.
    feed: watch::Sender<Published>,
    /// Events that will be published next.
    notes: Vec<Noted>,
    /// Viewers that wait for the screen.
    pictures: Vec<oneshot::Sender<ScreenSnapshot>>,
    state: Option<State>,
    /// When a full-screen program last painted, left, or did something else than before.
    painted_at: Option<Instant>,
    paint: Fullscreen,
    /// The newest command was refused because the shell was not at its prompt.
    was_not_ready: bool,
    /// The waits have not been checked against the new state yet.
    state_pending: bool,
    /// When the editor was first seen to have the terminal although a command runs.
    editor_since: Option<Instant>,
    /// The end of the output when the kernel's state arrived last.
    heard_at: u64,
    reported_at: Option<Instant>,
    marker_missed_at: Option<Instant>,
    /// Requests to type or to signal that are not answered: the kernel's state from before them is out of date after
    /// them.
    typing: usize,
    waiters: Vec<Waiter>,
    matching: pattern_matching::Matching,
    prompt_waiters: Vec<oneshot::Sender<()>>,
    pending: Vec<Pending>,
    /// The command in the nested shell.
    inside: nested_command::NestedShell,
    pending_inside: Vec<nested_command::PendingNested>,
    /// Callers that wait only until their command's output begins, with their deadlines.
    start_waiters: Vec<(u32, Instant, StartReply)>,
    calls: HashMap<u32, Call>,
    /// Tracks whether the holder answers calls.
    holder_timeout: holder_timeout::HolderTimeout,
    enders: Vec<oneshot::Sender<Result<Ended, ActionError>>>,
    next_seq: u32,
    screen: Option<(Screen, u64)>,
    is_heuristic: bool,
    /// The program image ([`sys::process::image`]) of the shell that has reported.
    image: Option<u64>,
    last_activity_us: u64,
    meter: Meter,
    /// The session's limits, if it has any.
    limit_enforcer: Option<Box<limit_enforcement::LimitEnforcer>>,
    life: expiry::Expiry,
    /// The event log that followers of all sessions read.
    pub(crate) event_log: Arc<EventLog>,
    /// The last command was stopped by `^Z`, and its job still exists.
    has_stopped_job: bool,
    /// A key or a signal that stops programs was sent since the last command ended.
    may_have_stopped: bool,
    /// The shell's children that were stopped at the last check.
    stopped: Vec<Identity>,
    holder_gone: bool,
    /// The tail is the size of the files, because the holder no longer publishes one.
    is_tail_last: bool,
    /// Waits were ended because the shell has exited.
    exit_told: bool,
    displaced: bool,
    /// The version of the wire protocol that the holder speaks.
    protocol: u16,
    /// The session continues, but this actor has lost the connection to its holder.
    is_adrift: bool,
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
        let is_heuristic = !shared.spec.handover.has_hooks();
        let limit_enforcer = limit_enforcement::LimitEnforcer::of(&shared);
        let life = expiry::Expiry::of(&shared);
        let matching = pattern_matching::Matching::of(&event_log, &shared.meta.owner);
        Self {
            _alarm: FaultAlarm(Arc::clone(&shared)),
            shared,
            connection,
            holder: None,
            replay: ReplayOrder::new(events),
            has_events: false,
            frames: early.into(),
            is_behind: false,
            journal_unreadable: false,
            is_replaying: true,
            replays_to: 0,
            unanswered: VecDeque::new(),
            timeline,
            mailbox,
            tail,
            feed,
            notes: Vec::new(),
            pictures: Vec::new(),
            state: None,
            painted_at: None,
            paint: Fullscreen::default(),
            was_not_ready: false,
            state_pending: false,
            editor_since: None,
            heard_at: 0,
            reported_at: None,
            marker_missed_at: None,
            typing: 0,
            waiters: Vec::new(),
            matching,
            prompt_waiters: Vec::new(),
            pending: Vec::new(),
            inside: nested_command::NestedShell::default(),
            pending_inside: Vec::new(),
            start_waiters: Vec::new(),
            calls: HashMap::new(),
            holder_timeout: holder_timeout::HolderTimeout::default(),
            enders: Vec::new(),
            next_seq: 1,
            screen: None,
            is_heuristic,
            image: None,
            last_activity_us: 0,
            meter: Meter::default(),
            limit_enforcer,
            life,
            event_log,
            has_stopped_job: false,
            may_have_stopped: false,
            stopped: Vec::new(),
            holder_gone: false,
            is_tail_last: false,
            exit_told: false,
            displaced: false,
            protocol: 0,
            is_adrift: false,
        }
    }

    /// Runs until the session is over; returns itself so that the registry can record the end.
    pub(crate) async fn run(mut self: Box<Self>, mut everyone: watch::Receiver<bool>) -> Box<Self> {
        loop {
            sys::fault::stumble("turn");
            // A command that was handed over earlier begins its wait with the output it has already written.
            let begins = self.calls.values().map(|call| self.matching_work_of(call.wait())).max().unwrap_or(0);
            self.matches(if self.frames.is_empty() { 0 } else { begins }, Self::handle_frames).await;
            // One chunk per turn: a flood must delay neither requests nor the other sessions of this thread.
            if self.is_behind {
                self.matches(0, Self::follow_some).await;
            }
            if !self.is_behind {
                self.check_exit();
            }
            if self.is_behind || !self.pictures.is_empty() {
                tokio::task::yield_now().await;
            }
            self.check_foreground();
            self.publish();
            self.draw_some();
            match self.next_event(&mut everyone).await {
                Event::Asked(request) => {
                    if let Some(request) = self.refuse(request) {
                        let new = self.matching_work_of(request.wait());
                        self.matches(new, |session| session.on_request(request)).await;
                    }
                }
                Event::Frames(frames) => {
                    self.frames.extend(frames);
                    self.on_holder_answer();
                }
                Event::Everyone => break,
                Event::HolderGone => match super::holder_process::connect(&self.shared.folder) {
                    // Only the connection broke; the session continues.
                    Ok((stream, _)) => {
                        tracing::warn!(session = %self.shared.id, "the connection to the holder broke; connected again");
                        self.connection = HolderConnection::new(stream);
                        self.give_up_calls(|| ActionError::Restarting);
                        self.connection.send(&ToHolder::Hello { protocol: wire::PROTOCOL, attaches: true });
                    }
                    // A connection ends a moment before its process does.
                    Err(why) if !self.holder_ends().await => {
                        tracing::warn!(session = %self.shared.id, %why, "the connection to the holder is lost, and it lives on");
                        self.is_adrift = true;
                        break;
                    }
                    Err(_) => {
                        self.on_last_tail();
                        while self.is_behind {
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
            if self.displaced {
                tracing::warn!(session = %self.shared.id, "another program has attached itself to the holder");
                self.is_adrift = true;
                break;
            }
        }
        if self.is_adrift {
            // Callers get `Restarting` and retry; none gets the answer that the session has ended.
            self.shared.faulted.store(true, Ordering::Release);
            self.give_up_calls(|| ActionError::Restarting);
        }
        self.publish();
        self
    }

    /// Whether the holder has ended or is about to.
    async fn holder_ends(&self) -> bool {
        match holder_liveness::look(&self.shared.folder, self.holder) {
            Liveness::Alive(holder) => holder_liveness::ends_within(holder, limits::HOLDER_ENDS).await,
            Liveness::MayLive(_) => false,
            Liveness::Dead(_) | Liveness::Copy(_) | Liveness::Unknown(_) | Liveness::NeverBegan => true,
        }
    }

    async fn next_event(&mut self, everyone: &mut watch::Receiver<bool>) -> Event {
        let wake = self.next_wake();
        let (is_replaying, has_frames) = (self.is_replaying, !self.frames.is_empty());
        let has_work = self.is_behind || has_frames || !self.pictures.is_empty();
        tokio::select! {
            biased;
            frames = self.connection.receive(), if !has_frames => frames.map_or(Event::HolderGone, Event::Frames),
            request = self.mailbox.recv(), if !is_replaying => request.map_or(Event::Everyone, Event::Asked),
            _ = everyone.changed() => Event::Everyone,
            () = sleep_until(wake) => Event::Time,
            () = abandoned(&mut self.waiters) => Event::Time,
            // Unread output comes last: requests and the holder's frames are more urgent.
            () = std::future::ready(()), if has_work => Event::Time,
        }
    }

    fn next_wake(&self) -> Option<Instant> {
        let waits = self.waiters.iter().map(Waiter::next_at).min();
        let editor = self.editor_since.filter(|_| self.reported_at.is_none()).map(|t| t + limits::EDITOR_SUSPICION);
        let report = self.reported_at.map(|t| t + limits::REPORT_PATIENCE);
        let marker = self.marker_missed_at.map(|t| t + limits::MARKER_PATIENCE);
        let start = self.start_waiters.iter().map(|(_, until, _)| *until).min();
        let pending = self.pending.iter().map(|p| p.until).min();
        // Checked again when the typed command is old enough to have begun.
        let typed = self.typed_command_at();
        let screen = self.screen_settles_at().filter(|_| self.state_pending && !self.has_unread());
        let painted = self.painted_at.filter(|_| self.paints());
        let still = painted.and_then(|at| self.waiters.iter().filter_map(|w| w.still_at(at)).min());
        let inside = self.inside_wakes_at();
        let limit_enforcer = self.limit_enforcer.as_ref().and_then(|s| s.next_at());
        let now_us = micros(SystemTime::now());
        let echo = self.timeline.echo_until_us().filter(|until| *until > now_us);
        let echo = echo.map(|until| Instant::now() + std::time::Duration::from_micros(until - now_us));
        let holder_timeout = self.holder_timeout.next_at();
        [
            holder_timeout,
            inside,
            echo,
            still,
            waits,
            editor,
            report,
            marker,
            start,
            pending,
            typed,
            screen,
            limit_enforcer,
            self.life.next_at(),
        ]
        .into_iter()
        .flatten()
        .min()
    }
}

fn os_error(value: u64) -> String {
    i32::try_from(value).map_or_else(|_| format!("error {value}"), |n| std::io::Error::from_raw_os_error(n).to_string())
}

/// Until the caller of a wait with a pattern is gone. There may be more waits than a task may poll in one turn.
async fn abandoned(waiters: &mut [Waiter]) {
    let any = poll_fn(|cx| {
        if waiters.iter_mut().any(|w| w.poll_abandoned(cx).is_ready()) { Poll::Ready(()) } else { Poll::Pending }
    });
    tokio::task::unconstrained(any).await;
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
