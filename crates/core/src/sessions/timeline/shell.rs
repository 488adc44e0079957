//! The shell of a session, as far as its reports and the typed input show it.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use super::command_log::Channel;
use crate::action::Tools;

#[derive(Debug, Default)]
pub(crate) struct Shell {
    pub(crate) pid: u32,
    pub(crate) cwd: Option<Arc<Path>>,
    pub(crate) path: Option<Vec<u8>>,
    /// The toolchains on that path; the reader of the timeline looks them up.
    pub(crate) tools: Arc<Tools>,
    pub(crate) prompt_seen: bool,
    /// The newest `R` report: the shell's editor is in use *inside* a command.
    pub(crate) still_inside: bool,
    /// Offset and time of an `R` report; output up to there will show whether the command had begun.
    pub(super) unclear: Option<(u64, u64)>,
    /// An `R` report came behind the newest end, whose marker has not been read: a hook of the prompt reads.
    pub(super) hook_reads: bool,
    /// A line typed at the prompt has not ended: it runs or is unfinished.
    pub(crate) has_typed_line: bool,
    pub(crate) typed_lines: TypedLines,
    /// The newest input did not end its line.
    pub(crate) line_is_begun: bool,
    /// The shell has lost its hooks, and commands are typed into it.
    pub(crate) is_hookless: bool,
    /// The newest command that ran to its end had no marker where it begins: something keeps the shell from printing it.
    pub(super) hides_beginnings: bool,
    /// The newest report said that the next command that fails ends the shell.
    pub(crate) has_errexit: bool,
}

/// How many lines were typed since the first prompt, and how many of them have ended. A program may have read some of them, and the
/// shell reports no end of those: they have ended when its editor waits behind the end of another.
#[derive(Debug, Default)]
pub(crate) struct TypedLines {
    recorded: u64,
    pub(crate) ended: u64,
    /// Those of inputs that the holder has not recorded yet.
    expected: Vec<(wire::Key, u64)>,
    /// The newest line end came behind the newest report of the shell.
    is_newest_unreported: bool,
    /// How many ends the shell has reported, of lines and of commands.
    reports: u64,
    /// How many lines were recorded before each of the newest reports, whose markers were not read. A replay reads a marker behind
    /// the input that was typed after it.
    unread: VecDeque<u64>,
    /// The interrupts whose prompts the shell may still report.
    interrupts: VecDeque<Interrupt>,
    /// The exit code with the newest report of a line's end.
    exit: Option<i32>,
}

/// How many lines and how many reports were recorded before an interrupt.
#[derive(Debug)]
struct Interrupt {
    lines: u64,
    reports: u64,
}

impl TypedLines {
    /// How many interrupts are kept. Of more, the shell reports fewer prompts than it got signals.
    const INTERRUPTS_KEPT: usize = 64;

    /// Whether any has not ended, as far as is known.
    pub(crate) fn are_open(&self) -> bool {
        self.ended < self.typed()
    }

    /// Whether lines are open that the shell may have handled without a report of their own: it has reported an end behind them, or an
    /// interrupt may have cost a report.
    pub(crate) fn are_doubtful(&self) -> bool {
        self.are_open() && (!self.is_newest_unreported || !self.interrupts.is_empty())
    }

    /// How many were typed, also those that are on their way.
    pub(crate) fn typed(&self) -> u64 {
        self.recorded + self.expected.iter().map(|(_, lines)| lines).sum::<u64>()
    }

    /// The code that the shell reported for the last line it ran, once all lines have ended and if no command ran after it.
    pub(crate) fn exit(&self) -> Option<i32> {
        // Of several open lines, a report does not say which one has ended.
        self.exit.filter(|code| *code >= 0 && !self.are_open())
    }

    pub(super) fn forget_exit(&mut self) {
        self.exit = None;
    }

    /// The holder records nothing more of this input; its lines, if it was expected.
    pub(super) fn forget(&mut self, key: &wire::Key) -> Option<u64> {
        let at = self.expected.iter().position(|(expected, _)| expected == key)?;
        Some(self.expected.swap_remove(at).1)
    }

    /// The holder records nothing more of any input.
    pub(super) fn forget_expected(&mut self) {
        self.expected.clear();
    }

    pub(super) fn end_all(&mut self) {
        self.ended = self.recorded;
    }

    /// A command has ended without a report of the shell. A command that was typed as a line ends where the shell waits for the next one.
    pub(super) fn end_unreported(&mut self, channel: Channel) {
        if channel == Channel::Line {
            self.end_all();
        }
        self.forget_exit();
    }

