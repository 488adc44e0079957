//! Pauses of the whole machine: a stopped virtual machine, or a frozen control group that holds server and sessions.
//!
//! The monotonic clock of such a machine jumps ahead, and every deadline passes at once. A deadline that stands for the silence
//! of somebody says nothing then: nobody could have spoken.

use std::time::Duration;

use tokio::time::Instant;

/// A look that comes this long after it was due follows a pause. A busy machine delays looks by less.
pub(crate) const PAUSE_MIN: Duration = Duration::from_secs(5);

/// Whether everything was paused between this time, at which somebody should have looked, and now.
pub(crate) fn was_paused(due: Instant, now: Instant) -> bool {
    now.saturating_duration_since(due) >= PAUSE_MIN
}
