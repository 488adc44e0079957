//! The context of a session's steps: its files and the timeline that they make, the time, and the ways out.

use std::sync::Arc;
use std::time::Duration;

use journal::EventsReader;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use wire::{FromHolder, Hello, Key, Tail, ToHolder};

use super::holder_link::HolderLink;
use super::journal_follower::state::JournalFollower;
use super::stopped_jobs::StoppedJobs;
use super::take_over::state::TakeOver;
use crate::action::{Limit, SessionEvent, Wait};
use crate::host::{Host, Identity};
use crate::limits;
use crate::sessions::render::range;
use crate::sessions::session::effects::Effects;
use crate::sessions::session::machine::holder_link::Call;
use crate::sessions::session::machine::waits::state::OpenWait;
use crate::sessions::session::now::Now;
use crate::sessions::session::{Finished, KeyUse};
use crate::sessions::shared::Shared;
use crate::sessions::timeline::{Command, Hit, Timeline};
use crate::sessions::viewer_feed::Noted;
use crate::sessions::views;

/// The state that the parts of a session share. A step takes its own part, and this context.
pub(crate) struct Context {
    pub(crate) shared: Arc<Shared>,
    /// The time of the present step.
    pub(in crate::sessions::session) now: Now,
    pub(in crate::sessions::session) effects: Effects,
    pub(in crate::sessions::session) link: HolderLink,
    pub(in crate::sessions::session) follower: JournalFollower,
    pub(crate) timeline: Timeline,
    pub(in crate::sessions::session) jobs: StoppedJobs,
    pub(in crate::sessions::session) last_activity_us: u64,
    /// The running command, and when it was accepted.
    pub(in crate::sessions::session) current_since: Option<(u32, Instant)>,
    /// The driver, and the requests that wait for the keyboard.
    pub(in crate::sessions::session) take_over: TakeOver,
    /// Waits were ended because the shell has exited.
    pub(in crate::sessions::session) exit_told: bool,
}

impl Context {
    pub(super) fn new(
        shared: Arc<Shared>,
        events: Option<EventsReader>,
        tail: watch::Sender<Tail>,
        early: Vec<FromHolder>,
        now: Now,
    ) -> Self {
        let first = shared.reader.first().map_or(0, |o| o.0);
        Self {
            now,
            effects: Effects::default(),
            link: HolderLink::new(shared.id.clone()),
            follower: JournalFollower::new(events, tail, early),
            timeline: Timeline::new(first, shared.spec.cols, shared.spec.rows),
            jobs: StoppedJobs::default(),
            last_activity_us: 0,
            current_since: None,
            take_over: TakeOver::default(),
            exit_told: false,
            shared,
        }
    }

    /// Looks up the request of this key, also one that an earlier server received.
    pub(super) fn key_use(&self, key: &Key) -> KeyUse {
        let is_same = |other: &Key| wire::is_same_name(key, other);
        if let Some(command) = self.timeline.log().commands.iter().rev().find(|c| is_same(&c.key)) {
            return if command.key == *key { KeyUse::Command(command.id) } else { KeyUse::OtherRequest };
        }
        if let Some(Err(())) = self.timeline.log().typed_with(key) {
            return KeyUse::OtherRequest;
        }
        let is_on_its_way = |call: &Call| matches!(call, Call::Line { key, .. } if is_same(key));
        if self.link.calls.values().any(is_on_its_way) { KeyUse::Underway } else { KeyUse::Unused }
    }

    /// Queues an event that viewers get once they have the output up to `at`. Events from before this server are not
    /// published.
    pub(super) fn note(&mut self, at: u64, event: SessionEvent) {
        if !self.follower.is_replaying {
            self.effects.notes.push(Noted { at, event: Arc::new(event) });
        }
    }

    /// Whether it still reads what an earlier server has read.
    pub(crate) fn is_replaying(&self) -> bool {
        self.follower.is_replaying
    }

    /// Publishes a command's beginning. If it ended in the same turn, its end is published at the end of its output.
    pub(super) fn note_start(&mut self, id: u32) {
        if let Some(command) = self.timeline.log().command(id) {
            let begun = Command { end: None, ..command.clone() };
            let view = views::command_view(&self.shared, &begun, command.output_from());
            self.note(view.start_offset, SessionEvent::Started(Arc::new(view)));
        }
    }

