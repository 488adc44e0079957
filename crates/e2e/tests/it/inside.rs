//! Commands in a nested shell: their output and exit code come from markers that no echo can be; and the errors if no
//! shell answers.

use api::{Boundary, CommandStatus, EndedBy, ErrorCode, ExecuteRequest, Foreground, WaitRequest};
use e2e::inside::{ask, begins, enters, gives, inside, is_interrupted, runs_beside, runs_in};
use e2e::shells::{ALL, Dialect};
use e2e::{Server, Session, eventually};

#[tokio::test]
// promise: inside-2
async fn a_command_in_a_shell_inside_has_its_output_and_its_code_in_every_pair() {
    let server = Server::start();
    let every = |outer: Dialect| {
        let server = &server;
        async move {
            let shell = outer.session(server).await;
            for enter in ["bash --norc", "zsh -f", "fish -N", "dash", "env X=1 busybox sh", "mksh", "ksh"] {
                runs_in(&shell, enter).await;
            }
        }
    };
    e2e::join_all(ALL.map(every)).await;
}

#[tokio::test]
// promise: inside-2
async fn a_command_inside_is_a_command_while_the_one_that_started_its_shell_runs() {
    let server = Server::start();
    let shell = server.session().await;
    let ran = runs_beside(&shell, "bash --norc").await;
    let listed = server.client().commands(&shell.id).await.expect("a list").commands;
    assert_eq!(listed.into_iter().map(|c| c.id).collect::<Vec<_>>(), ran);
}

#[tokio::test]
// promise: once-1
async fn commands_of_every_channel_are_numbered_in_one_sequence_also_by_the_next_server() {
    let server = Server::start();
    let shell = server.session().await;
    shell.gives("true").await;
    let ran = runs_beside(&shell, "bash --norc").await;
    // Two in a row, with nothing between them.
    let outer = enters(&shell, "bash --norc").await;
    for code in [5, 6] {
        assert_eq!(gives(&shell, &format!("(exit {code})")).await.0, code);
    }
    let ends = async |shell: &Session| -> Vec<Option<String>> {
        let all = server.client().commands(&shell.id).await.expect("a list").commands;
        all.into_iter().map(|c| c.completed_at).collect()
    };
    let ended_at = ends(&shell).await;
    server.kill9();
    server.again();
    assert_eq!(ends(&shell).await, ended_at, "when each has ended is told alike");
    let codes = async |shell: &Session| -> Vec<Option<i32>> {
        let all = server.client().commands(&shell.id).await.expect("a list").commands;
        all.into_iter().map(|c| c.exit_code).collect()
    };
    assert_eq!(codes(&shell).await, [Some(0), Some(0), Some(3), Some(0), None, Some(5), Some(6)]);
    inside(&shell, "exit 0").await;
    assert_eq!(shell.end_of(&outer).await.exit_code, Some(0));
    // The shell is replaced by a program that lines are typed into.
    assert_eq!(shell.run("exec dash").await.boundary, Boundary::Heuristic);
    let typed = shell.run("echo typed").await;
    assert_eq!(typed.boundary, Boundary::Heuristic, "{typed:?}");
    assert_eq!(gives(&shell, "echo inside").await, (0, "inside\n".to_owned()));
    let listed = server.client().commands(&shell.id).await.expect("a list").commands;
    let ids: Vec<String> = listed.into_iter().map(|c| c.id).collect();
    assert_eq!(ids, (1..=11).map(|n| format!("c{n}")).collect::<Vec<_>>());
    assert_eq!(ran.as_slice(), &ids[1..4]);
    let before = (codes(&shell).await, ends(&shell).await);
    shell.ends().await;
    assert_eq!((codes(&shell).await, ends(&shell).await), before);
}

#[tokio::test]
// promise: inside-3
async fn an_interrupted_nested_command_ends_without_an_invented_code() {
    let server = Server::start();
    for enter in ["bash --norc", "zsh -f", "fish -N", "dash"] {
        is_interrupted(&server.session().await, enter).await;
    }
}

