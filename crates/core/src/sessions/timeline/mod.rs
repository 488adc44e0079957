//! The timeline of a session: commands, boundaries, directory, exit. Replayed from events and journal, live or later.
//!
//! It does no I/O. The actor of a live session and the reader of an ended one feed it in the same way, so both come to
//! the same result. Events up to a published tail come before the bytes up to it, so that every marker finds its
//! record.

mod clock;
mod command_log;
mod conclusions;
pub(crate) mod handover;
pub(crate) mod judged_end;
pub(crate) mod nested_line;
mod output_scan;
mod parts;
mod shell;
mod signal_log;
mod trouble;

use std::collections::VecDeque;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use journal::{EndReason, Event, Record};
use terminal::{Boundary as Found, Query, Scanner};
use wire::Key;

use crate::action::{Boundary, CommandStatus, INNER_SHELL_ENDED, Limit, WITHOUT_HOOKS};
use crate::limits::ECHO_HELD;
use crate::sessions::timeline::nested_line::{NestedLine, NestedMark};

use clock::Clock;
pub(crate) use clock::{micros, time};
use command_log::CommandLog;
pub(crate) use command_log::{Channel, Command, End};
use handover::kept_text;
use output_scan::OutputScan;
use shell::Shell;
pub(crate) use signal_log::Sent;
use signal_log::SignalLog;
pub(crate) use trouble::Trouble;

/// The key that interrupts.
const INTERRUPT_KEY: u8 = 0x03;
/// The targets of signals in their records, besides single processes.
const FOREGROUND: i32 = 0;
const EVERY_PROCESS: i32 = -1;
/// The error of a command that was interrupted before it began.
const NOT_BEGUN: &str = "interrupted before it began; it was not run";
/// How many of the newest limit hits are kept.
const HITS_KEPT: usize = 64;

/// A limit that was hit while this command ran (0 for none), when first, and how often.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Hit {
    pub(crate) limit: Limit,
    pub(crate) command: u32,
    pub(crate) at_us: u64,
    pub(crate) count: u64,
    /// The hit is recorded as an event, whose time counts.
    pub(crate) is_recorded: bool,
}

/// A change on which the actor has to act.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Change {
    Started(u32),
    Ended(u32),
    /// A command in a nested shell ended; the command that started that shell may continue.
    InsideEnded(u32),
    /// A prompt came that did not end a command of ours, with this `$?`.
    Prompt(i32),
    Query {
        query: Query,
        to: u64,
    },
    /// The holder has recorded a hit that this server did not know.
    LimitHit(Hit),
    /// The shell searches other directories for programs.
    Path,
}

/// The replayed state.
#[derive(Debug)]
pub(crate) struct Timeline {
    output: OutputScan,
    log: CommandLog,
    shell: Shell,
    clock: Clock,
    signals: SignalLog,
    queries: Queries,
    end: SessionEnd,
    trouble: Trouble,
    /// The part of the events that cannot be read.
    damage: Option<String>,
    /// The newest limit hits.
    hits: VecDeque<Hit>,
    holder_pid: u32,
    cols: u16,
    rows: u16,
}

/// The terminal's queries and their replies.
#[derive(Debug, Default)]
pub(crate) struct Queries {
    /// Queries up to this offset were answered.
    pub(crate) answered: u64,
    /// The holder knows that queries up to this offset were answered.
    pub(crate) known_to_holder: u64,
}

/// How the session ended, or why it is being ended.
#[derive(Debug, Default)]
pub(crate) struct SessionEnd {
    /// The wait(2) status, the journal's end, and the time.
    pub(crate) exit: Option<(i32, u64, u64)>,
    /// Number of reports that were not the shell's own.
    pub(crate) dropped_records: u64,
    /// How many processes the shell left, which were ended, and the names of the first of them.
    pub(crate) left: (u32, String),
    /// Why its termination began: the requested signal, or the holder's own reason.
    pub(crate) ending: Option<(EndReason, String)>,
    /// How it ended, as text, if no exit is recorded.
    pub(crate) unrecorded: Option<String>,
}

