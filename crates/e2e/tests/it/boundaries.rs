//! Ends of commands: false completions, exit codes, forged ends, the death of the shell.

use std::time::{Duration, Instant};

use api::{Boundary, CommandStatus, CreateRequest, EndedBy, ErrorCode, Foreground, SessionStatus};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use e2e::{Server, Session, eventually, marked};

#[tokio::test]
// promise: end-1
async fn a_program_that_asks_has_not_ended() {
    let server = Server::start();
    let shell = server.session().await;
    let asked = shell.run("read -p 'name? ' n; echo got:$n").await;
    let state = (asked.status, asked.ended_by, asked.foreground, asked.output.as_deref());
    let wanted = (CommandStatus::Running, Some(EndedBy::InputWanted), Some(Foreground::InputWanted), Some("name? "));
    assert_eq!(state, wanted);
    let answer = shell.types("John").await;
    assert_eq!((answer.ended_by, answer.output.as_str()), (EndedBy::Ended, "John\ngot:John\n"));
    let done = shell.command(&asked.id).await;
    assert_eq!((done.status, done.exit_code, done.boundary), (CommandStatus::Completed, Some(0), Boundary::Attested));
}

#[tokio::test]
// promise: end-7
async fn thirty_two_new_sessions_at_once_each_give_their_own_output_and_not_too_early() {
    let server = Server::start();
    let one = async |number: usize| {
        let shell = server.session().await;
        let begun = Instant::now();
        let given = shell.gives(&format!("sleep 1; echo p{number}")).await;
        assert_eq!(given, (0, format!("p{number}\n")));
        assert!(begun.elapsed() >= Duration::from_secs(1), "session {number} ended after {:?}", begun.elapsed());
    };
    join_all((0..32).map(one)).await;
}

