//! A mistake in a file, with its line.

use std::fmt;

/// A mistake in a file, and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The line, from 1.
    pub line: usize,
    /// The mistake, and what to do.
    pub what: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl Mistake {
    /// That at this byte of the text.
    pub(crate) fn at(text: &str, at: usize, what: String) -> Self {
        Self { line: text.get(..at).unwrap_or_default().matches('\n').count() + 1, what }
    }

    /// The reason why the text is not TOML of this form.
    pub(crate) fn of(text: &str, error: &toml::de::Error) -> Self {
        Self::at(text, error.span().map_or(0, |span| span.start), error.message().replace('\n', " "))
    }
}