impl Timeline {
    pub(crate) fn new(first: u64, cols: u16, rows: u16) -> Self {
        Self {
            output: OutputScan::new(first),
            log: CommandLog::new(first),
            shell: Shell::default(),
            clock: Clock::new(first),
            signals: SignalLog::default(),
            queries: Queries::default(),
            end: SessionEnd::default(),
            trouble: Trouble::default(),
            damage: None,
            hits: VecDeque::new(),
            holder_pid: 0,
            cols,
            rows,
        }
    }

    /// Applies one event of the holder.
    pub(crate) fn event(&mut self, event: &Event, news: &mut Vec<Change>) {
        self.clock.last_us = self.clock.last_us.max(event.time_us);
        self.clock.reached = self.clock.reached.max(event.offset.0);
        self.clock.note(event.offset.0, event.time_us);
        let record = event.record();
        if let Some(Record::Accepted { .. } | Record::Typed { .. } | Record::Input { .. } | Record::Signalled { .. }) =
            record
        {
            self.log.typed_at = self.log.typed_at.max(event.offset.0);
        }
        match record {
            Some(Record::Started { holder_pid, shell_pid, cols, rows }) => {
                (self.holder_pid, self.shell.pid, self.clock.started_us) = (holder_pid, shell_pid, event.time_us);
                self.resize(cols, rows);
            }
            Some(Record::Accepted { id, nonce, key, text }) => {
                if let Some((_, time_us)) = self.shell.unclear {
                    self.has_editor(time_us, news);
                }
                self.accepted((id, nonce, key), text, event);
                // The start marker has the nonce that was handed over with the command.
                if let Some(nonce) = terminal::Nonce::parse(nonce.to_string().as_bytes()) {
                    let found = self.output.boundaries.record(terminal::Record::Started { nonce, id });
                    found.into_iter().for_each(|f| self.boundary(f, news));
                }
            }
            Some(Record::Attested { report }) => self.report(report, event, news),
            Some(Record::Resized { cols, rows }) => self.resize(cols, rows),
            Some(Record::Exited { wait_status, end, dropped_records, left, names }) => {
                self.end.dropped_records = dropped_records;
                self.end.left = (left, String::from_utf8_lossy(names).into_owned());
                self.end.exit = Some((wait_status, end.0, event.time_us));
            }
            Some(Record::Trouble { what, text, .. }) => self.trouble.recorded(what, text, event.offset.0),
            Some(Record::Ending { reason, text }) => {
                self.end.ending = Some((reason, String::from_utf8_lossy(text).into_owned()));
            }
            Some(Record::Answered { query }) => {
                self.queries.answered = self.queries.answered.max(query.0);
                self.queries.known_to_holder = self.queries.known_to_holder.max(query.0);
            }
            Some(Record::Limited { limit, command, count }) => {
                if let Some(limit) = Limit::of_code(limit) {
                    let hit = Hit { limit, command, at_us: event.time_us, count, is_recorded: true };
                    if self.hit(hit) {
                        news.push(Change::LimitHit(hit));
                    }
                }
            }
            Some(Record::Signalled { target, signo, errno }) => {
                self.signals.record(target, signo, errno, event.time_us);
                if signo == sys::signal::INT {
                    self.log.interrupt();
                    let shell = i32::try_from(self.shell.pid).unwrap_or(0);
                    let reaches_shell = [FOREGROUND, EVERY_PROCESS, shell].contains(&target);
                    self.shell.typed_lines.interrupted(reaches_shell && errno == 0);
                }
            }
            Some(Record::Typed { id, is_inside, nonce, key, text }) => {
                let inside = is_inside.then(|| NestedLine::known(id, nonce));
                self.line_typed((id, key), text, inside, event);
            }
            Some(Record::Judged { command, status, boundary, is_hookless, end, time_us, why }) => {
                self.shell.is_hookless |= is_hookless;
                news.extend(self.judged(command, judged_end::end((status, boundary), end.0, time_us, why)));
            }
            Some(Record::Input { key, len, ends, bytes, .. }) => {
                self.log.remember_input(key, event.offset.0, len);
                self.shell.typed(&key, ends, bytes, self.log.current.is_some());
                if bytes.contains(&INTERRUPT_KEY) {
                    self.log.interrupt();
                }
            }
            Some(Record::ClockSet { by_us }) => self.log.clock_set(by_us),
            Some(Record::Retained { .. }) | None => {}
        }
    }