    /// Publishes a command's end.
    pub(super) fn note_end(&mut self, id: u32) {
        if let Some(command) = self.timeline.log().command(id) {
            let view = views::command_view(&self.shared, command, self.timeline.output().scanner.position());
            self.note(view.end_offset.unwrap_or(view.start_offset), SessionEvent::Completed(Arc::new(view)));
        }
    }

    /// Publishes the end and stores the command in the history, which outlives this actor.
    pub(super) fn put_on_record(&mut self, id: u32) {
        self.note_end(id);
        if let Some(command) = self.timeline.log().command(id) {
            self.effects.rows.push(views::history_row(&self.shared.id, command));
        }
    }

    /// Whether the shell has exited, or its holder has ended without recording that.
    pub(super) fn has_exited(&self) -> bool {
        self.exit_told || self.timeline.end().exit.is_some()
    }

    /// The connection has ended: everything that the holder wrote is on disk.
    pub(super) fn on_last_tail(&mut self) {
        self.link.is_tail_last = true;
        let journal = self.shared.reader.len().unwrap_or_default();
        self.follower.on_tail(Tail { journal, events: self.follower.order.events_end().unwrap_or_default() });
    }

    /// Whether the session continues without this actor.
    pub(crate) fn is_adrift(&self) -> bool {
        self.link.is_adrift
    }

    /// The process of its holder.
    pub(crate) fn holder(&self) -> Option<Identity> {
        self.link.process
    }

    /// Whether the session has ended for good, so that its actor can go.
    pub(crate) fn is_over(&self) -> bool {
        self.link.is_gone
    }

    /// Whether a program paints the whole screen, alternate or main.
    pub(crate) fn paints(&self) -> bool {
        let scanner = &self.timeline.output().scanner;
        scanner.modes().alt_screen || scanner.paints_main_from().is_some()
    }

    /// Whether commands are handed over as lines, because the shell has no private keys.
    pub(crate) fn takes_lines(&self) -> bool {
        self.shared.spec.handover.line().is_some()
    }

    pub(super) fn on_hello(&mut self, hello: Hello) {
        self.link.process = self.shared.backends.holders.identity(hello.holder_pid);
        self.timeline.record_hello(hello.holder_pid, hello.shell_pid, hello.cols, hello.rows);
        self.follower.replays_to = hello.tail.journal.0;
        self.follower.on_tail(hello.tail);
    }

    /// The text of the line that is unfinished at this offset, as a prompt is.
    pub(super) fn unfinished_line(&self, at: u64) -> String {
        /// A prompt has fewer bytes.
        const PROMPT_BYTES: u64 = 2_048;
        let before = range::read(&self.shared.reader, at.saturating_sub(PROMPT_BYTES), at);
        let before = before.map(|slice| terminal::render(&slice.bytes, self.timeline.cols()).text).unwrap_or_default();
        before.rsplit('\n').next().unwrap_or_default().to_owned()
    }

    /// Records a hit with the holder, which outlives this server, and publishes it.
    pub(crate) fn hit(&mut self, limit: Limit, command: Option<u32>, times: u64) {
        if times == 0 {
            return;
        }
        let command = command.unwrap_or(0);
        let count =
            self.timeline.hits().iter().find(|h| (h.limit, h.command) == (limit, command)).map_or(0, |h| h.count);
        let count = count.saturating_add(times);
        // Repeated kills and refusals by the kernel for one command are published once; each action of this server is
        // published.
        let is_news = count == times || !matches!(limit, Limit::MemoryMb | Limit::Processes);
        let hit = Hit { limit, command, at_us: self.now.us, count, is_recorded: false };
        self.timeline.hit(hit);
        self.link.send(ToHolder::Limited { limit: limit.code(), command, count });
        if is_news {
            self.notify_limit_hit(hit);
        }
    }

    pub(crate) fn notify_limit_hit(&mut self, hit: Hit) {
        if self.follower.is_replaying {
            return;
        }
        tracing::info!(session = %self.shared.id, limit = hit.limit.name(), "the session ran into a limit");
        self.note(self.timeline.output().scanner.held_from(), SessionEvent::LimitHit(views::limit_hit(&hit)));
    }

