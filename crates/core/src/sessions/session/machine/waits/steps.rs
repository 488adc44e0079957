//! The open waits of the session: their beginning, the output and events that end them, and their answers.

use journal::MaskedText;
use tokio::sync::oneshot;

use crate::action::{EndedBy, Wait};
use crate::limits;
use crate::sessions::session::machine::context::Context;
use crate::sessions::session::machine::drawing::state::Drawing;
use crate::sessions::session::machine::foreground::state::ForegroundState;
use crate::sessions::session::machine::input_request::echo_of;
use crate::sessions::session::machine::nested_command::state::NestedShell;
use crate::sessions::session::machine::snapshot;
use crate::sessions::session::machine::waits::state::{OpenWait, OpenWaits};
use crate::sessions::session::pattern_matching::cells;
use crate::sessions::session::requests::{Finished, Snapshot, Started};
use crate::sessions::timeline::{Change, Channel, Command};

/// A wait for this command, or for the running one.
pub(crate) fn asked(
    cx: &Context,
    wait: Wait,
    command: Option<u32>,
    from: Option<u64>,
    reply: oneshot::Sender<Finished>,
) -> OpenWait {
    let from = from.unwrap_or_else(|| cx.timeline.output().scanner.position());
    let command = command.or(cx.timeline.log().newest_running());
    let known = command.and_then(|id| cx.timeline.log().command(id));
    let mut waiter = cx.new_wait(wait, command, cx.within_output_of(command, from), None, reply);
    waiter.count_current_state();
    if known.is_some_and(Command::is_about_to_begin) {
        waiter.awaits_beginning();
    }
    waiter
}

impl OpenWaits {
    /// How many characters the patterns of the open waits match in the next turn.
    pub(crate) fn matching_work(&self, cx: &Context) -> usize {
        if self.open.is_empty() {
            return 0;
        }
        let position = cx.timeline.output().scanner.position();
        let unread = usize::try_from(cx.follower.tail().journal.0.saturating_sub(position)).unwrap_or(usize::MAX);
        let (unread, cells) = (unread.min(limits::SCAN_CHUNK), cells(cx));
        self.open.iter().map(|w| w.matching_work(unread, cells)).sum()
    }

    pub(crate) fn on_output(
        &mut self,
        cx: &mut Context,
        foreground: &mut ForegroundState,
        drawing: &mut Drawing,
        at: u64,
        bytes: &[u8],
        news: &[Change],
    ) {
        if at + bytes.len() as u64 > foreground.sampled_at {
            foreground.editor_since = None;
        }
        // The kernel's state from before this output is out of date; the holder sends another one when output pauses.
        let now = cx.now.at;
        (foreground.asks_since, foreground.believed_at) = (None, None);
        foreground.last_output = Some(now);
        let paints = cx.paints();
        if paints || foreground.paint.is_on() {
            foreground.painted_at = Some(now);
        }
        let end = at + bytes.len() as u64;
        let scanner = &cx.timeline.output().scanner;
        let group = || cx.shared.backends.host.process(cx.timeline.shell().pid)?.foreground_group;
        foreground.paint.on_output(end, scanner.modes().alt_screen, scanner.paints_main_from(), group);
        for item in news {
            if let Change::Started(id) = item {
                let start = cx.timeline.log().command(*id).map_or(at, Command::output_from);
                self.open.iter_mut().for_each(|w| w.output_begins(*id, start));
            }
        }
        // Output after a command's end is a prompt or other text, and none of the command's.
        let end_of = |id: u32| cx.timeline.log().command(id).and_then(|c| c.end.as_ref()).map(|end| end.at);
        let ends: Vec<Option<u64>> = self.open.iter().map(|w| w.command.and_then(end_of)).collect();
        let is_painted = paints;
        let needs_screen = |w: &OpenWait| w.watches_screen() || is_painted && w.wants_pattern();
        let rows = self.open.iter().any(needs_screen).then(|| drawing.rows_now(cx));
        let bells = cx.timeline.output().scanner.bells();
        let mut matched: Vec<(usize, MaskedText)> = Vec::new();
        for (i, waiter) in self.open.iter_mut().enumerate() {
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
            let waiter = self.open.swap_remove(i);
            finish(cx, foreground, waiter, EndedBy::Matched, Some(text));
        }
    }

