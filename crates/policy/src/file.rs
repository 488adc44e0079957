//! The policy file: named policies with their rules, in TOML. One mistake in it refuses the whole file.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use crate::glob::Glob;
use crate::hygiene::unfit;
use crate::judge::Policy;
use crate::mistake::Mistake;
use crate::remembered;
use crate::rule::{Rule, Verdict};

/// The policies of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policies {
    /// The policy of sessions whose profile names none.
    default: Option<String>,
    named: BTreeMap<String, Policy>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    default: Option<Spanned<String>>,
    #[serde(default)]
    policies: BTreeMap<Spanned<String>, RawPolicy>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPolicy {
    #[serde(default)]
    default: Verdict,
    #[serde(default)]
    unproven: Verdict,
    #[serde(default)]
    typed_input: Verdict,
    #[serde(default)]
    rules: Vec<Spanned<RawRule>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    name: Spanned<String>,
    verdict: Verdict,
    program: OneOrMore,
    #[serde(default)]
    args: Vec<OneOrMore>,
    #[serde(default)]
    with: Vec<String>,
    #[serde(default)]
    without: Vec<String>,
    only: Option<Vec<String>>,
    reason: Option<String>,
    #[serde(default, rename = "match")]
    examples: Vec<Spanned<String>>,
    #[serde(default, rename = "not_match")]
    counterexamples: Vec<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

/// Rules that every policy has in effect: their names are not free.
const OWN_NAMES: [&str; 6] = ["default", "unproven", "typed_input", "hygiene", "policy_file", remembered::RULE];

impl Policies {
    /// Reads a file.
    pub fn parse(text: &str) -> Result<Self, Mistake> {
        let mistake = |at: usize, what: String| Mistake::at(text, at, what);
        let raw: RawFile = toml::from_str(text).map_err(|e| Mistake::of(text, &e))?;
        let mut named = BTreeMap::new();
        for (name, policy) in raw.policies {
            let at = name.span().start;
            let name = name.into_inner();
            checked_name(&name).map_err(|what| mistake(at, what))?;
            let policy = policy_of(&name, policy).map_err(|(at, what)| mistake(at, what))?;
            named.insert(name, policy);
        }
        let default = match raw.default {
            Some(name) if !named.contains_key(name.get_ref()) => {
                let there: Vec<&str> = named.keys().map(String::as_str).collect();
                let what = format!("default: there is no policy {:?}; there are {}", name.get_ref(), there.join(", "));
                return Err(mistake(name.span().start, what));
            }
            name => name.map(Spanned::into_inner),
        };
        Ok(Self { default, named })
    }

    /// The same with the commands of a file that a person has allowed for always.
    pub fn with_remembered(mut self, text: &str) -> Result<Self, Mistake> {
        for (policy, decision) in remembered::parse(text)? {
            if let Some(policy) = self.named.get_mut(&policy) {
                policy.remembered.push(decision);
            }
        }
        Ok(self)
    }

    /// The policy of this name.
    pub fn get(&self, name: &str) -> Option<&Policy> {
        self.named.get(name)
    }

    /// The name of the policy of sessions whose profile names none.
    pub fn default_policy(&self) -> Option<&str> {
        self.default.as_deref()
    }

    /// Every policy.
    pub fn all(&self) -> impl Iterator<Item = &Policy> {
        self.named.values()
    }
}

fn checked_name(name: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if name.is_empty() || name.len() > 64 || !name.chars().all(is_plain) {
        return Err(format!("{name:?} is not a name: write 1 to 64 of the characters A-Z a-z 0-9 . _ -"));
    }
    Ok(())
}

fn policy_of(name: &str, raw: RawPolicy) -> Result<Policy, (usize, String)> {
    let RawPolicy { default, unproven, typed_input, rules } = raw;
    let mut policy =
        Policy { name: name.to_owned(), default, unproven, typed_input, rules: Vec::new(), remembered: Vec::new() };
    for raw in rules {
        let at = raw.span().start;
        let raw = raw.into_inner();
        let rule = rule_of(&raw).map_err(|what| (at, format!("rule {}: {what}", raw.name.get_ref())))?;
        if policy.rules.iter().any(|other| other.name == rule.name) {
            return Err((
                raw.name.span().start,
                format!("rule {}: the policy has another rule of this name", rule.name),
            ));
        }
        for (examples, is_match) in [(&raw.examples, true), (&raw.counterexamples, false)] {
            for example in examples {
                check_example(&rule, example.get_ref(), is_match).map_err(|what| (example.span().start, what))?;
            }
        }
        policy.rules.push(rule);
    }
    Ok(policy)
}

fn rule_of(raw: &RawRule) -> Result<Rule, String> {
    let name = raw.name.get_ref();
    checked_name(name)?;
    if OWN_NAMES.contains(&name.as_str()) {
        return Err(format!("{name} is the name of a rule that every policy has; choose another one"));
    }
    let globs = |all: &[String]| all.iter().map(|text| Glob::parse(text)).collect::<Result<Vec<_>, _>>();
    let one_or_more = |some: &OneOrMore| match some {
        OneOrMore::One(one) => globs(std::slice::from_ref(one)),
        OneOrMore::More(more) => globs(more),
    };
    let rule = Rule {
        name: name.clone(),
        verdict: raw.verdict,
        reason: raw.reason.clone(),
        program: one_or_more(&raw.program)?,
        args: raw.args.iter().map(one_or_more).collect::<Result<_, _>>()?,
        with: globs(&raw.with)?,
        without: globs(&raw.without)?,
        only: raw.only.as_deref().map(globs).transpose()?,
    };
    if rule.program.is_empty() || rule.args.iter().any(Vec::is_empty) {
        return Err("an empty list of patterns matches nothing; omit it, or write \"*\"".to_owned());
    }
    if let Some(blank) = rule.program.iter().find(|glob| glob.text().contains([' ', '\t'])) {
        let (program, args) = blank.text().split_once([' ', '\t']).unwrap_or_default();
        return Err(format!(
            "{:?} is not the name of a program: write program = {program:?}, args = [{args:?}]",
            blank.text()
        ));
    }
    Ok(rule)
}

fn check_example(rule: &Rule, example: &str, is_match: bool) -> Result<(), String> {
    let key = if is_match { "match" } else { "not_match" };
    if let (Some(why), true) = (unfit(example), is_match) {
        return Err(format!("rule {}: {key} {example:?}: {why}", rule.name));
    }
    let found = crate::judge::examined(rule, example);
    match (found, is_match) {
        (Ok(()), true) | (Err(_), false) => Ok(()),
        (Err(why), true) => Err(format!(
            "rule {}: {example:?} is an example of {key}, and the rule does not match it: {why}; correct one of the two",
            rule.name
        )),
        (Ok(()), false) => Err(format!(
            "rule {}: {example:?} is an example of {key}, and the rule matches it; correct one of the two",
            rule.name
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: &str = "[[policies.dev.rules]]\nname = 'look'\nverdict = 'allow'\nprogram = ['ls', 'cat']\n";

    fn mistake(text: &str) -> String {
        Policies::parse(text).expect_err(text).to_string()
    }

    #[test]
    // promise: policy-1
    fn one_mistake_refuses_the_file_with_its_line_and_a_remedy() {
        for (more, said) in [
            ("matches = ['ls']\n", "line 5: unknown field `matches`"),
            (
                "match = ['ls', 'pwd']\n",
                "line 5: rule look: \"pwd\" is an example of match, and the rule does not match it: not `pwd`",
            ),
            ("match = [\n'ls',\n'ls > x']\n", "line 7: rule look: \"ls > x\" is an example of match"),
            ("match = ['ls; rm x']\n", "line 5: rule look: \"ls; rm x\""),
            (
                "not_match = ['cat x']\n",
                "line 5: rule look: \"cat x\" is an example of not_match, and the rule matches it",
            ),
            ("match = ['ls \u{202e}']\n", "line 5: rule look: match"),
            ("without = ['[x']\n", "line 1: rule look: the pattern \"[x\" has a [ without a ]"),
            ("args = [[]]\n", "line 1: rule look: an empty list"),
            (RULE, "line 6: rule look: the policy has another rule of this name"),
            ("[policies.x]\ndefault = 'never'\n", "line 6: unknown variant `never`"),
            ("[policies.'x y']\n", "line 5: \"x y\" is not a name"),
        ] {
            let said_now = mistake(&format!("{RULE}{more}"));
            assert!(said_now.starts_with(said), "{more:?}: {said_now}");
        }
        assert!(mistake("default = 'x'\n").starts_with("line 1: default: there is no policy \"x\""));
        assert!(mistake(&RULE.replace("'ls'", "'git push'")).contains("write program = \"git\", args = [\"push\"]"));
        assert!(mistake(&RULE.replace("'look'", "'default'")).contains("choose another one"));
        assert!(mistake("policies = [").starts_with("line 1: "));
    }

    #[test]
    fn a_file_without_mistakes_is_read() {
        let text = format!("default = 'dev'\n{RULE}match = ['ls -l', 'ls; cat x']\nnot_match = ['ls > x', 'rm']\n");
        let policies = Policies::parse(&text).expect("right");
        assert_eq!((policies.default_policy(), policies.all().count()), (Some("dev"), 1));
        assert_eq!(Policies::parse(""), Ok(Policies::default()));
    }
}
