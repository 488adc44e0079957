//! A command with `onTimeout`: what becomes of it when its time is up, whatever its client does meanwhile.

use api::{CommandExecution, CommandStatus, EndedBy, ErrorCode, ExecuteRequest, OnTimeout, OutputQuery};
use e2e::{Server, Session, eventually};
use serde_json::json;

fn limited(command: &str, timeout: f64, on_timeout: OnTimeout) -> ExecuteRequest {
    ExecuteRequest { command: command.to_owned(), timeout: Some(timeout), on_timeout, ..ExecuteRequest::default() }
}

/// How a command ended.
fn how(done: &CommandExecution) -> (CommandStatus, Option<i32>, Option<OnTimeout>, Option<EndedBy>) {
    (done.status, done.exit_code, done.on_timeout, done.ended_by)
}

/// The shell is the one from before, and takes a command.
async fn lives(shell: &Session, pid: Option<u32>) {
    assert_eq!(shell.gives("echo alive").await, (0, "alive\n".to_owned()));
    assert_eq!(shell.look().await.pid, pid);
}

#[tokio::test]
// promise: limit-9
async fn a_command_that_exceeds_its_time_is_interrupted_or_killed_and_the_shell_stays() {
    let server = Server::start();
    let shell = server.session().await;
    let pid = shell.look().await.pid;
    shell.gives("sleep 770 & echo $! > before").await;
    let ended = (CommandStatus::Completed, Some(EndedBy::Ended));
    for (command, on_timeout, code) in [
        ("echo begun; sleep 771", OnTimeout::Interrupt, 130),
        ("echo begun; while :; do sleep 772; done", OnTimeout::Kill, 130),
        ("echo begun; while :; do :; done", OnTimeout::Kill, 130),
        ("echo begun; bash -c \"trap '' INT; sleep 773\"", OnTimeout::Kill, 143),
        ("echo begun; bash -c \"trap '' INT TERM; sleep 774; sleep 774\"", OnTimeout::Kill, 137),
        ("echo begun; sleep 775 | (trap '' INT TERM; sleep 776)", OnTimeout::Kill, 137),
    ] {
        let done = shell.run_as(limited(command, 0.3, on_timeout)).await;
        assert_eq!(how(&done), (ended.0, Some(code), Some(on_timeout), ended.1), "{command}: {done:?}");
        assert!(done.output.as_ref().is_some_and(|output| output.starts_with("begun\n")), "{done:?}");
        lives(&shell, pid).await;
    }
    assert_eq!(shell.gives("kill -0 $(< before) && echo it lives").await, (0, "it lives\n".to_owned()));
    // In time, nothing is done to it.
    let signals = || async { server.client().signals(&shell.id).await.expect("listed").signals.len() };
    let before = signals().await;
    let done = shell.run_as(limited("echo quick", 30.0, OnTimeout::Kill)).await;
    assert_eq!((how(&done), signals().await), ((ended.0, Some(0), None, ended.1), before));
}

#[tokio::test]
// promise: limit-9
async fn a_command_that_ignores_an_interrupt_continues_and_the_answer_says_so() {
    let server = Server::start();
    let shell = server.session().await;
    let done =
        shell.run_as(limited("bash -c \"trap 'echo no' INT; while :; do sleep 777; done\"", 0.3, OnTimeout::Interrupt));
    let done = done.await;
    let told = (CommandStatus::Running, None, Some(OnTimeout::Interrupt), Some(EndedBy::TimedOut));
    assert_eq!(how(&done), told, "{done:?}");
    shell.signal("KILL").await;
    assert_eq!(shell.end_of(&done).await.exit_code, Some(137));
}

