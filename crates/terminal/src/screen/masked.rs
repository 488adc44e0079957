//! Masks the cells of a screen.

use std::borrow::Cow;

use alacritty_terminal::grid::{Dimensions, Grid};
use alacritty_terminal::index::{Column, Line, Point};
use alacritty_terminal::term::cell::{Cell, Flags};

use super::cells::{put, wraps};

/// Overwrites parts of a text, if there is anything to mask. The length of the text stays.
pub type Mask<'a> = Option<&'a dyn Fn(&mut [u8])>;

/// A grid with an asterisk in each cell of which `mask` changes the text. The rows are masked as one text: a wrapped row
/// continues in the next row, and a row that does not wrap ends with a line end.
pub(super) fn masked<'a>(grid: &'a Grid<Cell>, mask: Mask<'_>) -> Cow<'a, Grid<Cell>> {
    let Some(mask) = mask else { return Cow::Borrowed(grid) };
    let (text, places) = text_of(grid);
    let mut bytes = text.clone().into_bytes();
    mask(&mut bytes);
    if bytes == text.as_bytes() {
        return Cow::Borrowed(grid);
    }
    let mut grid = grid.clone();
    for (n, (from, point)) in places.iter().enumerate() {
        let range = *from..places.get(n + 1).map_or(text.len(), |(next, _)| *next);
        if bytes[range.clone()] != text.as_bytes()[range] {
            cover(&mut grid, *point);
        }
    }
    Cow::Owned(grid)
}

/// The text of the rows, and where the text of each cell begins in it.
fn text_of(grid: &Grid<Cell>) -> (String, Vec<(usize, Point)>) {
    let (mut text, mut places) = (String::new(), Vec::new());
    for line in 0..grid.screen_lines() {
        let row = &grid[Line(line as i32)][..];
        let from = text.len();
        for (column, cell) in row.iter().enumerate() {
            if !cell.flags.intersects(Flags::WIDE_CHAR_SPACER | Flags::LEADING_WIDE_CHAR_SPACER) {
                places.push((text.len(), Point::new(Line(line as i32), Column(column))));
                put(cell, &mut text);
            }
        }
        if !wraps(grid, line) {
            text.truncate(from + text[from..].trim_end_matches(' ').len());
            while places.last().is_some_and(|(at, _)| *at >= text.len() && *at > from) {
                places.pop();
            }
            places.push((text.len(), Point::new(Line(line as i32), Column(row.len() - 1))));
            text.push('\n');
        }
    }
    (text, places)
}

/// Puts an asterisk in a cell, and another in the second half of a wide character.
fn cover(grid: &mut Grid<Cell>, at: Point) {
    let is_wide = grid[at].flags.contains(Flags::WIDE_CHAR);
    for column in at.column.0..=at.column.0 + usize::from(is_wide) {
        let cell = &mut grid[at.line][Column(column)];
        let (colour, link) = (cell.underline_color(), cell.hyperlink());
        cell.c = '*';
        cell.flags.remove(Flags::WIDE_CHAR | Flags::WIDE_CHAR_SPACER);
        cell.extra = None;
        cell.set_underline_color(colour);
        cell.set_hyperlink(link);
    }
}
