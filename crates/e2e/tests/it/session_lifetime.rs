//! Lifetimes of sessions: inactivity, age, retention afterwards, and the quota of live sessions.

use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use api::{CreateRequest, ErrorCode, Limit, SessionStatus, TerminalSession, WaitRequest};
use e2e::{Server, Session, Start, eventually};

fn living(inactivity_timeout: Option<f64>, max_age: Option<f64>) -> CreateRequest {
    CreateRequest { inactivity_timeout, max_age, ..CreateRequest::default() }
}

fn started_with(env: &[(&'static str, &str)]) -> Server {
    let env = env.iter().map(|(name, value)| (*name, value.into())).collect();
    Server::start_as(Start { env, ..Start::default() })
}

/// The session once it has ended.
async fn ended(shell: &Session) -> TerminalSession {
    eventually("the session ends", async || Some(shell.look().await).filter(|s| s.status == SessionStatus::Terminated))
        .await
}

fn reason(session: &TerminalSession) -> &str {
    session.exit.as_ref().map_or("", |exit| exit.reason.as_str())
}

#[tokio::test]
// promise: stop-4
async fn a_session_ends_when_it_is_inactive_but_not_while_a_command_runs() {
    let server = Server::start();
    let shell = server.session_with(living(Some(1.0), None)).await;
    assert_eq!((shell.look().await.inactivity_timeout, shell.look().await.max_age), (Some(1.0), None));
    // It prints nothing for longer than the session may be inactive.
    assert_eq!(shell.run("sleep 2; echo done").await.exit_code, Some(0));
    let now = shell.look().await;
    assert_eq!((now.status, now.limits_hit.len()), (SessionStatus::Running, 0));
    // A wait for output that does not come ends with the session.
    let request = WaitRequest { wait_for: Some("never".into()), timeout: Some(20.0), ..WaitRequest::default() };
    let waited = shell.wait(&request).await;
    assert_eq!(waited.ended_by, api::EndedBy::Exited);
    let over = ended(&shell).await;
    assert!(reason(&over).starts_with("it reached its inactivityTimeout; "), "{over:?}");
    assert_eq!(over.limits_hit.iter().map(|h| h.limit).collect::<Vec<_>>(), [Limit::InactivityTimeout]);
    assert!(shell.journal().await.windows(4).any(|w| w == b"done"));
    assert_eq!(shell.refusal("true").await, Some(ErrorCode::SessionEnded));
}

#[tokio::test]
// promise: stop-4
async fn input_and_output_keep_a_session_alive() {
    let server = Server::start();
    let limit = Duration::from_millis(1_500);
    let shell = server.session_with(living(Some(limit.as_secs_f64()), None)).await;
    let begun = std::time::Instant::now();
    // A job in the background is not a command that runs, but what it prints is activity. It prints thirty times within the limit.
    shell.begin("(until [ -e stop ]; do echo .; sleep 0.05; done; echo over) &").await;
    eventually("three limits pass", async || (begun.elapsed() > 3 * limit).then_some(())).await;
    assert_eq!(shell.look().await.status, SessionStatus::Running);
    std::fs::write(server.home().file("stop"), "").expect("written");
    let over = ended(&shell).await;
    assert!(shell.journal().await.windows(6).any(|w| w == b"over\r\n"), "{over:?}");
}

#[tokio::test]
// promise: stop-4
async fn a_session_ends_at_its_age_whatever_runs_also_under_the_next_server() {
    let server = started_with(&[("PTYD_MAX_AGE", "3")]);
    let shell = server.session().await;
    let own = server.session_with(living(None, Some(0.0))).await;
    assert_eq!((shell.look().await.max_age, own.look().await.max_age), (Some(3.0), None));
    let command = shell.begin("trap '' HUP; echo up; sleep 600").await;
    server.kill9();
    server.again();
    let over = ended(&shell).await;
    assert!(reason(&over).starts_with("it reached its maxAge; "), "{over:?}");
    assert!(shell.command(&command.id).await.completed_at.is_some());
    assert_eq!(own.look().await.status, SessionStatus::Running);
    // Read from the folder alone, it is the same.
    server.kill9();
    server.again();
    assert_eq!(shell.look().await.exit, over.exit);
}

#[tokio::test]
// promise: stop-4
async fn an_adopted_session_is_as_inactive_as_it_was() {
    let server = Server::start();
    let shell = server.session_with(living(Some(2.0), None)).await;
    assert_eq!(shell.gives("echo here").await.0, 0);
    let before = shell.look().await.last_activity;
    server.kill9();
    server.again();
    let after = shell.look().await;
    assert_eq!((after.status, &after.last_activity[..19]), (SessionStatus::Running, &before[..19]));
    assert!(reason(&ended(&shell).await).starts_with("it reached its inactivityTimeout; "));
}

#[tokio::test]
// promise: stop-5
async fn ended_sessions_are_kept_within_the_room_and_the_oldest_go_first() {
    // Each has a page of the journal and one of the events, and more.
    let server = started_with(&[("PTYD_RETENTION_BYTES", "4000000"), ("PTYD_TEST_TIME_SCALE", "0.01")]);
    let mut shells = Vec::new();
    for _ in 0..3 {
        let shell = server.session().await;
        shell.run("head -c 2500000 /dev/zero | tr '\\0' x").await;
        shell.ends().await;
        shells.push(shell);
    }
    let live = server.session().await;
    live.run("head -c 5000000 /dev/zero | tr '\\0' x").await;
    server.stop();
    server.again();
    let left = eventually("the oldest are removed", async || {
        let list = server.client().list(Some("terminated")).await.ok()?;
        (list.total == 1).then_some(list.terminals)
    });
    assert_eq!(left.await.into_iter().map(|s| s.id).collect::<Vec<_>>(), [shells[2].id.clone()]);
    let gone = server.client().session(&shells[0].id).await.err().and_then(|e| e.code());
    assert_eq!((gone, live.gives("echo lives").await.0), (Some(ErrorCode::SessionNotFound), 0));
}

#[tokio::test]
// promise: stop-5
async fn an_ended_session_keeps_24_kib_of_the_disk() {
    let server = Server::start();
    let shell = server.session().await;
    shell.run("true").await;
    let folder = server.home().state().join("sessions").join(&shell.id);
    let room = || -> u64 {
        let files = std::fs::read_dir(&folder).expect("its folder").flatten().map(|file| file.path());
        files.chain([folder.clone()]).map(|path| std::fs::metadata(path).map_or(0, |of| of.blocks() * 512)).sum()
    };
    let alive = room();
    if alive < 64 << 10 {
        return e2e::not_run("this file system reserves nothing");
    }
    server.client().terminate(&shell.id, true, None).await.expect("ended");
    eventually("the room is given back", async || (room() <= 24 << 10).then_some(())).await;
}

#[tokio::test]
// promise: limit-4
async fn no_more_sessions_live_than_are_allowed_however_many_are_started_at_once() {
    let server = started_with(&[("PTYD_SESSIONS_MAX", "4"), ("PTYD_SESSIONS_PER_OWNER_MAX", "3")]);
    let of = |owner: &str| CreateRequest { owner: Some(owner.to_owned()), ..CreateRequest::default() };
    let mut starting = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (client, request) = (std::sync::Arc::clone(server.client()), of("one"));
        starting.spawn(async move { client.create(&request, None).await.map_err(|e| (e.code(), e.to_string())) });
    }
    let (mut started, mut refused) = (Vec::new(), Vec::new());
    while let Some(result) = starting.join_next().await {
        match result.expect("no panic") {
            Ok(session) => started.push(session.id),
            Err(error) => refused.push(error),
        }
    }
    assert_eq!((started.len(), refused.len()), (3, 5));
    let (code, why) = &refused[0];
    assert_eq!(*code, Some(ErrorCode::LimitReached));
    assert!(why.contains("at its limit of 3; terminate one"), "{why}");
    // Another owner has the last place of all, and the next has none until one ends.
    assert!(server.client().create(&of("two"), None).await.is_ok());
    let third = server.client().create(&of("three"), None).await;
    assert_eq!(third.err().and_then(|e| e.code()), Some(ErrorCode::LimitReached));
    server.client().terminate(&started[0], true, None).await.expect("ended");
    assert!(server.client().create(&of("three"), None).await.is_ok());
}
