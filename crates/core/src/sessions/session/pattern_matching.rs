//! Matches the patterns of waits against new output. One pattern may cost a millisecond per line, and a session may
//! have hundreds of waits. So long work runs off the async threads, for one session of an owner at a time: all patterns
//! of an owner together use one CPU at most. Meanwhile the session falls behind, and loses nothing.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::machine::session::Session;
use crate::action::PatternShare;
use crate::block_in_place::block_in_place;
use crate::limits;
use crate::sessions::server_events::ServerEvents;

/// The measured cost of a session's patterns.
#[derive(Debug)]
pub(super) struct Matching {
    /// The owner's share, whose turn long work takes.
    share: Arc<PatternShare>,
    /// The duration of the last turn with a pattern.
    took: Duration,
}

impl Matching {
    pub(super) fn of(server_events: &ServerEvents, owner: &str) -> Self {
        Self { share: server_events.patterns_of(owner), took: Duration::ZERO }
    }

    /// Runs work that matches patterns against this many characters.
    pub(super) async fn run(&mut self, characters: usize, work: impl FnOnce()) {
        if characters == 0 {
            return work();
        }
        let is_costly = characters > limits::MATCHED_AT_ONCE || self.took > limits::MATCHED_SOON;
        let turn = if is_costly { self.share.turn().await } else { None };
        let begun = Instant::now();
        if is_costly {
            block_in_place(work)
        } else {
            work()
        }
        self.took = begun.elapsed();
        drop(turn);
    }
}

impl Session {
    /// How many characters the patterns of the open waits match in the next turn.
    pub(super) fn matching_work(&self) -> usize {
        if self.waits.open.is_empty() {
            return 0;
        }
        let position = self.cx.timeline.output().scanner.position();
        let unread = usize::try_from(self.cx.follower.tail().journal.0.saturating_sub(position)).unwrap_or(usize::MAX);
        let (unread, cells) = (unread.min(limits::SCAN_CHUNK), self.cx.cells());
        self.waits.open.iter().map(|w| w.matching_work(unread, cells)).sum()
    }
}