    fn resize(&mut self, cols: u16, rows: u16) {
        (self.cols, self.rows) = (cols, rows);
        self.output.scanner.resize(rows);
    }

    /// Records a limit hit, again when it comes back as an event; returns whether it is the first.
    pub(crate) fn hit(&mut self, new: Hit) -> bool {
        if let Some(hit) = self.hits.iter_mut().find(|h| (h.limit, h.command) == (new.limit, new.command)) {
            hit.count = hit.count.max(new.count);
            if !std::mem::replace(&mut hit.is_recorded, new.is_recorded) {
                hit.at_us = new.at_us;
            }
            return false;
        }
        if self.hits.len() == HITS_KEPT {
            self.hits.pop_front();
        }
        self.hits.push_back(new);
        if let Some(command) = self.log.command_mut(new.command) {
            command.limits_hit.push(new.limit);
        }
        true
    }

    fn accepted(&mut self, (id, nonce, key): (u32, u64, Key), text: &[u8], event: &Event) {
        self.log.last_id = self.log.last_id.max(id);
        self.log.current = Some(id);
        (self.shell.still_inside, self.shell.has_typed_line, self.shell.is_hookless) = (false, false, false);
        self.shell.typed_lines.end_all();
        self.shell.typed_lines.forget_exit();
        let text = kept_text(&String::from_utf8_lossy(text));
        self.log.push(Command {
            id,
            key,
            text,
            accepted_us: event.time_us,
            set_by_us: 0,
            accepted_at: event.offset.0,
            background_from: event.offset.0,
            start: None,
            end: None,
            limits_hit: Vec::new(),
            nonce,
            channel: Channel::Hooks,
        });
    }

    /// A command's line was typed, into the session's own program or into a nested shell.
    fn line_typed(&mut self, (id, key): (u32, Key), text: &[u8], inside: Option<NestedLine>, event: &Event) {
        self.log.last_id = self.log.last_id.max(id);
        self.log.push(Command {
            id,
            key,
            text: kept_text(&String::from_utf8_lossy(text)),
            accepted_us: event.time_us,
            set_by_us: 0,
            accepted_at: event.offset.0,
            background_from: event.offset.0,
            start: None,
            end: None,
            limits_hit: Vec::new(),
            nonce: inside.as_ref().map_or(0, |inside| inside.nonce),
            channel: if inside.is_some() { Channel::NestedShell } else { Channel::Line },
        });
        match inside {
            Some(inside) => self.log.inside = Some(inside),
            None => {
                (self.log.current, self.shell.is_hookless) = (Some(id), true);
                self.shell.typed_lines.end_all();
            }
        }
    }

    /// Applies a server's judgement that this command has ended; the server that made it has applied it already.
    fn judged(&mut self, id: u32, end: End) -> Option<Change> {
        if end.boundary == Boundary::Nonce {
            // The time of an end whose place and code a marker in the output tells.
            self.log.set_end_time(id, end.time_us);
            return None;
        }
        let command = self.log.command_mut(id).filter(|c| c.end.is_none())?;
        let (at, channel) = (end.at, command.channel);
        command.end = Some(end);
        if channel == Channel::NestedShell {
            self.log.inside.take_if(|inside| inside.id == id);
            return Some(Change::InsideEnded(id));
        }
        if self.log.current == Some(id) {
            (self.log.current, self.log.background_from) = (None, at);
            self.shell.typed_lines.end_unreported(channel);
        }
        Some(Change::Ended(id))
    }

