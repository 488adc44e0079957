//! Rust source with comments and literals blanked, so that rules about code ignore text.
//!
//! Removed text becomes blanks of the same length: lines keep their numbers, columns their places.

use std::ops::Range;

/// The code alone: comments and the contents of quotes are blank.
pub fn code(text: &str) -> String {
    let mut out = text.as_bytes().to_vec();
    for (_, range) in spans(text.as_bytes()) {
        blank(&mut out[range]);
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The comments alone, with their slashes: all else is blank.
pub fn comments(text: &str) -> String {
    let mut out = text.as_bytes().to_vec();
    let mut from = 0;
    for (_, range) in spans(text.as_bytes()).into_iter().filter(|(kind, _)| *kind == Kind::Comment) {
        blank(&mut out[from..range.start]);
        from = range.end;
    }
    blank(&mut out[from..]);
    String::from_utf8_lossy(&out).into_owned()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Comment,
    /// The contents of a literal, without its quotes.
    Literal,
}

/// The places of all comments and literals, in their order.
fn spans(bytes: &[u8]) -> Vec<(Kind, Range<usize>)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let end = if rest.starts_with(b"//") {
            at + rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())
        } else if rest.starts_with(b"/*") {
            at + block_comment(rest)
        } else if let Some((open, close)) = literal(bytes, at) {
            found.push((Kind::Literal, at + open..close));
            at = (close + 1).min(bytes.len());
            continue;
        } else {
            at += 1;
            continue;
        };
        found.push((Kind::Comment, at..end));
        at = end;
    }
    found
}

