//! Patterns of words: `*` any characters, `?` one, `[ab]`, `[a-z]` and `[!ab]` one of them or none of them, `\` the next
//! character itself.

/// A pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Glob {
    parts: Vec<Part>,
    /// As it was written.
    text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    One(char),
    Any,
    Many,
    Of { is_negated: bool, ranges: Vec<(char, char)> },
}

impl Glob {
    /// Reads a pattern; the mistake in it otherwise.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            parts.push(match c {
                '*' => Part::Many,
                '?' => Part::Any,
                '[' => class(&mut chars).ok_or_else(|| format!("the pattern {text:?} has a [ without a ]"))?,
                '\\' => Part::One(chars.next().ok_or_else(|| format!("the pattern {text:?} ends with a \\"))?),
                other => Part::One(other),
            });
        }
        Ok(Self { parts, text: text.to_owned() })
    }

    /// Whether it stands for any word.
    pub(crate) fn is_any(&self) -> bool {
        self.parts == [Part::Many]
    }

    /// Whether every word for which it stands is an option.
    pub(crate) fn is_of_options(&self) -> bool {
        self.parts.first() == Some(&Part::One('-'))
    }

    /// Whether it has a slash, so that it stands for paths.
    pub(crate) fn has_slash(&self) -> bool {
        self.text.contains('/')
    }

    /// As it was written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether it stands for this word.
    pub(crate) fn matches(&self, word: &str) -> bool {
        let word: Vec<char> = word.chars().collect();
        let (mut part, mut at) = (0, 0);
        // Where the last `*` is, and how far the text is that it stands for.
        let mut many: Option<(usize, usize)> = None;
        loop {
            match (self.parts.get(part), word.get(at)) {
                (None, None) => return true,
                (Some(Part::Many), _) => {
                    many = Some((part, at));
                    part += 1;
                    continue;
                }
                (Some(one), Some(c)) if one.takes(*c) => {
                    part += 1;
                    at += 1;
                    continue;
                }
                _ => {}
            }
            match many {
                Some((star, from)) if from < word.len() => {
                    many = Some((star, from + 1));
                    part = star + 1;
                    at = from + 1;
                }
                _ => return false,
            }
        }
    }
}

impl Part {
    fn takes(&self, c: char) -> bool {
        match self {
            Self::One(own) => *own == c,
            Self::Any => true,
            Self::Many => false,
            Self::Of { is_negated, ranges } => {
                ranges.iter().any(|(from, to)| (*from..=*to).contains(&c)) != *is_negated
            }
        }
    }
}

/// Reads a class behind its first bracket.
fn class(chars: &mut std::str::Chars<'_>) -> Option<Part> {
    let is_negated = chars.as_str().starts_with('!');
    if is_negated {
        chars.next();
    }
    let mut ranges = Vec::new();
    loop {
        let from = chars.next()?;
        if from == ']' && !ranges.is_empty() {
            return Some(Part::Of { is_negated, ranges });
        }
        let mut ahead = chars.as_str().chars();
        match (ahead.next(), ahead.next()) {
            (Some('-'), Some(to)) if to != ']' => {
                chars.next();
                chars.next();
                ranges.push((from, to));
            }
            _ => ranges.push((from, from)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_whole_words() {
        let is = |pattern: &str, word: &str| Glob::parse(pattern).expect(pattern).matches(word);
        for (pattern, yes, no) in [
            ("ls", &["ls"][..], &["lsx", "xls", "", "LS"][..]),
            ("*", &["", "x", "a/b"], &[]),
            ("-*r*", &["-r", "-fr", "-force"], &["r", "-f"]),
            ("-[!-]*", &["-r", "-ab"], &["--r", "-"]),
            ("a?c", &["abc", "aéc"], &["ac", "abbc"]),
            ("[a-c]x", &["bx"], &["dx", "-x"]),
            ("[]x]", &["]", "x"], &["["]),
            ("\\*", &["*"], &["x"]),
            ("*a*b*", &["ab", "xaxbx", "aab"], &["ba", "a"]),
        ] {
            for word in yes {
                assert!(is(pattern, word), "{pattern} {word}");
            }
            for word in no {
                assert!(!is(pattern, word), "{pattern} {word}");
            }
        }
        // A long word takes no long time.
        assert!(!is("*a*a*a*a*b", &"a".repeat(5_000)));
        assert!(Glob::parse("[a").is_err() && Glob::parse("x\\").is_err());
    }
}
