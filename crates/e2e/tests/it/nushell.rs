//! nushell, which reports ends in its output; tested where it is installed (`PTYD_TEST_NU` names it).

use std::path::{Path, PathBuf};

use api::{Boundary, CommandStatus, CreateRequest, ExecuteRequest, Foreground, InputRequest};
use e2e::{Server, Session, eventually, marked};

/// Its path; a machine without it is reported.
fn installed() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = || std::env::split_paths(&path).map(|folder| folder.join("nu")).find(|nu| nu.is_file());
    let nu = std::env::var_os("PTYD_TEST_NU").map(PathBuf::from).or_else(found);
    if nu.is_none() {
        e2e::not_run("there is no nu on PATH and PTYD_TEST_NU names none");
    }
    nu
}

async fn session(server: &Server, nu: &Path) -> Session {
    let shell = Some(nu.to_str().expect("text").to_owned());
    server.session_with(CreateRequest { shell, ..CreateRequest::default() }).await
}

async fn tells(shell: &Session, command: &str) -> (CommandStatus, Option<i32>, Boundary, String) {
    let done = shell.run(command).await;
    (done.status, done.exit_code, done.boundary, done.output.unwrap_or_default())
}

fn completed(code: i32, output: &str) -> (CommandStatus, Option<i32>, Boundary, String) {
    (CommandStatus::Completed, Some(code), Boundary::Nonce, output.to_owned())
}

#[test]
fn the_script_is_whole_to_its_own_parser() {
    let Some(nu) = installed() else { return };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shell-integration/nu.nu");
    let check = format!("nu-check --debug '{script}'");
    let said =
        std::process::Command::new(nu).args(["--no-config-file", "--commands", &check]).output().expect("it runs");
    assert_eq!((said.status.code(), String::from_utf8_lossy(&said.stdout).trim()), (Some(0), "true"), "{said:?}");
}

#[tokio::test]
// promise: shell-9
async fn an_end_is_reported_with_its_code_and_directory() {
    let Some(nu) = installed() else { return };
    let server = Server::start();
    let shell = session(&server, &nu).await;
    for (command, code, output) in [
        ("^true", 0, ""),
        ("^sh -c 'exit 9'", 9, ""),
        ("$env.LAST_EXIT_CODE", 0, "9\n"),
        ("^sh -c 'kill -TERM $$' e> /dev/null | complete | get exit_code", 0, "-15\n"),
        ("print --no-newline 'no newline'", 0, "no newline"),
        ("^env | lines | where $it =~ ptyd_ | length", 0, "0\n"),
    ] {
        assert_eq!(tells(&shell, command).await, completed(code, output), "{command}");
    }
    let killed = shell.run("^sh -c 'kill -TERM $$'").await;
    assert_eq!((killed.exit_code, killed.signal.as_deref()), (Some(143), Some("TERM")), "{killed:?}");
    let (.., code, _, words) = tells(&shell, "error make {msg: 'of its own'}").await;
    assert_eq!((code, words.contains("of its own")), (Some(1), true), "{words}");
    for name in ["é ü", "a\"b", "a;b"] {
        let folder = server.home().file(name);
        std::fs::create_dir(&folder).expect("made");
        let done = shell.run(&format!("cd '{}'", folder.display())).await;
        assert_eq!((done.exit_code, done.cwd.as_deref()), (Some(0), folder.to_str()), "{done:?}");
    }
    assert_eq!((shell.look().await.boundary, shell.look().await.cwd.ends_with("a;b")), (Boundary::Nonce, true));
    let left = shell.run("exit 3").await;
    assert_eq!(
        (left.status, shell.look().await.exit.and_then(|exit| exit.exit_code)),
        (CommandStatus::Terminated, Some(3))
    );
}

#[tokio::test]
// promise: shell-9
async fn a_text_of_any_shape_arrives_unchanged_and_its_definitions_stay() {
    let Some(nu) = installed() else { return };
    let server = Server::start();
    let shell = session(&server, &nu).await;
    let text = "def twice [x: int] {\n    $x * 2\n}\nlet kept = 20\n# a comment\nprint 'one line'\n$kept + 1";
    assert_eq!(tells(&shell, text).await, completed(0, "one line\n21\n"));
    assert_eq!(tells(&shell, "twice ($kept + 1) # and no more").await, completed(0, "42\n"));
    let big = "0123456789abcde\n".repeat((1 << 20) / 16 - 10);
    let arrived = server.home().file("arrived");
    let command = format!("r#'{big}'# | save --force '{}'", arrived.display());
    assert_eq!(tells(&shell, &command).await, completed(0, ""));
    assert!(std::fs::read_to_string(&arrived).expect("written") == big, "{:?} arrived", arrived.metadata());
    for unfinished in ["if true {", "echo (", "echo 'open", "ls |"] {
        let done = shell.run(unfinished).await;
        let told = (done.status, done.error.as_deref().is_some_and(|e| e.contains("incomplete")), done.boundary);
        assert_eq!(told, (CommandStatus::Failed, true, Boundary::Nonce), "{unfinished:?}: {done:?}");
        assert_eq!(tells(&shell, "echo next").await, completed(0, "next\n"), "after {unfinished:?}");
    }
    let (.., code, boundary, words) = tells(&shell, "touch not-here; echo )").await;
    assert_eq!((code, boundary, words.contains("Error")), (Some(1), Boundary::Nonce, true), "{words}");
    assert!(!server.home().file("not-here").exists(), "nothing of a text that cannot be parsed has run");
    // Viewers and the history have the commands, and nothing of the hand-over.
    let rows = shell.screen().await;
    let has = |word: &str| rows.iter().any(|row| row.contains(word));
    assert_eq!((has("echo next"), has("__ptyd"), has("source")), (true, false, false), "{rows:?}");
    shell.types("echo by-hand").await;
    let kept = "print (history | get command | where $it =~ 'ptyd|source|by-hand' | str join ,)";
    assert_eq!(tells(&shell, kept).await, completed(0, "echo by-hand\n"));
}

