//! SPECIFICATION.md against the tests: every promise is short, has a number, and its id is in the comments of its tests.
//!
//! A row of the document is `id | promise | number`. A test carries ids in a comment on the line above its function:
//! `// promise: end-1, once-2` in Rust and JavaScript, `# promise: end-1` in Python.

use crate::tree::{TextFile, Violation};
use std::collections::BTreeMap;
use std::fmt::Write as _;

const SPECIFICATION: &str = "SPECIFICATION.md";

/// The document is read in one sitting.
const BYTES_MAX: usize = 32 << 10;

/// Whole sentences fit; a longer promise is two.
const WORDS_MAX: usize = 30;

/// Finds rows that are not promises, promises that no test carries, and ids above tests that the document lacks.
pub fn check(files: &[TextFile]) -> Vec<Violation> {
    let (rows, mut found) = rows(files);
    let (carried, at_tests) = carried(files);
    found.extend(at_tests);
    for (id, tests) in &carried {
        if !rows.iter().any(|row| row.id == *id) {
            let what = format!("{SPECIFICATION} has no promise `{id}`: take an id that it has, or write the promise");
            found.extend(tests.iter().map(|test| Violation::at(test.path, test.line, what.as_str())));
        }
    }
    for row in rows.iter().filter(|row| !carried.contains_key(row.id)) {
        let id = row.id;
        let what = format!("no test shows promise {id}: put `promise: {id}` in a comment above the function of one");
        found.push(Violation::at(SPECIFICATION, row.line, what));
    }
    found
}

/// Every promise, in the order of the document, with the tests that carry its id.
pub fn map(files: &[TextFile]) -> String {
    let (carried, _) = carried(files);
    let mut map = String::new();
    for row in rows(files).0 {
        let _infallible = writeln!(map, "{}: {} ({})", row.id, row.promise, row.number);
        for test in carried.get(row.id).into_iter().flatten() {
            let _infallible = writeln!(map, "    {}::{}", test.path, test.name);
        }
    }
    map
}

/// The tests of a file: the line and the name of each.
pub fn tests(file: &TextFile) -> Vec<(usize, &str)> {
    let lines: Vec<&str> = file.text.lines().collect();
    let Some(language) = Language::of(file) else { return Vec::new() };
    (0..lines.len()).filter_map(|at| Some((at + 1, language.test_at(&lines, at)?))).collect()
}

struct Row<'a> {
    line: usize,
    id: &'a str,
    promise: &'a str,
    number: &'a str,
}

struct Test<'a> {
    path: &'a str,
    line: usize,
    name: &'a str,
}

fn rows(files: &[TextFile]) -> (Vec<Row<'_>>, Vec<Violation>) {
    let (mut rows, mut found) = (Vec::<Row<'_>>::new(), Vec::new());
    let Some(specification) = files.iter().find(|file| file.path == SPECIFICATION) else {
        return (rows, found);
    };
    let bytes = specification.text.len();
    if bytes > BYTES_MAX {
        let what = format!("{bytes} bytes, and {BYTES_MAX} is the most: merge promises that are cases of one");
        found.push(Violation::at(SPECIFICATION, specification.text.lines().count(), what));
    }
    for (i, line) in specification.text.lines().enumerate() {
        if !line.contains('|') || ["id | promise | number", "-|-|-"].contains(&line) {
            continue;
        }
        let mut complain = |what: String| found.push(Violation::at(SPECIFICATION, i + 1, what));
        let [id, promise, number] = line.split(" | ").collect::<Vec<_>>()[..] else {
            complain("a row is `id | promise | number`".to_owned());
            continue;
        };
        if !is_id(id) {
            complain(format!("`{id}` is not an id: write a word, `-` and a number, such as `end-3`"));
        }
        if rows.iter().any(|row| row.id == id) {
            complain(format!("{id} is the id of two promises: give this one the next free number"));
        }
        let words = promise.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count();
        if words > WORDS_MAX {
            complain(format!("promise {id} has {words} words, and {WORDS_MAX} is the most"));
        }
        if !number.contains(|c: char| c.is_ascii_digit()) {
            complain(format!("promise {id} has no number: say how much, how fast or how many"));
        }
        rows.push(Row { line: i + 1, id, promise, number });
    }
    (rows, found)
}

fn is_id(id: &str) -> bool {
    let is_one = |(word, number): (&str, &str)| {
        let is_word = !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase());
        is_word && !number.is_empty() && number.chars().all(|c| c.is_ascii_digit())
    };
    id.split_once('-').is_some_and(is_one)
}