#[tokio::test]
// promise: inside-3
async fn silence_after_an_interrupt_inside_does_not_say_that_it_still_runs() {
    let server = Server::start();
    let shell = server.session().await;
    enters(&shell, "bash --norc").await;
    let begun = begins(&shell, "sh -c 'echo begun; exec sleep 600'").await;
    let until = vec!["input".to_owned(), "quiet:100".to_owned()];
    let keys = Some(vec!["C-c".to_owned()]);
    let answer = shell.input(&api::InputRequest { keys, until, timeout: Some(20.0), ..Default::default() }).await;
    assert_eq!(answer.ended_by, EndedBy::Ended, "{answer:?}");
    let done = shell.command(&begun.id).await;
    assert!(done.error.as_ref().is_some_and(|why| why.contains("interrupted")), "{done:?}");
}

#[tokio::test]
// promise: inside-4
async fn without_a_shell_that_reads_the_answer_says_that_the_run_is_unknown() {
    let server = Server::start();
    let shell = server.session().await;
    // Nothing inside: the session's own shell is not a shell inside.
    assert_eq!(shell.try_run(&ask("echo no")).await.expect_err("idle").code(), Some(ErrorCode::InvalidField));
    // A program that is not a shell would take the line as input: python, a reader of lines, a script that asks.
    for program in ["python3 -q", "cat", "bash -c 'read -r x'", "bash -c 'read -re x'"] {
        let running = enters(&shell, program).await;
        let refused = shell.try_run(&ask("echo no")).await.expect_err(program);
        assert_eq!(refused.code(), Some(ErrorCode::InvalidField), "{program}: {refused}");
        assert!(refused.to_string().contains("nothing was typed"), "{program}: {refused}");
        let busy = shell.try_run(&ExecuteRequest { inside: false, ..ask("echo no") }).await.expect_err("busy");
        assert!(!busy.to_string().contains("with inside"), "{program}: {busy}");
        shell.presses(&["C-d"], None).await;
        shell.end_of(&running).await;
    }
    // Nobody here sees what reads behind a connection.
    shell.run("cp $(command -v cat) ssh").await;
    let cat = enters(&shell, "./ssh").await;
    let told = inside(&shell, "echo no").await;
    assert_eq!(
        (told.status, told.exit_code, told.boundary),
        (CommandStatus::Failed, None, Boundary::Heuristic),
        "{told:?}"
    );
    assert!(told.error.clone().is_some_and(|why| why.contains("whether it ran is unknown")), "{told:?}");
    assert!(told.output.is_some_and(|text| text.contains("echo no")), "what was typed is shown");
    shell.presses(&["C-d"], None).await;
    assert_eq!(shell.end_of(&cat).await.exit_code, Some(0));
    // ptyd types no line at a program that does not wait, asks for a secret or paints.
    let screen = "printf '\\033[?1049h'; read x; printf '\\033[?1049l'";
    for (busy, told) in [
        ("sleep 60", Foreground::Running),
        ("read -rs x", Foreground::PasswordWanted),
        (screen, Foreground::Fullscreen),
    ] {
        let running = shell.begin(busy).await;
        eventually("it is told", async || (shell.look().await.foreground == told).then_some(())).await;
        let refused = shell.try_run(&ask("echo no")).await.expect_err(busy);
        assert_eq!(refused.code(), Some(ErrorCode::SessionBusy), "{busy}: {refused}");
        assert!(!refused.to_string().contains("with inside"), "{busy}: {refused}");
        shell.presses(&["C-c"], None).await;
        shell.end_of(&running).await;
        shell.run("printf '\\033[?1049l'").await;
    }
    let long = ask(&format!("echo {}", "'".repeat(1_000)));
    enters(&shell, "bash --norc").await;
    assert_eq!(shell.try_run(&long).await.expect_err("too long").code(), Some(ErrorCode::InvalidField));
    let most = format!("echo {}", "x".repeat(3_640));
    assert_eq!(gives(&shell, &most).await.0, 0);
    shell.ends().await;
}

