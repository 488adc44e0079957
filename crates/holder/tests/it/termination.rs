//! The end of a session at a client's request: the signals that its processes get, and their order.

use wire::ToHolder;

use crate::rig::{Held, PATIENCE};

#[test]
// promise: stop-1
fn a_shell_that_loses_a_hup_gets_another_one_and_its_programs_do_not() {
    // The shell goes on after its first HUP, as bash does when it loses it.
    let program = "sh -c 'trap \"echo program hup\" HUP; echo ready; while :; do sleep 1000 & wait; done' &";
    let shell = "n=0; trap 'n=$((n + 1)); echo shell $n; [ $n -lt 2 ] || exit 0' HUP; wait; while :; do wait; done";
    let mut held = Held::running(&format!("{program}\n{shell}"));
    held.shows("ready");
    held.server.sends(&ToHolder::Terminate { seq: 7, signo: sys::signal::HUP, grace_ms: 60_000 });
    let shown = held.shows("shell 2");
    assert!(held.ends_within(PATIENCE));
    assert_eq!((shown.matches("shell").count(), shown.matches("program hup").count()), (2, 1), "{shown}");
}
