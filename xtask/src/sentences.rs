//! A sentence of a comment names what it is about. "The next server finds no ended session" does; a sentence that begins with
//! a bare relative clause, such as "What has ended is not found", makes the reader guess.

use crate::source;
use crate::tree::{TextFile, Violation};

/// The words that begin such a clause.
const OPENERS: [&str; 5] = ["What", "Who", "Whoever", "Whatever", "Which"];

/// The sentences that may stay until their files change, each by its file and as its line holds it.
const LEFT: [(&str, &str); 3] = [
    ("crates/core/src/sessions/replay_order.rs", "What"),
    (
        "crates/server/src/mcp/conformance.rs",
        "What is tested is the way between: framing, headers, statuses, eras, streams.",
    ),
    ("crates/server/src/mcp/tasks.rs", "Which rows are new depends on the answers before, so all are shown."),
];

/// Looks at the comments of one file of source, of a product, a test or a script.
pub fn check(file: &TextFile) -> Vec<Violation> {
    let comments = match file.extension() {
        "rs" => source::comments(&file.text).lines().map(str::to_owned).collect(),
        "py" => python(&file.text),
        "sh" | "bash" | "zsh" | "fish" | "nu" => file.text.lines().map(|line| after(line, &["#"], " # ")).collect(),
        "js" | "cjs" | "mjs" | "ts" => file.text.lines().map(|line| after(line, &["//", "/*", "*"], " // ")).collect(),
        _ => Vec::new(),
    };
    let what = "a sentence without a subject: name the process, the call and the condition, in that order";
    let is_left = |sentence: &str| LEFT.iter().any(|(path, words)| *path == file.path && sentence == *words);
    let is_found = |line: &String| sentences(line).any(|sentence| is_headless(sentence) && !is_left(sentence));
    let lines = comments.iter().enumerate().filter(|(_, line)| is_found(line));
    lines.map(|(i, _)| Violation::at(&file.path, i + 1, what)).collect()
}

/// The sentences that begin in a line of a comment.
fn sentences(line: &str) -> impl Iterator<Item = &str> {
    let words = line.trim_start_matches(|c: char| c.is_whitespace() || "/!*#\"-(".contains(c));
    words.split_inclusive(". ").flat_map(|part| part.split_inclusive("? ")).map(str::trim_end)
}

/// A question begins with such a word, too, and is no complaint.
fn is_headless(sentence: &str) -> bool {
    let word = sentence.split(|c: char| !c.is_alphanumeric() && c != '_').next();
    word.is_some_and(|word| OPENERS.contains(&word)) && !sentence.ends_with('?')
}

/// The comment of a line: all of it if it begins so, or the part behind the code.
fn after(line: &str, begins: &[&str], behind: &str) -> String {
    if begins.iter().any(|mark| line.trim_start().starts_with(mark)) {
        return line.to_owned();
    }
    line.split_once(behind).map(|(_code, comment)| comment.to_owned()).unwrap_or_default()
}

/// The comments and docstrings of Python, one for each line. A text that is assigned or passed is no docstring.
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
    fn questions_code_and_texts_are_no_such_sentences() {
        let rust = "// What is it? It is. Whose it is, what it is.\nlet a = \"// What it is.\";\nstruct Which;\n// Whichever.\n";
        assert_eq!(found("a.rs", rust), NONE);
        let python = "A = \"\"\"What it is.\nWho asks.\n\"\"\"\nb = 1\n";
        assert_eq!(found("a.py", python), NONE);
        assert_eq!(found("a.sh", "echo What it is\n"), NONE);
        assert_eq!(found("a.md", "What it is.\n"), NONE);
    }

    #[test]
    fn a_sentence_of_the_list_is_left_in_its_file() {
        for (path, sentence) in LEFT {
            assert_eq!(found(path, &format!("// {sentence}\n")), NONE);
            assert_eq!(found("a.rs", &format!("// {sentence}\n")), [1]);
        }
    }
}
