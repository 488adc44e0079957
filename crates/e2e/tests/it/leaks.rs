//! Leaks: after many sessions, commands and aborted runs the server holds what it held before.

use api::{CreateRequest, ExecuteRequest};
use e2e::{Footprint, PATIENCE, Server, count, eventually, footprint, join_all, marked};

/// Waits until the server is back, and panics with both footprints when it does not come.
async fn is_back(server: &Server, before: Footprint, growth_max: u64) {
    let small = |now: &Footprint| {
        now.files <= before.files + 2
            && now.threads <= before.threads + 2
            && now.zombies == 0
            && now.resident_bytes <= before.resident_bytes + growth_max
    };
    let back = async { eventually("the server is back", async || Some(footprint(server.pid())).filter(small)).await };
    if tokio::time::timeout(PATIENCE / 2, back).await.is_err() {
        panic!("before {before:?}, now {:?}", footprint(server.pid()));
    }
}

#[tokio::test]
// promise: crash-7
async fn ended_sessions_leave_nothing_behind() {
    let server = Server::start();
    let one = async |number: usize| {
        let shell =
            server.session_with(CreateRequest { name: Some(format!("n{number}")), ..CreateRequest::default() }).await;
        assert_eq!(shell.gives(&format!("echo {number}")).await, (0, format!("{number}\n")));
        server.client().terminate(&shell.id, number.is_multiple_of(2), None).await.expect("it ends");
    };
    // This has the server make the threads and caches that it keeps.
    join_all((0..8).map(one)).await;
    let before = footprint(server.pid());
    for round in 0..count(60, 2_000) / 4 {
        join_all((0..4).map(|lane| one(8 + 4 * round + lane))).await;
    }
    is_back(&server, before, 16 << 20).await;
    assert_eq!(marked(server.home().path()).len(), 1, "only the server is there");
}

#[tokio::test]
// promise: ask-5, crash-7
async fn abandoned_runs_leave_nothing_behind() {
    let server = Server::start();
    let shell = server.session().await;
    let abandon = async |number: usize| {
        let request = ExecuteRequest {
            command: format!("read x; echo {number}"),
            wait_for: Some("never".to_owned()),
            timeout: Some(60.0),
            ..Default::default()
        };
        // The client goes away in the middle of its wait.
        let running = tokio::select! {
            waits = shell.try_run(&request) => panic!("it waits: {waits:?}"),
            running = eventually("it is known", async || shell.look().await.current_command) => running,
        };
        let answer = shell.types("go").await;
        assert!(answer.output.ends_with(&format!("{number}\n")), "{answer:?}");
        assert_eq!(shell.command(&running).await.exit_code, Some(0));
    };
    for number in 0..5 {
        abandon(number).await;
    }
    let before = footprint(server.pid());
    for number in 0..count(60, 2_000) {
        abandon(number).await;
    }
    is_back(&server, before, 16 << 20).await;
}

#[tokio::test]
// promise: crash-7
async fn many_commands_in_one_session_leave_nothing() {
    let server = Server::start();
    let shell = server.session().await;
    for _ in 0..50 {
        shell.gives("true").await;
    }
    let before = footprint(server.pid());
    for number in 0..count(300, 10_000) {
        assert_eq!(shell.gives(&format!("echo {number}")).await, (0, format!("{number}\n")));
    }
    is_back(&server, before, 16 << 20).await;
    assert_eq!(server.client().commands(&shell.id).await.expect("known").total, 50 + count(300, 10_000));
}
