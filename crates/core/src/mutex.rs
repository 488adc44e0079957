//! Locks of a mutex, whatever happened to its last holder.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A poisoned lock only means that another request panicked within one expression.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
