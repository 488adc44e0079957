//! Waits: the first of their reasons ends them, and none of them ends the program.

use std::time::{Duration, Instant};

use api::{CommandStatus, EndedBy, ExecuteRequest, WaitRequest};
use e2e::{Server, count};

use crate::boundaries::join_all;

#[tokio::test]
async fn a_wait_that_times_out_leaves_the_program_running() {
    let server = Server::start();
    let shell = server.session().await;
    let request = ExecuteRequest { command: "sleep 1; echo done".to_owned(), timeout: Some(0.2), ..Default::default() };
    let running = shell.run_as(request).await;
    assert_eq!(
        (running.status, running.ended_by, running.exit_code),
        (CommandStatus::Running, Some(EndedBy::TimedOut), None)
    );
    let done = shell.end_of(&running).await;
    assert_eq!((done.exit_code, done.output.as_deref()), (Some(0), Some("done\n")));
}

#[tokio::test]
async fn a_long_command_is_waited_for_in_one_call() {
    let server = Server::start();
    let shell = server.session().await;
    let request = ExecuteRequest {
        command: format!("sleep {}; echo done", count(2, 45)),
        timeout: Some(48.0),
        ..Default::default()
    };
    let done = shell.run_as(request).await;
    assert_eq!((done.ended_by, done.output.as_deref()), (Some(EndedBy::Ended), Some("done\n")));
}

#[tokio::test]
async fn a_pattern_ends_a_wait_soon_after_its_line() {
    let server = Server::start();
    let shell = server.session().await;
    let begun = Instant::now();
    let command = shell.run_until("sleep 0.3; echo listening on 4711; read -r _", r"listening on (\d+)").await;
    assert!(begun.elapsed() < Duration::from_millis(300 + 500), "{:?}", begun.elapsed());
    assert_eq!((command.status, command.matched.as_deref()), (CommandStatus::Running, Some("listening on 4711")));
    // Not by an interrupt: a shell that forks at that very moment may lose it (seen with dash in vfork).
    shell.types("\n").await;
    assert_eq!(shell.end_of(&command).await.exit_code, Some(0));
}

#[tokio::test]
async fn two_waits_on_one_session_both_end() {
    let server = Server::start();
    let shell = server.session().await;
    let command = shell.begin("sleep 0.5; echo done").await;
    let wait = WaitRequest { timeout: Some(20.0), ..Default::default() };
    let quiet = WaitRequest { quiet_ms: Some(100), timeout: Some(20.0), ..Default::default() };
    let (one, two, three) = tokio::join!(shell.wait(&wait), shell.wait(&wait), shell.wait(&quiet));
    assert_eq!([one.ended_by, two.ended_by, three.ended_by], [EndedBy::Ended, EndedBy::Ended, EndedBy::Quiet]);
    assert_eq!(shell.end_of(&command).await.exit_code, Some(0));
}

#[tokio::test]
async fn sixty_four_sessions_work_at_once() {
    let server = Server::start();
    let shells = join_all((0..64).map(async |_| server.session().await)).await;
    let begun = Instant::now();
    let all = join_all(
        shells.iter().enumerate().map(async |(number, shell)| shell.gives(&format!("sleep 2; echo {number}")).await),
    )
    .await;
    let took = begun.elapsed();
    let expected: Vec<_> = (0..64).map(|number| (0, format!("{number}\n"))).collect();
    assert_eq!(all, expected);
    assert!(took < Duration::from_secs(12), "not at once: {took:?}");
}

#[tokio::test]
async fn the_end_of_a_session_ends_its_waits() {
    let server = Server::start();
    let shell = server.session().await;
    let command = shell.run_until("echo partly; sleep 60", "partly").await;
    let wait = WaitRequest { timeout: Some(20.0), ..Default::default() };
    let (answer, ended) = tokio::join!(shell.wait(&wait), shell.ends());
    assert_eq!((answer.ended_by, ended.was_over), (EndedBy::Exited, false));
    let done = shell.command(&command.id).await;
    assert_eq!((done.status, done.exit_code), (CommandStatus::Terminated, None));
}
