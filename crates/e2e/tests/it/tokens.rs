//! Named tokens: the permissions of each scope, the visible sessions, the effects of revocation, and the positions of clients.

use std::io::{Read, Write};
use std::net::TcpStream;

use api::{CreateRequest, ErrorCode, ExecuteRequest, TokenScope};
use client::Client;
use e2e::{Home, PATIENCE, Server, Socket, SocketMessage, Start, configure, token};

fn code<T>(result: Result<T, client::ClientError>) -> Option<ErrorCode> {
    result.err().and_then(|e| e.code())
}

fn for_owner(owner: &str) -> CreateRequest {
    CreateRequest { owner: Some(owner.to_owned()), ..CreateRequest::default() }
}

#[tokio::test]
// promise: access-4
async fn a_token_sees_and_uses_the_sessions_of_its_name_and_no_others() {
    let server = Server::start();
    let mut clients = Vec::new();
    for (name, scope) in [("ann", TokenScope::Write), ("bob", TokenScope::Write), ("root-ish", TokenScope::Admin)] {
        clients.push(Client::tcp(server.address(), token(&server, name, scope).await));
    }
    let [ann, bob, admin] = &clients[..] else { unreachable!("three were made") };
    let hers = ann.create(&CreateRequest::default(), Some("key")).await.expect("created");
    assert_eq!(hers.owner, "ann");
    // The same key of another owner is another key.
    let his = bob.create(&CreateRequest::default(), Some("key")).await.expect("created");
    assert_eq!(
        (his.owner.as_str(), ann.create(&CreateRequest::default(), Some("key")).await.map(|s| s.id).ok()),
        ("bob", Some(hers.id.clone()))
    );
    assert_eq!(code(bob.session(&hers.id).await), Some(ErrorCode::SessionNotFound));
    assert_eq!(code(bob.terminate(&hers.id, true, None).await), Some(ErrorCode::SessionNotFound));
    assert_eq!(code(bob.commands(&hers.id).await), Some(ErrorCode::SessionNotFound));
    assert_eq!(code(bob.create(&for_owner("ann"), None).await), Some(ErrorCode::Forbidden));
    let lists = async |client: &Client| -> Vec<String> {
        client.list(None).await.expect("a list").terminals.into_iter().map(|s| s.owner).collect()
    };
    assert_eq!((lists(ann).await, lists(bob).await), (vec!["ann".to_owned()], vec!["bob".to_owned()]));
    assert_eq!(lists(admin).await, ["ann", "bob"]);
    // An admin sets the owner, who finds the session then, also when it has ended.
    let given = admin.create(&for_owner("bob"), None).await.expect("created");
    assert_eq!((lists(bob).await, given.owner.as_str()), (vec!["bob".to_owned(), "bob".to_owned()], "bob"));
    bob.terminate(&given.id, true, None).await.expect("its own");
    assert_eq!(ann.list(Some("terminated")).await.expect("a list").total, 0);
    assert_eq!(bob.list(Some("terminated")).await.expect("a list").total, 1);
    assert_eq!(code(ann.session(&given.id).await), Some(ErrorCode::SessionNotFound));
    assert_eq!(code(ann.tokens().await), Some(ErrorCode::Forbidden));
    let names: Vec<String> = admin.tokens().await.expect("a list").tokens.into_iter().map(|t| t.name).collect();
    assert_eq!(names, ["ann", "bob", "root-ish"]);
    assert_eq!(code(admin.revoke_token("nobody").await), Some(ErrorCode::TokenNotFound));
}

