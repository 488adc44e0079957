//! The house rules that a machine can check. Each complaint says what to do instead.

use crate::promises;
use crate::sentences;
use crate::source;
use crate::structure;
use crate::tree::{TextFile, Violation, text_files};
use anyhow::Result;
use std::path::Path;
use std::process::Command;

/// The limit for source files; a longer one has two subjects.
const LINES_MAX: usize = 800;

/// The widest line of Rust. rustfmt breaks code at 120 columns, and leaves comments and what macros contain as they are.
const COLUMNS_MAX: usize = 140;

/// The longest subject of a commit.
const SUBJECT_MAX: usize = 72;

/// Documents that must stay readable in one sitting.
const SHORT_DOCUMENTS: [(&str, usize); 2] = [("ARCHITECTURE.md", 200), ("CONTRIBUTING.md", 80)];

struct Banned {
    extension: &'static str,
    call: &'static str,
    instead: &'static str,
}

const BANNED: [Banned; 8] = [
    Banned {
        extension: "rs",
        call: "thread::sleep",
        instead: "wait for the event itself: poll, a channel, a process's end",
    },
    Banned {
        extension: "rs",
        call: "time::sleep(",
        instead: "wait for the event itself; a deadline is `time::timeout` or `time::sleep_until`",
    },
    Banned { extension: "rs", call: "todo!(", instead: "write it, or return an error that says what is missing" },
    Banned {
        extension: "rs",
        call: "unimplemented!(",
        instead: "write it, or return an error that says what is missing",
    },
    Banned { extension: "rs", call: "dbg!(", instead: "use `tracing`, or nothing" },
    Banned {
        extension: "rs",
        call: "#[ignore",
        instead: "let the test note why it has not run: `e2e::not_run`, or count less: `e2e::count`",
    },
    Banned { extension: "py", call: "time.sleep(", instead: "wait for the event itself, with a deadline" },
    Banned { extension: "py", call: "asyncio.sleep(", instead: "wait for the event itself, with `asyncio.timeout`" },
];

/// The places where a banned call is right, each with its reason.
const ALLOWED: [(&str, &str, &str); 2] = [
    (
        "shell-integration/tests/bench.py",
        "time.sleep(",
        "it measures and is no test: the machine settles before the clock starts, and no result depends on it",
    ),
    ("crates/server/src/mcp/progress.rs", "time::sleep(", "progress is told at a pace; that is the event"),
];

/// The folder of the developers' machines that once slipped into a document. In two parts, so that this file is clean.
const MACHINE_PATH: &str = concat!("/wo", "rk/");

/// Looks at every text file of the project.
pub fn check(root: &Path) -> Result<Vec<Violation>> {
    let files = text_files(root)?;
    let mut found: Vec<Violation> = files.iter().flat_map(file).collect();
    found.extend(promises::check(&files));
    found.extend(needless(&files, &ALLOWED));
    found.extend(subjects(&newest_subjects(root)));
    Ok(found)
}

/// The subjects of the newest commits; none where the project is not a checkout of git's.
fn newest_subjects(root: &Path) -> String {
    let git = Command::new("git").args(["log", "-n", "50", "--format=%s"]).current_dir(root).output();
    git.map(|log| String::from_utf8_lossy(&log.stdout).into_owned()).unwrap_or_default()
}

/// Subjects that a list of commits would cut, or that do not say what changed.
fn subjects(log: &str) -> Vec<Violation> {
    let problem = |subject: &str| match subject {
        long if long.chars().count() > SUBJECT_MAX => Some(format!("has more than {SUBJECT_MAX} characters")),
        clause if sentences::is_headless_subject(clause) => {
            Some("begins with a clause: say what acts or changes".to_owned())
        }
        _ => None,
    };
    let found =
        log.lines().filter_map(|subject| Some(format!("the commit {subject:?}: its subject {}", problem(subject)?)));
    found.map(|what| Violation::at("CONTRIBUTING.md", 1, what)).collect()
}

fn file(file: &TextFile) -> Vec<Violation> {
    if file.is_recorded() {
        return Vec::new();
    }
    let mut found: Vec<Violation> = header(file).into_iter().collect();
    found.extend(length(file));
    found.extend(lines(file));
    found.extend(columns(file));
    found.extend(banned(file, &ALLOWED));
    found.extend(walls_of_unsafe(file));
    found.extend(doc_examples(file));
    found.extend(structure::check(file));
    found.extend(sentences::check(file));
    found.extend(decision(file));
    found
}

