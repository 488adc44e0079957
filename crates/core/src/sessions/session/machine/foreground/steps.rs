//! The foreground of the session: its state by the kernel, as the holder samples it, and its meaning together with the
//! output and the shell's reports.
//!
//! The kernel's state from before an input, a signal or a reply is out of date after it; the holder sends another one.

use foreground::{Situation, Verdict};
use wire::{Observed, State};

use crate::action::{EndedBy, Foreground};
use crate::limits;
use crate::sessions::session::machine::foreground::state::KnownQuestions;
use crate::sessions::session::machine::session::Session;
use crate::sessions::session::machine::waits::state::OpenWait;

impl Session {
    /// The command that ran before this server is known; its foreground may not be. A new shell before its first prompt is at work.
    pub(in crate::sessions::session::machine) fn await_first_state(&mut self) {
        let is_from_before = self.cx.timeline.shell().prompt_seen || self.cx.timeline.log().current.is_some();
        if is_from_before && !self.is_idle() && self.foreground.state.is_none() {
            self.foreground.first_awaited_until = Some(self.cx.now.at + limits::FIRST_STATE);
        }
    }

    /// Whether requests wait for the first state.
    pub(in crate::sessions::session::machine) fn awaits_first_state(&mut self) -> bool {
        let awaits = self.lacks_first_state();
        if !awaits {
            self.foreground.first_awaited_until = None;
        }
        awaits
    }

