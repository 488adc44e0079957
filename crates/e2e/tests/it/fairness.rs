//! One principal cannot starve the server: the latency of another's `true` during each attack, and what the server
//! holds meanwhile.
//!
//! A median is compared with the one of the same moment without the attack. The machine has other work, too, so a round in which
//! that came between is repeated; what an attack really takes from others, it takes in every round.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use api::{CreateRequest, ExecuteRequest};
use e2e::attack::{Attack, MEMORY_MAX, Rig, SLICES, head, sent, status};
use e2e::{PATIENCE, Server, count, footprint};
use serde_json::{Value, json};

/// How many times as long as the median, or as the slices, no single one of them may take.
const STALL: u32 = 500;
/// A request that asks for 8 MiB of room.
const LARGE: usize = 8 << 20;

/// The request for a session's socket; without a sub-protocol it takes JSON texts.
fn upgrade(session: &str, token: &str, protocol: Option<&str>) -> String {
    let protocol = protocol.map(|name| format!("Sec-WebSocket-Protocol: {name}\r\n")).unwrap_or_default();
    format!(
        "GET /terminals/{session}/socket HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nConnection: Upgrade\r\n\
         Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n{protocol}\r\n"
    )
}

/// A short text message, masked with zeros.
fn message(text: &Value) -> Vec<u8> {
    let text = text.to_string();
    let length = u8::try_from(text.len()).expect("it is short");
    assert!(length < 126);
    [&[0x81, 0x80 | length, 0, 0, 0, 0], text.as_bytes()].concat()
}

/// Messages that ask for two sizes in turn, and end with this one.
fn sizes(count: usize, last: (u16, u16)) -> Vec<u8> {
    let size = |(cols, rows): (u16, u16)| message(&json!({ "type": "resize", "cols": cols, "rows": rows }));
    [[size((80, 24)), size((100, 30))].concat().repeat(count / 2), size(last)].concat()
}

