//! One driver at a time: while a client has the keyboard of a session, nobody else types there, at any door.

use api::{
    ConfinementTier, CreateRequest, ErrorCode, Event, EventKind, ExecuteRequest, InputRequest, SignalRequest,
    TakeOverEnd, TakeRequest, TokenRequest, TokenScope,
};
use client::{Client, ClientError};
use e2e::{Follower, Mcp, Person, Server, Session, Socket, SocketMessage, audit_lines, eventually};
use serde_json::json;

/// A client with a name of its own.
fn named(server: &Server, name: &str) -> Client {
    Client::unix(server.home().socket()).named(name)
}

fn text(input: &str) -> InputRequest {
    InputRequest { input: Some(input.to_owned()), end_with_newline: true, ..InputRequest::default() }
}

fn run(command: &str) -> ExecuteRequest {
    ExecuteRequest { command: command.to_owned(), ..ExecuteRequest::default() }
}

/// Waits until this client drives, or nobody does.
async fn driven_by(shell: &Session, client: Option<&str>) {
    eventually("the driver is another one", async || {
        let driver = shell.look().await.driver;
        (driver.and_then(|driver| driver.client).as_deref() == client).then_some(())
    })
    .await;
}

/// Waits for the end of a take-over.
fn returned(follower: &mut Follower) -> Event {
    loop {
        let event = follower.next_event();
        if event.event == EventKind::KeyboardReturned {
            return event;
        }
    }
}

fn is_driven<T>(result: Result<T, ClientError>, by: &str) -> bool {
    let error = result.map(drop).expect_err("another client drives");
    error.code() == Some(ErrorCode::SessionDriven) && error.to_string().contains(by)
}

#[tokio::test]
// promise: view-7
async fn only_the_driver_types_until_the_keyboard_is_returned() {
    let server = Server::start();
    let (shell, ann) = (server.session().await, named(&server, "ann-1"));
    let mut follower = Follower::open(&server, &server.token(), None);
    // A command that runs goes on.
    let reads = shell.begin("read line; echo got $line").await;
    let taken = ann.take(&shell.id, &TakeRequest::default()).await.expect("nobody drives");
    let driver = taken.driver.expect("it says who drives");
    assert_eq!((driver.client.as_deref(), driver.name), (Some("ann-1"), taken.owner));
    assert_eq!(follower.next_event().event, EventKind::CommandStarted);
    while follower.next_event().event != EventKind::KeyboardTaken {}
    let other = server.client();
    assert!(is_driven(other.input(&shell.id, &text("x"), None).await, "ann-1"));
    assert!(is_driven(other.execute(&shell.id, &run("true"), None).await, "ann-1"));
    assert!(is_driven(named(&server, "bob").take(&shell.id, &TakeRequest::default()).await, "ann-1"));
    assert!(is_driven(named(&server, "bob").give_back(&shell.id, false).await, "ann-1"));
    let mut mcp = Mcp::start(&server).expect("it starts");
    let input = json!({ "session_id": shell.id, "input": "x\n" });
    let refused = mcp.call("send_input_to_terminal", input).expect("an answer");
    let words = refused["content"][0]["text"].as_str().expect("words");
    assert!(refused["isError"] == true && words.contains("(client ann-1) has taken the keyboard"), "{refused}");
    let shown = mcp.call("get_terminal_output", json!({ "session_id": shell.id })).expect("an answer");
    assert!(shown["content"][0]["text"].as_str().is_some_and(|text| text.contains("ann-1) drives until")), "{shown}");
    let listed = server.ptyd(&["ls"]).output().expect("it runs").stdout;
    assert!(String::from_utf8_lossy(&listed).contains(" drives"), "{listed:?}");
    ann.input(&shell.id, &text("ann"), None).await.expect("the driver types");
    assert_eq!(shell.end_of(&reads).await.exit_code, Some(0));
    // The driver's own commands run; a signal calms what runs, whoever sends it.
    let sleeps = ExecuteRequest { wait_for_completion: Some(false), ..run("sleep 600") };
    let sleeps = ann.execute(&shell.id, &sleeps, None).await.expect("the driver runs it");
    let interrupt = SignalRequest { signal: api::NumberOrName::Name("INT".to_owned()), target: None };
    other.signal(&shell.id, &interrupt).await.expect("signals are free");
    assert_eq!(shell.end_of(&sleeps).await.exit_code, Some(130));
    assert_eq!(ann.give_back(&shell.id, false).await.expect("returned").driver, None);
    assert_eq!(returned(&mut follower).ended_by, Some(TakeOverEnd::Returned));
    ann.give_back(&shell.id, false).await.expect("it is no error if nobody drives");
    assert_eq!(shell.gives("echo free").await, (0, "free\n".to_owned()));
    let lines = audit_lines(&server.home().state());
    let of = |action: &str| lines.iter().filter(|line| line["action"] == action && line["event"] == "request").count();
    assert_eq!((of("take keyboard"), of("return keyboard")), (2, 3));
}