#[tokio::test]
// promise: access-6
async fn everything_open_on_a_revoked_token_ends_at_once_and_its_sessions_live_on() {
    let server = Server::start();
    let text = token(&server, "agent", TokenScope::Write).await;
    let agent = Client::tcp(server.address(), &text);
    let id = agent.create(&CreateRequest::default(), None).await.expect("created").id;
    let bearer = format!("Bearer {text}");
    let head = [("authorization", bearer.as_str()), ("sec-websocket-protocol", "ptyd.v1")];
    let path = format!("/terminals/{id}/socket");
    let mut socket = Socket::open(&server, &path, &head).await.expect("a WebSocket");
    socket.event("control").await;
    // Tickets that were not used yet die with the token.
    let mut connection = e2e::Connection::tcp(server.address()).expect("it listens");
    let headers = [("Host", "localhost"), ("Authorization", bearer.as_str())];
    let body = format!(r#"{{"session":"{id}","scope":"write"}}"#);
    let ticket = connection.send("POST", "/tickets", &headers, &body).expect("an answer").json()["ticket"].clone();
    let mut follower = TcpStream::connect(server.address()).expect("it listens");
    follower.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let follow = format!(
        "GET /terminals/{id}/output/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: {bearer}\r\nConnection: close\r\n\r\n"
    );
    follower.write_all(follow.as_bytes()).expect("it listens");
    assert!(follower.read(&mut [0; 4096]).expect("a first event") > 0);
    let shell = e2e::Session::new(std::sync::Arc::clone(server.client()), id.clone());
    let command = shell.begin("echo up; sleep 60").await;
    let request = api::WaitRequest { timeout: Some(60.0), ..api::WaitRequest::default() };
    let waiting = agent.wait(&id, &request);
    let revoking = async {
        // The wait is open by then or not: it is refused either way.
        server.client().revoke_token("agent").await.expect("revoked")
    };
    let (waited, _) = tokio::join!(waiting, revoking);
    assert_eq!(code(waited), Some(ErrorCode::Unauthorized));
    let closed = socket.until(|heard| match heard {
        SocketMessage::Closed(code, _) => Some(*code),
        _ => None,
    });
    assert_eq!(closed.await, 4401);
    let mut rest = Vec::new();
    follower.read_to_end(&mut rest).expect("its end, and not silence");
    assert_eq!(code(agent.session(&id).await), Some(ErrorCode::Unauthorized));
    let by_ticket = format!("{path}?ticket={}", ticket.as_str().expect("a ticket"));
    assert_eq!(Socket::open(&server, &by_ticket, &[("sec-websocket-protocol", "ptyd.v1")]).await.err(), Some(401));
    let now = shell.look().await;
    assert_eq!((now.owner.as_str(), now.current_command), ("agent", Some(command.id)));
    let log = server.logged();
    assert!(!log.contains(&text[5..]) && !log.contains(ticket.as_str().expect("a ticket")), "in no log");
}

#[tokio::test]
// promise: access-5
async fn a_token_is_good_at_the_next_server_too_and_a_viewer_with_a_read_token_only_looks() {
    let server = Server::start();
    let reads = token(&server, "reader", TokenScope::Read).await;
    let id = server.client().create(&for_owner("reader"), None).await.expect("created").id;
    server.kill9();
    server.again();
    let reader = Client::tcp(server.address(), &reads);
    assert_eq!(reader.session(&id).await.map(|s| s.id).ok(), Some(id.clone()));
    let bearer = format!("Bearer {reads}");
    let head = [("authorization", bearer.as_str()), ("sec-websocket-protocol", "ptyd.v1")];
    let mut socket = Socket::open(&server, &format!("/terminals/{id}/socket"), &head).await.expect("a WebSocket");
    assert_eq!(socket.event("control").await["mayWrite"], false);
    socket.types(1, b"echo no\r").await;
    assert_eq!(socket.until(|h| if let SocketMessage::Closed(code, _) = h { Some(*code) } else { None }).await, 4403);
    server.client().revoke_token("reader").await.expect("revoked");
    server.kill9();
    server.again();
    assert_eq!(code(Client::tcp(server.address(), &reads).session(&id).await), Some(ErrorCode::Unauthorized));
}

#[tokio::test]
// promise: access-3
async fn tokens_are_made_listed_and_revoked_on_the_command_line() {
    let server = Server::start();
    let ptyd = |args: &[&str]| {
        let output = server.ptyd(args).output().expect("it can be executed");
        (String::from_utf8(output.stdout).expect("text"), output.status.code())
    };
    let (made, status) = ptyd(&["token", "new", "ci", "--scope", "read", "--expires", "1h"]);
    assert_eq!((made.trim_end().len(), status), (48, Some(0)));
    assert!(Client::tcp(server.address(), made.trim_end()).list(None).await.is_ok());
    let (listed, _) = ptyd(&["token", "ls", "--json"]);
    let listed: Vec<api::TokenInfo> = serde_json::from_str(&listed).expect("JSON");
    assert!(
        matches!(&listed[..], [one] if one.name == "ci" && one.scope == TokenScope::Read && one.expires_at.is_some())
    );
    assert_eq!(ptyd(&["token", "new", "ci", "--unconfined"]).1, Some(1), "there is one");
    assert_eq!(ptyd(&["token", "revoke", "ci"]), (String::new(), Some(0)));
    assert_eq!(ptyd(&["token", "ls"]), (String::new(), Some(0)));
    assert_eq!(code(Client::tcp(server.address(), made.trim_end()).list(None).await), Some(ErrorCode::Unauthorized));
}

#[tokio::test]
// promise: access-4
async fn a_bound_token_uses_no_session_outside_its_bounds_although_its_name_owns_it() {
    let home = Home::make();
    configure(&home, "[profiles.p]\nrc = \"clean\"\n");
    let server = Server::start_in(home, Start::default());
    let old = token(&server, "bot", TokenScope::Write).await;
    let before = Client::tcp(server.address(), &old);
    let unbound = before.create(&CreateRequest::default(), None).await.expect("created").id;
    let within = CreateRequest { profile: Some("p".to_owned()), ..CreateRequest::default() };
    let within = before.create(&within, None).await.expect("created").id;
    let ended = before.create(&CreateRequest::default(), None).await.expect("created").id;
    before.terminate(&ended, true, None).await.expect("ended");
    server.client().revoke_token("bot").await.expect("revoked");
    let output = server.ptyd(&["token", "new", "bot", "--profile", "p"]).output().expect("it can be executed");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("1 older session of bot is outside the restrictions"), "{said}");
    let made = String::from_utf8(output.stdout).expect("text");
    let bound = Client::tcp(server.address(), made.trim_end());
    assert_eq!(bound.session(&within).await.map(|s| s.id).ok(), Some(within.clone()));
    let listed = bound.list(None).await.expect("listed").terminals;
    assert_eq!(listed.iter().map(|session| &session.id).collect::<Vec<_>>(), [&within]);
    let named = ExecuteRequest { command: "true".to_owned(), ..ExecuteRequest::default() };
    for id in [&unbound, &ended] {
        assert_eq!(code(bound.session(id).await), Some(ErrorCode::SessionNotFound));
        assert_eq!(code(bound.execute(id, &named, None).await), Some(ErrorCode::SessionNotFound));
        assert_eq!(code(bound.terminate(id, true, None).await), Some(ErrorCode::SessionNotFound));
    }
    assert_eq!(server.client().session(&unbound).await.map(|s| s.id).ok(), Some(unbound));
}

