//! Printing: data to stdout, everything else to stderr. A closed stdout or stderr never causes a panic.

use std::fmt::Display;
use std::io::{self, Write};

use api::quote;

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

/// Prints a value as JSON.
pub fn json(value: &impl serde::Serialize) -> Result<(), Failure> {
    line(serde_json::to_string_pretty(value).map_err(Failure::new)?)
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
