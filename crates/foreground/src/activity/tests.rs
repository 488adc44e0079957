//! Every rule of the table, each with facts that it alone decides.

use super::*;
use crate::observation::{PollCall, quiet_step};

const COOKED: Modes = Modes { canonical: true, echo: true, isig: true, maps_cr: true, maps_nl: false };
/// As readline and fish set them.
const RAW: Modes = Modes { canonical: false, echo: false, isig: true, maps_cr: false, maps_nl: false };
/// As zsh sets them.
const ZLE: Modes = Modes { maps_cr: true, maps_nl: true, ..RAW };
/// As a program sets them that reads single keys.
const KEYS: Modes = Modes { maps_cr: true, ..RAW };

const READ: Wait = Wait::Reads { bytes: 4096 };

fn polls(others: u32, limit_ms: Option<u64>) -> Wait {
    Wait::Polls { call: PollCall::Select, terminal: 1, others, limit_ms }
}

fn process(first: Wait) -> Process {
    Process { pid: 7, first, ..Process::default() }
}

fn job(processes: &[Process]) -> Job {
    Job {
        modes: COOKED,
        is_whole: true,
        processes: processes.to_vec(),
        listens: Some(false),
        has_nested: Some(false),
        ..Job::default()
    }
}

fn at(modes: Modes, quiet_ms: u32, jobs: &[Job]) -> Observation {
    Observation { group: 7, modes, quiet_ms, jobs: jobs.to_vec(), ..Observation::default() }
}

fn shell(modes: Modes, takes_lines: bool, first: Wait) -> Observation {
    let process = Process { pid: 3, first, ..Process::default() };
    let shell = Some(Shell { takes_lines, is_stopped: false, process });
    Observation { group: 3, modes, shell, ..Observation::default() }
}

fn told(seen: &Observation) -> (Activity, u32, &'static str) {
    let reading = activity(seen);
    (reading.activity, reading.pid, reading.rule)
}

#[test]
// promise: ask-4
fn every_rule_about_the_shell_decides_its_case() {
    let stopped = {
        let mut seen = shell(COOKED, false, READ);
        seen.shell.as_mut().unwrap().is_stopped = true;
        seen
    };
    let one = Wait::Reads { bytes: 1 };
    let cases = [
        (stopped, (Activity::Stopped, 3, "shell is stopped")),
        (shell(COOKED, true, READ), (Activity::Editor, 3, "shell without keys waits for a line")),
        (shell(RAW, true, one), (Activity::Editor, 3, "shell without keys waits for a line")),
        (shell(COOKED, true, one), (Activity::ShellReads, 3, "shell without keys reads")),
        (shell(RAW, true, polls(0, None)), (Activity::ShellReads, 3, "shell without keys reads")),
        (shell(ZLE, false, READ), (Activity::Editor, 3, "editor of zsh waits")),
        (shell(RAW, false, polls(1, Some(100))), (Activity::Editor, 3, "editor polls")),
        // A `read -s` of a shell whose editor only polls.
        (shell(RAW, false, READ), (Activity::ShellReads, 3, "shell reads")),
        (shell(COOKED, false, polls(0, Some(100))), (Activity::ShellReads, 3, "shell reads")),
        (shell(COOKED, false, Wait::Hidden), (Activity::Unknown, 3, "shell is hidden")),
    ];
    for (seen, expected) in cases {
        assert_eq!((told(&seen), missing(&seen)), (expected, None), "{seen}");
    }
}