#[tokio::test]
// promise: view-7
async fn a_request_waits_for_the_keyboard_as_long_as_it_says() {
    let server = Server::start();
    let (shell, ann) = (server.session().await, named(&server, "ann-1"));
    ann.take(&shell.id, &TakeRequest::default()).await.expect("nobody drives");
    let other = server.client();
    let briefly = ExecuteRequest { driver_timeout: Some(0.05), ..run("touch early") };
    assert!(is_driven(other.execute(&shell.id, &briefly, None).await, "ann-1"));
    // A caller that goes away leaves nothing that runs later.
    let patient = |command: &str| ExecuteRequest { driver_timeout: Some(600.0), ..run(command) };
    let (client, id) = (named(&server, "gone"), shell.id.clone());
    let gone = tokio::spawn(async move { client.execute(&id, &patient("touch gone"), None).await });
    let wait = |client: Client| {
        let (id, patient) = (shell.id.clone(), patient("ls; echo waited"));
        tokio::spawn(async move { client.execute(&id, &patient, Some("one")).await })
    };
    let waiting = [wait(named(&server, "bob")), wait(named(&server, "bob"))];
    eventually("all wait", async || {
        let lines = audit_lines(&server.home().state());
        let asked = |text: &str| lines.iter().filter(|line| line["event"] == "request" && line["text"] == text).count();
        (asked("touch gone") == 1 && asked("ls; echo waited") == 2).then_some(())
    })
    .await;
    gone.abort();
    eventually("the server has noticed it", async || {
        shell.look().await;
        let lines = audit_lines(&server.home().state());
        let asked = lines.iter().find(|line| line["event"] == "request" && line["text"] == "touch gone")?;
        lines.iter().any(|line| line["outcome"] == "unanswered" && line["id"] == asked["id"]).then_some(())
    })
    .await;
    ann.give_back(&shell.id, false).await.expect("returned");
    for one in waiting {
        let done = one.await.expect("no panic").expect("it has run");
        assert_eq!((done.id.as_str(), done.output.as_deref()), ("c1", Some("waited\n")));
    }
    for wrong in [3_601.0, -1.0] {
        let request = ExecuteRequest { driver_timeout: Some(wrong), ..run("true") };
        let refusal = shell.try_run(&request).await.expect_err("refused");
        assert_eq!(refusal.code(), Some(ErrorCode::InvalidField));
    }
}

