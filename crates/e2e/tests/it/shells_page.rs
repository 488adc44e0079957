//! docs/shells.md says which cases a shell skips, and why.

use e2e::shells::{ALL, CASES, Dialect, SKIPPED};

/// The rows of the page's table: the case, and a word for each shell.
fn page() -> Vec<(String, Vec<String>)> {
    let text = include_str!("../../../../docs/shells.md");
    let rows = text.lines().skip_while(|line| !line.starts_with("| behaviour | bash |")).skip(2);
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect()
    };
    let rows = rows.take_while(|line| line.starts_with('|')).map(cells);
    rows.map(|mut row| (row.remove(0), row)).collect()
}

#[test]
// promise: shell-1
fn the_page_names_exactly_the_skipped_cases_with_the_reasons() {
    let expected: Vec<_> = CASES
        .iter()
        .map(|case| {
            let word = |dialect: Dialect| {
                let skipped = SKIPPED.iter().find(|(skipped, by, _)| skipped == case && *by == dialect);
                skipped.map_or_else(|| "yes".to_owned(), |(.., why)| format!("no: {why}"))
            };
            ((*case).to_owned(), ALL.map(word).to_vec())
        })
        .collect();
    assert_eq!(page(), expected);
}
