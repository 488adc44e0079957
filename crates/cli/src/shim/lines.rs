//! Bytes into lines, with a bound: a peer that never ends its line must not fill the memory.

/// The longest line; the server's own limit for one message.
pub(super) const LINE_BYTES_MAX: usize = 16 << 20;

/// Bytes that are not yet a whole line.
#[derive(Debug, Default)]
pub(super) struct Lines {
    bytes: Vec<u8>,
    /// Up to here there is no newline.
    searched: usize,
    /// The line is too long and is thrown away up to its end.
    is_discarding: bool,
}

/// What was found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A line without its newline.
    Whole(Vec<u8>),
    /// A line was too long and is gone.
    TooLong,
}

impl Lines {
    /// Takes what was read.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next line, if it is whole.
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

    /// Forgets a line that will not be continued.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}
