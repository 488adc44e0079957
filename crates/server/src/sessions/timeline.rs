//! The timeline of a session: commands, boundaries, directory, exit. Replayed from events and journal, live or later.
//!
//! It does no I/O. The actor of a live session and the reader of an ended one feed it in the same way, so both come to
//! the same result. Events up to a published tail come before the bytes up to it, so that every marker finds its
//! record.

use std::collections::{HashMap, VecDeque};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use journal::{EndReason, Event, Record};
use terminal::{Boundaries, Boundary as Found, Query, Scanner};
use wire::Key;

use super::handover_echo::{self, HandoverEcho};
use super::nested_shell::{NestedCommand, NestedMark};
use super::processes::Identity;
use super::trouble::Trouble;
use crate::action::{Boundary, CommandStatus, Limit, Tools};
use crate::limits::{COMMANDS_IN_MEMORY, ECHO_HELD};

/// The error of a typed command.
pub(crate) const WITHOUT_HOOKS: &str = "typed into a shell without ptyd's hooks, so its exit code is not known";
/// Characters of a command's text kept in memory; the events have the whole text.
const TEXT_CHARS_KEPT: usize = 4096;
/// Attested markers kept for the stream view; an older one that stays in the stream does no harm to a terminal.
const MARKERS_KEPT: usize = 512;
/// The most that an editor paints for a line of ours, with room for a prompt of many rows.
const ECHO_BYTES_MAX: usize = 16 << 10;
/// How many of the newest limit hits are kept.
const HITS_KEPT: usize = 64;
/// How many keys of typed input are kept: as many as the holder keeps.
const KEYS_KEPT: usize = 256;
/// How many of the newest signals are kept.
const SIGNALS_KEPT: usize = 64;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Command {
    pub(crate) id: u32,
    pub(crate) key: Key,
    pub(crate) text: String,
    pub(crate) accepted_us: u64,
    /// The journal's end when it was accepted.
    pub(crate) accepted_at: u64,
    /// The first byte of its output, once its marker came.
    pub(crate) start: Option<u64>,
    pub(crate) end: Option<End>,
    /// The limits that it hit.
    pub(crate) limits_hit: Vec<Limit>,
    /// The ranges where the editor painted the loader's line instead of the command.
    pub(crate) echoes: Vec<HandoverEcho>,
    pub(crate) channel: Channel,
}

/// How a command was handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Channel {
    /// By the shell's integration, which reports its beginning and its end.
    Hooks,
    /// Typed as a line into a program without our hooks; the kernel's foreground state shows its end.
    Line,
    /// Typed as a line into a nested shell; markers in the line report its beginning and its end.
    NestedShell,
}

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

/// A signal that was sent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sent {
    /// 0 for the foreground, -1 for the session, else a process.
    pub(crate) target: i32,
    pub(crate) signo: i32,
    pub(crate) errno: i32,
    pub(crate) at_us: u64,
    /// The processes that received it, with names, if this server sent it.
    pub(crate) receivers: Vec<(Identity, String)>,
}

/// How and where a command ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct End {
    pub(crate) at: u64,
    pub(crate) time_us: u64,
    pub(crate) status: CommandStatus,
    pub(crate) exit: Option<i32>,
    pub(crate) pipestatus: Vec<i32>,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) error: Option<String>,
    pub(crate) boundary: Boundary,
}

impl Command {
    /// Whether it was accepted and its output has not begun. The output of a command typed as a line begins with its
    /// echo.
    pub(crate) fn is_about_to_begin(&self) -> bool {
        self.channel != Channel::Line && self.start.is_none() && self.end.is_none()
    }

    /// Where its output begins, as far as known.
    pub(crate) fn output_from(&self) -> u64 {
        self.start.unwrap_or(self.accepted_at)
    }
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
    /// The holder hit the limit that it enforces.
    Held(Hit),
}

