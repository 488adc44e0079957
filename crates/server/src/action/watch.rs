//! Viewers: the part of the program's interface ([`crate::action`]) that is a stream of pieces and not one answer.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::action::{CommandView, Foreground, LimitHit, SessionExit, SessionView};
use crate::sessions::ViewerCursor;

/// A viewer's access to a session: its present view, and a cursor for the pieces.
#[derive(Debug, Clone)]
pub struct Watching {
    /// The session as it is now.
    pub session: SessionView,
    /// The cursor for its output and events.
    pub feed: ViewerCursor,
}

/// A piece of a viewer's stream.
#[derive(Debug, Clone)]
pub enum Piece {
    /// Output: these bytes are the visible part of this range of the journal, without our markers and the queries that
    /// ptyd answers.
    Data {
        /// The offset of its first byte.
        from: u64,
        /// The offset after its last byte.
        to: u64,
        /// The bytes for a terminal.
        bytes: Vec<u8>,
    },
    /// Output that is no longer retained.
    Gap {
        /// The offset of its first byte.
        from: u64,
        /// The offset at which output continues.
        to: u64,
    },
    /// The screen.
    Snapshot {
        /// The offset up to which output is part of it.
        at: u64,
        /// The width in cells.
        cols: u16,
        /// The height in cells.
        rows: u16,
        /// Bytes that paint it in any terminal of this size.
        bytes: Vec<u8>,
    },
    /// An event of the session.
    Event(Arc<SessionEvent>),
    /// The session has ended and there is nothing more.
    Over,
}

/// Events of a session.
#[derive(Debug, Clone)]
pub enum SessionEvent {
    /// A command's output begins.
    Started(Box<CommandView>),
    /// A command has ended.
    Completed(Box<CommandView>),
    /// The foreground state changed.
    Foreground(Foreground),
    /// The terminal was resized.
    Resized {
        /// The width in cells.
        cols: u16,
        /// The height in cells.
        rows: u16,
    },
    /// The shell has exited; some of its last output may still come.
    Exited(Option<SessionExit>),
    /// The session hit a limit.
    LimitHit(LimitHit),
    /// This many events are no longer kept.
    Missed(u64),
}

/// A new ticket.
#[derive(Clone)]
pub struct TicketView {
    /// The ticket; it is shown only this once.
    pub ticket: String,
    /// Its lifetime.
    pub lifetime: Duration,
}

/// A ticket is a secret and must not be logged.
impl fmt::Debug for TicketView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TicketView(…)")
    }
}

impl Foreground {
    /// Its name, the same in every protocol.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Running => "running",
            Self::InputWanted => "input_wanted",
            Self::PasswordWanted => "password_wanted",
            Self::Fullscreen => "fullscreen",
            Self::Stopped => "stopped",
        }
    }
}
