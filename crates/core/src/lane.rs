//! The lane of one principal: all its long CPU-bound work takes one processor, so it takes nothing from others.
//!
//! Judging a long command, reading and masking much output, matching a costly pattern, parsing a large body: each is a piece of
//! work, and the pieces of one principal are done one after the other, off the async threads. Work on a session is its owner's. A flood
//! of small work is long work, too: each step of it takes a turn.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::Instant;

use crate::block_in_place::block_in_place;
use crate::limits::{
    ANSWERS_BYTES_MAX, EVENT_BYTES_MAX, LOOK_PAUSES, LOOKS_MAX, SMALL_WORK_AT_ONCE, SMALL_WORK_TIME, WORK_AT_ONCE,
};
use crate::mutex::locked;
use crate::per_principal::PerPrincipal;

/// The lanes of all principals, by name.
#[derive(Debug, Default)]
pub struct Lanes(PerPrincipal<Lane>);

impl Lanes {
    /// The lane of this principal.
    pub fn of(&self, name: &str) -> Arc<Lane> {
        self.0.of(name, Lane::default)
    }

    /// Does work in this principal's lane. Little work is done at once, and makes no lane.
    pub async fn work<T>(&self, name: &str, bytes: usize, work: impl FnOnce() -> T) -> T {
        if bytes <= WORK_AT_ONCE { work() } else { self.of(name).work(bytes, work).await }
    }
}

/// The lane of one principal.
#[derive(Debug)]
pub struct Lane {
    turn: Arc<Semaphore>,
    steps: Semaphore,
    recent: Mutex<Recent>,
    looks: Arc<Semaphore>,
    answers: Arc<Semaphore>,
}

/// The small work since a moment.
#[derive(Debug)]
struct Recent {
    since: Instant,
    count: u32,
}

impl Default for Lane {
    fn default() -> Self {
        let of = |count| Arc::new(Semaphore::new(count));
        let recent = Mutex::new(Recent { since: Instant::now(), count: 0 });
        Self { turn: of(1), steps: Semaphore::new(1), recent, looks: of(LOOKS_MAX), answers: of(ANSWERS_BYTES_MAX) }
    }
}

/// Part of the room for a principal's answers, until it is dropped with the answer.
pub type AnswerRoom = Option<Arc<OwnedSemaphorePermit>>;

impl Lane {
    /// The turn for long work; `None` only while the process ends.
    pub async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.turn).acquire_owned().await.ok()
    }

    /// Does work that costs as much as reading so many bytes: little at once, more in a turn.
    pub async fn work<T>(&self, bytes: usize, work: impl FnOnce() -> T) -> T {
        if bytes <= WORK_AT_ONCE {
            return work();
        }
        let _turn = self.turn().await;
        block_in_place(work)
    }

    /// The same for a future that works on its first poll and only waits afterwards, then without the turn.
    pub async fn work_at_first<T>(&self, bytes: usize, work: impl Future<Output = T>) -> T {
        if bytes <= WORK_AT_ONCE {
            return work.await;
        }
        let mut turn = self.turn().await;
        let mut work = pin!(work);
        poll_fn(|cx| match turn.take() {
            Some(_turn) => block_in_place(|| work.as_mut().poll(cx)),
            None => work.as_mut().poll(cx),
        })
        .await
    }

    /// Does small work that clients can ask for without a pause: at once while there is little of it, and beyond that one step after the
    /// other. A step takes no turn of long work, because small work can have long work in it and would wait for itself.
    pub async fn small<T>(&self, work: impl Future<Output = T>) -> T {
        if self.is_rare() {
            return work.await;
        }
        let mut work = pin!(work);
        loop {
            let step = self.steps.acquire().await;
            let done = poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx))).await;
            drop(step);
            match done {
                Poll::Ready(done) => return done,
                Poll::Pending => woken().await,
            }
        }
    }

    /// Counts one piece of small work, and tells whether there is little of it.
    fn is_rare(&self) -> bool {
        let (now, mut recent) = (Instant::now(), locked(&self.recent));
        if now.duration_since(recent.since) >= SMALL_WORK_TIME {
            *recent = Recent { since: now, count: 0 };
        }
        recent.count = recent.count.saturating_add(1);
        recent.count <= SMALL_WORK_AT_ONCE
    }

    /// Looks at processes and files outside of ptyd: a few looks at a time, and behind each a pause of some times its length. A look
    /// may hang, in a file system that does not answer: then it takes a place of this principal, and nobody else's.
    pub async fn look<T: Send + 'static>(&self, look: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let place = Arc::clone(&self.looks).acquire_owned().await.ok()?;
        let (sender, seen) = oneshot::channel();
        // The pause is kept also where the wait was given up.
        tokio::spawn(async move {
            let begun = Instant::now();
            if let Ok(found) = tokio::task::spawn_blocking(look).await {
                let _ = sender.send(found);
            }
            tokio::time::sleep_until(Instant::now() + begun.elapsed() * LOOK_PAUSES).await;
            drop(place);
        });
        seen.await.ok()
    }

    /// Room for an answer of so many bytes, as soon as the clients of this principal have taken enough of the earlier ones; `None`
    /// where they do not within this time.
    pub async fn room(&self, bytes: usize, patience: Duration) -> Option<AnswerRoom> {
        if bytes <= EVENT_BYTES_MAX {
            return Some(None);
        }
        let bytes = u32::try_from(bytes.min(ANSWERS_BYTES_MAX)).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.answers).acquire_many_owned(bytes);
        Some(Some(Arc::new(tokio::time::timeout(patience, room).await.ok()?.ok()?)))
    }
}