#[test]
// promise: ask-4
fn every_rule_about_a_job_decides_its_case() {
    let with = |process: Process, change: fn(&mut Process)| {
        let mut process = process;
        change(&mut process);
        process
    };
    let reads_beside = with(process(Wait::Elsewhere), |p| p.others = vec![READ]);
    let reads_for = with(process(Wait::ForItself), |p| p.others = vec![READ]);
    let relays = with(process(READ), |p| p.has_connection = true);
    let listening = |process| Job { listens: Some(true), ..job(&[process]) };
    let alone = EventLoop { limit: LoopLimit::Endless, ..EventLoop::default() };
    let looping = |event_loop| Job { event_loop: Some(event_loop), ..job(&[process(polls(3, None))]) };
    let cases = [
        (0, job(&[process(READ)]), (Activity::Reads, 7, "reads")),
        (0, job(&[reads_for]), (Activity::Reads, 7, "reads")),
        (0, job(&[process(polls(0, None))]), (Activity::Reads, 7, "polls the terminal alone")),
        (0, job(&[process(polls(0, Some(10_000)))]), (Activity::Reads, 7, "polls the terminal alone")),
        (0, listening(process(polls(1, None))), (Activity::PollsAndListens, 7, "listens")),
        (0, listening(process(polls(1, Some(50)))), (Activity::PollsAndListens, 7, "listens")),
        (600, job(&[process(polls(1, Some(50)))]), (Activity::PollsForATime, 7, "wakes up soon")),
        (600, job(&[process(polls(0, Some(9_999)))]), (Activity::PollsForATime, 7, "wakes up soon")),
        (1_200, job(&[process(polls(1, Some(50)))]), (Activity::Polls, 7, "wakes up soon, and is silent")),
        (
            600,
            job(std::slice::from_ref(&reads_beside)),
            (Activity::PollsForATime, 7, "reads while its first thread works"),
        ),
        (1_200, job(&[reads_beside]), (Activity::Polls, 7, "wakes up soon, and is silent")),
        (100, looping(alone), (Activity::Polls, 7, "polls")),
        (300, looping(alone), (Activity::Reads, 7, "nothing else wakes it")),
        (300, looping(EventLoop { children: 1, ..alone }), (Activity::Polls, 7, "polls")),
        (300, looping(EventLoop { working_threads: 1, ..alone }), (Activity::Polls, 7, "polls")),
        (300, looping(EventLoop { foreign: 1, ..alone }), (Activity::Polls, 7, "polls")),
        (300, looping(EventLoop::default()), (Activity::Polls, 7, "polls")),
        (0, job(&[relays]), (Activity::Polls, 7, "reads, and may relay it")),
        (0, job(&[process(polls(1, None))]), (Activity::Polls, 7, "polls")),
        (0, job(&[process(Wait::Hidden)]), (Activity::Unknown, 7, "is hidden")),
        (0, Job { has_others: true, ..job(&[process(Wait::Hidden)]) }, (Activity::Busy, 0, "works")),
        (0, job(&[]), (Activity::Busy, 0, "works")),
    ];
    for (quiet_ms, job, expected) in cases {
        let seen = at(COOKED, quiet_ms, &[job]);
        assert_eq!(told(&seen), expected, "{seen}");
    }
    // Node, which reads keys and frees memory after 8 s.
    let clocked = EventLoop { limit: LoopLimit::Long, ..EventLoop::default() };
    let node = |event_loop| Job { event_loop: Some(event_loop), modes: RAW, ..job(&[process(polls(3, Some(8_000)))]) };
    let its_clock = (Activity::Reads, 7, "nothing else but its own clock wakes it");
    let silent = (Activity::Polls, 7, "wakes up soon, and is silent");
    let cases = [
        (100, node(clocked), (Activity::PollsForATime, 7, "wakes up soon")),
        (300, node(clocked), its_clock),
        (
            600,
            Job { event_loop: Some(clocked), modes: RAW, ..job(&[process(polls(3, Some(500)))]) },
            (Activity::PollsForATime, 7, "wakes up soon"),
        ),
        (600, node(EventLoop { foreign: 1, ..clocked }), (Activity::PollsForATime, 7, "wakes up soon")),
        (1_200, node(EventLoop { foreign: 1, ..clocked }), silent),
        (1_200, node(EventLoop::default()), silent),
        (1_200, Job { modes: COOKED, ..node(clocked) }, silent),
    ];
    for (quiet_ms, job, expected) in cases {
        let seen = at(RAW, quiet_ms, &[job]);
        assert_eq!(told(&seen), expected, "{seen}");
    }
    let unseen_node = Job { event_loop: None, listens: Some(false), has_nested: Some(false), ..node(clocked) };
    assert_eq!(missing(&at(RAW, 300, std::slice::from_ref(&unseen_node))), Some(Missing::EventLoop(0)));
    assert_eq!(missing(&at(RAW, 100, &[unseen_node])), None);
    let stopped = Observation { stopped: Some(9), ..at(COOKED, 0, &[job(&[])]) };
    assert_eq!(told(&stopped), (Activity::Stopped, 9, "job is stopped"));
}

#[test]
fn of_several_processes_the_one_that_waits_hardest_decides() {
    let of = |pid, first| Process { pid, first, ..Process::default() };
    let strength = [Wait::Hidden, polls(1, Some(50)), polls(1, None), polls(0, None), READ];
    for (at_least, weaker) in strength.iter().enumerate().skip(1) {
        for stronger in &strength[at_least..] {
            let seen = at(COOKED, 0, &[job(&[of(2, *stronger), of(1, strength[at_least - 1]), of(3, *weaker)])]);
            let decided = if stronger == weaker { 3 } else { 2 };
            assert_eq!(activity(&seen).pid, decided, "{seen}");
        }
    }
}

