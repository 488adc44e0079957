//! Output: requests to read it, and its forms as text, bytes and screen.

use std::time::{Duration, SystemTime};

use journal::MaskedText;

use super::budget::Budget;
use crate::ids::{CommandId, SessionId};
use crate::lane::AnswerRoom;

/// A request to read output.
#[derive(Debug, Clone)]
pub struct ReadOutput {
    /// The session.
    pub session: SessionId,
    /// The position to start at.
    pub since: Since,
    /// Only the next range of output of this kind.
    pub kind: Option<OutputKind>,
    /// The form of the output.
    pub view: View,
    /// At most this many bytes of the journal.
    pub limit: usize,
    /// Only some of the lines (text).
    pub lines: Option<Lines>,
    /// Wait this long for at least one new byte.
    pub wait: Duration,
    /// How many characters of text to give at most.
    pub budget: Budget,
    /// The caller's read cursor moves to the end of this output; not for output that is only searched and never shown.
    pub moves_cursor: bool,
}

/// Some of the lines of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lines {
    /// At most this many from the position on; the next ones are behind them.
    First(usize),
    /// At most this many, up to the end.
    Newest(usize),
}

/// A position in the output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Since {
    /// The oldest retained byte.
    First,
    /// This offset.
    Offset(u64),
    /// The first output at or after this time.
    Time(SystemTime),
    /// The caller's read cursor.
    Last,
    /// The output of this command.
    Command(CommandId),
}

/// The forms of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// Text as a terminal shows it.
    Text,
    /// Every byte, markers included.
    Raw,
    /// The bytes for a terminal: without our markers and without the queries that ptyd answers itself.
    Stream,
}

/// Output from a position on.
#[derive(Debug, Clone)]
pub struct OutputView {
    /// The form of the output.
    pub view: View,
    /// The bytes, in the raw and stream views.
    pub bytes: Vec<u8>,
    /// The text, in the text view.
    pub text: TextView,
    /// The first byte shown.
    pub from: u64,
    /// The offset at which to continue.
    pub next: u64,
    /// The offset of the oldest retained byte.
    pub first: u64,
    /// The journal's end.
    pub end: u64,
    /// The lost range between the requested offset and `from`.
    pub gap: Option<(u64, u64)>,
    /// The session has ended and there is no more output.
    pub is_final: bool,
    /// Room that a large answer takes until its client has taken it.
    pub room: AnswerRoom,
}

/// Output as text, cut to a budget.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextView {
    /// The head, or all of it.
    pub head: MaskedText,
    /// The range left out between head and tail.
    pub omitted: Option<Omitted>,
    /// The tail, if a range was left out.
    pub tail: MaskedText,
    /// The beginning of the range of the journal that is shown.
    pub from: u64,
    /// Its end.
    pub to: u64,
    /// How many bytes were not text (most control characters, or not UTF-8) and are shown as `\xNN`.
    pub escaped: u64,
    /// How many lines a program ended with CR LF. The text ends them with LF.
    pub crlf_lines: u64,
    /// Text in it that a person at the terminal would not have seen.
    pub unseen: HiddenText,
}

/// The range of the journal that a text leaves out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Omitted {
    /// How many bytes at the beginning of the range retention has freed: they cannot be read any more.
    pub freed: u64,
    /// The first line left out, counted from 1 in this output; 0 if freed bytes make it unknown.
    pub first_line: u64,
    /// The last line left out; 0 if freed bytes make it unknown.
    pub last_line: u64,
    /// The range's first byte.
    pub from: u64,
    /// The offset after the range's last byte.
    pub to: u64,
}

impl Omitted {
    /// The length of the range in bytes, including freed ones.
    pub fn bytes(&self) -> u64 {
        self.to.saturating_sub(self.from)
    }

    /// The part of the range that can still be read.
    pub fn kept(&self) -> std::ops::Range<u64> {
        self.from.saturating_add(self.freed).min(self.to)..self.to
    }
}

/// The screen of a terminal.
#[derive(Debug, Clone)]
pub struct ScreenView {
    /// The rows, without trailing blanks.
    pub rows: Vec<MaskedText>,
    /// The cursor's row, from 0.
    pub cursor_row: u16,
    /// The cursor's column, from 0.
    pub cursor_col: u16,
    /// Whether the cursor is shown.
    pub cursor_visible: bool,
    /// The window's title.
    pub title: MaskedText,
    /// Whether the title is new to the caller.
    pub is_title_new: bool,
    /// The width in cells.
    pub cols: u16,
    /// Text in reverse video, such as the selected entry of a menu.
    pub inverse: Vec<Span>,
    /// A hash of each row, including its colours.
    pub marks: Vec<u64>,
    /// The rows, from 0, that are new to the caller; `None` in its first screen of this size.
    pub changed: Option<Vec<u16>>,
    /// The rows among them that only stand on others than before.
    pub moved: Option<MovedRows>,
    /// A program paints the alternate screen.
    pub is_alternate: bool,
    /// The program that paints it.
    pub painter: Painter,
    /// Bytes that paint this screen in a new terminal of the same size.
    pub ansi: Vec<u8>,
    /// The offset up to which the journal is part of it.
    pub at: u64,
}

