//! Searches in the output of a session.

use journal::MaskedText;

use super::output::{OutputKind, Since};
use super::pattern::Pattern;
use crate::ids::{CommandId, SessionId};

/// A request to search for lines.
#[derive(Debug, Clone)]
pub struct Search {
    /// The session.
    pub session: SessionId,
    /// The position to start at.
    pub since: Since,
    /// Only in the output of this command.
    pub command: Option<CommandId>,
    /// Only in output of this kind.
    pub kind: Option<OutputKind>,
    /// The pattern of a matching line.
    pub pattern: Pattern,
    /// At most this many matches.
    pub limit: usize,
    /// The newest matches and not the first ones: the whole range is searched.
    pub newest: bool,
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundView {
    /// The matching lines, in order.
    pub matches: Vec<MatchView>,
    /// How many lines match, which are more than `matches` if only the newest were asked for.
    pub matching: u64,
    /// The texts of the commands with these matches, as far as they are known; only for the newest matches.
    pub commands: Vec<(CommandId, String)>,
    /// How many lines were searched.
    pub lines: u64,
    /// The offset at which to continue.
    pub next: u64,
    /// The journal's end.
    pub end: u64,
    /// The lost range between the requested offset and the first one searched.
    pub gap: Option<(u64, u64)>,
    /// Whether output up to the end remains to be searched, from `next`.
    pub has_more: bool,
}

/// A line that matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchView {
    /// The line's offset in the journal; in a search for the newest an offset before it, from which it can be read.
    pub offset: u64,
    /// The line number in the searched range, from 1.
    pub line: u64,
    /// The line; of a longer one [`crate::limits::SEARCH_LINE_CHARS_MAX`] characters around the match, with `…` where it goes
    /// on.
    pub text: MaskedText,
    /// The command, if it is a command's output.
    pub command: Option<CommandId>,
}
