//! Handles the holder's frames, and the news of the timeline that its events and output bring.

use journal::Offset;
use wire::{FromHolder, Observed, ShownBy, State, Status, ToHolder};

use crate::action::{Boundary, CommandStatus, EndedBy, SessionEvent};
use crate::host::containers::ContainerFiles;
use crate::host::holders::Traces;
use crate::sessions::ended::unrecorded_end::explain_unrecorded_end;
use crate::sessions::session::machine::holder_link::Call;
use crate::sessions::session::machine::input_request::on_input_done;
use crate::sessions::session::machine::session::Session;
use crate::sessions::session::machine::signal_request::on_signal_done;
use crate::sessions::session::machine::waits::state::OpenWait;
use crate::sessions::session::requests::Ended;
use crate::sessions::timeline::Change;
use crate::sessions::{toolchains, views};

impl Session {
    pub(super) fn on_frame(&mut self, frame: FromHolder) {
        match frame {
            FromHolder::Hello(hello) => self.cx.on_hello(hello),
            FromHolder::Tail(tail) => self.cx.follower.on_tail(tail),
            FromHolder::Observed(observed) => self.on_observed(&observed),
            FromHolder::Done { seq, status, value, shown_by } => self.on_done(seq, status, value, shown_by),
            FromHolder::Displaced => self.cx.link.is_displaced = true,
        }
    }

    pub(super) fn on_news(&mut self, news: Vec<Change>) {
        for item in news {
            match item {
                Change::Started(id) => {
                    self.cx.note_start(id);
                    if self.cx.timeline.log().inside.as_ref().is_some_and(|inside| inside.id == id) {
                        self.foreground.doubt(self.cx.now.at);
                    } else if let Some(at) = self.cx.timeline.log().command(id).and_then(|command| command.start) {
                        self.foreground.forget_prompt(at);
                    }
                    self.waits.notify_started(|waits_for| waits_for == id);
                }
                Change::Ended(id) => {
                    self.inside.forget_input();
                    self.on_command_end(id);
                }
                Change::InsideEnded(id) => self.on_inside_end(id),
                Change::Prompt(status) => {
                    self.cx.note_stopped_jobs(Some(status));
                    self.on_prompt();
                }
                Change::Query { query, to } => self.on_query(&query, to),
                Change::LimitHit(hit) => self.cx.notify_limit_hit(hit),
                Change::Path => {
                    let path = self.cx.timeline.shell().path.as_deref();
                    let tools = match self.cx.follower.is_replaying {
                        _ if self.cx.shared.meta.confinement.container.is_some() => {
                            toolchains::tools_on(&ContainerFiles::of_process(self.cx.timeline.shell().pid), path)
                        }
                        true => self.cx.shared.backends.toolchains.recent(self.cx.now.at, self.cx.host(), path),
                        false => toolchains::tools_on(self.cx.host(), path),
                    };
                    self.cx.timeline.set_tools(tools);
                }
            }
        }
        let awaits_marker = !self.cx.timeline.ends_without_marker().is_empty() && !self.cx.has_unread();
        self.cx.follower.marker_missed_at =
            awaits_marker.then(|| self.cx.follower.marker_missed_at.unwrap_or(self.cx.now.at));
    }

    pub(super) fn on_prompt(&mut self) {
        (self.foreground.is_heuristic, self.foreground.was_not_ready) =
            (!self.cx.shared.spec.handover.has_hooks(), false);
        self.foreground.check_shell_image(&self.cx);
        // The kernel's state may be newer than this prompt, which is read only now, and it is not sent again.
        let is_editing = self.cx.timeline.log().current.is_some()
            && self.foreground.state.is_some_and(|s| s.foreground == wire::Activity::Editor);
        (self.foreground.editor_since, self.foreground.report_key) = (is_editing.then_some(self.cx.now.at), None);
        // The same for the lines that are open now.
        self.foreground.state_pending |= self.cx.timeline.shell().typed_lines.are_open();
        self.waits.notify_prompt();
        self.run_pending();
        self.waits.finish_for_lines(&mut self.cx, &self.foreground);
    }

