//! Limits the output to a number of bytes per second. The rest stays in the terminal, where the kernel blocks the
//! writer: nothing is lost and nothing is ended.
//!
//! A command's end must not be published long before its output, nor a question before its text. So output before an
//! announced marker passes at once and is counted against the time after it, but at most a second's worth: otherwise a
//! flooding background job would delay everything else that a client waits for.

use std::num::NonZeroU64;

/// After a pause, as much output as this time allows may pass at once.
const BURST_US: u64 = 1_000_000;
/// Output resumes when there is room for as much as this time allows: a turn per byte would cost more than the bytes.
const BREATH_US: u64 = 50_000;
/// The credit for one byte: in this unit, each microsecond adds `rate`.
const BYTE: i128 = 1_000_000;
/// How much passes per turn on the way to a marker; the newest bytes of each turn are searched for it.
pub(crate) const STRIDE_BYTES: u64 = 2048;

#[derive(Debug, Default)]
pub(crate) struct Throttle {
    /// Bytes per second.
    rate: Option<NonZeroU64>,
    /// How much may pass, in millionths of a byte, so that no time is lost to rounding; negative if output passed in
    /// advance.
    credit: i128,
    counted_at: u64,
    /// No output passes until then.
    held_until: Option<u64>,
    /// The nonce of an expected marker, and how many bytes may pass at most because of it.
    awaits: Option<(Vec<u8>, u64)>,
}

impl Throttle {
    /// At most `rate` bytes per second; 0 means unlimited.
    pub(crate) fn new(rate: u64, now: u64) -> Self {
        let rate = NonZeroU64::new(rate);
        let credit = rate.map_or(0, |rate| i128::from(rate.get()) * i128::from(BURST_US));
        Self { rate, credit, counted_at: now, held_until: None, awaits: None }
    }

    /// How many bytes may pass now.
    pub(crate) fn allowance(&mut self, now: u64) -> usize {
        let Some(rate) = self.rate else { return usize::MAX };
        let elapsed = now.saturating_sub(self.counted_at);
        self.counted_at = now;
        let most = i128::from(rate.get()) * i128::from(BURST_US);
        self.credit = (self.credit + i128::from(rate.get()) * i128::from(elapsed)).min(most);
        if let Some((_, left)) = &self.awaits {
            return (*left).min(STRIDE_BYTES) as usize;
        }
        if self.held_until.is_some_and(|at| at > now) {
            return 0;
        }
        usize::try_from(self.credit / BYTE).unwrap_or(0)
    }

    /// Counts passed bytes; returns whether they were held back before.
    pub(crate) fn passed(&mut self, bytes: u64, now: u64) -> bool {
        let Some(rate) = self.rate else { return false };
        let were_held = self.held_until.is_some() && bytes > 0;
        let least = -(i128::from(rate.get()) * i128::from(BURST_US));
        self.credit = (self.credit - i128::from(bytes) * BYTE).max(least);
        self.awaits = self.awaits.take().map(|(nonce, left)| (nonce, left.saturating_sub(bytes))).filter(|a| a.1 > 0);
        let rate = i128::from(rate.get());
        // Less than one byte counts as none.
        let missing = (rate * i128::from(BREATH_US)).max(BYTE) - self.credit;
        let wait = u64::try_from((missing + rate - 1) / rate).unwrap_or(0);
        self.held_until = (self.credit < BYTE).then_some(now + wait);
        were_held
    }

    /// When output resumes; `None` if it is not held back.
    pub(crate) fn held_until(&self) -> Option<u64> {
        self.held_until.filter(|_| self.awaits.is_none())
    }

    /// When output that passed in advance is made up for; `None` if there is none.
    pub(crate) fn blocked_until(&self) -> Option<u64> {
        self.held_until().filter(|_| self.credit < 0)
    }

    /// A marker is expected: output before it passes, up to `bytes`.
    pub(crate) fn await_marker(&mut self, nonce: &[u8], bytes: u64) {
        self.awaits = self.rate.map(|_| (nonce.to_vec(), bytes));
    }

    /// The nonce of the expected marker.
    pub(crate) fn awaited(&self) -> Option<&[u8]> {
        self.awaits.as_ref().map(|(nonce, _)| nonce.as_slice())
    }

    /// The expected marker arrived.
    pub(crate) fn arrived(&mut self) {
        self.awaits = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    /// Everything that is let through until `end` of a flood, in pieces of up to `piece` bytes.
    fn flood(pace: &mut Throttle, from: u64, end: u64, piece: u64) -> u64 {
        let (mut now, mut passed) = (from, 0);
        while now < end {
            let bytes = piece.min(pace.allowance(now) as u64);
            pace.passed(bytes, now);
            passed += bytes;
            now = pace.held_until().unwrap_or(now + 10);
        }
        passed
    }

    #[test]
    fn without_a_limit_everything_passes() {
        let mut pace = Throttle::new(0, 0);
        assert_eq!(pace.allowance(0), usize::MAX);
        assert!(!pace.passed(1 << 40, 0));
        assert_eq!(pace.held_until(), None);
        pace.await_marker(b"abc", 1);
        assert_eq!(pace.awaited(), None);
    }

    #[test]
    fn a_flood_passes_at_the_rate_after_its_first_burst() {
        for rate in [1, 999, 10_000, 7 << 20] {
            for piece in [1, 4096, 256 << 10] {
                if rate / piece > 10_000 {
                    continue;
                }
                let passed = flood(&mut Throttle::new(rate, 0), 0, 10 * SECOND, piece);
                assert!(passed <= 11 * rate, "{rate} in pieces of {piece}: {passed}");
                assert!(passed + rate / 10 + 1 >= 11 * rate, "{rate} in pieces of {piece}: {passed}");
            }
        }
    }

    #[test]
    fn after_a_pause_one_burst_passes_and_no_more() {
        let mut pace = Throttle::new(1000, 0);
        flood(&mut pace, 0, 5 * SECOND, 100);
        assert_eq!(pace.allowance(3600 * SECOND), 1000);
    }

    #[test]
    fn it_is_reported_only_when_something_was_held_back() {
        let mut pace = Throttle::new(1000, 0);
        assert!(!pace.passed(1000, 0), "all that may come at once");
        let at = pace.held_until().expect("it is used up");
        assert!(!pace.passed(0, at), "nothing was waiting");
        assert_eq!(pace.held_until(), Some(at + BREATH_US));
        let at = pace.held_until().unwrap_or(0);
        pace.allowance(at);
        assert!(pace.passed(50, at));
    }

    #[test]
    fn output_before_a_marker_passes_and_is_paid_for_later() {
        let mut pace = Throttle::new(1000, 0);
        pace.passed(1000, 0);
        pace.await_marker(b"abc", 5000);
        assert_eq!((pace.allowance(1), pace.held_until()), (STRIDE_BYTES as usize, None));
        pace.passed(STRIDE_BYTES, 1);
        assert_eq!(pace.awaited(), Some(b"abc".as_slice()));
        pace.arrived();
        assert_eq!(pace.allowance(2), 0);
        let at = pace.held_until().expect("in debt");
        assert_eq!((at, pace.blocked_until()), (SECOND + BREATH_US + 1, Some(at)), "for a second and no longer");
        // A marker that never comes lets no more than so much through.
        pace.await_marker(b"def", 1);
        pace.passed(1, 3);
        assert_eq!(pace.awaited(), None);
        assert_eq!(pace.allowance(4), 0);
    }
}
