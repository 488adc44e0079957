//! Collects finished text: joins rows to logical lines, without the trailing cells that nothing was written to.

use unicode_width::UnicodeWidthChar;

/// A C1 control character is stored in a cell as one of the 32 noncharacters, which no text has: the terminal would
/// execute it.
pub(super) const STAND_IN_FIRST: char = '\u{fdd0}';
pub(super) const STAND_IN_LAST: char = '\u{fdef}';
const STAND_IN_AWAY: u32 = 0xfdd0 - 0x80;

/// A blank that was written is stored in a cell as DEL, which no text has: an erased cell holds a space.
pub(super) const WRITTEN_BLANK: char = '\x7f';
/// The cells that a tab moved over are its head and its rest, two more noncharacters. The tab is in the text if all of them
/// are still there; what is left of another reads as erased.
pub(super) const TAB_HEAD: char = '\u{1fffe}';
pub(super) const TAB_REST: char = '\u{1ffff}';
const TAB_COLS: usize = 8;

/// How many cells a tab takes from this column of a row: to the next tab stop, or to the margin.
pub(super) fn tab_len(col: usize, cols: usize) -> usize {
    (TAB_COLS - col % TAB_COLS).min(cols - col)
}

/// The stand-in for a C1 control character.
pub(super) fn stand_in(control: char) -> char {
    char::from_u32(u32::from(control) + STAND_IN_AWAY).unwrap_or(control)
}

/// The character that a cell's character represents.
fn read_as(character: char) -> char {
    match character {
        STAND_IN_FIRST..=STAND_IN_LAST => char::from_u32(u32::from(character) - STAND_IN_AWAY).unwrap_or(character),
        WRITTEN_BLANK => ' ',
        _ => character,
    }
}

/// A cell of a row: its column and what is in it.
pub(super) type Cell = (usize, char);

/// Collects rows. Cells that nothing was written to are counted, and become blanks only before text in the same line; so a
/// line of any length can be collected in pieces.
#[derive(Clone, Debug, Default)]
pub(super) struct Lines {
    text: String,
    blanks: usize,
    /// Whether the last row continues in the next.
    is_open: bool,
    /// The last cell of the last row was left empty, as before a wide character that did not fit.
    may_be_padded: bool,
}

impl Lines {
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Takes the text; an open line continues.
    pub(super) fn take(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    pub(super) fn row(&mut self, row: impl Iterator<Item = Cell>, is_wrapped: bool) {
        let mut ends_empty = false;
        for (col, character) in row {
            self.remove_padding(col, character);
            ends_empty = character == ' ';
            if ends_empty {
                self.blanks += 1;
            } else {
                self.write_blanks();
                self.text.push(read_as(character));
            }
        }
        (self.is_open, self.may_be_padded) = (is_wrapped, is_wrapped && ends_empty);
        if !is_wrapped {
            self.end_line();
        }
    }

    /// The unfinished last row. Blanks and tabs up to the cursor belong to it, and none behind it: a prompt ends with one.
    pub(super) fn last_row(&mut self, row: impl Iterator<Item = Cell>, cursor: usize) {
        let mut blanks = String::new();
        let mut kept = 0;
        for (col, character) in row {
            self.remove_padding(col, character);
            if col == 0 {
                blanks.extend(std::iter::repeat_n(' ', std::mem::take(&mut self.blanks)));
                kept = if cursor > 0 { blanks.len() } else { 0 };
            }
            if matches!(character, ' ' | WRITTEN_BLANK | '\t') {
                blanks.push(read_as(character));
                if col < cursor {
                    kept = blanks.len();
                }
            } else {
                self.text.push_str(&blanks);
                blanks.clear();
                kept = 0;
                self.text.push(read_as(character));
            }
        }
        self.text.push_str(&blanks[..kept]);
    }

    /// The beginning of a line whose text is known.
    pub(super) fn part(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// A whole line whose text is known.
    pub(super) fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.end_line();
    }

    fn remove_padding(&mut self, col: usize, character: char) {
        if col == 0 && std::mem::take(&mut self.may_be_padded) && character.width() == Some(2) {
            self.blanks -= 1;
        }
    }

    fn end_line(&mut self) {
        self.blanks = 0;
        self.is_open = false;
        self.text.push('\n');
    }

    fn write_blanks(&mut self) {
        self.text.extend(std::iter::repeat_n(' ', std::mem::take(&mut self.blanks)));
    }
}