/// The replayed state.
#[derive(Debug)]
pub(crate) struct Timeline {
    pub(crate) scanner: Scanner,
    boundaries: Boundaries,
    pub(crate) commands: VecDeque<Command>,
    /// The command that was accepted and has not ended.
    pub(crate) current: Option<u32>,
    /// The command that was typed into a nested shell and has not ended.
    pub(crate) inside: Option<NestedCommand>,
    pub(crate) last_id: u32,
    /// Times of `D` records whose marker has not come yet, by command id.
    ended_us: HashMap<u32, u64>,
    pub(crate) holder_pid: u32,
    pub(crate) shell_pid: u32,
    pub(crate) started_us: u64,
    pub(crate) cols: u16,
    pub(crate) rows: u16,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) path: Option<Vec<u8>>,
    /// The toolchains on that path, looked up when it changes.
    pub(crate) tools: Tools,
    pub(crate) prompt_seen: bool,
    /// The wait(2) status, the journal's end, and the time.
    pub(crate) exit: Option<(i32, u64, u64)>,
    /// Number of reports that were not the shell's own.
    pub(crate) dropped_records: u64,
    /// Why its termination began: the requested signal, or the holder's own reason.
    pub(crate) ending: Option<(EndReason, String)>,
    /// How it ended, as text, if no exit is recorded.
    pub(crate) unrecorded_end: Option<String>,
    pub(crate) trouble: Trouble,
    /// The journal's length when the newest event was written.
    pub(crate) reached: u64,
    /// The part of the events that cannot be read.
    pub(crate) damage: Option<String>,
    pub(crate) last_us: u64,
    pub(crate) markers: VecDeque<(u64, u64)>,
    /// Offsets and times of events, thinned out, to find a position by time.
    pub(crate) times: VecDeque<(u64, u64)>,
    /// The newest `R` report: the shell's editor is in use *inside* a command.
    pub(crate) still_inside: bool,
    /// Offset and time of an `R` report; output up to there will show whether the command had begun.
    unclear: Option<(u64, u64)>,
    /// A line typed at the prompt has not ended: it runs or is unfinished.
    pub(crate) has_typed_line: bool,
    /// The newest input did not end its line.
    pub(crate) line_is_begun: bool,
    /// The keys of typed input, each with the output's end at that time and the number of bytes, also from before this
    /// server.
    input_keys: VecDeque<(Key, u64, u32)>,
    /// The shell has lost its hooks, and commands are typed into it.
    pub(crate) is_hookless: bool,
    /// Queries up to this offset were answered.
    pub(crate) answered: u64,
    /// The holder knows that queries up to this offset were answered.
    pub(crate) answer_heard: u64,
    /// The offset of the last boundary: output from here on is background output while no command runs.
    pub(crate) background_from: u64,
    /// The newest limit hits.
    pub(crate) hits: VecDeque<Hit>,
    /// The output since a command was accepted whose own output has not begun, and its offset.
    echo: (u64, Vec<u8>),
    /// The newest signals.
    pub(crate) signals: VecDeque<Sent>,
    /// Signals that the holder has not recorded yet.
    pub(crate) signals_on_their_way: VecDeque<Sent>,
}

impl Timeline {
    pub(crate) fn new(first: u64, cols: u16, rows: u16) -> Self {
        Self {
            scanner: Scanner::new(first),
            boundaries: Boundaries::new(),
            commands: VecDeque::new(),
            current: None,
            inside: None,
            last_id: 0,
            ended_us: HashMap::new(),
            holder_pid: 0,
            shell_pid: 0,
            started_us: 0,
            cols,
            rows,
            cwd: None,
            path: None,
            tools: Tools::default(),
            prompt_seen: false,
            exit: None,
            dropped_records: 0,
            ending: None,
            unrecorded_end: None,
            trouble: Trouble::default(),
            reached: first,
            damage: None,
            last_us: 0,
            markers: VecDeque::new(),
            times: VecDeque::new(),
            still_inside: false,
            unclear: None,
            has_typed_line: false,
            line_is_begun: false,
            input_keys: VecDeque::new(),
            is_hookless: false,
            answered: 0,
            answer_heard: 0,
            background_from: first,
            hits: VecDeque::new(),
            echo: (first, Vec::new()),
            signals: VecDeque::new(),
            signals_on_their_way: VecDeque::new(),
        }
    }

