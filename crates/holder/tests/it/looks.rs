//! When the foreground is sampled and sent, and at which cost.

use std::time::{Duration, Instant};

use wire::FromHolder;

use crate::rig::{Held, PATIENCE};

#[test]
// promise: limit-7
fn the_cost_of_looks_is_bounded_while_output_arrives() {
    let mut held = Held::running(
        "python3 - <<'PROGRAM'
import os, select, socket, time
terminal, listener = os.open('/dev/tty', os.O_RDWR), socket.socket()
listener.bind(('127.0.0.1', 0))
listener.listen()
os.write(terminal, b'BEGIN')
begun = time.process_time_ns()
for _ in range(1000):
    select.select([terminal, listener], [], [], 0.002)
    os.write(terminal, b'.')
os.write(terminal, b'USED %d END' % (time.process_time_ns() - begun))
PROGRAM
read rest",
    );
    held.shows("BEGIN");
    let (begun, before) = (Instant::now(), held.processor_time());
    let shown = held.shows("END");
    let (spent, took) = (held.processor_time() - before, begun.elapsed());
    let used = shown.split("USED ").nth(1).and_then(|rest| rest.split(' ').next()).and_then(|word| word.parse().ok());
    let writer = Duration::from_nanos(used.expect("a number"));
    // Looks may take one part in 25 of the time. The rest is for the bytes, which cost their writer much the same.
    let looks = spent.saturating_sub(writer);
    assert!(looks < took / 25 * 2, "{spent:?} of {took:?}, and its writer {writer:?}");
}

#[test]
// promise: ask-4
fn the_facts_of_a_program_that_polls_are_sent_again_as_its_silence_grows() {
    let polls = "python3 -c 'import os, select; a, b = os.pipe(); print(flush=True); select.select([0, a], [], [])'";
    let mut held = Held::running(&format!("{polls}\nread rest"));
    let mut silences: Vec<u32> = Vec::new();
    while silences.last().is_none_or(|last| *last < 1_200) {
        for frame in held.server.hears(PATIENCE).expect("another frame") {
            match frame {
                FromHolder::Observed(seen) if !foreground::depends_on_silence(&seen.facts) => {}
                FromHolder::Observed(seen) if seen.is_new => silences = vec![seen.facts.quiet_ms],
                FromHolder::Observed(seen) => silences.push(seen.facts.quiet_ms),
                _ => {}
            }
        }
    }
    assert!(silences.len() > 1, "sent once only, after {silences:?} ms");
    assert!(silences.is_sorted_by(|before, after| before < after), "{silences:?}");
}

#[test]
// promise: inside-2
fn a_program_that_waits_as_before_is_reported_again_behind_new_output() {
    let dir = tempfile::tempdir().expect("a directory");
    let gate = dir.path().join("gate");
    let mut held = Held::running(&format!("mkfifo {0}; (read _ <{0}; echo more) & head -n 1", gate.display()));
    let mut reports = 0;
    while reports < 2 {
        for frame in held.server.hears(PATIENCE).expect("another report") {
            let FromHolder::Observed(seen) = frame else { continue };
            if seen.is_new && foreground::activity(&seen.facts).activity == foreground::Activity::Reads {
                reports += 1;
                if reports == 1 {
                    std::fs::write(&gate, "open\n").expect("it is read");
                }
            }
        }
    }
}
