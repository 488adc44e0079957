//! The state of a command that was typed into a nested shell.

use tokio::time::Instant;
use wire::State;

use crate::limits;

/// The actor's state of a command that was typed into a nested shell.
#[derive(Debug, Default)]
pub(crate) struct NestedShell {
    /// When it was typed; the marker of its beginning comes soon after, or never.
    pub(crate) typed_at: Option<Instant>,
    /// The process that read the terminal before, and whether in canonical mode: a shell's editor does not use it, its
    /// `read` does. Unknown for a command that an earlier server typed.
    reader: Option<(u32, bool)>,
    /// The foreground was interrupted or stopped since.
    pub(crate) is_interrupted: bool,
    /// Since when, after an interrupt, the same program reads again.
    reads_since: Option<Instant>,
    /// When the newest command ended or the foreground was interrupted: the nested shell may not be at its prompt yet.
    stirred_at: Option<Instant>,
}

impl NestedShell {
    /// A command is typed while the terminal is in this state.
    pub(crate) fn begin(&mut self, state: Option<State>) {
        *self = Self { reader: state.map(|s| (s.pid, s.canonical)), ..Self::default() };
    }

    /// The command has ended.
    pub(crate) fn end(&mut self, now: Instant) {
        *self = Self { stirred_at: Some(now), ..Self::default() };
    }

    /// The foreground was interrupted or stopped, perhaps while a command runs in the nested shell.
    pub(crate) fn interrupt(&mut self, now: Instant, runs: bool) {
        self.is_interrupted |= runs;
        self.stirred_at = Some(now);
    }

    /// Whether a command has ended or the foreground was interrupted a moment ago.
    pub(crate) fn is_settling(&self, now: Instant) -> bool {
        self.stirred_at.is_some_and(|at| now < at + limits::INSIDE_SETTLES)
    }

    /// Whether the program that reads the terminal now is the one that read before the command.
    pub(crate) fn is_read_as_before(&self, state: State) -> bool {
        self.reader.is_none_or(|reader| reader == (state.pid, state.canonical))
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

    /// When to check the nested command again, which has begun or not.
    pub(crate) fn next_at(&self, has_begun: bool) -> Option<Instant> {
        let begins = self.typed_at.filter(|_| !has_begun).map(|at| at + limits::INSIDE_BEGINS);
        let thrown = self.reads_since.map(|at| at + limits::INSIDE_THROWN);
        begins.into_iter().chain(thrown).min()
    }
}