    /// Applies one event of the holder.
    pub(crate) fn event(&mut self, event: &Event, news: &mut Vec<Change>) {
        self.last_us = self.last_us.max(event.time_us);
        self.reached = self.reached.max(event.offset.0);
        self.note_time(event.offset.0, event.time_us);
        match event.record() {
            Some(Record::Started { holder_pid, shell_pid, cols, rows }) => {
                (self.holder_pid, self.shell_pid, self.started_us) = (holder_pid, shell_pid, event.time_us);
                self.resize(cols, rows);
            }
            Some(Record::Accepted { id, nonce, key, text }) => {
                if let Some((_, time_us)) = self.unclear {
                    self.has_editor(time_us, news);
                }
                self.accepted(id, key, text, event);
                // The start marker has the nonce that was handed over with the command.
                if let Some(nonce) = terminal::Nonce::parse(nonce.to_string().as_bytes()) {
                    let found = self.boundaries.record(terminal::Record::Started { nonce, id });
                    found.into_iter().for_each(|f| self.boundary(f, news));
                }
            }
            Some(Record::Attested { report }) => self.report(report, event, news),
            Some(Record::Resized { cols, rows }) => self.resize(cols, rows),
            Some(Record::Exited { wait_status, end, dropped_records }) => {
                self.dropped_records = dropped_records;
                self.exit = Some((wait_status, end.0, event.time_us));
            }
            Some(Record::Trouble { what, text, .. }) => self.trouble.recorded(what, text, event.offset.0),
            Some(Record::Ending { reason, text }) => {
                self.ending = Some((reason, String::from_utf8_lossy(text).into_owned()));
            }
            Some(Record::Answered { query }) => {
                self.answered = self.answered.max(query.0);
                self.answer_heard = self.answer_heard.max(query.0);
            }
            Some(Record::Limited { limit, command, count }) => {
                if let Some(limit) = Limit::of_code(limit) {
                    let hit = Hit { limit, command, at_us: event.time_us, count, is_recorded: true };
                    if self.hit(hit) && limit == Limit::OutputMbPerSecond {
                        news.push(Change::Held(hit));
                    }
                }
            }
            Some(Record::Signalled { target, signo, errno }) => {
                if self.signals.len() == SIGNALS_KEPT {
                    self.signals.pop_front();
                }
                let expected = self.signals_on_their_way.iter().position(|s| (s.target, s.signo) == (target, signo));
                let receivers = expected.and_then(|at| self.signals_on_their_way.remove(at)).map(|s| s.receivers);
                let receivers = receivers.unwrap_or_default();
                self.signals.push_back(Sent { target, signo, errno, at_us: event.time_us, receivers });
            }
            Some(Record::Typed { id, is_inside, nonce, key, text }) => {
                let inside = is_inside.then(|| NestedCommand::known(id, nonce));
                let text = String::from_utf8_lossy(text);
                self.line_typed((id, key, &text), inside, event.time_us, event.offset.0);
            }
            Some(Record::Judged { command, status, boundary, is_hookless, end, time_us, why }) => {
                self.is_hookless |= is_hookless;
                news.extend(self.judged(command, super::judged_end::end((status, boundary), end.0, time_us, why)));
            }
            Some(Record::Input { key, len, bytes, .. }) => {
                if key != wire::NO_KEY {
                    if self.input_keys.len() == KEYS_KEPT {
                        self.input_keys.pop_front();
                    }
                    self.input_keys.push_back((key, event.offset.0, len));
                }
                self.typed(bytes);
            }
            Some(Record::Retained { .. }) | None => {}
        }
    }

    /// Applies typed input.
    pub(crate) fn typed(&mut self, bytes: &[u8]) {
        // Input for a program may be left to the prompt; then the shell reports that line's end, too.
        let is_at_prompt = self.prompt_seen && self.current.is_none();
        self.has_typed_line |= is_at_prompt && bytes.iter().any(|b| wire::ENDS_LINE.contains(b));
        // C-u, C-z and C-\ also discard the line.
        let ends = |b: &u8| wire::ENDS_LINE.contains(b) || [0x15, 0x1a, 0x1c].contains(b);
        self.line_is_begun = bytes.last().map_or(self.line_is_begun, |last| !ends(last));
    }

