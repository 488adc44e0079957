//! The recorded hand-overs of commands.

use std::sync::Arc;

use journal::{Event, Record};

/// Characters of a command's text kept in memory; the events have the whole text.
const TEXT_CHARS_KEPT: usize = 4096;

/// A command's hand-over as it is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Handover {
    /// The journal's end when the command was recorded.
    pub(crate) from: u64,
    /// The region ends here or before, if that is known.
    pub(crate) to: Option<u64>,
    /// The nonce of the marker where its output begins.
    pub(crate) nonce: u64,
    /// The line was typed into a nested shell.
    pub(crate) is_inside: bool,
    /// The command.
    pub(crate) given: Arc<str>,
}

impl Handover {
    /// The hand-over that an event records; `None` for other events, and for a line that is the command itself.
    pub(crate) fn of(event: &Event) -> Option<Self> {
        let (nonce, is_inside, text) = match event.record()? {
            Record::Accepted { nonce, text, .. } => (nonce, false, text),
            Record::Typed { is_inside: true, nonce, text, .. } => (nonce, true, text),
            _ => return None,
        };
        Some(Self {
            from: event.offset.0,
            to: None,
            nonce,
            is_inside,
            given: kept_text(&String::from_utf8_lossy(text)),
        })
    }
}

/// The hand-overs in the memory of a session: all that begin at `known_from` or later.
#[derive(Debug, Clone)]
pub(crate) struct RecentHandovers {
    pub(crate) known_from: u64,
    pub(crate) handovers: Arc<Vec<Handover>>,
}

impl Default for RecentHandovers {
    /// None are in memory: all are read from the events.
    fn default() -> Self {
        Self { known_from: u64::MAX, handovers: Arc::default() }
    }
}

/// A command's text as kept in memory, and shown.
pub(crate) fn kept_text(text: &str) -> Arc<str> {
    match text.char_indices().nth(TEXT_CHARS_KEPT) {
        Some((cut, _)) => format!("{}…", &text[..cut]).into(),
        None => text.into(),
    }
}
