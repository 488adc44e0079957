//! dash, busybox's ash and mksh, into which commands are typed: users who redefine our names, and the visibility of our
//! names.

use api::{Boundary, CommandStatus, CreateRequest, Dimensions, ExecuteRequest};
use e2e::{PATIENCE, Server, Session, join_all};

const SHELLS: [&str; 3] = ["dash", "busybox", "mksh"];

async fn session(server: &Server, shell: &str) -> Session {
    server.session_with(CreateRequest { shell: Some(shell.to_owned()), ..CreateRequest::default() }).await
}

#[tokio::test]
// promise: shell-10
async fn no_exit_code_is_wrong_after_a_user_changes_ptyds_names() {
    let server = Server::start();
    let disturbances = ["b", "f", "i", "k", "l", "n", "o", "p", "q", "r", "t", "u", "v", "w", "z"]
        .map(|name| format!("readonly __ptyd_{name}"))
        .into_iter()
        .chain(
            [
                "__ptyd_r=5.1",
                "unset __ptyd_i",
                "command unset __ptyd_l; true",
                "unset -f __ptyd_c",
                "unset -f __ptyd_d",
                "set -n",
            ]
            .map(str::to_owned),
        );
    let all: Vec<_> = SHELLS.into_iter().flat_map(|shell| disturbances.clone().map(move |d| (shell, d))).collect();
    let one = async |(shell, disturbance): (&str, String)| {
        let session = session(&server, shell).await;
        // They are undone at the wrong time, too: after the text and before its end is reported.
        for (command, code) in [(disturbance.as_str(), 0), ("(exit 7)", 7), ("true", 0), ("(exit 9)", 9)] {
            let patience = Some(PATIENCE.as_secs_f64());
            let request = ExecuteRequest { command: command.to_owned(), timeout: patience, ..Default::default() };
            let done = session
                .try_run(&request)
                .await
                .unwrap_or_else(|refused| panic!("{shell} after {disturbance:?}: {command:?} is refused: {refused}"));
            let told = format!("{shell} after {disturbance:?}: {done:?}");
            assert_ne!(done.status, CommandStatus::Running, "{told}");
            match done.boundary {
                Boundary::Attested | Boundary::Nonce => assert_eq!(done.exit_code, Some(code), "{told}"),
                Boundary::Heuristic => assert_eq!(done.exit_code, None, "{told}"),
            }
        }
    };
    for some in all.chunks(8) {
        join_all(some.iter().cloned().map(one)).await;
    }
}

/// A server forgets the state of the foreground when it sends a signal, when it answers a query (busybox asks for the cursor
/// with every prompt), and when it starts: the holder reports it again.
#[tokio::test]
// promise: shell-6
async fn a_shell_whose_hooks_are_gone_takes_commands_after_its_server_forgot_the_foreground() {
    let server = Server::start();
    let one = async |(shell, is_new_server): (&str, bool)| {
        let session = session(&server, shell).await;
        session.run("unset -f __ptyd_c").await;
        let lost = session.run("(exit 7)").await;
        assert_eq!((lost.boundary, lost.exit_code), (Boundary::Heuristic, None), "{shell}: {lost:?}");
        if !is_new_server {
            session.signal("CONT").await;
        }
        session
    };
    let runs = async |(shell, session): (&str, &Session)| {
        let request =
            ExecuteRequest { command: "echo $((40+2))".to_owned(), timeout: Some(10.0), ..Default::default() };
        let done = session.try_run(&request).await.unwrap_or_else(|refused| panic!("{shell}: {refused}"));
        let output = done.output.clone().unwrap_or_default();
        assert!(output.contains("42"), "{shell}: {done:?}");
    };
    for is_new_server in [false, true] {
        let sessions = join_all(SHELLS.map(|shell| one((shell, is_new_server)))).await;
        if is_new_server {
            server.kill9();
            server.again();
        }
        join_all(SHELLS.into_iter().zip(&sessions).map(runs)).await;
    }
}

#[tokio::test]
// promise: end-7
async fn the_last_word_of_a_text_may_be_an_alias_and_its_end_stays_what_it_is() {
    let server = Server::start();
    for shell in SHELLS {
        let session = session(&server, shell).await;
        session.run("alias hi='echo hi'").await;
        // mksh takes away a backslash that ends a file.
        let backslash = if shell == "mksh" { "a\n" } else { "a\\\n" };
        for (command, output) in [
            ("hi", "hi\n"),
            ("true; hi", "hi\n"),
            ("hi\n", "hi\n"),
            ("echo a\\", backslash),
            ("cat <<E\nb\nE", "b\n"),
            ("echo c # d", "c\n"),
            ("# d", ""),
            ("echo e # \\", "e\n"),
        ] {
            assert_eq!(session.gives(command).await, (0, output.to_owned()), "{shell}: {command:?}");
        }
        assert_eq!(session.gives("hi there; (exit 4)").await, (4, "hi there\n".to_owned()), "{shell}");
    }
}

