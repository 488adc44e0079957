//! Lines typed at the prompt: reported as running by the kernel's state, in every shell, and no command is handed over
//! meanwhile.

use api::{
    CreateRequest, EndedBy, ErrorCode, ExecuteRequest, Foreground, InputRequest, NumberOrName, SignalRequest,
    WaitRequest,
};
use e2e::shells::{ALL, Dialect, Trial, each};
use e2e::{Pid, Server, count, eventually};
use rustix::process::Signal;

/// Waits until the session says this of its foreground.
async fn becomes(t: &Trial<'_>, what: Foreground) {
    let name = format!("{what:?} in {:?}", t.dialect);
    eventually(&name, async || (t.shell.look().await.foreground == what).then_some(())).await;
}

#[tokio::test]
// promise: shell-13
async fn a_persons_line_is_reported_as_running_and_refuses_commands() {
    each("20 typing by a person", async |t| {
        let quiet = r"sh -c 'stty -echo; read x; stty echo'";
        let screen = r#"sh -c 'printf "\033[?1049h"; read x; printf "\033[?1049l"'"#;
        let typed = [
            ("sleep 60", Foreground::Running, &b"\x03"[..]),
            ("sh -c 'read x'", Foreground::InputWanted, b"mine\r"),
            (quiet, Foreground::PasswordWanted, b"mine\r"),
            (screen, Foreground::Fullscreen, b"mine\r"),
        ];
        for (line, told, ends) in typed {
            t.shell.sends(format!("{line}\r").as_bytes()).await;
            becomes(t, told).await;
            assert_eq!(t.shell.refusal("echo no").await, Some(ErrorCode::SessionBusy), "{:?}: {line}", t.dialect);
            t.shell.sends(ends).await;
            becomes(t, Foreground::Idle).await;
        }
        assert_eq!(t.gives("echo after").await, t.is(0, "after\n"));
        assert!(!String::from_utf8_lossy(&t.shell.journal().await).contains("echo no"), "{:?}", t.dialect);
    })
    .await;
}

#[tokio::test]
// promise: shell-13
async fn a_persons_stopped_line_is_reported_as_stopped() {
    each("20 typing by a person", async |t| {
        t.shell.sends(b"sh -c 'read x'\r").await;
        becomes(t, Foreground::InputWanted).await;
        t.shell.presses(&["C-z"], None).await;
        becomes(t, Foreground::Stopped).await;
        assert_eq!(t.gives("echo beside").await, t.is(0, "beside\n"));
        assert_eq!(t.shell.look().await.foreground, Foreground::Idle, "{:?}", t.dialect);
        t.shell.sends(b"fg\r").await;
        becomes(t, Foreground::InputWanted).await;
        t.shell.sends(b"mine\r").await;
        becomes(t, Foreground::Idle).await;
    })
    .await;
}

#[tokio::test]
// promise: shell-13
async fn waits_cover_a_persons_line_and_typed_ahead_lines() {
    each("20 typing by a person", async |t| {
        t.shell.sends(b"sleep 0.3\r").await;
        let wait = WaitRequest { timeout: Some(20.0), ..WaitRequest::default() };
        assert_eq!(t.shell.wait(&wait).await.ended_by, EndedBy::Ended, "{:?}", t.dialect);
        assert_eq!(t.shell.look().await.foreground, Foreground::Idle, "{:?}", t.dialect);
        t.shell.sends(b"sleep 0.2\rsh -c 'read x'\r").await;
        becomes(t, Foreground::InputWanted).await;
        t.shell.sends(b"mine\r").await;
        becomes(t, Foreground::Idle).await;
        // A line without its end delays no request.
        t.shell.sends(b"half").await;
        assert_eq!(t.shell.wait(&wait).await.ended_by, EndedBy::Ended, "{:?}", t.dialect);
        assert_eq!(t.shell.look().await.foreground, Foreground::Idle, "{:?}", t.dialect);
    })
    .await;
}

