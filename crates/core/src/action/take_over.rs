//! A take-over: one client drives a session, and nobody else types there.

use std::convert::Infallible;
use std::fmt;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use terminal::quote;
use tokio::sync::oneshot;

use crate::ids::SessionId;

/// A request to take the keyboard of a session, or to keep it for longer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Take {
    /// The session.
    pub session: SessionId,
    /// The take-over ends after this time, unless the driver takes the keyboard again before.
    pub lasts: Duration,
    /// Also from another driver.
    pub forces: bool,
    /// It ends as well when the [`Hold`] in the answer is dropped, as a connection does that ends.
    pub is_held: bool,
}

/// The client that drives a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Driver {
    /// The principal.
    pub name: String,
    /// The client's own name.
    pub client: Option<String>,
    /// Since when.
    pub since: SystemTime,
    /// When the take-over ends at the latest.
    pub until: SystemTime,
}

/// The driver in words: `ann (client page-1)`. Both names are a client's own text.
impl fmt::Display for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&quote::line(&self.name))?;
        match &self.client {
            Some(client) => write!(f, " (client {})", quote::line(client)),
            None => Ok(()),
        }
    }
}

impl Driver {
    /// When the take-over ends at the latest, for messages.
    pub fn until_in_words(&self) -> String {
        let since = self.until.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
        jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::MAX).to_string()
    }
}

/// How a take-over ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TakeOverEnd {
    /// The driver has returned the keyboard.
    Returned,
    /// Another client has taken or freed it by force.
    Forced,
    /// Its time was up.
    TimedOut,
    /// The driver's last connection has ended.
    Disconnected,
}

impl TakeOverEnd {
    /// Its name, the same in every protocol.
    pub fn name(self) -> &'static str {
        match self {
            Self::Returned => "returned",
            Self::Forced => "forced",
            Self::TimedOut => "timed_out",
            Self::Disconnected => "disconnected",
        }
    }
}

/// A connection's part in a take-over, which ends with the last of them: dropped with the connection.
#[derive(Debug)]
pub struct Hold(oneshot::Sender<Infallible>);

impl Hold {
    /// A hold, and the end that learns of its drop.
    pub(crate) fn new() -> (Self, oneshot::Receiver<Infallible>) {
        let (hold, dropped) = oneshot::channel();
        (Self(hold), dropped)
    }

    /// Waits until the take-over has ended.
    pub async fn over(&mut self) {
        self.0.closed().await;
    }
}
