//! The state of a command that was typed into a nested shell.

use tokio::time::Instant;
use wire::State;

use crate::limits;

/// The actor's state of a command that was typed into a nested shell.
#[derive(Debug, Default)]
pub(crate) struct NestedShell {
    /// When it was typed; the marker of its beginning comes soon after, or never.
    pub(crate) typed_at: Option<Instant>,
    reader: Reader,
    typed: Typed,
    /// The prompt at which the newest command was typed.
    prompt: Option<String>,
    /// The foreground was interrupted or stopped since.
    pub(crate) is_interrupted: bool,
    /// Since when, after an interrupt, the same program reads again.
    reads_since: Option<Instant>,
    /// Since when its shell shows the prompt at which it was typed.
    back_since: Option<Instant>,
    /// When the newest command ended, something else was typed, or the foreground was interrupted: what reads may not have
    /// reacted yet.
    stirred_at: Option<Instant>,
    /// Where the output ended when a line was typed that was no command: a shell prints its prompt behind that.
    line_typed_at: Option<u64>,
}

/// The reader of the terminal where the newest command was typed.
#[derive(Debug, Clone, Copy, Default)]
enum Reader {
    /// Nobody knows, as for a command that an earlier server typed.
    #[default]
    Unknown,
    /// So it was read before the command: a shell's editor does not use canonical mode, its `read` does.
    BeforeCommand(State),
    /// The same, and behind it a shell has reported the command's end, and nothing was typed since.
    ReportedEnd(State),
}

/// The input since the newest command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Typed {
    #[default]
    Nothing,
    /// One line, and no more, while this process read.
    LineFor(u32),
    /// Something else: a shell may read the rest of it, or be in a `read` of its own.
    Other,
}

impl NestedShell {
    /// A command is typed at this prompt, while the terminal is in this state.
    pub(crate) fn begin(&mut self, state: Option<State>, prompt: String) {
        let reader = state.map_or(Reader::Unknown, Reader::BeforeCommand);
        *self = Self { reader, prompt: Some(prompt), ..Self::default() };
    }

    /// The command has ended; if its marker said so, a shell reads next.
    pub(crate) fn end(&mut self, now: Instant, is_reported: bool) {
        let reader = match self.reader {
            Reader::BeforeCommand(state) if is_reported => Reader::ReportedEnd(state),
            _ => Reader::Unknown,
        };
        let typed = if self.typed == Typed::Nothing { Typed::Nothing } else { Typed::Other };
        let (prompt, line_typed_at) = (self.prompt.take(), self.line_typed_at);
        *self = Self { reader, stirred_at: Some(now), prompt, typed, line_typed_at, ..Self::default() };
    }

    /// A command of the session's own shell has ended, and a nested shell in it, too.
    pub(crate) fn forget_input(&mut self) {
        (self.typed, self.prompt) = (Typed::Nothing, None);
        (self.stirred_at, self.line_typed_at) = (None, None);
    }

    /// Something else than a command is typed, which may start another program; at this prompt, if a shell is there.
    pub(crate) fn note_input(&mut self, prompt: Option<String>) {
        if let Reader::ReportedEnd(_) = self.reader {
            self.reader = Reader::Unknown;
        }
        self.typed = Typed::Other;
        self.prompt = prompt.or(self.prompt.take());
    }

    /// It is one line, which is for this process.
    pub(crate) fn note_line_for(&mut self, reader: Option<u32>) {
        self.typed = reader.map_or(Typed::Other, Typed::LineFor);
    }

    /// Such input is on its way to its reader; `line_at`: the end of the output, if it ends a line.
    pub(crate) fn await_reaction(&mut self, now: Instant, line_at: Option<u64>) {
        self.stirred_at = Some(now);
        self.line_typed_at = line_at.or(self.line_typed_at);
    }

    /// Whether output has come since a line was typed that was no command. Without any, not even its echo, its reader
    /// may not have it yet.
    pub(crate) fn has_reacted(&self, output_to: u64) -> bool {
        self.line_typed_at.is_none_or(|at| output_to > at)
    }

