//! The WebSocket of a client that offers no sub-protocol: plain JSON texts, exact in every byte.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use e2e::{Server, Session, Socket, SocketMessage};
use serde_json::{Value, json};

/// A client without a sub-protocol.
async fn plain(server: &Server, shell: &Session, query: &str) -> Socket {
    let bearer = format!("Bearer {}", server.token());
    let path = format!("/terminals/{}/socket{query}", shell.id);
    Socket::open(server, &path, &[("authorization", bearer.as_str())]).await.expect("let in")
}

/// The next message, or the close code.
async fn heard(socket: &mut Socket) -> Result<Value, u16> {
    match socket.next().await {
        SocketMessage::Event(message) => Ok(message),
        SocketMessage::Closed(code, _) => Err(code),
        other => panic!("no text: {other:?}"),
    }
}

/// The exact bytes of an output message.
fn bytes(message: &Value) -> Vec<u8> {
    match message["dataBase64"].as_str() {
        Some(coded) => STANDARD.decode(coded).expect("base64"),
        None => message["data"].as_str().expect("text").as_bytes().to_vec(),
    }
}

/// Listens until something fits; gives it.
async fn until(socket: &mut Socket, fits: impl Fn(&Value) -> bool) -> Value {
    loop {
        let message = heard(socket).await.expect("not closed");
        if fits(&message) {
            return message;
        }
    }
}

/// Listens until the output has these words; gives the output without its first picture.
async fn reads(socket: &mut Socket, words: &str) -> String {
    let mut all = Vec::new();
    loop {
        let message = heard(socket).await.expect("not closed");
        if message["type"] == "output" && message["snapshot"] != true {
            all.extend(bytes(&message));
        }
        let text = String::from_utf8_lossy(&all);
        if text.contains(words) {
            return text.into_owned();
        }
    }
}

