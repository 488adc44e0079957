//! The WebSocket: exact over any number of disconnects, fair to the slow, closed with a reason, entered by token or ticket.

use api::{CreateRequest, Dimensions};
use e2e::{Connection, Random, Server, Session, Socket, SocketMessage, count, footprint, join_all, seq};
use regex::bytes::Regex;
use rustix::process::Signal;
use tokio::io::AsyncWriteExt;

/// The journal as a viewer is to see it: without markers, and with the commands at the marks that stand for the lines of bash's builtins.
async fn shown(shell: &Session, commands: &[&str]) -> Vec<u8> {
    let marker =
        |kinds| Regex::new(&format!(r"(?-u)\x1b\]7337;[{kinds}];[0-9A-Za-z.]+(\x07|\x1b\\)")).expect("a pattern");
    let mut bytes = marker("CD").replace_all(&shell.journal().await, b"".as_slice()).into_owned();
    for command in commands {
        let mark = marker("A").find(&bytes).expect("the mark of a line").range();
        bytes.splice(mark, command.bytes());
    }
    bytes
}

async fn end(shell: &Session) -> u64 {
    shell.look().await.journal.end_offset
}

/// The output up to an offset, all of it acknowledged; every range must follow the one before.
async fn read_to(socket: &mut Socket, mut at: u64, end: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while at < end {
        match socket.next().await {
            SocketMessage::Data(from, to, more) => {
                assert_eq!(from, at, "no gap and no duplicate");
                bytes.extend(more);
                at = to;
                socket.parsed(at).await;
            }
            SocketMessage::Event(_) | SocketMessage::Typed(_) => {}
            other @ (SocketMessage::Snapshot(..) | SocketMessage::Gap(..) | SocketMessage::Closed(..)) => {
                panic!("at {at}: {other:?}")
            }
        }
    }
    bytes
}

#[tokio::test]
// promise: view-1
async fn every_byte_arrives_once_over_any_number_of_disconnects() {
    let mut random = Random::seeded();
    let server = Server::start();
    let shell = server.session().await;
    let lines = count(300_000, 12_000_000);
    let command = format!("seq 1 {lines}");
    shell.begin(&command).await;
    let (mut at, mut seen, mut connections) = (0, Vec::new(), 0);
    loop {
        let now = shell.look().await;
        let end = now.current_command.is_none().then_some(now.journal.end_offset);
        if end.is_some_and(|end| at >= end) {
            break;
        }
        let mut socket = Socket::visit(&server, &shell.id, &format!("?since=o:{at}&behind=all")).await;
        connections += 1;
        for _ in 0..=random.below(8) {
            let heard = socket.next().await;
            if let SocketMessage::Data(from, to, bytes) = &heard {
                assert_eq!(*from, at, "no gap and no duplicate");
                seen.extend_from_slice(bytes);
                at = *to;
                if random.below(2) == 0 {
                    socket.parsed(at).await;
                }
            }
            let is_over = matches!(&heard, SocketMessage::Event(value) if value["event"] == "command.completed");
            if end.map_or(is_over, |end| at >= end) {
                break;
            }
        }
    }
    assert!(connections >= count(20, 1_000), "only {connections} connections");
    let mut socket = Socket::visit(&server, &shell.id, &format!("?since=o:{at}&behind=all")).await;
    seen.extend(read_to(&mut socket, at, end(&shell).await).await);
    assert!(seen == shown(&shell, &[&command]).await, "the journal without markers, byte for byte");
    println!("{connections} connections, {} bytes", seen.len());
}

