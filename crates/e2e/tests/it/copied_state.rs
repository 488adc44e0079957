//! A state directory that was copied, moved, or lost a file: live sessions are left alone, and a copy is reported as
//! one.

use std::process::Command;

use api::SessionStatus;
use e2e::{Home, Pid, Server, Session, Start, eventually};

/// A session with a program in the background that outlives a hang-up; gives both processes.
async fn at_work(server: &Server) -> (Session, [Pid; 2]) {
    let shell = server.session().await;
    let (code, pid) = shell.gives("(setsid sleep 1000 > /dev/null 2>&1 & echo $!)").await;
    assert_eq!(code, 0);
    let background = Pid::new(pid.trim().parse().expect("a pid"));
    let shell_pid = Pid::new(shell.look().await.pid.expect("it lives"));
    (shell, [shell_pid, background])
}

fn sh(script: &str, arguments: [&std::path::Path; 2]) {
    let status = Command::new("sh").args(["-euc", script, "sh"]).args(arguments).status().expect("sh");
    assert!(status.success(), "{script}");
}

#[tokio::test]
// promise: crash-9
async fn serving_a_copy_of_a_state_directory_ends_nothing_and_says_that_it_is_a_copy() {
    let server = Server::start();
    let (shell, pids) = at_work(&server).await;
    for copy in
        ["cp -a \"$1\" \"$2\"", "cp -r \"$1\" \"$2\"", "mkdir \"$2\"; tar -C \"$1\" -cf - . | tar -C \"$2\" -xf -"]
    {
        let home = Home::make();
        let from = server.home().state();
        // cp(1) has no option to copy a socket as a file.
        sh(&format!("{copy} 2> /dev/null || [ -e \"$2\"/sessions ]"), [&from, &home.state()]);
        let other = Server::start_in(home, Start::default());
        let seen = eventually("the copy is told of", async || {
            let told = other.client().session(&shell.id).await.ok()?;
            (told.status == SessionStatus::Terminated).then_some(told)
        })
        .await;
        let reason = seen.exit.expect("how it ended").reason;
        assert!(reason.contains("copy") && reason.contains("nothing was ended"), "{reason}");
        let ids = other.client().list(None).await.expect("a list").terminals;
        assert!(ids.is_empty(), "a copy is not live: {ids:?}");
        assert_eq!(pids.map(Pid::is_alive), [true, true], "after {copy}");
        other.client().terminate(&shell.id, true, None).await.expect("known");
        assert_eq!(pids.map(Pid::is_alive), [true, true], "a copy cannot be ended either");
        assert!(other.logged().contains("is a copy"), "{}", other.logged());
    }
    assert_eq!(shell.gives("echo unharmed").await, (0, "unharmed\n".to_owned()));
}

#[tokio::test]
async fn a_copy_in_place_of_the_original_ends_nothing_and_the_original_returns() {
    let server = Server::start();
    let (shell, pids) = at_work(&server).await;
    assert!(server.stop().success());
    let (state, original) = (server.home().state(), server.home().path().join("original"));
    std::fs::rename(&state, &original).expect("moved");
    sh("cp -a \"$1\" \"$2\"", [&original, &state]);
    server.again();
    assert_eq!(shell.look().await.status, SessionStatus::Terminated);
    assert!(server.stop().success());
    std::fs::remove_dir_all(&state).expect("removed");
    std::fs::rename(&original, &state).expect("moved back");
    server.again();
    assert_eq!(pids.map(Pid::is_alive), [true, true]);
    assert_eq!(shell.gives("echo back").await, (0, "back\n".to_owned()));
}

#[tokio::test]
// promise: crash-9
async fn a_state_directory_that_was_moved_is_served_with_its_sessions() {
    let server = Server::start();
    let (shell, pids) = at_work(&server).await;
    assert!(server.stop().success());
    let home = Home::make();
    std::fs::rename(server.home().state(), home.state()).expect("on one file system");
    let other = Server::start_in(home, Start::default());
    let moved = Session::new(std::sync::Arc::clone(other.client()), shell.id.clone());
    assert_eq!(moved.look().await.status, SessionStatus::Running);
    assert_eq!(moved.gives("echo moved").await, (0, "moved\n".to_owned()));
    moved.ends().await;
    assert!(pids[0].ends_within(e2e::PATIENCE));
    pids[1].kill();
}

#[tokio::test]
// promise: crash-4
async fn processes_that_a_dead_holder_left_are_ended_and_each_is_logged() {
    let server = Server::start();
    let (shell, [shell_pid, background]) = at_work(&server).await;
    let holder = shell_pid.parent().expect("the holder");
    holder.kill();
    assert!(background.ends_within(e2e::PATIENCE), "it is left behind by a holder that has ended");
    let told = eventually("it is told", async || {
        Some(shell.look().await).filter(|session| session.status == SessionStatus::Terminated)
    })
    .await;
    assert!(told.exit.expect("how").reason.contains("holder"));
    let logged = server.logged();
    let line = logged.lines().find(|line| line.contains(&format!("pid={}", background.number())));
    let line = line.unwrap_or_else(|| panic!("it is not logged: {logged}"));
    assert!(line.contains("WARN") && line.contains(&shell.id) && line.contains("left this process behind"), "{line}");
}
