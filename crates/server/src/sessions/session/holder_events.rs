//! Handles the holder's frames: the tail, the foreground state, and the results of requests.

use super::*;

/// ESRCH of errno(3), as the holder sends it.
const NO_SUCH_PROCESS: u64 = 3;

impl Session {
    pub(super) fn on_frame(&mut self, frame: FromHolder) {
        match frame {
            FromHolder::Hello(hello) => self.on_hello(hello),
            FromHolder::Tail(tail) => self.on_tail(tail),
            FromHolder::State(state) => self.on_state(state),
            FromHolder::Done { seq, status, value } => self.on_done(seq, status, value),
            FromHolder::Displaced => self.displaced = true,
        }
    }

    pub(super) fn on_hello(&mut self, hello: Hello) {
        self.protocol = hello.protocol;
        self.timeline.holder_pid = hello.holder_pid;
        self.holder = holder_liveness::identity(hello.holder_pid);
        self.timeline.shell_pid = hello.shell_pid;
        (self.timeline.cols, self.timeline.rows) = (hello.cols, hello.rows);
        self.replays_to = hello.tail.journal.0;
        self.on_tail(hello.tail);
    }

    pub(super) fn on_tail(&mut self, tail: Tail) {
        self.tail.send_if_modified(|t| {
            let newer = tail != *t && tail.events >= t.events;
            if newer {
                *t = tail;
                (self.has_events, self.is_behind, self.journal_unreadable) = (true, true, false);
            }
            newer
        });
    }

    /// Handles received frames; a frame may refer to events before it, so those are read first.
    pub(super) fn handle_frames(&mut self) {
        while !self.has_events
            && let Some(frame) = self.frames.pop_front()
        {
            self.on_frame(frame);
            if self.has_events {
                self.read_events();
            }
        }
    }

    /// Reads some of the events up to the tail. During replay, events and output are read in the order in which they
    /// happened; afterwards events are read at once.
    fn read_events(&mut self) {
        let tail = *self.tail.borrow();
        let size = (self.timeline.cols, self.timeline.rows);
        let cut_before = self.timeline.trouble.cut_before;
        let mut news = Vec::new();
        let mut output_to = None;
        for _ in 0..limits::EVENTS_CHUNK {
            if !self.has_events {
                break;
            }
            let is_in_order = self.is_replaying && !self.journal_unreadable;
            let at = if is_in_order { self.timeline.scanner.position() } else { u64::MAX };
            match self.replay.next(tail.events, at, tail.journal.0) {
                Ok(Step::Event(event)) => {
                    if is_end(&event) {
                        // The kernel's state was about the ended command; newer states arrive after this event.
                        self.state = None;
                    }
                    self.timeline.event(&event, &mut news);
                }
                Ok(Step::OutputTo(to)) => {
                    output_to = Some(to);
                    break;
                }
                Ok(Step::AllOutput) => {
                    self.has_events = false;
                    match self.replay.damage(tail.events, !self.is_tail_last) {
                        Ok(damage) => damage.into_iter().for_each(|what| self.is_damaged(what)),
                        Err(e) => self.events_unreadable(&e),
                    }
                }
                Err(e) => self.events_unreadable(&e),
            }
        }
        self.log_cut(cut_before);
        let (cols, rows) = (self.timeline.cols, self.timeline.rows);
        if (cols, rows) != size {
            self.note(self.timeline.scanner.held_from(), SessionEvent::Resized { cols, rows });
            if let Some((screen, _)) = &mut self.screen {
                screen.resize(cols, rows);
            }
        }
        self.on_news(news);
        if let Some(to) = output_to {
            self.journal_unreadable = !self.read_output(Offset(to));
        }
    }

    /// Ends the replay once its events and output are read; until then requests wait.
    fn end_replay(&mut self) {
        let is_told =
            !self.has_events && (self.journal_unreadable || self.timeline.scanner.position() >= self.replays_to);
        if is_told && std::mem::take(&mut self.is_replaying) {
            self.take_up_typed();
            for (query, to) in std::mem::take(&mut self.unanswered) {
                self.on_query(&query, to);
            }
            // Input and commands are events with a time; output has none, but the journal file's modification time is
            // known.
            let written = std::fs::metadata(self.shared.folder.join(journal::JOURNAL_FILE)).and_then(|m| m.modified());
            let written_us = written.map_or(0, micros).min(micros(SystemTime::now()));
            self.last_activity_us = self.timeline.last_us.max(written_us);
            self.life.quiet_since(self.last_activity_us);
            // On a busy machine the first prompt may come before the server has connected.
            if self.is_idle() {
                self.check_shell_image();
            }
        }
    }

