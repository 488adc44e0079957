//! The output of a session as it is scanned: markers, boundaries, and the line by which a command was handed over.

use std::collections::VecDeque;

use terminal::{Boundaries, Scanner};

/// Attested markers kept for the stream view; an older one that stays in the stream does no harm to a terminal.
const MARKERS_KEPT: usize = 512;
/// The most that an editor paints for a line of ours, with room for a prompt of many rows.
const ECHO_BYTES_MAX: usize = 16 << 10;

#[derive(Debug)]
pub(crate) struct OutputScan {
    pub(crate) scanner: Scanner,
    pub(super) boundaries: Boundaries,
    pub(crate) markers: VecDeque<(u64, u64)>,
    /// The output since a command was accepted whose own output has not begun, and its offset.
    pub(super) echo: (u64, Vec<u8>),
}

impl OutputScan {
    pub(super) fn new(first: u64) -> Self {
        Self {
            scanner: Scanner::new(first),
            boundaries: Boundaries::new(),
            markers: VecDeque::new(),
            echo: (first, Vec::new()),
        }
    }

    /// Remembers an attested marker: views leave it out.
    pub(super) fn marked(&mut self, from: u64, to: u64) {
        if self.markers.len() == MARKERS_KEPT {
            self.markers.pop_front();
        }
        self.markers.push_back((from, to));
    }

    /// Keeps bytes that may contain the loader's line.
    pub(super) fn keep_echo(&mut self, bytes: &[u8]) {
        let (at, (from, kept)) = (self.scanner.position(), &mut self.echo);
        // Only the editor's line is expected; more bytes are background output.
        if at == *from + kept.len() as u64 && kept.len() < ECHO_BYTES_MAX {
            kept.extend_from_slice(bytes);
        } else if at < *from && at + bytes.len() as u64 > *from {
            kept.extend_from_slice(&bytes[usize::try_from(*from - at).unwrap_or(bytes.len())..]);
        }
    }
}