/// The parts of a decision's page, in this order.
const DECISION_PARTS: [&str; 4] = ["**Context.** ", "**Decision.** ", "**Consequences.** ", "**Tests.** "];

/// A page of a decision has its number in the title and every part once.
fn decision(file: &TextFile) -> Option<Violation> {
    let name = file.path.strip_prefix("docs/decisions/")?;
    let number = name.get(..4).unwrap_or_default();
    let parts: Vec<&str> =
        file.text.lines().filter_map(|line| DECISION_PARTS.into_iter().find(|part| line.starts_with(part))).collect();
    let is_fine = file.text.starts_with(&format!("# {number}: ")) && parts == DECISION_PARTS;
    let what =
        "a decision is `# number: title`, then the parts Context, Decision, Consequences and Tests: see its neighbours";
    (!is_fine).then(|| Violation::at(&file.path, 1, what))
}

fn header(file: &TextFile) -> Option<Violation> {
    let first = file.text.lines().find(|line| !line.starts_with("#!")).unwrap_or_default();
    let is_fine = match file.extension() {
        "rs" => file.text.starts_with("//! "),
        // An empty file only marks a package.
        "py" => {
            file.text.is_empty() || first.trim_start_matches('r').starts_with("\"\"\"") || begins_with_sentence(file)
        }
        "sh" | "bash" | "zsh" | "fish" => begins_with_sentence(file),
        _ => true,
    };
    let what = "begin with what this file is and the rule it keeps";
    let form = if file.extension() == "rs" { "in a `//!` comment on the first line" } else { "in a comment" };
    (!is_fine).then(|| Violation::at(&file.path, 1, format!("{what}, {form}")))
}

/// True if the file begins with a comment for people.
fn begins_with_sentence(file: &TextFile) -> bool {
    let mut comments = file.text.lines().take_while(|line| line.starts_with('#'));
    comments.any(|line| {
        let words = line.trim_start_matches('#').trim();
        !line.starts_with("#!") && !words.starts_with("shellcheck ") && words.contains(' ')
    })
}

fn length(file: &TextFile) -> Option<Violation> {
    // Nobody reads what a generator has written.
    let is_generated = file.text.lines().next().is_some_and(|first| first.contains("Made from "));
    let is_source = !is_generated && matches!(file.extension(), "rs" | "py" | "sh" | "bash" | "zsh" | "fish");
    let short = SHORT_DOCUMENTS.iter().find(|(path, _)| *path == file.path).map(|(_, max)| *max);
    let max = short.or(is_source.then_some(LINES_MAX))?;
    let lines = file.text.lines().count();
    (lines > max).then(|| Violation::at(&file.path, lines, format!("{lines} lines, and {max} is the most: split it")))
}

fn lines(file: &TextFile) -> Vec<Violation> {
    let mut found = Vec::new();
    for (i, line) in file.text.lines().enumerate() {
        let mut complain = |what: &str| found.push(Violation::at(&file.path, i + 1, what));
        if line.contains('\t') {
            complain("a tab: indent with spaces, write `\\t` in a literal");
        }
        if line.ends_with([' ', '\r']) {
            complain("a blank at the end of the line: take it away");
        }
        if names_machine_path(line) {
            complain("a path of somebody's machine: name the place by what it is");
        }
    }
    if !file.text.is_empty() && !file.text.ends_with('\n') {
        found.push(Violation::at(&file.path, file.text.lines().count(), "end the last line"));
    }
    found
}

/// Comments and code that are too wide. A literal may stay in one line, so that a search for a message finds it.
fn columns(file: &TextFile) -> Vec<Violation> {
    if file.extension() != "rs" {
        return Vec::new();
    }
    let ink = |line: &str| line.chars().filter(|c| !c.is_whitespace()).count();
    let (code, comments) = (source::code(&file.text), source::comments(&file.text));
    let lines = file.text.lines().zip(code.lines().zip(comments.lines())).enumerate();
    let is_wide = |line: &str, parts: (&str, &str)| {
        line.chars().count() > COLUMNS_MAX && ink(line) == ink(parts.0) + ink(parts.1)
    };
    let wide = lines.filter(|(_, (line, parts))| is_wide(line, *parts));
    let complaint = |(at, (line, _)): (usize, (&str, _))| {
        let what = format!("{} columns, and {COLUMNS_MAX} is the most: break the line", line.chars().count());
        Violation::at(&file.path, at + 1, what)
    };
    wide.map(complaint).collect()
}

