//! Rate limits: a bucket for each principal, and one per listener for requests without a valid token.
//!
//! Each bucket is one point in time (the "theoretical arrival time" of the generic cell rate algorithm): no timer runs,
//! and a bucket unused for longer than a burst is forgotten. Wrong tokens never block valid ones.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// At this number of buckets, full ones, which carry no information, are removed. A bucket belongs to a token or a
/// listener, of which there are fewer.
const BUCKETS_MAX: usize = 4_096;

/// A rate with a permitted burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rate {
    /// The time after which one more request is allowed.
    each: Duration,
    /// How many requests may come at once.
    burst: u32,
}

impl Rate {
    /// `count` requests per second and `burst` at once; a count of zero means no limit.
    pub(super) fn per_second(count: u32, burst: u32) -> Option<Self> {
        (count > 0).then(|| Self { each: Duration::from_secs(1) / count, burst: burst.max(1) })
    }
}

/// One bucket per key.
#[derive(Debug)]
pub(super) struct Buckets<K> {
    rate: Option<Rate>,
    full_at: Mutex<HashMap<K, Instant>>,
}

impl<K: Eq + Hash> Buckets<K> {
    pub(super) fn new(rate: Option<Rate>) -> Self {
        Self { rate, full_at: Mutex::default() }
    }

    /// Takes one request from a bucket; an empty bucket returns when to retry.
    pub(super) fn take(&self, key: K, now: Instant) -> Result<(), Duration> {
        let Some(Rate { each, burst }) = self.rate else { return Ok(()) };
        let mut all = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= BUCKETS_MAX {
            all.retain(|_, full_at| *full_at > now);
        }
        let full_at = all.entry(key).or_insert(now);
        let lacking = full_at.saturating_duration_since(now);
        let most = each * (burst - 1);
        if lacking > most {
            return Err(lacking - most);
        }
        *full_at = now + lacking + each;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    // promise: access-8
    fn a_burst_goes_through_and_then_the_rate_holds_for_each_by_itself() {
        let buckets = Buckets::new(Rate::per_second(10, 3));
        let start = Instant::now();
        let at = |ms: u64, key: &'static str| buckets.take(key, start + Duration::from_millis(ms));
        assert_eq!([at(0, "a"), at(0, "a"), at(0, "a")], [Ok(()), Ok(()), Ok(())]);
        assert_eq!([at(0, "a"), at(0, "b")], [Err(Duration::from_millis(100)), Ok(())]);
        assert_eq!(
            [at(40, "a"), at(100, "a"), at(150, "a")],
            [Err(Duration::from_millis(60)), Ok(()), Err(Duration::from_millis(50))]
        );
        // Full again, and not fuller than full.
        assert_eq!([0, 0, 0, 0].map(|_| at(10_000, "a").is_ok()), [true, true, true, false]);
        let none = Buckets::new(Rate::per_second(0, 3));
        assert!((0..1_000).all(|_| none.take("a", start).is_ok()));
    }

    #[test]
    // promise: access-8
    fn buckets_that_are_full_again_are_forgotten() {
        let buckets = Buckets::new(Rate::per_second(10, 3));
        let start = Instant::now();
        for i in 0..2 * BUCKETS_MAX {
            let now = start + Duration::from_millis(i as u64);
            assert!(buckets.take(i, now).is_ok());
        }
        assert!(buckets.full_at.lock().expect("whole").len() <= BUCKETS_MAX);
    }
}