#[tokio::test]
// promise: inside-4
async fn a_line_of_the_greatest_length_reaches_a_program_that_reads_lines() {
    let server = Server::start();
    let shell = Dialect::Dash.session(&server).await;
    for enter in ["dash", "bash --norc --noediting"] {
        enters(&shell, enter).await;
        let (code, output) = gives(&shell, &format!("echo {}", "x".repeat(3_640))).await;
        assert_eq!((code, output.len()), (0, 3_641), "{enter}");
        inside(&shell, "exit").await;
    }
}

#[tokio::test]
// promise: inside-3
async fn a_session_that_ends_ends_the_command_inside_it() {
    let server = Server::start();
    let shell = server.session().await;
    enters(&shell, "bash --norc").await;
    let begun = shell
        .run_as(ExecuteRequest { wait_for: Some("begun".to_owned()), ..ask("sh -c 'echo begun; exec sleep 60'") })
        .await;
    let wait = WaitRequest { timeout: Some(20.0), ..WaitRequest::default() };
    let (waited, _) = tokio::join!(shell.wait(&wait), shell.ends());
    assert_eq!(waited.ended_by, EndedBy::Exited);
    let done = shell.command(&begun.id).await;
    assert_eq!((done.status, done.exit_code), (CommandStatus::Terminated, None), "{done:?}");
}

#[tokio::test]
// promise: once-1
async fn a_command_inside_that_a_dead_server_typed_is_not_typed_again() {
    let server = Server::start();
    let shell = server.session().await;
    enters(&shell, "dash").await;
    let wish = ask("echo x >>ran; until [ -e go ]; do sleep 0.02; done; (exit 3)");
    let keyed = async || server.client().execute(&shell.id, &wish, Some("once")).await;
    let ran = async || server.home().file("ran").exists().then_some(());
    tokio::select! {
        ended = keyed() => panic!("it runs: {ended:?}"),
        () = eventually("it runs", ran) => {}
    }
    let begun = shell.look().await.current_command.expect("it runs");
    server.kill9();
    server.again();
    assert_eq!(shell.look().await.current_command.as_ref(), Some(&begun));
    std::fs::write(server.home().file("go"), "").expect("written");
    let again = keyed().await.expect("answered");
    let told = (&again.id, again.status, again.exit_code, again.boundary);
    assert_eq!(told, (&begun, CommandStatus::Completed, Some(3), Boundary::Nonce), "{again:?}");
    assert_eq!(std::fs::read_to_string(server.home().file("ran")).expect("it ran"), "x\n");
}

#[tokio::test]
// promise: shell-14
async fn a_shell_that_exec_has_replaced_is_reported_and_typed_at() {
    let server = Server::start();
    let replaced = |outer: Dialect| {
        let server = &server;
        async move {
            for exec in
                ["exec bash --norc", "exec zsh -f", "exec fish -N", "exec dash", &format!("exec {}", outer.name())]
            {
                for is_typed in [false, true] {
                    let shell = outer.session(server).await;
                    shell.run(&format!("{} -c true", exec.trim_start_matches("exec "))).await;
                    if is_typed {
                        shell.sends(format!("{exec}\r").as_bytes()).await;
                    } else {
                        let done = shell.run(exec).await;
                        let told = (done.status, done.exit_code, done.boundary);
                        assert_eq!(
                            told,
                            (CommandStatus::Completed, None, Boundary::Heuristic),
                            "{outer:?}: {exec}: {done:?}"
                        );
                        assert!(
                            done.error.as_ref().is_some_and(|why| why.contains("exec")),
                            "{outer:?}: {exec}: {done:?}"
                        );
                    }
                    let what = format!("{exec} in {outer:?}");
                    eventually(&what, async || (shell.look().await.boundary == Boundary::Heuristic).then_some(()))
                        .await;
                    let typed = shell.run("echo typed-$(printf 4)2").await;
                    let told =
                        (typed.boundary, typed.exit_code, typed.output.is_some_and(|text| text.contains("typed-42")));
                    assert_eq!(told, (Boundary::Heuristic, None, true), "{what}");
                    assert_eq!(gives(&shell, "sh -c 'exit 7'").await, (7, String::new()), "{what}");
                    eventually(&what, async || (shell.look().await.foreground == Foreground::Idle).then_some(())).await;
                    shell.ends().await;
                }
            }
        }
    };
    e2e::join_all(ALL.map(replaced)).await;
}

