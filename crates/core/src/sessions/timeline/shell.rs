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
    /// The newest input did not end its line.
    pub(crate) line_is_begun: bool,
    /// The shell has lost its hooks, and commands are typed into it.
    pub(crate) is_hookless: bool,
    /// The newest command that ran to its end had no marker where it begins: something keeps the shell from printing it.
    pub(super) hides_beginnings: bool,
    /// The newest report said that the next command that fails ends the shell.
    pub(crate) has_errexit: bool,
}

impl Shell {
    /// Applies typed input.
    pub(crate) fn typed(&mut self, bytes: &[u8], runs_command: bool) {
        // Input for a program may be left to the prompt; then the shell reports that line's end, too.
        let is_at_prompt = self.prompt_seen && !runs_command;
        self.has_typed_line |= is_at_prompt && bytes.iter().any(|b| wire::ENDS_LINE.contains(b));
        // C-u, C-z and C-\ also discard the line.
        let ends = |b: &u8| wire::ENDS_LINE.contains(b) || [0x15, 0x1a, 0x1c].contains(b);
        self.line_is_begun = bytes.last().map_or(self.line_is_begun, |last| !ends(last));
    }
}
