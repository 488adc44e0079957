//! A server that drains takes no new sessions, and `ptyd drain` and `ptyd stop` say how many are left.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, Output, Stdio};
use std::time::Duration;

use api::{CreateRequest, DrainQuery, SessionStatus, TokenScope};
use e2e::{Connection, Mcp, Server, Socket, SocketMessage, token};
use serde_json::{Value, json};

/// The text of a tool's answer, and whether it is an error.
fn said(result: &Value) -> (bool, &str) {
    (result["isError"] == true, result["content"][0]["text"].as_str().unwrap_or_default())
}

fn ptyd(server: &Server, args: &[&str]) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = server.ptyd(args).stdin(Stdio::null()).output().expect("it can be executed");
    (status.code(), String::from_utf8(stderr).expect("text"))
}

#[tokio::test]
// promise: drain-1
async fn a_server_that_drains_refuses_new_sessions_at_every_door_and_leaves_the_others_alone() {
    let server = Server::start();
    let (asks, admin) = (server.session().await, server.client());
    let question = asks.run("read -p 'name? ' n; echo got $n; (exit 3)").await;
    let keyed = CreateRequest { name: Some("keyed".to_owned()), ..CreateRequest::default() };
    let first = admin.create(&keyed, Some("one")).await.expect("it takes sessions");
    let mut agent = Mcp::start(&server).expect("it starts");
    let kept = agent.call("terminal", json!({ "command": "kept=yes; echo $kept" })).expect("an answer");
    assert!(said(&kept).1.starts_with("yes"), "{kept}");
    let mut fresh = Mcp::start(&server).expect("it starts");
    let readiness = || server.connect().ask("GET", "/readyz", "").expect("an answer");
    assert_eq!(readiness().status, 200);

    let now = admin.set_drain(true).await.expect("an admin may");
    assert_eq!((now.draining, now.sessions, now.node), (true, 3, 0));
    assert!(now.since.is_some());
    let seen = readiness();
    assert_eq!((seen.status, seen.body.starts_with(b"the server is draining and refuses new sessions")), (503, true));

    let reply = server.connect().ask("POST", "/terminals", "{}").expect("an answer");
    let (status, code, detail) = reply.problem();
    assert_eq!((status, code.as_str(), reply.header("retry-after")), (503, "server_draining", Some("5")), "{detail}");
    for (tool, arguments) in [("terminal", json!({ "command": "echo no" })), ("start_terminal_session", json!({}))] {
        let refused = fresh.call(tool, arguments).expect("an answer");
        assert!(
            matches!(said(&refused), (true, why) if why.contains("is draining and refuses new sessions")),
            "{refused}"
        );
    }
    for command in [&["new"][..], &["run", "echo no"], &["record", "-o", "cast", "--", "true"]] {
        let (code, why) = ptyd(&server, command);
        assert!(code == Some(5) && why.contains("is draining and refuses new sessions"), "{command:?}: {why}");
    }
    // A reset starts a session in the place of another one. Its refusal leaves that one alone.
    let refused = agent.call("terminal", json!({ "reset": true, "command": "echo no" })).expect("an answer");
    assert!(said(&refused).0, "{refused}");
    let same = agent.call("terminal", json!({ "command": "echo $kept" })).expect("an answer");
    assert!(said(&same).1.starts_with("yes"), "{same}");
    let again = admin.create(&keyed, Some("one")).await.expect("it starts nothing");
    assert_eq!(again.id, first.id);

    let mut viewer = Socket::visit(&server, &asks.id, "").await;
    viewer.until(|heard| matches!(heard, SocketMessage::Snapshot(..)).then_some(())).await;
    asks.types("Ada").await;
    let done = asks.end_of(&question).await;
    assert_eq!((done.exit_code, done.output.as_deref()), (Some(3), Some("name? Ada\ngot Ada\n")));
    assert_eq!(asks.gives("echo on").await, (0, "on\n".to_owned()));
    assert_eq!(admin.list(None).await.expect("a list").total, 3);

    let now = admin.set_drain(false).await.expect("an admin may");
    assert_eq!((now.draining, now.since, now.sessions), (false, None, 3));
    assert_eq!(readiness().status, 200);
    assert_eq!(server.session().await.gives("echo new").await, (0, "new\n".to_owned()));
    let taken = fresh.call("terminal", json!({ "command": "echo taken" })).expect("an answer");
    assert!(said(&taken).1.starts_with("taken"), "{taken}");
}