    fn events_unreadable(&mut self, e: &std::io::Error) {
        tracing::error!(session = %self.shared.id, error = %e, "the events cannot be read");
        self.has_events = false;
    }

    /// Records damage once.
    pub(crate) fn is_damaged(&mut self, what: String) {
        if self.timeline.damage.is_none() {
            tracing::error!(session = %self.shared.id, what, "the session's folder is damaged");
            self.timeline.damage = Some(what);
        }
    }

    /// Records that another process has cut the journal. The session goes on: later output has its offsets.
    pub(super) fn is_cut(&mut self, before: u64) {
        let known = self.timeline.trouble.cut_before;
        self.timeline.trouble.is_cut(before);
        self.log_cut(known);
    }

    /// Logs the first cut of the journal.
    fn log_cut(&self, known: u64) {
        let before = self.timeline.trouble.cut_before;
        if known == 0 && before > 0 {
            tracing::error!(session = %self.shared.id, before, "the journal was cut by another process");
        }
    }

    pub(super) fn has_unread(&self) -> bool {
        self.timeline.scanner.position() < self.tail.borrow().journal.0
    }

    /// Reads one chunk of what is unread.
    pub(super) fn follow_some(&mut self) {
        if self.has_events {
            self.read_events();
        } else {
            let limit = self.tail.borrow().journal;
            self.journal_unreadable = self.has_unread() && !self.read_output(limit);
            self.is_behind = self.has_unread() && !self.journal_unreadable;
        }
        self.end_replay();
        if !self.is_replaying {
            self.note_room();
        }
    }

    /// Scans one chunk; false if it cannot be read.
    fn read_output(&mut self, limit: Offset) -> bool {
        let at = self.timeline.scanner.position();
        let want = usize::try_from(limit.0.saturating_sub(at)).unwrap_or(usize::MAX).min(limits::SCAN_CHUNK);
        let mut buffer = vec![0; want];
        let mut news = Vec::new();
        match self.shared.reader.read(Offset(at), limit, &mut buffer) {
            Ok(Read::Bytes(n)) => {
                let bytes = &buffer[..n];
                let now_us = micros(SystemTime::now());
                // These bytes came after the last read and no later than now.
                self.timeline.note_time(at, now_us);
                self.timeline.note_time(at + n as u64, now_us);
                if !self.is_replaying {
                    self.event_log.metrics.read(n);
                    self.last_activity_us = now_us;
                    self.life.touch();
                }
                sys::fault::point("index");
                self.timeline.bytes(bytes, &mut news);
                self.on_output(at, bytes, &news);
                self.on_news(news);
            }
            Ok(missing @ (Read::Gap { to, .. } | Read::Cut { to, .. })) => {
                if matches!(missing, Read::Cut { .. }) {
                    self.is_cut(to.0);
                }
                self.timeline.skip_to(to.0, &mut news);
                self.screen = None;
                // Command output that the waits expect may have begun in the gap.
                self.waiters.iter_mut().for_each(|w| w.goes_on_from(to.0));
                self.on_news(news);
            }
            Ok(Read::End) => return false,
            Err(e) => {
                tracing::error!(session = %self.shared.id, error = %e, "the journal cannot be read");
                return false;
            }
        }
        true
    }

