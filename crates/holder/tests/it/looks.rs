//! When the foreground is sampled and sent, and at which cost.

use std::time::Instant;

use wire::FromHolder;

use crate::rig::{Held, PATIENCE};

#[test]
// promise: limit-7
fn looks_are_paid_for_while_output_comes() {
    let mut held = Held::running(
        "python3 - <<'PROGRAM'
import os, select, socket, time
terminal, listener = os.open('/dev/tty', os.O_RDWR), socket.socket()
listener.bind(('127.0.0.1', 0))
listener.listen()
os.write(terminal, b'BEGIN')
end = time.monotonic() + 3
while time.monotonic() < end:
    select.select([terminal, listener], [], [], 0.002)
    os.write(terminal, b'.')
os.write(terminal, b'END')
PROGRAM
read rest",
    );
    held.shows("BEGIN");
    let (begun, before) = (Instant::now(), held.processor_time());
    held.shows("END");
    let share = (held.processor_time() - before).as_secs_f64() / begun.elapsed().as_secs_f64();
    // Looks may take 4 %, and the bytes are moved besides.
    assert!(share < 0.12, "{:.1} % of a processor", share * 100.0);
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
