//! No reader sees how commands are handed over, live or later, and wherever it begins; all see the commands.

use api::{CreateRequest, Dimensions, ExecuteRequest, OutputQuery, OutputView, SearchQuery};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use e2e::inside::enters;
use e2e::{Random, Server, Session, Socket, SocketMessage, count, join_all};
use serde_json::Value;

/// Words that stand in every line of ours, or in a marker.
const OURS: [&str; 5] = ["ptyd_", "ptyd=", "7337;", "unset __", "builtin"];
/// More commands than a session keeps in memory.
const COMMANDS: usize = 70;

async fn text(shell: &Session, since: u64) -> String {
    let query = OutputQuery { since: Some(format!("o:{since}")), ..OutputQuery::default() };
    shell.output(&query).await.text.unwrap_or_default()
}

/// The stream from here on, in pieces of this many bytes of the journal.
async fn stream(shell: &Session, since: u64, limit: u64) -> Vec<u8> {
    let (mut bytes, mut at) = (Vec::new(), since);
    loop {
        let view = Some(OutputView::Stream);
        let query =
            OutputQuery { since: Some(format!("o:{at}")), max_bytes: Some(limit), view, ..OutputQuery::default() };
        let piece = shell.output(&query).await;
        if piece.next_offset == at {
            return bytes;
        }
        at = piece.next_offset;
        bytes.extend(STANDARD.decode(piece.data_base64.expect("the stream")).expect("base64"));
    }
}

fn recording(server: &Server, shell: &Session) -> Vec<u8> {
    let reply = server.connect().ask("GET", &format!("/terminals/{}/recording", shell.id), "").expect("an answer");
    let cast = String::from_utf8(reply.body).expect("text");
    let events = cast.lines().skip(1).map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let output = events.filter(|event| event[1] == "o").map(|event| event[2].as_str().expect("output").to_owned());
    output.collect::<String>().into_bytes()
}

async fn watched(server: &Server, shell: &Session, since: u64, end: u64) -> Vec<u8> {
    let mut socket = Socket::visit(server, &shell.id, &format!("?since={since}")).await;
    let (mut bytes, mut at) = (Vec::new(), since);
    while at < end {
        if let SocketMessage::Data(from, to, more) = socket.next().await {
            assert_eq!(from, at, "no gap and no duplicate");
            bytes.extend(more);
            at = to;
            socket.parsed(at).await;
        }
    }
    bytes
}

async fn found(server: &Server, shell: &Session, pattern: &str) -> Vec<String> {
    let query = SearchQuery { q: pattern.to_owned(), limit: Some(1000), ..SearchQuery::default() };
    let found = server.client().search(&shell.id, &query).await.expect("an answer");
    found.matches.into_iter().map(|hit| hit.text).collect()
}

fn shows_only_commands(view: &str, shown: &str, commands: &[String]) {
    for ours in OURS {
        let line = shown.lines().find(|line| line.contains(ours));
        assert_eq!(line, None, "{view}: {ours:?} is shown");
    }
    let mut rest = shown;
    for command in commands {
        let at = rest.find(command.as_str()).unwrap_or_else(|| panic!("{view}: no {command:?} in {rest:?}"));
        rest = &rest[at + command.len()..];
    }
}

/// Looks at a session in all ways, from its beginning and from places anywhere.
async fn all_ways(server: &Server, shell: &Session, name: &str, commands: &[String]) {
    let end = shell.look().await.journal.end_offset;
    let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    shows_only_commands(&format!("{name}: text"), &text(shell, 0).await, commands);
    let streamed = stream(shell, 0, 1 << 20).await;
    shows_only_commands(&format!("{name}: stream"), &lossy(&streamed), commands);
    assert_eq!(lossy(&recording(server, shell)), lossy(&streamed), "{name}: recording");
    assert_eq!(lossy(&watched(server, shell, 0, end).await), lossy(&streamed), "{name}: viewer");
    shows_only_commands(&format!("{name}: search"), &found(server, shell, ".").await.join("\n"), commands);
    let mut random = Random::seeded();
    for _ in 0..count(2, 100) {
        let (at, limit) = (random.below(end), 100 + random.below(4000));
        shows_only_commands(&format!("{name}: text from {at}"), &text(shell, at).await, &[]);
        let pieces = stream(shell, at, limit).await;
        shows_only_commands(&format!("{name}: stream from {at} by {limit}"), &lossy(&pieces), &[]);
        // busybox asks the terminal something at each prompt, and a question is left out as a whole.
        let is_rest = streamed.ends_with(&pieces) || name.starts_with("busybox");
        assert!(is_rest, "{name}: from {at} by {limit}: {:?}", lossy(&pieces));
        assert!(stream(shell, at, 1 << 20).await == pieces, "{name}: from {at} by {limit}: {:?}", lossy(&pieces));
        assert_eq!(lossy(&watched(server, shell, at, end).await), lossy(&pieces), "{name}: viewer from {at}");
    }
}

#[tokio::test]
// promise: output-15
async fn no_reader_sees_a_hand_over_wherever_it_begins() {
    let server = Server::start();
    let every = |(shell, cols): (&'static str, u16)| {
        let server = &server;
        async move {
            let name = format!("{shell} in {cols} columns");
            let dimensions = Some(Dimensions { cols, rows: 30 });
            let wish = CreateRequest { shell: Some(shell.to_owned()), dimensions, ..CreateRequest::default() };
            let session = server.session_with(wish).await;
            let mut commands: Vec<_> = (0..COMMANDS).map(|number| format!("echo unit-{number}")).collect();
            let pipeline = if shell == "fish" { "true | false; true $pipestatus" } else { "false | true" };
            commands.extend([pipeline, "true $PIPESTATUS $pipestatus"].map(str::to_owned));
            for command in &commands {
                session.run(command).await;
            }
            for enter in ["bash --norc", "dash", "fish -N", "zsh -f"] {
                let entered = enters(&session, enter).await;
                let inner = format!("echo 'in {enter}'");
                let inside = ExecuteRequest {
                    wait_for_completion: Some(true),
                    command: inner.clone(),
                    inside: true,
                    ..ExecuteRequest::default()
                };
                session.run_as(inside).await;
                session.types("exit").await;
                session.end_of(&entered).await;
                commands.extend([enter.to_owned(), inner]);
            }
            session.run("echo last").await;
            commands.push("echo last".to_owned());
            let screen = session.screen().await.join("\n");
            shows_only_commands(&format!("{name}: screen"), &screen, &["echo last".to_owned()]);
            all_ways(server, &session, &name, &commands).await;
            session.ends().await;
            all_ways(server, &session, &format!("{name}, ended"), &commands).await;
        }
    };
    let shells = [("bash", 120), ("zsh", 80), ("fish", 80), ("dash", 120), ("bash", 50), ("mksh", 60), ("busybox", 80)];
    join_all(shells.map(every)).await;
}
