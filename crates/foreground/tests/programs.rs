//! Recorded facts of real programs, and the verdict of the rules on each.
//!
//! `programs.txt` names the programs with what is expected; `programs/` has the facts, recorded with
//! `RECORD=1 cargo xtask test recorded`. The holder's tests run the programs again: the same rule must decide.

use foreground::{Observation, Situation, Verdict, activity, activity_rules, missing, verdict};

const TABLE: &str = include_str!("programs.txt");

/// Rules whose programs cannot be recorded everywhere: other users' processes, a shell without our keys, a stopped job
/// without a shell behind it. They are tested with made-up facts.
const NOT_RECORDED: [&str; 8] = [
    "shell is stopped",
    "shell without keys waits for a line",
    "shell without keys reads",
    "shell is hidden",
    "editor of zsh waits",
    "job is stopped",
    "reads, and may relay it",
    "is hidden",
];

fn situation(word: &str) -> Situation {
    let runs = Situation { prompt_seen: true, has_command: true, runs: true, ..Situation::default() };
    match word {
        "idle" => Situation { is_idle: true, has_command: false, runs: false, ..runs },
        "line" => Situation { line_is_open: true, ..runs },
        "screen" => Situation { paints: true, ..runs },
        "-" => runs,
        other => panic!("{other:?} is no situation"),
    }
}

fn name_of(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Idle => "Idle",
        Verdict::Running => "Running",
        Verdict::InputWanted => "InputWanted",
        Verdict::PasswordWanted => "PasswordWanted",
        Verdict::Fullscreen { asks: true } => "Fullscreen",
        Verdict::Fullscreen { asks: false } => "Fullscreen, and does not ask",
        Verdict::Stopped => "Stopped",
    }
}

#[test]
// promise: ask-4
fn every_recorded_program_is_judged_by_its_rule() {
    let mut decided: Vec<&str> = NOT_RECORDED.to_vec();
    for row in TABLE.lines().filter(|row| !row.starts_with('#')) {
        let columns: Vec<&str> = row.split(" | ").map(str::trim).collect();
        let [name, _, shown, rule, wanted, why] = columns.as_slice() else { panic!("{row:?}") };
        let path = format!("{}/tests/programs/{name}.txt", env!("CARGO_MANIFEST_DIR"));
        let facts = std::fs::read_to_string(path).expect(name);
        let seen: Observation = facts.parse().expect(name);
        assert_eq!(seen.to_string(), facts, "{name}");
        let reading = activity(&seen);
        let told = verdict(Some((reading.activity, reading.modes)), situation(shown));
        assert_eq!((reading.rule, name_of(told.0), told.1), (*rule, *wanted, *why), "{name}\n{facts}");
        assert_eq!(missing(&seen), None, "{name}: every fact that decides is recorded");
        decided.push(rule);
    }
    for rule in activity_rules() {
        assert!(decided.contains(&rule), "no program is recorded for the rule {rule:?}");
    }
}