#[tokio::test]
// promise: shell-13
async fn a_wait_covers_every_line_that_was_typed_before_it() {
    each("20 typing by a person", async |t| {
        let wait = WaitRequest { timeout: Some(20.0), ..WaitRequest::default() };
        t.shell.sends(b"sleep 0.2\r").await;
        t.shell.sends(b"sleep 0.2\r").await;
        let folder = tempfile::tempdir().expect("a folder");
        let [last, read] = ["last", "read"].map(|name| folder.path().join(name));
        t.shell.sends(format!("sleep 0.3; touch {}\r", last.display()).as_bytes()).await;
        assert_eq!(t.shell.wait(&wait).await.ended_by, EndedBy::Ended, "{:?}", t.dialect);
        assert!(last.exists(), "it ended before the last line: {:?}", t.dialect);
        // A program reads the second line, so the shell reports one end.
        t.shell.sends(format!("sh -c 'read x; sleep 0.1; touch {}'\r", read.display()).as_bytes()).await;
        becomes(t, Foreground::InputWanted).await;
        t.shell.sends(b"mine\r").await;
        assert_eq!(t.shell.wait(&wait).await.ended_by, EndedBy::Ended, "{:?}", t.dialect);
        assert!(read.exists(), "it ended before the only line of the shell: {:?}", t.dialect);
        becomes(t, Foreground::Idle).await;
    })
    .await;
}

/// Runs until the file is there, in every shell.
fn until_there(file: &std::path::Path) -> String {
    format!("sh -c 'until test -e {}; do sleep 0.02; done'", file.display())
}

#[tokio::test]
// promise: crash-2
async fn a_wait_after_kill_9_covers_the_lines_that_were_typed_while_another_ran() {
    let server = Server::start();
    let wait = WaitRequest { timeout: Some(60.0), ..WaitRequest::default() };
    for dialect in ALL {
        let shell = dialect.session(&server).await;
        let folder = tempfile::tempdir().expect("a folder");
        let [go, last] = ["go", "last"].map(|name| folder.path().join(name));
        shell.sends(format!("{}\r", until_there(&go)).as_bytes()).await;
        eventually("the line runs", async || (shell.look().await.foreground == Foreground::Running).then_some(()))
            .await;
        shell.sends(b"sleep 0.2\r").await;
        shell.sends(format!("sleep 0.3; touch {}; sh -c 'exit 3'\r", last.display()).as_bytes()).await;
        server.kill9();
        server.again();
        let releases = async { std::fs::write(&go, "").expect("a file") };
        let (answer, ()) = tokio::join!(shell.wait(&wait), releases);
        assert_eq!((answer.ended_by, answer.line_exit_code), (EndedBy::Ended, Some(3)), "{dialect:?}");
        assert!(last.exists(), "it ended before the last line: {dialect:?}");
        shell.ends().await;
    }
}

#[tokio::test]
// promise: shell-13
async fn the_prompt_of_an_interrupt_is_not_the_end_of_the_next_line() {
    let server = Server::start();
    let wait = WaitRequest { timeout: Some(60.0), ..WaitRequest::default() };
    for (dialect, hook) in [
        (Dialect::Bash, "PROMPT_COMMAND='sleep 0.02'"),
        (Dialect::Zsh, "precmd() { sleep 0.02; }"),
        (Dialect::Fish, "function fish_prompt; sleep 0.02; echo -n '$ '; end"),
    ] {
        let shell = dialect.session(&server).await;
        shell.run(hook).await;
        let folder = tempfile::tempdir().expect("a folder");
        for round in 0..count(12, 200) {
            let last = folder.path().join(round.to_string());
            if round % 3 == 2 {
                shell.sends(b"sleep 0.2\r").await;
            }
            shell.sends(b"\x03").await;
            shell.sends(format!("sleep 0.1; touch {}; sh -c 'exit 3'\r", last.display()).as_bytes()).await;
            let answer = shell.wait(&wait).await;
            assert_eq!(answer.ended_by, EndedBy::Ended, "{dialect:?}, round {round}");
            assert!(last.exists(), "it ended before the line: {dialect:?}, round {round}");
            assert!([None, Some(3)].contains(&answer.line_exit_code), "{dialect:?}, round {round}: {answer:?}");
        }
    }
}

