//! The open waits of the session: their beginning, the output and events that end them, and their answers.

use journal::MaskedText;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::action::{EndedBy, Foreground, Wait};
use crate::limits;
use crate::sessions::session::machine::session::Session;
use crate::sessions::session::machine::waits::state::OpenWait;
use crate::sessions::session::requests::{Finished, Snapshot, Started};
use crate::sessions::timeline::{Change, Channel, Command};

impl Session {
    pub(in crate::sessions::session::machine) fn on_output(&mut self, at: u64, bytes: &[u8], news: &[Change]) {
        if at + bytes.len() as u64 > self.foreground.sampled_at {
            self.foreground.editor_since = None;
        }
        // The kernel's state from before this output is out of date; the holder sends another one when output pauses.
        let now = self.cx.now.at;
        (self.foreground.asks_since, self.foreground.believed_at) = (None, None);
        self.foreground.last_output = Some(now);
        let paints = self.cx.paints();
        if paints || self.foreground.paint.is_on() {
            self.foreground.painted_at = Some(now);
        }
        let end = at + bytes.len() as u64;
        let scanner = &self.cx.timeline.output().scanner;
        let group = || self.cx.shared.backends.host.process(self.cx.timeline.shell().pid)?.foreground_group;
        self.foreground.paint.on_output(end, scanner.modes().alt_screen, scanner.paints_main_from(), group);
        for item in news {
            if let Change::Started(id) = item {
                let start = self.cx.timeline.log().command(*id).map_or(at, Command::output_from);
                self.waits.open.iter_mut().for_each(|w| w.output_begins(*id, start));
            }
        }
        // Output after a command's end is a prompt or other text, and none of the command's.
        let end_of = |id: u32| self.cx.timeline.log().command(id).and_then(|c| c.end.as_ref()).map(|end| end.at);
        let ends: Vec<Option<u64>> = self.waits.open.iter().map(|w| w.command.and_then(end_of)).collect();
        let is_painted = paints;
        let needs_screen = |w: &OpenWait| w.watches_screen() || is_painted && w.wants_pattern();
        let rows = self.waits.open.iter().any(needs_screen).then(|| self.rows_now());
        let bells = self.cx.timeline.output().scanner.bells();
        let mut matched: Vec<(usize, MaskedText)> = Vec::new();
        for (i, waiter) in self.waits.open.iter_mut().enumerate() {
            let ends_at = ends.get(i).copied().flatten();
            let own = ends_at.map_or(bytes.len(), |end| offset_in(bytes, at, end));
            let by_text = waiter.output(at, &bytes[..own], now);
            let shows = is_painted && ends_at.is_none();
            let by_screen = rows.as_ref().filter(|_| shows).and_then(|r| waiter.screen(r));
            if let Some(rows) = &rows {
                waiter.look(rows, now);
            }
            let by_bell = || waiter.is_ended_by_bell(bells).then(|| "bell".into());
            if let Some(what) = by_screen.or(by_text).or_else(by_bell) {
                matched.push((i, what));
            }
        }
        for (i, text) in matched.into_iter().rev() {
            let waiter = self.waits.open.swap_remove(i);
            self.finish(waiter, EndedBy::Matched, Some(text));
        }
    }

    /// A wait that begins now, for the output from this offset on.
    pub(in crate::sessions::session::machine) fn new_wait(
        &self,
        wait: Wait,
        command: Option<u32>,
        from: u64,
        accepted_bytes: Option<usize>,
        reply: oneshot::Sender<Finished>,
    ) -> OpenWait {
        let sight = (self.cx.timeline.cols(), self.cx.shared.folder.masks());
        OpenWait::new(self.cx.now.at, wait, command, from, sight, accepted_bytes, reply)
    }

    /// Waits for this command, or for the running one.
    pub(in crate::sessions::session::machine) fn ask_wait(
        &mut self,
        wait: Wait,
        command: Option<u32>,
        from: Option<u64>,
        reply: oneshot::Sender<Finished>,
    ) {
        let from = from.unwrap_or_else(|| self.cx.timeline.output().scanner.position());
        let command = command.or(self.cx.timeline.log().newest_running());
        let known = command.and_then(|id| self.cx.timeline.log().command(id));
        let is_about_to_begin = known.is_some_and(Command::is_about_to_begin);
        let mut waiter = self.new_wait(wait, command, self.cx.within_output_of(command, from), None, reply);
        waiter.count_current_state();
        if is_about_to_begin {
            waiter.awaits_beginning();
        }
        if let Some(waiter) = self.catch_up(waiter) {
            self.admit(waiter);
        }
    }

    /// Waits for the first prompt.
    pub(in crate::sessions::session::machine) fn ask_prompt(&mut self, reply: oneshot::Sender<()>) {
        if self.cx.timeline.shell().prompt_seen || self.cx.timeline.end().exit.is_some() || self.foreground.is_heuristic
        {
            let _ = reply.send(());
        } else {
            self.waits.at_prompt.push(reply);
        }
    }

    /// Begins the wait for a command that was accepted.
    pub(in crate::sessions::session::machine) fn begin_wait(&mut self, id: u32, wait: Option<Wait>) -> Started {
        let finished = wait.map(|wait| {
            let (reply, finished) = oneshot::channel();
            let at = self.cx.timeline.output().scanner.position();
            let from = self.cx.timeline.log().command(id).map_or(at, Command::output_from);
            let mut waiter = self.new_wait(wait, Some(id), from, None, reply);
            let typed = self.cx.timeline.log().command(id).filter(|command| command.channel == Channel::Line);
            let line = typed.map(|command| (format!("{}\n", command.text), command.accepted_at));
            waiter.leaves_out(line.map(|(line, at)| self.echo_of(line.as_bytes(), at)));
            waiter.looks_at_its_command(self.cx.timeline.cols(), self.cx.timeline.rows());
            if self.cx.timeline.log().command(id).is_some_and(Command::is_about_to_begin) {
                waiter.awaits_beginning();
            }
            waiter.end_on_idle_screen();
            // A repeated request may be for a command that has already written output.
            if let Some(waiter) = self.catch_up(waiter) {
                self.admit(waiter);
            }
            finished
        });
        Started { id, is_history: false, finished }
    }