#[tokio::test]
// promise: drain-1
async fn only_an_admin_drains_and_the_next_server_takes_sessions() {
    let server = Server::start();
    let writes = token(&server, "agent", TokenScope::Write).await;
    let bearer = format!("Bearer {writes}");
    for method in ["GET", "PUT", "DELETE"] {
        let mut wire = Connection::tcp(server.address()).expect("it listens");
        let reply =
            wire.send(method, "/drain", &[("host", "localhost"), ("authorization", &bearer)], "").expect("an answer");
        assert_eq!((reply.problem().0, reply.problem().1.as_str()), (403, "forbidden"), "{method}");
    }
    let shell = server.session().await;
    assert!(server.client().set_drain(true).await.expect("an admin may").draining);
    server.upgrade();
    let now = server.client().drain(&DrainQuery::default()).await.expect("an answer");
    assert_eq!((now.draining, now.sessions), (false, 1));
    server.session().await;
    assert_eq!(shell.look().await.status, SessionStatus::Running);
}

/// A command of ptyd's that runs, and the lines that it prints.
fn begun(server: &Server, args: &[&str]) -> (Child, std::io::Lines<BufReader<ChildStderr>>) {
    let mut child = server.ptyd(args).stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it can be executed");
    let lines = BufReader::new(child.stderr.take().expect("it was asked for")).lines();
    (child, lines)
}

#[tokio::test]
// promise: drain-2
async fn drain_says_how_many_are_left_and_returns_when_the_last_has_ended() {
    let server = Server::start();
    let (one, two) = (server.session().await, server.session().await);
    let (mut child, mut lines) = begun(&server, &["drain"]);
    let mut line = || lines.next().expect("a line").expect("text");
    assert_eq!(line(), "2 sessions are left");
    // However a session ends, it counts no longer.
    one.ends().await;
    assert_eq!(line(), "1 session is left");
    e2e::holder(&two).await.kill();
    assert_eq!(line(), "no session is left");
    assert!(child.wait().expect("ours").success());
    assert_eq!(ptyd(&server, &["drain"]), (Some(0), "no session is left\n".to_owned()));
}

#[tokio::test]
// promise: drain-2
async fn at_its_deadline_drain_ends_only_what_it_was_told_to_end() {
    let server = Server::start();
    let shell = server.session().await;
    let (code, why) = ptyd(&server, &["drain", "--deadline", "0.1"]);
    assert!(code == Some(124) && why.contains("1 session is left; the server still drains"), "{code:?} {why}");
    assert_eq!(shell.gives("echo on").await, (0, "on\n".to_owned()));
    let (code, why) = ptyd(&server, &["drain", "--deadline", "0.1", "--kill"]);
    assert!(code == Some(0) && why.contains("ending 1 session"), "{code:?} {why}");
    assert_eq!(shell.look().await.status, SessionStatus::Terminated);
    assert_eq!(ptyd(&server, &["drain", "--kill"]).0, Some(2), "only a deadline ends something");
    assert_eq!(ptyd(&server, &["drain", "--cancel"]), (Some(0), String::new()));
    server.session().await;
}

#[tokio::test]
// promise: drain-2
async fn drain_tells_a_cancel_and_a_stop_from_an_end() {
    let server = Server::start();
    let shell = server.session().await;
    let (mut child, mut lines) = begun(&server, &["drain"]);
    assert_eq!(lines.next().expect("a line").expect("text"), "1 session is left");
    server.client().set_drain(false).await.expect("an admin may");
    assert!(lines.next().expect("a line").expect("text").contains("the server takes sessions again"));
    assert_eq!(child.wait().expect("ours").code(), Some(1));
    let (mut child, mut lines) = begun(&server, &["drain"]);
    assert_eq!(lines.next().expect("a line").expect("text"), "1 session is left");
    assert!(server.stop().success());
    let said = lines.next().expect("a line").expect("text");
    assert!(said.ends_with("the server has stopped; 1 session keeps running"), "{said}");
    assert_eq!(child.wait().expect("ours").code(), Some(5));
    server.again();
    assert_eq!(shell.gives("echo on").await, (0, "on\n".to_owned()));
}

#[tokio::test]
// promise: drain-3
async fn stop_ends_the_server_of_its_state_directory_and_its_sessions_live_on() {
    let (server, other) = (Server::start(), Server::start());
    let shell = server.session().await;
    let waits = shell.begin("until [ -e go ]; do sleep 0.05; done; echo went").await;
    let pid = server.pid();
    let (code, said) = ptyd(&server, &["stop"]);
    assert_eq!(
        (code, said),
        (Some(0), format!("the server (pid {}) has stopped; 1 session keeps running\n", pid.number()))
    );
    assert!(server.pid().ends_within(Duration::ZERO), "it has waited for the end");
    assert!(server.stop().success());
    assert!(other.client().is_ready().await);
    let (code, said) = ptyd(&server, &["stop"]);
    assert!(code == Some(5) && said.contains("no server answers"), "{code:?} {said}");
    std::fs::write(server.home().file("go"), "").expect("written");
    server.again();
    let done = shell.end_of(&waits).await;
    assert_eq!((done.exit_code, done.output.as_deref()), (Some(0), Some("went\n")));
    shell.ends().await;
    assert!(ptyd(&server, &["stop"]).1.ends_with("no session was running\n"));
    assert!(server.stop().success());
}