    /// Waits for the first prompt.
    pub(crate) fn ask_prompt(&mut self, cx: &Context, foreground: &ForegroundState, reply: oneshot::Sender<()>) {
        if cx.timeline.shell().prompt_seen || cx.timeline.end().exit.is_some() || foreground.is_heuristic {
            let _ = reply.send(());
        } else {
            self.at_prompt.push(reply);
        }
    }

    /// Begins the wait for a command that was accepted.
    pub(crate) fn begin_of_command(
        &mut self,
        cx: &mut Context,
        foreground: &mut ForegroundState,
        inside: &NestedShell,
        drawing: &mut Drawing,
        id: u32,
        wait: Option<Wait>,
    ) -> Started {
        let finished = wait.map(|wait| {
            let (reply, finished) = oneshot::channel();
            let at = cx.timeline.output().scanner.position();
            let from = cx.timeline.log().command(id).map_or(at, Command::output_from);
            let mut waiter = cx.new_wait(wait, Some(id), from, None, reply);
            let typed = cx.timeline.log().command(id).filter(|command| command.channel == Channel::Line);
            let line = typed.map(|command| (format!("{}\n", command.text), command.accepted_at));
            waiter.leaves_out(line.map(|(line, at)| echo_of(cx, foreground, line.as_bytes(), at)));
            waiter.looks_at_its_command(cx.timeline.cols(), cx.timeline.rows());
            if cx.timeline.log().command(id).is_some_and(Command::is_about_to_begin) {
                waiter.awaits_beginning();
            }
            waiter.end_on_idle_screen();
            // A repeated request may be for a command that has already written output.
            self.begin(cx, foreground, inside, drawing, waiter);
            finished
        });
        Started { id, is_history: false, finished }
    }

    /// Begins a wait, unless it has ended already.
    pub(crate) fn begin(
        &mut self,
        cx: &mut Context,
        foreground: &mut ForegroundState,
        inside: &NestedShell,
        drawing: &mut Drawing,
        waiter: OpenWait,
    ) {
        let Some(mut waiter) = catch_up(cx, foreground, waiter) else { return };
        waiter.count_bells_from(cx.timeline.output().scanner.bells());
        if waiter.watches_screen() {
            let rows = drawing.rows_now(cx);
            waiter.look(&rows, cx.now.at);
        }
        let ended = match waiter.command {
            Some(id) => cx.timeline.log().command(id).is_some_and(|c| c.end.is_some()),
            // Lines that were typed while a command ran may be left to the prompt.
            None => foreground.is_idle(cx) && !cx.timeline.shell().typed_lines.are_open(),
        };
        if cx.exit_told {
            finish(cx, foreground, waiter, EndedBy::Exited, None);
        } else if ended && (waiter.command.is_some() || !waiter.wants_more()) {
            finish(cx, foreground, waiter, EndedBy::Ended, None);
        } else if let Some(ended_by) = foreground.pause(cx, inside).filter(|_| waiter.ends_on_input_wanted()) {
            finish(cx, foreground, waiter, ended_by, None);
        } else {
            // A state that does not end the wait now may do so when the screen has settled.
            foreground.state_pending = true;
            self.open.push(waiter);
        }
    }

    pub(crate) fn finish_where(
        &mut self,
        cx: &mut Context,
        foreground: &ForegroundState,
        which: impl Fn(&OpenWait) -> bool,
        ended_by: EndedBy,
    ) {
        let mut i = 0;
        while i < self.open.len() {
            if which(&self.open[i]) {
                let waiter = self.open.swap_remove(i);
                finish(cx, foreground, waiter, ended_by, None);
            } else {
                i += 1;
            }
        }
    }

