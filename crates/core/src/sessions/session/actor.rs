//! The actor of one live session: its mailbox, its connection to the holder, and what [`Session`] wants done.
//!
//! Everything that wakes it becomes a [`StepInput`] of the session, and everything that the session wants done outside of
//! itself comes back as [`Effects`](super::effects::Effects). Steps are not async.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::{Instant, Sleep};
use wire::FromHolder;

use super::draw_task::DrawTask;
use super::machine::session::Session;
use super::now::Now;
use super::pattern_matching::Matching;
use super::publish::Publisher;
use super::requests::Request;
use super::step_input::StepInput;
use crate::host::holders::{self, HolderConnection, Liveness, Traces};
use crate::limits;
use crate::low_priority::run_at_low_priority;
use crate::sessions::server_events::ServerEvents;
use crate::sessions::session::pattern_matching;
use crate::sessions::shared::Shared;
use crate::sessions::viewer_feed::Published;

/// Everything that wakes the actor.
enum Event {
    Asked(Box<Request>),
    /// The server stops, or nobody has a handle of the session any more.
    Stop,
    Frames(Vec<FromHolder>),
    HolderGone,
    Time,
}

/// The first field of an actor: it records a panic before any waiting task notices that the actor is gone.
#[derive(Debug)]
struct FaultAlarm(Arc<Shared>);

impl Drop for FaultAlarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.faulted.store(true, Ordering::Release);
        }
    }
}

pub(crate) struct Actor {
    /// The first field: fields are dropped in order.
    _alarm: FaultAlarm,
    pub(crate) session: Session,
    connection: HolderConnection,
    mailbox: mpsc::Receiver<Box<Request>>,
    publisher: Publisher,
    matching: Matching,
}

impl Actor {
    pub(crate) fn new(
        session: Session,
        connection: HolderConnection,
        mailbox: mpsc::Receiver<Box<Request>>,
        feed: watch::Sender<Published>,
        server_events: Arc<ServerEvents>,
    ) -> Self {
        Self {
            _alarm: FaultAlarm(Arc::clone(&session.cx.shared)),
            matching: Matching::of(&server_events, &session.cx.shared.meta.owner),
            publisher: Publisher::new(feed, server_events),
            session,
            connection,
            mailbox,
        }
    }

    /// Runs until the session is over; returns itself so that its caller can record the end.
    pub(crate) async fn run(mut self: Box<Self>, mut stopping: watch::Receiver<bool>) -> Box<Self> {
        let mut timer = pin!(tokio::time::sleep_until(Instant::now()));
        loop {
            sys::fault::stumble("turn");
            if self.session.cx.has_frames() {
                self.matches(pattern_matching::matching_work_of_calls(&self.session.cx), StepInput::Frames).await;
            }
            // One chunk per turn: a flood must delay neither requests nor the other sessions of this thread.
            if self.session.cx.is_behind() {
                self.matches(0, StepInput::Unread).await;
            }
            if self.session.has_work() {
                tokio::task::yield_now().await;
            }
            let now = Now::read();
            self.step_at(now, StepInput::Settled);
            self.publish(now);
            self.step_at(now, StepInput::Published { count: self.publisher.count() });
            let event = self.next_event(&mut stopping, timer.as_mut()).await;
            self.session.cx.shared.is_in_turn.store(true, Ordering::Release);
            match event {
                Event::Asked(request) => {
                    let new = pattern_matching::matching_work_of(&self.session.cx, request.wait());
                    self.matches(new, StepInput::Request(request)).await;
                }
                Event::Frames(frames) => self.step(StepInput::Received(frames)),
                Event::Stop => break,
                Event::HolderGone => {
                    if self.reconnects().await {
                        self.step(StepInput::Reconnected);
                    } else {
                        break;
                    }
                }
                Event::Time => {}
            }
            self.step(StepInput::Time);
            if self.session.cx.link.is_displaced {
                tracing::warn!(session = %self.session.cx.shared.id, "another program has attached itself to the holder");
                self.goes_adrift();
                break;
            }
        }
        self.publish(Now::read());
        if self.session.cx.is_over() {
            // Before the mailbox closes: a request that finds it closed reads the ended session, with the time of its end.
            let (shared, ended_us) = (&self.session.cx.shared, self.session.cx.timeline.ended_us());
            shared.put_row(Some(ended_us));
        }
        self
    }

    /// Takes one step, and does what the session wants done after it.
    fn step(&mut self, input: StepInput) {
        self.step_at(Now::read(), input);
    }

    fn step_at(&mut self, now: Now, input: StepInput) {
        let is_replaying = self.session.cx.is_replaying();
        self.session.step(now, input);
        self.perform(is_replaying);
    }

    /// Takes a step that matches patterns: the patterns of the open waits, and `new` characters for a wait that begins.
    async fn matches(&mut self, new: usize, input: StepInput) {
        let work = self.session.waits.matching_work(&self.session.cx) + new;
        let session = &mut self.session;
        let is_replaying = session.cx.is_replaying();
        self.matching.run(work, || session.step(Now::read(), input)).await;
        self.perform(is_replaying);
    }

