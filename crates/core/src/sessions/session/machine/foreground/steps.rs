//! The foreground of the session: its state by the kernel, as the holder samples it, and its meaning together with the
//! output and the shell's reports.
//!
//! The kernel's state from before an input, a signal or a reply is out of date after it; the holder sends another one.

use std::path::Path;

use foreground::{Situation, Verdict};
use tokio::time::Instant;
use wire::State;

use crate::action::{ActionError, EndedBy, Foreground};
use crate::host::Process;
use crate::limits;
use crate::sessions::render::range;
use crate::sessions::session::machine::context::Context;
use crate::sessions::session::machine::foreground::state::{ForegroundState, KnownQuestions};
use crate::sessions::session::machine::nested_command::programs::{Program, indents_lines};
use crate::sessions::session::machine::nested_command::state::NestedShell;
use crate::sessions::session::machine::waits::state::{OpenWait, OpenWaits};
use crate::sessions::session::question_ending::QuestionEnding;
use crate::sessions::timeline::{Channel, judged_end};

impl ForegroundState {
    /// The command that ran before this server is known; its foreground may not be. A new shell before its first prompt is at work.
    pub(crate) fn await_first_state(&mut self, cx: &Context) {
        let is_from_before = cx.timeline.shell().prompt_seen || cx.timeline.log().current.is_some();
        if is_from_before && !self.is_idle(cx) && self.state.is_none() {
            self.first_awaited_until = Some(cx.now.at + limits::FIRST_STATE);
        }
    }

    /// Whether requests wait for the first state.
    pub(crate) fn awaits_first_state(&mut self, cx: &Context) -> bool {
        let awaits = self.lacks_first_state(cx);
        if !awaits {
            self.first_awaited_until = None;
        }
        awaits
    }

    /// Whether the foreground of what ran before this server is not known yet.
    pub(crate) fn lacks_first_state(&self, cx: &Context) -> bool {
        let is_unknown = self.state.is_none() && !self.is_idle(cx);
        is_unknown && self.first_awaited_until.is_some_and(|until| cx.now.at < until)
    }

    /// Whether the shell's process reads the terminal otherwise than at its prompt, because it runs another program by
    /// now.
    pub(crate) fn has_replaced_itself(&self, cx: &Context, state: State) -> bool {
        let is_odd = match state.foreground {
            wire::Activity::Editor => cx.timeline.shell().has_typed_line,
            wire::Activity::ShellReads => cx.timeline.shell().has_typed_line || cx.timeline.log().current.is_some(),
            _ => false,
        };
        is_odd && cx.timeline.shell().prompt_seen && !self.is_heuristic && self.is_replaced(cx)
    }

    /// Records the shell's program image: nothing runs, so the process is still the shell that has reported.
    pub(crate) fn check_shell_image(&mut self, cx: &Context) {
        if self.image.is_none() && !cx.follower.is_replaying && cx.shared.spec.handover.has_hooks() {
            self.image = cx.host().image(cx.timeline.shell().pid);
        }
    }

    /// Whether nothing runs: no command of ours, and no line typed at the prompt.
    pub(crate) fn is_idle(&self, cx: &Context) -> bool {
        let typed_line = cx.timeline.shell().has_typed_line || self.foreign_program_runs(cx);
        cx.timeline.log().newest_running().is_none() && cx.timeline.shell().prompt_seen && !typed_line
    }

    /// Whether a program, or the shell's own `read`, has the terminal although no command was handed over.
    pub(crate) fn foreign_program_runs(&self, cx: &Context) -> bool {
        let has_it = |s: State| {
            let somebody_reads = matches!(s.foreground, wire::Activity::ShellReads | wire::Activity::Reads);
            s.group != cx.timeline.shell().pid || somebody_reads
        };
        cx.timeline.log().current.is_none()
            && cx.timeline.shell().prompt_seen
            && !self.is_heuristic
            && self.state.is_some_and(has_it)
    }