/// Waits until this task is woken, by whatever it waits for.
async fn woken() {
    let mut is_first = true;
    poll_fn(|_| if std::mem::take(&mut is_first) { Poll::Pending } else { Poll::Ready(()) }).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Waker};

    fn now<T>(future: impl Future<Output = T>) -> Poll<T> {
        pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    // promise: limit-6
    fn long_work_waits_for_its_principals_turn_and_short_work_and_others_do_not() {
        let lanes = Lanes::default();
        let ann = lanes.of("ann");
        let Poll::Ready(turn) = now(ann.turn()) else { panic!("it is free") };
        let long = || now(lanes.of("ann").work(WORK_AT_ONCE + 1, || 1));
        assert_eq!(long(), Poll::Pending);
        assert_eq!(now(lanes.of("ann").work(WORK_AT_ONCE, || 1)), Poll::Ready(1));
        assert_eq!(now(lanes.of("bob").work(usize::MAX, || 1)), Poll::Ready(1));
        drop(turn);
        assert_eq!(long(), Poll::Ready(1));
    }

    #[tokio::test]
    // promise: limit-6
    async fn a_flood_of_small_work_is_done_step_by_step_and_delays_no_other() {
        let lanes = Lanes::default();
        let ann = lanes.of("ann");
        // Their time is not over before this test is.
        locked(&ann.recent).since += SMALL_WORK_TIME * 1_000_000;
        for _ in 0..SMALL_WORK_AT_ONCE {
            assert_eq!(now(ann.small(async { 1 })), Poll::Ready(1));
        }
        let step = ann.steps.acquire().await.expect("it is open");
        assert!(now(ann.small(async { 1 })).is_pending());
        assert_eq!(now(lanes.of("bob").small(async { 1 })), Poll::Ready(1));
        // Work that only waits keeps nobody else from a step, and its own part of long work neither.
        drop(step);
        let (wake, woken) = oneshot::channel();
        let waiting = tokio::spawn({
            let ann = Arc::clone(&ann);
            async move {
                ann.small(async {
                    ann.work(usize::MAX, || ()).await;
                    woken.await
                })
                .await
            }
        });
        tokio::task::yield_now().await;
        assert_eq!(ann.small(async { 2 }).await, 2);
        wake.send(3).expect("it waits");
        assert_eq!(waiting.await.expect("no panic"), Ok(3));
        // Later there is little of it again.
        locked(&ann.recent).since = Instant::now() - SMALL_WORK_TIME;
        let _step = ann.steps.acquire().await.expect("it is open");
        assert_eq!(now(ann.small(async { 4 })), Poll::Ready(4));
    }

    #[tokio::test]
    async fn one_principal_checks_few_files_at_once_and_its_hanging_checks_delay_no_other() {
        let (lanes, most) = (Lanes::default(), Arc::new(AtomicUsize::new(0)));
        let running = Arc::new(AtomicUsize::new(0));
        let ann = lanes.of("ann");
        let looks = (0..20).map(|_| {
            let (ann, most, running) = (Arc::clone(&ann), Arc::clone(&most), Arc::clone(&running));
            tokio::spawn(async move {
                let look = move || {
                    most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::yield_now();
                    running.fetch_sub(1, Ordering::SeqCst);
                };
                ann.look(look).await
            })
        });
        for look in looks.collect::<Vec<_>>() {
            assert_eq!(look.await.expect("no panic"), Some(()));
        }
        assert!((1..=LOOKS_MAX).contains(&most.load(Ordering::SeqCst)));

        // A request that waits for a hanging look can go; the look keeps its place.
        let mut ends = Vec::new();
        for _ in 0..LOOKS_MAX {
            let (end, ended) = std::sync::mpsc::sync_channel::<()>(0);
            let hanging = ann.look(move || _ = ended.recv());
            assert!(tokio::time::timeout(Duration::from_millis(1), hanging).await.is_err());
            ends.push(end);
        }
        assert!(now(ann.look(|| 1)).is_pending());
        assert_eq!(lanes.of("bob").look(|| 1).await, Some(1));
        drop(ends);
        assert_eq!(ann.look(|| 1).await, Some(1));
    }

    #[tokio::test]
    async fn answers_that_are_not_taken_fill_their_principals_room_alone() {
        let lanes = Lanes::default();
        let ann = lanes.of("ann");
        let room = |lane: Arc<Lane>, bytes| async move { lane.room(bytes, Duration::ZERO).await };
        let held = room(Arc::clone(&ann), ANSWERS_BYTES_MAX).await.expect("it is free");
        assert!(room(Arc::clone(&ann), EVENT_BYTES_MAX + 1).await.is_none());
        assert!(
            room(Arc::clone(&ann), EVENT_BYTES_MAX).await.is_some() && room(lanes.of("bob"), 1 << 20).await.is_some()
        );
        drop(held);
        assert!(room(ann, usize::MAX).await.is_some());
    }
}
