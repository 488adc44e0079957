//! The open waits of the session, and all other callers that wait for something that it does.

use std::future::poll_fn;
use std::task::Poll;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::waiter::Waiter;
use crate::sessions::session::requests::{ScreenSnapshot, StartReply, Started};

/// Everyone who waits for something that the session does.
#[derive(Default)]
pub(crate) struct OpenWaits {
    pub(crate) open: Vec<Waiter>,
    pub(crate) at_prompt: Vec<oneshot::Sender<()>>,
    /// Callers that wait only until their command's output begins, with their deadlines.
    pub(crate) at_start: Vec<(u32, Instant, StartReply)>,
    /// Viewers that wait for the screen.
    pub(crate) pictures: Vec<oneshot::Sender<ScreenSnapshot>>,
}

impl OpenWaits {
    /// Answers callers that wait for the beginning of a command.
    pub(crate) fn notify_started(&mut self, which: impl Fn(u32) -> bool) {
        self.notify_start_where(|(id, ..)| which(*id));
    }

    /// Answers callers that have waited long enough for the beginning of a command.
    pub(crate) fn notify_overdue(&mut self, now: Instant) {
        self.notify_start_where(|(_, until, _)| now >= *until);
    }

    fn notify_start_where(&mut self, which: impl Fn(&(u32, Instant, StartReply)) -> bool) {
        for (id, _, started) in self.at_start.extract_if(.., |caller| which(caller)) {
            let _ = started.send(Ok(Started { id, is_history: false, finished: None }));
        }
    }

    /// Answers callers that wait for the shell's first prompt.
    pub(crate) fn notify_prompt(&mut self) {
        for waiter in self.at_prompt.drain(..) {
            let _ = waiter.send(());
        }
    }

    /// Until the caller of a wait with a pattern is gone. There may be more waits than a task may poll in one turn.
    pub(crate) async fn abandoned(&mut self) {
        let any = poll_fn(|cx| {
            if self.open.iter_mut().any(|w| w.poll_abandoned(cx).is_ready()) { Poll::Ready(()) } else { Poll::Pending }
        });
        tokio::task::unconstrained(any).await;
    }

    /// When the first wait, or the first caller that waits for a beginning, times out.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        let start = self.at_start.iter().map(|(_, until, _)| *until);
        self.open.iter().map(Waiter::next_at).chain(start).min()
    }
}