#[tokio::test]
// promise: view-3
async fn a_stalled_viewer_costs_little_slows_nobody_and_is_shown_the_present() {
    const STALLED: usize = 16;
    let server = Server::start();
    let shell = server.session().await;
    // This has the server make the buffers that it keeps.
    shell.gives("seq 1 200000 >/dev/tty").await;
    let mut stalled = join_all((0..STALLED).map(async |_| Socket::visit(&server, &shell.id, "").await)).await;
    let mut firsts = Vec::new();
    for socket in &mut stalled {
        firsts.push(
            socket.until(|heard| if let SocketMessage::Snapshot(at, _) = heard { Some(*at) } else { None }).await,
        );
    }
    let mut keen = Socket::visit(&server, &shell.id, &format!("?since={}&behind=all", firsts[0])).await;
    let before = footprint(server.pid()).resident_bytes;
    let lines = count(500_000, 2_000_000);
    let done = shell.run(&format!("seq 1 {lines}")).await;
    assert_eq!((done.exit_code, done.output_size), (Some(0), seq(lines).len() as u64));
    let grown = footprint(server.pid()).resident_bytes.saturating_sub(before);
    println!("{STALLED} stalled viewers: {} KiB in all", grown >> 10);
    assert!(grown < (STALLED as u64) << 20, "grown by {} KiB", grown >> 10);
    let whole = read_to(&mut keen, firsts[0], done.end_offset.expect("it ended")).await;
    assert!(whole.ends_with(&seq(lines)), "a keen one has seen it");
    for (socket, first) in stalled.iter_mut().zip(firsts) {
        // It gets what the window holds, and then nothing until it says that it was parsed.
        let mut at = first;
        while at - first < 256 << 10 {
            if let SocketMessage::Data(from, to, _) = socket.next().await {
                assert_eq!(from, at);
                at = to;
            }
        }
        assert!(at - first <= (256 + 16) << 10, "sent {} bytes unasked", at - first);
        socket.parsed(at).await;
        // A snapshot follows the one before it after 250 ms at the earliest; a viewer gets output until then.
        let to = loop {
            match socket.next().await {
                SocketMessage::Data(from, to, _) => {
                    assert_eq!(from, at);
                    at = to;
                    socket.parsed(at).await;
                }
                SocketMessage::Gap(from, to) => {
                    assert!(from == at && to > from);
                    break to;
                }
                SocketMessage::Event(_) => {}
                other => panic!("at {at}: {other:?}"),
            }
        };
        let SocketMessage::Snapshot(snapshot, bytes) = socket.next().await else {
            panic!("a snapshot follows the gap")
        };
        assert_eq!(snapshot, to);
        assert!(String::from_utf8_lossy(&bytes).contains(&format!("{lines}")), "the present");
    }
}

#[tokio::test]
// promise: view-2
async fn a_snapshot_is_the_screen_and_the_data_continue_where_it_ends() {
    let server = Server::start();
    let shell = server.session().await;
    let flood = shell.begin("for i in $(seq 1 3000); do echo line $i; done; echo last").await;
    let mut viewers = Vec::new();
    for _ in 0..8 {
        viewers.push(Socket::visit(&server, &shell.id, "").await);
    }
    let done = shell.end_of(&flood).await;
    let end = done.end_offset.expect("it ended");
    let journal = shell.journal().await;
    for mut socket in viewers {
        let attached = socket.event("control").await;
        assert_eq!(
            (attached["mayWrite"].as_bool(), attached["session"].as_str()),
            (Some(true), Some(shell.id.as_str()))
        );
        let at = socket.until(|heard| if let SocketMessage::Snapshot(at, _) = heard { Some(*at) } else { None }).await;
        let rest = read_to(&mut socket, at, end).await;
        if at < end {
            let tail = &journal
                [usize::try_from(at.max(done.start_offset)).expect("small")..usize::try_from(end).expect("small")];
            assert!(rest.ends_with(tail), "exactly what was not in the snapshot");
        }
    }
}

#[tokio::test]
// promise: once-1
async fn several_viewers_see_the_same_and_each_input_is_typed_once() {
    let server = Server::start();
    let shell = server.session().await;
    let mut first = Socket::visit(&server, &shell.id, "?client=one").await;
    let mut second = Socket::visit(&server, &shell.id, "").await;
    for socket in [&mut first, &mut second] {
        // The snapshot holds all output before it.
        snapshot(socket).await;
    }
    first.types(1, b"n=$((n+1)); echo n is $n\r").await;
    for socket in [&mut first, &mut second] {
        socket.reads_until("n is 1\r\n").await;
    }
    drop(first);
    // The same client comes back, and is not sure whether its input arrived.
    let mut again = Socket::visit(&server, &shell.id, "?client=one").await;
    again.types(1, b"n=$((n+1)); echo n is $n\r").await;
    again.until(|heard| (*heard == SocketMessage::Typed(1)).then_some(())).await;
    again.types(2, b"echo still $n\r").await;
    second.reads_until("still 1\r\n").await;
    // Another text under a number that was used is not a repetition.
    again.types(2, b"other").await;
    let code = again.until(|heard| if let SocketMessage::Closed(code, _) = heard { Some(*code) } else { None }).await;
    assert_eq!(code, 4409);
}