    /// Does what the session wants done outside of itself.
    fn perform(&mut self, is_replaying: bool) {
        let effects = self.session.take_effects();
        effects.frames.iter().for_each(|frame| self.connection.send(frame));
        self.session.cx.link.unsent_bytes = self.connection.unsent_bytes();
        for row in effects.rows {
            if is_replaying {
                self.publisher.note_missed_end(&self.session.cx.shared, &row);
            }
            self.session.cx.shared.backends.store.put_command(row);
        }
        if let Some(task) = effects.draw {
            tokio::spawn(draw_ahead(task));
        }
        self.publisher.take(effects.notes, effects.waited, effects.read);
    }

    fn publish(&mut self, now: Now) {
        self.publisher.publish(&self.session, now);
        self.session.cx.shared.is_in_turn.store(false, Ordering::Release);
    }

    /// The connection to the holder has ended. Returns whether there is another one; otherwise the session is over, or
    /// continues without this actor.
    async fn reconnects(&mut self) -> bool {
        let shared = Arc::clone(&self.session.cx.shared);
        match shared.backends.holders.connect(&shared.folder) {
            // Only the connection broke; the session continues.
            Ok((connection, _)) => {
                tracing::warn!(session = %shared.id, "the connection to the holder broke; connected again");
                self.connection = connection;
                true
            }
            // A connection ends a moment before its process does.
            Err(why) if !self.holder_ends().await => {
                tracing::warn!(session = %shared.id, %why, "lost the connection to the holder, which is still running");
                self.goes_adrift();
                false
            }
            Err(_) => {
                self.step(StepInput::LastTail);
                while self.session.cx.is_behind() {
                    self.step(StepInput::Unread);
                    tokio::task::yield_now().await;
                }
                let traces = self.session.cx.timeline.end().exit.is_none().then(|| self.sweep());
                self.step(StepInput::HolderGone(traces));
                false
            }
        }
    }

    /// The holder was killed: the kernel hung the terminal up, and processes that survived this are found by the
    /// session's tag.
    fn sweep(&self) -> Traces {
        let shared = &self.session.cx.shared;
        let swept = match shared.backends.holders.liveness(&shared.folder, self.session.cx.holder()) {
            Liveness::Dead(dead) => holders::sweep(&*shared.backends.host, &shared.id, dead),
            Liveness::Alive(_)
            | Liveness::Copy(_)
            | Liveness::Unknown(_)
            | Liveness::MayLive(_)
            | Liveness::NeverBegan => 0,
        };
        tracing::warn!(session = %shared.id, swept, "the holder is gone");
        shared.backends.holders.traces(&shared.folder)
    }

    fn goes_adrift(&mut self) {
        self.session.cx.shared.faulted.store(true, Ordering::Release);
        self.step(StepInput::Adrift);
    }

    /// Whether the holder has ended or is about to.
    async fn holder_ends(&self) -> bool {
        let shared = &self.session.cx.shared;
        match shared.backends.holders.liveness(&shared.folder, self.session.cx.holder()) {
            Liveness::Alive(holder) => shared.backends.holders.ends_within(holder, limits::HOLDER_ENDS).await,
            Liveness::MayLive(_) => false,
            Liveness::Dead(_) | Liveness::Copy(_) | Liveness::Unknown(_) | Liveness::NeverBegan => true,
        }
    }

    async fn next_event(&mut self, stopping: &mut watch::Receiver<bool>, timer: Pin<&mut Sleep>) -> Event {
        let session = &mut self.session;
        let takes_requests = session.takes_requests();
        let wake = session.next_wake();
        let (has_frames, has_work) = (session.cx.has_frames(), session.has_work() || session.cx.has_frames());
        tokio::select! {
            biased;
            frames = self.connection.receive(), if !has_frames => frames.map_or(Event::HolderGone, Event::Frames),
            request = self.mailbox.recv(), if takes_requests => request.map_or(Event::Stop, Event::Asked),
            _ = stopping.changed() => Event::Stop,
            () = wait_until(timer, wake) => Event::Time,
            () = session.waits.abandoned() => Event::Time,
            () = session.cx.take_over.left() => Event::Time,
            () = session.drawing.is_ahead() => Event::Time,
            // Unread output comes last: requests and the holder's frames are more urgent.
            () = std::future::ready(()), if has_work => Event::Time,
        }
    }
}

/// Draws a screen ahead of any look. One task of the server draws at a time: the others take a processor from nobody.
async fn draw_ahead(task: DrawTask) {
    static ONE: Semaphore = Semaphore::const_new(1);
    if let Ok(_turn) = ONE.acquire().await
        && let Err(error) = run_at_low_priority(move || draw_at_lowest_priority(task)).await
    {
        tracing::warn!(%error, "a screen was not drawn ahead");
    }
}

/// Nobody waits for it, as somebody does for other work of low priority.
fn draw_at_lowest_priority(task: DrawTask) {
    sys::priority::lower_this_thread();
    task.run();
}

/// Waits until this time at most. Setting a timer wakes the thread that waits for all timers. So a timer that is set to an
/// earlier time stays set, and the turn that it causes does nothing.
async fn wait_until(mut timer: Pin<&mut Sleep>, at: Option<Instant>) {
    let Some(at) = at else { return std::future::pending().await };
    if timer.is_elapsed() || at < timer.deadline() {
        timer.as_mut().reset(at);
    }
    timer.await;
}