    /// Applies a marker of the nested command, if it is one.
    fn on_nested_mark(
        &mut self,
        kind: terminal::MarkerKind,
        nonce: &terminal::Nonce,
        from: u64,
        to: u64,
    ) -> Option<Change> {
        let inside = self.log.inside.as_mut()?;
        let (mark, id) = (inside.take_mark(kind, nonce)?, inside.id);
        match mark {
            NestedMark::Begins => {
                self.output.marked(from, to);
                self.log.command_mut(id)?.start = Some(to);
                Some(Change::Started(id))
            }
            NestedMark::Ends(status) => {
                (self.log.inside, self.log.nested_end_at) = (None, to);
                self.output.marked(from, to);
                // The time was noted when the bytes were read.
                let read_us = self.clock.times.back().map_or(self.clock.last_us, |(_, us)| *us);
                let time_us = self.log.end_time(id, read_us);
                let command = self.log.command_mut(id)?;
                command.end = Some(End {
                    at: from.max(command.output_from()),
                    time_us,
                    status: CommandStatus::Completed,
                    exit: Some(status),
                    pipestatus: vec![status],
                    cwd: None,
                    error: None,
                    boundary: Boundary::Nonce,
                });
                Some(Change::InsideEnded(id))
            }
        }
    }

    fn report(&mut self, report: &[u8], event: &Event, news: &mut Vec<Change>) {
        if report.starts_with(b"R;") {
            // The shell sends its reports in order. The output of an earlier one may still be on its way.
            let current = self.log.current;
            if self.output.boundaries.waiting_ends().any(|id| current.is_none_or(|current| id == current)) {
                self.shell.hook_reads = true;
            } else if self.log.awaits_start().is_some() && self.output.scanner.position() < event.offset.0 {
                self.shell.unclear = Some((event.offset.0, event.time_us));
            } else {
                self.has_editor(event.time_us, news);
            }
            return;
        }
        let Some(record) = terminal::parse_record(report) else { return };
        match &record {
            terminal::Record::Path(path) => {
                self.shell.path = Some(path.clone());
                news.push(Change::Path);
            }
            terminal::Record::Ended { end, .. } => {
                self.shell.hook_reads = false;
                self.shell.typed_lines.reported();
                self.log.ended_us.insert(end.id, event.time_us);
            }
            terminal::Record::Started { .. } | terminal::Record::Prompt { .. } => {}
        }
        if let Some(found) = self.output.boundaries.record(record) {
            self.boundary(found, news);
        }
    }

    /// The shell's editor reads although no command has ended: a command that has begun uses it, or a person has an
    /// unfinished line.
    fn has_editor(&mut self, time_us: u64, news: &mut Vec<Change>) {
        self.shell.unclear = None;
        let runs = self.log.current.and_then(|id| self.log.command(id)).is_some_and(|c| c.start.is_some());
        // Before the first prompt, a start-up file uses the editor.
        self.shell.still_inside = runs || !self.shell.prompt_seen;
        if !self.shell.still_inside {
            self.shell.has_typed_line = true;
            // The shell says that it has not taken the command.
            let why = if self.log.current == Some(self.log.interrupted) {
                NOT_BEGUN
            } else {
                "not run: there is an unfinished line at the prompt (C-c clears it), or a hook of the prompt asks something \
                 (answer it with send_input_to_terminal)"
            };
            if let Some(id) = self.end_current(CommandStatus::Failed, why, Boundary::Attested, time_us) {
                news.push(Change::Ended(id));
            }
        }
    }

    /// Applies the next bytes; all bytes before them were applied already.
    pub(crate) fn bytes(&mut self, bytes: &[u8], news: &mut Vec<Change>) {
        self.output.note_newest(bytes);
        let mut found = Vec::new();
        self.output.scanner.feed(bytes, &mut |f| found.push(f));
        for f in found {
            match f {
                terminal::ScanEvent::Marker { kind, nonce, from, to } => {
                    news.extend(self.on_nested_mark(kind, &nonce, from, to));
                    for boundary in self.output.boundaries.marker(kind, &nonce, from, to) {
                        self.boundary(boundary, news);
                    }
                }
                terminal::ScanEvent::Query { query, to, .. } => news.push(Change::Query { query, to }),
            }
        }
        if let Some((_, time_us)) = self.shell.unclear.filter(|(at, _)| *at <= self.output.scanner.position()) {
            self.has_editor(time_us, news);
        }
    }