fn names_machine_path(line: &str) -> bool {
    line.match_indices(MACHINE_PATH).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-/}".contains(c))
    })
}

fn banned(file: &TextFile, allowed: &[(&str, &str, &str)]) -> Vec<Violation> {
    let code = match file.extension() {
        "rs" => source::code(&file.text),
        _ => file.text.clone(),
    };
    let mut found = Vec::new();
    for rule in BANNED.iter().filter(|rule| rule.extension == file.extension()) {
        if allowed.iter().any(|(path, call, _why)| *path == file.path && *call == rule.call) {
            continue;
        }
        for (i, line) in code.lines().enumerate() {
            let is_called = line.match_indices(rule.call).any(|(at, _)| {
                // `my_todo!(` is another name.
                !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_')
            });
            if is_called {
                let what = format!("`{}`: {}", rule.call, rule.instead);
                found.push(Violation::at(&file.path, i + 1, what));
            }
        }
    }
    found
}

/// An unneeded permission can be misused later.
fn needless(files: &[TextFile], allowed: &[(&str, &str, &str)]) -> Vec<Violation> {
    let is_used = |path: &str, call: &str| files.iter().any(|file| file.path == path && file.text.contains(call));
    let needless = allowed.iter().filter(|(path, call, _why)| !is_used(path, call));
    let complaint = |path: &str, call: &str| Violation::at(path, 1, format!("has no `{call}`: take it from `ALLOWED`"));
    needless.map(|(path, call, _why)| complaint(path, call)).collect()
}

fn walls_of_unsafe(file: &TextFile) -> Vec<Violation> {
    if file.extension() != "rs" || file.path.starts_with("crates/sys/") {
        return Vec::new();
    }
    let lines = source::lines_with_word(&source::code(&file.text), "unsafe");
    let what = "`unsafe` lives in crates/sys only: give it a safe face there";
    lines.into_iter().map(|line| Violation::at(&file.path, line, what)).collect()
}

