//! Long CPU-bound work of requests that nobody else should wait for, such as the search of a whole journal.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

/// Runs the work on a thread of its own, of low priority: the shells, their holders and other requests get a processor
/// first. Threads of the blocking pool are of no use for that, because they could not return to the normal priority. The
/// caller limits how many there are.
pub async fn run_at_low_priority<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    let (sender, receiver) = oneshot::channel();
    let work = Arc::new(Mutex::new(Some(work)));
    let of_thread = Arc::clone(&work);
    let thread = move || {
        sys::priority::lower_this_thread();
        if let Some(work) = take(&of_thread) {
            // Nobody receives the result of a request whose client has gone.
            let _ = sender.send(work());
        }
    };
    match std::thread::Builder::new().name("low-priority".to_owned()).spawn(thread) {
        Ok(_) => receiver.await.map_err(|_| io::Error::other("the thread of this request ended by a panic")),
        // The kernel gives no further thread: the priority is lost, and the work is not.
        Err(error) => match take(&work) {
            Some(work) => tokio::task::spawn_blocking(work).await.map_err(io::Error::other),
            None => Err(error),
        },
    }
}

fn take<T>(work: &Mutex<Option<T>>) -> Option<T> {
    work.lock().unwrap_or_else(PoisonError::into_inner).take()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_that_panics_is_an_error_and_other_work_a_result() {
        assert_eq!(run_at_low_priority(|| 1).await.expect("a result"), 1);
        assert!(run_at_low_priority(|| panic!("as the test wants")).await.is_err());
    }
}