    /// Whether a shell that reads is at its prompt, as far as input shows. Either it has ended a command, and nothing else
    /// was typed since; or the unfinished line is the prompt at which the newest command or input was typed. If nothing was
    /// typed at this shell, for example because a typed line has started it, the line must look like a prompt.
    pub(crate) fn is_at_prompt(
        &self,
        reader: u32,
        line: impl FnOnce() -> String,
        looks: impl Fn(&str) -> bool,
    ) -> bool {
        let is_new = matches!(self.typed, Typed::LineFor(typed_at) if typed_at != reader);
        match &self.prompt {
            Some(_) if self.typed == Typed::Nothing => true,
            _ if is_new => looks(&line()),
            Some(prompt) => !prompt.is_empty() && *prompt == line(),
            None => self.typed == Typed::Nothing && looks(&line()),
        }
    }

    /// Whether a shell is known to read behind this process group.
    pub(crate) fn is_known(&self, group: u32) -> bool {
        matches!(self.reader, Reader::ReportedEnd(state) if state.group == group)
    }

    /// The process that reads next, if a shell has ended a command and nothing was typed since.
    pub(crate) fn known_reader(&self) -> Option<u32> {
        match self.reader {
            Reader::ReportedEnd(state) => Some(state.pid),
            Reader::Unknown | Reader::BeforeCommand(_) => None,
        }
    }

    /// The foreground was interrupted or stopped, perhaps while a command runs in the nested shell.
    pub(crate) fn interrupt(&mut self, now: Instant, runs: bool) {
        self.is_interrupted |= runs;
        self.stirred_at = Some(now);
    }

    /// Whether the foreground may still react to what happened a moment ago.
    pub(crate) fn is_settling(&self, now: Instant) -> bool {
        self.stirred_at.is_some_and(|at| now < at + limits::INSIDE_SETTLES)
    }

    /// Whether the program that reads the terminal now is the one that read before the command.
    pub(crate) fn is_read_as_before(&self, state: State) -> bool {
        match self.reader {
            Reader::BeforeCommand(before) => (before.pid, before.canonical) == (state.pid, state.canonical),
            Reader::Unknown | Reader::ReportedEnd(_) => true,
        }
    }

    /// Whether the typed command should have begun by now.
    pub(crate) fn is_overdue(&self, now: Instant) -> bool {
        self.typed_at.is_some_and(|at| now >= at + limits::INSIDE_BEGINS)
    }

    /// Whether the same program has been reading long enough after an interrupt.
    pub(crate) fn is_thrown_away(&mut self, now: Instant, seems_thrown_away: bool) -> bool {
        if !seems_thrown_away {
            self.reads_since = None;
            return false;
        }
        *self.reads_since.get_or_insert(now) + limits::INSIDE_THROWN <= now
    }

    /// Whether its shell has been back at its prompt for so long that the marker of its end will not come.
    pub(crate) fn is_back_for_long(&mut self, now: Instant, is_back: bool) -> bool {
        self.back_since = self.back_since.or(Some(now)).filter(|_| is_back);
        self.back_since.is_some_and(|at| now >= at + limits::INSIDE_SETTLES)
    }

    /// Whether this unfinished line is the prompt at which the command was typed.
    pub(crate) fn is_its_prompt(&self, line: &str) -> bool {
        !line.is_empty() && self.prompt.as_deref() == Some(line)
    }

    /// When to check the nested command again, which has begun or not.
    pub(crate) fn next_at(&self, has_begun: bool) -> Option<Instant> {
        let begins = self.typed_at.filter(|_| !has_begun).map(|at| at + limits::INSIDE_BEGINS);
        let thrown = self.reads_since.map(|at| at + limits::INSIDE_THROWN);
        let back = self.back_since.map(|at| at + limits::INSIDE_SETTLES);
        begins.into_iter().chain(thrown).chain(back).min()
    }
}
