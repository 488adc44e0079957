//! One rule: its verdict, and the commands that it matches.

use serde::Deserialize;

use crate::glob::Glob;
use crate::words::{Word, base_name};

/// The verdict of a policy on a command. Of several, the strictest counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It runs.
    Allow,
    /// A person decides.
    #[default]
    Ask,
    /// It does not run.
    Deny,
}

impl Verdict {
    /// Its name in policy files, records and answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// A rule of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) name: String,
    pub(crate) verdict: Verdict,
    /// For the caller that is refused.
    pub(crate) reason: Option<String>,
    /// One of these is the program.
    pub(crate) program: Vec<Glob>,
    /// The first arguments, each one of some.
    pub(crate) args: Vec<Vec<Glob>>,
    /// One argument is one of these, if there are any.
    pub(crate) with: Vec<Glob>,
    /// No argument is one of these.
    pub(crate) without: Vec<Glob>,
    /// Every argument behind `args` is one of these, if there are any.
    pub(crate) only: Option<Vec<Glob>>,
}

impl Rule {
    /// Whether it matches this command however its words turn out: for `allow`.
    pub(crate) fn matches_surely(&self, words: &[Word]) -> bool {
        let Some((Word::Literal(program), arguments)) = words.split_first() else { return false };
        let Some((first, rest)) = arguments.split_at_checked(self.args.len()) else { return false };
        self.program.iter().any(|glob| glob.matches(program))
            && first.iter().zip(&self.args).all(|(word, globs)| is_surely(word, globs))
            && arguments.iter().all(|word| self.is_surely_without(word))
            && (self.with.is_empty() || arguments.iter().any(|word| is_surely(word, &self.with)))
            && self.only.as_ref().is_none_or(|only| rest.iter().all(|word| is_surely(word, only)))
    }

    /// Whether it matches this command as far as its words are known: for `ask` and `deny`.
    pub(crate) fn matches_likely(&self, words: &[Word]) -> bool {
        let Some((Word::Literal(program), arguments)) = words.split_first() else { return false };
        let is_likely = |word: &Word, globs: &[Glob]| match word {
            Word::Literal(text) => globs.iter().any(|glob| glob.matches(text)),
            Word::Glob(_) | Word::Unknown => globs.iter().any(Glob::is_any),
        };
        // Options of the program itself, and their values, may stand before its first argument (`git -C x push`).
        let is_option = |at: usize| arguments.get(at).is_some_and(|word| word.begins("-"));
        let before = (0..arguments.len()).take_while(|at| is_option(*at) || (*at > 0 && is_option(at - 1))).count();
        let rest = (0..=before).find_map(|at| {
            let (first, rest) = arguments.get(at..)?.split_at_checked(self.args.len())?;
            first.iter().zip(&self.args).all(|(word, globs)| is_likely(word, globs)).then_some(rest)
        });
        let known = |word: &Word, globs: &[Glob]| word.text().is_some_and(|text| globs.iter().any(|g| g.matches(text)));
        let Some(rest) = rest else { return false };
        self.program.iter().any(|glob| glob.matches(program) || (!glob.has_slash() && glob.matches(base_name(program))))
            && !arguments.iter().any(|word| known(word, &self.without))
            && (self.with.is_empty() || arguments.iter().any(|word| known(word, &self.with)))
            && self.only.as_ref().is_none_or(|only| rest.iter().all(|word| word.text().is_none() || known(word, only)))
    }

    /// Names of files are not options, if they begin with something else.
    fn is_surely_without(&self, word: &Word) -> bool {
        match word {
            Word::Literal(text) => !self.without.iter().any(|glob| glob.matches(text)),
            Word::Glob(prefix) => {
                let is_no_option = !prefix.is_empty() && !prefix.starts_with('-');
                self.without.iter().all(|glob| is_no_option && glob.is_of_options())
            }
            Word::Unknown => self.without.is_empty(),
        }
    }
}

fn is_surely(word: &Word, globs: &[Glob]) -> bool {
    match word {
        Word::Literal(text) => globs.iter().any(|glob| glob.matches(text)),
        // It may be several words.
        Word::Glob(_) | Word::Unknown => false,
    }
}
