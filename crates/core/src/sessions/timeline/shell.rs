//! The shell of a session, as far as its reports and the typed input show it.

use std::path::Path;
use std::sync::Arc;

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

/// How many lines were typed at the prompt, and how many of them have ended. A program may have read some of them, and the shell
/// reports no end of those: they have ended when its editor waits behind the end of another.
#[derive(Debug, Default)]
pub(crate) struct TypedLines {
    recorded: u64,
    pub(crate) ended: u64,
    /// Those of inputs that the holder has not recorded yet.
    expected: Vec<(wire::Key, u64)>,
    /// The newest line end came behind the newest report of the shell.
    is_newest_unreported: bool,
}

impl TypedLines {
    /// Whether the shell has reported an end, and more lines were typed before it.
    pub(crate) fn are_ahead(&self) -> bool {
        self.ended < self.typed() && !self.is_newest_unreported
    }

    /// How many were typed, also those that are on their way.
    pub(crate) fn typed(&self) -> u64 {
        self.recorded + self.expected.iter().map(|(_, lines)| lines).sum::<u64>()
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
}

/// How many lines these bytes end.
fn line_ends(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|b| wire::ENDS_LINE.contains(b)).count() as u64
}

impl Shell {
    /// Input is on its way.
    pub(super) fn expects(&mut self, key: wire::Key, bytes: &[u8], runs_command: bool) {
        let lines = self.lines_of(bytes, runs_command);
        if lines > 0 {
            self.typed_lines.expected.push((key, lines));
        }
        self.is_typed(bytes, lines);
    }

    /// Applies typed input that the holder has recorded.
    pub(super) fn typed(&mut self, key: &wire::Key, bytes: &[u8], runs_command: bool) {
        // The holder records no bytes of input that may be secret, as where fish has not given the echo back yet.
        let lines = self.typed_lines.forget(key).unwrap_or_else(|| self.lines_of(bytes, runs_command));
        self.typed_lines.recorded += lines;
        self.typed_lines.is_newest_unreported |= lines > 0;
        self.is_typed(bytes, lines);
    }

    /// The shell reports that a line of its prompt has ended, or a command of ours; a hook of its prompt may read now.
    pub(super) fn reports_an_end(&mut self, is_of_a_line: bool, hook_reads: bool) {
        let lines = &mut self.typed_lines;
        lines.ended = if is_of_a_line { lines.recorded.min(lines.ended + 1) } else { lines.recorded };
        lines.is_newest_unreported = false;
        self.has_typed_line = hook_reads || lines.are_ahead();
    }

    /// How many lines of the prompt these bytes end.
    fn lines_of(&self, bytes: &[u8], runs_command: bool) -> u64 {
        // Input for a program may be left to the prompt; then the shell reports that line's end, too.
        let is_at_prompt = self.prompt_seen && !runs_command;
        if is_at_prompt { line_ends(bytes) } else { 0 }
    }

    fn is_typed(&mut self, bytes: &[u8], lines: u64) {
        self.has_typed_line |= lines > 0;
        // C-u, C-z and C-\ also discard the line.
        let ends = |b: &u8| wire::ENDS_LINE.contains(b) || [0x15, 0x1a, 0x1c].contains(b);
        self.line_is_begun = bytes.last().map_or(self.line_is_begun, |last| !ends(last));
    }
}