/// The first screen that a viewer gets.
async fn snapshot(viewer: &mut Socket) -> String {
    let bytes = viewer
        .until(|heard| if let SocketMessage::Snapshot(_, bytes) = heard { Some(bytes.clone()) } else { None })
        .await;
    String::from_utf8_lossy(&bytes).into_owned()
}

#[tokio::test]
// promise: output-15
async fn viewers_see_the_commands_and_not_their_hand_over() {
    let server = Server::start();
    for cols in [120, 50] {
        let dimensions = Some(Dimensions { cols, rows: 20 });
        let shell = server.session_with(CreateRequest { dimensions, ..CreateRequest::default() }).await;
        let mut viewer = Socket::visit(&server, &shell.id, "").await;
        // Output that comes before the snapshot is in it.
        snapshot(&mut viewer).await;
        shell.gives("printf 'first\\n'\necho second").await;
        let seen = viewer.reads_until("second\r\n").await;
        assert!(seen.contains("printf 'first\\n'\r\necho second\r\n") && !seen.contains("__ptyd"), "{cols}: {seen:?}");
        let mut late = Socket::visit(&server, &shell.id, "").await;
        let painted =
            late.until(|heard| if let SocketMessage::Snapshot(_, bytes) = heard { Some(bytes.clone()) } else { None });
        let painted = String::from_utf8_lossy(&painted.await).into_owned();
        assert!(painted.contains("echo second") && !painted.contains("__ptyd"), "{cols}: {painted:?}");
    }
}

#[tokio::test]
// promise: output-15
async fn all_output_of_a_job_during_hand_overs_is_shown() {
    let server = Server::start();
    let shell = server.session().await;
    let mut viewer = Socket::visit(&server, &shell.id, "").await;
    snapshot(&mut viewer).await;
    shell.gives("(for i in {1..3000}; do echo tick $i; done; touch ended) &").await;
    let mut rounds = 0;
    while shell.gives("test -e ended").await.0 != 0 {
        rounds += 1;
    }
    shell.gives("echo over").await;
    let seen = viewer.reads_until("over\r\n").await;
    for number in 1..=3000 {
        assert_eq!(seen.matches(&format!("tick {number}\r\n")).count(), 1, "tick {number} beside {rounds} commands");
    }
}