    pub(super) fn on_output(&mut self, at: u64, bytes: &[u8], news: &[Change]) {
        if at + bytes.len() as u64 > self.heard_at {
            self.editor_since = None;
        }
        // The kernel's state from before this output is out of date; the holder sends another one when output pauses.
        let now = Instant::now();
        let paints = self.paints();
        if paints || self.paint.is_on() {
            self.painted_at = Some(now);
        }
        let end = at + bytes.len() as u64;
        let scanner = &self.timeline.scanner;
        let group = || sys::process::stat(self.timeline.shell_pid).and_then(|s| s.foreground_group);
        self.paint.heard(end, scanner.modes().alt_screen, scanner.paints_main_from(), group);
        for item in news {
            if let Change::Started(id) = item {
                let start = self.timeline.command(*id).map_or(at, super::super::timeline::Command::output_from);
                self.waiters.iter_mut().for_each(|w| w.output_begins(*id, start));
            }
        }
        // Output after a command's end is a prompt or other text, and none of the command's.
        let end_of = |id: u32| self.timeline.command(id).and_then(|c| c.end.as_ref()).map(|end| end.at);
        let ends: Vec<Option<u64>> = self.waiters.iter().map(|w| w.command.and_then(end_of)).collect();
        let is_painted = paints;
        let needs_screen = |w: &Waiter| w.watches_screen() || is_painted && w.wants_pattern();
        let rows = self.waiters.iter().any(needs_screen).then(|| self.screen_now().text().join("\n"));
        let bells = self.timeline.scanner.bells();
        let mut matched: Vec<(usize, String)> = Vec::new();
        for (i, waiter) in self.waiters.iter_mut().enumerate() {
            let ends_at = ends.get(i).copied().flatten();
            let own = ends_at.map_or(bytes.len(), |end| offset_in(bytes, at, end));
            let by_text = waiter.output(at, &bytes[..own], now);
            let shows = is_painted && ends_at.is_none();
            let by_screen = rows.as_deref().filter(|_| shows).and_then(|r| waiter.screen(r));
            if let Some(rows) = &rows {
                waiter.look(rows, now);
            }
            let by_bell = || waiter.hears(bells).then(|| "bell".to_owned());
            if let Some(what) = by_screen.or(by_text).or_else(by_bell) {
                matched.push((i, what));
            }
        }
        for (i, text) in matched.into_iter().rev() {
            let waiter = self.waiters.swap_remove(i);
            self.finish(waiter, EndedBy::Matched, Some(text));
        }
    }

    pub(super) fn on_news(&mut self, news: Vec<Change>) {
        for item in news {
            match item {
                Change::Started(id) => {
                    self.note_start(id);
                    self.notify_started(|waits_for| waits_for == id);
                }
                Change::Ended(id) => self.on_command_end(id),
                Change::InsideEnded(id) => self.on_inside_end(id),
                Change::Prompt(status) => {
                    self.has_stopped_job = self.has_stopped_one(Some(status));
                    self.on_prompt();
                }
                Change::Query { query, to } => self.on_query(&query, to),
                Change::Held(hit) => self.notify_limit_hit(hit),
            }
        }
        let awaits_marker = !self.timeline.ends_without_marker().is_empty() && !self.has_unread();
        self.marker_missed_at = awaits_marker.then(|| self.marker_missed_at.unwrap_or_else(Instant::now));
    }

    pub(super) fn on_prompt(&mut self) {
        (self.is_heuristic, self.was_not_ready) = (!self.shared.spec.handover.has_hooks(), false);
        self.check_shell_image();
        // The kernel's state may be newer than this prompt, which is read only now, and it is not sent again.
        let is_editing =
            self.timeline.current.is_some() && self.state.is_some_and(|s| s.foreground == wire::Foreground::Editor);
        (self.editor_since, self.reported_at) = (is_editing.then(Instant::now), None);
        for waiter in self.prompt_waiters.drain(..) {
            let _ = waiter.send(());
        }
        self.run_pending();
        // A wait without a command ends at the prompt.
        self.finish_where(|w| w.command.is_none(), EndedBy::Ended);
    }

    /// Records the shell's program image: nothing runs, so the process is still the shell that has reported.
    fn check_shell_image(&mut self) {
        if self.image.is_none() && !self.is_replaying && self.shared.spec.handover.has_hooks() {
            self.image = sys::process::image(self.timeline.shell_pid);
        }
    }

    pub(super) fn on_command_end(&mut self, id: u32) {
        self.end_limits(id);
        self.notify_started(|waits_for| waits_for == id);
        self.put_on_record(id);
        let code = self.timeline.command(id).and_then(|c| c.end.as_ref()).and_then(|e| e.exit);
        self.has_stopped_job = self.has_stopped_one(code);
        self.on_prompt();
        self.finish_where(|w| w.command == Some(id), EndedBy::Ended);
    }

    /// Whether a command that ended with this code left a stopped job: fish and mksh report 0 for it, but the kernel
    /// shows it.
    fn has_stopped_one(&mut self, code: Option<i32>) -> bool {
        let may_have_stopped = std::mem::take(&mut self.may_have_stopped);
        code.is_some_and(is_stop) || may_have_stopped && self.has_stopped_another()
    }

    /// Whether a child of the shell is stopped that was not at the last check.
    fn has_stopped_another(&mut self) -> bool {
        let all = super::super::processes::tree(self.timeline.holder_pid);
        let stopped = all.iter().filter(|s| s.ppid == self.timeline.shell_pid && s.state == b'T');
        let stopped: Vec<_> = stopped.map(|s| (s.pid, s.start_ticks)).collect();
        let before = std::mem::replace(&mut self.stopped, stopped);
        self.stopped.iter().any(|child| !before.contains(child))
    }

