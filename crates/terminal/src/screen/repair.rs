//! Repairs the emulator's grid so that a snapshot can be painted from it.
//!
//! A wide character has both of its halves; only the last cell of a continued row has a wrap mark; only a cursor in the
//! last column waits to wrap. A grid with these properties can be painted again exactly.

use alacritty_terminal::grid::{Dimensions, Grid};
use alacritty_terminal::index::Line;
use alacritty_terminal::term::cell::{Cell, Flags};

/// Blanks halves of wide characters, and removes misplaced wrap marks.
pub(super) fn repair(row: &mut [Cell]) {
    for index in 0..row.len() {
        let is_paired = match row[index].flags {
            flags if flags.contains(Flags::WIDE_CHAR) => {
                row.get(index + 1).is_some_and(|next| next.flags.contains(Flags::WIDE_CHAR_SPACER))
            }
            flags if flags.contains(Flags::WIDE_CHAR_SPACER) => {
                index > 0 && row[index - 1].flags.contains(Flags::WIDE_CHAR)
            }
            _ => true,
        };
        if !is_paired {
            row[index].clear_wide();
            row[index].flags.remove(Flags::WIDE_CHAR_SPACER);
        }
        if index + 1 < row.len() {
            // Shifted here from the last column, the only one where it has a meaning.
            row[index].flags.remove(Flags::WRAPLINE);
        }
    }
}

/// The last row is not continued, although its continuation may have been scrolled away below it.
pub(super) fn repair_last_row(grid: &mut Grid<Cell>) {
    let (line, column) = (grid.bottommost_line(), grid.last_column());
    grid[line][column].flags.remove(Flags::WRAPLINE);
}

pub(super) fn repair_wrap(grid: &mut Grid<Cell>) {
    let last = grid.last_column();
    grid.cursor.input_needs_wrap &= grid.cursor.point.column == last;
    if grid.cursor.input_needs_wrap {
        let line = grid.cursor.point.line;
        grid[line][last].flags.remove(Flags::WRAPLINE);
    }
}

/// Repairs the grid after a resize.
pub(super) fn repair_grid(grid: &mut Grid<Cell>) {
    for line in 0..grid.screen_lines() {
        repair(&mut grid[Line(line as i32)][..]);
    }
    repair_last_row(grid);
    repair_wrap(grid);
    grid.saved_cursor.input_needs_wrap &= grid.saved_cursor.point.column == grid.last_column();
}
