//! The events of all sessions, for a reader that waits for the next.

use super::registry::Registry;
use crate::action::{ActionError, EventsView, ReadEvents};
use crate::principal::Principal;

impl Registry {
    /// Waits until the server stops: for tasks that publish events without an open request.
    pub(crate) fn stopping(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut stopping = self.stopping.subscribe();
        async move {
            // The registry goes with the server.
            let _ = stopping.wait_for(|is| *is).await;
        }
    }

    /// The events behind a position; waits for one that the caller may see.
    pub(super) async fn events(&self, principal: &Principal, read: &ReadEvents) -> Result<EventsView, ActionError> {
        let until = tokio::time::Instant::now() + read.wait;
        let mut stopping = self.stopping.subscribe();
        let mut view = self.event_log.since(principal, read.since);
        if read.follows {
            view.follower = Some(self.event_log.follower(principal)?);
        }
        loop {
            if *stopping.borrow() {
                return Err(ActionError::Restarting);
            }
            if !view.events.is_empty() || view.is_gap || read.wait.is_zero() {
                return Ok(view);
            }
            tokio::select! {
                () = self.event_log.moved(view.next) => view = self.event_log.since(principal, Some(view.next)),
                () = tokio::time::sleep_until(until) => return Ok(view),
                _ = stopping.changed() => {}
            }
        }
    }
}