#[tokio::test]
// promise: view-7
async fn a_take_over_ends_by_time_by_force_and_with_the_server() {
    let server = Server::start();
    let (shell, ann, bob) = (server.session().await, named(&server, "ann-1"), named(&server, "bob-1"));
    let mut follower = Follower::open(&server, &server.token(), None);
    let soon = TakeRequest { lasts: Some(0.05), ..TakeRequest::default() };
    ann.take(&shell.id, &soon).await.expect("nobody drives");
    assert_eq!(returned(&mut follower).ended_by, Some(TakeOverEnd::TimedOut));
    assert_eq!(shell.gives("echo free").await, (0, "free\n".to_owned()));
    ann.take(&shell.id, &TakeRequest::default()).await.expect("nobody drives");
    let force = TakeRequest { force: true, ..TakeRequest::default() };
    bob.take(&shell.id, &force).await.expect("by force");
    let ended = returned(&mut follower);
    assert_eq!(ended.driver.and_then(|driver| driver.client).as_deref(), Some("ann-1"));
    assert_eq!(ended.ended_by, Some(TakeOverEnd::Forced));
    assert!(is_driven(ann.input(&shell.id, &text("x"), None).await, "bob-1"));
    ann.give_back(&shell.id, true).await.expect("by force");
    assert_eq!(returned(&mut follower).ended_by, Some(TakeOverEnd::Forced));
    let lines = audit_lines(&server.home().state());
    let ends: Vec<_> = lines.iter().filter(|line| line["event"] == "returned").map(|line| &line["outcome"]).collect();
    assert_eq!(ends, ["timed_out", "forced", "forced"]);
    ann.take(&shell.id, &TakeRequest::default()).await.expect("nobody drives");
    server.kill9();
    server.again();
    driven_by(&shell, None).await;
    assert_eq!(shell.gives("echo free").await, (0, "free\n".to_owned()));
    // Nobody is told apart without a name.
    let unnamed = server.client().take(&shell.id, &TakeRequest::default()).await.expect_err("refused");
    assert_eq!(unnamed.code(), Some(ErrorCode::InvalidField));
    for wrong in [0.0, 43_201.0] {
        let request = TakeRequest { lasts: Some(wrong), ..TakeRequest::default() };
        let refusal = ann.take(&shell.id, &request).await.expect_err("refused");
        assert_eq!(refusal.code(), Some(ErrorCode::InvalidField));
    }
}

#[tokio::test]
// promise: view-7
async fn a_viewer_that_takes_the_keyboard_returns_it_with_its_connection() {
    let server = Server::start();
    let shell = server.session().await;
    let mut watcher = Socket::visit(&server, &shell.id, "?client=eve").await;
    assert_eq!(watcher.event("control").await["driver"], json!(null));
    let mut viewer = Socket::visit(&server, &shell.id, "?client=ann-2&take=free").await;
    assert_eq!(viewer.event("control").await["driver"]["client"], "ann-2");
    assert_eq!(watcher.event("keyboard.taken").await["driver"]["client"], "ann-2");
    watcher.types(1, b"echo eve\r").await;
    let refused = watcher.event("error").await;
    assert_eq!((&refused["code"], &refused["seq"]), (&json!("session_driven"), &json!(1)));
    viewer.types(1, b"echo ann $((40+2))\r").await;
    viewer.reads_until("ann 42").await;
    let mut late = Socket::visit(&server, &shell.id, "?client=bob&take=free").await;
    assert!(matches!(late.next().await, SocketMessage::Closed(4423, why) if why.contains("ann-2")));
    drop(viewer);
    let ended = watcher.event("keyboard.returned").await;
    assert_eq!(ended["endedBy"], "disconnected");
    assert_eq!(shell.gives("echo free").await, (0, "free\n".to_owned()));
}

