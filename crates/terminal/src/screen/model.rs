//! The emulator, with its private state mirrored.
//!
//! `Model` is between parser and emulator. It passes nearly everything on, and
//! * mirrors what the emulator keeps private (tabs, margins, shifts, titles, keyboard flags), for snapshots;
//! * bounds what hostile output could grow: combining characters in a cell, stacks of titles and keyboard flags (the
//!   emulator's own keyboard stack panics when it is full, so it is never used);
//! * keeps wide characters whole. The emulator leaves halves behind when something is written or erased between them,
//!   and a half cannot be painted again.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use super::cells::{put, wraps};
use super::repair::{repair, repair_grid, repair_last_row, repair_wrap};
use alacritty_terminal::Term;
use alacritty_terminal::event::VoidListener;
use alacritty_terminal::grid::{Dimensions, Grid};
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::term::{Config, TermMode};
use alacritty_terminal::vte::ansi::{CharsetIndex, Color, Handler};

/// The cursor's position, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The row, from the top.
    pub row: u16,
    /// The column, from the left.
    pub col: u16,
    /// False while a program hides it.
    pub visible: bool,
}

/// A range of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The row, from the top, counted from 0.
    pub row: u16,
    /// Its first column, from the left, counted from 0.
    pub col: u16,
    /// Its bytes in the row's text, without blanks at the ends.
    pub bytes: Range<usize>,
}

/// Combining characters in one cell. Real scripts need four; stacks of hundreds are a joke.
pub(super) const COMBINING_MAX: usize = 8;
/// Titles and keyboard flags that may be pushed. Programs nest a few levels.
pub(super) const STACK_MAX: usize = 16;
/// Titles are shown in lists.
pub(super) const TITLE_CHARS_MAX: usize = 256;

struct Size {
    cols: usize,
    rows: usize,
}

impl Dimensions for Size {
    fn total_lines(&self) -> usize {
        self.rows
    }

    fn screen_lines(&self) -> usize {
        self.rows
    }

    fn columns(&self) -> usize {
        self.cols
    }
}

pub(super) struct Model {
    pub(super) term: Term<VoidListener>,
    pub(super) mirror: Mirror,
}

/// Private state of the emulator.
pub(super) struct Mirror {
    pub(super) charset: CharsetIndex,
    pub(super) tabs: Vec<bool>,
    /// The first row of the scrolling region, and the row behind its last.
    pub(super) margins: (usize, usize),
    pub(super) title: Option<String>,
    pub(super) titles: Vec<Option<String>>,
    /// The kitty keyboard flags of the primary and the alternate screen.
    pub(super) keyboards: [Keyboard; 2],
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Keyboard {
    /// The flags below the pushed ones.
    pub(super) base: u8,
    pub(super) pushed: Vec<u8>,
}

impl Keyboard {
    pub(super) fn top(&mut self) -> &mut u8 {
        self.pushed.last_mut().unwrap_or(&mut self.base)
    }
}

impl Mirror {
    pub(super) fn new(cols: usize, rows: usize) -> Self {
        Self {
            charset: CharsetIndex::G0,
            tabs: (0..cols).map(is_default_tab).collect(),
            margins: (0, rows),
            title: None,
            titles: Vec::new(),
            keyboards: Default::default(),
        }
    }
}

pub(super) fn is_default_tab(col: usize) -> bool {
    col.is_multiple_of(8)
}

impl Model {
    pub(super) fn new(cols: usize, rows: usize) -> Self {
        let config = Config { scrolling_history: 0, ..Config::default() };
        Self { term: Term::new(config, &Size { cols, rows }, VoidListener), mirror: Mirror::new(cols, rows) }
    }

    pub(super) fn size(&self) -> (usize, usize) {
        (self.term.columns(), self.term.screen_lines())
    }

    pub(super) fn has(&self, mode: TermMode) -> bool {
        self.term.mode().contains(mode)
    }

