//! What happens in all sessions: a part of [`crate::action`], which is where it is taken from.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::OwnedSemaphorePermit;

use crate::action::{CommandView, Foreground, LimitHit, SessionExit};
use crate::ids::SessionId;

/// A place among the events of one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventPlace {
    /// Which server it is in.
    pub server: u32,
    /// Behind the event of this number.
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

/// Events to read.
#[derive(Debug, Clone, Copy)]
pub struct ReadEvents {
    /// From where; without it from now on.
    pub since: Option<EventPlace>,
    /// Wait this long for one.
    pub wait: Duration,
    /// The caller is going to follow them, and takes a place for that.
    pub follows: bool,
}

/// Some events, and where to go on.
#[derive(Debug, Clone)]
pub struct EventsView {
    /// Those that the caller may see, oldest first.
    pub events: Vec<Arc<Happening>>,
    /// What came right behind the place is no longer kept.
    pub is_gap: bool,
    /// Where to go on.
    pub next: EventPlace,
    /// The place of a caller that follows, for as long as this is held.
    pub follower: Option<Arc<OwnedSemaphorePermit>>,
}

/// Something that happened.
#[derive(Debug, Clone)]
pub struct Happening {
    /// Its number in this server.
    pub number: u64,
    /// When.
    pub at: SystemTime,
    /// Where.
    pub session: SessionId,
    /// The session's owner.
    pub owner: String,
    /// The session's name.
    pub name: Option<String>,
    /// What.
    pub what: Happened,
}

/// What happened.
#[derive(Debug, Clone)]
pub enum Happened {
    /// The session was started.
    Created,
    /// It has ended.
    Terminated(Option<SessionExit>),
    /// A command's output begins.
    Started(Box<CommandView>),
    /// A command has ended.
    Completed(Box<CommandView>),
    /// A program waits for somebody.
    Wanted(Foreground),
    /// The session ran into a limit.
    LimitHit(LimitHit),
}