    fn resize(&mut self, cols: u16, rows: u16) {
        (self.cols, self.rows) = (cols, rows);
        self.scanner.resize(rows);
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
        if let Some(command) = self.command_mut(new.command) {
            command.limits_hit.push(new.limit);
        }
        true
    }

    fn accepted(&mut self, id: u32, key: Key, text: &[u8], event: &Event) {
        self.last_id = self.last_id.max(id);
        self.current = Some(id);
        (self.still_inside, self.has_typed_line, self.is_hookless) = (false, false, false);
        let text = kept_text(&String::from_utf8_lossy(text));
        self.push(Command {
            id,
            key,
            text,
            accepted_us: event.time_us,
            accepted_at: event.offset.0,
            start: None,
            end: None,
            limits_hit: Vec::new(),
            echoes: Vec::new(),
            channel: Channel::Hooks,
        });
        self.echo = (event.offset.0, Vec::new());
    }

    /// Adds a command, and drops the oldest ended one if there are too many.
    pub(crate) fn push(&mut self, command: Command) {
        if self.commands.len() >= COMMANDS_IN_MEMORY {
            let ended = self.commands.iter().position(|c| c.end.is_some());
            self.commands.remove(ended.unwrap_or(0));
        }
        self.commands.push_back(command);
    }

    /// The newest command that has not ended.
    pub(crate) fn newest_running(&self) -> Option<u32> {
        self.inside.as_ref().map(|inside| inside.id).or(self.current)
    }

    /// An id for a typed command of a holder that does not number them. The oldest holders do not record it either, and a
    /// later server must not reuse it: ids grow at least as fast as hundredths of a second pass.
    pub(crate) fn unused_id(&self, now_us: u64) -> u32 {
        const FIRST: u32 = 1_000_001;
        let age = u32::try_from(now_us.saturating_sub(self.started_us) / 10_000).unwrap_or(u32::MAX / 2);
        (self.last_id + 1).max(FIRST + age)
    }

    /// A command's line was typed, into the session's own program or into a nested shell.
    pub(crate) fn line_typed(
        &mut self,
        (id, key, text): (u32, Key, &str),
        inside: Option<NestedCommand>,
        now_us: u64,
        at: u64,
    ) {
        self.last_id = self.last_id.max(id);
        self.push(Command {
            id,
            key,
            text: kept_text(text),
            accepted_us: now_us,
            accepted_at: at,
            start: None,
            end: None,
            limits_hit: Vec::new(),
            echoes: Vec::new(),
            channel: if inside.is_some() { Channel::NestedShell } else { Channel::Line },
        });
        match inside {
            Some(inside) => self.inside = Some(inside),
            None => (self.current, self.is_hookless) = (Some(id), true),
        }
    }

    /// The output's end when the input with this key was typed.
    pub(crate) fn typed_from(&self, key: &Key) -> Option<u64> {
        self.input_keys.iter().rev().find(|(of, ..)| of == key).map(|(_, at, _)| *at)
    }

    /// The output's end when the input with this key was typed, and its length; an error if the key was used for
    /// another request.
    pub(crate) fn typed_with(&self, key: &Key) -> Option<Result<(u64, u32), ()>> {
        let (known, at, len) = self.input_keys.iter().rev().find(|(of, ..)| wire::is_same_name(of, key))?;
        Some(if known == key { Ok((*at, *len)) } else { Err(()) })
    }

