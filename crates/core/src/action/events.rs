//! The events of all sessions: requests to read them, and the answers.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::OwnedSemaphorePermit;

use super::approval::Decision;
use super::command::CommandView;
use super::limits::LimitHit;
use super::session::{Foreground, SessionExit};
use super::take_over::{Driver, TakeOverEnd};
use crate::ids::SessionId;

/// A position in one server's event log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventPlace {
    /// The server that it belongs to.
    pub server: u32,
    /// The number of the event before the position.
    pub number: u64,
}

impl fmt::Display for EventPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}-{}", self.server, self.number)
    }
}

impl FromStr for EventPlace {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (server, number) = text.split_once('-').ok_or(())?;
        let server = u32::from_str_radix(server, 16).map_err(|_| ())?;
        Ok(Self { server, number: number.parse().map_err(|_| ())? })
    }
}

/// A request to read events.
#[derive(Debug, Clone, Copy)]
pub struct ReadEvents {
    /// The position to start at; without one, the present end.
    pub since: Option<EventPlace>,
    /// Wait this long for an event.
    pub wait: Duration,
    /// Whether the caller will follow the events, which takes a follower's permit.
    pub follows: bool,
}

/// Some events, and the position after them.
#[derive(Debug, Clone)]
pub struct EventsView {
    /// The events that the caller may see, oldest first.
    pub events: Vec<Arc<ServerEvent>>,
    /// Whether events directly behind the position are no longer kept.
    pub is_gap: bool,
    /// The position at which to continue.
    pub next: EventPlace,
    /// The permit of a caller that follows, for as long as this is held.
    pub follower: Option<Arc<OwnedSemaphorePermit>>,
}

/// An event of a session. The directory of several nodes has its JSON.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct ServerEvent {
    /// Its number in this server.
    #[serde(skip)]
    pub number: u64,
    /// When it happened.
    pub at: SystemTime,
    /// The session.
    pub session: SessionId,
    /// The session's owner.
    pub owner: String,
    /// The session's name.
    pub name: Option<String>,
    /// The event itself.
    pub what: ServerEventKind,
}

/// The kinds of events.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub enum ServerEventKind {
    /// The session was started.
    Created,
    /// It has ended.
    Terminated(Option<SessionExit>),
    /// A command's output begins.
    Started(Arc<CommandView>),
    /// A command has ended.
    Completed(Arc<CommandView>),
    /// A program wants input.
    Wanted(Foreground),
    /// The session hit a limit.
    LimitHit(LimitHit),
    /// A client has taken the keyboard.
    Taken(Arc<Driver>),
    /// Its take-over has ended.
    Returned(Arc<Driver>, TakeOverEnd),
    /// A request waits for a person's decision, or has one.
    Approval {
        /// The approval's id.
        id: String,
        /// The decision; `None` while there is none.
        decision: Option<Decision>,
    },
}

impl ServerEventKind {
    /// The bytes of the command in it.
    pub(crate) fn text_bytes(&self) -> usize {
        match self {
            Self::Started(command) | Self::Completed(command) => command.command.len(),
            Self::Created
            | Self::Terminated(_)
            | Self::Wanted(_)
            | Self::LimitHit(_)
            | Self::Taken(_)
            | Self::Returned(..)
            | Self::Approval { .. } => 0,
        }
    }
}
