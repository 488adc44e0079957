//! The binary as a person uses it: real servers and shells, each test with its own home and directories.

use std::path::Path;
use std::process::{Child, Output, Stdio};

use crate::home::Home;

/// Exit code and stdout.
fn seen(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
// promise: cli-1
fn run_prints_exactly_the_bytes_of_its_command_and_passes_its_code_through() {
    let home = Home::new();
    let of = |line: &str| seen(&home.ptyd(&["run", line]));
    assert_eq!(of("printf 'a\\tb'; (exit 7)"), (Some(7), "a\tb".to_owned()));
    assert_eq!(of("sh -c 'kill -TERM $$'").0, Some(128 + 15));
    assert_eq!(of("nosuch-command").0, Some(127));
    assert_eq!(seen(&home.ptyd(&["run", "--", "printf", "%s", "it's $HOME"])), (Some(0), "it's $HOME".to_owned()));
    let many: String = (1..=20_000).map(|i| format!("{i}\n")).collect();
    assert!(of("seq 1 20000") == (Some(0), many));
    assert_eq!(seen(&home.ptyd(&["run", "--timeout", "0.3", "sleep 600"])).0, Some(124));
    assert_eq!(seen(&home.ptyd(&["ls"])), (Some(0), String::new()));
}

#[test]
fn sessions_are_named_listed_typed_at_read_and_ended() {
    let home = Home::new();
    let (code, id) = seen(&home.ptyd(&["new", "--name", "work", "--env", "GREETING=salut"]));
    assert_eq!(code, Some(0));
    assert_eq!(seen(&home.ptyd(&["run", "--session", "work", "echo $GREETING $PWD"])), {
        (Some(0), format!("salut {}\n", home.dir.path().display()))
    });
    assert_eq!(home.ptyd(&["send", &id[..8], "exit 3"]).status.code(), Some(0));
    let logs = seen(&home.ptyd(&["logs", "--follow", "work"]));
    assert!(logs.0 == Some(0) && logs.1.contains("salut"), "{logs:?}");
    let listed: Vec<api::TerminalSession> =
        serde_json::from_slice(&home.ptyd(&["ls", "--all", "--json"]).stdout).expect("json");
    let ended = listed.iter().map(|s| (s.id.as_str(), s.exit.as_ref().and_then(|e| e.exit_code))).collect::<Vec<_>>();
    assert_eq!(ended, [(id.trim(), Some(3))]);
    assert_eq!(home.ptyd(&["kill", "nobody"]).status.code(), Some(3));
}

#[test]
fn many_that_need_a_server_at_once_share_one() {
    let home = Home::new();
    let start = || home.command(&["run", "echo hi"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let all: Vec<Child> = (0..8).map(|_| start().expect("ptyd runs")).collect();
    for one in all {
        let output = one.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(seen(&output), (Some(0), "hi\n".to_owned()), "{said}");
    }
}

#[test]
fn without_a_server_only_commands_work_that_need_none_or_start_one() {
    let home = Home::new();
    assert_eq!(home.ptyd(&["ls"]).status.code(), Some(5));
    assert_eq!(home.ptyd(&["attach", "x"]).status.code(), Some(2));
    assert_eq!(home.ptyd(&["no-such-command"]).status.code(), Some(2));
    assert_eq!(home.ptyd(&["schema"]).status.code(), Some(0));
    assert!(!home.state().exists());
}

#[test]
// promise: cli-2
fn a_running_command_is_followed_across_the_death_of_the_server() {
    let home = Home::new();
    let gate = home.dir.path().join("gate");
    let line = "echo before; until [ -e gate ]; do sleep 0.01; done; echo after; (exit 9)";
    let run = home.command(&["run", line]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("ptyd runs");
    wait_until_printed(&home, "before");
    // No other process starts the next server.
    home.end_server(sys::signal::KILL);
    std::fs::write(&gate, "").expect("opened");
    let output = run.wait_with_output().expect("it ends");
    assert_eq!(seen(&output), (Some(9), "before\nafter\n".to_owned()), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(seen(&home.ptyd(&["ls"])), (Some(0), String::new()));
}

#[test]
// promise: cli-2
fn ptyd_run_ends_its_session_however_it_exits() {
    let home = Home::new();
    for (signals, and_server) in [
        (&[sys::signal::INT, sys::signal::INT][..], false),
        (&[sys::signal::HUP], false),
        (&[sys::signal::TERM], false),
        (&[sys::signal::TERM], true),
    ] {
        let stubborn = "bash -c 'trap \"echo caught\" INT; echo before; while :; do sleep 0.01; done'";
        let mut run = home.command(&["run", stubborn]);
        let run = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("ptyd runs");
        wait_until_printed(&home, "before");
        if and_server {
            home.end_server(sys::signal::KILL);
        }
        for (i, signo) in signals.iter().enumerate() {
            if i > 0 {
                wait_until_printed(&home, "caught");
            }
            sys::signal::send(run.id().cast_signed(), *signo).expect("it lives");
        }
        let output = run.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(1), "{signals:?}: {}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(seen(&home.ptyd(&["ls"])), (Some(0), String::new()), "{signals:?}");
        std::fs::remove_dir_all(home.state().join("sessions")).expect("ours");
        std::fs::create_dir(home.state().join("sessions")).expect("ours");
    }
}

/// Follows the only session's journal until the word is in it.
fn wait_until_printed(home: &Home, word: &str) {
    let begun = std::time::Instant::now();
    let has = |folder: &Path| {
        std::fs::read_dir(folder).into_iter().flatten().flatten().any(|session| {
            std::fs::read(session.path().join("journal"))
                .is_ok_and(|bytes| bytes.windows(word.len() + 1).any(|w| w == format!("{word}\r").as_bytes()))
        })
    };
    while !has(&home.state().join("sessions")) {
        // A minute only turns a hang into a failure.
        assert!(begun.elapsed().as_secs() < 60, "{word} is not printed");
        std::thread::yield_now();
    }
}
