//! The events of all sessions: in order, resumed where they broke off, and only for permitted followers.

use api::{CreateRequest, Event, EventKind, InputRequest, TokenRequest, TokenScope};
use client::Client;
use e2e::{Follower, Server};

#[tokio::test]
// promise: rest-8
async fn permitted_followers_get_the_events_of_all_sessions_in_order() {
    let server = Server::start();
    let reader = TokenRequest {
        name: "ann".to_owned(),
        scope: TokenScope::Write,
        expires_in: None,
        profiles: Vec::new(),
        confinement: None,
        ..TokenRequest::default()
    };
    let token = server.client().make_token(&reader).await.expect("made").token;
    let (mut hers, mut all) = (Follower::open(&server, &token, None), Follower::open(&server, &server.token(), None));
    let foreign = server.session().await;
    foreign.run("true").await;
    let ann = Client::tcp(server.address(), &token);
    let id = ann.create(&CreateRequest::default(), None).await.expect("created").id;
    let shell = e2e::Session::new(std::sync::Arc::clone(server.client()), id.clone());
    let asked = shell.run_until("read -s -p 'Password: ' x; (exit 3)", "Password").await;
    let first: Vec<Event> = (0..3).map(|_| hers.next_event()).collect();
    let kinds = [EventKind::SessionCreated, EventKind::CommandStarted, EventKind::Attention];
    assert_eq!(first.iter().map(|e| e.event).collect::<Vec<_>>(), kinds);
    assert!(first.iter().all(|e| e.session_id.as_ref() == Some(&id) && e.owner.as_deref() == Some("ann")));
    assert_eq!(
        (first[1].command_id.as_ref(), first[2].foreground),
        (Some(&asked.id), Some(api::Foreground::PasswordWanted))
    );
    shell.input(&InputRequest { input: Some("s3cret\n".into()), secret: true, ..InputRequest::default() }).await;
    let done = hers.next_event();
    assert_eq!((done.event, done.exit_code), (EventKind::CommandCompleted, Some(3)));
    shell.ends().await;
    let over = hers.next_event();
    assert_eq!(
        (over.event, over.exit.is_some_and(|e| e.reason.starts_with("terminated on request"))),
        (EventKind::SessionTerminated, true)
    );
    let seen = all.kinds(8);
    let others = [EventKind::SessionCreated, EventKind::CommandStarted, EventKind::CommandCompleted];
    assert_eq!(seen[..3], others);
    assert_eq!(seen[3..6], kinds);
}

#[tokio::test]
// promise: crash-3, rest-8
async fn a_follower_of_all_sessions_continues_where_it_stopped_and_learns_of_a_gap() {
    let server = Server::start();
    let token = server.token();
    let mut follower = Follower::open(&server, &token, None);
    let shell = server.session().await;
    assert_eq!(follower.kinds(1), [EventKind::SessionCreated]);
    let at = follower.last.clone();
    drop(follower);
    for _ in 0..3 {
        shell.run("true").await;
    }
    let mut follower = Follower::open(&server, &token, Some(&at));
    let six = follower.kinds(6);
    assert_eq!(six, [EventKind::CommandStarted, EventKind::CommandCompleted].repeat(3));
    let last = follower.last.clone();
    // The stream ends with its server, and the next one does not know what came in between.
    server.stop();
    while follower.line().is_some() {}
    server.again();
    let mut follower = Follower::open(&server, &token, Some(&last));
    assert_eq!(follower.kinds(1), [EventKind::Gap]);
    shell.run("true").await;
    assert_eq!(follower.kinds(2), [EventKind::CommandStarted, EventKind::CommandCompleted]);
}
