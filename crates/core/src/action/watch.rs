//! Viewers: an answer that is a stream of pieces.

use std::fmt;
use std::sync::Arc;

use super::boxed::Boxed;
use super::command::CommandView;
use super::error::ActionError;
use super::limits::LimitHit;
use super::session::{Foreground, SessionExit, SessionView};
use super::take_over::{Driver, TakeOverEnd};

/// A viewer's access to a session: its present view, and a cursor for the pieces.
#[derive(Debug)]
pub struct Watching {
    /// The session as it is now.
    pub session: SessionView,
    /// The cursor for its output and events.
    pub feed: Box<dyn Feed>,
}

/// One viewer's cursor in a session.
pub trait Feed: fmt::Debug + Send + Sync {
    /// The offset of the next byte.
    fn cursor(&self) -> u64;
    /// How many bytes of the journal it is behind.
    fn behind(&self) -> u64;
    /// Returns the next piece as soon as there is one, with at most `most` bytes of the journal (at least 8 KiB, so that
    /// a whole control sequence fits). Dropping the future loses nothing.
    fn next(&mut self, most: usize) -> Boxed<'_, Result<Piece, ActionError>>;
    /// The present screen; moves the cursor behind the output in it, so that unsent output before it is skipped. `None`
    /// if there is no live screen.
    fn snapshot(&mut self) -> Boxed<'_, Result<Option<ViewerSnapshot>, ActionError>>;
}

/// The screen at an offset, for a viewer.
#[derive(Debug, Clone)]
pub struct ViewerSnapshot {
    /// Events before it that this viewer was not sent.
    pub events: Vec<Arc<SessionEvent>>,
    /// The offset up to which output is part of it.
    pub at: u64,
    /// The width in cells.
    pub cols: u16,
    /// The height in cells.
    pub rows: u16,
    /// Bytes that paint it in any terminal of this size.
    pub bytes: Vec<u8>,
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
    /// An event of the session.
    Event(Arc<SessionEvent>),
    /// The session has ended and there is nothing more.
    Over,
}

/// Events of a session.
#[derive(Debug, Clone)]
pub enum SessionEvent {
    /// A command's output begins.
    Started(Arc<CommandView>),
    /// A command has ended.
    Completed(Arc<CommandView>),
    /// The session was being created, and runs.
    Ready,
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
    /// A client has taken the keyboard.
    Taken(Arc<Driver>),
    /// Its take-over has ended.
    Returned(Arc<Driver>, TakeOverEnd),
    /// This many events are no longer kept.
    Missed(u64),
}

impl SessionEvent {
    /// The bytes of the command in it.
    pub(crate) fn text_bytes(&self) -> usize {
        match self {
            Self::Started(command) | Self::Completed(command) => command.command.len(),
            Self::Ready
            | Self::Foreground(_)
            | Self::Resized { .. }
            | Self::Exited(_)
            | Self::LimitHit(_)
            | Self::Taken(_)
            | Self::Returned(..)
            | Self::Missed(_) => 0,
        }
    }
}