#[tokio::test]
async fn a_token_for_a_missing_profile_is_refused_with_the_list_of_existing_ones() {
    let home = Home::make();
    configure(&home, "[profiles.build]\n[profiles.deploy]\n");
    let server = Server::start_in(home, Start::default());
    let refused = server.ptyd(&["token", "new", "bot", "--profile", "nope"]).output().expect("it can be executed");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("there is no profile \"nope\"; there are: build, deploy"), "{said}");
    assert_eq!(refused.stdout, b"", "no token is made");
    assert_eq!(server.client().tokens().await.expect("listed").tokens.len(), 0);
}

#[tokio::test]
// promise: access-4
async fn a_new_token_needs_bounds_or_unconfined_and_its_unused_sessions_end() {
    let server = Server::start();
    let refused = server.ptyd(&["token", "new", "bot"]).output().expect("it can be executed");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(["--profile", "--confinement", "--unconfined"].iter().all(|choice| said.contains(choice)), "{said}");
    let made = server.ptyd(&["token", "new", "bot", "--unconfined"]).output().expect("it can be executed");
    let made = String::from_utf8(made.stdout).expect("text");
    let bot = Client::tcp(server.address(), made.trim_end());
    for (client, asked, ends) in [
        (&bot, None, Some(86_400.0)),
        (&bot, Some(60.0), Some(60.0)),
        (&bot, Some(0.0), None),
        (server.client(), None, None),
    ] {
        let request = CreateRequest { inactivity_timeout: asked, ..CreateRequest::default() };
        let id = client.create(&request, None).await.expect("created").id;
        assert_eq!(client.session(&id).await.expect("there").inactivity_timeout, ends, "{asked:?}");
    }
}

