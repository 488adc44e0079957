//! A server that is asked to stop, with a request open at every door, and servers that follow each other while a session works.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;

use api::ExecuteRequest;
use e2e::printer::{check, printer};
use e2e::{Connection, Follower, Home, Mcp, PATIENCE, Server, Session, Socket, SocketMessage, Start, eventually};
use serde_json::{Value, json};

/// A command that has begun once the file is there, and that ends with this code once `go` is there.
fn gated(name: &str, code: u8) -> String {
    format!("touch {name}; until [ -e go ]; do sleep 0.05; done; echo {name}; (exit {code})")
}

async fn has_begun(server: &Server, name: &str) {
    eventually(name, async || server.home().file(name).exists().then_some(())).await;
}

/// The result of a call over MCP's own HTTP.
fn called(mut wire: Connection, bearer: &str, session: &str, command: &str) -> std::io::Result<Value> {
    let arguments = json!({ "session_id": session, "command": command, "timeout": 60 });
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "raw", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": "execute_in_terminal", "arguments": arguments, "_meta": meta });
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let headers = [
        ("Host", "localhost"),
        ("Authorization", bearer),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "execute_in_terminal"),
        ("Mcp-Param-Session", session),
    ];
    Ok(wire.send("POST", "/mcp", &headers, &request.to_string())?.json()["result"].take())
}

/// Reads until the server closes the connection.
fn rest_of(mut wire: TcpStream) -> std::io::Result<Vec<u8>> {
    wire.set_read_timeout(Some(PATIENCE))?;
    let mut rest = Vec::new();
    wire.read_to_end(&mut rest).map(|_| rest)
}

#[tokio::test]
// promise: crash-3
async fn a_server_that_stops_answers_what_is_open_at_every_door_and_ends() {
    let server = Server::start();
    let bearer = format!("Bearer {}", server.token());
    let (over_tcp, over_unix, over_mcp) = (server.session().await, server.session().await, server.session().await);
    let rest = |mut wire: Connection, shell: &Session, bearer: Option<&str>, command: String| {
        let (path, bearer) = (format!("/terminals/{}/execute", shell.id), bearer.map(str::to_owned));
        thread::spawn(move || {
            let body = json!({ "command": command, "timeout": 60 }).to_string();
            let mut headers = vec![("Host", "localhost")];
            headers.extend(bearer.as_deref().map(|bearer| ("Authorization", bearer)));
            wire.send("POST", &path, &headers, &body).map(|reply| reply.problem())
        })
    };
    let tcp = || Connection::tcp(server.address()).expect("it listens");
    let first = rest(tcp(), &over_tcp, Some(&bearer), gated("tcp", 1));
    let second = rest(server.connect(), &over_unix, None, gated("unix", 2));
    let third = thread::spawn({
        let (wire, bearer, id) = (tcp(), bearer.clone(), over_mcp.id.clone());
        move || called(wire, &bearer, &id, &gated("mcp", 3))
    });
    for name in ["tcp", "unix", "mcp"] {
        has_begun(&server, name).await;
    }
    // A connection without a request, and a request without the end of its body.
    let idle = TcpStream::connect(server.address()).expect("it listens");
    let mut half = TcpStream::connect(server.address()).expect("it listens");
    let head = format!("POST /terminals HTTP/1.1\r\nHost: localhost\r\nAuthorization: {bearer}\r\n");
    half.write_all(format!("{head}Content-Length: 100\r\n\r\n{{").as_bytes()).expect("it listens");
    // The server has accepted both once it answers those that come after them.
    let mut follower = Follower::open(&server, &server.token(), None);
    let mut viewer = Socket::visit(&server, &over_tcp.id, "").await;
    viewer.until(|heard| matches!(heard, SocketMessage::Snapshot(..)).then_some(())).await;

    assert!(server.stop().success(), "it exits with 0 and in time");
    let restarting = || (503, "server_restarting".to_owned(), String::new());
    assert_eq!(first.join().expect("no panic").expect("an answer"), restarting());
    assert_eq!(second.join().expect("no panic").expect("an answer"), restarting());
    let answered = third.join().expect("no panic").expect("an answer");
    let text = answered["content"][0]["text"].as_str().unwrap_or_default();
    assert!(answered["isError"] == true && text.contains("the server is restarting"), "{answered}");
    assert_eq!(viewer.to_the_end().await.2, 1012);
    // The last chunk is empty: the stream has ended and was not cut.
    let lines: Vec<String> = std::iter::from_fn(|| follower.line()).collect();
    assert_eq!(lines.iter().rev().find(|line| !line.is_empty()).map(String::as_str), Some("0"), "{lines:?}");
    assert_eq!(rest_of(idle).expect("an end in time"), b"");
    // The kernel resets a connection that is closed before the beginning of its body was read.
    match rest_of(half) {
        Ok(rest) => assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 "), "{}", String::from_utf8_lossy(&rest)),
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
    }

    server.again();
    std::fs::write(server.home().file("go"), "").expect("written");
    for (shell, name, code) in [(&over_tcp, "tcp", 1), (&over_unix, "unix", 2), (&over_mcp, "mcp", 3)] {
        let done = shell.end_of(&shell.command("c1").await).await;
        assert_eq!((done.exit_code, done.output), (Some(code), Some(format!("{name}\n"))));
    }
}