    /// Whether the holder has not sent a state since this server answered a query.
    pub(super) fn is_answer_on_its_way(&self) -> bool {
        self.timeline.queries().answered > self.timeline.queries().known_to_holder
    }

    /// Whether the shell has read the keys that handed the command over; a report key pressed before that would become
    /// the command's input.
    pub(super) fn keys_are_read(&self) -> bool {
        let Some(command) = self.timeline.log().current.and_then(|id| self.timeline.log().command(id)) else {
            return !self.timeline.shell().prompt_seen;
        };
        // The kernel showed that a shell without private keys reads again and has nothing left to read.
        if self.takes_lines() {
            return true;
        }
        // A shell that waits after an interrupt has read them, or they were thrown away.
        let is_interrupted = self.timeline.log().interrupted == command.id;
        command.start.is_some() || is_interrupted || self.age_of(command.id) >= limits::KEYS_READ
    }

    /// When the shell has read the keys of the command that it has not begun.
    pub(super) fn keys_read_at(&self) -> Option<Instant> {
        let command = self.timeline.log().awaits_start()?;
        let left = limits::KEYS_READ.saturating_sub(self.age_of(command.id));
        let left = if self.keys_are_read() { Duration::ZERO } else { left };
        Some(self.now.at + left)
    }

    /// The machine of the session.
    pub(crate) fn host(&self) -> &dyn Host {
        &*self.shared.backends.host
    }

    /// The offset up to which viewers may read.
    pub(super) fn shown_to(&self) -> u64 {
        self.timeline.shown_to(self.now.us)
    }

    /// Notes when the running command was accepted, by the clock that decides waits. Its record has only the wall clock, which
    /// may be set while it runs.
    pub(super) fn note_current_command(&mut self) {
        let current = self.timeline.log().current;
        if self.current_since.map(|(id, _)| id) == current {
            return;
        }
        let accepted_us = self.timeline.log().current_command().map_or(self.now.us, |command| command.accepted_us);
        let is_known = !self.now.was_clock_set_since(&self.shared.meta);
        let age = if is_known { self.now.since(accepted_us) } else { Duration::ZERO };
        self.current_since = current.map(|id| (id, self.now.at.checked_sub(age).unwrap_or(self.now.at)));
    }

    /// When the running command was accepted.
    pub(super) fn begun_at(&self, id: u32) -> Instant {
        self.current_since.filter(|(current, _)| *current == id).map_or(self.now.at, |(_, at)| at)
    }

    /// The time since the running command was accepted.
    pub(super) fn age_of(&self, id: u32) -> Duration {
        self.now.at.saturating_duration_since(self.begun_at(id))
    }

    /// Whether there are frames that were received and not handled.
    pub(crate) fn has_frames(&self) -> bool {
        !self.follower.frames.is_empty()
    }

    /// Whether there are events or output that were not read.
    pub(crate) fn is_behind(&self) -> bool {
        self.follower.is_behind
    }

    /// This offset, or the beginning of the command's output behind it: the prompt and the echo before are not part of the output.
    pub(crate) fn within_output_of(&self, command: Option<u32>, from: u64) -> u64 {
        let known = command.and_then(|id| self.timeline.log().command(id));
        known.map_or(from, |command| from.max(command.output_from()))
    }

    pub(crate) fn note_stopped_jobs(&mut self, code: Option<i32>) {
        let host = Arc::clone(&self.shared.backends.host);
        self.jobs.on_end(&*host, code, (self.timeline.holder_pid(), self.timeline.shell().pid));
    }

    /// A wait that begins now, for the output from this offset on.
    pub(crate) fn new_wait(
        &self,
        wait: Wait,
        command: Option<u32>,
        from: u64,
        accepted_bytes: Option<usize>,
        reply: oneshot::Sender<Finished>,
    ) -> OpenWait {
        let sight = (self.timeline.cols(), self.shared.folder.masks());
        let mut waiter = OpenWait::new(self.now.at, wait, command, from, sight, accepted_bytes, reply);
        waiter.lines = self.timeline.shell().typed_lines.typed();
        waiter
    }
}
