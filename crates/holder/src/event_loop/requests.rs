//! Handles the servers' requests to the holder.

use super::input::{InputRequest, Line};
use super::*;

/// How many requests of one idempotency key may wait for one command to begin; a server has no reason for more.
const WAITING_MAX: usize = 1024;

impl Holder {
    pub(super) fn serve_clients(&mut self, ready: &Ready, now: u64) {
        let mut requests = Vec::new();
        for (client, _) in self.clients.iter_mut().zip(&ready.clients).filter(|(_, is_ready)| **is_ready) {
            requests.extend(client.receive(now).into_iter().map(|frame| (client.id, frame)));
        }
        for (id, frame) in requests {
            self.handle(id, frame, now);
        }
        // After the polled connections and their requests: a client that has just sent something is not the longest
        // silent one.
        if ready.newcomers {
            self.accept_connections(now);
        }
    }

    pub(super) fn handle(&mut self, id: u64, frame: ToHolder, now: u64) {
        match frame {
            ToHolder::Kill => self.end(None, EndReason::FORCED, signal::KILL, 0, now),
            ToHolder::Hello { attaches, .. } => self.on_hello(id, attaches),
            ToHolder::Run { seq, key, patience_ms, text } => {
                self.accept_command((id, seq), key, text, now + u64::from(patience_ms) * 1000);
                self.start_waiting_command(now);
            }
            ToHolder::Input { seq, key, is_secret, patience_ms, bytes } => {
                let (from, patience_us) = (vec![(id, seq)], u64::from(patience_ms) * 1000);
                self.queue_input(
                    InputRequest { from, key, is_secret, patience_us, bytes, command: None, until: None },
                    now,
                );
            }
            ToHolder::Type { seq, key, patience_ms, id: command, is_inside, nonce, text, line } => {
                let (from, patience_us) = (vec![(id, seq)], u64::from(patience_ms) * 1000);
                let command = Some(Line { id: command, is_inside, nonce, text });
                let (is_secret, bytes, until) = (false, line, None);
                self.queue_input(InputRequest { from, key, is_secret, patience_us, bytes, command, until }, now);
            }
            ToHolder::Judge { command, status, boundary, is_hookless, end, time_us, why } => {
                let why = why.as_slice();
                self.note(&Record::Judged { command, status, boundary, is_hookless, end, time_us, why });
            }
            ToHolder::Resize { seq, cols, rows } => self.resize((id, seq), cols, rows),
            ToHolder::Signal { seq, target, signo } => self.signal((id, seq), target, signo, now),
            ToHolder::Answer { query, bytes } => self.answer_query(query, bytes, now),
            ToHolder::Terminate { seq, signo, grace_ms } => {
                self.end(Some((id, seq)), EndReason::ASKED, signo, u64::from(grace_ms) * 1000, now);
            }
            ToHolder::Report { seq } => self.press_report_key((id, seq)),
            ToHolder::Limited { limit, command, count } => {
                self.note(&Record::Limited { limit, command, count });
                self.schedule_look(now);
            }
            ToHolder::Ping { seq } => self.answer((id, seq), Status::Ok, 0),
        }
    }

    /// Only a client that sends `attaches` takes the session over; a mere status query never does.
    pub(super) fn on_hello(&mut self, id: u64, attaches: bool) {
        if attaches {
            for client in self.clients.iter_mut().filter(|c| c.is_attached && c.id != id) {
                client.send(&FromHolder::Displaced);
                client.is_attached = false;
                client.is_leaving = true;
            }
        }
        if attaches {
            self.record_answered();
        }
        let hello = self.hello();
        if let Some(client) = self.clients.iter_mut().find(|c| c.id == id) {
            client.is_attached |= attaches;
            client.send(&hello);
        }
        if attaches {
            // The new server knows no foreground state yet: the next sample must be sent even if nothing changed.
            self.sampler.suspend();
            self.schedule_look(time::monotonic_us());
        }
    }