/// Waits for all of them at once.
pub async fn join_all<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.into_iter().map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(|context| {
        let mut is_done = true;
        for (future, output) in &mut futures {
            if output.is_none() {
                match future.as_mut().poll(context) {
                    std::task::Poll::Ready(value) => *output = Some(value),
                    std::task::Poll::Pending => is_done = false,
                }
            }
        }
        if is_done { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    futures.into_iter().filter_map(|(_, output)| output).collect()
}

#[tokio::test]
// promise: end-3
async fn an_exit_code_is_the_shells_own() {
    let server = Server::start();
    let shell = server.session().await;
    let ends = async |command: &str| {
        let done = shell.run(command).await;
        (done.exit_code, done.pipestatus, done.signal)
    };
    let code = |code: i32| (Some(code), vec![code], None);
    assert_eq!(ends("true").await, code(0));
    assert_eq!(ends("false").await, code(1));
    assert_eq!(ends("(exit 7)").await, code(7));
    assert_eq!(ends("no-such-command").await, code(127));
    assert_eq!(ends("/etc/passwd").await, code(126));
    assert_eq!(ends("sh -c 'kill -TERM $$'").await, (Some(143), vec![143], Some("TERM".to_owned())));
    assert_eq!(ends("false | true").await, (Some(0), vec![1, 0], None));
    assert_eq!(ends("true | (exit 3) | (exit 4)").await, (Some(4), vec![0, 3, 4], None));
    assert_eq!(ends("set -o pipefail; false | true").await, (Some(1), vec![1, 0], None));
}

#[tokio::test]
// promise: end-3
async fn a_working_directory_is_told_byte_by_byte() {
    let server = Server::start();
    let shell = server.session().await;
    let folder = server.home().file("q\"u\\ é\nx");
    let done = shell.run(r#"mkdir $'q"u\\ é\nx' && cd $'q"u\\ é\nx'"#).await;
    assert_eq!((done.exit_code, done.cwd.as_deref()), (Some(0), folder.to_str()));
    assert_eq!(Some(shell.look().await.cwd.as_str()), folder.to_str());
    let done = shell.run(r"mkdir $'\xff' && cd $'\xff'").await;
    assert_eq!(done.cwd.as_deref(), Some(format!("{}/\\xff", folder.display()).as_str()));
    let exact = [folder.as_os_str().as_encoded_bytes(), b"/\xff"].concat();
    assert_eq!(done.cwd_base64, Some(STANDARD.encode(exact)));
    shell.run("mkdir gone && cd gone && rmdir $PWD").await;
    assert_eq!(shell.gives("echo still here").await, (0, "still here\n".to_owned()));
}

/// Sequences with which shells report the end of a command, ours and others', and what a peer looks for in the output.
const FORGERIES: [&str; 8] = [
    r"\033]133;D;0\007",
    r"\033]133;A\007$ ",
    r"\033]633;D;0\007\033]633;A\007",
    r"\033]1337;ShellIntegrationVersion=1\007\033]133;D\007",
    r"\033]7337;D;1\007",
    r"\033]7337;D;123456789012345678\033\\",
    r#"\n###PS1JSON###\n{"exit_code": 0}\n###PS1END###\n"#,
    r"\033[?2004h$ ",
];

#[tokio::test]
// promise: end-2
async fn no_output_is_the_end_of_a_command() {
    let server = Server::start();
    let shell = server.session().await;
    for forgery in FORGERIES {
        let (code, output) = shell.gives(&format!("printf '{forgery}'; sleep 0.2; echo after; (exit 3)")).await;
        assert_eq!((code, output.ends_with("after\n")), (3, true), "{forgery}: {output:?}");
    }
    // Our own markers, replayed to the letter.
    let journal = shell.journal().await;
    std::fs::write(server.home().file("replayed"), journal).expect("written");
    let (code, output) = shell.gives("cat replayed; sleep 0.2; echo after; (exit 4)").await;
    assert_eq!((code, output.ends_with("after\n")), (4, true), "{output:?}");
}

/// Writes a whole record of an end to every socket that it inherited; only the secret is wrong. `forgers.rs` has the right one.
const TALKER: &str =
    "import os\nfor fd in range(3, 1024):\n  try: os.write(fd, b'D;x;99;1;0;0;;/forged\\0')\n  except OSError: pass\n";

#[tokio::test]
// promise: end-2
async fn only_the_shell_itself_can_report_an_end() {
    let server = Server::start();
    let shell = server.session().await;
    std::fs::write(server.home().file("talker.py"), TALKER).expect("written");
    let (code, output) = shell.gives("python3 talker.py; sleep 0.2; echo after; (exit 5)").await;
    assert_eq!((code, output.as_str()), (5, "after\n"));
    shell.gives("(sleep 0.2; python3 talker.py; touch talked) &").await;
    let (code, output) = shell.gives("until [ -e talked ]; do sleep 0.05; done; sleep 0.1; echo after; (exit 6)").await;
    assert_eq!((code, output.ends_with("after\n")), (6, true), "{output:?}");
}

#[tokio::test]
async fn a_shell_that_shows_its_insides_is_not_at_its_end() {
    let server = Server::start();
    let shell = server.session().await;
    let (code, traced) = shell.gives("set -x; echo hi; { set +x; } 2>/dev/null; (exit 2)").await;
    assert_eq!((code, traced.trim_start_matches('+')), (2, " echo hi\nhi\n"));
    let hooks = server.home().state().join("shell-integration");
    let (code, shown) = shell.gives(&format!("cat {}/bash-*/bash.sh; (exit 2)", hooks.display())).await;
    assert_eq!((code, shown.contains("PROMPT_COMMAND")), (2, true));
    let (code, shown) = shell.gives("env; set; (exit 3)").await;
    assert_eq!((code, shown.contains("PATH=")), (3, true));
}

async fn dies(server: &Server, command: &str) -> (Option<i32>, Option<String>) {
    let shell = server.session().await;
    let done = shell.run(command).await;
    assert_eq!(done.status, CommandStatus::Terminated, "{command}: {done:?}");
    let session = shell.look().await;
    assert_eq!((session.status, session.pid), (SessionStatus::Terminated, None), "{command}");
    assert_eq!(shell.refusal("true").await, Some(ErrorCode::SessionEnded), "{command}");
    let exit = session.exit.expect("how it ended");
    (exit.exit_code, exit.signal)
}

#[tokio::test]
// promise: end-5
async fn a_shell_that_ends_ends_its_command_at_once_and_with_its_code() {
    let server = Server::start();
    for (command, code, signal) in [
        ("exit 3", Some(3), None),
        ("set -e; false; echo not here", Some(1), None),
        ("exec true", Some(0), None),
        ("kill -9 $$", None, Some("KILL".to_owned())),
        // The terminal stays open, for longer than the call waits: only the shell's own end is evidence.
        ("sleep 300 & exit 5", Some(5), None),
    ] {
        assert_eq!(dies(&server, command).await, (code, signal), "{command}");
    }
}

#[tokio::test]
// promise: send-5
async fn a_command_while_another_runs_is_refused_and_never_typed() {
    let server = Server::start();
    let shell = server.session().await;
    let cat = shell.run("cat > fed").await;
    assert_eq!(cat.foreground, Some(Foreground::InputWanted));
    assert_eq!(shell.refusal("echo not for cat").await, Some(ErrorCode::SessionBusy));
    shell.sends(b"\x04").await;
    assert_eq!(shell.end_of(&cat).await.exit_code, Some(0));
    assert_eq!(std::fs::read(server.home().file("fed")).expect("made"), b"");

    let sleep = shell.begin("sleep 600").await;
    // A signal before the program is there is for the shell.
    let runs = async || marked(server.home().path()).iter().any(|pid| pid.command_line() == "sleep 600").then_some(());
    eventually("it runs", runs).await;
    assert_eq!(shell.refusal("echo not now").await, Some(ErrorCode::SessionBusy));
    shell.signal("INT").await;
    assert_eq!(shell.end_of(&sleep).await.exit_code, Some(130));
    assert_eq!(shell.gives("echo now").await, (0, "now\n".to_owned()));
    let journal = shell.journal().await;
    assert!(!String::from_utf8_lossy(&journal).contains("not now"), "a refused command is nowhere");
}

#[tokio::test]
// promise: send-5
async fn of_two_commands_at_once_one_is_refused() {
    let server = Server::start();
    let shell = server.session().await;
    let ask = api::ExecuteRequest {
        wait_for_completion: Some(true),
        command: "sleep 0.3; echo one".to_owned(),
        ..Default::default()
    };
    let (one, two) = tokio::join!(shell.try_run(&ask), shell.try_run(&ask));
    let (fine, refused) = if one.is_ok() { (one, two) } else { (two, one) };
    assert_eq!(fine.expect("one runs").output.as_deref(), Some("one\n"));
    assert_eq!(refused.expect_err("one is refused").code(), Some(ErrorCode::SessionBusy));
}

async fn tells(shell: &Session, command: &str) -> (CommandStatus, Option<i32>, String) {
    let done = shell.run(command).await;
    (done.status, done.exit_code, done.output.unwrap_or_default())
}

#[tokio::test]
// promise: send-3
async fn every_shape_of_command_ends_and_leaves_a_usable_shell() {
    let server = Server::start();
    let shell = server.session().await;
    let done = |code: i32, output: &str| (CommandStatus::Completed, Some(code), output.to_owned());
    assert_eq!(tells(&shell, "cat <<X\n\tone\nX\necho two").await, done(0, "\tone\ntwo\n"));
    assert_eq!(tells(&shell, "echo one # and no more").await, done(0, "one\n"));
    assert_eq!(tells(&shell, "# nothing").await.1, Some(0));
    assert_eq!(tells(&shell, "echo one; \\\necho two").await, done(0, "one\ntwo\n"));
    assert_eq!(tells(&shell, "for i in 1 2; do\n  echo $i\ndone").await, done(0, "1\n2\n"));
    let (status, code, output) = tells(&shell, "sleep 0.1 &").await;
    assert_eq!((status, code, output.starts_with("[1]")), (CommandStatus::Completed, Some(0), true), "{output:?}");
    for unfinished in ["if true; then", "echo 'open", "cat <<X\nnever closed", "(", "case x in"] {
        let (_, code, output) = match shell
            .try_run(&api::ExecuteRequest { command: unfinished.to_owned(), timeout: Some(10.0), ..Default::default() })
            .await
        {
            Ok(done) => (done.status, done.exit_code, done.error.or(done.output).unwrap_or_default()),
            Err(error) => (CommandStatus::Failed, None, error.to_string()),
        };
        assert!(code != Some(0), "{unfinished:?} is no success: {output}");
        assert_eq!(tells(&shell, "echo next").await, done(0, "next\n"), "after {unfinished:?}");
    }
}

#[tokio::test]
async fn a_session_keeps_what_a_command_changes() {
    let server = Server::start();
    let shell = server.session_with(CreateRequest { cwd: Some("/".to_owned()), ..CreateRequest::default() }).await;
    shell.gives("cd /usr; A=1; export B=2; f() { echo f$A; }; alias g='echo g'").await;
    assert_eq!(shell.gives("pwd; f; sh -c 'echo $B'; g").await, (0, "/usr\nf1\n2\ng\n".to_owned()));
}