    /// Ends the waits without a command whose typed lines have ended.
    pub(crate) fn finish_for_lines(&mut self, cx: &mut Context, foreground: &ForegroundState) {
        // An expected line may not come to be recorded.
        let lines = &cx.timeline.shell().typed_lines;
        let (typed, ended) = (lines.typed(), lines.ended);
        let is_over = |w: &OpenWait| w.command.is_none() && w.lines.min(typed) <= ended;
        self.finish_where(cx, foreground, is_over, EndedBy::Ended);
    }

    /// Ends the waits whose time is over, and forgets those whose callers are gone.
    pub(crate) fn check_waits(&mut self, cx: &mut Context, foreground: &ForegroundState, inside: &NestedShell) {
        let now = cx.now.at;
        self.open.retain(|w| !w.is_abandoned());
        self.notify_overdue(now);
        if inside.is_undecided(cx, foreground) {
            self.open.iter_mut().for_each(|w| w.defer_quiet_timer(now));
        }
        let due: Vec<usize> = (0..self.open.len()).rev().filter(|i| self.open[*i].by_time(now).is_some()).collect();
        for i in due {
            let waiter = self.open.swap_remove(i);
            if let Some((ended_by, matched)) = waiter.by_time(now) {
                let matched = matched.map(|text| cx.shared.folder.masks().text(text));
                finish(cx, foreground, waiter, ended_by, matched);
            }
        }
        if let Some(since) = foreground.asks_since {
            self.finish_where(
                cx,
                foreground,
                |w| w.outlasted_at(since).is_some_and(|at| now >= at),
                EndedBy::InputWanted,
            );
        }
        if let Some(painted) = foreground.screen_painted_at(cx) {
            self.finish_where(cx, foreground, |w| w.still_at(painted).is_some_and(|at| now >= at), EndedBy::Quiet);
        }
    }
}

pub(crate) fn finish(
    cx: &mut Context,
    foreground: &ForegroundState,
    waiter: OpenWait,
    ended_by: EndedBy,
    matched: Option<MaskedText>,
) {
    let handovers = cx.timeline.log().handovers(waiter.from);
    let snapshot = Snapshot { handovers, ..snapshot::take(cx, foreground, waiter.command) };
    let is_for_lines = ended_by == EndedBy::Ended && waiter.command.is_none();
    let line_exit = cx.timeline.shell().typed_lines.exit().filter(|_| is_for_lines);
    let finished = Finished {
        line_exit,
        ended_by,
        from: waiter.from,
        waited: cx.now.at.saturating_duration_since(waiter.began),
        matched,
        accepted_bytes: waiter.accepted_bytes,
        snapshot,
    };
    cx.effects.waited.push(ended_by);
    let _ = waiter.reply.send(finished);
}

/// Feeds a wait from an earlier position with the output since then; for an ended command, only up to its end.
fn catch_up(cx: &mut Context, foreground: &ForegroundState, mut waiter: OpenWait) -> Option<OpenWait> {
    let end =
        waiter.command.and_then(|id| cx.timeline.log().command(id)).and_then(|c| c.end.as_ref()).map(|end| end.at);
    let position = cx.timeline.output().scanner.position();
    let now = end.map_or(position, |end| end.min(position));
    let mut at = waiter.from;
    while waiter.wants_pattern() && !waiter.is_awaiting_beginning() && !waiter.is_abandoned() && at < now {
        // In chunks, like live output: there may be much of it.
        let slice =
            crate::sessions::render::range::read(&cx.shared.reader, at, now.min(at + limits::SCAN_CHUNK as u64))
                .ok()?;
        if let Some(text) = waiter.output(slice.from, &slice.bytes, cx.now.at) {
            finish(cx, foreground, waiter, EndedBy::Matched, Some(text));
            return None;
        }
        at = (slice.from + slice.bytes.len() as u64).max(at + 1);
    }
    Some(waiter)
}

/// The index of this offset in bytes that begin at another offset; their length if it is beyond them.
fn offset_in(bytes: &[u8], begins: u64, offset: u64) -> usize {
    usize::try_from(offset.saturating_sub(begins)).unwrap_or(usize::MAX).min(bytes.len())
}