    /// Records the offset up to which queries were answered, so that a server that attaches reads it first.
    fn record_answered(&mut self) {
        let query = self.answered;
        if query <= self.answered_on_record {
            return;
        }
        if self.events.record(time::wall_us(), self.journal.end(), &Record::Answered { query }).is_ok() {
            self.answered_on_record = query;
            let now = time::monotonic_us();
            self.announce_by = Some(now);
            self.publish(now);
        }
    }

    pub(super) fn hello(&self) -> FromHolder {
        FromHolder::Hello(Hello {
            protocol: PROTOCOL,
            holder_pid: std::process::id(),
            shell_pid: self.shell_pid,
            cols: self.spec.cols,
            rows: self.spec.rows,
            command: self.prompt.command(),
            tail: self.published,
        })
    }

    pub(super) fn accept_command(&mut self, from: (u64, u32), key: Key, text: Vec<u8>, until: u64) {
        if let Some((status, id)) = self.prompt.earlier(&key) {
            return self.answer(from, status, id);
        }
        if self.exit.is_some() || self.ending.is_some() {
            return self.answer(from, Status::Ended, 0);
        }
        if text.contains(&0) {
            return self.answer(from, Status::Failed, rustix::io::Errno::INVAL.raw_os_error().unsigned_abs().into());
        }
        match &mut self.waiting {
            Some(waiting) if is_same_name(&waiting.key, &key) => {
                if waiting.key != key {
                    return self.answer(from, Status::KeyReused, 0);
                }
                // The same request again: it gets the same answer.
                if waiting.from.len() < WAITING_MAX {
                    return waiting.from.push(from);
                }
            }
            _ => {}
        }
        match self.prompt.shell {
            Phase::Running(id) => self.answer(from, Status::Busy, u64::from(id)),
            Phase::Starting | Phase::Ready | Phase::Typed if self.waiting.is_some() => {
                self.answer(from, Status::Busy, u64::from(self.prompt.next_id()));
            }
            Phase::Starting | Phase::Ready | Phase::Typed => {
                let (from, since) = (vec![from], time::monotonic_us());
                self.waiting = Some(WaitingCommand { from, key, text, since, until, seen_at_line: None });
            }
        }
    }

    /// The atomic step: if the prompt is ready and the editor has the terminal, record the command, stage it and press
    /// the key.
    pub(super) fn start_waiting_command(&mut self, now: u64) {
        let Some(waiting) = &self.waiting else { return };
        if self.takes_lines() && self.prompt.is_cleared(now) && self.shell_reads_commands() {
            self.prompt.seen();
        }
        let is_quiet = self.keyboard.is_empty() && !self.prompt.is_unsettled(now);
        let is_ready = self.prompt.shell == Phase::Ready && is_quiet;
        if !is_ready || !self.shell_reads_commands() {
            let until = waiting.until;
            if now >= until || self.waits_at_unfinished_line(now) || self.foreign_program_runs(now) {
                let status = if self.prompt.shell == Phase::Typed { Status::Typed } else { Status::NotReady };
                if let Some(WaitingCommand { from, .. }) = self.waiting.take() {
                    self.answer_all(&from, status, 0);
                }
            }
            return;
        }
        let Some(WaitingCommand { from, key, text, .. }) = self.waiting.take() else {
            return;
        };
        let id = self.prompt.next_id();
        match self.hand_over(id, key, &text) {
            Ok(nonce) => {
                self.prompt.begin(id, now);
                self.prompt.awaits_marker(nonce, self.journal.end());
                self.prompt.remember(key, Status::Ok, u64::from(id));
                self.sampler.start_over(now);
                self.idle_until = now + COALESCE_US;
                // The server reads the acceptance record before the answer that names it; both may wait for the
                // command's first output.
                self.answer_later(&from, u64::from(id), now);
            }
            Err(e) => self.answer_all(&from, Status::Failed, e.raw_os_error().unwrap_or(0).unsigned_abs().into()),
        }
    }