    /// The public foreground state, derived from the kernel's state and the screen.
    pub(crate) fn foreground(&self, cx: &Context) -> Foreground {
        match self.verdict(cx).0 {
            Verdict::Idle => Foreground::Idle,
            Verdict::Running => Foreground::Running,
            Verdict::InputWanted => Foreground::InputWanted,
            Verdict::PasswordWanted => Foreground::PasswordWanted,
            Verdict::Fullscreen { .. } => Foreground::Fullscreen,
            Verdict::Stopped => Foreground::Stopped,
        }
    }

    /// The state of the foreground by the rules of the crate `foreground`, and the rule that decides.
    pub(crate) fn verdict(&self, cx: &Context) -> (Verdict, &'static str) {
        let seen = self.state.map(|state| (state.foreground, state.modes()));
        let shell = &cx.timeline.shell();
        let situation = Situation {
            is_idle: self.is_idle(cx),
            has_stopped_job: cx.jobs.has_stopped,
            paints: cx.paints(),
            line_is_open: cx.timeline.output().scanner.line_is_open(),
            prompt_seen: shell.prompt_seen,
            is_heuristic: self.is_heuristic,
            has_command: cx.timeline.log().current.is_some(),
            runs: cx.timeline.log().newest_running().is_some(),
            uses_editor: shell.still_inside,
            is_typed: self.typed_command_at(cx).is_some() || self.keys_due_at(cx).is_some(),
            asks_as_before: self.believed_at.is_some_and(|at| cx.now.at >= at),
        };
        foreground::verdict(seen, situation)
    }

    /// The result of waits that end on wanted input, if they end now.
    pub(crate) fn pause(&self, cx: &Context, inside: &NestedShell) -> Option<EndedBy> {
        let is_unsettled = self.settles_at().is_some_and(|at| cx.now.at < at);
        // The nested shell reads, but has not yet read the typed line.
        let is_unread = cx.timeline.log().inside.as_ref().is_some_and(|inside| !inside.has_begun);
        let is_undecided = is_unread || inside.is_undecided(cx, self);
        if self.typing > 0 || self.editor_since.is_some() || is_unsettled || is_undecided {
            return None;
        }
        let is_idle = self.is_idle(cx);
        match self.verdict(cx).0 {
            Verdict::InputWanted | Verdict::PasswordWanted | Verdict::Fullscreen { asks: true } => {
                Some(EndedBy::InputWanted)
            }
            Verdict::Stopped if !is_idle => Some(EndedBy::Stopped),
            // The shell reads again without a report of it.
            Verdict::Idle if self.is_heuristic && !is_idle => Some(EndedBy::InputWanted),
            Verdict::Fullscreen { asks: false } | Verdict::Stopped | Verdict::Idle | Verdict::Running => None,
        }
    }

    /// Whether a program waits for a password, or behind a line that it has left unfinished: a question. A program that
    /// takes keys while it works, as a server does, has finished its line or has the whole screen.
    pub(crate) fn asks_a_question(&self, cx: &Context, inside: &NestedShell) -> bool {
        let is_question = match self.verdict(cx).0 {
            Verdict::PasswordWanted => true,
            Verdict::InputWanted => cx.timeline.output().scanner.line_is_open(),
            Verdict::Fullscreen { .. } | Verdict::Stopped | Verdict::Idle | Verdict::Running => false,
        };
        is_question && self.pause(cx, inside) == Some(EndedBy::InputWanted)
    }

    /// Notes since when a question stands, for the waits that it ends.
    pub(crate) fn note_question(&mut self, cx: &Context, inside: &NestedShell, waits: &OpenWaits) {
        if cx.has_unread() {
            return;
        }
        let stands = waits.open.iter().any(OpenWait::ends_on_question) && self.asks_a_question(cx, inside);
        self.asks_since = if stands { self.asks_since.or(Some(cx.now.at)) } else { None };
    }

    /// Remembers a question that a program asks while it polls, for its next ones.
    pub(crate) fn remember_question(&mut self, cx: &Context) {
        const ENDINGS_MAX: usize = 8;
        let Some(state) = self.state.filter(|s| s.foreground == wire::Activity::Polls) else { return };
        let is_question = self.verdict(cx).0 == Verdict::InputWanted && cx.timeline.output().scanner.line_is_open();
        let Some(ending) = is_question.then(|| question_ending(cx)).flatten() else { return };
        let (group, pid, canonical) = (state.group, state.pid, state.canonical);
        let known = self.known_questions.take();
        let known = known.filter(|known| (known.group, known.pid, known.canonical) == (group, pid, canonical));
        let mut known = known.unwrap_or(KnownQuestions { group, pid, canonical, endings: Vec::new() });
        if known.endings.len() < ENDINGS_MAX && !known.endings.contains(&ending) {
            known.endings.push(ending);
        }
        self.known_questions = Some(known);
    }