#[tokio::test]
// promise: access-4
async fn a_confined_token_learns_that_its_session_needs_a_folder() {
    // A service manager starts it so.
    let behind = ["env", "-C", "/"].map(Into::into).to_vec();
    let server = Server::start_in(Home::make(), Start { behind, ..Start::default() });
    let made = server.ptyd(&["token", "new", "bot", "--confinement", "process"]).output().expect("it can be executed");
    let made = String::from_utf8(made.stdout).expect("text");
    let bot = Client::tcp(server.address(), made.trim_end());
    let refused = bot.create(&CreateRequest::default(), None).await.expect_err("it names no folder").to_string();
    assert!(refused.contains("names none") && refused.contains("`cwd`"), "{refused}");
    let folder = server.home().path().join("app");
    std::fs::create_dir(&folder).expect("a folder");
    let request = CreateRequest { cwd: Some(folder.display().to_string()), ..CreateRequest::default() };
    assert!(bot.create(&request, None).await.is_ok());
}

#[tokio::test]
// promise: access-8
async fn a_caller_that_asks_too_often_learns_when_to_retry_and_blocks_nobody_else() {
    let env = vec![("PTYD_REQUESTS_PER_SECOND", "2".into()), ("PTYD_FAILURES_PER_SECOND", "1".into())];
    let server = Server::start_as(Start { env, ..Start::default() });
    let good = token(&server, "busy", TokenScope::Read).await;
    let other = token(&server, "calm", TokenScope::Read).await;
    let ask = |token: &str, path: &str| {
        let bearer = format!("Bearer {token}");
        let headers = [("Host", "localhost"), ("Authorization", bearer.as_str())];
        // An unauthenticated one ends with its answer.
        let mut connection = e2e::Connection::tcp(server.address()).expect("it listens");
        connection.send("GET", path, &headers, "").expect("an answer")
    };
    let answers: Vec<_> = (0..12).map(|_| ask(&good, "/terminals")).collect();
    let refused = answers.iter().find(|a| a.status == 429).expect("one too many");
    assert!(answers.iter().filter(|a| a.status == 200).count() >= 8);
    assert_eq!((refused.problem().1.as_str(), refused.header("retry-after")), ("rate_limited", Some("1")));
    assert_eq!([ask(&other, "/terminals").status, ask("", "/livez").status], [200, 200]);
    // A wrong token is refused, and then rate-limited; a valid one is always accepted.
    let statuses: Vec<u16> = (0..15).map(|_| ask("wrong", "/terminals").status).collect();
    assert_eq!((statuses[0], statuses[14]), (401, 429));
    assert_eq!(ask(&other, "/terminals").status, 200);
}