    /// Whether the foreground of what ran before this server is not known yet.
    pub(in crate::sessions::session) fn lacks_first_state(&self) -> bool {
        let is_unknown = self.foreground.state.is_none() && !self.is_idle();
        is_unknown && self.foreground.first_awaited_until.is_some_and(|until| self.cx.now.at < until)
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
        let is_answer_on_its_way = self.cx.timeline.queries().answered > self.cx.timeline.queries().known_to_holder;
        if self.foreground.typing > 0 || is_answer_on_its_way {
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
        self.jobs.may_have_stopped |= state.foreground == wire::Activity::Stopped;
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
        if self.foreground.is_heuristic && self.reads_commands() {
            self.run_pending();
        }
        // A shell whose prompt was never reported has not read our script, or asks for input by its editor. A shell
        // without our hooks has no report key: its command ends when the shell reads again.
        let is_odd = !self.foreground.is_heuristic
            && (self.cx.timeline.log().current.is_some() || !self.cx.timeline.shell().prompt_seen);
        let editor_has_it = state.foreground == wire::Activity::Editor && is_odd;
        match (
            (editor_has_it && !self.cx.timeline.shell().still_inside) || self.has_replaced_itself(state),
            self.foreground.editor_since,
        ) {
            (true, None) => self.foreground.editor_since = Some(self.cx.now.at),
            (false, _) => self.foreground.editor_since = None,
            (true, Some(_)) => {}
        }
        self.check_foreign_shell(state);
        self.refuse_pending();
        self.foreground.state_pending = true;
    }

    /// Whether the shell's process reads the terminal otherwise than at its prompt, because it runs another program by
    /// now.
    fn has_replaced_itself(&self, state: State) -> bool {
        let is_odd = match state.foreground {
            wire::Activity::Editor => self.cx.timeline.shell().has_typed_line,
            wire::Activity::ShellReads => {
                self.cx.timeline.shell().has_typed_line || self.cx.timeline.log().current.is_some()
            }
            _ => false,
        };
        is_odd && self.cx.timeline.shell().prompt_seen && !self.foreground.is_heuristic && self.is_replaced()
    }

    /// Switches to heuristics if the shell's process reads the terminal but runs another program (`exec` in a start-up
    /// file).
    pub(in crate::sessions::session::machine) fn check_foreign_shell(&mut self, state: State) {
        let waits = state.foreground.is_a_waiting_shell();
        if !waits
            || self.foreground.is_heuristic
            || self.cx.timeline.log().current.is_some() && self.cx.timeline.shell().prompt_seen
        {
            return;
        }
        let Some(now) = self.cx.host().executable(self.cx.timeline.shell().pid) else { return };
        let ours = std::ffi::OsStr::new(&self.cx.shared.meta.shell);
        if now.file_name() != Some(ours) && !self.cx.timeline.shell().prompt_seen {
            self.goes_without_hooks();
        }
    }

    /// The shell will send no reports: from now on the kernel's state shows when typed commands end.
    pub(in crate::sessions::session::machine) fn goes_without_hooks(&mut self) {
        self.foreground.is_heuristic = true;
        self.waits.notify_prompt();
        if self.reads_commands() {
            self.run_pending();
        }
    }

    /// Records the shell's program image: nothing runs, so the process is still the shell that has reported.
    pub(in crate::sessions::session::machine) fn check_shell_image(&mut self) {
        if self.foreground.image.is_none() && !self.cx.follower.is_replaying && self.cx.shared.spec.handover.has_hooks()
        {
            self.foreground.image = self.cx.host().image(self.cx.timeline.shell().pid);
        }
    }

    /// Whether nothing runs: no command of ours, and no line typed at the prompt.
    pub(in crate::sessions::session::machine) fn is_idle(&self) -> bool {
        let typed_line = self.cx.timeline.shell().has_typed_line || self.foreign_program_runs();
        self.cx.timeline.log().newest_running().is_none() && self.cx.timeline.shell().prompt_seen && !typed_line
    }

    /// Whether a program, or the shell's own `read`, has the terminal although no command was handed over.
    pub(in crate::sessions::session::machine) fn foreign_program_runs(&self) -> bool {
        let has_it = |s: State| {
            let somebody_reads = matches!(s.foreground, wire::Activity::ShellReads | wire::Activity::Reads);
            s.group != self.cx.timeline.shell().pid || somebody_reads
        };
        self.cx.timeline.log().current.is_none()
            && self.cx.timeline.shell().prompt_seen
            && !self.foreground.is_heuristic
            && self.foreground.state.is_some_and(has_it)
    }

    /// The public foreground state, derived from the kernel's state and the screen.
    pub(crate) fn foreground(&self) -> Foreground {
        match self.verdict().0 {
            Verdict::Idle => Foreground::Idle,
            Verdict::Running => Foreground::Running,
            Verdict::InputWanted => Foreground::InputWanted,
            Verdict::PasswordWanted => Foreground::PasswordWanted,
            Verdict::Fullscreen { .. } => Foreground::Fullscreen,
            Verdict::Stopped => Foreground::Stopped,
        }
    }

    /// The state of the foreground by the rules of the crate `foreground`, and the rule that decides.
    fn verdict(&self) -> (Verdict, &'static str) {
        let seen = self.foreground.state.map(|state| (state.foreground, state.modes()));
        let shell = &self.cx.timeline.shell();
        let situation = Situation {
            is_idle: self.is_idle(),
            has_stopped_job: self.jobs.has_stopped,
            paints: self.cx.paints(),
            line_is_open: self.cx.timeline.output().scanner.line_is_open(),
            prompt_seen: shell.prompt_seen,
            is_heuristic: self.foreground.is_heuristic,
            has_command: self.cx.timeline.log().current.is_some(),
            runs: self.cx.timeline.log().newest_running().is_some(),
            uses_editor: shell.still_inside,
            is_typed: self.typed_command_at().is_some() || self.keys_due_at().is_some(),
            asks_as_before: self.foreground.believed_at.is_some_and(|at| self.cx.now.at >= at),
        };
        foreground::verdict(seen, situation)
    }

    /// The result of waits that end on wanted input, if they end now.
    pub(in crate::sessions::session::machine) fn pause(&self) -> Option<EndedBy> {
        let is_unsettled = self.foreground.settles_at().is_some_and(|at| self.cx.now.at < at);
        // The nested shell reads, but has not yet read the typed line.
        let is_unread = self.cx.timeline.log().inside.as_ref().is_some_and(|inside| !inside.has_begun);
        let is_undecided = is_unread || self.is_undecided();
        if self.foreground.typing > 0 || self.foreground.editor_since.is_some() || is_unsettled || is_undecided {
            return None;
        }
        let is_idle = self.is_idle();
        match self.verdict().0 {
            Verdict::InputWanted | Verdict::PasswordWanted | Verdict::Fullscreen { asks: true } => {
                Some(EndedBy::InputWanted)
            }
            Verdict::Stopped if !is_idle => Some(EndedBy::Stopped),
            // The shell reads again without a report of it.
            Verdict::Idle if self.foreground.is_heuristic && !is_idle => Some(EndedBy::InputWanted),
            Verdict::Fullscreen { asks: false } | Verdict::Stopped | Verdict::Idle | Verdict::Running => None,
        }
    }

    /// Whether a program waits for a password, or behind a line that it has left unfinished: a question. A program that
    /// takes keys while it works, as a server does, has finished its line or has the whole screen.
    fn asks_a_question(&self) -> bool {
        let is_question = match self.verdict().0 {
            Verdict::PasswordWanted => true,
            Verdict::InputWanted => self.cx.timeline.output().scanner.line_is_open(),
            Verdict::Fullscreen { .. } | Verdict::Stopped | Verdict::Idle | Verdict::Running => false,
        };
        is_question && self.pause() == Some(EndedBy::InputWanted)
    }

    /// Notes since when a question stands, for the waits that it ends.
    pub(in crate::sessions::session::machine) fn note_question(&mut self) {
        if self.cx.has_unread() {
            return;
        }
        let stands = self.waits.open.iter().any(OpenWait::ends_on_question) && self.asks_a_question();
        self.foreground.asks_since = if stands { self.foreground.asks_since.or(Some(self.cx.now.at)) } else { None };
    }

    /// Remembers a question that a program asks while it polls, for its next ones.
    fn remember_question(&mut self) {
        const ENDINGS_MAX: usize = 8;
        let Some(state) = self.foreground.state.filter(|s| s.foreground == wire::Activity::Polls) else { return };
        let is_question = self.verdict().0 == Verdict::InputWanted && self.cx.timeline.output().scanner.line_is_open();
        let Some(ending) = is_question.then(|| self.cx.question_ending()).flatten() else { return };
        let (group, pid, canonical) = (state.group, state.pid, state.canonical);
        let known = self.foreground.known_questions.take();
        let known = known.filter(|known| (known.group, known.pid, known.canonical) == (group, pid, canonical));
        let mut known = known.unwrap_or(KnownQuestions { group, pid, canonical, endings: Vec::new() });
        if known.endings.len() < ENDINGS_MAX && !known.endings.contains(&ending) {
            known.endings.push(ending);
        }
        self.foreground.known_questions = Some(known);
    }

    /// Whether the program, which wakes up by itself soon, asks as it did before: then a short silence is enough.
    fn compare_with_known_question(&mut self) {
        self.foreground.believed_at = None;
        let (Some(known), Some(state)) = (&self.foreground.known_questions, self.foreground.state) else { return };
        let is_same = (known.group, known.pid, known.canonical) == (state.group, state.pid, state.canonical);
        if is_same
            && state.foreground == wire::Activity::PollsForATime
            && self.cx.timeline.output().scanner.line_is_open()
            && !self.cx.has_unread()
            && self.cx.question_ending().is_some_and(|ending| known.endings.contains(&ending))
        {
            self.foreground.believed_at = self.foreground.last_output.map(|at| at + limits::QUESTION_BELIEVED);
        }
    }

    /// Ends the waits that the new foreground state ends. Its meaning depends on the output before it, so that output
    /// is read first.
    pub(in crate::sessions::session::machine) fn check_foreground(&mut self) {
        self.compare_with_known_question();
        let settles_at = self.foreground.settles_at().max(self.foreground.believed_at);
        let is_settled = settles_at.is_none_or(|at| self.cx.now.at >= at);
        if self.foreground.state_pending && is_settled && !self.cx.has_unread() && !self.keys_are_on_their_way() {
            self.foreground.state_pending = false;
            self.refuse_pending();
            if let Some(ended_by) = self.pause() {
                self.remember_question();
                tracing::debug!(session = %self.cx.shared.id, rule = self.verdict().1, "the waits that end on wanted input end");
                self.finish_where(OpenWait::ends_on_input_wanted, ended_by);
            }
        }
    }

    /// Whether the shell's process runs another program since an `exec`: its command line differs from the one at the
    /// start, or its program image from the one that has reported.
    pub(in crate::sessions::session::machine) fn is_replaced(&self) -> bool {
        if self
            .foreground
            .image
            .is_some_and(|ours| self.cx.host().image(self.cx.timeline.shell().pid).is_some_and(|now| now != ours))
        {
            return true;
        }
        let ours: Vec<_> = self.cx.shared.spec.argv.iter().map(|a| String::from_utf8_lossy(a)).collect();
        let now = self.cx.host().command_line(self.cx.timeline.shell().pid);
        // A process that has ended has no command line.
        !now.is_empty() && now != ours.join(" ")
    }

    /// Whether the shell itself has the terminal and waits for input, so that no other program reads what is typed now.
    pub(in crate::sessions::session::machine) fn reads_commands(&self) -> bool {
        self.foreground.is_read_by_shell(self.cx.timeline.shell().pid)
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
