//! The cells of a grid as text.

use alacritty_terminal::grid::{Dimensions, Grid};
use alacritty_terminal::index::Line;
use alacritty_terminal::term::cell::{Cell, Flags};

/// Appends the visible text of a cell.
pub(super) fn put(cell: &Cell, text: &mut String) {
    if !cell.flags.contains(Flags::WIDE_CHAR_SPACER) {
        // The emulator remembers that a tab was here; it is shown as a blank.
        text.push(if cell.c == '\t' { ' ' } else { cell.c });
        text.extend(cell.zerowidth().into_iter().flatten());
    }
}

/// Whether a row continues in the next one.
pub(super) fn wraps(grid: &Grid<Cell>, line: usize) -> bool {
    line + 1 < grid.screen_lines()
        && grid[Line(line as i32)][..].last().is_some_and(|cell| cell.flags.contains(Flags::WRAPLINE))
}