    pub(super) fn resize(&mut self, cols: usize, rows: usize) {
        if self.size() == (cols, rows) {
            return;
        }
        self.term.resize(Size { cols, rows });
        repair_grid(self.term.grid_mut());
        self.with_other_grid(repair_grid);
        self.mirror.margins = (0, rows);
        let kept = self.mirror.tabs.len().min(cols);
        self.mirror.tabs.truncate(kept);
        self.mirror.tabs.extend((kept..cols).map(is_default_tab));
    }

    pub(super) fn text(&self) -> Vec<String> {
        let mut rows = self.unbroken_text();
        rows.iter_mut().for_each(trim);
        rows
    }

    pub(super) fn unbroken_text(&self) -> Vec<String> {
        let row_text = |line: usize| {
            let mut text = String::new();
            self.row(line).iter().for_each(|cell| put(cell, &mut text));
            if !wraps(self.term.grid(), line) {
                trim(&mut text);
            }
            text
        };
        (0..self.term.screen_lines()).map(row_text).collect()
    }

    pub(super) fn inverse(&self) -> Vec<Span> {
        let mut spans = Vec::new();
        for line in 0..self.term.screen_lines() {
            let (mut col, mut at) = (0, 0);
            for run in
                self.row(line).chunk_by(|a, b| a.flags.contains(Flags::INVERSE) == b.flags.contains(Flags::INVERSE))
            {
                let (from, is_inverse) = (col, run[0].flags.contains(Flags::INVERSE));
                col += run.len();
                let mut text = String::new();
                run.iter().for_each(|cell| put(cell, &mut text));
                let blanks = text.len() - text.trim_start_matches(' ').len();
                let bytes = at + blanks..at + text.trim_end_matches(' ').len();
                at += text.len();
                if is_inverse && !bytes.is_empty() {
                    spans.push(Span { row: line as u16, col: (from + blanks) as u16, bytes });
                }
            }
        }
        spans
    }

    pub(super) fn row_marks(&self) -> Vec<u64> {
        let seen = Flags::INVERSE | Flags::BOLD | Flags::ITALIC | Flags::DIM | Flags::HIDDEN | Flags::STRIKEOUT;
        let mark = |line: usize| {
            let mut mark = DefaultHasher::new();
            for cell in self.row(line) {
                let style = cell.flags & (seen | Flags::ALL_UNDERLINES);
                // The colour of a blank is invisible.
                let ink = (cell.c != ' ' || !style.is_empty()).then_some(cell.fg);
                (cell.c, cell.zerowidth(), style.bits(), ink.map(number), number(cell.bg)).hash(&mut mark);
            }
            mark.finish()
        };
        (0..self.term.screen_lines()).map(mark).collect()
    }

    fn row(&self, line: usize) -> &[Cell] {
        &self.term.grid()[Line(line as i32)][..]
    }

    pub(super) fn cursor(&self) -> Cursor {
        let point = self.term.grid().cursor.point;
        Cursor { row: point.line.0 as u16, col: point.column.0 as u16, visible: self.has(TermMode::SHOW_CURSOR) }
    }

    pub(super) fn title(&self) -> Option<&str> {
        self.mirror.title.as_deref()
    }

    /// Passes the inactive grid to `visit`: the primary one below the alternate, or the reverse.
    ///
    /// The emulator can only show it by swapping the two, which blanks the alternate grid and overwrites the primary
    /// one's saved cursor; both are restored.
    pub(super) fn with_other_grid<T>(&mut self, visit: impl FnOnce(&mut Grid<Cell>) -> T) -> T {
        let is_alternate = self.has(TermMode::ALT_SCREEN);
        let shown = is_alternate.then(|| self.term.grid().clone());
        let saved_cursor = self.term.grid().saved_cursor.clone();
        self.term.swap_alt();
        let result = visit(self.term.grid_mut());
        self.term.swap_alt();
        match shown {
            Some(grid) => *self.term.grid_mut() = grid,
            None => self.term.grid_mut().saved_cursor = saved_cursor,
        }
        result
    }