#[tokio::test]
// promise: view-7
async fn a_person_who_attaches_with_take_has_the_keyboard_until_the_program_ends() {
    let server = Server::start();
    let shell = server.session().await;
    let attach = |words: &[&str]| {
        let mut person = Person::starts(&server.ptyd(&[&["attach", &shell.id], words].concat()), 80, 24);
        person.sees("\x1b[2J");
        person
    };
    let mut ann = attach(&["--take"]);
    assert!(is_driven(server.client().execute(&shell.id, &run("true"), None).await, "attach-"));
    ann.types(b"echo ann $((40+2))\r");
    ann.sees("ann 42\r\n");
    server.kill9();
    server.again();
    eventually("it has the keyboard again", async || shell.look().await.driver).await;
    ann.types(b"echo ann $((40+3))\r");
    ann.sees("ann 43\r\n");
    let mut follower = Follower::open(&server, &server.token(), None);
    // It is killed.
    drop(ann);
    assert_eq!(returned(&mut follower).ended_by, Some(TakeOverEnd::Disconnected));
    let mut bob = attach(&["--take"]);
    assert!(is_driven(server.client().execute(&shell.id, &run("true"), None).await, "attach-"));
    bob.types(b"\x1c\x1c");
    bob.sees("detached; the session keeps running");
    assert_eq!(bob.leaves().code(), Some(0));
    driven_by(&shell, None).await;
    let mut cid = attach(&["--take"]);
    let (eve, force) = (named(&server, "eve"), TakeRequest { force: true, ..TakeRequest::default() });
    eventually("cid drives", async || shell.look().await.driver).await;
    eve.take(&shell.id, &force).await.expect("by force");
    cid.sees("has taken the keyboard; the session keeps running");
    assert_eq!(cid.leaves().code(), Some(1));
    eve.give_back(&shell.id, false).await.expect("returned");
    assert_eq!(shell.gives("echo free").await, (0, "free\n".to_owned()));
}

#[tokio::test]
// promise: view-7
async fn no_agent_takes_a_keyboard_and_the_owner_gets_it_back() {
    let server = Server::start();
    let token = |name: &str, scope| TokenRequest { name: name.to_owned(), scope, ..TokenRequest::default() };
    let client = async |request: TokenRequest, name: &str| {
        let made = server.client().make_token(&request).await.expect("made");
        Client::tcp(server.address(), made.token).named(name)
    };
    let ann = client(token("ann", TokenScope::Write), "laptop").await;
    let shell = ann.create(&CreateRequest::default(), None).await.expect("a session").id;
    // A bound token and one that may only read are as of an agent; so is a program in a session.
    let own = server.session().await;
    let ptyd = server.ptyd(&[]).get_program().to_string_lossy().into_owned();
    let refused = own.run(&format!("{ptyd} attach --take {shell}")).await;
    assert_eq!(refused.exit_code, Some(4), "{refused:?}");
    assert!(refused.output.is_some_and(|output| output.contains("only a person can take a keyboard")));
    let reader = client(token("reader", TokenScope::Read), "laptop").await;
    let seen = reader.take(&own.id, &TakeRequest::default()).await.expect_err("it may only read");
    assert_eq!(seen.code(), Some(ErrorCode::Forbidden));
    // The administrator takes ann's session, and ann takes it back.
    let admin = named(&server, "admin-1");
    admin.take(&shell, &TakeRequest::default()).await.expect("nobody drives");
    assert!(is_driven(ann.execute(&shell, &run("true"), None).await, "admin-1"));
    ann.take(&shell, &TakeRequest { force: true, ..TakeRequest::default() }).await.expect("the owner's session");
    assert!(is_driven(admin.execute(&shell, &run("true"), None).await, "laptop"));
    // Nobody else sees it at all.
    let bob = client(token("bob", TokenScope::Write), "laptop").await;
    let unseen = bob.take(&shell, &TakeRequest { force: true, ..TakeRequest::default() }).await.expect_err("not bob's");
    assert_eq!(unseen.code(), Some(ErrorCode::SessionNotFound));
    let bound = TokenRequest { confinement: Some(ConfinementTier::Process), ..token("bound", TokenScope::Write) };
    let bound = client(bound, "laptop").await;
    let shut = bound.take(&shell, &TakeRequest::default()).await.expect_err("it has bounds");
    assert_eq!(shut.code(), Some(ErrorCode::Forbidden));
}
