//! Draining: a server that drains starts no session, and leaves alone those that it has.
//!
//! A start holds an [`Admission`] from before it changes anything until its session counts as live. So the number of
//! sessions that are left is never zero too early, and no start is refused half-way.

use std::sync::Arc;
use std::time::SystemTime;

use tokio::sync::watch;

use crate::action::ActionError;

/// Whether this server drains. A server that starts does not.
#[derive(Debug, Default)]
pub(super) struct Drain(Arc<watch::Sender<State>>);

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct State {
    since: Option<SystemTime>,
    /// The starts that were admitted and are under way.
    starting: usize,
}

/// The permission for one start.
#[derive(Debug, Clone)]
pub(super) struct Admission {
    _held: Arc<Held>,
}

#[derive(Debug)]
struct Held(Arc<watch::Sender<State>>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.send_modify(|state| state.starting -= 1);
    }
}

impl Drain {
    /// Admits one start, unless the server drains.
    pub(super) fn admit(&self) -> Result<Admission, ActionError> {
        let is_admitted = self.0.send_if_modified(|state| {
            let is_open = state.since.is_none();
            state.starting += usize::from(is_open);
            is_open
        });
        if is_admitted {
            Ok(Admission { _held: Arc::new(Held(Arc::clone(&self.0))) })
        } else {
            Err(ActionError::Draining)
        }
    }

    /// Drains, or takes sessions again.
    pub(super) fn set(&self, is_draining: bool) {
        self.0.send_if_modified(|state| {
            let is_new = state.since.is_some() != is_draining;
            if is_new {
                state.since = is_draining.then(sys::time::wall);
            }
            is_new
        });
    }

    /// Since when the server drains.
    pub(super) fn since(&self) -> Option<SystemTime> {
        self.0.borrow().since
    }

    /// The number of starts that are under way.
    pub(super) fn starting(&self) -> usize {
        self.0.borrow().starting
    }

    /// Tells of every change.
    pub(super) fn changes(&self) -> watch::Receiver<State> {
        self.0.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    // promise: drain-1
    fn a_start_that_was_admitted_counts_until_its_last_part_is_done_and_no_other_is_admitted() {
        let drain = Drain::default();
        let admission = drain.admit().expect("it takes sessions");
        let part = admission.clone();
        drain.set(true);
        let since = drain.since();
        assert!(since.is_some());
        assert!(matches!(drain.admit(), Err(ActionError::Draining)));
        drop(admission);
        assert_eq!(drain.starting(), 1);
        drop(part);
        assert_eq!(drain.starting(), 0);
        drain.set(true);
        assert_eq!(drain.since(), since, "it drains since the first request");
        drain.set(false);
        assert!(drain.since().is_none() && drain.admit().is_ok());
    }
}