    pub(super) fn on_command_end(&mut self, id: u32) {
        if let Some(enforcer) = &mut self.limit_enforcer {
            enforcer.end(&mut self.cx, id);
        }
        self.waits.notify_started(|waits_for| waits_for == id);
        self.cx.put_on_record(id);
        let code = self.cx.timeline.log().command(id).and_then(|c| c.end.as_ref()).and_then(|e| e.exit);
        self.cx.note_stopped_jobs(code);
        self.on_prompt();
        self.waits.finish_where(&mut self.cx, &self.foreground, |w| w.command == Some(id), EndedBy::Ended);
    }

    pub(super) fn on_query(&mut self, query: &terminal::Query, to: u64) {
        if self.cx.follower.is_replaying {
            // A later event shows whether it was answered.
            let answered = self.cx.timeline.queries().answered;
            while self.cx.follower.unanswered.front().is_some_and(|(_, to)| *to <= answered) {
                self.cx.follower.unanswered.pop_front();
            }
            return self.cx.follower.unanswered.push_back((query.clone(), to));
        }
        if to <= self.cx.timeline.queries().answered {
            return;
        }
        let size = (self.cx.timeline.cols(), self.cx.timeline.rows());
        let mut cursor = || {
            let cursor = self.drawing.screen_at(&self.cx, to).cursor();
            (cursor.row, cursor.col)
        };
        let bytes = query.answer(&mut cursor, size);
        if !bytes.is_empty() {
            self.cx.timeline.set_answered(to);
            self.cx.link.send(ToHolder::Answer { query: Offset(to), bytes });
            // The program that reads waits for this reply and not for a person.
            (self.foreground.state, self.foreground.state_pending) = (None, false);
        }
    }

    pub(super) fn on_done(&mut self, seq: u32, status: Status, value: u64, shown_by: ShownBy) {
        match self.cx.link.calls.remove(&seq) {
            Some(Call::Run { wait, started }) => self.on_run_done(status, value, wait, started),
            Some(Call::Input { key, wait, sent, typed }) => {
                let answer = (status, value, shown_by);
                let (result, waiter) = on_input_done(&mut self.cx, &mut self.foreground, answer, key, wait, sent);
                if let Some(waiter) = waiter {
                    self.waits.begin(&mut self.cx, &mut self.foreground, &self.inside, &mut self.drawing, waiter);
                }
                let _ = typed.send(result);
            }
            Some(Call::Line { wait, started, .. }) => self.on_line_typed((status, value), wait, started),
            Some(Call::Signal { is_foreground, ignored_by, reply }) => {
                on_signal_done(&mut self.cx, &mut self.foreground, status, value, (is_foreground, ignored_by), reply);
            }
            Some(Call::Plain(reply)) => {
                let _ = reply.send(self.cx.plain_result(status, value));
            }
            Some(Call::Terminate(reply)) => {
                let left = if status == Status::Ok { 0 } else { 1 };
                self.cx.link.terminators.push(reply);
                self.cx.link.notify_terminators(Ended { killed: value, left });
            }
            // The editor lost the terminal again, or the shell has not read our keys yet: retry if the state stays.
            Some(Call::Report) if status != Status::Ok => {
                self.foreground.report_key = None;
                self.foreground.editor_since = self.foreground.editor_since.map(|_| self.cx.now.at);
            }
            Some(Call::Report) => {
                // A shell without the key is known by the time alone.
                let handover = &self.cx.shared.spec.handover;
                let has_key = !handover.is_in_band() && handover.line().is_none();
                if let Some(key) = &mut self.foreground.report_key {
                    (key.is_written, key.is_read) = (true, !has_key);
                }
            }
            None => {}
        }
    }

    /// The rules of this server decide, and not the holder's, because another version may have started the holder.
    pub(in crate::sessions::session::machine) fn on_observed(&mut self, observed: &Observed) {
        let state = observed.state();
        let rule = foreground::activity(&observed.facts).rule;
        self.foreground.read_bytes = read_bytes(&observed.facts, state.pid);
        self.foreground.rivals.clone_from(&observed.facts.rivals);
        tracing::trace!(session = %self.cx.shared.id, rule, pid = state.pid, "the foreground was sampled");
        if observed.is_new || self.foreground.state.is_some_and(|before| before != state) {
            self.on_state(state);
        }
    }