    /// Whether a shell without private keys waits for a line without a prompt mark: a person's line is unfinished, or
    /// the prompt was changed by hand. The two look the same, and in the first case our line would become part of
    /// theirs.
    fn waits_at_unfinished_line(&mut self, now: u64) -> bool {
        let is_typed = self.takes_lines() && self.prompt.shell == Phase::Typed && self.keyboard.is_empty();
        let waits = is_typed && !self.prompt.is_interrupted() && self.shell_reads_commands();
        let Some(waiting) = &mut self.waiting else { return false };
        waiting.seen_at_line = waits.then(|| waiting.seen_at_line.unwrap_or(now));
        waiting.seen_at_line.is_some_and(|since| now >= since + UNFINISHED_US)
    }

    /// Whether commands are handed over as lines, because the shell has no private keys.
    fn takes_lines(&self) -> bool {
        self.spec.handover.line().is_some()
    }

    /// Whether a line typed at the prompt still runs while a command waits.
    fn foreign_program_runs(&self, now: u64) -> bool {
        let is_prompted = self.prompt.shell != Phase::Starting;
        let is_late = self.waiting.as_ref().is_some_and(|waiting| now >= waiting.since + TYPED_PATIENCE_US);
        let has_it = || pty::foreground_group(self.leader.as_fd()) != self.shell_pid;
        is_prompted && is_late && (self.prompt.shell == Phase::Typed || has_it())
    }

    /// Whether typed bytes are read as a command now: by the line editor that has the terminal, or by a shell that
    /// waits for a line.
    fn shell_reads_commands(&self) -> bool {
        let leader = self.leader.as_fd();
        if self.takes_lines() {
            return self.sampler.is_at_line(leader, self.shell_pid);
        }
        let is_editing = pty::modes(leader).is_ok_and(|m| !m.canonical);
        // Input typed ahead may start a program that reads next.
        is_editing && (!self.prompt.input_since_handover() || self.sampler.waits_for_keys(leader, self.shell_pid))
    }

    pub(super) fn hand_over(&mut self, id: u32, key: Key, text: &[u8]) -> io::Result<u64> {
        let mut nonce = [0; 8];
        rustix::rand::getrandom(&mut nonce, rustix::rand::GetRandomFlags::empty())?;
        let nonce = u64::from_le_bytes(nonce);
        let head = match &self.text_file {
            Some(file) => {
                stage(file, text)?;
                format!("{id}\n{nonce}\n/proc/{}/fd/{}\n", std::process::id(), file.as_raw_fd())
            }
            // A shell that takes lines finds id and nonce in its line, and reads the file like a script.
            None if self.takes_lines() => String::new(),
            None => format!("{id}\0{nonce}\0"),
        };
        let text_behind = if self.text_file.is_some() { b"" } else { text };
        // mksh loses an alias that is the last word of a file without a newline, or exits with it. After a backslash, a
        // newline would change the meaning.
        let end: &[u8] = if self.takes_lines() && !text.ends_with(b"\\") { b"\n" } else { b"" };
        stage(&self.command_file, &[head.as_bytes(), text_behind, end].concat())?;
        let accepted = Record::Accepted { id, nonce, key, text };
        self.events.record(time::wall_us(), self.journal.end(), &accepted)?;
        // The editor has the terminal and the input queue is empty, so the few bytes fit.
        let keys = match (self.takes_lines(), self.prompt.input_since_handover()) {
            (false, false) => KEY_RUN.to_vec(),
            // A half-typed key may have the editor in a search or a count; C-g ends that.
            (false, true) => [b"\x07", KEY_RUN].concat(),
            (true, input_since_handover) => self.line_for(id, nonce, input_since_handover),
        };
        rustix::io::write(&self.leader, &keys)?;
        Ok(nonce)
    }

    /// The line that hands a command over; C-u first deletes a half-typed line.
    fn line_for(&self, id: u32, nonce: u64, input_since_handover: bool) -> Vec<u8> {
        let line = String::from_utf8_lossy(self.spec.handover.line().unwrap_or_default())
            .replace("{}", &format!("{id} {nonce}"));
        format!("{}{line}\n", if input_since_handover { "\x15" } else { "" }).into_bytes()
    }