#[test]
// promise: ask-4
fn a_job_on_a_nested_terminal_decides_unless_it_is_hidden() {
    let outer = Job { has_nested: Some(true), ..job(&[process(polls(2, None))]) };
    let inner = |first| Job { modes: RAW, ..job(&[Process { pid: 11, first, ..Process::default() }]) };
    let seen = |first| at(COOKED, 0, &[outer.clone(), inner(first)]);
    let asked = activity(&seen(READ));
    assert_eq!((asked.activity, asked.pid, asked.modes), (Activity::Reads, 11, RAW));
    let idle = Observation { jobs: vec![outer.clone(), Job { modes: RAW, ..job(&[]) }], ..at(COOKED, 0, &[]) };
    assert_eq!((told(&idle), activity(&idle).modes), ((Activity::Busy, 0, "works"), RAW));
    let hidden = activity(&seen(Wait::Hidden));
    assert_eq!((hidden.activity, hidden.pid, hidden.modes), (Activity::Polls, 7, COOKED));
}

#[test]
fn only_the_facts_that_may_decide_are_missing() {
    let unseen = |first| Job { listens: None, has_nested: None, ..job(&[process(first)]) };
    let part = |first| Job { is_whole: false, ..unseen(first) };
    let polling = unseen(polls(1, None));
    let nested = Job { has_nested: Some(true), ..polling.clone() };
    let quiet = Job { listens: Some(false), has_nested: Some(false), ..polling.clone() };
    let cases: [(u32, &[Job], Option<Missing>); 12] = [
        (0, &[], Some(Missing::Leader)),
        (0, &[part(READ)], None),
        (0, &[part(polls(0, None))], Some(Missing::Others)),
        (0, &[unseen(polls(0, None))], None),
        (0, &[unseen(Wait::Hidden)], None),
        (0, std::slice::from_ref(&polling), Some(Missing::Nested(0))),
        (0, &[nested.clone(), unseen(READ)], None),
        (0, &[nested.clone(), unseen(Wait::Hidden)], Some(Missing::Listening(0))),
        (0, &[nested.clone(), polling.clone()], Some(Missing::Nested(1))),
        (0, &[Job { has_nested: Some(false), ..polling.clone() }], Some(Missing::Listening(0))),
        (100, std::slice::from_ref(&quiet), None),
        (300, std::slice::from_ref(&quiet), Some(Missing::EventLoop(0))),
    ];
    for (quiet_ms, jobs, expected) in cases {
        let seen = at(COOKED, quiet_ms, jobs);
        assert_eq!(missing(&seen), expected, "{seen}");
    }
    // Of terminals in terminals only so many are followed.
    let deep = at(COOKED, 0, &vec![nested; NESTED_MAX]);
    let deepest = |last| Observation { jobs: deep.jobs.iter().cloned().chain([last]).collect(), ..deep.clone() };
    assert_eq!(missing(&deepest(polling)), Some(Missing::Listening(NESTED_MAX)));
}

#[test]
fn only_a_program_that_polls_may_mean_something_else_after_a_silence() {
    let of = |wait| at(COOKED, 0, &[job(&[process(wait)])]);
    let polling = [polls(1, None), polls(1, Some(50))].map(|wait| depends_on_silence(&of(wait)));
    let others = [READ, polls(0, None), Wait::Hidden].map(|wait| depends_on_silence(&of(wait)));
    assert_eq!((polling, others), ([true; 2], [false; 3]));
    assert!(!depends_on_silence(&shell(RAW, false, polls(1, None))));
}

#[test]
fn a_shell_without_keys_that_takes_bytes_one_by_one_is_not_at_its_line() {
    let cases = [
        (COOKED, Wait::Reads { bytes: 1 }, LineReader::No),
        (COOKED, READ, LineReader::Yes),
        (KEYS, Wait::Reads { bytes: 1 }, LineReader::Yes),
        (RAW, polls(0, None), LineReader::Perhaps),
        (RAW, Wait::Polls { call: PollCall::Poll, terminal: 1, others: 0, limit_ms: None }, LineReader::Yes),
        (COOKED, polls(0, None), LineReader::No),
        (RAW, Wait::Hidden, LineReader::Perhaps),
        (RAW, Wait::Elsewhere, LineReader::No),
    ];
    for (modes, first, expected) in cases {
        assert_eq!(reads_lines(&process(first), modes), expected, "{first:?} {modes:?}");
    }
}

#[test]
fn each_rule_has_its_own_silence() {
    for silence in [SILENT_MS, SETTLED_MS] {
        let us = u64::from(silence) * 1_000;
        assert_eq!((quiet_step(us), quiet_step(us - 1) < silence), (silence, true));
    }
    assert_eq!((quiet_step(0), quiet_step(u64::MAX)), (0, 10_000));
}

#[test]
fn every_rule_has_a_name_of_its_own() {
    let names: Vec<_> = activity_rules().collect();
    let distinct: std::collections::BTreeSet<_> = names.iter().collect();
    assert_eq!(names.len(), distinct.len());
}
