//! Shells and settings that defeat the hooks: ends are right, or reported as uncertain within a moment, and never a
//! hang.

use api::{Boundary, CommandStatus, CreateRequest, ExecuteRequest};
use e2e::{Home, Server, Start};

#[tokio::test]
async fn a_shell_whose_own_output_was_closed_or_redirected_still_ends_its_commands() {
    let server = Server::start();
    for disturbance in ["exec 1>&-", "exec 2>/dev/null", "exec >closed 2>&1"] {
        let shell = server.session().await;
        shell.run(disturbance).await;
        let done = shell.run("touch ran; (exit 7)").await;
        assert!(
            done.status != CommandStatus::Running && done.exit_code.is_none_or(|code| code == 7),
            "{disturbance}: {done:?}"
        );
        assert!(server.home().file("ran").exists(), "{disturbance}");
    }
}

#[tokio::test]
async fn a_start_up_file_that_asks_delays_the_shell_and_does_not_lose_it() {
    let home = Home::make();
    std::fs::write(home.path().join(".bashrc"), "read -p 'rc? ' answer\nPS1='$ '\n").expect("written");
    let server = Server::start_in(home, Start::default());
    let shell = server.session().await;
    assert_eq!(shell.look().await.status, api::SessionStatus::Creating);
    shell.sends(b"yes\r").await;
    assert_eq!(shell.gives("echo $answer").await, (0, "yes\n".to_owned()));
}

#[tokio::test]
// promise: shell-6
async fn a_start_up_file_that_asks_by_the_line_editor_is_asking_and_gets_no_command() {
    let home = Home::make();
    std::fs::write(home.path().join(".bashrc"), "read -e -p 'rc? ' answer\nPS1='$ '\n").expect("written");
    let server = Server::start_in(home, Start::default());
    let shell = server.session().await;
    assert_eq!(shell.refusal("echo not an answer").await, Some(api::ErrorCode::SessionNotReady));
    shell.sends(b"yes\r").await;
    assert_eq!(shell.gives("echo $answer").await, (0, "yes\n".to_owned()));
}

#[tokio::test]
// promise: shell-6
async fn a_shell_that_never_says_that_it_is_ready_is_typed_at() {
    let home = Home::make();
    // This `exec` ends the reading of all start-up files, ours included.
    std::fs::write(home.path().join(".bashrc"), "exec bash --norc\n").expect("written");
    let server = Server::start_in(home, Start::default());
    let shell = server.session().await;
    let done = shell.run("echo typed $((40+2))").await;
    assert_ne!(done.status, CommandStatus::Running, "{done:?}");
    let output = done.output.unwrap_or_default();
    assert_eq!((done.boundary, done.exit_code, output.contains("typed 42")), (Boundary::Heuristic, None, true));
}

#[tokio::test]
async fn a_session_survives_a_hostile_start_up_file() {
    let home = Home::make();
    std::fs::write(
        home.path().join(".bashrc"),
        "PROMPT_COMMAND='history -a; false'\nPS1='\\u@\\h> '\nset -u\nalias echo='echo aliased'\n",
    )
    .expect("written");
    let server = Server::start_in(home, Start::default());
    let shell = server.session().await;
    assert_eq!(shell.gives("(exit 7)").await, (7, String::new()));
    assert_eq!(shell.gives("echo x").await, (0, "aliased x\n".to_owned()));
}

#[tokio::test]
// promise: shell-12
async fn the_refusal_of_a_shell_without_its_line_editor_says_how_to_restore_it() {
    let server = Server::start();
    // bash reads the rest of the command from the terminal then.
    let bash = ("bash", "set +o emacs; set +o vi", ["is busy with command", "or interrupt it (C-c)"]);
    let zsh = ("zsh", "unsetopt zle", ["its line editor does not read", "type `setopt zle` with"]);
    for (shell, off, says) in [bash, zsh] {
        let shell = CreateRequest { shell: Some(shell.to_owned()), ..CreateRequest::default() };
        let session = server.session_with(shell).await;
        session.run(off).await;
        let request = ExecuteRequest { command: "echo no".into(), timeout: Some(1.0), ..ExecuteRequest::default() };
        let refused = session.try_run(&request).await.expect_err("nothing can be handed over").to_string();
        assert!(says.iter().all(|part| refused.contains(part)), "{refused}");
        if off == "unsetopt zle" {
            session.sends(b"setopt zle\r").await;
        } else {
            session.presses(&["C-c"], None).await;
        }
        assert_eq!(session.gives("echo back; (exit 4)").await, (4, "back\n".to_owned()), "{off}");
    }
}

#[tokio::test]
// promise: shell-12
async fn a_command_waits_for_the_hooks_of_the_prompt_and_a_refusal_names_their_program() {
    let server = Server::start();
    let slow = "[ ! -e slow ] || { cat gate; rm slow; }";
    let slow_in_fish = "if test -e slow; cat gate; rm slow; end";
    let named = "cat has the terminal, perhaps run by its prompt; wait longer";
    // These run while the editor has set the terminal's modes.
    let in_editor = "its line editor does not read; if its prompt is slow, wait longer";
    for (shell, hook, why) in [
        ("bash", format!("PROMPT_COMMAND='{slow}'"), named),
        ("zsh", format!("precmd() {{ {slow} }}"), named),
        ("zsh", format!("zle-line-init() {{ {slow} }}; zle -N zle-line-init"), named),
        ("fish", format!("function hook --on-event fish_prompt; {slow_in_fish}; end"), in_editor),
        ("fish", format!("function fish_prompt; {slow_in_fish}; echo '> '; end"), in_editor),
    ] {
        let request = CreateRequest { shell: Some(shell.to_owned()), ..CreateRequest::default() };
        let (session, other) = (server.session_with(request).await, server.session().await);
        session.run(&format!("cd \"$(mktemp -d)\" && mkfifo gate; {hook}")).await;
        let gate = format!("{}/gate", session.gives("pwd").await.1.trim());
        // Input for an earlier program does not matter.
        let asks = session.run("head -n 1").await;
        session.types("an answer").await;
        session.end_of(&asks).await;
        session.run("touch slow").await;
        let request = ExecuteRequest { command: "echo no".into(), timeout: Some(1.0), ..ExecuteRequest::default() };
        let refused = session.try_run(&request).await.expect_err("it waits").to_string();
        assert!(refused.contains(why), "{shell}: {hook}: {refused}");
        // Longer than a line typed at the prompt would be waited for.
        other.begin(&format!("sleep 1; echo now > {gate}")).await;
        assert_eq!(session.gives("echo yes; rm -r \"$PWD\"").await, (0, "yes\n".to_owned()), "{shell}");
    }
}
