//! The example policy of the documentation: what it allows of ordinary commands, and what a real bash runs of mutated ones.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use policy::{Policies, Policy, Standing, Verdict};

const PAGE: &str = include_str!("../../../docs/policy.md");
const ORDINARY: &str = include_str!("ordinary.txt");

fn example() -> Policies {
    let text = PAGE
        .split("```toml\n")
        .nth(2)
        .and_then(|rest| rest.split("```").next())
        .expect("the page has a profile, then a policy");
    Policies::parse(text).unwrap_or_else(|mistake| panic!("docs/policy.md, in the example, {mistake}"))
}

fn dev(policies: &Policies) -> &Policy {
    policies.get("dev").expect("the example's")
}

fn verdict(policy: &Policy, command: &str) -> Verdict {
    policy.command(command, Standing::Provable(None)).verdict
}

#[test]
// promise: policy-2
fn of_ordinary_commands_the_example_allows_nearly_all() {
    let policies = example();
    let all: Vec<&str> = ORDINARY.lines().collect();
    let others: Vec<&str> =
        all.iter().copied().filter(|command| verdict(dev(&policies), command) != Verdict::Allow).collect();
    assert!(all.len() >= 100);
    assert!(others.len() * 20 <= all.len(), "{} of {} are not allowed: {others:#?}", others.len(), all.len());
}

#[test]
// promise: policy-1
fn the_strictest_verdict_counts_and_nothing_is_proven_in_a_tainted_session() {
    let policies = example();
    let dev = dev(&policies);
    let of = |command: &str| {
        let ruling = dev.command(command, Standing::Provable(None));
        (ruling.verdict, ruling.rule)
    };
    for (command, verdict, rule) in [
        ("ls; pwd", Verdict::Allow, "look"),
        ("ls; curl x", Verdict::Ask, "default"),
        ("ls; curl x; rm -rf y", Verdict::Deny, "remove-tree"),
        ("ls > x", Verdict::Ask, "unproven"),
        ("ls > x; sudo ls", Verdict::Deny, "other-users"),
        ("echo $(rm -r x)", Verdict::Deny, "remove-tree"),
        ("rm 'a", Verdict::Ask, "unproven"),
        ("ls \u{202e}", Verdict::Deny, "hygiene"),
        ("", Verdict::Allow, "default"),
    ] {
        assert_eq!(of(command), (verdict, rule.to_owned()), "{command}");
    }
    let tainted = dev.command("ls", Standing::Unprovable("input was typed"));
    assert_eq!((tainted.verdict, tainted.why.as_str()), (Verdict::Ask, "input was typed"));
    assert_eq!(dev.typed_input().verdict, Verdict::Ask);
}

#[test]
// promise: policy-3
fn a_list_of_what_must_not_run_allows_the_rest_but_nothing_unreadable() {
    let text = "[policies.a]\ndefault = 'allow'\nunproven = 'allow'\ntyped_input = 'allow'\n\
                [[policies.a.rules]]\nname = 'no-rm'\nverdict = 'deny'\nprogram = 'rm'\n";
    let policies = Policies::parse(text).expect("right");
    let policy = policies.get("a").expect("there");
    for (command, expected) in [
        ("curl x > y", Verdict::Allow),
        ("for i in 1 2; do echo $i; done", Verdict::Allow),
        ("for i in 1 2; do rm $i; done", Verdict::Deny),
        ("x=1 env -i nice /bin/rm y", Verdict::Deny),
        ("echo 'a", Verdict::Ask),
        ("echo $(ls", Verdict::Ask),
    ] {
        assert_eq!(verdict(policy, command), expected, "{command}");
    }
    let ruling = policy.command("curl x > y", Standing::Provable(None));
    assert!(ruling.taints && !ruling.is_proven);
}

/// The parts of texts that are hostile by their length.
const HOSTILE: [&str; 25] = [
    "ls;",
    "sudo ",
    "eval ",
    "rm -r ",
    "git -C x ",
    "rm -x",
    "(",
    "((",
    "$(",
    "$((",
    "{ ",
    "if ",
    "case x in x) ",
    "\"$(",
    "${",
    "`",
    "cat <<a ",
    "a=(",
    "{a,b} ",
    "sh -c \"",
    "((a)",
    "'",
    "a ",
    "*",
    "\\",
];

/// The processor time that this thread has used, which a busy machine does not change.
fn processor_time() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").expect("Linux has it");
    Duration::from_nanos(text.split(' ').next().and_then(|word| word.parse().ok()).expect("a number"))
}

#[test]
// promise: policy-4
fn a_long_hostile_text_is_judged_in_a_moment() {
    let policies = example();
    let costs = [65_000 / 8, 65_000].map(|length| {
        let begun = processor_time();
        for part in HOSTILE {
            dev(&policies).command(&part.repeat(length / part.len()), Standing::Provable(None));
        }
        processor_time() - begun
    });
    // Eight times as long a text may cost sixteen times as much; a cost that grows with the square is 64 times.
    assert!(costs[1] < costs[0] * 16, "{costs:?}");
}

