//! The slow path of the transcript: a virtual terminal without scrollback, whose rows are finished when they leave the
//! screen.
//!
//! Only this file uses `avt`.

use avt::observer::{Observation, Observer};
use avt::parser::Function;
use avt::{Operation, ScreenKind, Terminal};

use super::lines::{Cell, Lines, TAB_HEAD, TAB_REST, WRITTEN_BLANK, tab_len};

/// The terminal's size, in cells.
#[derive(Clone, Copy)]
pub(super) struct Size {
    pub(super) cols: usize,
    pub(super) rows: usize,
}

pub(super) struct Emulated {
    terminal: Terminal,
    /// The primary screen's cursor when the alternate screen was entered.
    cursor_below: Option<(usize, usize)>,
    /// A setting (margins, modes, a saved cursor) differs from a new terminal.
    is_changed: bool,
    tabs: Tabs,
}

/// The reasons why a tab is not written into the cells that it moves over.
#[derive(Clone, Copy, Default)]
struct Tabs {
    /// The program sets stops of its own.
    are_set: bool,
    /// Characters are inserted, so a tab may not be written into its cells.
    are_inserted: bool,
    /// The line ends at the margin.
    are_clipped: bool,
}

impl Emulated {
    pub(super) fn new(size: Size) -> Self {
        // The only error is a size of 0, and sizes are clamped earlier.
        let terminal = Terminal::new(size.cols, size.rows).expect("a size above 0");
        Self { terminal, cursor_below: None, is_changed: false, tabs: Tabs::default() }
    }

    /// Text without sequences.
    pub(super) fn text(&mut self, text: &str, lines: &mut Lines) {
        for part in text.split_inclusive('\t') {
            match part.strip_suffix('\t') {
                Some(before) => {
                    self.feed(before, lines);
                    self.tab(lines);
                }
                None => self.feed(part, lines),
            }
        }
    }

    /// A tab is written into the cells that it moves over if nothing was written to them. Text has no right margin, so at the
    /// margin it does not return to the last column, as a terminal's does.
    fn tab(&mut self, lines: &mut Lines) {
        let (cursor, cols) = (self.terminal.cursor(), self.terminal.size().0);
        let (row, col) = if cursor.col < cols { (cursor.row, cursor.col) } else { (cursor.row + 1, 0) };
        let len = tab_len(col, cols);
        // There is no row below the last one: it comes when the screen scrolls.
        let cells = self.terminal.screen().line(row).map_or(&[][..], |line| &line.cells()[col..col + len]);
        let is_free = cells.iter().all(|cell| cell.char() == ' ' && cell.width() == 1);
        let Tabs { are_set, are_inserted, are_clipped } = self.tabs;
        if !is_free || are_set || are_inserted || are_clipped {
            return self.feed("\t", lines);
        }
        let cells: String = std::iter::once(TAB_HEAD).chain(std::iter::repeat_n(TAB_REST, len - 1)).collect();
        self.feed(&cells, lines);
    }

    fn feed(&mut self, text: &str, lines: &mut Lines) {
        // SO and SI choose character sets.
        if memchr::memchr2(0x0e, 0x0f, text.as_bytes()).is_some() {
            self.is_changed = true;
        }
        // A sequence may have a space in it; text has no escape character.
        if text.contains(' ') && !text.starts_with('\x1b') {
            let text = text.replace(' ', WRITTEN_BLANK.encode_utf8(&mut [0; 1]));
            self.terminal.feed_with(&text, Collector(lines));
        } else {
            self.terminal.feed_with(text, Collector(lines));
        }
    }

    pub(super) fn sequence(&mut self, sequence: &str, lines: &mut Lines) {
        let cursor = self.terminal.cursor();
        let was_primary = self.is_primary();
        self.feed(sequence, lines);
        match (was_primary, self.is_primary()) {
            (true, false) => self.cursor_below = Some((cursor.row, cursor.col)),
            (_, true) => self.cursor_below = None,
            (false, false) => {}
        }
        if sequence == "\x1bc" {
            (self.is_changed, self.tabs) = (false, Tabs::default());
        } else if !only_moves_or_erases(sequence.as_bytes()) {
            self.is_changed = true;
            self.tabs.on(sequence.as_bytes());
        }
    }

    fn is_primary(&self) -> bool {
        self.terminal.active_screen_kind() == ScreenKind::Primary
    }

    /// Whether the cursor is at the start of a line without text in or below it, and the terminal behaves like a new
    /// one: then following plain lines are their own text.
    pub(super) fn is_at_fresh_line(&self, lines: &Lines) -> bool {
        let cursor = self.terminal.cursor();
        if self.is_changed || !self.is_primary() || cursor.col != 0 {
            return false;
        }
        let screen = self.terminal.screen();
        let is_continued = match cursor.row.checked_sub(1) {
            Some(above) => screen.line(above).is_none_or(avt::Line::is_wrapped),
            None => lines.is_open(),
        };
        !is_continued
            && screen
                .visible_lines()
                .skip(cursor.row)
                .all(|line| !line.is_wrapped() && line.chars().all(|character| character == ' '))
    }