/// The tests behind each id, and the comments that stand above no test.
fn carried(files: &[TextFile]) -> (BTreeMap<&str, Vec<Test<'_>>>, Vec<Violation>) {
    let (mut carried, mut found) = (BTreeMap::<&str, Vec<Test<'_>>>::new(), Vec::new());
    for file in files.iter().filter(|file| !file.is_recorded()) {
        let Some(language) = Language::of(file) else { continue };
        let lines: Vec<&str> = file.text.lines().collect();
        for (i, line) in lines.iter().enumerate() {
            let Some(ids) = line.trim_start().strip_prefix(language.mark) else { continue };
            let Some(name) = language.test_at(&lines, i + 1) else {
                let what = "a promise's id stands on the line above the function of a test, and here is none";
                found.push(Violation::at(&file.path, i + 1, what));
                continue;
            };
            for id in ids.split(", ") {
                let test = Test { path: &file.path, line: i + 1, name };
                carried.entry(id).or_default().push(test);
            }
        }
    }
    (carried, found)
}

/// The syntax of comments and tests in a language.
struct Language {
    mark: &'static str,
    function: &'static str,
    is_test: fn(above: &[&str], line: &str, name: &str) -> bool,
}

impl Language {
    fn of(file: &TextFile) -> Option<Self> {
        match file.extension() {
            "rs" => Some(Self {
                mark: "// promise: ",
                function: "fn ",
                is_test: |above, _, _| {
                    let attributes = above.iter().rev().map(|line| line.trim_start());
                    let mut attributes = attributes.take_while(|line| !line.is_empty() && *line != "}");
                    attributes.any(|line| line.starts_with("#[") && line.contains("test"))
                },
            }),
            "py" => {
                Some(Self { mark: "# promise: ", function: "def ", is_test: |_, _, name| name.starts_with("test_") })
            }
            "cjs" => Some(Self {
                mark: "// promise: ",
                function: "function ",
                is_test: |_, line, _| line.trim_start().starts_with("test("),
            }),
            _ => None,
        }
    }

    /// The name of the test whose function begins on this line.
    fn test_at<'a>(&self, lines: &[&'a str], at: usize) -> Option<&'a str> {
        let line: &'a str = lines.get(at)?;
        let (_, rest) = line.split_once(self.function)?;
        let (name, _) = rest.split_once('(')?;
        (self.is_test)(&lines[..at], line, name).then_some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUST: &str = "#[test]\n// promise: end-1, once-2\nfn nothing_is_lost() {}\n";

    fn project(rows: &str, rust: &str) -> Vec<TextFile> {
        let file = |path: &str, text: &str| TextFile { path: path.to_owned(), text: text.to_owned() };
        vec![
            file(SPECIFICATION, &format!("# It\n\nid | promise | number\n-|-|-\n{rows}")),
            file("a.rs", rust),
            file("test_run.py", "@each\n# promise: once-2\nasync def test_runs(server):\n    pass\n"),
            file("page.test.cjs", "// promise: view-1\ntest(async function a_page_is_shown() {\n});\n"),
        ]
    }

    const ROWS: &str = "end-1 | a | 0 bytes\nonce-2 | b | 200 ms\nview-1 | c | 1 page\n";

    fn complaints(rows: &str, rust: &str) -> Vec<String> {
        check(&project(rows, rust)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn promises_with_numbers_and_tests_in_every_language_are_kept() {
        assert_eq!(complaints(ROWS, RUST), [""; 0]);
    }

    #[test]
    fn the_map_has_every_promise_with_its_tests() {
        let expected = "end-1: a (0 bytes)\n    a.rs::nothing_is_lost\n\
                        once-2: b (200 ms)\n    a.rs::nothing_is_lost\n    test_run.py::test_runs\n\
                        view-1: c (1 page)\n    page.test.cjs::a_page_is_shown\n";
        assert_eq!(map(&project(ROWS, RUST)), expected);
    }

    #[test]
    fn an_id_that_only_a_test_or_only_the_document_has_is_found() {
        let rows = format!("{ROWS}end-2 | d | 1\n");
        let rust = format!("{RUST}#[test]\n// promise: end-3\nfn other() {{}}\n");
        let expected = [
            "a.rs:5: SPECIFICATION.md has no promise `end-3`: take an id that it has, or write the promise",
            "SPECIFICATION.md:8: no test shows promise end-2: put `promise: end-2` in a comment above the function of one",
        ];
        assert_eq!(complaints(&rows, &rust), expected);
    }

    #[test]
    fn an_id_above_anything_but_a_test_is_found() {
        let at = |rust: &str| complaints(ROWS, &format!("{RUST}{rust}"));
        let expected = ["a.rs:5: a promise's id stands on the line above the function of a test, and here is none"];
        assert_eq!(at("\n// promise: end-1\nfn helper() {}\n"), expected);
        assert_eq!(at("\n// promise: end-1\n#[test]\nfn apart() {}\n"), expected);
        assert_eq!(at("\n// promise: end-1"), expected);
    }

    #[test]
    fn a_promise_that_is_long_twice_there_or_without_a_number_is_found() {
        let words = |count| vec!["word"; count].join(" ");
        let rows =
            format!("end-1 | {} · | 0\nonce-2 | {} | 0\nview-1 | c | soon\nend-1 | d | 1\n", words(30), words(31));
        let expected = [
            "SPECIFICATION.md:6: promise once-2 has 31 words, and 30 is the most",
            "SPECIFICATION.md:7: promise view-1 has no number: say how much, how fast or how many",
            "SPECIFICATION.md:8: end-1 is the id of two promises: give this one the next free number",
        ];
        assert_eq!(complaints(&rows, RUST), expected);
    }

    #[test]
    fn a_row_of_another_form_is_found() {
        let rows = format!("{ROWS}end-2 | d\n| end-3 | e | 1 |\nEnd | f | 1\n");
        let found = complaints(&rows, RUST);
        let expected = [
            "SPECIFICATION.md:8: a row is `id | promise | number`",
            "SPECIFICATION.md:9: `| end-3` is not an id: write a word, `-` and a number, such as `end-3`",
            "SPECIFICATION.md:10: `End` is not an id: write a word, `-` and a number, such as `end-3`",
        ];
        assert_eq!(found[..3], expected);
    }

    #[test]
    fn a_document_of_more_than_32_kib_is_found() {
        let fill = |bytes: usize| {
            let empty = project(ROWS, RUST)[0].text.len() + 1;
            format!("{ROWS}{}\n", "x".repeat(bytes - empty))
        };
        assert_eq!(complaints(&fill(32_768), RUST), [""; 0]);
        let expected = ["SPECIFICATION.md:8: 32769 bytes, and 32768 is the most: merge promises that are cases of one"];
        assert_eq!(complaints(&fill(32_769), RUST), expected);
    }
}
