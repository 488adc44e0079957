//! The conditions that end a wait besides its pattern, in one grammar for every protocol.

use std::path::PathBuf;
use std::time::Duration;

use regex::{Regex, RegexBuilder};

use super::Wait;
use crate::block_in_place::block_in_place;
use crate::limits::{
    PATTERN_BYTES_MAX, PATTERN_CACHE_BYTES_MAX, PATTERN_CLASSES_MAX, PATTERN_LENGTH_MAX, TIMEOUT_MAX, UNTIL_MAX,
};

/// All conditions in one sentence, for errors.
pub const VALID: &str = "listening, listening:PORT, file:PATH, gone:REGEX, bell, quiet:MILLISECONDS or input";

/// A condition that ends a wait.
#[derive(Debug, Clone)]
pub enum Until {
    /// A process of the session listens on this TCP port, or on any.
    Listening(Option<u16>),
    /// This file exists. A relative path is relative to the shell's directory.
    File(PathBuf),
    /// The screen no longer shows this.
    Gone(Regex),
    /// The bell rings.
    Bell,
    /// The program wants input, even if there are other conditions.
    Input,
}

/// The condition in the grammar.
impl std::fmt::Display for Until {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Listening(None) => f.write_str("listening"),
            Self::Listening(Some(port)) => write!(f, "listening:{port}"),
            Self::File(path) => write!(f, "file:{}", path.display()),
            Self::Gone(pattern) => write!(f, "gone:{pattern}"),
            Self::Bell => f.write_str("bell"),
            Self::Input => f.write_str("input"),
        }
    }
}

/// A regular expression in which `^` and `$` match at line ends. What would take long to compile is refused by its
/// text.
pub fn pattern(text: &str) -> Result<Regex, String> {
    if text.len() > PATTERN_LENGTH_MAX {
        return Err(format!("a pattern has at most {PATTERN_LENGTH_MAX} bytes"));
    }
    let classes = classes(text);
    if classes > PATTERN_CLASSES_MAX {
        return Err(format!("{classes} character classes; a pattern has at most {PATTERN_CLASSES_MAX}"));
    }
    let mut builder = RegexBuilder::new(text);
    builder.multi_line(true).size_limit(PATTERN_BYTES_MAX).dfa_size_limit(PATTERN_CACHE_BYTES_MAX);
    block_in_place(|| builder.build()).map_err(|error| match error {
        regex::Error::CompiledTooBig(limit) => format!(
            "larger than {} KiB when compiled; repeat less, or write [0-9A-Za-z_] for \\w and [0-9] for \\d",
            limit >> 10
        ),
        error => error.to_string(),
    })
}

/// Whether a pattern may take more memory than its text: it has a character class, a `.` or a counted repetition.
fn is_large(pattern: &Regex) -> bool {
    let text = pattern.as_str();
    classes(text) > 0 || text.contains(['.', '{'])
}

/// How many character classes a pattern has at most: `[…]`, `\w`, `\d`, `\s`, `\p{…}` and their opposites.
fn classes(text: &str) -> usize {
    let mut bytes = text.bytes();
    let mut classes = 0;
    while let Some(byte) = bytes.next() {
        let is_class = match byte {
            b'\\' => bytes.next().is_some_and(|name| b"wWdDsSpP".contains(&name)),
            byte => byte == b'[',
        };
        classes += usize::from(is_class);
    }
    classes
}

impl Wait {
    /// How many patterns it matches.
    pub fn patterns(&self) -> usize {
        let gone = self.until.iter().filter(|until| matches!(until, Until::Gone(regex) if is_large(regex))).count();
        gone + usize::from(self.pattern.as_ref().is_some_and(is_large))
    }

    /// A wait that only the timeout ends, or the end of the command or session.
    pub fn at_most(timeout: Duration) -> Self {
        Self { pattern: None, until: Vec::new(), input_wanted: false, quiet: None, timeout }
    }

    /// Adds these conditions.
    pub fn until(mut self, words: &[String]) -> Result<Self, String> {
        if words.len() > UNTIL_MAX {
            return Err(format!("{} words; at most {UNTIL_MAX}", words.len()));
        }
        for word in words {
            let unknown = || format!("{:?} is none of {VALID}", word.chars().take(60).collect::<String>());
            let (name, value) = word.split_once(':').map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
            let until = match (name, value) {
                ("listening", None) => Until::Listening(None),
                ("listening", Some(port)) => match port.parse() {
                    Ok(port) if port > 0 => Until::Listening(Some(port)),
                    _ => return Err(format!("{word:?}: a port is a number from 1 to 65535")),
                },
                ("file", Some(path)) if !path.is_empty() => Until::File(PathBuf::from(path)),
                ("gone", Some(text)) if !text.is_empty() => {
                    Until::Gone(pattern(text).map_err(|e| format!("gone: not a regular expression: {e}"))?)
                }
                ("bell", None) => Until::Bell,
                ("input", None) => Until::Input,
                ("quiet", Some(ms)) => {
                    let time = ms.parse().ok().map(Duration::from_millis).filter(|time| *time <= TIMEOUT_MAX);
                    let time =
                        time.ok_or_else(|| format!("{word:?}: milliseconds, at most {}", TIMEOUT_MAX.as_millis()))?;
                    self.quiet = Some(self.quiet.map_or(time, |before| before.min(time)));
                    continue;
                }
                _ => return Err(unknown()),
            };
            self.until.push(until);
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(word: &str) -> Result<Wait, String> {
        Wait::at_most(Duration::ZERO).until(&[word.to_owned()])
    }

    #[test]
    fn every_word_is_read() {
        for (word, shown) in [
            ("listening", "[Listening(None)]"),
            ("listening:5173", "[Listening(Some(5173))]"),
            ("file:dist/a b.js", "[File(\"dist/a b.js\")]"),
            ("gone:Loading: \\d+", "[Gone(Regex(\"Loading: \\\\d+\"))]"),
            ("bell", "[Bell]"),
            ("input", "[Input]"),
            ("quiet:250", "[]"),
        ] {
            assert_eq!(format!("{:?}", parsed(word).expect("valid").until), shown);
        }
        assert_eq!(parsed("quiet:250").expect("valid").quiet, Some(Duration::from_millis(250)));
    }

    #[test]
    // promise: wait-5
    fn what_is_no_such_word_is_refused_with_those_that_are() {
        for (word, problem) in [
            ("ready", format!("\"ready\" is none of {VALID}")),
            ("file:", format!("\"file:\" is none of {VALID}")),
            ("bell:1", format!("\"bell:1\" is none of {VALID}")),
            ("listening:0", "\"listening:0\": a port is a number from 1 to 65535".to_owned()),
            ("listening:http", "\"listening:http\": a port is a number from 1 to 65535".to_owned()),
            ("quiet:soon", "\"quiet:soon\": milliseconds, at most 86400000".to_owned()),
        ] {
            assert_eq!(parsed(word).expect_err("refused"), problem);
        }
        assert!(parsed("gone:(").expect_err("refused").starts_with("gone: not a regular expression"));
        let many = vec!["bell".to_owned(); UNTIL_MAX + 1];
        assert_eq!(Wait::at_most(Duration::ZERO).until(&many).expect_err("too many"), "17 words; at most 16");
    }
}