    /// Applies a server's judgement that this command has ended; the server that made it has applied it already.
    fn judged(&mut self, id: u32, end: End) -> Option<Change> {
        let command = self.command_mut(id).filter(|c| c.end.is_none())?;
        let (at, channel) = (end.at, command.channel);
        command.end = Some(end);
        if channel == Channel::NestedShell {
            self.inside.take_if(|inside| inside.id == id);
            return Some(Change::InsideEnded(id));
        }
        if self.current == Some(id) {
            (self.current, self.background_from) = (None, at);
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
        let inside = self.inside.as_mut()?;
        let (heard, id) = (inside.hears(kind, nonce)?, inside.id);
        // The time was noted when the bytes were read.
        let now_us = self.times.back().map_or(self.last_us, |(_, us)| *us);
        match heard {
            NestedMark::Begins => {
                inside.has_begun = true;
                self.marked(from, to);
                self.command_mut(id)?.start = Some(to);
                Some(Change::Started(id))
            }
            NestedMark::Ends(status) => {
                self.inside = None;
                self.marked(from, to);
                let command = self.command_mut(id)?;
                command.end = Some(End {
                    at: from.max(command.output_from()),
                    time_us: now_us,
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

    /// The nested command ended without a marker of its own.
    pub(crate) fn give_up_inside(
        &mut self,
        status: CommandStatus,
        error: &str,
        boundary: Boundary,
        time_us: u64,
    ) -> Option<u32> {
        let id = self.inside.take()?.id;
        let at = self.scanner.position();
        let command = self.command_mut(id)?;
        let at = at.max(command.output_from());
        let (cwd, error) = (None, Some(error.to_owned()));
        command.end = Some(End { at, time_us, status, exit: None, pipestatus: Vec::new(), cwd, error, boundary });
        Some(id)
    }

    /// Remembers an attested marker: views leave it out.
    fn marked(&mut self, from: u64, to: u64) {
        if self.markers.len() == MARKERS_KEPT {
            self.markers.pop_front();
        }
        self.markers.push_back((from, to));
    }

    fn report(&mut self, report: &[u8], event: &Event, news: &mut Vec<Change>) {
        if report.starts_with(b"R;") {
            if self.awaits_start().is_some() && self.scanner.position() < event.offset.0 {
                self.unclear = Some((event.offset.0, event.time_us));
            } else {
                self.has_editor(event.time_us, news);
            }
            return;
        }
        let Some(record) = terminal::parse_record(report) else { return };
        match &record {
            terminal::Record::Path(path) => {
                self.tools = super::views::tools_on(path);
                self.path = Some(path.clone());
            }
            terminal::Record::Ended { end, .. } => {
                self.ended_us.insert(end.id, event.time_us);
            }
            terminal::Record::Started { .. } | terminal::Record::Prompt { .. } => {}
        }
        if let Some(found) = self.boundaries.record(record) {
            self.boundary(found, news);
        }
    }

    /// The shell's editor reads although no command has ended: a command that has begun uses it, or a person has an
    /// unfinished line.
    fn has_editor(&mut self, time_us: u64, news: &mut Vec<Change>) {
        self.unclear = None;
        let runs = self.current.and_then(|id| self.command(id)).is_some_and(|c| c.start.is_some());
        // Before the first prompt, a start-up file uses the editor.
        self.still_inside = runs || !self.prompt_seen;
        if !self.still_inside {
            self.has_typed_line = true;
            let why = "not run: a line that somebody has begun to type at the prompt is unfinished; C-c clears it";
            if let Some(id) = self.end_current(CommandStatus::Failed, why, Boundary::Attested, time_us) {
                news.push(Change::Ended(id));
            }
        }
    }

    /// Applies the next bytes; all bytes before them were applied already.
    pub(crate) fn bytes(&mut self, bytes: &[u8], news: &mut Vec<Change>) {
        let mut found = Vec::new();
        if self.awaits_start().is_some() {
            self.keep_echo(bytes);
        }
        self.scanner.feed(bytes, &mut |f| found.push(f));
        for f in found {
            match f {
                terminal::Found::Marker { kind, nonce, from, to } => {
                    news.extend(self.on_nested_mark(kind, &nonce, from, to));
                    for boundary in self.boundaries.marker(kind, &nonce, from, to) {
                        self.boundary(boundary, news);
                    }
                }
                terminal::Found::Query { query, to, .. } => news.push(Change::Query { query, to }),
            }
        }
        if let Some((_, time_us)) = self.unclear.filter(|(at, _)| *at <= self.scanner.position()) {
            self.has_editor(time_us, news);
        }
    }

    /// The accepted command whose output has not begun.
    fn awaits_start(&self) -> Option<&Command> {
        self.current_command().filter(|c| c.start.is_none() && c.channel == Channel::Hooks)
    }

    /// Keeps bytes that may contain the loader's line.
    fn keep_echo(&mut self, bytes: &[u8]) {
        let (at, (from, kept)) = (self.scanner.position(), &mut self.echo);
        // Only the editor's line is expected; more bytes are background output.
        if at == *from + kept.len() as u64 && kept.len() < ECHO_BYTES_MAX {
            kept.extend_from_slice(bytes);
        } else if at < *from && at + bytes.len() as u64 > *from {
            kept.extend_from_slice(&bytes[usize::try_from(*from - at).unwrap_or(bytes.len())..]);
        }
    }

    /// The offset up to which viewers may read: not a possible loader's line before it is recognised, unless that takes
    /// too long.
    pub(crate) fn shown_to(&self, now_us: u64) -> u64 {
        let held_from = self.scanner.held_from();
        self.echo_until_us().filter(|until| now_us < *until).map_or(held_from, |_| held_from.min(self.echo.0))
    }

    /// Until when a possible loader's line is held back.
    pub(crate) fn echo_until_us(&self) -> Option<u64> {
        let held_us = u64::try_from(ECHO_HELD.as_micros()).unwrap_or(u64::MAX);
        self.awaits_start().map(|command| command.accepted_us + held_us)
    }

    /// The known loader's lines, in order.
    pub(crate) fn echoes(&self) -> impl Iterator<Item = &HandoverEcho> {
        self.commands.iter().flat_map(|command| &command.echoes)
    }

    /// Retention has removed output that was not scanned yet.
    pub(crate) fn skip_to(&mut self, offset: u64, news: &mut Vec<Change>) {
        let mut fresh = Scanner::new(offset);
        std::mem::swap(&mut self.scanner, &mut fresh);
        let waiting: Vec<u32> = self.boundaries.waiting_ends().collect();
        for id in waiting {
            self.expire(id, offset, news);
        }
    }

    /// Ended commands whose records came but whose markers have not.
    pub(crate) fn ends_without_marker(&self) -> Vec<u32> {
        self.boundaries.waiting_ends().collect()
    }

    /// The marker will not come any more: the command ends at `at`.
    pub(crate) fn expire(&mut self, id: u32, at: u64, news: &mut Vec<Change>) {
        if let Some(boundary) = self.boundaries.expire(id, at) {
            self.boundary(boundary, news);
        }
    }

    fn boundary(&mut self, found: Found, news: &mut Vec<Change>) {
        if let Some(marker) = found.marker() {
            self.marked(marker.start, marker.end);
        }
        match found {
            Found::Prompt { .. } => {}
            Found::Started { id, at, .. } => {
                let (from, kept) = std::mem::take(&mut self.echo);
                if let Some(command) = self.command_mut(id) {
                    command.start = Some(at);
                    command.echoes = handover_echo::echoes(&kept, from, &command.text);
                    self.still_inside |= self.unclear.take().is_some();
                    news.push(Change::Started(id));
                }
            }
            Found::Ended { end, output_end, at, .. } => {
                self.prompt_seen = true;
                (self.has_typed_line, self.unclear) = (false, None);
                self.background_from = at;
                let cwd = PathBuf::from(std::ffi::OsString::from_vec(end.cwd));
                self.cwd = Some(cwd.clone());
                let time_us = self.ended_us.remove(&end.id).unwrap_or(self.last_us);
                // A nested shell cannot outlive the program that started it.
                let what = if end.id == 0 { "what somebody typed".to_owned() } else { format!("command c{}", end.id) };
                let why = format!("the shell inside has ended: {what} exited with {}", end.exit);
                if let Some(inside) = self.give_up_inside(CommandStatus::Failed, &why, Boundary::Attested, time_us) {
                    if let Some(inside) = self.command_mut(inside).and_then(|c| c.end.as_mut()) {
                        inside.at = inside.at.min(output_end);
                    }
                    news.push(Change::InsideEnded(inside));
                }
                self.is_hookless = false;
                self.end_typed(output_end, time_us, news);
                let lost = end.flags.hooks_lost && end.id == 0;
                let id = if lost { self.current.unwrap_or(0) } else { end.id };
                if self.current == Some(id) {
                    self.current = None;
                }
                let Some(command) = self.command_mut(id).filter(|c| c.end.is_none()) else {
                    news.push(Change::Prompt(end.exit));
                    return;
                };
                // Only the prompt came back: the shell reported no beginning, so nothing of the text was run.
                let was_taken = !end.flags.in_band || command.start.is_some();
                let (status, error) = if lost || !was_taken {
                    (CommandStatus::Failed, Some("the shell did not take the command; it was not run".to_owned()))
                } else if end.flags.incomplete {
                    // Shells that read a text while they run it have run the part before the error.
                    let ran = if end.flags.not_run_to_end { "what stands before it was run" } else { "it was not run" };
                    let why = format!("incomplete command (unfinished quote, here-document or compound); {ran}");
                    (CommandStatus::Failed, Some(why))
                } else {
                    (CommandStatus::Completed, None)
                };
                command.end = Some(End {
                    at: output_end.max(command.output_from()),
                    time_us,
                    status,
                    exit: (!lost && was_taken).then_some(end.exit),
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
        let Some(id) = self.current_command().filter(|c| c.channel == Channel::Line).map(|c| c.id) else { return };
        self.end_current(CommandStatus::Failed, WITHOUT_HOOKS, Boundary::Heuristic, time_us);
        if let Some(command) = self.command_mut(id) {
            let from = command.output_from();
            command.end.iter_mut().for_each(|end| end.at = at.max(from));
        }
        news.push(Change::Ended(id));
    }

    /// Ends the current command without a report.
    pub(crate) fn end_current(
        &mut self,
        status: CommandStatus,
        error: &str,
        boundary: Boundary,
        now_us: u64,
    ) -> Option<u32> {
        let id = self.current.take()?;
        let at = self.scanner.position();
        self.background_from = at;
        let command = self.command_mut(id)?;
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

    /// The command that the session runs, unless it has left the memory.
    pub(crate) fn current_command(&self) -> Option<&Command> {
        self.current.and_then(|id| self.command(id))
    }

    pub(crate) fn command(&self, id: u32) -> Option<&Command> {
        self.commands.iter().rev().find(|c| c.id == id)
    }

    pub(crate) fn command_mut(&mut self, id: u32) -> Option<&mut Command> {
        self.commands.iter_mut().rev().find(|c| c.id == id)
    }

    /// The offset of the first byte at or after this time, as precise as the events.
    pub(crate) fn offset_at(&self, time: SystemTime) -> u64 {
        let us = micros(time);
        let end = self.scanner.position();
        self.times.iter().find(|(_, t)| *t >= us).map_or(end, |(offset, _)| *offset)
    }

    /// Notes the journal's length at a time; thinned to the first and the last entry in ten milliseconds, and to a
    /// bounded number.
    pub(crate) fn note_time(&mut self, offset: u64, us: u64) {
        /// About 40 KiB at most. A position by time is a convenience: the cursor is exact.
        const TIMES_KEPT: usize = 1024;
        const STEP_US: u64 = 10_000;
        if self.times.len() > 1 && self.times.get(self.times.len() - 2).is_some_and(|(_, t)| us < t + STEP_US) {
            self.times.pop_back();
        }
        if self.times.len() == TIMES_KEPT {
            let mut keep = false;
            self.times.retain(|_| {
                keep = !keep;
                keep
            });
        }
        self.times.push_back((offset, us));
    }
}

/// A command's text as kept in memory.
fn kept_text(text: &str) -> String {
    match text.char_indices().nth(TEXT_CHARS_KEPT) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}

/// A recorded time as system time.
pub(crate) fn time(us: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_micros(us)
}

/// A system time as recorded.
pub(crate) fn micros(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| u64::try_from(d.as_micros()).unwrap_or(u64::MAX))
}