#[tokio::test]
// promise: rest-6
async fn clients_of_one_token_that_name_themselves_each_read_every_byte_once() {
    let server = Server::start();
    let bearer = format!("Bearer {}", token(&server, "agent", TokenScope::Write).await);
    let id = server.client().create(&for_owner("agent"), None).await.expect("created").id;
    let shell = e2e::Session::new(std::sync::Arc::clone(server.client()), id.clone());
    let ask = |names: &[&str]| {
        let mut headers = vec![("Host", "localhost"), ("Authorization", bearer.as_str())];
        headers.extend(names.iter().map(|name| ("Ptyd-Client", *name)));
        let mut connection = e2e::Connection::tcp(server.address()).expect("it listens");
        connection.send("GET", &format!("/terminals/{id}/output?since=last"), &headers, "").expect("an answer")
    };
    // The lines that a client has not read yet.
    let unread = |names: &[&str]| {
        let answer = ask(names);
        assert_eq!(answer.status, 200, "{names:?}: {}", answer.json());
        let text = answer.json()["text"].as_str().expect("text").to_owned();
        text.lines().filter(|line| ["one", "two", "three"].contains(line)).map(str::to_owned).collect::<Vec<_>>()
    };
    shell.gives("echo one").await;
    assert_eq!((unread(&["ann"]), unread(&["bob"])), (vec!["one".to_owned()], vec!["one".to_owned()]));
    shell.gives("echo two").await;
    assert_eq!((unread(&["ann"]), unread(&["ann"])), (vec!["two".to_owned()], vec![]));
    assert_eq!((unread(&["bob"]), unread(&["bob"])), (vec!["two".to_owned()], vec![]));
    shell.gives("echo three").await;
    server.upgrade();
    assert_eq!((unread(&["ann"]), unread(&["ann"])), (vec!["three".to_owned()], vec![]));
    assert_eq!((unread(&["bob"]), unread(&["bob"])), (vec!["three".to_owned()], vec![]));
    assert_eq!(unread(&[]), ["one", "two", "three"], "a client without a name has the token's position");
    let long = "x".repeat(65);
    for wrong in [&[""][..], &["a b"], &["ann\u{e9}"], &[long.as_str()], &["ann", "bob"]] {
        assert_eq!(ask(wrong).problem(), (400, "malformed_head".to_owned(), String::new()), "{wrong:?}");
    }
}

/// Asks the server over its Unix socket as a child of another name, and prints statuses and owners of sessions.
const ASKS: &str = r#"
import http.client, json, os, socket, sys
if os.fork():
    os.wait()
    sys.exit()
open('/proc/self/comm', 'w').write('ptyd-holder')
if os.fork():
    os.wait()
    os._exit(0)
class Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(sys.argv[1])
def ask(method, path, body=None):
    connection = Unix('localhost')
    connection.request(method, path, body, {'Content-Type': 'application/json'} if body else {})
    reply = connection.getresponse()
    return reply.status, json.loads(reply.read() or 'null')
status, list = ask('GET', '/terminals')
owners = sorted({terminal['owner'] for terminal in list['terminals']}) if status == 200 else list['detail']
print(status, owners, ask('GET', '/tokens')[0], ask('DELETE', '/terminals/' + sys.argv[2])[0])
"#;

#[tokio::test]
// promise: access-4
async fn a_program_in_a_session_acts_for_the_sessions_owner_and_for_nobody_else() {
    let server = Server::start();
    let mine = server.session().await;
    let text = token(&server, "bot", TokenScope::Write).await;
    let bot = Client::tcp(server.address(), text);
    let its = bot.create(&CreateRequest::default(), None).await.expect("created").id;
    let its = e2e::Session::new(std::sync::Arc::clone(server.client()), its);
    // A program can have the name and the argument of another session's holder.
    std::fs::write(server.home().file(&mine.id), ASKS).expect("written");
    let asks = format!("python3 '{}' '{}' {}", mine.id, server.home().socket().display(), mine.id);
    assert_eq!(its.gives(&asks).await, (0, "200 ['bot'] 403 404\n".to_owned()));
    // Nor does it help to leave the shell's session, its process group and its terminal.
    let left = format!("setsid -f {asks} | cat");
    assert_eq!(its.gives(&left).await, (0, "200 ['bot'] 403 404\n".to_owned()));
    // A later server, which has perhaps not taken the session up yet, tells it as well.
    server.kill9();
    server.again();
    assert_eq!(its.gives(&asks).await, (0, "200 ['bot'] 403 404\n".to_owned()));
    server.client().revoke_token("bot").await.expect("revoked");
    let (code, said) = its.gives(&asks).await;
    assert!(code == 0 && said.starts_with("403 this program runs in a session whose owner's token"), "{said}");
    // The user's own sessions are the user, who could read the token as well.
    let owner = mine.look().await.owner;
    let asks = format!("python3 '{}' '{}' {}", mine.id, server.home().socket().display(), its.id);
    let mut owners = ["bot", &owner];
    owners.sort_unstable();
    assert_eq!(mine.gives(&asks).await, (0, format!("200 ['{}', '{}'] 200 200\n", owners[0], owners[1])));
}
