//! A sentence says what it is about, and a name or a title claims something.
//!
//! "The next server finds no ended session" does; a sentence, a test's name or a commit's subject that begins with a bare
//! relative clause, such as "What has ended is not found", makes the reader guess. Sentences and names also deny as English
//! does: "is not a key", never `is no` and a noun.

use crate::promises;
use crate::source;
use crate::tree::{TextFile, Violation};

/// The words that begin such a clause.
const OPENERS: [&str; 5] = ["what", "who", "whoever", "whatever", "which"];

/// Words with which "is no" is English.
const AFTER_IS_NO: [&str; 4] = ["longer", "more", "older", "such"];

const HEADLESS: &str = "a sentence without a subject: name the process, the call and the condition, in that order";
const DENIED: &str = "`is no …` is not English: write `is not a …`";
const NO_CLAIM: &str = "the name of a test claims something: name what acts, then what it does";

/// Looks at the comments of one file of source, of a product, a test or a script, at the names of its tests, and at the
/// sentences of a page.
pub fn check(file: &TextFile) -> Vec<Violation> {
    let sentences_of = match file.extension() {
        "rs" => source::comments(&file.text).lines().map(str::to_owned).collect(),
        "py" => python(&file.text),
        "sh" | "bash" | "zsh" | "fish" | "nu" => file.text.lines().map(|line| after(line, &["#"], " # ")).collect(),
        "js" | "cjs" | "mjs" | "ts" => file.text.lines().map(|line| after(line, &["//", "/*", "*"], " // ")).collect(),
        "md" => prose(&file.text),
        _ => Vec::new(),
    };
    let mut found = Vec::new();
    for (i, line) in sentences_of.iter().enumerate() {
        if sentences(line).any(is_headless) {
            found.push(Violation::at(&file.path, i + 1, HEADLESS));
        }
        if is_denied(line.split_whitespace()) {
            found.push(Violation::at(&file.path, i + 1, DENIED));
        }
    }
    for (line, name) in promises::tests(file) {
        let words = || name.trim_start_matches("test_").split('_');
        if words().next().is_some_and(|first| OPENERS.contains(&first)) {
            found.push(Violation::at(&file.path, line, NO_CLAIM));
        }
        if is_denied(words()) {
            found.push(Violation::at(&file.path, line, DENIED));
        }
    }
    found
}

/// True if a commit's subject says only what it is about: `part: what changed there`.
pub fn is_headless_subject(subject: &str) -> bool {
    let words = subject.split_once(": ").map_or(subject, |(_part, words)| words);
    words.split_whitespace().next().is_some_and(|first| OPENERS.contains(&first))
}

/// The sentences that begin in a line of a comment.
fn sentences(line: &str) -> impl Iterator<Item = &str> {
    let words = line.trim_start_matches(|c: char| c.is_whitespace() || "/!*#\"-(".contains(c));
    words.split_inclusive(". ").flat_map(|part| part.split_inclusive("? ")).map(str::trim_end)
}

/// A question begins with such a word, too, and is not found. A line that begins with a small letter continues a sentence.
fn is_headless(sentence: &str) -> bool {
    let word = sentence.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
    let is_opener = OPENERS.contains(&word.to_lowercase().as_str());
    is_opener && word.starts_with(char::is_uppercase) && !sentence.ends_with('?')
}

/// True if words deny with `is no` and a noun, not after "there" and not in "is no longer".
fn is_denied<'a>(words: impl Iterator<Item = &'a str>) -> bool {
    let words: Vec<&str> = words.collect();
    words.windows(3).enumerate().any(|(i, three)| {
        let is_there = i > 0 && words[i - 1].eq_ignore_ascii_case("there");
        matches!(three[..2], ["is" | "are", "no"]) && !is_there && !AFTER_IS_NO.contains(&three[2])
    })
}

/// The lines of a page without its examples, and without its headings, which may name a question.
fn prose(page: &str) -> Vec<String> {
    let mut is_example = false;
    let line = |line: &str| {
        let is_fence = line.trim_start().starts_with("```");
        is_example ^= is_fence;
        if is_fence || is_example || line.starts_with('#') { String::new() } else { line.to_owned() }
    };
    page.lines().map(line).collect()
}

/// The comment of a line: all of it if it begins so, or the part behind the code.
fn after(line: &str, begins: &[&str], behind: &str) -> String {
    if begins.iter().any(|mark| line.trim_start().starts_with(mark)) {
        return line.to_owned();
    }
    line.split_once(behind).map(|(_code, comment)| comment.to_owned()).unwrap_or_default()
}