    fn on_state(&mut self, state: State) {
        self.cx.timeline.record_known_answers(state.answered.0);
        // The holder sends another state after the input; one from before it is out of date.
        if self.foreground.typing > 0 || self.cx.is_answer_on_its_way() {
            return;
        }
        if self.foreground.state.is_some_and(|before| before.group != state.group) {
            // The program that reads now has received no part of a line.
            self.cx.timeline.clear_begun_line();
        }
        self.foreground.state = Some(state);
        let scanner = &self.cx.timeline.output().scanner;
        match (state.foreground.waits(), state.canonical) {
            (true, false) if scanner.line_is_open() => {
                self.foreground.editor_waited_at = Some((scanner.position(), state.group));
            }
            // This program reads without an editor.
            (true, true) => self.foreground.editor_waited_at = None,
            _ => {}
        }
        let waits = state.foreground.is_a_waiting_shell();
        if let Some(key) = self.foreground.report_key.as_mut().filter(|key| key.is_written && waits) {
            key.is_read = true;
        }
        self.cx.jobs.may_have_stopped |= state.foreground == wire::Activity::Stopped;
        self.foreground.sampled_at = self.cx.follower.tail().journal.0;
        // The painting program was killed or disconnected; the process group that has the terminal now has painted
        // nothing.
        let read_to = self.cx.timeline.output().scanner.position();
        if self.foreground.paint.is_left_to(state.group, read_to) {
            self.cx.timeline.end_main_paint();
        }
        if self.cx.paints() {
            self.foreground.painted_at = Some(self.cx.now.at);
        }
        self.check_typed_command();
        if self.foreground.is_heuristic && self.foreground.reads_commands(&self.cx) {
            self.run_pending();
        }
        // A shell whose prompt was never reported has not read our script, or asks for input by its editor. A shell
        // without our hooks has no report key: its command ends when the shell reads again.
        let is_odd = !self.foreground.is_heuristic
            && (self.cx.timeline.log().current.is_some() || !self.cx.timeline.shell().prompt_seen);
        let editor_has_it = state.foreground == wire::Activity::Editor && is_odd;
        match (
            (editor_has_it && !self.cx.timeline.shell().still_inside)
                || self.foreground.has_replaced_itself(&self.cx, state),
            self.foreground.editor_since,
        ) {
            (true, None) => self.foreground.editor_since = Some(self.cx.now.at),
            (false, _) => self.foreground.editor_since = None,
            (true, Some(_)) => {}
        }
        self.check_foreign_shell(state);
        self.pending.refuse(&self.cx, &self.foreground, &mut self.waits);
        self.foreground.state_pending = true;
    }

    /// Ends the waits that the new foreground state ends. Its meaning depends on the output before it, so that output
    /// is read first.
    pub(in crate::sessions::session::machine) fn check_foreground(&mut self) {
        self.foreground.compare_with_known_question(&self.cx);
        let settles_at = self.foreground.settles_at().max(self.foreground.believed_at);
        let is_settled = settles_at.is_none_or(|at| self.cx.now.at >= at);
        if self.foreground.state_pending
            && is_settled
            && !self.cx.has_unread()
            && !self.foreground.keys_are_on_their_way(&self.cx)
        {
            self.foreground.state_pending = false;
            self.end_lines_read_by_others();
            self.pending.refuse(&self.cx, &self.foreground, &mut self.waits);
            if let Some(ended_by) = self.foreground.pause(&self.cx, &self.inside) {
                self.foreground.remember_question(&self.cx);
                tracing::debug!(session = %self.cx.shared.id, rule = self.foreground.verdict(&self.cx).1, "the waits that end on wanted input end");
                self.waits.finish_where(&mut self.cx, &self.foreground, OpenWait::ends_on_input_wanted, ended_by);
            }
        }
    }