/// A call of a tool whose arguments are a great many values of two bytes.
fn bomb() -> Vec<u8> {
    let (begins, ends) = (
        br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"terminal","arguments":{"x":[[]"#.as_slice(),
        b"]}}}".as_slice(),
    );
    [begins, &b",[]".repeat((LARGE - begins.len() - ends.len()) / 3), ends].concat()
}

#[tokio::test(flavor = "multi_thread")]
// promise: limit-6
async fn bodies_that_cost_many_times_their_bytes_take_nothing_from_others() {
    let mut rig = Rig::start().await;
    let address = rig.server.address();
    for token in [rig.read.clone(), rig.write.clone()] {
        let body = bomb();
        let head = head("POST", "/mcp", &token, body.len());
        rig.bears("trees of JSON", |_| {
            let (head, body) = (head.clone(), body.clone());
            Attack::of(count(2, 6), move || _ = status(&mut sent(address, &[head.as_bytes(), &body])))
        });
    }
    // Long text is not a tree, and takes its sender's turn alone.
    let name = "x".repeat(LARGE - 99);
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{name}"}}}}"#);
    let ask = head("POST", "/mcp", &rig.write, text.len());
    rig.bears("long text", |_| {
        let (ask, text) = (ask.clone(), text.clone());
        Attack::of(count(2, 6), move || _ = status(&mut sent(address, &[ask.as_bytes(), text.as_bytes()])))
    });
    // Every protocol names the limit.
    let bomb = bomb();
    for path in ["/mcp".to_owned(), format!("/terminals/{}/execute", rig.session), "/batch".to_owned()] {
        let mut refused = sent(address, &[head("POST", &path, &rig.token, bomb.len()).as_bytes(), &bomb]);
        assert_eq!(status(&mut refused), Some(413), "{path}");
    }
    let deep = "[".repeat(1_000);
    for path in ["/mcp", "/terminals", "/tickets"] {
        let mut refused = sent(address, &[head("POST", path, &rig.token, deep.len()).as_bytes(), deep.as_bytes()]);
        assert_eq!(status(&mut refused), Some(413), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
// promise: rest-3
async fn a_body_is_refused_by_its_length_before_it_arrives() {
    let rig = Rig::start().await;
    let address = rig.server.address();
    // A token of scope `read` sends no long text, and only commands and input are long.
    let paths = ["/mcp", "/tickets", "/terminals/{id}/wait", "/terminals/{id}/signal"];
    let long = paths.map(|path| (path.replace("{id}", &rig.session), &rig.read));
    let plain = ["/tickets", "/terminals/{id}/wait", "/terminals/{id}/signal"];
    let plain = plain.map(|path| (path.replace("{id}", &rig.session), &rig.token));
    for (path, token) in long.into_iter().chain(plain) {
        assert_eq!(status(&mut sent(address, &[head("POST", &path, token, LARGE).as_bytes()])), Some(413), "{path}");
    }
    for path in ["/mcp", "/terminals", "/batch"] {
        let refused = status(&mut sent(address, &[head("POST", path, &rig.token, LARGE + 1).as_bytes()]));
        assert_eq!(refused, Some(413), "{path}");
    }
    // A client that sends all of it before it reads gets the answer, too.
    let long = vec![b' '; LARGE + 1];
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.write_all(head("POST", "/mcp", &rig.token, long.len()).as_bytes()).expect("taken");
    stream.write_all(&long).expect("taken, and thrown away");
    assert_eq!(status(&mut stream), Some(413));
    // A command as long as one may be is run.
    let command = format!("true {}", "\u{1}".repeat((1 << 20) - 5));
    let body = json!({ "waitForCompletion": true, "command": command }).to_string();
    assert!(body.len() > 6_000_000);
    let path = format!("/terminals/{}/execute", rig.session);
    let taken = status(&mut sent(address, &[head("POST", &path, &rig.token, body.len()).as_bytes(), body.as_bytes()]));
    assert_eq!(taken, Some(200));
}

#[tokio::test(flavor = "multi_thread")]
// promise: limit-6
async fn unfinished_bodies_use_only_their_senders_share() {
    let mut rig = Rig::start().await;
    let address = rig.server.address();
    let write = rig.write.clone();
    let part = vec![b' '; LARGE - 10];
    let begin = |_: &Rig| -> Vec<TcpStream> {
        let head = head("POST", "/terminals", &write, LARGE);
        (0..count(24, 100)).map(|_| sent(address, &[head.as_bytes(), &part])).collect()
    };
    rig.bears("bodies that do not come", begin);
    let mut half = begin(&rig);
    let refused = half.iter_mut().skip(4).filter_map(status).collect::<Vec<_>>();
    assert!(!refused.is_empty() && refused.iter().all(|status| *status == 429), "{refused:?}");
    let mut retry = sent(address, &[head("POST", "/terminals", &write, LARGE).as_bytes()]);
    let mut text = String::new();
    retry.read_to_string(&mut text).expect("an answer and its end");
    assert!(text.starts_with("HTTP/1.1 429") && text.contains("retry-after: 1"), "{text}");
    if e2e::is_full() {
        assert_eq!(status(&mut half[0]), Some(408));
    }
}

#[tokio::test(flavor = "multi_thread")]
// promise: view-4
async fn a_socket_that_only_asks_whether_one_is_there_is_not_read_for_ever() {
    let mut rig = Rig::start().await;
    let request = CreateRequest { owner: Some("eye".to_owned()), ..CreateRequest::default() };
    let session = rig.server.session_with(request).await;
    let upgrade = upgrade(&session.id, &rig.read, Some("ptyd.v1"));
    // Masked with zeros.
    let pings = [&[0x89, 0x80 | 120, 0, 0, 0, 0][..], &[b'x'; 120]].concat().repeat(520);
    let before = footprint(rig.server.pid()).resident_bytes;
    let mut taken = 0;
    let mut flood = |seconds: u64| {
        let mut stream = sent(rig.server.address(), &[upgrade.as_bytes()]);
        assert_eq!(status(&mut stream), Some(101));
        stream.set_write_timeout(Some(Duration::from_secs(seconds))).expect("a socket");
        // Unread data is not accepted any more; far more than the buffers of both sides is enough to see that.
        while taken < 96 << 20 && stream.write_all(&pings).is_ok() {
            taken += pings.len();
        }
        stream
    };
    let held = flood(2);
    let grown = footprint(rig.server.pid()).resident_bytes.saturating_sub(before);
    assert!(taken < 64 << 20 && grown < 16 << 20, "{} MiB were taken, {} MiB are held", taken >> 20, grown >> 20);
    drop(held);
    let (address, upgrade) = (rig.server.address(), upgrade.clone());
    rig.bears("pings", |_| {
        let (pings, upgrade) = (pings.clone(), upgrade.clone());
        Attack::of(2, move || {
            let mut stream = sent(address, &[upgrade.as_bytes()]);
            stream.set_write_timeout(Some(Duration::from_millis(200))).expect("a socket");
            while stream.write_all(&pings).is_ok() {}
        })
    });
}

#[tokio::test(flavor = "multi_thread")]
// promise: limit-6
async fn sizes_that_come_together_are_set_once_and_before_what_is_typed_behind_them() {
    let rig = Rig::start().await;
    let mut stream = sent(rig.server.address(), &[upgrade(&rig.session, &rig.token, None).as_bytes()]);
    assert_eq!(status(&mut stream), Some(101));
    let asked = 2_000;
    let typed = message(&json!({ "type": "input", "data": "stty size\n" }));
    let behind = message(&json!({ "type": "ping" }));
    stream.write_all(&[sizes(asked, (91, 31)), typed, behind].concat()).expect("taken");
    let (mut told, mut part) = (String::new(), [0; 4_096]);
    while !told.contains(r#"{"type":"pong"}"#) || !told.contains(r"31 91\r\n") {
        let bytes = stream.read(&mut part).expect("it goes on");
        assert!(bytes > 0, "{told}");
        told += &String::from_utf8_lossy(&part[..bytes]);
    }
    let audit = std::fs::read_to_string(rig.server.home().state().join("audit.jsonl")).expect("there");
    let set =
        audit.lines().filter(|line| line.contains(r#""event":"request""#) && line.contains(r#""resize""#)).count();
    assert!((1..=asked / 10).contains(&set), "{set}");
}

#[tokio::test(flavor = "multi_thread")]
// promise: limit-6
async fn followers_of_one_token_are_bounded_and_cost_others_nothing() {
    let mut rig = Rig::start().await;
    let (address, read) = (rig.server.address(), rig.read.clone());
    let follow = |_: &Rig| -> Vec<TcpStream> {
        (0..count(300, 900)).map(|_| sent(address, &[head("GET", "/events", &read, 0).as_bytes()])).collect()
    };
    rig.bears("followers", follow);
    let mut followers = follow(&rig);
    let told: Vec<Option<u16>> = followers.iter_mut().map(status).collect();
    let taken = told.iter().filter(|status| **status == Some(200)).count();
    assert!(told.iter().all(|status| [Some(200), Some(429)].contains(status)), "{told:?}");
    assert!((1..=64).contains(&taken), "{taken}");
    // Another one's place is another one's.
    assert_eq!(status(&mut sent(address, &[head("GET", "/events", &rig.token, 0).as_bytes()])), Some(200));
}

#[tokio::test(flavor = "multi_thread")]
// promise: limit-6
async fn searches_of_one_principal_delay_no_other() {
    let mut rig = Rig::start().await;
    let attacker = rig.attacker();
    let theirs = attacker.create(&CreateRequest::default(), None).await.expect("a session").id;
    let bytes = count(4_000_000, 20_000_000);
    let print = ExecuteRequest {
        command: format!("yes \"$(seq -s ' ' 30)\" | head -c {bytes}"),
        timeout: Some(60.0),
        max_chars: Some(0),
        ..ExecuteRequest::default()
    };
    attacker.execute(&theirs, &print, None).await.expect("printed");
    let find = ExecuteRequest {
        wait_for_completion: Some(true),
        command: "echo needle".to_owned(),
        ..ExecuteRequest::default()
    };
    rig.victim.execute(&rig.session, &find, None).await.expect("printed");
    let (address, write) = (rig.server.address(), rig.write.clone());
    let costly = r"(?:[0-9]{1,20}\s?){20,30}[\x{3b1}-\x{3c9}]";
    let costly: String = costly.bytes().map(|b| format!("%{b:02x}")).collect();
    let path = format!("/terminals/{theirs}/search?q={costly}");
    let begin = |_: &Rig| -> Vec<TcpStream> {
        (0..24).map(|_| sent(address, &[head("GET", &path, &write, 0).as_bytes()])).collect()
    };
    rig.bears("searches", begin);
    let own = format!("/terminals/{}/search?q=needle", rig.session);
    rig.bears_for("searches", begin, |rig| rig.asks("GET", &own, ""));
}

#[tokio::test(flavor = "multi_thread")]
// promise: limit-6
async fn costly_patterns_of_one_principal_stall_nobody_else() {
    let mut rig = Rig::start().await;
    let attacker = rig.attacker();
    let mut sessions = Vec::new();
    for _ in 0..count(2, 4) {
        let id = attacker.create(&CreateRequest::default(), None).await.expect("a session").id;
        let print = ExecuteRequest {
            command: "while :; do yes \"$(printf 'abcdefghij%.0s' 1 2 3 4 5 6 7 8 9)\" | head -c 50000; echo; for i in {1..25}; do echo tick; \
                      sleep 0.02; done; done"
                .to_owned(),
            wait_for_completion: Some(false),
            ..ExecuteRequest::default()
        };
        attacker.execute(&id, &print, None).await.expect("it prints");
        sessions.push(id);
    }
    let (address, write) = (rig.server.address(), rig.write.clone());
    let body = json!({ "waitFor": r"(?:[a-j]{1,30}\s?){20,30}[\x{3b1}-\x{3c9}]", "timeout": 60 }).to_string();
    let wait = |_: &Rig| -> Vec<TcpStream> {
        let ask = |id: &String| {
            let head = head("POST", &format!("/terminals/{id}/wait"), &write, body.len());
            sent(address, &[head.as_bytes(), body.as_bytes()])
        };
        (0..count(60, 200)).flat_map(|_| sessions.iter().map(ask)).collect()
    };
    rig.bears_for("costly patterns", wait, |rig| {
        let (median, longest) = rig.trues();
        assert!(longest < STALL * SLICES.max(median), "one `true` stalled for {longest:?}, where half took {median:?}");
        (median, longest)
    });
    // Nor does one request meet all of it.
    rig.bears_for("costly patterns, the longest", wait, |rig| {
        let (_, longest) = rig.trues();
        (longest.max(Duration::from_millis(150)), longest)
    });
}

#[tokio::test(flavor = "multi_thread")]
// promise: limit-6
async fn patterns_that_one_principal_has_compiled_stall_nobody_else() {
    let mut rig = Rig::start().await;
    let owner = CreateRequest { owner: Some("eye".to_owned()), ..CreateRequest::default() };
    let session = rig.server.session_with(owner).await.id;
    // Each class costs its compilation much, and the compiled pattern is small.
    let costly = format!("(?i){}", r"[\w&&a]".repeat(32));
    let gone: Vec<String> = (0..16).map(|i| format!("gone:{costly}{i}")).collect();
    let large: Vec<String> = (0..16).map(|i| format!(r"gone:[a-z{i}]{{0,3}}\w{{5}}q")).collect();
    let wait = format!("/terminals/{session}/wait");
    let query: String = costly.bytes().map(|b| format!("%{b:02x}")).collect();
    let tool = json!({ "name": "get_terminal_output",
        "arguments": { "session_id": session, "wait_for": costly, "search": costly, "until": gone, "timeout": 0 } });
    let attacks = [
        ("costly patterns", "POST", wait.clone(), json!({ "until": gone, "timeout": 0 }).to_string()),
        ("large patterns", "POST", wait, json!({ "until": large, "timeout": 0 }).to_string()),
        ("searches", "GET", format!("/terminals/{session}/search?q={query}"), String::new()),
        (
            "a tool's patterns",
            "POST",
            "/mcp".to_owned(),
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": tool }).to_string(),
        ),
    ];
    let (address, read) = (rig.server.address(), rig.read.clone());
    for (what, method, path, body) in attacks {
        // One behind the other on each connection: more than is compiled meanwhile, and given up at the end.
        let requests = [head(method, &path, &read, body.len()), body].concat().repeat(8);
        rig.bears(what, |_| -> Vec<TcpStream> {
            (0..count(32, 64)).map(|_| sent(address, &[requests.as_bytes()])).collect()
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
// promise: access-8
async fn a_caller_without_a_valid_token_keeps_no_place() {
    let server = Server::start();
    let ask = |path: &str, headers: &str| {
        let mut stream =
            sent(server.address(), &[format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n").as_bytes()]);
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer, and the end of the connection");
        (text.split(' ').nth(1).unwrap_or_default().to_owned(), text)
    };
    assert_eq!(ask("/livez", "").0, "200");
    assert_eq!(ask("/readyz", "").0, "200");
    assert_eq!(ask("/terminals", "Host: localhost\r\n").0, "400");
    let none = ask("/terminals", "");
    let wrong = ask("/terminals", "Authorization: Bearer wrong\r\n");
    assert_eq!((none.0.as_str(), wrong.0.as_str()), ("401", "401"));
    assert!(none.1.contains("send `Authorization") && wrong.1.contains("not valid here (unknown, revoked or expired)"));
    assert!(!wrong.1.contains("send `Authorization"), "{}", wrong.1);
    // A client that tries tokens is in the log once, with its address.
    for _ in 0..50 {
        ask("/terminals", "Authorization: Bearer wrong\r\n");
    }
    let log = server.logged();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("its token is not valid")).collect();
    assert!((1..=3).contains(&lines.len()) && lines[0].contains("peer=127.0.0.1:"), "{lines:?}");
    assert!(!log.contains("wrong"), "{log}");
}

#[tokio::test]
async fn the_error_for_an_unknown_id_names_the_existing_sessions() {
    let server = Server::start();
    let session = server.session().await;
    let mut mcp = e2e::Mcp::start(&server).expect("it starts");
    let said = |value: Value| value["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    let ask = |mcp: &mut e2e::Mcp, id: &str| {
        said(mcp.call("get_terminal_output", json!({ "session_id": id })).expect("an answer"))
    };
    for id in ["nope", "s0-aaaaaaaaaa"] {
        let told = ask(&mut mcp, id);
        assert!(told.starts_with(&format!("no session {id}; live: ")) && told.contains(&session.id), "{told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
// promise: limit-6
async fn patterns_of_one_owner_are_bounded_and_large_ones_refused() {
    let rig = Rig::start().await;
    let owner = CreateRequest { owner: Some("eye".to_owned()), ..CreateRequest::default() };
    let session = rig.server.session_with(owner).await.id;
    let ask = |session: &str, token: &str, pattern: &str, timeout: u32| {
        let body = json!({ "waitFor": pattern, "timeout": timeout }).to_string();
        let head = head("POST", &format!("/terminals/{session}/wait"), token, body.len());
        sent(rig.server.address(), &[head.as_bytes(), body.as_bytes()])
    };
    for large in [r"(\w{1,60}){1,40}\pL{50}x".to_owned(), r"\w{16}q".to_owned(), format!("(?i){}", r"\pL".repeat(65))] {
        assert_eq!(status(&mut ask(&session, &rig.read, &large, 0)), Some(422), "{large}");
    }
    let begun = Instant::now();
    let is_refused = || {
        assert!(begun.elapsed() < PATIENCE, "the answer did not change");
        status(&mut ask(&session, &rig.read, r"\dq", 0)) == Some(429)
    };
    let wait = || ask(&session, &rig.read, r"\w{5}q", 60);
    // As many as the bound. A request of `is_refused` may take the place of one, which is refused then.
    let mut waits: Vec<TcpStream> = (0..128).map(|_| wait()).collect();
    while !is_refused() {
        waits.push(wait());
    }
    assert_eq!(status(&mut ask(&rig.session, &rig.token, "q", 0)), Some(200), "another owner's are another's");
    drop(waits);
    while is_refused() {}
    let peak = footprint(rig.server.pid()).peak_bytes;
    assert!(peak <= MEMORY_MAX, "{} MiB", peak >> 20);
}
