//! What can be asked of a whole journal, and what is answered: a part of [`crate::action`], which is where it is taken from.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use regex::Regex;

use crate::action::Since;
use crate::ids::{CommandId, SessionId};

/// Lines to look for.
#[derive(Debug, Clone)]
pub struct Search {
    /// Which session.
    pub session: SessionId,
    /// From where.
    pub since: Since,
    /// Only in this command's output.
    pub command: Option<CommandId>,
    /// Only in output of this kind.
    pub kind: Option<OutputKind>,
    /// What a line must match.
    pub pattern: Regex,
    /// At most this many.
    pub limit: usize,
}

/// Whose output it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputKind {
    /// A command's.
    Command,
    /// What came while no command ran: prompts, and what jobs in the background printed then.
    Background,
}

/// What a search came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundView {
    /// The lines, in order.
    pub matches: Vec<MatchView>,
    /// How many lines were looked at.
    pub lines: u64,
    /// Where to search on.
    pub next: u64,
    /// The journal's end.
    pub end: u64,
    /// Bytes that are gone between what was asked for and what was searched.
    pub gap: Option<(u64, u64)>,
    /// Not everything up to the end was looked at: search on from `next`.
    pub has_more: bool,
}

/// A line that matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchView {
    /// Where it is in the journal.
    pub offset: u64,
    /// Counted from 1 in what was searched.
    pub line: u64,
    /// The line, at most [`crate::limits::SEARCH_LINE_CHARS_MAX`] characters of it.
    pub text: String,
    /// Whose output it is, when it is a command's.
    pub command: Option<CommandId>,
}

/// A version of the asciicast format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CastVersion {
    /// Times since the beginning.
    V2,
    /// Times since the event before.
    V3,
}

/// Something long that is read a page at a time, when its reader has taken the one before.
pub trait Pages: Send {
    /// The next page; none at the end. It blocks on files.
    fn next(&mut self) -> io::Result<Option<Vec<u8>>>;
}

/// Pages on their way to the one who reads them.
#[derive(Clone)]
pub struct Recording(Arc<Mutex<Option<Box<dyn Pages>>>>);

impl Recording {
    /// These pages.
    pub fn new(pages: impl Pages + 'static) -> Self {
        Self(Arc::new(Mutex::new(Some(Box::new(pages)))))
    }

    /// Gives them to the first who asks.
    pub fn take(&self) -> Option<Box<dyn Pages>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl std::fmt::Debug for Recording {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Recording")
    }
}