#[tokio::test]
// promise: shell-14
async fn a_shell_that_exec_has_replaced_by_its_like_is_reported_by_a_server_that_saw_no_prompt_of_it() {
    let server = Server::start();
    let shell = Dialect::Zsh.session(&server).await;
    server.kill9();
    server.again();
    let done = shell.run("exec zsh").await;
    assert_eq!((done.status, done.exit_code), (CommandStatus::Completed, None), "{done:?}");
    assert!(done.error.as_ref().is_some_and(|why| why.starts_with("exec ")), "{done:?}");
}

#[tokio::test]
// promise: inside-2, inside-4
async fn nothing_is_typed_into_a_line_that_somebody_began() {
    let server = Server::start();
    let refused = async |shell: &Session, code| {
        let error = shell.try_run(&ask("touch typed")).await.expect_err("it must not be typed");
        assert_eq!(error.code(), Some(code), "{error}");
    };
    for dialect in ALL {
        let shell = dialect.session(&server).await;
        // The session's own shell is not a shell inside, also where it waits for the rest of a line.
        shell.types("true &&").await;
        refused(&shell, ErrorCode::InvalidField).await;
        let shell = dialect.session(&server).await;
        enters(&shell, "bash --norc").await;
        let (input, shown) = (Some("echo half".to_owned()), Some("echo half".to_owned()));
        shell.input(&api::InputRequest { input, wait_for: shown, timeout: Some(20.0), ..Default::default() }).await;
        refused(&shell, ErrorCode::SessionNotReady).await;
        shell.presses(&["C-c"], None).await;
        assert_eq!(gives(&shell, "echo whole").await, (0, "whole\n".to_owned()));
    }
    assert!(!server.home().file("typed").exists());
}

#[tokio::test]
// promise: inside-2, inside-4
async fn a_code_inside_is_right_whatever_splits_words_there() {
    let server = Server::start();
    let shell = server.session().await;
    for enter in ["bash --norc", "dash", "mksh", "zsh -f"] {
        enters(&shell, enter).await;
        for separators in ["2", "0123456789", "x"] {
            assert_eq!(gives(&shell, &format!("IFS={separators}")).await.0, 0, "{enter}");
            assert_eq!(gives(&shell, "(exit 127)").await.0, 127, "{enter} IFS={separators}");
        }
        inside(&shell, "exit").await;
        eventually("it has left", async || (shell.look().await.foreground == Foreground::Idle).then_some(())).await;
    }
}

#[tokio::test]
// promise: inside-2, inside-4
async fn after_an_interrupt_the_next_command_inside_runs() {
    let server = Server::start();
    let shell = server.session().await;
    enters(&shell, "bash --norc").await;
    let sleeps = begins(&shell, "sh -c 'echo begun; exec sleep 600'").await;
    shell.input(&api::InputRequest { keys: Some(vec!["C-c".to_owned()]), ..Default::default() }).await;
    assert_eq!(gives(&shell, "echo on").await, (0, "on\n".to_owned()));
    assert_eq!(shell.command(&sleeps.id).await.exit_code, None);
}