/// mksh traces to a descriptor of its own, which no redirection reaches.
#[tokio::test]
async fn dash_and_busybox_trace_the_persons_commands_alone() {
    let server = Server::start();
    let traced = |line: &str, is_on: bool| if is_on { format!("+ {line}\n") } else { String::new() };
    for shell in ["dash", "busybox"] {
        for (on, shows) in [("set -x", true), ("set -v", false), ("set -a; set -xv", true)] {
            let session = session(&server, shell).await;
            assert_eq!(session.gives(on).await, (0, String::new()), "{shell}: {on}");
            for (command, code, output) in [
                ("(exit 7)", 7, ""),
                // The status of the command before, and the words of the shell itself, are the text's.
                ("echo $?", 0, "7\n"),
                ("set -- one", 0, ""),
                ("echo $1", 0, "one\n"),
                ("return 3", 3, ""),
            ] {
                let shown = command.trim_matches(['(', ')']).replace("$?", "7").replace("$1", "one");
                let expected = traced(&shown, shows) + output;
                assert_eq!(session.gives(command).await, (code, expected), "{shell}: {command} after {on}");
            }
            let (code, refused) = session.gives("fi").await;
            let is_clean = !refused.contains("ptyd") && !refused.contains('+');
            assert_eq!((code, is_clean), (2, true), "{shell}: {refused} after {on}");
            // The text that had a syntax error has not turned the trace off.
            assert_eq!(session.gives("echo on").await, (0, traced("echo on", shows) + "on\n"), "{shell}: {on}");
            session.gives("set +xva").await;
            assert_eq!(session.gives("echo off").await, (0, "off\n".to_owned()), "{shell}: {on}");
        }
    }
}

#[tokio::test]
// promise: shell-11
async fn no_child_inherits_ptyds_names_whatever_is_exported() {
    let server = Server::start();
    for shell in SHELLS {
        let session = session(&server, shell).await;
        for command in
            ["true", "set -a; env | grep __ptyd", "env | grep __ptyd", "x=5; sh -c 'echo $x; env | grep __ptyd'"]
        {
            let (_, output) = session.gives(command).await;
            assert_eq!(output, if command.contains("x=5") { "5\n" } else { "" }, "{shell}: {command}");
        }
        assert_eq!(session.gives("set +a; (exit 3)").await, (3, String::new()), "{shell}");
        assert_eq!(
            session.gives("case $- in *a*) echo on ;; *) echo off ;; esac").await,
            (0, "off\n".into()),
            "{shell}"
        );
    }
}

#[tokio::test]
// promise: shell-12
async fn a_prompt_that_was_set_by_hand_is_said_to_be_perhaps_the_reason_and_an_interrupt_helps() {
    let server = Server::start();
    for shell in SHELLS {
        let session = session(&server, shell).await;
        session.types("PS1='mine> '").await;
        // The refusal does not wait until the time of the call is up.
        let request = ExecuteRequest { command: "echo no".into(), timeout: Some(3_600.0), ..ExecuteRequest::default() };
        let refused = session.try_run(&request).await.expect_err("it cannot be known where the shell is").to_string();
        assert!(refused.contains("PS1") && refused.contains("C-c"), "{shell}: {refused}");
        session.presses(&["C-c"], None).await;
        assert_eq!(session.gives("echo clear").await, (0, "clear\n".to_owned()), "{shell}");
        session.types("echo by-hand").await;
        assert_eq!(session.gives("echo after").await, (0, "after\n".to_owned()), "{shell}");
    }
}

#[tokio::test]
// promise: output-15
async fn no_reader_sees_the_reports_of_prompts_or_hand_over_lines() {
    let server = Server::start();
    for (shell, cols) in [("dash", 80), ("busybox", 80), ("mksh", 100), ("mksh", 60), ("mksh", 40)] {
        let dimensions = Some(Dimensions { cols, rows: 24 });
        let wish = CreateRequest { shell: Some(shell.to_owned()), dimensions, ..CreateRequest::default() };
        let session = server.session_with(wish).await;
        for command in ["echo one", "(exit 7)", "echo two"] {
            session.run(command).await;
        }
        session.types("echo by-hand").await;
        session.run("true").await;
        let path = format!("/terminals/{}/recording", session.id);
        let reply = server.connect().ask("GET", &path, "").expect("an answer");
        let recording = String::from_utf8_lossy(&reply.body);
        let told = [recording.contains("echo two"), recording.contains("]7337"), recording.contains("__ptyd")];
        assert_eq!(told, [true, false, false], "{shell} in {cols} columns: {recording}");
        let rows = session.screen().await.join("\n");
        let told = [rows.contains("echo two"), rows.contains("__ptyd")];
        assert_eq!(told, [true, false], "{shell} in {cols} columns: {rows}");
    }
}