    /// The offset up to which viewers may read: not a hand-over that is not complete, unless that takes too long.
    pub(crate) fn shown_to(&self, now_us: u64) -> u64 {
        let held_from = self.output.scanner.held_from();
        let is_held = self.handover_until_us(now_us).is_some();
        let begins = self.log.being_handed_over().filter(|_| is_held).map(|command| command.accepted_at);
        begins.map_or(held_from, |at| held_from.min(at))
    }

    /// Until when an incomplete hand-over is held back, if it is: one of a time to come was accepted before the clock was set.
    pub(crate) fn handover_until_us(&self, now_us: u64) -> Option<u64> {
        let held_us = u64::try_from(ECHO_HELD.as_micros()).unwrap_or(u64::MAX);
        let held = self.log.being_handed_over().map(|command| command.accepted_us..command.accepted_us + held_us);
        held.filter(|held| held.contains(&now_us)).map(|held| held.end)
    }

    /// Retention has removed output that was not scanned yet.
    pub(crate) fn skip_to(&mut self, offset: u64) {
        self.output.newest.clear();
        let mut fresh = Scanner::new(offset);
        std::mem::swap(&mut self.output.scanner, &mut fresh);
        self.output.whole_from = offset;
        self.output.boundaries.gap(offset);
    }

    /// Ended commands whose records came but whose markers have not.
    pub(crate) fn ends_without_marker(&self) -> Vec<u32> {
        self.output.boundaries.waiting_ends().collect()
    }

    /// The marker will not come any more: the command ends at `at`.
    pub(crate) fn expire(&mut self, id: u32, at: u64, news: &mut Vec<Change>) {
        if let Some(boundary) = self.output.boundaries.expire(id, at) {
            self.boundary(boundary, news);
        }
    }

    fn boundary(&mut self, found: Found, news: &mut Vec<Change>) {
        if let Some(marker) = found.marker() {
            self.output.marked(marker.start, marker.end);
        }
        match found {
            Found::Prompt { .. } => {}
            Found::Started { id, at, .. } => {
                let background_from = self.log.background_from;
                if let Some(command) = self.log.command_mut(id) {
                    command.start = Some(at);
                    command.background_from = background_from.min(command.accepted_at);
                    self.shell.still_inside |= self.shell.unclear.take().is_some();
                    news.push(Change::Started(id));
                }
            }
            Found::Ended { end, output_end, at, marker } => {
                (self.shell.prompt_seen, self.shell.has_errexit) = (true, end.flags.errexit);
                // An editor that was reported behind this end belongs to a hook of the prompt.
                let is_a_hooks = std::mem::take(&mut self.shell.hook_reads);
                let lost = end.flags.hooks_lost && end.id == 0;
                let is_of_a_line = end.id == 0 && !(lost && self.log.current.is_some());
                self.shell.reports_an_end(is_of_a_line.then_some(end.exit), is_a_hooks);
                self.shell.unclear = None;
                self.shell.still_inside &= !is_a_hooks;
                self.log.background_from = at;
                let cwd = PathBuf::from(std::ffi::OsString::from_vec(end.cwd));
                self.shell.cwd = Some(cwd.as_path().into());
                let time_us = self.log.ended_us.remove(&end.id).unwrap_or(self.clock.last_us);
                // A nested shell cannot outlive the program that started it.
                let why = format!("{INNER_SHELL_ENDED}: exit {}", end.exit);
                if let Some(inside) = self.give_up_inside(CommandStatus::Completed, &why, Boundary::Attested, time_us) {
                    if let Some(inside) = self.log.command_mut(inside).and_then(|c| c.end.as_mut()) {
                        inside.at = inside.at.min(output_end);
                    }
                    news.push(Change::InsideEnded(inside));
                }
                self.shell.is_hookless = false;
                self.end_typed(output_end, time_us, news);
                let id = if lost { self.log.current.unwrap_or(0) } else { end.id };
                if self.log.current == Some(id) {
                    self.log.current = None;
                }
                let is_interrupted = self.log.interrupted == id;
                let Some(command) = self.log.command_mut(id).filter(|c| c.end.is_none()) else {
                    news.push(Change::Prompt(end.exit));
                    return;
                };
                // The marker of a beginning is printed before anything of the text runs; only an end with it has a code of its own.
                let has_begun = command.start.is_some();
                let would_show = marker.is_some() && self.output.whole_from <= command.accepted_at;
                if would_show && command.channel == Channel::Hooks && !end.flags.not_run_to_end && !end.flags.incomplete
                {
                    self.shell.hides_beginnings = !has_begun;
                }
                let is_cut_short = end.flags.not_run_to_end && !end.flags.incomplete;
                let must_show = end.flags.in_band || is_cut_short && would_show && !self.shell.hides_beginnings;
                // Only the prompt came back, and the status is of what ran before.
                let was_taken = !lost && !end.flags.not_begun && (has_begun || !must_show);
                let (status, error) = if !was_taken {
                    let why = if end.flags.not_begun || end.flags.in_band && is_interrupted {
                        NOT_BEGUN
                    } else if lost || end.flags.in_band {
                        "the shell did not take the command; it was not run"
                    } else {
                        "interrupted before its shell reported that it began; whether it ran is not known"
                    };
                    (CommandStatus::Failed, Some(why.to_owned()))
                } else if end.flags.incomplete {
                    // Shells that read a text while they run it have run the lines before the error; they parse a line
                    // before they run anything of it.
                    let has_lines = command.text.trim_end().contains('\n');
                    let has_run = end.flags.not_run_to_end && has_lines;
                    let ran = if has_run { "the shell ran the lines before it" } else { "it was not run" };
                    let why = format!("incomplete command (unfinished quote, here-document or compound); {ran}");
                    (CommandStatus::Failed, Some(why))
                } else {
                    (CommandStatus::Completed, None)
                };
                command.end = Some(End {
                    at: output_end.max(command.output_from()),
                    time_us,
                    status,
                    exit: was_taken.then_some(end.exit),
                    // bash leaves PIPESTATUS unchanged after anything but a pipeline (`sleep 1 &`, a function
                    // definition): a single element that differs is an earlier command's.
                    pipestatus: if end.pipestatus.len() == 1 { vec![end.exit] } else { end.pipestatus },
                    cwd: Some(cwd),
                    error,
                    boundary: if end.flags.in_band { Boundary::Nonce } else { Boundary::Attested },
                });
                news.push(Change::Ended(id));
            }
        }
    }

