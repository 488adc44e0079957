//! The newest state of the session's foreground, as the holder samples it, and the doubts about it.

use tokio::time::Instant;
use wire::State;

use crate::limits;
use crate::sessions::session::fullscreen::Fullscreen;
use crate::sessions::session::question_ending::QuestionEnding;

/// The newest state of the foreground, and the doubts about it.
pub(crate) struct ForegroundState {
    /// The kernel's state; `None` while it is out of date.
    pub(crate) state: Option<State>,
    /// The waits have not been checked against the new state yet.
    pub(crate) state_pending: bool,
    /// When the editor was first seen to have the terminal although a command runs.
    pub(crate) editor_since: Option<Instant>,
    /// Since when, without new output, a program waits for the answer to a question that it has printed.
    pub(crate) asks_since: Option<Instant>,
    /// Other processes that wait for the terminal of a shell that waits for input, and so may take its keys.
    pub(crate) rivals: Vec<u32>,
    /// How many bytes the program asks for that waits in a read, if that is known.
    pub(crate) read_bytes: Option<u64>,
    /// When output came last.
    pub(crate) last_output: Option<Instant>,
    /// The newest questions that were recognised by a longer silence.
    pub(crate) known_questions: Option<KnownQuestions>,
    /// When the unfinished line, which ends like a known question, counts as one.
    pub(crate) believed_at: Option<Instant>,
    /// The end of the output when the kernel's state arrived last.
    pub(crate) sampled_at: u64,
    /// The report key, while its answer is awaited.
    pub(crate) report_key: Option<ReportKey>,
    /// Requests to type or to signal that are not answered: the kernel's state from before them is out of date after
    /// them.
    pub(crate) typing: usize,
    /// When a full-screen program last painted, left, or did something else than before.
    pub(crate) painted_at: Option<Instant>,
    /// Until then the newest state may be older than the command that runs.
    pub(crate) doubted_until: Option<Instant>,
    pub(crate) paint: Fullscreen,
    /// The shell sends no reports: the kernel's state shows when typed commands end.
    pub(crate) is_heuristic: bool,
    /// The program image ([`Host::image`](crate::host::Host::image)) of the shell that has reported.
    pub(crate) image: Option<u64>,
    /// Until then requests wait for the first state: a session from before this server would be reported as running
    /// although its program asks.
    pub(crate) first_awaited_until: Option<Instant>,
    /// The newest command was refused because the shell was not at its prompt.
    pub(crate) was_not_ready: bool,
    /// The end of the output when a program last waited in an editor, behind its prompt, and its process group.
    pub(crate) editor_waited_at: Option<(u64, u32)>,
}

/// The questions of a program that polls: the state of its foreground, and the ends of its lines.
#[derive(Debug)]
pub(crate) struct KnownQuestions {
    pub(crate) group: u32,
    pub(crate) pid: u32,
    pub(crate) canonical: bool,
    /// Few: a program ends its questions alike.
    pub(crate) endings: Vec<QuestionEnding>,
}

/// A pressed report key. A shell answers when it reads the key; on an overloaded machine that may take seconds.
#[derive(Debug)]
pub(crate) struct ReportKey {
    pressed_at: Instant,
    /// The holder has written it to the terminal.
    pub(crate) is_written: bool,
    /// The shell has read it, for it waits for more.
    pub(crate) is_read: bool,
}

impl ReportKey {
    pub(crate) fn pressed(now: Instant) -> Self {
        Self { pressed_at: now, is_written: false, is_read: false }
    }

    /// When a missing answer means that the hooks are gone.
    pub(crate) fn due_at(&self) -> Instant {
        self.pressed_at + if self.is_read { limits::REPORT_PATIENCE } else { limits::REPORT_READ_MAX }
    }
}

impl ForegroundState {
    pub(crate) fn new(is_heuristic: bool) -> Self {
        Self {
            state: None,
            state_pending: false,
            editor_since: None,
            asks_since: None,
            rivals: Vec::new(),
            read_bytes: None,
            last_output: None,
            known_questions: None,
            believed_at: None,
            sampled_at: 0,
            report_key: None,
            typing: 0,
            painted_at: None,
            doubted_until: None,
            paint: Fullscreen::default(),
            is_heuristic,
            image: None,
            first_awaited_until: None,
            was_not_ready: false,
            editor_waited_at: None,
        }
    }

    /// Input or a signal was handled, in full or not.
    pub(crate) fn on_typed(&mut self) {
        self.typing = self.typing.saturating_sub(1);
        self.state = None;
    }

    /// When to check again whether the shell's editor should have the terminal, or whether the report key was answered.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        match &self.report_key {
            Some(key) => Some(key.due_at()),
            None => self.editor_since.map(|at| at + limits::EDITOR_SUSPICION),
        }
    }

    /// When a full-screen program, or one that has just left full screen, counts as waiting for a key. Not at once, because
    /// it also reads keys between two paints and while it leaves. Or when the state belongs to a nested command that has
    /// just begun.
    pub(crate) fn settles_at(&self) -> Option<Instant> {
        self.painted_at.map(|at| at + limits::SCREEN_SETTLES).max(self.doubted_until)
    }

    /// A nested command has begun: the newest state may still show its shell, which read the line.
    pub(crate) fn doubt(&mut self, now: Instant) {
        (self.doubted_until, self.state_pending) = (Some(now + limits::INSIDE_BEGUN), true);
    }

    /// A command of the shell's has begun here: a state from before shows the shell at its prompt.
    pub(crate) fn forget_prompt(&mut self, begun_at: u64) {
        let is_older = self.sampled_at < begun_at;
        self.state.take_if(|state| is_older && state.foreground.is_a_waiting_shell());
    }

    /// Whether the shell with this pid has the terminal and waits for input.
    pub(crate) fn is_read_by_shell(&self, shell_pid: u32) -> bool {
        let is_its_turn = |s: State| s.foreground.is_a_waiting_shell() && s.group == shell_pid;
        self.typing == 0 && self.state.is_some_and(is_its_turn)
    }

    /// Input or a signal is on its way: the kernel's state from before is out of date.
    pub(crate) fn forget_state(&mut self) {
        self.typing += 1;
        (self.state, self.editor_since, self.asks_since) = (None, None, None);
        // An answer to the report key was about the time before; what the shell does after the input is asked anew.
        self.report_key = None;
    }
}
