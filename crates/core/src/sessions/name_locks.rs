//! Locks by name: tasks with different names do not wait for each other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use tokio::sync::OwnedMutexGuard;

use crate::mutex::locked;

/// The names whose lock is held or awaited.
#[derive(Debug, Default)]
pub(super) struct NameLocks(Mutex<HashMap<String, Weak<tokio::sync::Mutex<()>>>>);

impl NameLocks {
    /// Waits for the lock of this name, which lasts until the guard is dropped.
    pub(super) async fn of(&self, name: String) -> OwnedMutexGuard<()> {
        let turn = {
            let mut turns = locked(&self.0);
            turns.retain(|_, turn| turn.strong_count() > 0);
            match turns.get(&name).and_then(Weak::upgrade) {
                Some(turn) => turn,
                None => {
                    let turn = Arc::default();
                    turns.insert(name, Arc::downgrade(&turn));
                    turn
                }
            }
        };
        turn.lock_owned().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn requests_with_one_name_wait_for_each_other_and_for_no_other() {
        let turns = NameLocks::default();
        let one = turns.of("one".to_owned()).await;
        let other = tokio::time::timeout(std::time::Duration::from_secs(10), turns.of("other".to_owned())).await;
        assert!(other.is_ok(), "another name is free");
        let mut again = std::pin::pin!(turns.of("one".to_owned()));
        assert!(futures_now(&mut again).await.is_none(), "the same one is taken");
        drop(one);
        drop(again.await);
        drop(other);
        drop(turns.of("third".to_owned()).await);
        assert_eq!(locked(&turns.0).len(), 1, "names that nobody uses are forgotten");
    }

    /// The result if it is there at once.
    async fn futures_now<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
        tokio::select! { biased; value = future => Some(value), () = std::future::ready(()) => None }
    }
}