/// The comments and docstrings of Python, one for each line. A text that is assigned or passed is not a docstring.
fn python(text: &str) -> Vec<String> {
    let (mut is_text, mut is_docstring) = (false, false);
    let comment = |line: &str| {
        let begins = line.trim_start().trim_start_matches('r').starts_with(QUOTES);
        let was_text = is_text;
        if !is_text && line.contains(QUOTES) {
            is_docstring = begins;
        }
        is_text ^= line.matches(QUOTES).count() % 2 == 1;
        match was_text || begins {
            true if is_docstring => line.trim_start().trim_start_matches('r').replace(QUOTES, ""),
            true => String::new(),
            false => after(line, &["#"], " # "),
        }
    };
    text.lines().map(comment).collect()
}

const QUOTES: &str = "\"\"\"";

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [usize; 0] = [];

    fn found(path: &str, text: &str) -> Vec<usize> {
        let file = TextFile { path: path.to_owned(), text: text.to_owned() };
        check(&file).into_iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn a_sentence_that_names_no_subject_is_found_in_every_kind_of_comment() {
        let rust = "//! It is. What is not, is not.\n/// Who asks.\nlet a = 1; // Whatever it is.\n/* Which one. */\n";
        assert_eq!(found("crates/e2e/tests/it/a.rs", rust), [1, 2, 3, 4]);
        let python = "r\"\"\"What it is.\n\nIt is. Who asks is told.\n\"\"\"\na = 1  # What\n# Whoever asks.\n    \"\"\"Which.\"\"\"\n";
        assert_eq!(found("a.py", python), [1, 3, 5, 6, 7]);
        for path in ["a.sh", "a.bash", "a.zsh", "a.fish", "a.nu"] {
            assert_eq!(found(path, "# It is.\n  # What it is.\na # Who asks.\n"), [2, 3]);
        }
        for path in ["a.js", "a.cjs", "a.mjs", "a.ts"] {
            assert_eq!(
                found(path, "// What it is.\n/** Who asks. */\n/*\n * Which one.\n */\na(); // Whatever.\n"),
                [1, 2, 4, 6]
            );
        }
    }

    #[test]
    fn pages_are_read_except_for_their_examples() {
        let page =
            "What it is.\n# What it is\n* It is. Who asks.\n```\nWhat it is.\n```\nIt is,\nwhat it is. What is it?\n";
        assert_eq!(found("a.md", page), [1, 3]);
    }

    #[test]
    fn a_denial_by_no_and_a_noun_is_found_in_pages_and_comments() {
        let page = "It is no key.\nThere is no key, and it is no longer one.\n| they are no keys |\n";
        assert_eq!(found("a.md", page), [1, 3]);
        assert_eq!(found("a.rs", "// It is no key.\nlet a = \"it is no key\";\n"), [1]);
    }

    #[test]
    fn names_of_tests_that_claim_nothing_are_found() {
        // This file's own tests are looked at, too.
        let [clause, denial] = ["what_is_left_goes", "it_is_no_key"];
        let rust = format!(
            "#[test]\nfn {clause}() {{}}\n\n#[test]\n// promise: end-1\nfn {denial}() {{}}\n\nfn {clause}() {{}}\n"
        );
        assert_eq!(found("a.rs", &rust), [2, 6]);
        let python =
            "def test_whoever_asks():\n    pass\n\ndef test_there_is_no_key():\n    pass\n\ndef what():\n    pass\n";
        assert_eq!(found("test_a.py", python), [1]);
        assert_eq!(found("a.test.cjs", "test(async function which_page_is_shown() {\n});\n"), [1]);
    }

    #[test]
    fn subjects_that_begin_with_a_clause_are_found() {
        let subjects = ["docs: what an answer has shown", "who waits is told", "core: a wait ends", "docs: whatever"];
        assert_eq!(subjects.map(is_headless_subject), [true, true, false, true]);
    }

    #[test]
    fn questions_code_and_texts_are_not_found() {
        let rust = "// What is it? It is. Whose it is, what it is.\nlet a = \"// What it is.\";\nstruct Which;\n// Whichever.\n";
        assert_eq!(found("a.rs", rust), NONE);
        let python = "A = \"\"\"What it is.\nWho asks.\n\"\"\"\nb = 1\n";
        assert_eq!(found("a.py", python), NONE);
        assert_eq!(found("a.sh", "echo What it is\n"), NONE);
    }
}
