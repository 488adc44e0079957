//! The most text that an answer holds.

/// A number of characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// The characters.
    pub chars: usize,
    /// The caller folds lines that are repeated ten times or more.
    pub folds_repeats: bool,
}

/// This many equal lines in a row are folded; fewer cost little, and a reader may want to count them.
const REPEATS_MIN: usize = 10;

impl Budget {
    /// No text.
    pub const NONE: Self = Self { chars: 0, folds_repeats: false };

    /// For a caller that folds lines that repeat.
    pub const fn folded(chars: usize) -> Self {
        Self { chars, folds_repeats: true }
    }

    /// Less what was shown already.
    #[must_use]
    pub fn less(self, shown: usize) -> Self {
        Self { chars: self.chars.saturating_sub(shown), ..self }
    }

    /// A quarter of it, for text beside the answer's own.
    #[must_use]
    pub fn quarter(self) -> Self {
        Self { chars: self.chars / 4, ..self }
    }

    /// Whether it holds this text.
    pub fn holds(self, text: &str) -> bool {
        text.len() <= self.chars
            || text.chars().count() <= self.chars
            || self.folds_repeats && folded_chars(text) <= self.chars
    }
}

impl From<usize> for Budget {
    fn from(chars: usize) -> Self {
        Self { chars, folds_repeats: false }
    }
}

/// The characters that say how often a line is repeated.
const FOLD_CHARS: usize = 45;

/// The lines of a text, each with how often it follows in a row. The last of them may lack its line end.
pub fn runs_of_lines(text: &str) -> impl Iterator<Item = (&str, usize)> {
    let mut lines = text.split_inclusive('\n').peekable();
    std::iter::from_fn(move || {
        let line = lines.next()?;
        let is_equal = |next: &&str| next.trim_end_matches('\n') == line.trim_end_matches('\n');
        let more = std::iter::from_fn(|| lines.next_if(is_equal)).count();
        Some((line, 1 + more))
    })
}

/// Whether so many equal lines in a row are folded.
pub fn is_folded(line: &str, repeats: usize) -> bool {
    repeats >= REPEATS_MIN && !line.trim().is_empty()
}

/// The characters of a text whose repeated lines are folded.
fn folded_chars(text: &str) -> usize {
    let chars = |(line, repeats): (&str, usize)| {
        let once = line.chars().count();
        if is_folded(line, repeats) { once + FOLD_CHARS } else { repeats * once }
    };
    runs_of_lines(text).map(chars).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_folded_cost_as_much_as_one() {
        let text = format!("head\n{}tail", "again\n".repeat(1_000));
        assert!(Budget::folded(60).holds(&text) && !Budget::folded(59).holds(&text));
        assert!(!Budget::from(6_008).holds(&text) && Budget::from(6_009).holds(&text));
        let nine = "again\n".repeat(REPEATS_MIN - 1);
        assert!(!Budget::folded(53).holds(&nine) && Budget::folded(54).holds(&nine));
        assert!(!Budget::folded(50).holds(&"\n".repeat(100)), "empty lines are not folded");
    }
}