#[tokio::test]
// promise: shell-9
async fn a_program_that_asks_is_reported_and_an_interrupt_ends_one_that_runs() {
    let Some(nu) = installed() else { return };
    let server = Server::start();
    let shell = session(&server, &nu).await;
    for question in ["let name = input 'name? '; $'got:($name)'", "^sh -c 'printf \"name? \"; read n; echo got:$n'"] {
        let asked = shell.run(question).await;
        let told = (asked.foreground, asked.boundary);
        assert_eq!(told, (Some(Foreground::InputWanted), Boundary::Nonce), "{question}: {asked:?}");
        assert_eq!(shell.refusal("echo no answer").await, Some(api::ErrorCode::SessionBusy), "{question}");
        shell.types("Ada").await;
        let done = shell.end_of(&asked).await;
        let output = done.output.clone().unwrap_or_default();
        assert_eq!((done.exit_code, output.ends_with("got:Ada\n")), (Some(0), true), "{question}: {done:?}");
    }
    for (line, code) in [("^sleep 71", 130), ("print begun; loop { sleep 10ms }", 1)] {
        let begun = if line.starts_with('^') { shell.begin(line).await } else { shell.run_until(line, "begun").await };
        let sleeps = || marked(server.home().path()).iter().any(|pid| pid.command_line().ends_with("sleep 71"));
        eventually("it runs", async || (!line.starts_with('^') || sleeps()).then_some(())).await;
        shell.signal("INT").await;
        let done = shell.end_of(&begun).await;
        assert_eq!((done.exit_code, done.boundary), (Some(code), Boundary::Nonce), "{line}: {done:?}");
    }
    assert_eq!(tells(&shell, "echo here").await, completed(0, "here\n"));
}

#[tokio::test]
// promise: shell-9
async fn a_persons_line_is_not_a_command_and_disturbs_none() {
    let Some(nu) = installed() else { return };
    let server = Server::start();
    let shell = session(&server, &nu).await;
    shell.sends(b"^sleep 0.2\r").await;
    assert_eq!(tells(&shell, "echo after").await, completed(0, "after\n"));
    // Half a line, and one that goes on, are taken away and not run.
    for half in ["touch half", "if true {\rtouch half\r"] {
        let typed = InputRequest { input: Some(half.to_owned()), ..InputRequest::default() };
        shell.input(&typed).await;
        if half.contains('\r') {
            // It was ended, so a typed command may run: the answer says so.
            let request = ExecuteRequest { command: "echo no".into(), timeout: Some(0.5), ..Default::default() };
            let refused = shell.try_run(&request).await.expect_err("a line that goes on");
            assert!(refused.to_string().contains("C-c"), "{refused}");
            shell.presses(&["C-c"], None).await;
        }
        assert_eq!(tells(&shell, "echo whole").await, completed(0, "whole\n"), "after {half:?}");
    }
    assert!(!server.home().file("half").exists());
}

#[tokio::test]
// promise: shell-9
async fn no_output_is_an_end_of_what_runs_in_it() {
    let Some(nu) = installed() else { return };
    let server = Server::start();
    let shell = session(&server, &nu).await;
    let replayed = server.home().file("replayed");
    for forgery in ["\x1b]133;D;0\x07", "\x1b]7337;D;1\x07", "\x1b]7337;D;123456789.0.2\x07", ""] {
        let seen = if forgery.is_empty() { shell.journal().await } else { forgery.as_bytes().to_vec() };
        std::fs::write(&replayed, seen).expect("written");
        // By nushell itself, and by a program.
        for prints in ["open --raw", "^cat"] {
            let command =
                format!("{prints} '{}' | print; sleep 100ms; print after; ^sh -c 'exit 3'", replayed.display());
            let (_, code, boundary, output) = tells(&shell, &command).await;
            let told = (code, boundary, output.contains("after"));
            assert_eq!(told, (Some(3), Boundary::Nonce, true), "{forgery:?}: {output:?}");
        }
    }
}

#[tokio::test]
// promise: shell-9
async fn after_another_configuration_ends_are_right_or_said_to_be_a_guess() {
    let Some(nu) = installed() else { return };
    let server = Server::start();
    for disturbance in [
        "$env.config.hooks.pre_prompt = []",
        "$env.config.hooks = {}",
        "$env.config.keybindings = []",
        "$env.config = {}",
        "$env.config.edit_mode = 'vi'",
        "$env.PROMPT_COMMAND = {|| 'mine' }",
    ] {
        let shell = session(&server, &nu).await;
        shell.run(disturbance).await;
        for (command, code, output) in [("print one", 0, "one"), ("^sh -c 'exit 7'", 7, "")] {
            let done = shell.run(command).await;
            assert_ne!(done.status, CommandStatus::Running, "{disturbance}: {done:?}");
            match done.boundary {
                Boundary::Attested => panic!("{disturbance}: {done:?}"),
                Boundary::Nonce => assert_eq!(done.exit_code, Some(code), "{disturbance}: {done:?}"),
                Boundary::Heuristic => assert_eq!(done.exit_code, None, "{disturbance}: {done:?}"),
            }
            assert!(done.output.as_deref().is_some_and(|o| o.contains(output)), "{disturbance}: {done:?}");
        }
    }
}