/// The program that paints a screen: a program that starts anew is not compared with the one before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Painter {
    /// The running command.
    pub command: Option<CommandId>,
    /// How often the alternate screen was entered.
    pub alternate_screens: u64,
}

/// The last screen that a caller was shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownScreen {
    painter: Painter,
    /// A hash of each row.
    marks: Vec<u64>,
    title: MaskedText,
}

impl ScreenView {
    /// The text of a span.
    pub fn text_of(&self, span: &Span) -> &str {
        self.rows.get(usize::from(span.row)).and_then(|row| row.get(span.bytes.clone())).unwrap_or_default()
    }

    /// Marks the difference to the last screen that the caller was shown, and returns what it is shown now.
    pub fn compare(&mut self, before: Option<&ShownScreen>) -> ShownScreen {
        self.is_title_new = before.is_none_or(|before| before.title != self.title);
        (self.changed, self.moved) = (None, None);
        let is_same = |it: &&ShownScreen| it.painter == self.painter && it.marks.len() == self.marks.len();
        if let Some(ShownScreen { marks: before, .. }) = before.filter(is_same) {
            let is_new = |row: &usize| before[*row] != self.marks[*row];
            let changed = (0..before.len()).filter(is_new).filter_map(|row| u16::try_from(row).ok());
            self.changed = Some(changed.collect());
            self.moved = moved(before, &self.marks);
        }
        ShownScreen { painter: self.painter, marks: self.marks.clone(), title: self.title.clone() }
    }
}

/// The longest run of rows that stood on other rows of the screen before, as after a line was inserted or deleted.
fn moved(before: &[u64], now: &[u64]) -> Option<MovedRows> {
    /// Fewer changed rows are told as such.
    const ROWS_MIN: usize = 4;
    let height = now.len();
    let mut best: Option<(usize, MovedRows)> = None;
    for shift in (1..height).flat_map(|by| [(by, 0), (0, by)]) {
        let (from, to) = shift;
        let is_moved = |row: usize| before.get(row - to + from) == now.get(row);
        let mut row = to;
        while row < height - from {
            let run = (row..height - from).take_while(|row| is_moved(*row)).count();
            let changed = (row..row + run).filter(|row| before[*row] != now[*row]).count();
            if changed >= ROWS_MIN && best.as_ref().is_none_or(|(most, _)| changed > *most) {
                best = Some((changed, MovedRows { rows: row..row + run, from: row - to + from }));
            }
            row += run + 1;
        }
    }
    best.map(|(_, moved)| moved)
}

/// Rows of a screen that stood elsewhere on the screen before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedRows {
    /// The rows, from 0.
    pub rows: std::ops::Range<usize>,
    /// The row on which the first of them stood.
    pub from: usize,
}

pub use terminal::{HiddenText, Span};

/// The kinds of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputKind {
    /// A command's output.
    Command,
    /// Background output: prompts and output of background jobs, while no command ran.
    Background,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_moved_are_found_with_their_earlier_place() {
        let before = [1, 2, 3, 4, 5, 6, 7, 8, 9];
        // The second row is deleted, and a new one comes below.
        let deleted = moved(&before, &[1, 3, 4, 5, 6, 7, 8, 20, 9]).expect("moved");
        assert_eq!((deleted.rows, deleted.from), (1..7, 2));
        let inserted = moved(&before, &[1, 20, 2, 3, 4, 5, 6, 7, 9]).expect("moved");
        assert_eq!((inserted.rows, inserted.from), (2..8, 1));
        let scrolled = moved(&before, &[5, 6, 7, 8, 20, 21, 22, 23, 9]).expect("moved");
        assert_eq!((scrolled.rows, scrolled.from), (0..4, 4));
        assert!(moved(&before, &before).is_none() && moved(&before, &[1, 2, 3, 20, 5, 6, 7, 8, 9]).is_none());
        // Equal rows have not moved.
        assert!(moved(&[1, 7, 7, 7, 7, 7, 7], &[2, 7, 7, 7, 7, 7, 7]).is_none());
    }
}