/// The code that ships: what is behind `#[cfg(test)]` is blank too.
pub fn shipped(code: &str) -> String {
    const MARK: &str = "#[cfg(test)]";
    let mut out = code.as_bytes().to_vec();
    let mut from = 0;
    while let Some(found) = code[from..].find(MARK) {
        let start = from + found;
        let end = item_end(code.as_bytes(), start + MARK.len());
        blank(&mut out[start..end]);
        from = end;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The lines that contain a whole word.
pub fn lines_with_word(code: &str, word: &str) -> Vec<usize> {
    word_places(code, word).map(|at| line_of(code, at)).collect()
}

/// The first names that are taken from a path's root, each with its line: `std::{fs, io::Write}` takes `fs` and `io`
/// from `std`. A glob is `*`, and renaming the root itself is `as`.
pub fn names_from(code: &str, root: &str) -> Vec<(usize, String)> {
    let mut names = Vec::new();
    for at in word_places(code, root) {
        let is_inner = code[..at].trim_end().strip_suffix("::").is_some_and(|before| before.ends_with(is_word_char));
        if is_inner {
            continue;
        }
        let line = line_of(code, at);
        let rest = code[at + root.len()..].trim_start();
        if let Some(rest) = rest.strip_prefix("::") {
            names.extend(heads(rest.trim_start()).into_iter().map(|name| (line, name)));
        } else if rest.starts_with("as ") {
            names.push((line, "as".to_owned()));
        }
    }
    names
}

fn word_places<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    code.match_indices(word).map(|(at, _)| at).filter(move |at| {
        let before = code[..*at].chars().next_back();
        let after = code[at + word.len()..].chars().next();
        !before.is_some_and(is_word_char) && !after.is_some_and(is_word_char)
    })
}

/// The name that begins here, or those of a group in braces.
fn heads(code: &str) -> Vec<String> {
    let Some(group) = code.strip_prefix('{') else {
        return head(code).into_iter().collect();
    };
    let mut depth = 0usize;
    let mut parts = vec![String::new()];
    for c in group.chars() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    parts.iter().filter_map(|part| head(part.trim_start())).collect()
}

fn head(code: &str) -> Option<String> {
    if code.starts_with('*') {
        return Some("*".to_owned());
    }
    let name: String = code.chars().take_while(|c| is_word_char(*c)).collect();
    (!name.is_empty()).then_some(name)
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn line_of(code: &str, at: usize) -> usize {
    code[..at].matches('\n').count() + 1
}

fn blank(bytes: &mut [u8]) {
    for byte in bytes.iter_mut().filter(|byte| **byte != b'\n') {
        *byte = b' ';
    }
}

fn block_comment(bytes: &[u8]) -> usize {
    let (mut at, mut depth) = (0, 0usize);
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    bytes.len()
}

/// The range of a literal's contents (its begin counted from `at`), if a literal begins at `at`.
fn literal(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let is_in_word = at > 0 && is_word_char(char::from(bytes[at - 1]));
    let rest = &bytes[at..];
    match rest[0] {
        b'"' => Some((1, at + 1 + quoted(&rest[1..], b'"'))),
        b'r' if !is_in_word || matches!(bytes[at - 1], b'b' | b'c') => {
            let hashes = rest[1..].iter().take_while(|byte| **byte == b'#').count();
            let open = 1 + hashes + 1;
            if rest.get(open - 1) != Some(&b'"') {
                return None;
            }
            let close = [b"\"".as_slice(), &b"#".repeat(hashes)].concat();
            let inside = &rest[open..];
            let len = inside.windows(close.len()).position(|found| found == close).unwrap_or(inside.len());
            // Stand on the last hash, so that the caller's one step leaves the literal.
            Some((open, (at + open + len + hashes).min(bytes.len())))
        }
        // A lifetime has no second quote where a character would.
        b'\'' if rest.get(1) == Some(&b'\\') => Some((1, at + 1 + quoted(&rest[1..], b'\''))),
        b'\'' => {
            let width = std::str::from_utf8(&rest[1..(rest.len()).min(5)])
                .map_or_else(|error| error.valid_up_to(), str::len)
                .min(4);
            let first = std::str::from_utf8(&rest[1..1 + width]).ok()?.chars().next()?;
            (rest.get(1 + first.len_utf8()) == Some(&b'\'')).then_some((1, at + 1 + first.len_utf8()))
        }
        _ => None,
    }
}

fn quoted(bytes: &[u8], quote: u8) -> usize {
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The end of the item after an attribute: its closing brace, or its semicolon if that comes first.
fn item_end(code: &[u8], from: usize) -> usize {
    let mut depth = 0usize;
    for (at, byte) in code.iter().enumerate().skip(from) {
        match byte {
            b'{' => depth += 1,
            b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            b';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blank_and_code_stays_where_it_is() {
        let text = concat!(
            "let a = \"unsafe \\\" todo!()\"; // unsafe\n",
            "/* unsafe /* nested */ unsafe */ let b = r#\"unsafe \" \"#;\n",
            "let c = ('\"', '\\'', b'x', 'é'); fn f<'a>(x: &'a str) {} unsafe {}\n",
        );
        let code = code(text);
        assert_eq!(code.len(), text.len());
        assert_eq!(lines_with_word(&code, "unsafe"), [3]);
        assert_eq!(lines_with_word(&code, "let"), [1, 2, 3]);
        assert!(code.contains("fn f<'a>(x: &'a str) {}"));
        let comments = comments(text);
        assert_eq!(comments.len(), text.len());
        let words: Vec<_> = comments.split_whitespace().collect();
        assert_eq!(words, ["//", "unsafe", "/*", "unsafe", "/*", "nested", "*/", "unsafe", "*/"]);
    }

    #[test]
    fn code_behind_cfg_test_does_not_ship() {
        let code = "fn a() {}\n#[cfg(test)]\nmod tests { fn b() { {} } }\n#[cfg(test)]\nuse x::y;\nfn c() {}\n";
        let shipped = shipped(code);
        assert_eq!(lines_with_word(&shipped, "fn"), [1, 6]);
        assert!(!shipped.contains("tests") && !shipped.contains("use"));
    }

    #[test]
    fn the_names_taken_from_a_root_are_found_in_all_forms() {
        let code = "use std::{fs, io::{self, Write}, *};\nuse std::net::TcpStream;\nlet x = ::std::time::now();\n\
                    use std as s;\nuse my::std::thread; std_process::x();";
        let names = names_from(code, "std");
        let names: Vec<_> = names.iter().map(|(line, name)| (*line, name.as_str())).collect();
        assert_eq!(names, [(1, "fs"), (1, "io"), (1, "*"), (2, "net"), (3, "time"), (4, "as")]);
    }
}