#[tokio::test]
// promise: view-2
async fn events_arrive_in_the_order_of_the_output() {
    let server = Server::start();
    let shell = server.session().await;
    let mut socket = Socket::visit(&server, &shell.id, "").await;
    socket.until(|heard| matches!(heard, SocketMessage::Snapshot(..)).then_some(())).await;
    assert_eq!(shell.gives("echo out; (exit 3)").await, (3, "out\n".to_owned()));
    let begun = socket.event("command.started").await;
    let id = begun["command"]["id"].clone();
    let mut output = Vec::new();
    let ended = loop {
        match socket.next().await {
            SocketMessage::Data(_, _, bytes) => output.extend(bytes),
            SocketMessage::Event(value) if value["event"] == "command.completed" => break value,
            _ => {}
        }
    };
    assert_eq!(String::from_utf8_lossy(&output), "out\r\n", "the output lies between the two");
    assert_eq!((&ended["command"]["id"], ended["command"]["exitCode"].as_i64()), (&id, Some(3)));
    socket.says(r#"{"event":"resize","dimensions":{"cols":100,"rows":30}}"#).await;
    let resized = socket.event("resize").await;
    assert_eq!(resized["dimensions"], serde_json::json!({"cols": 100, "rows": 30}));
    assert_eq!(shell.gives("stty size").await, (0, "30 100\n".to_owned()));
    let asks = shell.run("read -p 'name? ' x").await;
    socket.until(|h| matches!(h, SocketMessage::Event(v) if v["foreground"] == "input_wanted").then_some(())).await;
    socket.types(1, b"me\r").await;
    assert_eq!(shell.end_of(&asks).await.exit_code, Some(0));
    socket.says(r#"{"event":"resize","dimensions":{"cols":0,"rows":30}}"#).await;
    assert_eq!(socket.event("error").await["code"], "invalid_field");
    shell.begin("echo bye; exit 4").await;
    assert_eq!(socket.event("exit").await["exit"]["exitCode"], 4);
    assert_eq!(socket.to_the_end().await.2, 4410);
    // Everything can still be had.
    let (bytes, events, code) = Socket::visit(&server, &shell.id, "?since=0").await.to_the_end().await;
    assert_eq!((events, code), (vec!["control".to_owned(), "exit".to_owned()], 4410));
    assert!(String::from_utf8_lossy(&bytes).contains("bye\r\n"));
}

#[tokio::test]
// promise: once-1, crash-3
async fn a_viewer_of_a_stopping_server_reconnects_and_continues_at_the_next_one() {
    let server = Server::start();
    let shell = server.session().await;
    let mut socket = Socket::visit(&server, &shell.id, "?client=me").await;
    let mut at = socket.until(|heard| if let SocketMessage::Snapshot(at, _) = heard { Some(*at) } else { None }).await;
    socket.types(1, b"echo before\r").await;
    // The echo may come before the word that it was typed.
    let read = |heard: &SocketMessage| match heard {
        SocketMessage::Data(_, to, _) => {
            at = *to;
            None
        }
        heard => (*heard == SocketMessage::Typed(1)).then_some(()),
    };
    socket.until(read).await;
    while !shell.journal().await.windows(9).any(|w| w == b"\rbefore\r\n") {}
    server.pid().signal(Signal::TERM);
    let code = loop {
        match socket.next().await {
            SocketMessage::Data(from, to, _) => {
                assert_eq!(from, at);
                at = to;
            }
            SocketMessage::Closed(code, _) => break code,
            _ => {}
        }
    };
    assert_eq!(code, 1012);
    assert!(server.stop().success());
    server.again();
    let mut socket = Socket::visit(&server, &shell.id, &format!("?since=o:{at}&client=me")).await;
    // Sent once more, because the answer might have been lost.
    socket.types(1, b"echo before\r").await;
    socket.types(2, b"echo after\r").await;
    socket.reads_until("\rafter\r\n").await;
    let journal = String::from_utf8_lossy(&shell.journal().await).into_owned();
    assert_eq!((journal.matches("\rbefore\r").count(), journal.matches("\rafter\r").count()), (1, 1));
}

#[tokio::test]
// promise: view-5
async fn a_raw_socket_is_a_terminal_both_ways() {
    let server = Server::start();
    let shell = server.session().await;
    shell.gives("echo on the screen").await;
    let bearer = format!("Bearer {}", server.token());
    let path = format!("/terminals/{}/socket?mode=raw", shell.id);
    let mut socket = Socket::open(&server, &path, &[("authorization", &bearer)]).await.expect("let in");
    let mut seen = Vec::new();
    let has = |seen: &[u8], words: &str| String::from_utf8_lossy(seen).contains(words);
    while !has(&seen, "on the screen") {
        seen.extend(socket.message().await.into_data());
    }
    assert!(seen.starts_with(b"\x1bc"), "the screen comes first");
    socket.says("echo to").await;
    socket.sends(b"day\r").await;
    while !has(&seen, "\rtoday\r\n") {
        seen.extend(socket.message().await.into_data());
    }
    assert!(!has(&seen, "7337"), "no marker of ours");
}

#[tokio::test]
// promise: view-4
async fn bad_frames_close_with_a_reason_and_nothing_is_lost() {
    let server = Server::start();
    let shell = server.session().await;
    let mut other = Socket::visit(&server, &shell.id, "").await;
    let at = other.until(|heard| if let SocketMessage::Snapshot(at, _) = heard { Some(*at) } else { None }).await;
    let long = vec![0x11; (256 << 10) + 1];
    let far = [&[0x12], u64::MAX.to_le_bytes().as_slice()].concat();
    let frames: [(&[u8], u16); 5] =
        [(b"", 1002), (b"\x11", 1002), (b"\x63\0\0\0\0\0\0\0\0", 1002), (&long, 1009), (&far, 4409)];
    for (frame, expected) in frames {
        let mut socket = Socket::visit(&server, &shell.id, "").await;
        socket.sends(frame).await;
        assert_eq!(socket.to_the_end().await.2, expected, "{:?}", &frame[..frame.len().min(20)]);
    }
    let mut socket = Socket::visit(&server, &shell.id, "").await;
    socket.says("hello").await;
    assert_eq!(socket.to_the_end().await.2, 1003);
    let mut socket = Socket::visit(&server, &shell.id, "").await;
    // A frame with reserved bits is none at all.
    socket.stream().write_all(&[0xf2, 0x81, 0, 0, 0, 0, 0]).await.expect("sent");
    assert_eq!(socket.to_the_end().await.2, 1002);
    shell.gives("echo unharmed").await;
    let seen = read_to(&mut other, at, end(&shell).await).await;
    assert!(String::from_utf8_lossy(&seen).contains("unharmed\r\n"));
    let absent = Socket::visit(&server, "s0-aaaaaaaaaa", "").await.to_the_end().await.2;
    let beyond = Socket::visit(&server, &shell.id, "?since=o:999999999").await.to_the_end().await.2;
    assert_eq!((absent, beyond), (4404, 4409));
}

#[tokio::test]
// promise: access-7
async fn a_socket_is_entered_by_token_or_by_a_ticket_that_is_good_once() {
    let server = Server::start();
    let (shell, other) = (server.session().await, server.session().await);
    let path = format!("/terminals/{}/socket", shell.id);
    let v1 = ("sec-websocket-protocol", "ptyd.v1");
    let bearer = format!("Bearer {}", server.token());
    let refused =
        async |path: &str, headers: &[(&str, &str)]| Socket::open(&server, path, headers).await.map(|_| ()).err();
    let page = ("origin", "http://localhost:5173");
    let evil = ("origin", "https://evil.example");
    assert_eq!(refused(&path, &[v1, ("authorization", &bearer), evil]).await, Some(403));
    assert_eq!(refused(&path, &[v1, evil]).await, Some(403), "nor to bring a credential later");
    assert_eq!(refused(&path, &[v1, ("authorization", "Bearer wrong"), page]).await, Some(401));
    assert_eq!(refused(&path, &[v1, ("authorization", &bearer), page]).await, None);
    let foreign = ("sec-websocket-protocol", "graphql-ws");
    assert_eq!(refused(&path, &[("authorization", &bearer), foreign]).await, Some(422), "no sub-protocol of ours");

    let mut connection = Connection::tcp(server.address()).expect("it listens");
    let mut ticket = |scope: &str| {
        let headers = [("Host", "localhost"), ("Authorization", bearer.as_str())];
        let body = format!(r#"{{"session":"{}","scope":"{scope}"}}"#, shell.id);
        let made = connection.send("POST", "/tickets", &headers, &body).expect("an answer");
        assert_eq!((made.status, made.json()["expiresIn"].as_u64()), (201, Some(30)));
        made.json()["ticket"].as_str().expect("a ticket").to_owned()
    };
    let (read, write, foreign) = (ticket("read"), ticket("write"), ticket("write"));
    let by_query = format!("{path}?ticket={read}");
    assert_eq!(refused(&by_query, &[v1, evil]).await, Some(403), "a wrong origin does not even use it up");
    let mut looks = Socket::open(&server, &by_query, &[v1, page]).await.expect("let in");
    assert_eq!(refused(&by_query, &[v1, page]).await, Some(401), "used");
    assert_eq!(looks.event("control").await["mayWrite"], false);
    looks.types(1, b"touch never\r").await;
    assert_eq!(looks.to_the_end().await.2, 4403);

    let by_name = format!("ptyd.v1, ptyd.ticket.{write}");
    let mut types = Socket::open(&server, &path, &[("sec-websocket-protocol", &by_name), page]).await.expect("let in");
    types.types(1, b"echo by ticket\r").await;
    types.reads_until("\rby ticket\r\n").await;
    let elsewhere = format!("/terminals/{}/socket?ticket={foreign}", other.id);
    assert_eq!(refused(&elsewhere, &[v1, page]).await, Some(403));
    assert_eq!(refused(&format!("/terminals?ticket={}", ticket("write")), &[v1]).await, Some(401));
    let log = server.logged();
    assert!([&read, &write, &foreign].iter().all(|ticket| !log.contains(ticket.as_str())), "in no log");
    assert!(!server.home().file("never").exists());
    let named = shell.look().await.connection.socket;
    assert_eq!(named, format!("ws://{}{path}", server.address()));
}

/// The message with this credential.
fn auth(kind: &str, shown: &str) -> String {
    serde_json::json!({ "type": "auth", kind: shown }).to_string()
}

#[tokio::test]
// promise: access-7
async fn a_socket_accepts_a_credential_in_its_first_message() {
    let server = Server::start();
    let (shell, other) = (server.session().await, server.session().await);
    let path = format!("/terminals/{}/socket", shell.id);
    let v1 = ("sec-websocket-protocol", "ptyd.v1");
    let bearer = format!("Bearer {}", server.token());
    let ticket = |session: &str, scope: &str| {
        let mut connection = Connection::tcp(server.address()).expect("it listens");
        let headers = [("Host", "localhost"), ("Authorization", bearer.as_str())];
        let body = format!(r#"{{"session":"{session}","scope":"{scope}"}}"#);
        let made = connection.send("POST", "/tickets", &headers, &body).expect("an answer");
        made.json()["ticket"].as_str().expect("a ticket").to_owned()
    };
    let opened = async |path: &str, headers: &[(&str, &str)], first: &str| {
        let mut socket = Socket::open(&server, path, headers).await.expect("it opens");
        socket.says(first).await;
        socket
    };
    let mut typed = opened(&path, &[v1], &auth("token", &server.token())).await;
    assert_eq!(typed.event("control").await["mayWrite"], true);
    typed.types(1, b"echo by first message\r").await;
    typed.reads_until("\rby first message\r\n").await;

    let (read, write) = (ticket(&shell.id, "read"), ticket(&shell.id, "write"));
    let mut plain = opened(&path, &[], &auth("ticket", &write)).await;
    plain.says(r#"{"type":"input","data":"echo plain$((1+1))\n"}"#).await;
    plain
        .until(|heard| match heard {
            SocketMessage::Event(message) => message["data"].as_str()?.contains("plain2").then_some(()),
            _ => None,
        })
        .await;
    let mut raw = opened(&format!("{path}?mode=raw"), &[], &auth("token", &server.token())).await;
    raw.says("echo raw$((1+1))\r").await;
    let mut shown = Vec::new();
    while !String::from_utf8_lossy(&shown).contains("raw2") {
        shown.extend(raw.message().await.into_data());
    }
    let mut looks = opened(&path, &[v1], &auth("ticket", &read)).await;
    assert_eq!(looks.event("control").await["mayWrite"], false);

    let foreign = ticket(&other.id, "write");
    let unknown = auth("token", "0123456789abcdef0123456789abcdef");
    for (first, code) in [
        (auth("ticket", &write), 4401),
        (auth("ticket", &foreign), 4403),
        (unknown.clone(), 4401),
        (auth("password", "x"), 4401),
        (r#"{"type":"input","data":"touch never\n"}"#.to_owned(), 4401),
        ("hello".to_owned(), 4401),
        (r#"{"type":"auth"}"#.to_owned(), 4401),
        (format!(r#"{{"type":"auth","token":"{0}","ticket":"{0}"}}"#, server.token()), 4401),
        (format!(r#"{{"type":"auth","token":"{}","more":1}}"#, server.token()), 4401),
    ] {
        let mut refused = opened(&path, &[v1], &first).await;
        let heard = refused.next().await;
        assert!(matches!(heard, SocketMessage::Closed(told, _) if told == code), "{first}: {heard:?}");
    }
    let nowhere = opened("/terminals/s0-aaaaaaaaaa/socket", &[v1], &unknown).await.next().await;
    assert!(matches!(nowhere, SocketMessage::Closed(4401, _)), "it tells nobody which sessions there are: {nowhere:?}");
    let log = server.logged();
    assert!([&read, &write, &foreign].iter().all(|ticket| !log.contains(ticket.as_str())), "in no log");
    assert!(!log.contains(&server.token()) && !server.home().file("never").exists());
}

#[tokio::test]
// promise: access-7
async fn sockets_without_a_credential_are_bounded_and_closed() {
    const PLACES: usize = 64;
    let server = Server::start();
    let shell = server.session().await;
    let path = format!("/terminals/{}/socket", shell.id);
    let mut silent = Vec::new();
    let refused = loop {
        match Socket::open(&server, &path, &[]).await {
            Ok(socket) => silent.push(socket),
            Err(status) => break status,
        }
    };
    // On a busy machine the first ones may be closed before the last ones open.
    assert!(refused == 401 && silent.len() >= PLACES, "{refused} after {}", silent.len());
    let bearer = format!("Bearer {}", server.token());
    Socket::open(&server, &path, &[("authorization", &bearer)]).await.expect("a client with a header needs no place");
    for mut socket in silent {
        let heard = socket.next().await;
        assert!(matches!(heard, SocketMessage::Closed(4401, _)), "{heard:?}");
    }
    let mut late = Socket::open(&server, &path, &[]).await.expect("the places are free again");
    late.says(&auth("token", &server.token())).await;
    assert!(matches!(late.next().await, SocketMessage::Event(_)));
    let mut waits = Socket::open(&server, &path, &[]).await.expect("a place is free");
    server.stop();
    let heard = waits.next().await;
    assert!(matches!(heard, SocketMessage::Closed(1012, _)), "a server that stops does not wait for it: {heard:?}");
}