#[tokio::test]
// promise: crash-3, service-2
async fn five_servers_follow_each_other_and_no_byte_and_no_wait_is_lost() {
    let home = Home::make();
    // A manager keeps the socket meanwhile; otherwise the agent's client would start a server of its own.
    let start = Start::activated(&home);
    let server = Server::start_in(home, start);
    let prints = server.session().await;
    // A client that repeats its request at the next server, with its key, until the command has ended.
    let waits = tokio::spawn({
        let (client, id) = (Arc::clone(server.client()), prints.id.clone());
        async move {
            let command = format!("touch printing; {}", printer(4));
            let request =
                ExecuteRequest { command, timeout: Some(60.0), max_chars: Some(0), ..ExecuteRequest::default() };
            let mut cut = 0;
            loop {
                match client.execute(&id, &request, Some("one")).await {
                    Ok(ended) => return (ended, cut),
                    Err(error) => assert!(error.is_outage(), "{error}"),
                }
                cut += 1;
                tokio::task::yield_now().await;
            }
        }
    });
    has_begun(&server, "printing").await;
    let pid = prints.look().await.pid;
    let mut agent = Some(Mcp::start(&server).expect("it starts"));
    let mut asks = None;
    for servers in (0..5).rev() {
        // A call that has outlived several servers is refused, because it could be what ends them.
        if servers == 0 {
            let mut agent = agent.take().expect("it calls once");
            asks = Some(thread::spawn(move || {
                let call = json!({ "command": gated("agent", 6), "timeout": 120 });
                agent.call("terminal", call).map(|answer| (answer, agent))
            }));
            has_begun(&server, "agent").await;
        }
        assert!(server.stop().success());
        server.again();
        assert_eq!(prints.look().await.pid, pid, "the same shell");
    }
    for file in ["stop", "go"] {
        std::fs::write(server.home().file(file), "").expect("written");
    }
    let (ended, cut) = waits.await.expect("no panic");
    assert_eq!((ended.id.as_str(), ended.exit_code), ("c1", Some(4)), "it has run once");
    assert!(cut > 0, "no server has cut it short");
    check(&server, 4, &prints, &ended).await;
    let asks = asks.expect("it has called");
    let (answer, _agent) = asks.join().expect("no panic").expect("its client sees no restart");
    let text = answer["content"][0]["text"].as_str().unwrap_or_default();
    assert!(text.starts_with("agent\n[exit 6"), "{text}");
}
