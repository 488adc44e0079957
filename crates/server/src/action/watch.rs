//! What viewers are given: the part of the program's interface ([`crate::action`]) that flows instead of being answered once.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::action::{CommandView, Foreground, LimitHit, SessionExit, SessionView};
use crate::sessions::ViewerCursor;

/// A viewer's place in a session: how things stand, and where the pieces come from.
#[derive(Debug, Clone)]
pub struct Watching {
    /// The session as it is now.
    pub session: SessionView,
    /// Its output and events from here on.
    pub feed: ViewerCursor,
}

/// What a viewer is given next.
#[derive(Debug, Clone)]
pub enum Piece {
    /// Output: these bytes stand for this range of the journal, from which our markers and the questions that ptyd
    /// answers are left out.
    Data {
        /// Its first byte.
        from: u64,
        /// Behind its last one.
        to: u64,
        /// What a terminal should be fed.
        bytes: Vec<u8>,
    },
    /// Output that is no longer kept.
    Gap {
        /// Its first byte.
        from: u64,
        /// Where it goes on.
        to: u64,
    },
    /// The screen.
    Snapshot {
        /// The output up to here is in it.
        at: u64,
        /// Cells.
        cols: u16,
        /// Cells.
        rows: u16,
        /// What paints it in any terminal of this size.
        bytes: Vec<u8>,
    },
    /// Something happened.
    Event(Arc<SessionEvent>),
    /// The session has ended and this was all.
    Over,
}

/// What happens in a session besides output.
#[derive(Debug, Clone)]
pub enum SessionEvent {
    /// A command's output begins.
    Started(Box<CommandView>),
    /// A command has ended.
    Completed(Box<CommandView>),
    /// The foreground does something else.
    Foreground(Foreground),
    /// The terminal has another size.
    Resized {
        /// Cells.
        cols: u16,
        /// Cells.
        rows: u16,
    },
    /// The shell has ended; some of its last output may still come.
    Exited(Option<SessionExit>),
    /// The session ran into a limit.
    LimitHit(LimitHit),
    /// So many events are no longer kept.
    Missed(u64),
}

/// A ticket, fresh.
#[derive(Clone)]
pub struct TicketView {
    /// To be shown once.
    pub ticket: String,
    /// How long it is good.
    pub lifetime: Duration,
}

/// A ticket is a secret, and stands in no log.
impl fmt::Debug for TicketView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TicketView(…)")
    }
}

impl Foreground {
    /// Its name, the same at every door.
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