#[tokio::test]
// promise: view-6
async fn a_client_without_a_sub_protocol_types_reads_and_learns_how_it_ended() {
    let server = Server::start();
    let shell = server.session().await;
    let mut socket = plain(&server, &shell, "").await;
    let first = heard(&mut socket).await.expect("a status");
    assert_eq!(
        (&first["type"], &first["status"], &first["session"]),
        (&json!("status"), &json!("running"), &json!(shell.id))
    );
    let screen = heard(&mut socket).await.expect("the screen");
    assert_eq!(
        (&screen["type"], &screen["snapshot"], &screen["dimensions"]["cols"]),
        (&json!("output"), &json!(true), &json!(120))
    );

    socket.says(r#"{"type":"input","data":"echo $((6*7)) ©\n"}"#).await;
    reads(&mut socket, "\r42 ©\r\n").await;
    shell.run("exit_with() { return 7; }; exit_with").await;
    let ended = until(&mut socket, |message| message["event"] == "command.completed").await;
    assert_eq!((&ended["type"], &ended["command"]["exitCode"]), (&json!("status"), &json!(7)));

    socket.says(r#"{"type":"resize","cols":90,"rows":30}"#).await;
    let resized = until(&mut socket, |message| message["event"] == "resize").await;
    assert_eq!(resized["dimensions"], json!({ "cols": 90, "rows": 30 }));
    socket.says(r#"{"type":"ping"}"#).await;
    until(&mut socket, |message| *message == json!({ "type": "pong" })).await;

    socket.says(r#"{"type":"input","data":"exit 3\n"}"#).await;
    let exit = until(&mut socket, |message| message["event"] == "exit").await;
    assert_eq!((&exit["status"], &exit["exit"]["exitCode"]), (&json!("terminated"), &json!(3)));
    let code = loop {
        if let Err(code) = heard(&mut socket).await {
            break code;
        }
    };
    assert_eq!(code, 4410);
}

#[tokio::test]
// promise: view-6
async fn a_split_character_arrives_whole_and_bytes_that_are_not_text_arrive_exactly() {
    let server = Server::start();
    let shell = server.session().await;
    let at = shell.look().await.journal.end_offset;
    let mut socket = plain(&server, &shell, &format!("?since=o:{at}")).await;
    let begun = shell.begin(r"printf 'a\342'; read -rs; printf '\202\254b\377z\n'").await;
    // All that may be given now is given: the program waits, and a part of a character does not come.
    assert!(reads(&mut socket, "\ra").await.ends_with('a'));
    until(&mut socket, |message| message["foreground"] == "password_wanted").await;
    socket.says(r#"{"type":"input","data":"\n"}"#).await;
    let rest = until(&mut socket, |message| message["type"] == "output").await;
    assert_eq!(
        (&rest["data"], bytes(&rest).as_slice()),
        (&json!("€b\u{fffd}z\r\n"), "€b".as_bytes().iter().chain(b"\xffz\r\n").copied().collect::<Vec<_>>().as_slice())
    );
    shell.end_of(&begun).await;

    // A command's last character without an end is over with it, and comes before its end is told.
    let cut = shell.run(r"printf 'x\342\202'").await;
    let mut last = Value::Null;
    let ended = loop {
        let message = heard(&mut socket).await.expect("not closed");
        if message["event"] == "command.completed" && message["command"]["id"] == cut.id {
            break message;
        }
        if message["type"] == "output" {
            last = message;
        }
    };
    assert!(ended["command"]["outputSize"] == 3 && bytes(&last).ends_with(b"\xe2\x82"), "{last}");
}

#[tokio::test]
// promise: view-6
async fn input_is_text_bytes_or_a_binary_frame_and_a_number_types_it_once() {
    let server = Server::start();
    let shell = server.session().await;
    shell.run_until("stty raw -echo; echo ready; cat -v", "^ready$").await;
    let mut socket = plain(&server, &shell, "?client=me").await;
    socket.says(r#"{"type":"input","dataBase64":"/wE=","seq":1}"#).await;
    until(&mut socket, |message| *message == json!({ "type": "typed", "seq": 1 })).await;
    socket.sends(b"\xfe").await;
    reads(&mut socket, "M-~").await;
    drop(socket);
    let mut again = plain(&server, &shell, "?client=me").await;
    // Its first binary frame has no number, and is not the first one's.
    again.says(r#"{"type":"input","dataBase64":"/wE=","seq":1}"#).await;
    again.sends(b"\xfd").await;
    reads(&mut again, "M-}").await;
    let all = String::from_utf8(shell.journal().await).expect("ASCII");
    assert!(all.ends_with("M-^?^AM-~M-}"), "{all:?}");
}

#[tokio::test]
// promise: view-6
async fn an_invalid_message_gets_an_error_and_nothing_of_it_is_typed() {
    let server = Server::start();
    let shell = server.session().await;
    let mut socket = plain(&server, &shell, "").await;
    for (message, code) in [
        ("touch never\n", "malformed_body"),
        (r#"{"type":"inputs","data":"touch never\n"}"#, "invalid_field"),
        (r#"{"type":"input"}"#, "invalid_field"),
        (r#"{"type":"input","dataBase64":"?"}"#, "invalid_field"),
        (r#"{"type":"resize","cols":0,"rows":24}"#, "invalid_field"),
    ] {
        socket.says(message).await;
        let refused = until(&mut socket, |message| message["type"] == "error").await;
        assert_eq!(refused["code"], code, "{refused}");
    }
    socket.says(r#"{"type":"input","data":"echo alive\n"}"#).await;
    reads(&mut socket, "\ralive\r\n").await;
    assert!(!server.home().file("never").exists());
}

#[tokio::test]
// promise: view-6
async fn cut_off_anywhere_it_continues_with_the_next_byte_and_a_slow_reader_loses_none() {
    let server = Server::start();
    let shell = server.session().await;
    let at = shell.look().await.journal.end_offset;
    let count: usize = e2e::count(10_000, 40_000);
    // It stops four times until somebody presses Enter, so that there are four more connections at least.
    let lines =
        format!("for i in {{1..{count}}}; do echo \"$i é€😀\"; ((i % {})) || read -rp 'more? '; done", count / 4);
    let begun = shell.begin(&lines).await;
    let (mut next, mut all, mut connections) = (at, Vec::new(), 0);
    let mut end = None;
    while end.is_none_or(|end| next < end) {
        let mut socket = plain(&server, &shell, &format!("?since=o:{next}")).await;
        connections += 1;
        // More in each, so that some are cut off at full speed and some much later.
        for _ in 0..connections * 3 {
            let message = heard(&mut socket).await.expect("not closed");
            if message["type"] == "output" {
                assert_eq!(
                    (message["fromOffset"].as_u64(), message.get("dataBase64")),
                    (Some(next), None),
                    "{message}"
                );
                all.extend(bytes(&message));
                next = message["nextOffset"].as_u64().expect("an offset");
                if all.ends_with(b"more? ") {
                    shell.sends(b"\r").await;
                    break;
                }
            }
            let command = shell.command(&begun.id).await;
            end = command.end_offset;
            if end.is_some_and(|end| next >= end) {
                break;
            }
        }
    }
    let text = String::from_utf8(all).expect("whole characters");
    let lines: Vec<&str> = text.lines().filter(|line| line.ends_with(" é€😀")).collect();
    assert!(lines.len() == count && connections > 4, "{} lines over {connections} connections", lines.len());
    assert!(lines.iter().enumerate().all(|(i, line)| line.rsplit('\r').next() == Some(&format!("{} é€😀", i + 1))));
}

#[tokio::test]
// promise: view-6
async fn a_session_that_starts_slowly_is_creating_until_its_prompt() {
    let server = Server::start();
    let gate = server.home().file("gate");
    assert!(std::process::Command::new("mkfifo").arg(&gate).status().expect("mkfifo").success());
    std::fs::write(server.home().path().join(".bashrc"), format!("read -r _ < {}\n", gate.display())).expect("written");
    let shell = server.session().await;
    let mut socket = plain(&server, &shell, "").await;
    assert_eq!(heard(&mut socket).await.expect("a status")["status"], "creating");
    std::fs::write(&gate, "go\n").expect("it reads");
    until(&mut socket, |message| *message == json!({ "type": "status", "status": "running", "event": "ready" })).await;
}
