//! Shells inside of a session's shell: commands in them, and the checks that each of them has to pass.

use api::{
    Boundary, CommandExecution, CommandStatus, EndedBy, ErrorCode, ExecuteRequest, Foreground, InputRequest,
    WaitRequest,
};

use crate::{PATIENCE, Session, eventually};

/// A request for a command in the shell inside.
pub fn ask(command: &str) -> ExecuteRequest {
    ExecuteRequest {
        command: command.to_owned(),
        inside: true,
        timeout: Some(PATIENCE.as_secs_f64()),
        ..ExecuteRequest::default()
    }
}

/// Runs a command in the shell inside.
pub async fn inside(shell: &Session, command: &str) -> CommandExecution {
    shell.run_as(ask(command)).await
}

/// The result of a nested command, which its mark reports.
pub async fn gives(shell: &Session, command: &str) -> (i32, String) {
    let done = inside(shell, command).await;
    let told = (done.status, done.boundary, done.ended_by);
    assert_eq!(told, (CommandStatus::Completed, Boundary::Nonce, Some(EndedBy::Ended)), "{command}: {done:?}");
    (done.exit_code.expect("completed"), done.output.unwrap_or_default())
}

/// Starts a command in the shell inside that prints `begun` and goes on.
pub async fn begins(shell: &Session, command: &str) -> CommandExecution {
    let begun = shell.run_as(ExecuteRequest { wait_for: Some("begun".to_owned()), ..ask(command) }).await;
    assert_eq!(
        (begun.status, begun.ended_by),
        (CommandStatus::Running, Some(EndedBy::Matched)),
        "{command}: {begun:?}"
    );
    begun
}

/// Starts a program that is a shell, and waits for its prompt.
pub async fn enters(shell: &Session, enter: &str) -> CommandExecution {
    let entered = shell.run(enter).await;
    let told = (entered.status, entered.ended_by);
    assert_eq!(told, (CommandStatus::Running, Some(EndedBy::InputWanted)), "{enter}: {entered:?}");
    entered
}

/// Runs commands in the shell that this starts, and leaves it.
pub async fn runs_in(shell: &Session, enter: &str) {
    let outer = enters(shell, enter).await;
    assert_eq!(gives(shell, "echo one; echo two").await, (0, "one\ntwo\n".to_owned()), "{enter}");
    assert_eq!(gives(shell, "sh -c 'exit 7'").await, (7, String::new()), "{enter}");
    let lines = "cd /\nprintf '%s|' 'a b' \"it's\" 100% '\\n' é '!1'\necho";
    let (code, output) = gives(shell, lines).await;
    // fish takes no backslash as it is there.
    assert_eq!((code, output.replace("\n|", "\\n|")), (0, "a b|it's|100%|\\n|é|!1|\n".to_owned()), "{enter}");
    assert_eq!(gives(shell, "pwd").await, (0, "/\n".to_owned()), "{enter}");
    // Neither printed words nor an echo of what was typed are a mark.
    assert_eq!(gives(shell, r"printf '\033]7337;D;0.0\007x\n'").await, (0, "x\n".to_owned()), "{enter}");
    // The advice comes once the kernel has shown the prompt.
    eventually("the refusal says how", async || {
        let refused = shell.try_run(&ExecuteRequest { inside: false, ..ask("echo no") }).await.expect_err("busy");
        assert_eq!(refused.code(), Some(ErrorCode::SessionBusy), "{enter}");
        refused.to_string().contains("with inside").then_some(())
    })
    .await;
    let left = inside(shell, "exit 4").await;
    assert_eq!((left.status, left.exit_code), (CommandStatus::Completed, None), "{enter}: {left:?}");
    assert_eq!(left.error.as_deref(), Some("the inner shell has ended: exit 4"), "{enter}");
    assert_eq!(shell.end_of(&outer).await.exit_code, Some(4), "{enter}");
    assert_eq!(shell.gives("echo outer").await, (0, "outer\n".to_owned()), "{enter}");
}