// ---- the corpus ----

/// Programs that exist for the mutated commands: those of the example, and some that it does not allow.
const FORBIDDEN: [&str; 12] = ["rm", "curl", "sh", "dd", "mv", "perl", "evil", "sudo", "xargs", "env", "chmod", "tee"];

/// Texts that are put into commands.
const PIECES: [&str; 96] = [
    "$(evil)",
    "`evil`",
    "$evil",
    "${evil}",
    "$x",
    "\"$x\"",
    ";evil",
    "; evil ",
    "\nevil",
    "\nevil\n",
    "&evil",
    "& evil ",
    "|evil",
    "| evil ",
    "||evil",
    "&&evil",
    "&& evil ",
    "|& evil",
    ">f",
    "> f",
    ">>f",
    "2>f",
    ">&f",
    "&>f",
    ">|f",
    "<f",
    "<>f",
    "<<E\n",
    "<<<evil",
    "<(evil)",
    ">(evil)",
    ">/dev/null",
    " 2>/dev/null ",
    " 2>&1 ",
    ">&2",
    "2>&1x",
    ">/dev/nullx",
    "3>&1",
    "{",
    "}",
    "(",
    ")",
    "{evil,a}",
    "{a,b}",
    "!",
    "!!",
    "!evil",
    "#",
    " # ",
    "~",
    "~/evil",
    "*",
    " * ",
    "?",
    "[a]",
    "=",
    "x=1 ",
    " x=1 ",
    "PATH=. ",
    "LD_PRELOAD=x ",
    "alias ls=evil;",
    "alias ls=evil\n",
    "eval evil;",
    "exec evil;",
    "exec ",
    "command ",
    "builtin ",
    "source f;",
    ". f;",
    "trap evil EXIT;",
    "hash -p evil ls;",
    "set -x;",
    "shopt -s expand_aliases\n",
    "export PATH=.;",
    "unset PATH;",
    "printf -v PATH x;",
    "if ",
    "then ",
    "fi",
    "for i in a; do ",
    "done",
    "while ",
    "do ",
    "case a in a) ",
    "esac",
    "function ls { evil; }\n",
    "ls() { evil; }\n",
    "time ",
    "coproc ",
    "\\",
    "\\\n",
    "\\ ",
    "'",
    "\"",
    "$'evil'",
    "$\"evil\"",
];

/// A generator that gives the same commands on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let mixed = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33;
        usize::try_from(mixed).unwrap_or_default() % end.max(1)
    }

    fn of<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }
}

fn mutated(random: &mut Random, ordinary: &[&str]) -> String {
    let mut text: Vec<char> = random.of(ordinary).chars().collect();
    for _ in 0..=random.below(3) {
        let at = random.below(text.len() + 1);
        match random.below(10) {
            0..=4 => drop(text.splice(at..at, random.of(&PIECES).chars())),
            5 if at < text.len() => drop(text.remove(at)),
            6 if at < text.len() => {
                text[at] = *random.of(&[&'$', &'\t', &'\n', &'\\', &'"', &'\'', &' ', &';', &'|', &'&', &'>'])
            }
            7 => {
                let joined = [";", " ; ", " && ", " | ", "\n", " || ", "&", " "];
                text.extend(random.of(&joined).chars().chain(random.of(ordinary).chars()));
            }
            8 => {
                let word = random.of(&FORBIDDEN);
                text.splice(at..at, format!(" {word} ").chars());
            }
            _ => {
                let to = (at + random.below(6)).min(text.len());
                let again: Vec<char> = text[at..to].to_vec();
                text.splice(at..at, again);
            }
        }
    }
    text.into_iter().collect()
}

/// A folder with stub programs, which record their words, and a folder with files of awkward names to run commands in.
struct Oracle {
    root: PathBuf,
}

impl Oracle {
    fn prepare(root: &Path) -> Self {
        let oracle = Self { root: root.to_owned() };
        for folder in ["bin", "work/src", "home"] {
            fs::create_dir_all(root.join(folder)).expect("made");
        }
        for file in ["work/a.txt", "work/-exec", "work/rm", "work/src/a.rs", "work/src/b c.rs", "work/f"] {
            fs::write(root.join(file), "evil\n").expect("written");
        }
        let names: BTreeSet<&str> = PAGE
            .split("```toml\n")
            .nth(1)
            .and_then(|rest| rest.split("```").next())
            .expect("the example")
            .lines()
            .skip_while(|line| !line.starts_with("program"))
            .flat_map(|line| line.split('"').skip(1).step_by(2))
            .filter(|name| name.chars().all(|c| c.is_ascii_alphanumeric()))
            .chain(FORBIDDEN)
            .collect();
        // The log is NUL-separated, and two newlines end a record. A pipeline's programs run at once, so each record must be
        // one write. dash makes one; bash writes each line by itself.
        let record = "printf '%s\\0' \"$@\" '\n\n' >> \"$STUB_LOG\"\n";
        let stub = format!("#!/bin/dash\nset -- \"${{0##*/}}\" \"$@\"\n{record}");
        for name in names {
            let path = root.join("bin").join(name);
            fs::write(&path, &stub).expect("written");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("set");
        }
        fs::write(root.join("record"), record).expect("written");
        let handler = format!("command_not_found_handle() {{ /bin/dash {} \"$@\"; }}\n", root.join("record").display());
        fs::write(root.join("rc"), handler).expect("written");
        oracle
    }