    pub(super) fn on_query(&mut self, query: &terminal::Query, to: u64) {
        if self.is_replaying {
            // A later event shows whether it was answered.
            let answered = self.timeline.answered;
            while self.unanswered.front().is_some_and(|(_, to)| *to <= answered) {
                self.unanswered.pop_front();
            }
            return self.unanswered.push_back((query.clone(), to));
        }
        if to <= self.timeline.answered {
            return;
        }
        let size = (self.timeline.cols, self.timeline.rows);
        let mut cursor = || {
            let cursor = self.screen_at(to).cursor();
            (cursor.row, cursor.col)
        };
        let bytes = query.answer(&mut cursor, size);
        if !bytes.is_empty() {
            self.timeline.answered = to;
            self.connection.send(&ToHolder::Answer { query: Offset(to), bytes });
            // The program that reads waits for this reply and not for a person.
            (self.state, self.state_pending) = (None, false);
        }
    }

    pub(super) fn on_state(&mut self, state: State) {
        self.timeline.answer_heard = self.timeline.answer_heard.max(state.answered.0);
        // The holder sends another state after the input; one from before it is out of date.
        let is_answer_on_its_way = self.timeline.answered > self.timeline.answer_heard;
        if self.typing > 0 || is_answer_on_its_way {
            return;
        }
        if self.state.is_some_and(|before| before.group != state.group) {
            // The program that reads now has received no part of a line.
            self.timeline.line_is_begun = false;
        }
        self.state = Some(state);
        self.may_have_stopped |= state.foreground == wire::Foreground::Stopped;
        self.heard_at = self.tail.borrow().journal.0;
        // The painting program was killed or disconnected; the process group that has the terminal now has painted
        // nothing.
        if self.paint.is_left_to(state.group) {
            self.timeline.scanner.end_main_paint();
        }
        if self.paints() {
            self.painted_at = Some(Instant::now());
        }
        self.check_typed_command();
        if self.is_heuristic && self.reads_commands() {
            self.run_pending();
        }
        // A shell whose prompt was never reported has not read our script, or asks for input by its editor. A shell
        // without our hooks has no report key: its command ends when the shell reads again.
        let is_odd = !self.is_heuristic && (self.timeline.current.is_some() || !self.timeline.prompt_seen);
        let editor_has_it = state.foreground == wire::Foreground::Editor && is_odd;
        match ((editor_has_it && !self.timeline.still_inside) || self.has_replaced_itself(state), self.editor_since) {
            (true, None) => self.editor_since = Some(Instant::now()),
            (false, _) => self.editor_since = None,
            (true, Some(_)) => {}
        }
        self.check_foreign_shell(state);
        self.refuse_pending();
        self.state_pending = true;
    }

    /// Whether the shell's process reads the terminal otherwise than at its prompt, because it runs another program by
    /// now.
    fn has_replaced_itself(&self, state: State) -> bool {
        let is_odd = match state.foreground {
            wire::Foreground::Editor => self.timeline.has_typed_line,
            wire::Foreground::ShellReads => self.timeline.has_typed_line || self.timeline.current.is_some(),
            _ => false,
        };
        is_odd && self.timeline.prompt_seen && !self.is_heuristic && self.is_replaced()
    }

    /// Switches to heuristics if the shell's process reads the terminal but runs another program (`exec` in a start-up
    /// file).
    pub(super) fn check_foreign_shell(&mut self, state: State) {
        let waits = matches!(state.foreground, wire::Foreground::Editor | wire::Foreground::ShellReads);
        if !waits || self.is_heuristic || self.timeline.current.is_some() && self.timeline.prompt_seen {
            return;
        }
        let Some(now) = sys::process::executable(self.timeline.shell_pid) else { return };
        let ours = std::ffi::OsStr::new(&self.shared.meta.shell);
        if now.file_name() != Some(ours) && !self.timeline.prompt_seen {
            self.goes_without_hooks();
        }
    }

    /// The shell will send no reports: from now on the kernel's state shows when typed commands end.
    pub(super) fn goes_without_hooks(&mut self) {
        self.is_heuristic = true;
        for waiter in self.prompt_waiters.drain(..) {
            let _ = waiter.send(());
        }
        if self.reads_commands() {
            self.run_pending();
        }
    }