    /// Registers a wait, unless it has ended already.
    pub(in crate::sessions::session::machine) fn admit(&mut self, mut waiter: OpenWait) {
        waiter.count_bells_from(self.cx.timeline.output().scanner.bells());
        if waiter.watches_screen() {
            let rows = self.rows_now();
            waiter.look(&rows, self.cx.now.at);
        }
        let ended = match waiter.command {
            Some(id) => self.cx.timeline.log().command(id).is_some_and(|c| c.end.is_some()),
            None => self.is_idle(),
        };
        if self.cx.exit_told {
            self.finish(waiter, EndedBy::Exited, None);
        } else if ended && (waiter.command.is_some() || !waiter.wants_more()) {
            self.finish(waiter, EndedBy::Ended, None);
        } else if let Some(ended_by) = self.pause().filter(|_| waiter.ends_on_input_wanted()) {
            self.finish(waiter, ended_by, None);
        } else {
            // A state that does not end the wait now may do so when the screen has settled.
            self.foreground.state_pending = true;
            self.waits.open.push(waiter);
        }
    }

    pub(in crate::sessions::session::machine) fn finish_where(
        &mut self,
        which: impl Fn(&OpenWait) -> bool,
        ended_by: EndedBy,
    ) {
        let mut i = 0;
        while i < self.waits.open.len() {
            if which(&self.waits.open[i]) {
                let waiter = self.waits.open.swap_remove(i);
                self.finish(waiter, ended_by, None);
            } else {
                i += 1;
            }
        }
    }

    pub(in crate::sessions::session::machine) fn finish(
        &mut self,
        waiter: OpenWait,
        ended_by: EndedBy,
        matched: Option<MaskedText>,
    ) {
        let handovers = self.cx.timeline.log().handovers(waiter.from);
        let snapshot = Snapshot { handovers, ..self.snapshot(waiter.command) };
        let finished = Finished {
            ended_by,
            from: waiter.from,
            waited: self.cx.now.at.saturating_duration_since(waiter.began),
            matched,
            accepted_bytes: waiter.accepted_bytes,
            snapshot,
        };
        self.cx.effects.waited.push(ended_by);
        let _ = waiter.reply.send(finished);
    }

    /// Feeds a wait from an earlier position with the output since then; for an ended command, only up to its end.
    pub(in crate::sessions::session::machine) fn catch_up(&mut self, mut waiter: OpenWait) -> Option<OpenWait> {
        let end = waiter
            .command
            .and_then(|id| self.cx.timeline.log().command(id))
            .and_then(|c| c.end.as_ref())
            .map(|end| end.at);
        let position = self.cx.timeline.output().scanner.position();
        let now = end.map_or(position, |end| end.min(position));
        let mut at = waiter.from;
        while waiter.wants_pattern() && !waiter.is_awaiting_beginning() && !waiter.is_abandoned() && at < now {
            // In chunks, like live output: there may be much of it.
            let slice = crate::sessions::render::range::read(
                &self.cx.shared.reader,
                at,
                now.min(at + limits::SCAN_CHUNK as u64),
            )
            .ok()?;
            if let Some(text) = waiter.output(slice.from, &slice.bytes, self.cx.now.at) {
                self.finish(waiter, EndedBy::Matched, Some(text));
                return None;
            }
            at = (slice.from + slice.bytes.len() as u64).max(at + 1);
        }
        Some(waiter)
    }

    /// When the full-screen program in the foreground has painted last.
    pub(in crate::sessions::session::machine) fn screen_painted_at(&self) -> Option<Instant> {
        self.foreground.painted_at.filter(|_| self.foreground() == Foreground::Fullscreen)
    }

    /// Ends the waits whose time is over, and forgets those whose callers are gone.
    pub(in crate::sessions::session::machine) fn check_waits(&mut self) {
        let now = self.cx.now.at;
        self.waits.open.retain(|w| !w.is_abandoned());
        self.waits.notify_overdue(now);
        if self.is_undecided() {
            self.waits.open.iter_mut().for_each(|w| w.defer_quiet_timer(now));
        }
        let due: Vec<usize> =
            (0..self.waits.open.len()).rev().filter(|i| self.waits.open[*i].by_time(now).is_some()).collect();
        for i in due {
            let waiter = self.waits.open.swap_remove(i);
            if let Some((ended_by, matched)) = waiter.by_time(now) {
                let matched = matched.map(|text| self.cx.shared.folder.masks().text(text));
                self.finish(waiter, ended_by, matched);
            }
        }
        if let Some(since) = self.foreground.asks_since {
            self.finish_where(|w| w.outlasted_at(since).is_some_and(|at| now >= at), EndedBy::InputWanted);
        }
        if let Some(painted) = self.screen_painted_at() {
            self.finish_where(|w| w.still_at(painted).is_some_and(|at| now >= at), EndedBy::Quiet);
        }
    }
}

/// The index of this offset in bytes that begin at another offset; their length if it is beyond them.
fn offset_in(bytes: &[u8], begins: u64, offset: u64) -> usize {
    usize::try_from(offset.saturating_sub(begins)).unwrap_or(usize::MAX).min(bytes.len())
}