    /// The hooks are back and reported the end of a line that was typed without them.
    fn end_typed(&mut self, at: u64, time_us: u64, news: &mut Vec<Change>) {
        let Some(id) = self.log.current_command().filter(|c| c.channel == Channel::Line).map(|c| c.id) else { return };
        self.end_current(CommandStatus::Completed, WITHOUT_HOOKS, Boundary::Heuristic, time_us);
        if let Some(command) = self.log.command_mut(id) {
            let from = command.output_from();
            command.end.iter_mut().for_each(|end| end.at = at.max(from));
        }
        news.push(Change::Ended(id));
    }

    /// The nested command ended without a marker of its own.
    pub(crate) fn give_up_inside(
        &mut self,
        status: CommandStatus,
        error: &str,
        boundary: Boundary,
        time_us: u64,
    ) -> Option<u32> {
        let id = self.log.inside.take()?.id;
        let at = self.output.scanner.position();
        let command = self.log.command_mut(id)?;
        let at = at.max(command.output_from());
        let (cwd, error) = (None, Some(error.to_owned()));
        command.end = Some(End { at, time_us, status, exit: None, pipestatus: Vec::new(), cwd, error, boundary });
        Some(id)
    }

    /// Ends the current command without a report.
    pub(crate) fn end_current(
        &mut self,
        status: CommandStatus,
        error: &str,
        boundary: Boundary,
        now_us: u64,
    ) -> Option<u32> {
        let id = self.log.current.take()?;
        let at = self.output.scanner.position();
        self.log.background_from = at;
        let command = self.log.command_mut(id)?;
        self.shell.typed_lines.end_unreported(command.channel);
        command.end = Some(End {
            at: at.max(command.output_from()),
            time_us: now_us,
            status,
            exit: None,
            pipestatus: Vec::new(),
            cwd: None,
            error: Some(error.to_owned()),
            boundary,
        });
        Some(id)
    }
}
