//! The verdict of a policy on a command.

use std::path::Path;

use crate::hygiene::unfit;
use crate::lexer::prove;
use crate::remembered::{RULE, Remembered};
use crate::rule::{Rule, Verdict};
use crate::runners::{changes_meaning, runs_a_subscript};
use crate::scan::scan;
use crate::words::{Word, shown};

/// A named set of rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    pub(crate) name: String,
    pub(crate) default: Verdict,
    pub(crate) unproven: Verdict,
    pub(crate) typed_input: Verdict,
    pub(crate) rules: Vec<Rule>,
    /// The commands that a person has allowed for always.
    pub(crate) remembered: Vec<Remembered>,
}

/// Whether a session is in the state in which a command means what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing<'a> {
    /// It is: bash as it was started, and every command since was proven. It is in this directory, where that is known.
    Provable(Option<&'a Path>),
    /// It is not, for this reason.
    Unprovable(&'a str),
}

/// The verdict of a policy, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    /// The verdict.
    pub verdict: Verdict,
    /// The rule that gave it.
    pub rule: String,
    /// Why, for a person. It quotes the command as it is: a caller masks it, and then cuts it with [`Ruling::shorten`].
    pub why: String,
    /// The session is not provable any more once this has run.
    pub taints: bool,
    /// It may run only in the shell for which it was proven.
    pub is_proven: bool,
    /// A person has allowed it for always, and it may run only in a session that is provable, in its own shell.
    pub is_remembered: bool,
}

/// The longest reason that a person is shown, in characters.
const WHY_CHARS_MAX: usize = 160;

impl Ruling {
    /// Cuts the reason.
    pub fn shorten(&mut self) {
        if let Some((at, _)) = self.why.char_indices().nth(WHY_CHARS_MAX) {
            self.why.truncate(at);
            self.why.push('…');
        }
    }
}

impl Policy {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many rules it has.
    pub fn rules(&self) -> usize {
        self.rules.len()
    }

    /// The verdict on a command.
    pub fn command(&self, text: &str, standing: Standing<'_>) -> Ruling {
        if let Some(why) = unfit(text) {
            return Ruling {
                verdict: Verdict::Deny,
                rule: "hygiene".to_owned(),
                why,
                taints: true,
                is_proven: false,
                is_remembered: false,
            };
        }
        let proven = match standing {
            Standing::Provable(_) => self.proven(text),
            Standing::Unprovable(why) => Err(why.to_owned()),
        };
        let found = scan(text);
        let (commands, mut ruling) = match proven {
            Ok((commands, ruling)) => (commands, ruling),
            Err(why) => {
                // A text that is not read to its end may hold anything.
                let verdict = if found.is_whole { self.unproven } else { self.unproven.max(Verdict::Ask) };
                let why = if found.is_whole { why } else { format!("{why}, and ptyd cannot parse it to its end") };
                let ruling = Ruling {
                    verdict,
                    rule: "unproven".to_owned(),
                    why,
                    taints: true,
                    is_proven: false,
                    is_remembered: false,
                };
                (Vec::new(), ruling)
            }
        };
        for words in found.commands.iter().chain(&commands) {
            let stricter = self.rules.iter().filter(|rule| rule.verdict > ruling.verdict);
            let matching = stricter.filter(|rule| rule.matches_likely(words)).max_by_key(|rule| rule.verdict);
            if let Some(rule) = matching {
                ruling.verdict = rule.verdict;
                ruling.rule.clone_from(&rule.name);
                ruling.why = because(rule, words);
            }
        }
        match standing {
            Standing::Provable(Some(cwd)) => self.with_memory(text, cwd, ruling),
            Standing::Provable(None) | Standing::Unprovable(_) => ruling,
        }
    }

    /// The commands that a person has allowed for always, in order.
    pub fn remembered(&self) -> &[Remembered] {
        &self.remembered
    }

    /// The decision on this command in this directory.
    pub fn remembers(&self, command: &str, cwd: &Path) -> Option<&Remembered> {
        self.remembered.iter().find(|one| one.command == command && cwd.as_os_str() == one.cwd.as_str())
    }

