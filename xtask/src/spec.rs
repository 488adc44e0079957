//! SPECIFICATION.md against the tests: every promise has a number, and names a test that exists.

use crate::tree::{TextFile, Violation};

const SPECIFICATION: &str = "SPECIFICATION.md";

/// Finds the promises that no test keeps. Rows are `| n | promise | number | test |`, the test in backticks: a path as
/// `crate::module::name`, or `file.py::name` or `file.cjs::name`; several where several are needed.
pub fn check(files: &[TextFile]) -> Vec<Violation> {
    let Some(specification) = files.iter().find(|file| file.path == SPECIFICATION) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (i, line) in specification.text.lines().enumerate() {
        let Some(row) = Row::parse(line) else { continue };
        let mut complain = |what: String| found.push(Violation::at(SPECIFICATION, i + 1, what));
        if !row.number.chars().any(|c| c.is_ascii_digit()) {
            complain(format!("promise {} has no number: say how much, how fast or how many", row.id));
        }
        if row.tests.is_empty() {
            complain(format!("promise {} names no test: put `crate::module::name` into its last column", row.id));
        }
        for test in row.tests.iter().filter(|test| !exists(files, test)) {
            complain(format!("promise {} names the test `{test}`, which does not exist", row.id));
        }
    }
    found
}

struct Row<'a> {
    id: &'a str,
    number: &'a str,
    tests: Vec<&'a str>,
}

impl<'a> Row<'a> {
    /// Takes the rows of the table whose first column is a number; its head and other tables are prose.
    fn parse(line: &'a str) -> Option<Self> {
        let cells: Vec<&str> = line.trim().strip_prefix('|')?.strip_suffix('|')?.split('|').map(str::trim).collect();
        let (id, number, tests) = match cells.as_slice() {
            [id, _, number, .., tests] => (*id, *number, *tests),
            _ => return None,
        };
        if id.is_empty() || !id.chars().all(|c| c.is_ascii_digit()) {
            return None;
        }
        Some(Self { id, number, tests: tests.split('`').skip(1).step_by(2).collect() })
    }
}

fn exists(files: &[TextFile], test: &str) -> bool {
    let test = test.split('[').next().unwrap_or(test);
    let mut parts = test.split("::");
    let place = parts.next().unwrap_or_default();
    let Some(name) = test.rsplit("::").next().filter(|name| *name != place) else {
        return false;
    };
    let is_python = place.ends_with(".py");
    let is_file = is_python || place.ends_with(".cjs");
    let head = match (is_python, is_file) {
        (true, _) => format!("def {name}("),
        (false, true) => format!("function {name}("),
        (false, false) => format!("fn {name}("),
    };
    files.iter().any(|file| {
        let is_there =
            if is_file { file.path.ends_with(place) } else { file.extension() == "rs" && file.has_part(place) };
        is_there && file.text.contains(&head)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> TextFile {
        TextFile { path: path.to_owned(), text: text.to_owned() }
    }

    fn complaints(rows: &str) -> Vec<String> {
        let files = [
            file(SPECIFICATION, rows),
            file("crates/journal/tests/events.rs", "#[test]\nfn nothing_is_lost() {}"),
            file("crates/e2e/mcp/test_run.py", "async def test_runs(server):\n    pass"),
            file("crates/e2e/browser/page.test.cjs", "test(async function a_page_is_shown() {\n});"),
        ];
        check(&files).into_iter().map(|violation| violation.to_string()).collect()
    }

    #[test]
    fn a_promise_with_a_number_and_an_existing_test_is_kept() {
        let rows = "| n | promise | number | test |\n| --- | --- | --- | --- |\n\
                    | 1 | a | 0 bytes | `journal::events::nothing_is_lost` |\n\
                    | 2 | b | 200 ms | `test_run.py::test_runs[rest]`, `journal::nothing_is_lost` |\n\
                    | 3 | c | 1 page | `page.test.cjs::a_page_is_shown` |\n";
        assert_eq!(complaints(rows), [""; 0]);
    }

    #[test]
    fn a_promise_without_a_test_or_with_one_that_does_not_exist_is_found() {
        let rows = "| 1 | a | 0 | `journal::nothing_is_lo` |\n| 2 | b | 0 | later |\n| 3 | c | soon | `holder::nothing_is_lost` |";
        let expected = [
            "SPECIFICATION.md:1: promise 1 names the test `journal::nothing_is_lo`, which does not exist",
            "SPECIFICATION.md:2: promise 2 names no test: put `crate::module::name` into its last column",
            "SPECIFICATION.md:3: promise 3 has no number: say how much, how fast or how many",
            "SPECIFICATION.md:3: promise 3 names the test `holder::nothing_is_lost`, which does not exist",
        ];
        assert_eq!(complaints(rows), expected);
    }
}