    pub(super) fn on_done(&mut self, seq: u32, status: Status, value: u64) {
        match self.calls.remove(&seq) {
            Some(Call::Run { wait, started }) => self.on_run_done(status, value, wait, started),
            Some(Call::Input { key, wait, from, offered, is_signal, typed }) => {
                self.typing = self.typing.saturating_sub(1);
                self.state = None;
                if !is_signal && status != Status::Ok {
                    // The line was not typed in full, so no report of its end will come.
                    self.timeline.has_typed_line = false;
                }
                let value = if is_signal && status == Status::Ok { offered as u64 } else { value };
                let from = self.timeline.typed_from(&key).map_or(from, |at| at.min(from));
                self.on_typed(status, value, wait, from, offered, typed);
            }
            Some(Call::Line { id, key, wait, started }) => {
                self.on_line_typed((id, key), (status, value), wait, started);
            }
            Some(Call::Signal { is_foreground, reply }) => {
                if is_foreground {
                    self.typing = self.typing.saturating_sub(1);
                    self.state = None;
                }
                if status == Status::NoProcess {
                    // The holder does not record this signal.
                    let gone = u32::try_from(value).unwrap_or(0).cast_signed();
                    self.timeline.signals_on_their_way.retain(|sent| sent.target != gone);
                }
                // The foreground process group can be empty: the attempt is recorded, and the error is not the
                // server's.
                let is_nobody = is_foreground && status == Status::Failed && value == NO_SUCH_PROCESS;
                let nothing = || Err(ActionError::NothingRuns { session: self.shared.id.clone() });
                let _ = reply.send(if is_nobody { nothing() } else { self.plain_result(status, value) });
            }
            Some(Call::Plain(reply)) => {
                let _ = reply.send(self.plain_result(status, value));
            }
            Some(Call::Terminate(reply)) => {
                let left = if status == Status::Ok { 0 } else { 1 };
                self.enders.push(reply);
                self.notify_terminators(Ended { killed: value, left });
            }
            // The editor lost the terminal again, or the shell has not read our keys yet: retry if the state stays.
            Some(Call::Report) if status != Status::Ok => {
                self.reported_at = None;
                self.editor_since = self.editor_since.map(|_| Instant::now());
            }
            Some(Call::Report) | None => {}
        }
    }

    pub(super) fn plain_result(&self, status: Status, value: u64) -> Result<(), ActionError> {
        match status {
            Status::Ok | Status::Duplicate => Ok(()),
            Status::Ended => Err(self.ended_error()),
            Status::NoProcess => Err(ActionError::Invalid {
                field: "target",
                problem: format!("{value} is not a process of this session"),
            }),
            Status::Failed => Err(ActionError::Internal { why: os_error(value) }),
            Status::Busy
            | Status::NotReady
            | Status::Typed
            | Status::LineTooLong
            | Status::Stalled
            | Status::WouldEcho
            | Status::KeyReused => Err(ActionError::Internal { why: format!("unexpected answer {status:?}") }),
        }
    }

    pub(super) fn on_run_done(
        &mut self,
        status: Status,
        value: u64,
        wait: Option<Wait>,
        started: oneshot::Sender<Result<Started, ActionError>>,
    ) {
        let id = u32::try_from(value).unwrap_or(0);
        self.was_not_ready = status == Status::NotReady;
        let result = match status {
            Status::Ok | Status::Duplicate => return self.hand_out(id, wait, started),
            Status::Busy => Err(self.busy_error(id)),
            Status::Ended => Err(self.ended_error()),
            Status::KeyReused => Err(key_reused()),
            Status::Typed | Status::NotReady if self.foreign_program_runs() => Err(self.typed_busy_error()),
            Status::Typed => {
                self.timeline.has_typed_line = true;
                let or = if self.takes_lines() {
                    ", or a prompt that was set by hand (PS1) does not tell that it has"
                } else {
                    ""
                };
                let why = format!("somebody has typed at the prompt and the line has not ended{or}; C-c clears it");
                Err(self.not_ready(&why))
            }
            Status::NotReady => Err(self.not_ready(&self.why_not_ready())),
            Status::Failed | Status::NoProcess | Status::LineTooLong | Status::Stalled | Status::WouldEcho => {
                Err(ActionError::Internal { why: format!("the command could not be handed over: {}", os_error(value)) })
            }
        };
        let _ = started.send(result);
    }