    /// Writes the text above the cursor: finished once enough was printed below it.
    pub(super) fn write_above(&self, lines: &mut Lines) {
        let rows = self.terminal.cursor().row;
        for line in self.terminal.primary_screen().visible_lines().take(rows) {
            lines.row(cells(line), line.is_wrapped());
        }
    }

    pub(super) fn write_rest(&self, lines: &mut Lines) {
        let cursor = self.terminal.cursor();
        let cursor = self.cursor_below.unwrap_or((cursor.row, cursor.col));
        let screen = self.terminal.primary_screen();
        let last = last_row(&self.terminal, cursor.0);
        for (row, line) in screen.visible_lines().take(last + 1).enumerate() {
            if row < last {
                lines.row(cells(line), line.is_wrapped());
            } else {
                let kept = if row == cursor.0 { cursor.1 } else { 0 };
                lines.last_row(cells(line), kept);
            }
        }
    }
}

/// The last row that output has reached: the cursor's, or the last one with text.
fn last_row(terminal: &Terminal, cursor_row: usize) -> usize {
    let rows: Vec<_> = terminal.primary_screen().visible_lines().collect();
    let has_text = |line: &&avt::Line| {
        line.chars().any(|character| !matches!(character, ' ' | WRITTEN_BLANK | TAB_HEAD | TAB_REST))
    };
    rows.iter().rposition(has_text).unwrap_or(0).max(cursor_row)
}

impl Tabs {
    fn on(&mut self, sequence: &[u8]) {
        let has = |modes: &[u8], mode: &[u8]| modes.split(|byte| *byte == b';').any(|it| it == mode);
        match sequence {
            [_, b'H'] | [_, b'[', .., b'g'] => self.are_set = true,
            [_, b'[', b'?', modes @ .., last @ (b'h' | b'l')] if has(modes, b"7") => self.are_clipped = *last == b'l',
            [_, b'[', modes @ .., last @ (b'h' | b'l')] if has(modes, b"4") && !modes.starts_with(b"?") => {
                self.are_inserted = *last == b'h';
            }
            [_, b'[', b'!', b'p'] => self.are_inserted = false,
            _ => {}
        }
    }
}

/// The cells of a row: a tab for all cells of one, and an erased cell for what is left of another.
fn cells(line: &avt::Line) -> impl Iterator<Item = Cell> {
    let cells = line.cells();
    let mut tab_until = 0;
    cells.iter().enumerate().filter(|(_, cell)| cell.width() > 0).filter_map(move |(col, cell)| {
        if col < tab_until {
            return None;
        }
        let character = match cell.char() {
            TAB_HEAD => {
                let until = col + tab_len(col, cells.len());
                let is_rest = |cell: &avt::Cell| cell.char() == TAB_REST;
                let is_whole = cells[col + 1..until].iter().all(is_rest) && !cells.get(until).is_some_and(is_rest);
                if is_whole {
                    tab_until = until;
                    '\t'
                } else {
                    ' '
                }
            }
            TAB_REST => ' ',
            character => character,
        };
        Some((col, character))
    })
}

/// Moves finished rows to the collected text.
struct Collector<'a>(&'a mut Lines);

impl Observer for Collector<'_> {
    type Output = ();

    fn evicted(&mut self, _: &mut Observation<'_>, line: &avt::Line) {
        self.0.row(cells(line), line.is_wrapped());
    }

    /// A full reset blanks the screen; its text was visible before.
    fn before(&mut self, context: &mut Observation<'_>, operation: &Operation) {
        if !matches!(operation, Operation::Function(Function::Ris)) {
            return;
        }
        let terminal = context.terminal();
        let rows = terminal.primary_screen().visible_lines();
        let has_text = |line: &avt::Line| line.chars().any(|character| character != ' ');
        let used = last_row(terminal, 0);
        for line in rows.take(used + 1).filter(|line| used > 0 || has_text(line)) {
            self.0.row(cells(line), line.is_wrapped());
        }
    }

    fn end(&mut self, _: &mut Observation<'_>) {}
}

/// Whether the sequence leaves nothing behind but text and a cursor.
fn only_moves_or_erases(sequence: &[u8]) -> bool {
    match sequence {
        [_, b'D' | b'E' | b'M'] => true,
        [_, b'[', body @ .., last] => {
            b"ABCDEFGHIJKLMPSTXZ@`abdef".contains(last)
                && body.iter().all(|byte| byte.is_ascii_digit() || *byte == b';')
        }
        _ => false,
    }
}
