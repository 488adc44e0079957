//! Commands that a person has allowed for always: rules of a policy that match one whole text each, in a file beside the policy file.
//!
//! They stand where the verdict would be `ask`, and only in a session that is provable: elsewhere the text may mean something else.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Spanned;

use crate::hygiene::unfit;
use crate::mistake::Mistake;
use crate::scan::scan;

/// The commands that one policy remembers at most: a person should still read them all.
pub const REMEMBERED_PER_POLICY_MAX: usize = 256;

/// The name of the rule.
pub(crate) const RULE: &str = "remembered";

/// The first lines of a new file.
pub const REMEMBERED_HEAD: &str =
    "# Commands that a person has always allowed (docs/policy.md). If you remove one, ptyd asks about it again.\n";

/// A person's decision on a command in a directory: elsewhere the same text runs other files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remembered {
    /// The command, to the byte.
    pub command: String,
    /// The directory.
    pub cwd: String,
    /// The principal that decided.
    pub by: String,
    /// The time, as the file has it.
    pub at: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    #[serde(default)]
    remembered: Vec<RawRemembered>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRemembered {
    policy: String,
    command: Spanned<String>,
    cwd: String,
    by: String,
    at: String,
}

/// The file with the remembered commands of this policy file's policies.
pub fn remembered_file(policy_file: &Path) -> PathBuf {
    policy_file.with_extension("remembered.toml")
}

/// Why no rule can be made of this command in this directory, if that is so.
pub fn unfit_to_remember(command: &str, cwd: &Path) -> Option<String> {
    let no_text = || "the name of its directory cannot be in a rule".to_owned();
    let of_directory = cwd.to_str().filter(|cwd| unfit(cwd).is_none() && !cwd.contains(['\n', '\t']));
    let of_command = unfit(command)
        .or_else(|| (!scan(command).is_whole).then(|| "ptyd cannot parse the command to its end".to_owned()));
    of_command.or_else(|| of_directory.is_none().then(no_text))
}

/// A decision, as the file has it.
pub fn remembered_entry(policy: &str, decision: &Remembered) -> String {
    let Remembered { command, cwd, by, at } = decision;
    let mut entry = String::from("\n[[remembered]]\n");
    for (key, value) in [("policy", policy), ("command", command), ("cwd", cwd), ("by", by), ("at", at)] {
        let _ = writeln!(entry, "{key} = {}", quoted(value));
    }
    entry
}

/// A basic string of TOML. Control characters but these two are in no command that is remembered.
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\t', "\\t");
    format!("\"{escaped}\"")
}