    /// Answers callers that wait for the beginning of a command.
    pub(super) fn notify_started(&mut self, which: impl Fn(u32) -> bool) {
        for i in (0..self.start_waiters.len()).rev() {
            if which(self.start_waiters[i].0) {
                let (id, _, started) = self.start_waiters.swap_remove(i);
                let _ = started.send(Ok(Started { id, is_history: false, finished: None }));
            }
        }
    }

    pub(super) fn begin_wait(&mut self, id: u32, wait: Option<Wait>) -> Started {
        let finished = wait.map(|wait| {
            let (reply, finished) = oneshot::channel();
            let at = self.timeline.scanner.position();
            let from = self.timeline.command(id).map_or(at, super::super::timeline::Command::output_from);
            let mut waiter = Waiter::new(wait, Some(id), from, self.timeline.cols, None, reply);
            waiter.looks_at_its_command(self.timeline.cols, self.timeline.rows);
            if self.timeline.command(id).is_some_and(super::super::timeline::Command::is_about_to_begin) {
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
    pub(super) fn admit(&mut self, mut waiter: Waiter) {
        waiter.begin_to_listen(self.timeline.scanner.bells());
        if waiter.watches_screen() {
            let rows = self.screen_now().text().join("\n");
            waiter.look(&rows, Instant::now());
        }
        let ended = match waiter.command {
            Some(id) => self.timeline.command(id).is_some_and(|c| c.end.is_some()),
            None => self.is_idle(),
        };
        if self.exit_told {
            self.finish(waiter, EndedBy::Exited, None);
        } else if ended && (waiter.command.is_some() || !waiter.wants_more()) {
            self.finish(waiter, EndedBy::Ended, None);
        } else if let Some(ended_by) = self.pause().filter(|_| waiter.ends_on_input_wanted()) {
            self.finish(waiter, ended_by, None);
        } else {
            // A state that does not end the wait now may do so when the screen has settled.
            self.state_pending = true;
            self.waiters.push(waiter);
        }
    }

    pub(super) fn on_typed(
        &mut self,
        status: Status,
        value: u64,
        wait: Option<Wait>,
        from: u64,
        offered: usize,
        typed: oneshot::Sender<Result<Typed, ActionError>>,
    ) {
        let accepted = usize::try_from(value).unwrap_or(0);
        let result = match status {
            Status::Ok | Status::Duplicate => {
                let command = self.timeline.newest_running();
                let finished = wait.map(|wait| {
                    let (reply, finished) = oneshot::channel();
                    let mut waiter = Waiter::new(wait, command, from, self.timeline.cols, Some(accepted), reply);
                    waiter.end_on_idle_screen();
                    // A repeated input may already have been answered by the program.
                    if let Some(waiter) = self.catch_up(waiter) {
                        self.admit(waiter);
                    }
                    finished
                });
                Ok(Typed { accepted, from, finished })
            }
            Status::Stalled => Err(ActionError::Stalled { accepted, offered }),
            Status::LineTooLong => Err(ActionError::Invalid {
                field: "input",
                problem: format!(
                    "the program reads lines, and a line of more than {value} bytes with control characters in it cannot \
                     be handed over whole; nothing was sent; send shorter lines"
                ),
            }),
            Status::Ended => Err(self.ended_error()),
            Status::KeyReused => Err(key_reused()),
            Status::WouldEcho => Err(ActionError::WouldEcho { session: self.shared.id.clone() }),
            Status::Busy | Status::NotReady | Status::Typed | Status::Failed | Status::NoProcess => {
                Err(ActionError::Internal { why: os_error(value) })
            }
        };
        let _ = typed.send(result);
    }
}

/// The index of this offset in bytes that begin at another offset; their length if it is beyond them.
fn offset_in(bytes: &[u8], begins: u64, offset: u64) -> usize {
    usize::try_from(offset.saturating_sub(begins)).unwrap_or(usize::MAX).min(bytes.len())
}

/// Whether the shell reported the end of a command or line.
fn is_end(event: &journal::Event) -> bool {
    matches!(event.record(), Some(journal::Record::Attested { report }) if report.starts_with(b"D"))
}

/// Whether this exit code means that a program was stopped (`^Z`).
fn is_stop(code: i32) -> bool {
    sys::signal::of_exit_code(code) == Some(sys::signal::TSTP)
}

/// The caller fills in its key, of which only the hash is known here.
pub(super) fn key_reused() -> ActionError {
    ActionError::KeyReused { key: String::new() }
}
