//! Connections to a holder: which peers are admitted, and the cost of silent ones.

use std::time::Duration;

use crate::rig::Held;

/// Greets the holder behind the socket that is its argument, and says whether it was answered.
const ASKS: &str = r#"
import os, socket, struct, sys
def ask(s):
    try:
        s.sendall(struct.pack('<IBHB', 4, 2, 1, 1))
        return 'ANSWERED' if s.recv(1) else 'REFUSED'
    except OSError:
        return 'REFUSED'
def call():
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    return s
"#;

/// The output of a program of the session that does this.
fn says(does: &str) -> String {
    let program = format!("{ASKS}\n{does}\n");
    let mut held = Held::running(&format!("python3 - \"$0\" <<'PROGRAM'\n{program}PROGRAM\nread rest"));
    held.shows("END")
}

#[test]
// promise: access-11
fn a_program_of_the_session_is_not_answered() {
    let shown = says("print(ask(call()), 'END')");
    assert!(shown.contains("REFUSED END"), "{shown}");
}

#[test]
// promise: access-11
fn a_daemon_that_has_left_the_session_is_not_answered() {
    let shown = says(
        "if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
os.environ.clear()
print(ask(call()), 'END', flush=True)",
    );
    assert!(shown.contains("REFUSED END"), "{shown}");
}

#[test]
// promise: access-11
fn a_connection_whose_maker_has_gone_is_not_answered() {
    let shown = says(
        "r, w = os.pipe()
if not os.fork():
    s = call()
    if os.fork(): os._exit(0)
    os.read(r, 1)
    print(ask(s), 'END', flush=True)
    os._exit(0)
os.wait()
os.write(w, b'x')",
    );
    assert!(shown.contains("REFUSED END"), "{shown}");
}

#[test]
// promise: access-11
fn a_server_is_answered_beside_callers_that_say_nothing() {
    let held = Held::running("read rest");
    let silent: Vec<_> = (0..20).map(|_| held.call()).collect();
    let hello = held.call().greets(false);
    assert_eq!((hello.holder_pid, silent.len()), (held.pid(), 20));
}

#[test]
// promise: access-11
fn callers_that_say_nothing_cost_nothing() {
    let held = Held::running("read rest");
    // The answer comes when the others were let in.
    let silent: Vec<_> = (0..8).map(|_| held.call()).collect();
    held.call();
    assert!(!held.ends_within(Duration::from_millis(500)));
    let before = held.processor_time();
    assert!(!held.ends_within(Duration::from_secs(2)));
    let used = held.processor_time() - before;
    assert!(used < Duration::from_millis(200), "{used:?} of 2 s, with {} callers", silent.len());
}

#[test]
// promise: access-11
fn a_silent_caller_gives_its_place_to_the_next_and_the_server_keeps_its_own() {
    let mut held = Held::running("read rest");
    for _ in 0..3 {
        let mut looks: Vec<_> = (0..8).map(|_| held.call()).collect();
        for look in &mut looks {
            // On a busy machine its turn to speak may come when its place is gone already.
            let hello = loop {
                match look.greets_if_placed(false) {
                    Some(hello) => break hello,
                    None => *look = held.call(),
                }
            };
            assert_eq!(hello.holder_pid, held.pid());
        }
    }
    held.server.greets(true);
}
