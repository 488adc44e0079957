//! The context of a session's steps: its files and the timeline that they make, the time, and the ways out.

use std::sync::Arc;
use std::time::Duration;

use journal::EventsReader;
use tokio::sync::watch;
use tokio::time::Instant;
use wire::{FromHolder, Hello, Key, Tail, Target, ToHolder};

use super::holder_link::HolderLink;
use super::journal_follower::state::JournalFollower;
use crate::action::{Limit, SessionEvent, Until, Wait};
use crate::host::{Host, Identity, Process, descendants};
use crate::limits;
use crate::sessions::render::range;
use crate::sessions::session::effects::Effects;
use crate::sessions::session::machine::holder_link::Call;
use crate::sessions::session::now::Now;
use crate::sessions::session::question_ending::QuestionEnding;
use crate::sessions::session::{KeyUse, ViewerLimit};
use crate::sessions::shared::Shared;
use crate::sessions::timeline::{Command, Hit, Sent, Timeline};
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
    pub(in crate::sessions::session) last_activity_us: u64,
    /// The running command, and when it was accepted.
    pub(in crate::sessions::session) current_since: Option<(u32, Instant)>,
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
            last_activity_us: 0,
            current_since: None,
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
    pub(in crate::sessions::session::machine) fn paints(&self) -> bool {
        let scanner = &self.timeline.output().scanner;
        scanner.modes().alt_screen || scanner.paints_main_from().is_some()
    }

    pub(super) fn question_ending(&self) -> Option<QuestionEnding> {
        /// The mark of a question and the sequences behind it have fewer bytes.
        const ENDING_BYTES: u64 = 64;
        let end = self.timeline.output().scanner.position();
        let newest = range::read(&self.shared.reader, end.saturating_sub(ENDING_BYTES), end).ok()?;
        QuestionEnding::of(&newest.bytes)
    }

    /// Whether commands are handed over as lines, because the shell has no private keys.
    pub(in crate::sessions::session::machine) fn takes_lines(&self) -> bool {
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
    pub(in crate::sessions::session::machine) fn hit(&mut self, limit: Limit, command: Option<u32>, times: u64) {
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

    pub(in crate::sessions::session::machine) fn notify_limit_hit(&mut self, hit: Hit) {
        if self.follower.is_replaying {
            return;
        }
        tracing::info!(session = %self.shared.id, limit = hit.limit.name(), "the session ran into a limit");
        self.note(self.timeline.output().scanner.held_from(), SessionEvent::LimitHit(views::limit_hit(&hit)));
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
    pub(in crate::sessions::session) fn host(&self) -> &dyn Host {
        &*self.shared.backends.host
    }

    /// The signal as the event log will record it, with the processes that will receive it.
    pub(super) fn about_to_send(&self, target: Target, signo: i32) -> Sent {
        let all = descendants(self.host(), self.timeline.holder_pid());
        let foreground = all.iter().find(|s| s.pid() == self.timeline.shell().pid).and_then(|s| s.foreground_group);
        let gets = |it: &Process| match target {
            Target::Foreground => Some(it.group) == foreground,
            Target::Session => true,
            Target::Process(pid) => it.pid() == pid,
        };
        let receivers = all.into_iter().filter(gets).map(|it| (it.identity, it.name)).collect();
        let target = match target {
            Target::Foreground => 0,
            Target::Session => -1,
            Target::Process(pid) => pid.cast_signed(),
        };
        Sent { target, signo, errno: 0, at_us: 0, receivers }
    }

    /// The offset up to which viewers may read.
    pub(super) fn shown_to(&self) -> u64 {
        self.timeline.shown_to(self.now.us)
    }

    /// How far viewers may read, and which markers before that are attested.
    pub(super) fn viewer_limit(&self) -> ViewerLimit {
        ViewerLimit {
            to: self.timeline.output().scanner.held_from(),
            stream_to: self.shown_to(),
            text_to: self.shown_to().min(self.timeline.output().scanner.text_to()),
            markers: self.timeline.output().markers.iter().copied().collect(),
            handovers: self.timeline.log().handovers(0),
            has_exited: self.timeline.end().exit.is_some(),
        }
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
    pub(in crate::sessions::session) fn has_frames(&self) -> bool {
        !self.follower.frames.is_empty()
    }

    /// Whether there are events or output that were not read.
    pub(in crate::sessions::session) fn is_behind(&self) -> bool {
        self.follower.is_behind
    }

    /// This offset, or the beginning of the command's output behind it: the prompt and the echo before are not part of the output.
    pub(in crate::sessions::session::machine) fn within_output_of(&self, command: Option<u32>, from: u64) -> u64 {
        let known = command.and_then(|id| self.timeline.log().command(id));
        known.map_or(from, |command| from.max(command.output_from()))
    }

    /// How many characters the patterns match of a command that was handed over earlier: its wait begins with the output
    /// that it has already written.
    pub(in crate::sessions::session) fn matching_work_of_calls(&self) -> usize {
        self.link.calls.values().map(|call| self.matching_work_of(call.wait())).max().unwrap_or(0)
    }

    /// The same for a wait that begins, perhaps over all earlier output.
    pub(in crate::sessions::session) fn matching_work_of(&self, wait: Option<&Wait>) -> usize {
        let Some(wait) = wait else { return 0 };
        let gone = wait.until.iter().map(|until| match until {
            Until::Gone(pattern) => pattern.work(self.cells()),
            Until::Listening(_) | Until::File(_) | Until::Bell | Until::Input => 0,
        });
        let earlier = usize::try_from(self.timeline.output().scanner.position()).unwrap_or(usize::MAX);
        let text = wait.pattern.as_ref().map_or(0, |pattern| pattern.work(earlier));
        text.saturating_add(gone.sum())
    }

    pub(in crate::sessions::session) fn cells(&self) -> usize {
        usize::from(self.timeline.cols()) * usize::from(self.timeline.rows())
    }
}