    /// The shell has the terminal and waits for a line behind the end of one: no line that was typed before is left. Of a shell
    /// that may not be examined, only that it has the terminal is known.
    fn end_lines_read_by_others(&mut self) {
        let shell = self.cx.timeline.shell();
        let waits = |state: State| {
            let has_read = matches!(state.foreground, wire::Activity::Editor | wire::Activity::Unknown)
                || self.foreground.is_heuristic && state.foreground.is_a_waiting_shell();
            has_read && state.group == shell.pid && !self.foreground.has_replaced_itself(&self.cx, state)
        };
        // fish keeps typed lines while it waits for the answer to a query.
        let is_asked = self.foreground.typing > 0 || self.cx.is_answer_on_its_way();
        // A shell without hooks reports no end of a line.
        let is_unreported = self.foreground.is_heuristic && (shell.has_typed_line || shell.typed_lines.are_open());
        let are_left = shell.typed_lines.are_doubtful() || is_unreported;
        if is_asked || !self.foreground.state.is_some_and(waits) {
            return;
        }
        if are_left {
            let rule = self.foreground.verdict(&self.cx).1;
            tracing::debug!(session = %self.cx.shared.id, rule, "all lines that were typed ahead have ended");
            self.cx.timeline.end_typed_lines();
            self.waits.finish_for_lines(&mut self.cx, &self.foreground);
        } else if !shell.typed_lines.are_open() {
            // The shell has handled every interrupt.
            self.cx.timeline.forget_interrupts();
        }
    }

    /// Handles the shell's exit while the holder still ends its descendants. The last output belongs to the last
    /// command, so this runs only after everything up to the tail is read.
    pub(super) fn check_exit(&mut self) {
        if self.cx.exit_told || self.cx.timeline.end().exit.is_none() {
            return;
        }
        // No marker comes any more: these commands have ended before the shell.
        self.expire_markers();
        let reason = views::exit_of(&self.cx.timeline).map_or_else(String::new, |e| e.reason);
        let now_us = self.cx.timeline.end().exit.map_or(0, |(_, _, us)| us);
        self.end_all(&reason, now_us);
    }

    /// Ends what runs in the session that has ended, and answers everybody who waits for something of it.
    fn end_all(&mut self, reason: &str, now_us: u64) {
        self.cx.exit_told = true;
        self.give_up_inside(CommandStatus::Terminated, reason);
        if let Some(id) = self.cx.timeline.end_current(CommandStatus::Terminated, reason, Boundary::Attested, now_us) {
            self.cx.put_on_record(id);
        }
        self.cx.note(
            self.cx.timeline.output().scanner.held_from(),
            SessionEvent::Exited(views::exit_of(&self.cx.timeline)),
        );
        self.waits.finish_where(&mut self.cx, &self.foreground, |_| true, EndedBy::Exited);
        self.waits.notify_started(|_| true);
        for pending in std::mem::take(&mut self.pending.at_prompt) {
            let _ = pending.started.send(Err(self.cx.ended_error()));
        }
        self.run_pending_inside();
        self.waits.notify_prompt();
    }

    /// All output has been read.
    pub(super) fn on_holder_gone(&mut self, traces: Option<&Traces>) {
        self.cx.link.is_gone = true;
        self.check_exit();
        if let Some(traces) = traces {
            self.cx.timeline.set_unrecorded_end_time(self.cx.now.us);
            explain_unrecorded_end(&mut self.cx.timeline, traces);
            let why = self.cx.timeline.end().unrecorded.clone().unwrap_or_default();
            self.end_all(&why, self.cx.now.us);
        }
        let asked = |call: &Call| matches!(call, Call::Terminate(_));
        for (_, call) in self.cx.link.calls.extract_if(|_, call| asked(call)) {
            if let Call::Terminate(reply) = call {
                self.cx.link.terminators.push(reply);
            }
        }
        self.cx.link.notify_terminators(Ended { killed: 0, left: 0 });
        let ended = self.cx.ended_error();
        self.foreground.give_up_calls(&mut self.cx, || ended.clone());
    }
}

/// The size of the process's read from the terminal.
fn read_bytes(facts: &foreground::Observation, pid: u32) -> Option<u64> {
    let processes = facts.jobs.iter().flat_map(|job| &job.processes);
    let mut all = facts.shell.iter().map(|shell| &shell.process).chain(processes);
    match all.find(|process| process.pid == pid)?.first {
        foreground::Wait::Reads { bytes } => Some(bytes),
        _ => None,
    }
}