    /// Whether the program, which wakes up by itself soon, asks as it did before: then a short silence is enough.
    pub(crate) fn compare_with_known_question(&mut self, cx: &Context) {
        self.believed_at = None;
        let (Some(known), Some(state)) = (&self.known_questions, self.state) else { return };
        let is_same = (known.group, known.pid, known.canonical) == (state.group, state.pid, state.canonical);
        if is_same
            && state.foreground == wire::Activity::PollsForATime
            && cx.timeline.output().scanner.line_is_open()
            && !cx.has_unread()
            && question_ending(cx).is_some_and(|ending| known.endings.contains(&ending))
        {
            self.believed_at = self.last_output.map(|at| at + limits::QUESTION_BELIEVED);
        }
    }

    /// Whether the shell's process runs another program since an `exec`: its command line differs from the one at the
    /// start, or its program image from the one that has reported.
    pub(crate) fn is_replaced(&self, cx: &Context) -> bool {
        if self.image.is_some_and(|ours| cx.host().image(cx.timeline.shell().pid).is_some_and(|now| now != ours)) {
            return true;
        }
        let ours: Vec<_> = cx.shared.spec.argv.iter().map(|a| String::from_utf8_lossy(a)).collect();
        let now = cx.host().command_line(cx.timeline.shell().pid);
        // A process that has ended has no command line.
        !now.is_empty() && now != ours.join(" ")
    }

    /// Whether the shell itself has the terminal and waits for input, so that no other program reads what is typed now.
    pub(crate) fn reads_commands(&self, cx: &Context) -> bool {
        self.is_read_by_shell(cx.timeline.shell().pid)
    }

    /// Fails the calls that were sent over the old connection.
    pub(crate) fn give_up_calls(&mut self, cx: &mut Context, why: impl Fn() -> ActionError) {
        (self.typing, self.report_key) = (0, None);
        cx.timeline.forget_requests();
        cx.link.give_up_calls(why);
    }

    /// The foreground for answers and lists. Between the reported end of a command in a nested shell and the kernel's next
    /// state, that shell is on its way to its prompt.
    pub(crate) fn told_foreground(&self, cx: &Context) -> Foreground {
        let is_at_end = self.is_on_its_way_to_prompt(cx);
        match self.foreground(cx) {
            Foreground::Running if is_at_end && cx.timeline.log().current.is_some() => Foreground::InputWanted,
            // The session's own shell was replaced.
            Foreground::Running if is_at_end => Foreground::Idle,
            foreground => foreground,
        }
    }

    /// Has the holder record the end of a command that the shell did not report.
    pub(crate) fn judge(&mut self, cx: &mut Context, id: u32) {
        let is_hookless = self.is_heuristic && cx.shared.spec.handover.has_hooks();
        if let Some(frame) = cx.timeline.log().command(id).and_then(|c| judged_end::to_holder(c, is_hookless)) {
            cx.link.send(frame);
        }
    }

    /// When a typed command that seems to have ended is old enough for its end to count.
    pub(crate) fn typed_command_at(&self, cx: &Context) -> Option<Instant> {
        let typed = cx.timeline.log().current_command().filter(|c| c.channel == Channel::Line)?;
        self.reads_commands(cx).then(|| cx.begun_at(typed.id) + limits::TYPED_AGE_MIN)
    }

    /// When the full-screen program in the foreground has painted last.
    pub(crate) fn screen_painted_at(&self, cx: &Context) -> Option<Instant> {
        self.painted_at.filter(|_| self.foreground(cx) == Foreground::Fullscreen)
    }

