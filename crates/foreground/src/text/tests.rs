//! Tests of the text: every fact there and back, and what is not known passed over.

use super::*;

fn process(pid: u32, first: Wait, others: &[Wait]) -> Process {
    Process { pid, first, others: others.to_vec(), has_connection: pid % 2 == 1 }
}

fn full() -> Observation {
    let modes = Modes { canonical: true, echo: false, isig: true, maps_cr: false, maps_nl: true };
    let polls = |call, limit_ms| Wait::Polls { call, terminal: 1, others: 2, limit_ms };
    let job = Job {
        modes,
        is_whole: true,
        has_others: true,
        processes: vec![
            process(1, Wait::Hidden, &[]),
            process(2, Wait::Reads { bytes: 1024 }, &[]),
            process(3, Wait::Elsewhere, &[polls(PollCall::Poll, None), polls(PollCall::Select, Some(7))]),
        ],
        listens: Some(true),
        has_nested: Some(false),
        event_loop: Some(EventLoop { limit: LoopLimit::Long, working_threads: 1, children: 2, foreign: 3 }),
    };
    let other = Job {
        modes: Modes { echo: true, ..Modes::default() },
        processes: vec![process(4, Wait::ForItself, &[polls(PollCall::Epoll, Some(u64::MAX))])],
        listens: Some(false),
        has_nested: Some(true),
        ..Job::default()
    };
    Observation {
        group: 77,
        modes,
        quiet_ms: 300,
        shell: Some(Shell { takes_lines: true, is_stopped: true, process: Process { pid: 5, ..Process::default() } }),
        rivals: vec![7, 8],
        stopped: Some(6),
        jobs: vec![other, job],
    }
}

#[test]
fn every_fact_is_read_back_as_it_was_written() {
    let plain = Observation { group: 1, jobs: vec![Job::default()], ..Observation::default() };
    for seen in [full(), plain, Observation::default()] {
        assert_eq!(seen.to_string().parse(), Ok(seen.clone()), "{seen}");
    }
}

#[test]
fn facts_of_a_later_version_are_skipped() {
    let known = full().to_string();
    let later: String = known.lines().map(|line| format!("{line} later 7\nlater on 8\n")).collect();
    assert_eq!(later.parse(), Ok(full()));
}

#[test]
// promise: crash-5
fn a_text_that_is_cut_or_of_another_kind_is_refused_or_read_as_far_as_it_goes() {
    let known = full().to_string();
    for at in 0..known.len() {
        // No cut makes it panic.
        let _ = known[..at].parse::<Observation>();
    }
    for other in ["", "\n", "foreground", "foreground group x quiet 0", "journal group 1 quiet 0"] {
        assert_eq!(other.parse::<Observation>(), Err(Unreadable), "{other:?}");
    }
}

#[test]
fn a_text_of_any_length_is_read_within_bounds() {
    let long: String = "foreground group 1 quiet 0 modes\n".to_owned() + &"job modes\n".repeat(100_000);
    assert_eq!(long.parse::<Observation>().map(|seen| seen.jobs.len()), Ok(LINES_MAX - 1));
}