    /// Repeats the character before the cursor, at most a screenful. The parser would repeat the character that it saw
    /// last, wherever it is now, and a snapshot has only what is on the screen.
    pub(super) fn repeat(&mut self, count: usize) {
        let grid = self.term.grid();
        let (cols, rows) = self.size();
        let cells = &grid[grid.cursor.point.line][..];
        let printed_to = grid.cursor.point.column.0 + usize::from(grid.cursor.input_needs_wrap);
        let is_first_half = |cell: &&Cell| !cell.flags.contains(Flags::WIDE_CHAR_SPACER);
        if let Some(cell) = cells[..printed_to].iter().rfind(is_first_half) {
            let character = cell.c;
            for _ in 0..count.min(cols * rows) {
                self.input(character);
            }
        }
    }

    pub(super) fn keyboard(&mut self) -> &mut Keyboard {
        let index = usize::from(self.has(TermMode::ALT_SCREEN));
        &mut self.mirror.keyboards[index]
    }

    /// Makes the cursor's row whole again.
    pub(super) fn repair_row(&mut self) {
        let line = self.term.grid().cursor.point.line;
        repair(&mut self.term.grid_mut()[line][..]);
    }

    pub(super) fn repair_last_row(&mut self) {
        repair_last_row(self.term.grid_mut());
    }

    /// Printing wraps without scrolling only in a last row below the margins.
    pub(super) fn repair_after_print(&mut self) {
        if self.mirror.margins.1 < self.term.screen_lines() {
            self.repair_last_row();
        }
        // A wide character that does not fit and may not wrap is not written, but leaves the cursor waiting to wrap.
        if !self.has(TermMode::LINE_WRAP) {
            self.repair_wrap();
        }
    }

    /// Only a cursor in the last column of a row that has not wrapped yet waits to wrap. The emulator also lets it wait
    /// elsewhere: when it moves back by tabs or to another row, or when a saved cursor is restored.
    pub(super) fn repair_wrap(&mut self) {
        repair_wrap(self.term.grid_mut());
    }

    /// Moves the cursor by lines, to a column. In origin mode the emulator adds the margin twice here.
    pub(super) fn move_to(&mut self, lines: i32, col: usize) {
        let line = self.term.grid().cursor.point.line.0 + lines;
        let top = if self.has(TermMode::ORIGIN) { self.mirror.margins.0 as i32 } else { 0 };
        self.term.goto((line - top).max(0), col);
    }

    /// In origin mode the cursor cannot leave the margins, so it is moved back if the emulator let it out.
    pub(super) fn keep_to_margins(&mut self) {
        if self.has(TermMode::ORIGIN) {
            let (top, bottom) = self.mirror.margins;
            let line = &mut self.term.grid_mut().cursor.point.line;
            *line = (*line).clamp(Line(top as i32), Line(bottom as i32 - 1));
        }
    }

    /// How many combining characters the next one's cell already has.
    pub(super) fn combining_at_cursor(&self) -> usize {
        let grid = self.term.grid();
        let mut column = grid.cursor.point.column;
        if !grid.cursor.input_needs_wrap {
            column = Column(column.0.saturating_sub(1));
        }
        let row = &grid[grid.cursor.point.line];
        if row[column].flags.contains(Flags::WIDE_CHAR_SPACER) {
            column = Column(column.0.saturating_sub(1));
        }
        row[column].zerowidth().map_or(0, <[char]>::len)
    }

    pub(super) fn scrolls_whole(&self) -> bool {
        self.mirror.margins == (0, self.term.screen_lines()) && !self.has(TermMode::ORIGIN)
    }

    pub(super) fn use_full_margins(&mut self) {
        self.mirror.margins = (0, self.term.screen_lines());
    }
}

/// A unique number for a colour.
fn number(color: Color) -> u32 {
    match color {
        Color::Named(name) => name as u32,
        Color::Indexed(index) => 1 << 16 | u32::from(index),
        Color::Spec(rgb) => u32::from_be_bytes([1, rgb.r, rgb.g, rgb.b]),
    }
}

fn trim(row: &mut String) {
    row.truncate(row.trim_end_matches(' ').len());
}