#[tokio::test]
// promise: shell-13
async fn a_wait_covers_a_line_that_was_typed_while_a_command_ran() {
    each("20 typing by a person", async |t| {
        let wait = WaitRequest { timeout: Some(20.0), ..WaitRequest::default() };
        let folder = tempfile::tempdir().expect("a folder");
        let [go, last] = ["go", "last"].map(|name| folder.path().join(name));
        let command = t.shell.begin(&until_there(&go)).await;
        t.shell.sends(format!("sleep 0.3; touch {}; sh -c 'exit 3'\r", last.display()).as_bytes()).await;
        std::fs::write(&go, "").expect("a file");
        t.shell.end_of(&command).await;
        let answer = t.shell.wait(&wait).await;
        assert_eq!(answer.ended_by, EndedBy::Ended, "{:?}", t.dialect);
        assert!(last.exists(), "it ended before the line: {:?}", t.dialect);
        // The command reads the line.
        let command = t.shell.begin("head -n 1").await;
        t.shell.sends(b"mine\r").await;
        t.shell.end_of(&command).await;
        let answer = t.shell.wait(&wait).await;
        assert_eq!((answer.ended_by, answer.line_exit_code), (EndedBy::Ended, None), "{:?}", t.dialect);
    })
    .await;
}

#[tokio::test]
// promise: shell-13
async fn a_wait_tells_the_code_of_the_last_typed_line_and_of_nothing_else() {
    each("20 typing by a person", async |t| {
        let wait = WaitRequest { timeout: Some(20.0), ..WaitRequest::default() };
        let name = t.shell.id.as_str();
        let code = async || t.shell.wait(&wait).await.line_exit_code;
        assert_eq!(code().await, None, "no line was typed: {:?}", t.dialect);
        for expected in [3, 0, 4] {
            t.shell.sends(format!("sh -c 'exit {expected}'\r").as_bytes()).await;
            assert_eq!(code().await, Some(expected), "{:?}", t.dialect);
            let told = t.server.ptyd(&["wait", name]).output().expect("it runs");
            let printed = String::from_utf8_lossy(&told.stdout).into_owned();
            assert_eq!(printed, format!("ended {expected}\n"), "{:?}", t.dialect);
            assert_eq!(told.status.code(), Some(i32::from(expected != 0)), "{:?}", t.dialect);
        }
        t.shell.run("true").await;
        assert_eq!(code().await, None, "a command ran after it: {:?}", t.dialect);
    })
    .await;
}

#[tokio::test]
// promise: shell-14
async fn a_wait_ends_at_the_prompt_of_a_shell_that_exec_has_started() {
    each("20 typing by a person", async |t| {
        let wait = WaitRequest { timeout: Some(20.0), ..WaitRequest::default() };
        t.shell.sends(format!("exec {}\r", t.dialect.name()).as_bytes()).await;
        assert_eq!(t.shell.wait(&wait).await.ended_by, EndedBy::Ended, "{:?}", t.dialect);
        let folder = tempfile::tempdir().expect("a folder");
        let last = folder.path().join("last");
        t.shell.sends(format!("sleep 0.3; touch {}\r", last.display()).as_bytes()).await;
        assert_eq!(t.shell.wait(&wait).await.ended_by, EndedBy::Ended, "{:?}", t.dialect);
        assert!(last.exists(), "it ended before the line: {:?}", t.dialect);
    })
    .await;
}

#[tokio::test]
// promise: crash-2
async fn a_line_that_a_program_has_read_does_not_run_for_the_next_server() {
    let server = Server::start();
    let shell = server.session().await;
    shell.sends(b"sh -c 'read x'\r").await;
    eventually("a question", async || (shell.look().await.foreground == Foreground::InputWanted).then_some(())).await;
    shell.sends(b"mine\r").await;
    let wait = WaitRequest { timeout: Some(20.0), ..WaitRequest::default() };
    assert_eq!(shell.wait(&wait).await.ended_by, EndedBy::Ended);
    server.kill9();
    server.again();
    eventually("the prompt", async || (shell.look().await.foreground == Foreground::Idle).then_some(())).await;
}