/// The decisions of a file, each with its policy. Those of other policies than the caller's count for nothing.
pub(crate) fn parse(text: &str) -> Result<Vec<(String, Remembered)>, Mistake> {
    let raw: RawFile = toml::from_str(text).map_err(|e| Mistake::of(text, &e))?;
    let mut all: Vec<(String, Remembered)> = Vec::new();
    for RawRemembered { policy, command, cwd, by, at } in raw.remembered {
        let place = command.span().start;
        let command = command.into_inner();
        if let Some(why) = unfit_to_remember(&command, Path::new(&cwd)) {
            return Err(Mistake::at(text, place, format!("command: {why}")));
        }
        if all.iter().filter(|(of, ..)| *of == policy).count() == REMEMBERED_PER_POLICY_MAX {
            let what = format!(
                "policy {policy:?} remembers more than {REMEMBERED_PER_POLICY_MAX} commands; remove one, or write a rule"
            );
            return Err(Mistake::at(text, place, what));
        }
        all.push((policy, Remembered { command, cwd, by, at }));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Policies, Standing, Verdict};

    const POLICY: &str = "[policies.dev]\n[policies.open]\nunproven = 'allow'\n[[policies.dev.rules]]\nname = 'no-rm'\nverdict = 'deny'\nprogram = 'rm'\n";

    const CWD: &str = "/src/\"app\"";

    fn entry(policy: &str, command: &str) -> String {
        let (by, at) = ("ada \"x\"".to_owned(), "2026-01-02T03:04:05Z".to_owned());
        remembered_entry(policy, &Remembered { command: command.to_owned(), cwd: CWD.to_owned(), by, at })
    }

    fn with(memory: &str) -> Result<Policies, Mistake> {
        Policies::parse(POLICY).expect("right").with_remembered(memory)
    }

    #[test]
    // promise: policy-10
    fn exactly_the_remembered_command_is_allowed_where_the_policy_would_ask() {
        let odd = "printf 'a\\t\"é\\n'\t> x\nls";
        let memory = [
            REMEMBERED_HEAD.to_owned(),
            entry("dev", "make > log"),
            entry("dev", odd),
            entry("dev", "rm x; make > log"),
        ];
        let policies = with(&memory.concat()).expect("right");
        let dev = policies.get("dev").expect("there");
        assert_eq!(dev.remembered().len(), 3);
        let here = Standing::Provable(Some(Path::new(CWD)));
        for elsewhere in [None, Some("/src"), Some("/src/\"app\"/x"), Some("/src/\"app\"/.")] {
            let ruling = dev.command("make > log", Standing::Provable(elsewhere.map(Path::new)));
            assert_eq!((ruling.verdict, ruling.is_remembered), (Verdict::Ask, false), "{elsewhere:?}");
        }
        for text in ["make > log", odd] {
            let ruling = dev.command(text, here);
            assert_eq!((ruling.verdict, ruling.rule.as_str(), ruling.is_remembered), (Verdict::Allow, RULE, true));
            assert!(ruling.taints && !ruling.is_proven && ruling.why.starts_with("ada \"x\" always allows it"));
            assert_eq!(dev.command(text, Standing::Unprovable("x")).verdict, Verdict::Ask);
        }
        for other in ["make > log ", "make  > log", "make > lo", "make > log\n", "Make > log"] {
            assert_eq!(dev.command(other, here).verdict, Verdict::Ask, "{other:?}");
        }
        let denied = dev.command("rm x; make > log", here);
        assert_eq!((denied.verdict, denied.rule.as_str()), (Verdict::Deny, "no-rm"));
        // Another policy has rules of its own.
        let open = policies.get("open").expect("there").command("make > log", here);
        assert_eq!((open.verdict, open.is_remembered), (Verdict::Allow, false));
    }

    #[test]
    // promise: policy-10
    fn an_entry_that_cannot_be_a_rule_is_a_mistake_with_its_line() {
        for (memory, said) in [
            (entry("dev", "echo 'a"), "line 4: command: ptyd cannot parse the command to its end"),
            (entry("dev", "ls \u{202e}"), "line 4: command: character 4 of the command is U+202E"),
            (entry("dev", "ls").replace("by =", "who ="), "line 6: unknown field `who`"),
            ("[[remembered]]\npolicy = 'dev'\n".to_owned(), "line 1: missing field `command`"),
            ("x".to_owned(), "line 1: "),
        ] {
            let mistake = with(&memory).expect_err(&memory).to_string();
            assert!(mistake.starts_with(said), "{mistake}");
        }
        let many = |count: usize| (0..count).map(|number| entry("dev", &format!("touch {number}"))).collect::<String>();
        let other = entry("open", "ls > x") + &entry("gone", "ls > x");
        assert!(with(&(many(REMEMBERED_PER_POLICY_MAX) + &other)).is_ok());
        let mistake = with(&many(REMEMBERED_PER_POLICY_MAX + 1)).expect_err("one too many").to_string();
        assert!(mistake.contains("more than 256 commands; remove one"), "{mistake}");
    }

    #[test]
    fn the_file_is_beside_the_policy_file() {
        assert_eq!(remembered_file(Path::new("/a/policy.toml")), Path::new("/a/policy.remembered.toml"));
    }
}
