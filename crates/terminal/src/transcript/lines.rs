//! Collects finished text: joins rows to logical lines, without the trailing cells that nothing was written to.

/// A C1 control character is stored in a cell as one of the 32 noncharacters, which no text has: the terminal would
/// execute it.
pub(super) const STAND_IN_FIRST: char = '\u{fdd0}';
pub(super) const STAND_IN_LAST: char = '\u{fdef}';
const STAND_IN_AWAY: u32 = 0xfdd0 - 0x80;

/// A blank that was written is stored in a cell as DEL, which no text has: an erased cell holds a space.
pub(super) const WRITTEN_BLANK: char = '\x7f';
/// The cells that a tab skips, in the text of the plain path: nothing is written to them.
pub(super) const SKIPPED: char = '\0';

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

/// Collects rows. Cells that nothing was written to are counted, and become blanks only before text in the same line; so a
/// line of any length can be collected in pieces.
#[derive(Clone, Debug, Default)]
pub(super) struct Lines {
    text: String,
    blanks: usize,
    /// Whether the last row continues in the next.
    is_open: bool,
}

impl Lines {
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Takes the text; an open line continues.
    pub(super) fn take(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    pub(super) fn row(&mut self, row: impl Iterator<Item = char>, is_wrapped: bool) {
        for character in row {
            if character == ' ' {
                self.blanks += 1;
            } else {
                self.write_blanks();
                self.text.push(read_as(character));
            }
        }
        self.is_open = is_wrapped;
        if !is_wrapped {
            self.end_line();
        }
    }

    /// The unfinished last row. Blanks up to the cursor belong to it, and none behind it: a prompt ends with one.
    pub(super) fn last_row(&mut self, row: impl Iterator<Item = char>, cursor: usize) {
        let mut blanks_before_cursor = self.blanks;
        for (col, character) in row.enumerate() {
            if matches!(character, ' ' | WRITTEN_BLANK | SKIPPED) {
                self.blanks += 1;
                blanks_before_cursor += usize::from(col < cursor);
            } else {
                self.write_blanks();
                self.text.push(read_as(character));
                blanks_before_cursor = 0;
            }
        }
        self.blanks = if cursor > 0 { blanks_before_cursor } else { 0 };
        self.write_blanks();
    }

    /// A whole line of ASCII.
    pub(super) fn line(&mut self, line: &str) {
        let mut line = line.trim_end_matches(SKIPPED);
        while let Some((text, rest)) = line.split_once(SKIPPED) {
            self.text.push_str(text);
            self.text.push(' ');
            line = rest;
        }
        self.text.push_str(line);
        self.end_line();
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