    /// The same verdict, but `allow` instead of `ask` for a remembered command, which proves and taints what it did.
    fn with_memory(&self, text: &str, cwd: &Path, ruling: Ruling) -> Ruling {
        let remembered = || self.remembers(text, cwd);
        let Some(Remembered { by, at, .. }) = (ruling.verdict == Verdict::Ask).then(remembered).flatten() else {
            return ruling;
        };
        let Ruling { rule, why, .. } = &ruling;
        let why = format!("{by} always allows it in this directory, since {at} (otherwise rule {rule} asks: {why})");
        Ruling { verdict: Verdict::Allow, rule: RULE.to_owned(), why, is_remembered: true, ..ruling }
    }

    /// The verdict of the rules that allow, on a command that can be proven.
    fn proven(&self, text: &str) -> Result<(Vec<Vec<Word>>, Ruling), String> {
        let commands = prove(text)?;
        if let Some(words) = commands.iter().find(|words| runs_a_subscript(words)) {
            return Err(format!(
                "it can set a variable, and the variable's name can run a command: `{}`",
                shown(words)
            ));
        }
        let changing = commands.iter().find(|words| changes_meaning(words));
        if let (Some(words), true) = (changing, commands.len() > 1) {
            return Err(format!(
                "it can change the meaning of the commands beside it; send it alone: `{}`",
                shown(words)
            ));
        }
        let taints = changing.is_some();
        let mut strictest: Option<Ruling> = None;
        for words in &commands {
            let allowing = |rule: &&Rule| rule.verdict == Verdict::Allow && rule.matches_surely(words);
            let (verdict, rule, why) = match self.rules.iter().find(allowing) {
                Some(rule) => (Verdict::Allow, rule.name.as_str(), because(rule, words)),
                None => (self.default, "default", format!("no rule allows `{}`", shown(words))),
            };
            if strictest.as_ref().is_none_or(|so_far| verdict > so_far.verdict) {
                strictest =
                    Some(Ruling { verdict, rule: rule.to_owned(), why, taints, is_proven: true, is_remembered: false });
            }
        }
        let ruling = strictest.unwrap_or_else(|| Ruling {
            verdict: Verdict::Allow,
            rule: "default".to_owned(),
            why: "it runs nothing".to_owned(),
            taints,
            is_proven: true,
            is_remembered: false,
        });
        Ok((commands, ruling))
    }

    /// The verdict on input that is typed, which cannot be read in advance.
    pub fn typed_input(&self) -> Ruling {
        let why = "the effect of typed input depends on the program that reads it".to_owned();
        let rule = "typed_input".to_owned();
        Ruling { verdict: self.typed_input, rule, why, taints: true, is_proven: false, is_remembered: false }
    }

    /// The verdict on something that no analyser reads.
    pub fn unreadable(&self, why: String) -> Ruling {
        Ruling {
            verdict: self.unproven,
            rule: "unproven".to_owned(),
            why,
            taints: true,
            is_proven: false,
            is_remembered: false,
        }
    }
}

fn because(rule: &Rule, words: &[Word]) -> String {
    let reason = rule.reason.as_ref().map(|reason| format!("{reason}: ")).unwrap_or_default();
    format!("{reason}`{}`", shown(words))
}

/// Whether a rule alone matches this example: for `allow`, every command of it; otherwise, any.
pub(crate) fn examined(rule: &Rule, example: &str) -> Result<(), String> {
    let none = || "the rule matches none of its commands".to_owned();
    if rule.verdict == Verdict::Allow {
        let commands = prove(example)?;
        let other = commands.iter().find(|words| !rule.matches_surely(words));
        return match other {
            Some(words) => Err(format!("not `{}`", shown(words))),
            None if commands.is_empty() => Err(none()),
            None => Ok(()),
        };
    }
    scan(example).commands.iter().any(|words| rule.matches_likely(words)).then_some(()).ok_or_else(none)
}
