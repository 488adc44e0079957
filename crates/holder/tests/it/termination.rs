//! The end of a session at a client's request: the signals that its processes get, and their order.

use wire::ToHolder;

use crate::rig::{Held, PATIENCE};

/// Ends a session of this script with a HUP, and gives what it has printed by its end.
fn hung_up(script: &str, by_its_end: &str) -> String {
    let mut held = Held::running(script);
    held.shows("ready");
    held.server.sends(&ToHolder::Terminate { seq: 7, signo: sys::signal::HUP, grace_ms: 1_000 });
    let shown = held.shows(by_its_end);
    assert!(held.ends_within(PATIENCE));
    shown
}

#[test]
// promise: stop-1
fn a_shell_that_loses_a_hup_gets_another_one() {
    // The shell goes on after its first HUP, as bash does when it loses it.
    let script =
        "n=0; trap 'n=$((n + 1)); echo shell $n; [ $n -lt 2 ] || exit 0' HUP; echo ready; while :; do read x; done";
    assert_eq!(hung_up(script, "shell 2").matches("shell").count(), 2);
}

#[test]
// promise: stop-1
fn a_shell_that_runs_a_program_on_hup_is_left_to_finish() {
    let script =
        "trap 'echo begun; (trap \"\" HUP; sleep 0.4); echo done; exit 0' HUP; echo ready; while :; do read x; done";
    let shown = hung_up(script, "done");
    assert_eq!(shown.matches("begun").count(), 1, "{shown}");
}
