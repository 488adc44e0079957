//! Splits bytes into lines of bounded length: a peer that never ends its line must not fill the memory.

/// The longest line; the server's own limit for one message.
pub(super) const LINE_BYTES_MAX: usize = 16 << 20;

/// Bytes before the end of their line.
#[derive(Debug, Default)]
pub(super) struct Lines {
    bytes: Vec<u8>,
    /// The bytes before this index have no newline.
    searched: usize,
    /// The line is too long and is discarded to its end.
    is_discarding: bool,
}

/// The result of a search.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A line without its newline.
    Whole(Vec<u8>),
    /// A line was too long and was discarded.
    TooLong,
}

impl Lines {
    /// Adds received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next complete line.
    pub fn next(&mut self) -> Option<Line> {
        loop {
            let Some(at) = self.bytes[self.searched..].iter().position(|b| *b == b'\n') else {
                self.searched = self.bytes.len();
                if self.searched > LINE_BYTES_MAX || self.is_discarding {
                    self.bytes.clear();
                    self.searched = 0;
                    self.is_discarding = true;
                }
                return None;
            };
            let rest = self.bytes.split_off(self.searched + at + 1);
            let mut line = std::mem::replace(&mut self.bytes, rest);
            line.pop();
            self.searched = 0;
            if std::mem::take(&mut self.is_discarding) || line.len() > LINE_BYTES_MAX {
                return Some(Line::TooLong);
            }
            if !line.iter().all(u8::is_ascii_whitespace) {
                return Some(Line::Whole(line));
            }
        }
    }

    /// Drops a line that will not be continued.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}