    /// Whether a command can be run inside: a shell is at its prompt, or may be, behind a connection.
    pub(crate) fn may_be_a_shell(&self, cx: &Context) -> bool {
        self.is_on_its_way_to_prompt(cx) || self.seems_at_a_prompt(cx) && self.check_is_a_shell(cx).is_ok()
    }

    /// Whether a nested shell has reported a command's end, and the kernel has shown nothing since.
    pub(crate) fn is_on_its_way_to_prompt(&self, cx: &Context) -> bool {
        self.typing == 0 && self.state.is_none() && cx.timeline.log().nested_shell_reads_next()
    }

    /// Whether the foreground program passes the keys on.
    pub(crate) fn is_relayed(&self, cx: &Context) -> bool {
        self.foreground_program(cx).is_some_and(|(program, _)| program == Program::Carrier)
    }

    /// The program that reads the terminal, and its process.
    pub(crate) fn foreground_program(&self, cx: &Context) -> Option<(Program, Process)> {
        let state = self.state?;
        let process = cx.host().process(state.pid).or_else(|| cx.host().process(state.group))?;
        Some((Program::of(&process.name), process))
    }

    /// Whether a program reads the keys here, in a mode of its own, and is known to pass them on to no other terminal.
    pub(crate) fn is_read_here(&self, cx: &Context) -> bool {
        self.state.is_some_and(|state| !state.canonical)
            && self.foreground_program(cx).is_some_and(|(program, _)| program != Program::Carrier)
    }

    /// Whether the editor that reads here indents each line as the one before it and has asked for no pastes. A virtual environment
    /// gives the program another name than its file has.
    pub(crate) fn indents_what_is_typed(&self, cx: &Context) -> bool {
        let reader = self.state.filter(|state| !state.canonical && state.foreground.waits());
        let executable = reader.and_then(|state| cx.host().executable(state.pid));
        let has_asked = cx.timeline.output().scanner.modes().bracketed_paste;
        !has_asked && executable.as_deref().and_then(Path::file_name).is_some_and(indents_lines)
    }

    /// Refuses what is not a shell at its prompt: it would take the line for its own input.
    pub(crate) fn check_is_a_shell(&self, cx: &Context) -> Result<(), ActionError> {
        let reader = self.foreground_program(cx);
        let (name, why) = match (self.state, &reader) {
            (Some(state), Some((program, process))) => {
                let line = cx.host().command_line(process.pid());
                if program.may_be_at_prompt(state.canonical, self.read_bytes, &line) {
                    return Ok(());
                }
                (process.name.as_str(), if program.is_shell() { "is not at its prompt" } else { "is not a shell" })
            }
            _ => ("the program that reads", "is not known to be a shell"),
        };
        let name = terminal::quote::line(name);
        let problem =
            format!("{name} {why}, and nothing was typed; give it a line as input (is_input, send_input_to_terminal)");
        Err(ActionError::Invalid { field: "inside", problem })
    }

    /// Whether the foreground program waits for a line, as a shell does at its prompt.
    pub(crate) fn seems_at_a_prompt(&self, cx: &Context) -> bool {
        let is_others = |s: State| s.foreground == wire::Activity::Unknown && (s.echo || !s.canonical);
        match self.foreground(cx) {
            _ if self.typing > 0 || cx.timeline.log().inside.is_some() => false,
            Foreground::InputWanted => true,
            Foreground::Idle => self.is_heuristic && self.reads_commands(cx),
            Foreground::Running => self.state.is_some_and(is_others) && cx.timeline.output().scanner.line_is_open(),
            Foreground::PasswordWanted | Foreground::Fullscreen | Foreground::Stopped => false,
        }
    }

    /// Whether the foreground waits for a line, as a shell does at its prompt.
    pub(crate) fn waits_for_a_line(&self, cx: &Context) -> bool {
        self.typing == 0 && self.foreground(cx) == Foreground::InputWanted
    }
}

fn question_ending(cx: &Context) -> Option<QuestionEnding> {
    /// The mark of a question and the sequences behind it have fewer bytes.
    const ENDING_BYTES: u64 = 64;
    let end = cx.timeline.output().scanner.position();
    let newest = range::read(&cx.shared.reader, end.saturating_sub(ENDING_BYTES), end).ok()?;
    QuestionEnding::of(&newest.bytes)
}