    pub(super) fn refuse_waiting(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            self.answer_all(&waiting.from, Status::Ended, 0);
        }
    }

    pub(super) fn resize(&mut self, from: (u64, u32), cols: u16, rows: u16) {
        match pty::resize(self.leader.as_fd(), cols, rows) {
            Ok(()) => {
                (self.spec.cols, self.spec.rows) = (cols, rows);
                self.note(&Record::Resized { cols, rows });
                // The event is published before the answer, so a client that has the answer sees the new size.
                let now = time::monotonic_us();
                self.announce_by = Some(now);
                self.publish(now);
                self.answer(from, Status::Ok, 0);
            }
            Err(e) => self.answer(from, Status::Failed, e.raw_os_error().unwrap_or(0).unsigned_abs().into()),
        }
    }

    pub(super) fn signal(&mut self, from: (u64, u32), target: Target, signo: i32, now: u64) {
        let (result, number) = match target {
            Target::Foreground => {
                self.sampler.signalled(now);
                if signo == signal::INT {
                    self.prompt.interrupted(now);
                }
                (self.signal_foreground(signo), 0)
            }
            Target::Session => {
                termination::signal_all(&termination::living(), signo);
                (Ok(()), -1)
            }
            Target::Process(pid) => {
                let pid_number = i32::try_from(pid).unwrap_or(0);
                if pid_number <= 0 || !termination::living().contains(&pid) {
                    return self.answer(from, Status::NoProcess, u64::from(pid));
                }
                (signal::send(pid_number, signo), pid_number)
            }
        };
        let errno = result.as_ref().err().and_then(io::Error::raw_os_error).unwrap_or(0);
        self.note(&Record::Signalled { target: number, signo, errno });
        self.schedule_look(now);
        match result {
            Ok(()) => self.answer(from, Status::Ok, 0),
            Err(_) => self.answer(from, Status::Failed, errno.unsigned_abs().into()),
        }
    }

    /// Sends it through the terminal where ISIG is set, as a key where the program reads raw keys, by kill(2)
    /// otherwise.
    pub(super) fn signal_foreground(&mut self, signo: i32) -> io::Result<()> {
        let leader = self.leader.as_fd();
        let modes = pty::modes(leader)?;
        let character = match signo {
            signal::INT => Some(0x03),
            signal::QUIT => Some(0x1c),
            signal::TSTP => Some(0x1a),
            _ => None,
        };
        match character {
            Some(_) if modes.isig => {
                if modes.flushes && !self.has_keys_of_ours_to_read() {
                    self.drop_queued_input(time::monotonic_us());
                    // The signal is sent even if this fails.
                    let _ = pty::discard_typed(self.leader.as_fd(), self.sampler.tty());
                }
                pty::signal_foreground(self.leader.as_fd(), signo)
            }
            Some(byte) => Ok(rustix::io::write(leader, &[byte]).map(drop)?),
            None => {
                let group = i32::try_from(pty::foreground_group(leader)).unwrap_or(0);
                if group <= 0 {
                    return Err(io::Error::from_raw_os_error(rustix::io::Errno::SRCH.raw_os_error()));
                }
                signal::send(-group, signo)
            }
        }
    }

    /// Whether a command was handed over so recently that the shell may not have read its keys yet.
    fn has_keys_of_ours_to_read(&self) -> bool {
        let is_lately = self.prompt.may_have_keys_to_read(time::monotonic_us());
        is_lately && pty::foreground_group(self.leader.as_fd()) == self.shell_pid
    }

    /// Writes the reply of the first server that answers a query. A record of each reply would be longer than the
    /// query, so `answered` is recorded only when the next server attaches.
    pub(super) fn answer_query(&mut self, query: Offset, bytes: Vec<u8>, now: u64) {
        if query <= self.answered || self.exit.is_some() {
            return;
        }
        self.answered = query;
        self.answers.push_back((query, now + ANSWER_PATIENCE_US, bytes));
        self.send_query_replies(now);
    }

    /// Writes queued query replies to the terminal. A query before the newest prompt came from a program that is gone,
    /// and the line editor would take the reply for keys, so that reply is dropped. If the tty would echo the reply,
    /// wait up to 100 ms for the program to disable echo, or for the next prompt.
    pub(super) fn send_query_replies(&mut self, now: u64) {
        while let Some((query, until, bytes)) = self.answers.front() {
            let is_echoed = pty::modes(self.leader.as_fd()).is_ok_and(|m| m.canonical && m.echo);
            if *query > self.prompt_at {
                if is_echoed && now < *until && self.answers.len() < ANSWERS_MAX {
                    return;
                }
                // A reply that does not fit is lost, as on a real terminal.
                let _ = rustix::io::write(&self.leader, bytes);
                self.prompt.touch();
            }
            self.answers.pop_front();
            // The program that waited for the reply was not reported as waiting for a person.
            self.sampler.typed(now, is_echoed);
            self.schedule_look(now);
        }
    }

    pub(super) fn press_report_key(&mut self, from: (u64, u32)) {
        if self.prompts.is_some() {
            // The shell has no report key; the kernel shows whether it waits at its prompt.
            let leader = self.leader.as_fd();
            let is_there = match self.takes_lines() {
                true => self.sampler.is_at_line(leader, self.shell_pid),
                false => self.sampler.waits_for_keys(leader, self.shell_pid),
            };
            if is_there {
                self.prompt.seen();
            }
            return self.answer(from, if is_there { Status::Ok } else { Status::NotReady }, 0);
        }
        let at_editor = matches!(
            self.sampler.sample(self.leader.as_fd(), self.shell_pid),
            Some(State { foreground: Foreground::Editor, .. })
        );
        if !at_editor || !self.keyboard.is_empty() {
            return self.answer(from, Status::NotReady, 0);
        }
        self.prompt.asked();
        let result = rustix::io::write(&self.leader, KEY_REPORT);
        let status = if result.is_ok() { Status::Ok } else { Status::Failed };
        self.answer(from, status, 0);
    }

    pub(super) fn end(&mut self, from: Option<(u64, u32)>, reason: EndReason, signo: i32, grace_us: u64, now: u64) {
        self.termination_callers.extend(from);
        self.is_end_asked = true;
        self.refuse_waiting();
        match &mut self.ending {
            Some(ending) if signo == signal::KILL => ending.hurry(now),
            Some(_) => {}
            None => {
                self.note(&Record::Ending { reason, text: signal::name(signo).as_bytes() });
                self.ending = Some(Termination::asked(signo, grace_us, self.whom(), now));
            }
        }
    }

    pub(super) fn go_on_ending(&mut self, now: u64) {
        let Some(ending) = &mut self.ending else {
            return;
        };
        let found = ending.found;
        let left = match ending.turn(now) {
            Progress::WaitingCommand => return,
            Progress::Over => 0,
            Progress::GivenUp(left) => left,
        };
        // The last output of the processes that were ended with the shell is still in the terminal.
        if !self.exit.is_some_and(|(_, is_recorded)| is_recorded) || !self.takes_the_rest(now) {
            return;
        }
        let status = if left == 0 { Status::Ok } else { Status::Stalled };
        for from in std::mem::take(&mut self.termination_callers) {
            self.answer(from, status, found.saturating_sub(left));
        }
        self.is_over = true;
    }
}

/// The named file for a shell that opens a command's text by path.
pub(super) fn text_file(folder: &Path) -> io::Result<std::fs::File> {
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(folder.join("command"))
}

/// Replaces the contents of the file.
fn stage(file: &std::fs::File, bytes: &[u8]) -> io::Result<()> {
    file.set_len(0)?;
    file.write_all_at(bytes, 0)
}