    /// Whether the shell may not have handled an interrupt.
    pub(super) fn are_interrupted(&self) -> bool {
        !self.interrupts.is_empty()
    }

    /// The shell waits for a line, so it has handled every interrupt.
    pub(super) fn forget_interrupts(&mut self) {
        self.interrupts.clear();
    }

    /// The shell was interrupted. At its prompt, it reports the next one, which ends no line.
    pub(super) fn interrupted(&mut self, reaches_shell: bool) {
        if reaches_shell && self.interrupts.len() < Self::INTERRUPTS_KEPT {
            self.interrupts.push_back(Interrupt { lines: self.recorded, reports: self.reports });
        }
    }

    /// The shell has reported an end, whose marker will be read.
    pub(super) fn reported(&mut self) {
        self.reports += 1;
        self.unread.push_back(self.recorded);
    }

    fn record(&mut self, lines: u64) {
        self.recorded += lines;
        if lines > 0 {
            (self.is_newest_unreported, self.exit) = (true, None);
        }
    }

    /// The marker of the oldest unread report was read: the end of a command of ours, or a prompt with this exit code. If an interrupt came
    /// when all lines before it had ended, the prompt may be the interrupt's: then no line counts as ended by it. If that was wrong, the
    /// editor that waits shows it.
    fn marked(&mut self, at_prompt: Option<i32>) {
        let earlier = self.reports.saturating_sub(self.unread.len() as u64);
        let recorded = self.unread.pop_front().unwrap_or(self.recorded);
        self.is_newest_unreported = self.recorded > recorded;
        let Some(exit) = at_prompt else {
            // The shell had handled them when it reported the command's end.
            self.interrupts.retain(|interrupt| interrupt.reports > earlier);
            return self.forget_exit();
        };
        let is_its_prompt = |it: &Interrupt| it.reports <= earlier && it.lines <= self.ended;
        if self.interrupts.front().is_some_and(is_its_prompt) {
            self.interrupts.pop_front();
            if self.are_open() {
                self.forget_exit();
            }
        } else if self.ended < recorded {
            self.ended += 1;
            // The code of a line that was interrupted in a hook of the prompt may be the interrupt's.
            self.exit = self.interrupts.iter().all(|it| it.reports > earlier).then_some(exit);
        }
    }
}

impl Shell {
    /// Input is on its way.
    pub(super) fn expects(&mut self, key: wire::Key, bytes: &[u8], runs_command: bool) {
        let lines = self.lines(wire::line_ends(bytes));
        if lines > 0 {
            self.typed_lines.expected.push((key, lines));
        }
        self.is_typed(bytes, lines > 0 && !runs_command);
    }

    /// Applies typed input that the holder has recorded.
    pub(super) fn typed(&mut self, key: &wire::Key, ends: u32, bytes: &[u8], runs_command: bool) {
        self.typed_lines.forget(key);
        let lines = self.lines(ends);
        self.typed_lines.record(lines);
        self.is_typed(bytes, lines > 0 && !runs_command);
    }

    /// The holder has typed nothing of this input, or has recorded it before.
    pub(super) fn forget_input(&mut self, key: &wire::Key) {
        if self.typed_lines.forget(key).is_some() {
            self.has_typed_line &= self.typed_lines.are_open();
        }
    }

    /// The shell reports the end of a command of ours, or its prompt with this exit code; a hook of its prompt may read now.
    pub(super) fn reports_an_end(&mut self, at_prompt: Option<i32>, hook_reads: bool) {
        let lines = &mut self.typed_lines;
        lines.marked(at_prompt);
        // A command may have read the lines that were typed while it ran.
        self.has_typed_line = hook_reads || (at_prompt.is_some() || lines.is_newest_unreported) && lines.are_open();
    }

    /// How many lines count of those that these line ends end. A program may read them, or leave them to the prompt.
    fn lines(&self, ends: u32) -> u64 {
        if self.prompt_seen || self.typed_lines.reports > 0 { ends.into() } else { 0 }
    }

    fn is_typed(&mut self, bytes: &[u8], ends_line_at_prompt: bool) {
        self.has_typed_line |= ends_line_at_prompt;
        // C-u, C-z and C-\ also discard the line.
        let ends = |b: &u8| wire::ENDS_LINE.contains(b) || [0x15, 0x1a, 0x1c].contains(b);
        self.line_is_begun = bytes.last().map_or(self.line_is_begun, |last| !ends(last));
    }
}
