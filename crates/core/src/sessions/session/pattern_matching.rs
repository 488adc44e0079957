//! Matches the patterns of waits against new output. One pattern may cost a millisecond per line, and a session may
//! have hundreds of waits. So long work runs off the async threads, for one session of an owner at a time: all patterns
//! of an owner together use one CPU at most. Meanwhile the session falls behind, and loses nothing.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::action::{PatternShare, Until, Wait};
use crate::block_in_place::block_in_place;
use crate::limits;
use crate::sessions::server_events::ServerEvents;
use crate::sessions::session::machine::context::Context;

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

/// How many characters the patterns match of a command that was handed over earlier: its wait begins with the output
/// that it has already written.
pub(super) fn matching_work_of_calls(cx: &Context) -> usize {
    cx.link.calls.values().map(|call| matching_work_of(cx, call.wait())).max().unwrap_or(0)
}

/// The same for a wait that begins, perhaps over all earlier output.
pub(super) fn matching_work_of(cx: &Context, wait: Option<&Wait>) -> usize {
    let Some(wait) = wait else { return 0 };
    let gone = wait.until.iter().map(|until| match until {
        Until::Gone(pattern) => pattern.work(cells(cx)),
        Until::Listening(_) | Until::File(_) | Until::Bell | Until::Input => 0,
    });
    let earlier = usize::try_from(cx.timeline.output().scanner.position()).unwrap_or(usize::MAX);
    let text = wait.pattern.as_ref().map_or(0, |pattern| pattern.work(earlier));
    text.saturating_add(gone.sum())
}

pub(super) fn cells(cx: &Context) -> usize {
    usize::from(cx.timeline.cols()) * usize::from(cx.timeline.rows())
}