#[tokio::test]
// promise: signal-2
async fn an_interrupt_discards_unread_input() {
    each("6 interrupts", async |t| {
        let sleeper = t.shell.begin("sleep 600").await;
        t.shell.sends(b"echo leaked >>leaked\r").await;
        let flood = InputRequest { input: Some("echo flood >>leaked\r".repeat(2_000)), ..InputRequest::default() };
        assert_eq!(t.shell.input_refusal(&flood).await, Some(ErrorCode::InputStalled), "{:?}", t.dialect);
        t.shell.sends(b"\x03").await;
        let interrupted = t.shell.end_of(&sleeper).await;
        assert_eq!(interrupted.signal.as_deref(), Some("INT"), "{:?}: {interrupted:?}", t.dialect);
        assert_eq!(t.gives("echo after").await, t.is(0, "after\n"));
        for round in 0..20 {
            t.shell.sends(b"echo half").await;
            t.shell.sends(b"\x03").await;
            let whole = t.shell.run("echo whole").await;
            assert_eq!(whole.output.as_deref(), Some("whole\n"), "round {round} in {:?}: {whole:?}", t.dialect);
        }
        // The shell itself is at work.
        let turns = if t.dialect.is_fish() { "while true; end" } else { "while :; do :; done" };
        let turns = t.shell.run_until(&format!("echo begun; {turns}"), "begun").await;
        t.shell.sends(b"echo leaked >>leaked\r").await;
        t.shell.sends(b"\x03").await;
        t.shell.end_of(&turns).await;
        assert_eq!(t.gives("test -e leaked && echo leaked; true").await, t.is(0, ""));
    })
    .await;
}

#[tokio::test]
// promise: end-10
async fn input_and_signals_that_end_their_session_succeed() {
    let server = Server::start();
    for _ in 0..count(20, 200) {
        let shell = server.session().await;
        let typed = InputRequest { input: Some("exit 3".to_owned()), end_with_newline: true, ..Default::default() };
        server.client().input(&shell.id, &typed, None).await.expect("it was typed");
        let shell = server.session().await;
        let name = NumberOrName::Name("KILL".to_owned());
        let killed = SignalRequest { signal: name, target: Some(NumberOrName::Name("session".to_owned())) };
        server.client().signal(&shell.id, &killed).await.expect("it was sent");
    }
}

#[tokio::test]
// promise: shell-6
async fn a_program_without_hooks_is_never_sent_a_key_of_ptyd() {
    let server = Server::start();
    let request = CreateRequest { shell: Some("sqlite3".to_owned()), ..CreateRequest::default() };
    let shell = server.session_with(request).await;
    // It reads again before its command is old enough to have ended.
    for millis in (0..150).step_by(10) {
        let command = format!(".shell sleep 0.{millis:03}");
        let done = shell.run(&command).await;
        assert_eq!(done.ended_by, Some(EndedBy::Ended), "{command}: {done:?}");
    }
    let shown = shell.journal().await.escape_ascii().to_string();
    assert!(!shown.contains("338~") && !shown.contains("...>"), "{shown}");
}

#[tokio::test]
// promise: send-1
async fn input_before_a_commands_beginning_reaches_it_as_a_whole_line() {
    let server = Server::start();
    for name in ["bash", "zsh", "fish"] {
        let request = CreateRequest { shell: Some(name.to_owned()), ..CreateRequest::default() };
        let shell = server.session_with(request).await;
        shell.run("true").await;
        let pid = Pid::new(shell.look().await.pid.expect("it lives"));
        // Stopped, it does not read the keys that hand the command over, so its editor still has the terminal. If it was
        // stopped before its editor had it, the server refuses the command.
        let request = ExecuteRequest {
            command: "head -n 1".to_owned(),
            wait_for_completion: Some(false),
            ..ExecuteRequest::default()
        };
        let reads = eventually("it is stopped at its editor", async || {
            pid.signal(Signal::STOP);
            let reads = shell.try_run(&request).await.ok();
            if reads.is_none() {
                pid.signal(Signal::CONT);
            }
            reads
        })
        .await;
        let goes_on = async {
            // The holder does one request after the other, and this one behind the input.
            let size = api::Dimensions { cols: 100, rows: 24 };
            server.client().resize(&shell.id, size).await.expect("it lives");
            pid.signal(Signal::CONT);
        };
        let (_, ()) = tokio::join!(shell.types("go"), goes_on);
        let done = shell.end_of(&reads).await;
        // Whether it was echoed depends on when the shell has switched the echo on.
        assert!(
            done.exit_code == Some(0) && done.output.as_deref().is_some_and(|o| o.ends_with("go\n")),
            "{name}: {done:?}"
        );
    }
}
