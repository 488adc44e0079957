//! The fast path of the transcript: lines of printable ASCII that end in `\r\n` are their own text.
//!
//! Text is held until it is out of reach: a program could move the cursor up as far as the screen goes and overwrite
//! it. So at least a screenful stays here, and [`Plain::replay`] gives it to a terminal when other output comes.

use super::emulated::{Emulated, Size};
use super::lines::{Lines, tab_len};

pub(super) struct Plain {
    size: Size,
    /// The terminal as it was when the plain path was taken: the rows above the held text. `None` once that is out of
    /// reach, or if there was none.
    above: Option<Box<Emulated>>,
    /// Whole lines, then the unfinished one.
    held: String,
    /// The beginning of the unfinished line in `held`.
    line_from: usize,
    /// Its end.
    at: Position,
    /// The number of rows of the whole lines.
    held_rows: usize,
    /// A carriage return came last, which is plain only before a line feed.
    is_returned: bool,
}

/// The end of a line that begins at the left margin.
#[derive(Clone, Copy, Default)]
struct Position {
    /// The number of full rows above.
    rows: usize,
    /// The column, which is the number of columns if the row is full and the next character begins another.
    col: usize,
}

impl Position {
    /// Behind as many characters, at least one.
    fn printed(self, len: usize, cols: usize) -> Self {
        let before_last = self.col + len - 1;
        Self { rows: self.rows + before_last / cols, col: before_last % cols + 1 }
    }

    /// Behind a tab.
    fn tabbed(self, cols: usize) -> Self {
        let Self { rows, col } = if self.col < cols { self } else { Self { rows: self.rows + 1, col: 0 } };
        Self { rows, col: col + tab_len(col, cols) }
    }

    fn advanced(self, character: char, cols: usize) -> Self {
        if character == '\t' { self.tabbed(cols) } else { self.printed(1, cols) }
    }

    fn of(line: &str, cols: usize) -> Self {
        line.chars().fold(Self::default(), |at, character| at.advanced(character, cols))
    }
}

/// How many screenfuls are held before text out of reach is emitted. Moving text costs; holding it does not.
const SCREENS_HELD_MAX: usize = if cfg!(test) { 2 } else { 16 };

impl Plain {
    pub(super) fn new(size: Size, above: Option<Box<Emulated>>) -> Self {
        Self {
            size,
            above,
            held: String::new(),
            line_from: 0,
            at: Position::default(),
            held_rows: 0,
            is_returned: false,
        }
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
                    if !self.goes_on(&text[at..at + len], self.at.printed(len, self.size.cols)) {
                        break;
                    }
                    at += len;
                    continue;
                }
                b'\t' if self.goes_on("\t", self.at.tabbed(self.size.cols)) => {}
                _ => break,
            }
            at += 1;
        }
        at
    }

    /// Takes a part of the line. A line that alone fills the screen is refused, because parts of it are finished before it
    /// ends.
    fn goes_on(&mut self, part: &str, after: Position) -> bool {
        let fits = after.rows < self.size.rows;
        if fits {
            self.held.push_str(part);
            self.at = after;
        }
        fits
    }

    /// Whether the sequence has no effect here: choosing the usual character sets, and erasing to the right of a cursor
    /// with nothing to its right.
    pub(super) fn is_unchanged_by(&self, sequence: &[u8]) -> bool {
        match sequence {
            [_, b'(' | b')', b'B'] => true,
            [_, b'[', b'K'] | [_, b'[', b'0', b'K'] => {
                // In the last column the cursor is on a character, not behind it.
                !self.is_returned && self.at.col < self.size.cols
            }
            _ => false,
        }
    }

    fn end_line(&mut self, finished: &mut Lines) {
        self.held_rows += std::mem::take(&mut self.at).rows + 1;
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
            kept_rows += Position::of(line.trim_end_matches('\n'), self.size.cols).rows + 1;
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
            emulated.text(line, finished);
            emulated.text("\r\n", finished);
        }
        emulated.text(&self.held[self.line_from..], finished);
        if self.is_returned {
            emulated.text("\r", finished);
        }
        emulated
    }

    pub(super) fn write_rest(&self, lines: &mut Lines) {
        if let Some(above) = &self.above {
            above.write_above(lines);
        }
        self.held[..self.line_from].lines().for_each(|line| lines.line(line));
        let line = &self.held[self.line_from..];
        if !self.is_returned {
            return lines.part(line);
        }
        // The cursor is at the beginning of the last row, and blanks behind it are none.
        let (mut at, mut row_from) = (Position::default(), 0);
        for (index, character) in line.char_indices() {
            let after = at.advanced(character, self.size.cols);
            if after.rows > at.rows {
                row_from = index;
            }
            at = after;
        }
        lines.part(&line[..row_from]);
        lines.part(line[row_from..].trim_end_matches([' ', '\t']));
    }
}
