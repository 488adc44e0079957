//! Inspects bytes that were just moved into the journal: whether the output throttle delayed them, and whether they
//! contain the marker of an expected end.

use journal::{Offset, Record};

use super::{Holder, MARKER_SOUGHT_BYTES};

/// The nonce of a report's marker. Only a `D` record has one; a PATH record may contain anything.
pub(super) fn nonce_of(report: &[u8]) -> Option<&[u8]> {
    report.strip_prefix(b"D;;")?.split(|b| *b == b';').next().filter(|nonce| !nonce.is_empty())
}

impl Holder {
    /// Counts moved bytes. A delay is recorded once per command, and once between two commands.
    pub(super) fn count_throttled(&mut self, bytes: u64, now: u64) {
        let command = self.passing_of;
        if self.pace.passed(bytes, now) && self.paced.replace(command) != Some(command) {
            self.note(&Record::Limited { limit: wire::OUTPUT_RATE, command, count: 1 });
        }
        if self.pace.awaited().is_some_and(|nonce| self.newest_place_of(nonce, MARKER_SOUGHT_BYTES as u64).is_some()) {
            self.pace.arrived();
        }
    }

    /// The offset of the marker, if it arrived before its report was drained: this turn's bytes were moved first.
    pub(super) fn just_moved_marker_of(&self, report: &[u8]) -> Option<Offset> {
        self.newest_place_of(nonce_of(report)?, self.journal.end().since(self.turn_from))
    }

    /// The offset of this nonce within the newest `bytes` bytes of the journal.
    pub(super) fn newest_place_of(&self, nonce: &[u8], bytes: u64) -> Option<Offset> {
        let bytes = bytes.min(MARKER_SOUGHT_BYTES as u64);
        let mut newest = [0; MARKER_SOUGHT_BYTES];
        let newest = self.journal.newest(newest.get_mut(..bytes as usize)?).ok()?;
        let at = newest.windows(nonce.len()).rposition(|w| w == nonce)?;
        Some(Offset(self.journal.end().0 - newest.len() as u64 + at as u64))
    }
}
