//! Tables for people: aligned columns, which fit the terminal where that is asked for.

use terminal::quote;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::tty;

/// The blanks between two columns.
const GAP: usize = 2;
/// The mark of a cell whose contents are cut.
const CUT: char = '…';

/// Aligned columns, the last one unlimited. A cell's contents cannot break out of it.
pub fn table(rows: Vec<Vec<String>>) -> String {
    Table::of(rows).lines().map(|line| line + "\n").collect()
}

/// The same, cut to the width of the terminal, if there is one.
pub fn fitted(rows: Vec<Vec<String>>) -> String {
    let mut table = Table::of(rows);
    if let Some(size) = tty::size() {
        table.fit(size.cols.into(), &[]);
    }
    table.lines().map(|line| line + "\n").collect()
}

/// Rows of cells, each safe to print.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// The rows; the first has the headings.
    pub fn of(rows: Vec<Vec<String>>) -> Self {
        let quoted = |row: Vec<String>| row.into_iter().map(|cell| quote::line(&cell).into_owned()).collect();
        Self { rows: rows.into_iter().map(quoted).collect() }
    }

    fn widths(&self) -> Vec<usize> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| self.rows.iter().filter_map(|row| Some(row.get(column)?.width())).max();
        (0..columns).map(|column| width(column).unwrap_or(0)).collect()
    }

    /// Cuts cells so that no line is wider than this: the widest columns first. Those at `tails` keep their ends.
    pub fn fit(&mut self, cols: usize, tails: &[usize]) {
        let mut widths = self.widths();
        let gaps = GAP * widths.len().saturating_sub(1);
        while gaps + widths.iter().sum::<usize>() > cols
            && let Some(widest) = widths.iter_mut().max().filter(|width| **width > 1)
        {
            *widest -= 1;
        }
        for row in &mut self.rows {
            for (column, (cell, width)) in row.iter_mut().zip(&widths).enumerate() {
                *cell = if tails.contains(&column) { shortened_before(cell, *width) } else { shortened(cell, *width) };
            }
        }
        if gaps + widths.len() > cols {
            // Not even a character of each column has room.
            self.rows = self.lines().map(|line| vec![shortened(&line, cols)]).collect();
        }
    }

    /// The rows as lines, without their ends.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let widths = self.widths();
        self.rows.iter().map(move |row| {
            let cells = row
                .iter()
                .zip(&widths)
                .map(|(cell, width)| format!("{cell}{}", " ".repeat(width.saturating_sub(cell.width()) + GAP)));
            cells.collect::<String>().trim_end().to_owned()
        })
    }
}

/// The beginning of a text that takes at most so many columns.
pub fn shortened(text: &str, cols: usize) -> String {
    if text.width() <= cols {
        return text.to_owned();
    }
    let Some(room) = cols.checked_sub(1) else { return String::new() };
    beginning(text.chars(), room).chain([CUT]).collect()
}

/// The end of a text that takes at most so many columns.
fn shortened_before(text: &str, cols: usize) -> String {
    if text.width() <= cols {
        return text.to_owned();
    }
    let Some(room) = cols.checked_sub(1) else { return String::new() };
    let end: Vec<char> = beginning(text.chars().rev(), room).collect();
    [CUT].into_iter().chain(end.into_iter().rev()).collect()
}

fn beginning(text: impl Iterator<Item = char>, mut room: usize) -> impl Iterator<Item = char> {
    text.take_while(move |c| {
        let width = c.width().unwrap_or(0);
        let fits = width <= room;
        room -= if fits { width } else { 0 };
        fits
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_table_is_as_wide_as_its_widest_cells_are_on_a_terminal() {
        let rows = [["漢字", "x", "end"], ["abc", "é", ""]].map(|row| row.map(str::to_owned).to_vec()).to_vec();
        assert_eq!(table(rows), "漢字  x  end\nabc   é\n");
    }

    #[test]
    fn the_widest_columns_are_cut_first_and_a_folder_keeps_its_end() {
        let rows = [["NAME", "FOLDER"], ["a", "/home/ada/projects/web"]].map(|row| row.map(str::to_owned).to_vec());
        let mut table = Table::of(rows.to_vec());
        table.fit(16, &[1]);
        assert_eq!(table.lines().collect::<Vec<_>>(), ["NAME  FOLDER", "a     …jects/web"]);
    }

    proptest! {
        #[test]
        fn no_line_is_wider_than_the_terminal_and_no_row_is_lost(
            rows in prop::collection::vec(prop::collection::vec("[a-z漢é \u{1b}\n👨]{0,30}", 1..8), 1..6),
            cols in 1_usize..120,
            tails in prop::collection::vec(0_usize..8, 0..3),
        ) {
            let mut table = Table::of(rows.clone());
            table.fit(cols, &tails);
            let lines: Vec<_> = table.lines().collect();
            prop_assert_eq!(lines.len(), rows.len());
            for line in &lines {
                prop_assert!(line.width() <= cols, "{line:?} in {cols}");
                prop_assert!(!line.chars().any(char::is_control), "{line:?}");
            }
        }

        #[test]
        fn a_table_that_has_room_keeps_all_cells_whole(rows in prop::collection::vec(prop::collection::vec("[a-z漢]{0,9}", 3), 1..6)) {
            let whole: Vec<_> = Table::of(rows.clone()).lines().collect();
            let mut table = Table::of(rows);
            table.fit(whole.iter().map(|line| line.width()).max().unwrap_or(0).max(3 * 18 + 2 * GAP), &[0]);
            prop_assert_eq!(table.lines().collect::<Vec<_>>(), whole);
        }
    }
}
