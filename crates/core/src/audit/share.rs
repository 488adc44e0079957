//! How much of the audit log each named token fills: so many bytes at once, and as many again in an hour.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// At this number of tokens, those that have written nothing of late are forgotten.
const TOKENS_MAX: usize = 4_096;

/// The time in which a share that was used up is whole again.
const WHOLE_AFTER: Duration = Duration::from_secs(3_600);

/// The shares of all tokens, for lines about changes and for those about reads.
#[derive(Debug)]
pub(super) struct TokenShares {
    pub(super) bytes: u64,
    pub(super) changes: Mutex<Shares>,
    pub(super) reads: Mutex<Shares>,
}

impl TokenShares {
    /// Each token has a share of this size for both.
    pub(super) fn new(bytes: u64) -> Self {
        let shares = || Mutex::new(Shares::new(bytes));
        Self { bytes, changes: shares(), reads: shares() }
    }
}

/// The shares of all tokens for one kind of line.
#[derive(Debug)]
pub(super) struct Shares {
    bytes: f64,
    used: HashMap<String, Used>,
}

/// The bytes that a token had used up at a moment.
#[derive(Debug, Clone, Copy)]
struct Used {
    bytes: f64,
    at: Instant,
}

impl Used {
    /// Those of a share of this size that still count now.
    fn still(self, share: f64, now: Instant) -> f64 {
        let passed = now.saturating_duration_since(self.at).as_secs_f64() / WHOLE_AFTER.as_secs_f64();
        (self.bytes - passed * share).max(0.0)
    }
}

impl Shares {
    /// Shares of this size each.
    pub(super) fn new(bytes: u64) -> Self {
        Self { bytes: bytes as f64, used: HashMap::new() }
    }

    /// Whether this token has used up its share.
    pub(super) fn is_used_up(&self, token: &str, now: Instant) -> bool {
        self.used.get(token).is_some_and(|used| used.still(self.bytes, now) >= self.bytes)
    }

    /// The same for a name that may be no token's: it is one if it has written before.
    pub(super) fn charge_known(&mut self, name: &str, bytes: usize, now: Instant) {
        if self.used.contains_key(name) {
            self.charge(name, bytes, now);
        }
    }

    /// The token has written so many bytes.
    pub(super) fn charge(&mut self, token: &str, bytes: usize, now: Instant) {
        let share = self.bytes;
        if self.used.len() >= TOKENS_MAX {
            self.used.retain(|_, used| used.still(share, now) > 0.0);
        }
        let before = self.used.get(token).map_or(0.0, |used| used.still(share, now));
        self.used.insert(token.to_owned(), Used { bytes: before + bytes as f64, at: now });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    // promise: audit-6
    fn a_used_up_share_returns_over_an_hour_and_does_not_affect_others() {
        let (mut shares, now) = (Shares::new(1_000), Instant::now());
        shares.charge("bot", 999, now);
        assert!(!shares.is_used_up("bot", now));
        shares.charge("bot", 501, now);
        assert!(shares.is_used_up("bot", now) && !shares.is_used_up("ann", now));
        let half = now + WHOLE_AFTER / 2;
        assert!(shares.is_used_up("bot", half));
        assert!(!shares.is_used_up("bot", half + Duration::from_secs(4)));
        // A token does not save up what it did not write.
        let later = now + 10 * WHOLE_AFTER;
        shares.charge("bot", 1_000, later);
        assert!(shares.is_used_up("bot", later));
    }

    #[test]
    fn tokens_that_have_written_nothing_of_late_are_forgotten() {
        let (mut shares, now) = (Shares::new(1_000), Instant::now());
        (0..2 * TOKENS_MAX).for_each(|token| {
            shares.charge(&token.to_string(), 1, now + WHOLE_AFTER * u32::try_from(token / TOKENS_MAX).expect("few"))
        });
        assert!(shares.used.len() <= TOKENS_MAX);
    }
}
