//! The fast path of the transcript: lines of printable ASCII that end in `\r\n` are their own text.
//!
//! Text is held until it is out of reach: a program could move the cursor up as far as the screen goes and overwrite
//! it. So at least a screenful stays here, and [`Plain::replay`] gives it to a terminal when other output comes.

use super::emulated::{Emulated, Size};
use super::lines::{Lines, SKIPPED};

pub(super) struct Plain {
    size: Size,
    /// The terminal as it was when the plain path was taken: the rows above the held text. `None` once that is out of
    /// reach, or if there was none.
    above: Option<Box<Emulated>>,
    /// Whole lines, then the unfinished one.
    held: String,
    /// The beginning of the unfinished line in `held`.
    line_from: usize,
    /// The number of rows of the whole lines.
    held_rows: usize,
    /// A carriage return came last, which is plain only before a line feed.
    is_returned: bool,
}

const TAB_COLS: usize = 8;

/// How many screenfuls are held before text out of reach is emitted. Moving text costs; holding it does not.
const SCREENS_HELD_MAX: usize = if cfg!(test) { 2 } else { 16 };

impl Plain {
    pub(super) fn new(size: Size, above: Option<Box<Emulated>>) -> Self {
        Self { size, above, held: String::new(), line_from: 0, held_rows: 0, is_returned: false }
    }

    fn line_len(&self) -> usize {
        self.held.len() - self.line_from
    }

    /// Takes as much of the text as is plain, and returns its length.
    pub(super) fn take(&mut self, text: &str, finished: &mut Lines) -> usize {
        let bytes = text.as_bytes();
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b'\n' if self.is_returned => self.end_line(finished),
                b'\r' => self.is_returned = true,
                // Harmless: the bell, and the character set that is active anyway.
                0x07 | 0x0f => {}
                _ if self.is_returned => break,
                0x20..=0x7e => {
                    let is_printable = |byte: &u8| matches!(byte, 0x20..=0x7e);
                    let rest = &bytes[at..];
                    let len = rest.iter().position(|byte| !is_printable(byte)).unwrap_or(rest.len());
                    if self.line_len() + len > self.size.cols * self.size.rows {
                        // The line alone fills the screen, so parts of it are finished before it ends.
                        break;
                    }
                    self.held.push_str(&text[at..at + len]);
                    at += len;
                    continue;
                }
                b'\t' => {
                    let stop = (self.line_len() / TAB_COLS + 1) * TAB_COLS;
                    if stop >= self.size.cols {
                        break;
                    }
                    let blanks = stop - self.line_len();
                    self.held.extend(std::iter::repeat_n(SKIPPED, blanks));
                }
                _ => break,
            }
            at += 1;
        }
        at
    }

    /// Whether the sequence has no effect here: choosing the usual character sets, and erasing to the right of a cursor
    /// with nothing to its right.
    pub(super) fn is_unchanged_by(&self, sequence: &[u8]) -> bool {
        match sequence {
            [_, b'(' | b')', b'B'] => true,
            [_, b'[', b'K'] | [_, b'[', b'0', b'K'] => {
                // In the last column the cursor is on a character, not behind it.
                !self.is_returned && (self.line_len() == 0 || !self.line_len().is_multiple_of(self.size.cols))
            }
            _ => false,
        }
    }

    fn rows_of(&self, line_len: usize) -> usize {
        line_len.div_ceil(self.size.cols).max(1)
    }

    fn end_line(&mut self, finished: &mut Lines) {
        self.held_rows += self.rows_of(self.line_len());
        self.held.push('\n');
        self.line_from = self.held.len();
        self.is_returned = false;
        if self.held_rows > SCREENS_HELD_MAX * self.size.rows {
            self.give_away(finished);
        }
    }

    /// Emits the text that no cursor can reach, and keeps the last screenful.
    fn give_away(&mut self, finished: &mut Lines) {
        if let Some(above) = self.above.take() {
            above.write_above(finished);
        }
        let mut kept_rows = 0;
        let mut kept_from = self.line_from;
        for line in self.held[..self.line_from].split_inclusive('\n').rev() {
            if kept_rows >= self.size.rows {
                break;
            }
            kept_rows += self.rows_of(line.len() - 1);
            kept_from -= line.len();
        }
        self.held[..kept_from].lines().for_each(|line| finished.line(line));
        self.held.drain(..kept_from);
        self.line_from -= kept_from;
        self.held_rows = kept_rows;
    }

    /// Hands over to a terminal, which then is as if it had processed everything.
    pub(super) fn replay(&mut self, finished: &mut Lines) -> Box<Emulated> {
        let size = self.size;
        let mut emulated = self.above.take().unwrap_or_else(|| Box::new(Emulated::new(size)));
        for line in self.held[..self.line_from].lines() {
            feed_line(&mut emulated, line, finished);
            emulated.feed("\r\n", finished);
        }
        feed_line(&mut emulated, &self.held[self.line_from..], finished);
        if self.is_returned {
            emulated.feed("\r", finished);
        }
        emulated
    }

    pub(super) fn write_rest(&self, lines: &mut Lines) {
        if let Some(above) = &self.above {
            above.write_above(lines);
        }
        self.held[..self.line_from].lines().for_each(|line| lines.line(line));
        let cursor = if self.is_returned { 0 } else { self.line_len() };
        lines.last_row(self.held[self.line_from..].chars(), cursor);
    }
}

/// Feeds a held line: the cursor moves over the cells that a tab has skipped.
fn feed_line(emulated: &mut Emulated, line: &str, finished: &mut Lines) {
    for part in line.split_inclusive(SKIPPED) {
        emulated.feed(part.trim_end_matches(SKIPPED), finished);
        if part.ends_with(SKIPPED) {
            emulated.feed("\x1b[C", finished);
        }
    }
}
