//! The cost of sampling the foreground.

use std::time::Instant;

use crate::rig::Held;

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
