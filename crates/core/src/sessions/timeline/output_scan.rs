//! The output of a session as it is scanned: markers and boundaries.

use std::collections::VecDeque;

use terminal::{Boundaries, Scanner};

/// Attested markers kept for the stream view; an older one that stays in the stream does no harm to a terminal.
const MARKERS_KEPT: usize = 512;

#[derive(Debug)]
pub(crate) struct OutputScan {
    pub(crate) scanner: Scanner,
    pub(super) boundaries: Boundaries,
    pub(crate) markers: VecDeque<(u64, u64)>,
    /// All output from here to the scanner's position was scanned.
    pub(super) whole_from: u64,
}

impl OutputScan {
    pub(super) fn new(first: u64) -> Self {
        Self {
            scanner: Scanner::new(first),
            boundaries: Boundaries::new(),
            markers: VecDeque::new(),
            whole_from: first,
        }
    }

    /// Remembers an attested marker: views leave it out.
    pub(super) fn marked(&mut self, from: u64, to: u64) {
        if self.markers.len() == MARKERS_KEPT {
            self.markers.pop_front();
        }
        self.markers.push_back((from, to));
    }
}
