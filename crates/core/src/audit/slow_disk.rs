//! Keeps the server awake while the disk does not take a line.
//!
//! A line is written by the task that needs it, on a worker of the runtime, because the kernel takes it in some microseconds. If the disk
//! hangs, this worker hangs, and it may be the one that would have woken for the next request: the others sleep until another
//! thread wakes them. A thread outside the runtime does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Thread;

use tokio::runtime::Handle;

use crate::limits::AUDIT_WRITE_STUCK;

/// The thread stays awake for this many checks after the last line.
const CHECKS_WITHOUT_LINES: u32 = 20;

/// Watches the writes of one log.
#[derive(Debug)]
pub(super) struct SlowDiskWatch {
    state: Arc<State>,
    thread: Option<Thread>,
}

#[derive(Debug, Default)]
struct State {
    /// The number of writes that have begun, and of those that have ended.
    begun: AtomicU64,
    ended: AtomicU64,
    sleeps: AtomicBool,
    is_over: AtomicBool,
}

impl SlowDiskWatch {
    /// Watches for the runtime of this thread. Without one, nothing has to be woken.
    pub(super) fn start() -> Self {
        let state = Arc::new(State::default());
        let (state_of_thread, runtime) = (Arc::clone(&state), Handle::try_current());
        let spawned = runtime.ok().and_then(|runtime| {
            let watch = move || state_of_thread.watch(&runtime);
            std::thread::Builder::new().name("slow-disk".to_owned()).spawn(watch).ok()
        });
        Self { state, thread: spawned.map(|spawned| spawned.thread().clone()) }
    }

    /// Writes while the thread watches.
    pub(super) fn watched<T>(&self, write: impl FnOnce() -> T) -> T {
        self.state.begun.fetch_add(1, Ordering::SeqCst);
        if self.state.sleeps.swap(false, Ordering::SeqCst)
            && let Some(thread) = &self.thread
        {
            thread.unpark();
        }
        let written = write();
        self.state.ended.fetch_add(1, Ordering::SeqCst);
        written
    }
}

impl Drop for SlowDiskWatch {
    fn drop(&mut self) {
        self.state.is_over.store(true, Ordering::SeqCst);
        if let Some(thread) = &self.thread {
            thread.unpark();
        }
    }
}

impl State {
    fn watch(&self, runtime: &Handle) {
        let (mut last, mut quiet) = (0, 0);
        while !self.is_over.load(Ordering::SeqCst) {
            let begun = self.begun.load(Ordering::SeqCst);
            let is_stuck = begun != self.ended.load(Ordering::SeqCst) && begun == last;
            if is_stuck {
                // A new task wakes a worker, which then waits for the next request in the place of the stuck one.
                runtime.spawn(async {});
            }
            quiet = if begun == last && !is_stuck { quiet + 1 } else { 0 };
            last = begun;
            if quiet < CHECKS_WITHOUT_LINES {
                std::thread::park_timeout(AUDIT_WRITE_STUCK);
                continue;
            }
            self.sleeps.store(true, Ordering::SeqCst);
            // A write that began meanwhile has seen that the thread sleeps, or is seen here.
            if self.begun.load(Ordering::SeqCst) == begun {
                std::thread::park();
            }
            self.sleeps.store(false, Ordering::SeqCst);
            quiet = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    // promise: audit-7
    fn a_write_that_hangs_stops_no_other_task() {
        let workers =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
        let watch = workers.block_on(async { Arc::new(SlowDiskWatch::start()) });
        let listen = || {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
            listener.set_nonblocking(true).expect("a socket");
            let address = listener.local_addr().expect("bound");
            (workers.block_on(async { tokio::net::TcpListener::from_std(listener).expect("a socket") }), address)
        };
        for _ in 0..20 {
            let [(first, first_address), (second, second_address)] = [listen(), listen()];
            let (writes, writing) = mpsc::sync_channel(1);
            let (release, released) = mpsc::sync_channel::<()>(1);
            let watch = Arc::clone(&watch);
            let hanging = workers.spawn(async move {
                let _connection = first.accept().await.expect("a connection");
                watch.watched(|| {
                    let _ = writes.send(());
                    let _ = released.recv();
                });
            });
            let other = workers.spawn(async move { drop(second.accept().await.expect("a connection")) });
            // A worker wakes for one connection, and hangs in a write.
            let _first = std::net::TcpStream::connect(first_address).expect("it listens");
            writing.recv().expect("the write has begun");
            let mut second = std::net::TcpStream::connect(second_address).expect("it listens");
            // The write is released only behind the answer to the other one.
            assert_eq!(std::io::Read::read(&mut second, &mut [0]).expect("an end"), 0);
            release.send(()).expect("it still hangs");
            workers.block_on(async { hanging.await.and(other.await).expect("no panic") });
        }
    }
}