/// Asserts that a command in the bash that this starts is one of its own, and leaves it. Gives what ran.
pub async fn runs_beside(shell: &Session, enter: &str) -> [String; 3] {
    let outer = enters(shell, enter).await;
    let begun = begins(shell, "echo begun; sleep 3; (exit 3)").await;
    let told = (begun.status, begun.exit_code, begun.boundary, begun.output.as_deref());
    assert_eq!(told, (CommandStatus::Running, None, Boundary::Nonce, Some("begun\n")));
    let now = shell.look().await;
    assert_eq!((now.foreground, now.current_command.as_deref()), (Foreground::Running, Some(begun.id.as_str())));
    assert_eq!(shell.try_run(&ask("echo no")).await.expect_err("busy").code(), Some(ErrorCode::SessionBusy));
    assert_eq!(shell.refusal("echo no").await, Some(ErrorCode::SessionBusy));
    let waited = shell.wait(&WaitRequest { timeout: Some(20.0), ..WaitRequest::default() }).await;
    assert_eq!(waited.ended_by, EndedBy::Ended, "{waited:?}");
    assert_eq!((shell.command(&begun.id).await.exit_code, shell.command(&outer.id).await.exit_code), (Some(3), None));
    // A question of a command inside is one, and is answered as any.
    let asks = inside(shell, "read -p 'name? ' n; echo got $n").await;
    assert_eq!((asks.status, asks.ended_by), (CommandStatus::Running, Some(EndedBy::InputWanted)), "{asks:?}");
    shell.types("me").await;
    let done = shell.end_of(&asks).await;
    assert_eq!((done.exit_code, done.output.as_deref()), (Some(0), Some("name? me\ngot me\n")));
    shell.types("exit").await;
    assert_eq!(shell.end_of(&outer).await.exit_code, Some(0));
    [outer.id, begun.id, asks.id]
}

/// Interrupts commands in the shell that this starts, and leaves it.
pub async fn is_interrupted(shell: &Session, enter: &str) {
    let outer = enters(shell, enter).await;
    let begun = shell
        .run_as(ExecuteRequest { wait_for: Some("begun".to_owned()), ..ask("sh -c 'echo begun; exec sleep 60'") })
        .await;
    assert_eq!(begun.ended_by, Some(EndedBy::Matched), "{enter}: {begun:?}");
    shell.presses(&["C-c"], None).await;
    let done = shell.end_of(&begun).await;
    // Most throw the rest of the line away; fish may go on with it.
    let told = (done.status, done.exit_code, done.boundary);
    let is_told = told == (CommandStatus::Completed, Some(130), Boundary::Nonce) && enter == "fish -N";
    assert!(is_told || told == (CommandStatus::Completed, None, Boundary::Heuristic), "{enter}: {done:?}");
    assert!(is_told || done.error.is_some_and(|why| why.contains("interrupted")), "{enter}");
    assert_eq!(gives(shell, "echo after").await, (0, "after\n".to_owned()), "{enter}");
    // A program that handles it continues and reports its own code.
    let handles = "python3 -c 'import time\ntry:\n  print(\"begun\", flush=True); time.sleep(60)\nexcept KeyboardInterrupt:\n  exit(5)'";
    let begun = begins(shell, handles).await;
    shell.presses(&["C-c"], None).await;
    let done = shell.end_of(&begun).await;
    assert_eq!(done.exit_code, Some(5), "{enter}: {done:?}");
    inside(shell, "exit 0").await;
    assert_eq!(shell.end_of(&outer).await.exit_code, Some(0), "{enter}");
}

/// Enters a nested shell, and checks that it is reported as a program that asks, takes input and no command, and exits.
pub async fn is_a_program(shell: &Session, enter: &str) {
    let inside = shell.run(enter).await;
    let told = (inside.status, inside.ended_by, inside.foreground);
    let asks = (CommandStatus::Running, Some(EndedBy::InputWanted), Some(Foreground::InputWanted));
    assert_eq!(told, asks, "{enter}: {inside:?}");
    let refused = shell
        .try_run(&ExecuteRequest {
            wait_for_completion: Some(true),
            command: "echo no".to_owned(),
            ..Default::default()
        })
        .await;
    let error = refused.expect_err("a program has the terminal");
    assert_eq!(error.code(), Some(ErrorCode::SessionBusy), "{enter}");
    assert!(error.to_string().contains("send it input"), "{enter}: {error}");
    let line = InputRequest {
        input: Some("echo inner-$(printf 4)2".to_owned()),
        end_with_newline: true,
        wait_for: Some("^inner-42".to_owned()),
        timeout: Some(20.0),
        ..InputRequest::default()
    };
    assert_eq!(shell.input(&line).await.ended_by, EndedBy::Matched, "{enter}");
    // Not before it reads again, for a shell that has just forked may throw its input away.
    let asks_again = async || (shell.look().await.foreground == Foreground::InputWanted).then_some(());
    eventually("it asks again", asks_again).await;
    shell.sends(b"exit 4\r").await;
    let done = shell.end_of(&inside).await;
    assert_eq!((done.status, done.exit_code), (CommandStatus::Completed, Some(4)), "{enter}: {done:?}");
    assert_eq!(shell.gives("echo outer").await, (0, "outer\n".to_owned()), "{enter}");
    let journal = shell.journal().await;
    assert!(!String::from_utf8_lossy(&journal).contains("echo no\r"), "{enter}: a refused command is nowhere");
}
