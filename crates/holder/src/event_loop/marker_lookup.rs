//! What has just passed into the journal: whether it had to wait for the session's output rate, and whether the marker is
//! in it that an end waits for.

use journal::{Offset, Record};

use super::{Holder, MARKER_SOUGHT_BYTES};

/// The nonce of a report's marker. A PATH may hold anything, a record of another kind has no marker.
pub(super) fn nonce_of(report: &[u8]) -> Option<&[u8]> {
    report.strip_prefix(b"D;;")?.split(|b| *b == b';').next().filter(|nonce| !nonce.is_empty())
}

impl Holder {
    /// So many bytes have passed. That they had to wait is said once for each command, and once between two of them.
    pub(super) fn count_throttled(&mut self, bytes: u64, now: u64) {
        let command = self.passing_of;
        if self.pace.passed(bytes, now) && self.paced.replace(command) != Some(command) {
            self.note(&Record::Limited { limit: wire::OUTPUT_RATE, command, count: 1 });
        }
        if self.pace.awaited().is_some_and(|nonce| self.newest_place_of(nonce, MARKER_SOUGHT_BYTES as u64).is_some()) {
            self.pace.arrived();
        }
    }

    /// Where the marker is, if it came faster than its report was drained: the bytes of this turn were moved before.
    pub(super) fn just_moved_marker_of(&self, report: &[u8]) -> Option<Offset> {
        self.newest_place_of(nonce_of(report)?, self.journal.end().since(self.turn_from))
    }

    /// Where these bytes stand among the newest, of which so many are looked at.
    pub(super) fn newest_place_of(&self, nonce: &[u8], bytes: u64) -> Option<Offset> {
        let bytes = bytes.min(MARKER_SOUGHT_BYTES as u64);
        let mut newest = [0; MARKER_SOUGHT_BYTES];
        let newest = self.journal.newest(newest.get_mut(..bytes as usize)?).ok()?;
        let at = newest.windows(nonce.len()).rposition(|w| w == nonce)?;
        Some(Offset(self.journal.end().0 - newest.len() as u64 + at as u64))
    }
}
