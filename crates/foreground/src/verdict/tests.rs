//! Every rule of the table, each with a situation that it alone decides.

use super::*;

const SHOWN: Modes = Modes { canonical: true, echo: true, isig: true, maps_cr: true, maps_nl: false };
const HIDDEN: Modes = Modes { echo: false, ..SHOWN };

/// A command of a shell that has reported runs.
const RUNS: Situation = Situation {
    is_idle: false,
    has_stopped_job: false,
    paints: false,
    line_is_open: false,
    prompt_seen: true,
    is_heuristic: false,
    has_command: true,
    runs: true,
    uses_editor: false,
    is_typed: false,
    asks_as_before: false,
};

#[test]
fn only_an_activity_that_depends_on_output_asks_by_the_output() {
    let asks = |activity, line_is_open, paints| {
        let told = verdict(Some((activity, HIDDEN)), Situation { line_is_open, paints, ..RUNS }).0;
        matches!(told, Verdict::InputWanted | Verdict::PasswordWanted | Verdict::Fullscreen { asks: true })
    };
    use Activity::{Editor, Polls, PollsForATime};
    let depends = |activity: &Activity| matches!(activity, Polls | PollsForATime | Editor);
    for activity in Activity::ALL.into_iter().filter(|activity| !depends(activity)) {
        let outputs = [(false, false), (true, false), (false, true), (true, true)];
        let answers = outputs.map(|(line_is_open, paints)| asks(activity, line_is_open, paints));
        assert!(answers == [true; 4] || answers == [false; 4], "{activity:?}: {answers:?}");
    }
}

#[test]
// promise: ask-4
fn every_rule_decides_its_case() {
    use Activity::{Busy, Editor, Polls, PollsAndListens, PollsForATime, Reads, ShellReads, Stopped, Unknown};
    use Verdict::{Fullscreen, Idle, InputWanted, PasswordWanted, Running};
    let idle = Situation { is_idle: true, has_command: false, runs: false, ..RUNS };
    let paints = Situation { paints: true, ..RUNS };
    let open = Situation { line_is_open: true, ..RUNS };
    let as_before = Situation { asks_as_before: true, ..open };
    let begins = Situation { prompt_seen: false, has_command: false, runs: false, ..RUNS };
    let heuristic = Situation { is_heuristic: true, ..begins };
    let (asks, rests) = (Fullscreen { asks: true }, Fullscreen { asks: false });
    let cases = [
        (None, Situation { has_stopped_job: true, ..idle }, Verdict::Stopped, "at its prompt, with a stopped job"),
        (Some((Reads, SHOWN)), idle, Idle, "at its prompt"),
        (Some((Stopped, SHOWN)), paints, Verdict::Stopped, "what runs is stopped"),
        (None, RUNS, Running, "nothing is known"),
        (None, paints, rests, "does not ask"),
        (Some((Reads, SHOWN)), Situation { is_typed: true, ..RUNS }, Running, "typed, and not read yet"),
        (Some((Reads, SHOWN)), Situation { is_typed: true, ..paints }, asks, "a program reads"),
        (Some((Reads, SHOWN)), RUNS, InputWanted, "a program reads"),
        (Some((Reads, HIDDEN)), RUNS, PasswordWanted, "a program reads"),
        (Some((Reads, HIDDEN)), paints, asks, "a program reads"),
        (Some((ShellReads, SHOWN)), RUNS, InputWanted, "the shell's read"),
        (Some((ShellReads, SHOWN)), heuristic, Idle, "the shell's read"),
        (Some((ShellReads, SHOWN)), Situation { runs: true, ..heuristic }, InputWanted, "the shell's read"),
        (Some((ShellReads, HIDDEN)), heuristic, PasswordWanted, "the shell's read"),
        (Some((Editor, SHOWN)), RUNS, Running, "does not ask"),
        (Some((Editor, SHOWN)), Situation { uses_editor: true, ..RUNS }, InputWanted, "a command uses the editor"),
        (Some((Editor, SHOWN)), Situation { prompt_seen: true, ..begins }, InputWanted, "the editor, and no command"),
        (Some((Editor, SHOWN)), heuristic, Idle, "the editor, and no command"),
        (Some((Editor, SHOWN)), begins, Running, "does not ask"),
        (Some((Polls, SHOWN)), RUNS, Running, "does not ask"),
        (Some((Polls, SHOWN)), open, InputWanted, "polls behind an open line"),
        (Some((Polls, SHOWN)), paints, asks, "polls in front of its screen"),
        (Some((PollsForATime, SHOWN)), open, Running, "does not ask"),
        (Some((PollsForATime, SHOWN)), as_before, InputWanted, "wakes up soon, and asks as before"),
        (Some((PollsForATime, SHOWN)), Situation { line_is_open: false, ..as_before }, Running, "does not ask"),
        (Some((PollsForATime, SHOWN)), paints, asks, "wakes up soon, in front of its screen"),
        (Some((PollsAndListens, SHOWN)), open, Running, "does not ask"),
        (Some((PollsAndListens, SHOWN)), paints, rests, "does not ask"),
        (Some((Unknown, SHOWN)), open, Running, "does not ask"),
        (Some((Unknown, HIDDEN)), RUNS, PasswordWanted, "hidden, and the line is not shown"),
        (Some((Busy, HIDDEN)), open, Running, "does not ask"),
    ];
    for (seen, now, expected, rule) in cases {
        assert_eq!(verdict(seen, now), (expected, rule), "{seen:?} {now:?}");
    }
    let decided: std::collections::BTreeSet<_> = cases.iter().map(|(.., rule)| *rule).collect();
    assert_eq!(decided, verdict_rules().collect(), "every rule is in the list");
}