/// Examples in documentation, which rustdoc would run and nextest does not.
fn doc_examples(file: &TextFile) -> Vec<Violation> {
    if file.extension() != "rs" {
        return Vec::new();
    }
    let fence = |line: &str| {
        let text = ["///", "//!"].into_iter().find_map(|mark| line.trim_start().strip_prefix(mark))?;
        text.trim_start().strip_prefix("```").map(|language| language.trim().to_owned())
    };
    let fences = file.text.lines().enumerate().filter_map(|(i, line)| Some((i + 1, fence(line)?)));
    // Every second fence ends a block.
    let examples = fences.step_by(2).filter(|(_, language)| language != "text");
    let what = "no test runs an example in the documentation: write a test, or mark the block as `text`";
    examples.map(|(line, _)| Violation::at(&file.path, line, what)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(path: &str, text: &str) -> Vec<(usize, String)> {
        let text_file = TextFile { path: path.to_owned(), text: text.to_owned() };
        let found = file(&text_file).into_iter();
        found
            .map(|violation| (violation.line, violation.what.split(':').next().unwrap_or_default().to_owned()))
            .collect()
    }

    fn clean() -> Vec<(usize, String)> {
        Vec::new()
    }

    #[test]
    fn a_subject_that_a_list_would_cut_or_that_claims_nothing_is_found() {
        let (fits, long) = ("x".repeat(72), "y".repeat(73));
        assert!(subjects(&fits).is_empty());
        assert_eq!(subjects(&format!("{fits}\n{long}\ndocs: what is rendered\n")).len(), 2);
    }

    #[test]
    fn a_file_without_a_header_is_found() {
        let rust = "begin with what this file is and the rule it keeps, in a `//!` comment on the first line";
        let other = "begin with what this file is and the rule it keeps, in a comment";
        assert_eq!(complaints("a.rs", "use a;\n"), [(1, rust.to_owned())]);
        assert_eq!(complaints("a.rs", "//! It is.\n"), clean());
        assert_eq!(complaints("a.py", "import a\n"), [(1, other.to_owned())]);
        assert_eq!(complaints("a.py", "#!/usr/bin/env python3\n\"\"\"It is.\"\"\"\n"), clean());
        assert_eq!(complaints("a.sh", "#!/bin/sh\n# shellcheck shell=sh\nset -e\n"), [(1, other.to_owned())]);
        assert_eq!(complaints("a.sh", "# shellcheck shell=bash\n#\n# It is.\n"), clean());
    }

    #[test]
    fn a_decision_has_its_number_and_four_parts() {
        let text = "# 0007: It is so\n\n**Context.** A\n\n**Decision.** B\n\n**Consequences.** C\n\n**Tests.** D\n";
        let wrong = [(1, "a decision is `# number".to_owned())];
        assert_eq!(complaints("docs/decisions/0007-it-is-so.md", text), clean());
        assert_eq!(complaints("docs/decisions/0008-it-is-so.md", text), wrong);
        assert_eq!(complaints("docs/decisions/0007-it-is-so.md", &text.replace("**Tests.** ", "")), wrong);
        assert_eq!(complaints("docs/it-is-so.md", "# So\n"), clean());
    }

    #[test]
    fn a_file_of_more_than_800_lines_is_found() {
        let text = format!("//! It is.\n{}", "a();\n".repeat(799));
        assert_eq!(complaints("a.rs", &text), clean());
        let text = format!("{text}a();\n");
        assert_eq!(complaints("a.rs", &text), [(801, "801 lines, and 800 is the most".to_owned())]);
    }

    #[test]
    fn a_wide_comment_or_line_of_code_is_found_and_a_literal_is_not() {
        let (fits, wide) = ("é".repeat(137), "é".repeat(138));
        let text = format!("//! It is.\n// {fits}\n// {wide}\n{fits}{fits};\n(\"{fits}\");\n\"\\\n{wide}\n{wide}\";\n");
        let what = |columns: usize| format!("{columns} columns, and 140 is the most");
        assert_eq!(complaints("a.rs", &text), [(3, what(141)), (4, what(275))]);
        assert_eq!(complaints("a.py", &text.replace("//!", "#")), clean());
    }

    #[test]
    fn banned_calls_are_found_in_code_and_not_in_words_about_them() {
        let text = "//! It is.\nstd::thread::sleep(a);\ntime::sleep(b).await;\n// todo!()\nlet s = \"dbg!()\";\ntodo!();\n\
                    #[ignore]\n#[ignore = \"slow\"]\nnot_todo!();\ntime::sleep_until(c);\n";
        let lines: Vec<_> = complaints("a.rs", text).into_iter().map(|(line, _)| line).collect();
        assert_eq!(lines, [2, 3, 6, 7, 8]);
        assert_eq!(complaints("a.py", "# It is.\ntime.sleep(1)\n"), [(2, "`time.sleep(`".to_owned())]);
    }

    #[test]
    fn a_banned_call_is_allowed_only_at_the_listed_places() {
        let allowed = [("a.rs", "todo!(", "a reason")];
        let at = |path: &str| TextFile { path: path.to_owned(), text: "todo!();\ndbg!();\n".to_owned() };
        let lines = |path| banned(&at(path), &allowed).iter().map(|found| found.line).collect::<Vec<_>>();
        assert_eq!((lines("a.rs"), lines("b.rs")), (vec![2], vec![1, 2]));
        assert_eq!(needless(&[at("a.rs")], &allowed).len(), 0);
        assert_eq!(needless(&[at("b.rs")], &allowed).len(), 1);
    }

    #[test]
    fn unsafe_is_found_outside_sys() {
        let text = "//! No unsafe here.\nunsafe {}\n#![forbid(unsafe_code)]\n";
        assert_eq!(complaints("crates/sys/src/a.rs", text), clean());
        let expected = [(2, "`unsafe` lives in crates/sys only".to_owned())];
        assert_eq!(complaints("crates/holder/src/a.rs", text), expected);
    }

    #[test]
    fn paths_of_a_machine_tabs_and_blanks_at_the_end_are_found() {
        let text = format!("see {MACHINE_PATH}main\nin target{MACHINE_PATH}\na\tb\nc \nd");
        let lines: Vec<_> = complaints("a.md", &text).into_iter().map(|(line, _)| line).collect();
        assert_eq!(lines, [1, 3, 4, 5]);
    }

    #[test]
    fn an_example_that_no_runner_would_run_is_found() {
        let text = "//! It is.\n//! ```text\n//! a\n//! ```\n/// ```\n/// b();\n/// ```\nfn b() {}\n";
        let what = "no test runs an example in the documentation".to_owned();
        assert_eq!(complaints("a.rs", text), [(5, what)]);
    }

    #[test]
    fn a_recording_is_left_as_it_is() {
        assert_eq!(complaints("crates/terminal/tests/fixtures/vim.md", "a\tb "), clean());
    }
}