    fn files(&self) -> Vec<(PathBuf, u64)> {
        let mut all = Vec::new();
        let mut open = vec![self.root.join("work"), self.root.join("home"), self.root.join("bin")];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).expect("there").flatten() {
                let m = entry.metadata().expect("there");
                if m.is_dir() {
                    open.push(entry.path());
                }
                all.push((entry.path(), if m.is_dir() { 0 } else { m.len() }));
            }
        }
        all.sort();
        all
    }

    /// The words of each program that bash runs for this command.
    fn run(&self, command: &str) -> Vec<Vec<String>> {
        let log = self.root.join("log");
        fs::write(&log, "").expect("written");
        let mut bash = Command::new("/bin/bash");
        bash.args(["--noprofile", "--norc", "-O", "expand_aliases", "-c", command])
            .current_dir(self.root.join("work"))
            .env_clear()
            .env("PATH", self.root.join("bin"))
            .env("HOME", self.root.join("home"))
            .env("BASH_ENV", self.root.join("rc"))
            .env("STUB_LOG", &log)
            .env("evil", "evil")
            .env("x", "evil")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        bash.status().expect("bash runs");
        let log = fs::read(&log).expect("there");
        let text = String::from_utf8_lossy(&log).into_owned();
        let records = text.split("\n\n\0").filter(|record| !record.is_empty());
        records.map(|record| record.trim_end_matches('\0').split('\0').map(str::to_owned).collect()).collect()
    }
}

#[test]
fn the_corpus_would_notice_a_command_that_runs_or_writes_something_else() {
    let root = tempfile::tempdir().expect("a folder");
    let oracle = Oracle::prepare(root.path());
    let before = oracle.files();
    for command in [
        "ls; evil",
        "ls $(evil)",
        "ls \"`evil`\"",
        "$x",
        "alias ls=evil\nls",
        "ls() { evil; }; ls",
        "PATH=. nowhere",
        "{evil,a}",
    ] {
        let is_other = |words: &Vec<String>| ["evil", "nowhere"].contains(&words[0].as_str());
        assert!(oracle.run(command).iter().any(is_other), "{command}");
    }
    assert_eq!(oracle.files(), before);
    oracle.run("ls > new");
    assert_ne!(oracle.files(), before);
}

/// The command of these words, each in quotes.
fn quoted(words: &[String]) -> String {
    let (program, arguments) = words.split_first().expect("a program");
    let quote = |word: &String| if word.contains('\'') { format!("\"{word}\"") } else { format!("'{word}'") };
    std::iter::once(program.clone()).chain(arguments.iter().map(quote)).collect::<Vec<_>>().join(" ")
}

#[test]
// promise: policy-2
fn mutated_commands_that_the_example_allows_run_nothing_beyond_its_rules() {
    let policies = example();
    let dev = dev(&policies);
    let root = tempfile::tempdir().expect("a folder");
    let oracle = Oracle::prepare(root.path());
    let before = oracle.files();
    // `sleep` is a stub; of the builtins, none of the example's waits.
    let ordinary: Vec<&str> = ORDINARY.lines().collect();
    let is_full = std::env::var_os("PTYD_TEST_FULL").is_some_and(|v| v == "1");
    let count = if is_full { 12_000 } else { 800 };
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut seen = BTreeSet::new();
    let (mut allowed, mut ran, mut false_allows) = (0, 0, Vec::new());
    while seen.len() < count {
        let command = mutated(&mut random, &ordinary);
        if !seen.insert(command.clone()) || verdict(dev, &command) != Verdict::Allow {
            continue;
        }
        allowed += 1;
        for words in oracle.run(&command) {
            ran += 1;
            if verdict(dev, &quoted(&words)) != Verdict::Allow {
                false_allows.push(format!("{command:?} ran {words:?}"));
            }
        }
        if oracle.files() != before {
            false_allows.push(format!("{command:?} changed files"));
            break;
        }
    }
    println!("{count} commands, {allowed} allowed, {ran} programs run");
    assert_eq!(false_allows, Vec::<String>::new());
    assert!(allowed * 10 > count, "the mutations leave too little to run: {allowed} of {count}");
    assert!(ran >= allowed / 2, "the stubs record nothing: {ran} of {allowed}");
}
