//! What is printed: data on stdout, everything else on stderr. Nobody has to read it: nothing here panics.

use std::fmt::Display;
use std::io::{self, Write};

use api::quote;

use crate::exit::Failure;

/// Data as it is. Where it cannot be written, that is the command's failure.
pub fn data(text: impl Display) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    write!(out, "{text}")?;
    Ok(out.flush()?)
}

/// A line of data.
pub fn line(text: impl Display) -> Result<(), Failure> {
    data(format_args!("{text}\n"))
}

/// A value for programs to read.
pub fn json(value: &impl serde::Serialize) -> Result<(), Failure> {
    line(serde_json::to_string_pretty(value).map_err(Failure::new)?)
}

/// A line for people, one whatever it quotes. That they do not see it changes nothing.
pub fn note(text: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{}", quote::line(&text.to_string()));
}

/// Lines for people that hold nothing foreign.
pub fn lines(text: impl Display) {
    let _ = write!(io::stderr().lock(), "{text}");
}

/// Text as it may be shown on a terminal: the only controls left in it are those that some terminals obey, U+0080 to U+009F.
pub fn harmless(text: &str) -> String {
    let is_obeyed = |c: char| ('\u{80}'..='\u{9f}').contains(&c);
    text.chars().flat_map(|c| if is_obeyed(c) { c.escape_unicode().collect() } else { vec![c] }).collect()
}
