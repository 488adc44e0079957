//! The words of a simple command, as far as they are known before it runs.

/// One word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Word {
    /// Exactly this text.
    Literal(String),
    /// Names of files, each of which begins with this text, or the pattern itself.
    Glob(String),
    /// Only its run shows it.
    Unknown,
}

impl Word {
    /// Its text, if that is known.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Literal(text) => Some(text),
            Self::Glob(_) | Self::Unknown => None,
        }
    }

    /// Whether it is this very text.
    pub(crate) fn is(&self, text: &str) -> bool {
        self.text() == Some(text)
    }

    /// Whether it begins with this text.
    pub(crate) fn begins(&self, text: &str) -> bool {
        self.text().is_some_and(|own| own.starts_with(text))
    }
}

/// The file name of a program's path.
pub(crate) fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// The words as a person would write them.
pub(crate) fn shown(words: &[Word]) -> String {
    let all: Vec<&str> = words
        .iter()
        .map(|word| match word {
            Word::Literal(text) if text.is_empty() => "''",
            Word::Literal(text) => text,
            Word::Glob(_) | Word::Unknown => "…",
        })
        .collect();
    all.join(" ").chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
