//! Reproducible random choices: the seed is printed, and `PTYD_TEST_SEED` repeats it.

use std::time::Duration;

/// A small generator (splitmix64): good enough to choose moments, and the same everywhere.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// From this seed.
    pub fn of(seed: u64) -> Self {
        Self(seed)
    }

    /// From the given seed, or one of the clock's, which is printed.
    pub fn seeded() -> Self {
        let given = std::env::var("PTYD_TEST_SEED").ok().and_then(|text| text.parse().ok());
        let seed = given.unwrap_or_else(|| {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            u64::from(now.map_or(0, |d| d.subsec_nanos()))
        });
        println!("PTYD_TEST_SEED={seed}");
        Self(seed)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    /// A time up to `longest`.
    pub fn moment(&mut self, longest: Duration) -> Duration {
        Duration::from_micros(self.below(u64::try_from(longest.as_micros()).unwrap_or(u64::MAX)))
    }
}
