//! Per-principal shares, such as permits: a principal that uses up its own takes nothing from others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// At this number of shares, unused ones are removed. A share belongs to a token or the local user, of which there are
/// fewer.
const KEPT_MAX: usize = 4_096;

/// One share per name, for as long as it is in use.
#[derive(Debug)]
pub struct PerPrincipal<T>(Mutex<HashMap<String, Weak<T>>>);

impl<T> Default for PerPrincipal<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> PerPrincipal<T> {
    /// The share of this name; a new one if none is in use.
    pub fn of(&self, name: &str, make: impl FnOnce() -> T) -> Arc<T> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = all.get(name).and_then(Weak::upgrade) {
            return share;
        }
        if all.len() >= KEPT_MAX {
            all.retain(|_, share| share.strong_count() > 0);
        }
        let share = Arc::new(make());
        all.insert(name.to_owned(), Arc::downgrade(&share));
        share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_the_same_while_it_is_held_and_forgotten_afterwards() {
        let shares = PerPrincipal::default();
        let ann = shares.of("ann", || 1);
        assert_eq!((*shares.of("ann", || 2), *shares.of("bob", || 3)), (1, 3));
        drop(ann);
        assert_eq!(*shares.of("ann", || 4), 4);
        for i in 0..2 * KEPT_MAX {
            shares.of(&i.to_string(), || 0);
        }
        assert!(shares.0.lock().expect("whole").len() <= KEPT_MAX);
    }
}
