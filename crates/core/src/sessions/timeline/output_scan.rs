//! The output of a session as it is scanned: markers and boundaries.

use std::collections::VecDeque;

use terminal::{Boundaries, Scanner};

/// Attested markers kept for the stream view; an older one that stays in the stream does no harm to a terminal.
const MARKERS_KEPT: usize = 512;

/// The newest bytes that are kept, for the last words of a shell.
const NEWEST_KEPT: usize = 256;

#[derive(Debug)]
pub(crate) struct OutputScan {
    pub(crate) scanner: Scanner,
    pub(super) boundaries: Boundaries,
    pub(crate) markers: VecDeque<(u64, u64)>,
    /// All output from here to the scanner's position was scanned.
    pub(super) whole_from: u64,
    /// The newest bytes before the scanner's position.
    pub(super) newest: Vec<u8>,
}

impl OutputScan {
    pub(super) fn new(first: u64) -> Self {
        Self {
            scanner: Scanner::new(first),
            boundaries: Boundaries::new(),
            markers: VecDeque::new(),
            whole_from: first,
            newest: Vec::new(),
        }
    }

    /// Remembers the last of these bytes, which are scanned next.
    pub(super) fn note_newest(&mut self, bytes: &[u8]) {
        let newest = &bytes[bytes.len().saturating_sub(NEWEST_KEPT)..];
        let is_old = (self.newest.len() + newest.len()).saturating_sub(NEWEST_KEPT);
        self.newest.drain(..is_old);
        self.newest.extend_from_slice(newest);
    }

    /// The newest bytes behind this offset, as far as they are kept.
    pub(crate) fn newest_behind(&self, from: u64) -> &[u8] {
        let kept_from = self.scanner.position().saturating_sub(self.newest.len() as u64);
        let before = usize::try_from(from.saturating_sub(kept_from)).unwrap_or(usize::MAX);
        self.newest.get(before..).unwrap_or_default()
    }

    /// Remembers an attested marker: views leave it out.
    pub(super) fn marked(&mut self, from: u64, to: u64) {
        if self.markers.len() == MARKERS_KEPT {
            self.markers.pop_front();
        }
        self.markers.push_back((from, to));
    }
}