#[tokio::test]
// promise: limit-9
async fn the_limit_holds_without_a_wait_behind_a_question_and_for_a_client_that_has_gone() {
    let server = Server::start();
    let shell = server.session().await;
    let at_once = ExecuteRequest { wait_for_completion: Some(false), ..limited("sleep 778", 0.3, OnTimeout::Kill) };
    let begun = shell.run_as(at_once).await;
    assert_eq!(how(&begun), (CommandStatus::Running, None, None, Some(EndedBy::Accepted)));
    assert_eq!(shell.end_of(&begun).await.exit_code, Some(130));
    let asked = shell.run_as(limited("read -rp 'name? ' name", 1.5, OnTimeout::Interrupt)).await;
    assert_eq!(how(&asked), (CommandStatus::Running, None, None, Some(EndedBy::InputWanted)));
    assert_eq!(shell.end_of(&asked).await.exit_code, Some(130));
    let gone = limited("echo unread; touch runs; sleep 779", 1.0, OnTimeout::Kill);
    tokio::select! {
        _ = shell.try_run(&gone) => panic!("it was answered"),
        () = eventually("it runs", async || server.home().file("runs").exists().then_some(())) => {}
    }
    let history = server.client().commands(&shell.id).await.expect("known").commands;
    let given = history.iter().find(|done| done.command.contains("sleep 779")).expect("it ran").id.clone();
    eventually("its time is up", async || shell.command(&given).await.exit_code.filter(|code| *code == 130)).await;
    // Its client has read nothing of it yet.
    let unread = OutputQuery { since: Some("last".to_owned()), ..OutputQuery::default() };
    let unread = shell.output(&unread).await.text.unwrap_or_default();
    assert!(unread.contains("unread\n"), "{unread:?}");
}

#[tokio::test]
// promise: limit-9
async fn a_command_in_a_nested_shell_is_ended_and_both_shells_stay() {
    let server = Server::start();
    let shell = server.session().await;
    shell.run("bash --norc").await;
    let inside = |request: ExecuteRequest| ExecuteRequest { inside: true, ..request };
    let nested = || {
        inside(ExecuteRequest {
            wait_for_completion: Some(true),
            command: "echo $$".to_owned(),
            ..ExecuteRequest::default()
        })
    };
    let before = shell.run_as(nested()).await.output;
    for command in ["sleep 781", "bash -c \"trap '' INT TERM; sleep 782; sleep 782\""] {
        let done = shell.run_as(inside(limited(command, 0.5, OnTimeout::Kill))).await;
        // An interrupted command has no code there: over a connection it may still run.
        assert_eq!((done.status, done.on_timeout), (CommandStatus::Completed, Some(OnTimeout::Kill)), "{done:?}");
        // KILL has reached all of the group; on a busy machine one of them may still be ending.
        eventually("no program of it is left", async || {
            let left = server.client().processes(&shell.id).await.expect("listed").processes;
            left.iter().all(|process| !process.command_line.starts_with("sleep")).then_some(())
        })
        .await;
    }
    assert_eq!(shell.run_as(nested()).await.output, before);
}

#[tokio::test]
// promise: limit-9
async fn the_time_must_be_said_and_a_key_names_the_limit_too() {
    let server = Server::start();
    let shell = server.session().await;
    let http = &mut server.connect();
    let path = format!("/terminals/{}/execute", shell.id);
    let refused = http.ask("POST", &path, r#"{"command":"true","onTimeout":"kill"}"#).expect("an answer");
    assert_eq!(refused.problem(), (422, "invalid_field".to_owned(), "timeout".to_owned()));
    let key = [("Host", "localhost"), ("Idempotency-Key", "one")];
    let bearer = format!("Bearer {}", server.token());
    let headers = [key[0], key[1], ("Authorization", bearer.as_str())];
    let mut ask = |on_timeout: serde_json::Value| {
        let body = json!({ "command": "sleep 780", "timeout": 0.3, "onTimeout": on_timeout }).to_string();
        http.send("POST", &path, &headers, &body).expect("an answer")
    };
    let first = ask(json!("kill"));
    let again = ask(json!("kill"));
    assert_eq!((first.status, first.json()["exitCode"].as_i64()), (200, Some(130)));
    assert_eq!((again.status, &again.json()["id"]), (200, &first.json()["id"]));
    for other in [json!("interrupt"), json!("continue"), json!(null)] {
        assert_eq!(ask(other).problem().1, ErrorCode::KeyReused.as_str());
    }
}
