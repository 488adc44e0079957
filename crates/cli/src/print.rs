//! Printing: data to stdout, everything else to stderr. A closed stdout or stderr never causes a panic.

use std::fmt::Display;
use std::io::{self, Write};

use terminal::quote;

use crate::exit::Failure;

/// Prints data unchanged; a failed write is the command's failure.
pub fn data(text: impl Display) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    write!(out, "{text}")?;
    Ok(out.flush()?)
}

/// Prints a line of data.
pub fn line(text: impl Display) -> Result<(), Failure> {
    data(format_args!("{text}\n"))
}

/// A value as JSON. Control and invisible characters are escaped, which is the same JSON.
pub fn json_text(value: &impl serde::Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(value).map_err(Failure::new)?;
    Ok(plain_json(&text) + "\n")
}

/// Prints a value as JSON.
pub fn json(value: &impl serde::Serialize) -> Result<(), Failure> {
    data(json_text(value)?)
}

/// The same in one line.
pub fn compact_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    line(plain_json(&serde_json::to_string(value).map_err(Failure::new)?))
}

fn plain_json(json: &str) -> String {
    let mut plain = String::with_capacity(json.len());
    let mut before = '\0';
    for c in json.chars() {
        if quote::is_unseen(c, before) || c == '\u{7f}' {
            for unit in c.encode_utf16(&mut [0; 2]) {
                plain.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            plain.push(c);
        }
        before = c;
    }
    plain
}

/// Prints one line for people, also if it quotes foreign text. A failed write is ignored.
pub fn note(text: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{}", quote::line(&text.to_string()));
}

/// Prints lines for people without foreign text.
pub fn lines(text: impl Display) {
    let _ = write!(io::stderr().lock(), "{text}");
}

/// Text that is safe on a terminal: the only controls left are those that some terminals execute, U+0080 to U+009F.
pub fn harmless(text: &str) -> String {
    let is_obeyed = |c: char| ('\u{80}'..='\u{9f}').contains(&c);
    text.chars().flat_map(|c| if is_obeyed(c) { c.escape_unicode().collect() } else { vec![c] }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_with_characters_that_a_terminal_obeys_is_the_same_json_without_them() {
        let value = serde_json::json!({"name": "a\u{9b}31m\u{202e}gpj\u{e0041}\u{1b}\u{7f}", "plain": "naïve · 日本 👨\u{200d}👩"});
        let json = serde_json::to_string_pretty(&value).expect("plain data");
        let plain = plain_json(&json);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&plain).expect("it is JSON"), value);
        assert!(
            !plain.contains(['\u{9b}', '\u{202e}', '\u{e0041}', '\u{1b}', '\u{7f}'])
                && plain.contains("naïve · 日本 👨")
        );
    }
}
