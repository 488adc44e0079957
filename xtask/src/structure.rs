//! The shape of the code: no struct of state with too many fields, and no glob import of a parent outside tests. Both make a
//! state that many files change and that has no owner.

use crate::source;
use crate::tree::{TextFile, Violation};

/// The most fields of a struct.
const FIELDS_MAX: usize = 20;

/// Structs that are values and no state: an answer's fields are those that the caller reads.
const VALUES: [(&str, &str); 1] = [("crates/core/src/action/session.rs", "SessionView")];

/// Looks at one file of a crate. The types of `api` are those of the wire: their fields are the product's.
pub fn check(file: &TextFile) -> Vec<Violation> {
    let is_source = file.path.starts_with("crates/") && file.path.contains("/src/") && file.extension() == "rs";
    if !is_source || file.path.starts_with("crates/api/") || file.path.ends_with("tests.rs") {
        return Vec::new();
    }
    let code = source::shipped(&source::code(&file.text));
    let globs = code.lines().enumerate().filter(|(_, line)| line.trim() == "use super::*;").map(|(i, _)| {
        Violation::at(
            &file.path,
            i + 1,
            "`use super::*`: name what this file takes, so that a reader sees what it touches",
        )
    });
    let structs = structs(&code).into_iter().filter(|(_, name, fields)| {
        *fields > FIELDS_MAX && !VALUES.iter().any(|(path, value)| *path == file.path && value == name)
    });
    let large = structs.map(|(line, name, fields)| {
        let what =
            format!("{name} has {fields} fields, and {FIELDS_MAX} is the most: give a part of them a type of its own");
        Violation::at(&file.path, line, what)
    });
    globs.chain(large).collect()
}

/// The structs with named fields: line, name, and number of fields.
fn structs(code: &str) -> Vec<(usize, String, usize)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("struct ") {
        let name: String = code[at + 7..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let head = &code[at..];
        let Some(open) = head.find(['{', ';', '(']).filter(|open| head[*open..].starts_with('{')) else { continue };
        let body = &head[open + 1..];
        let mut depth = 0_usize;
        let mut fields = 0;
        let mut previous = ' ';
        let mut characters = body.chars().peekable();
        while let Some(c) = characters.next() {
            match c {
                '}' if depth == 0 => break,
                '{' | '(' | '[' | '<' => depth += 1,
                '>' if previous == '-' => {}
                '}' | ')' | ']' | '>' => depth = depth.saturating_sub(1),
                ':' if depth == 0 && previous != ':' && characters.peek() != Some(&':') => fields += 1,
                _ => {}
            }
            previous = c;
        }
        found.push((code[..at].lines().count(), name, fields));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(text: &str) -> Vec<String> {
        let file = TextFile { path: "crates/server/src/x.rs".to_owned(), text: text.to_owned() };
        check(&file).into_iter().map(|violation| violation.to_string()).collect()
    }

    #[test]
    fn a_struct_of_too_many_fields_is_found_and_a_smaller_one_is_not() {
        let of = |fields: usize| {
            let all: String =
                (0..fields).map(|n| format!("    f{n}: std::collections::HashMap<u8, fn(u8) -> u8>,\n")).collect();
            format!("//! A file.\npub struct Large<T: Clone> {{\n{all}}}\nstruct Unit;\nstruct Pair(u8, u8);\n")
        };
        assert!(complaints(&of(20)).is_empty());
        let told = complaints(&of(21));
        assert!(told.len() == 1 && told[0].contains("Large has 21 fields"), "{told:?}");
    }

    #[test]
    fn a_glob_import_of_the_parent_is_found_outside_tests_only() {
        assert_eq!(complaints("//! A file.\nuse super::*;\n").len(), 1);
        assert!(complaints("//! A file.\n#[cfg(test)]\nmod tests {\n    use super::*;\n}\n").is_empty());
    }
}
