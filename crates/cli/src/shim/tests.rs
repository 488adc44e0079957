//! The shim against servers of these tests: what it sends, what it hides, and what it sends again.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Instant;

use serde_json::{Value, json};

use super::discovery::Discovery;
use super::handshake;
use super::lines::{LINE_BYTES_MAX, Line, Lines};
use super::options::{Detach, Options, Tools, detach};
use super::pending_requests::{KILLS_WITHIN, Outgoing, PendingRequests};
use super::proxy_loop::{Ending, carry};

fn sent(outgoing: Outgoing) -> Value {
    match outgoing {
        Outgoing::Send(line) | Outgoing::Refuse(line) => serde_json::from_slice(&line).expect("JSON"),
    }
}

#[test]
fn a_tool_call_gets_a_number_and_everything_else_stays_byte_for_byte() {
    let mut pending = PendingRequests::default();
    for (line, expected) in [
        (
            r#"{"id":1,"method":"tools/call","params":{"name":"t"}}"#,
            r#"{"id":1,"method":"tools/call","params":{"name":"t","_meta":{"ptyd/request":1}}}"#,
        ),
        (
            r#"{"id":"a","method":"tools/call","params":{"_meta":{ "progressToken" : 1 },"x":1}}"#,
            r#"{"id":"a","method":"tools/call","params":{"_meta":{ "progressToken" : 1 ,"ptyd/request":2},"x":1}}"#,
        ),
        (
            r#"{"id":3,"method":"tools/call","params":{"_meta":{}}}"#,
            r#"{"id":3,"method":"tools/call","params":{"_meta":{"ptyd/request":3}}}"#,
        ),
        (
            r#"{"id":4,"method":"tools/call","params":{"_meta":null}}"#,
            r#"{"id":4,"method":"tools/call","params":{"_meta":{"ptyd/request":4}}}"#,
        ),
        (
            r#"{"id":5,"method":"tools/call","params":{}}"#,
            r#"{"id":5,"method":"tools/call","params":{"_meta":{"ptyd/request":5}}}"#,
        ),
        (r#"{"id":6, "method":"tools/list"}"#, r#"{"id":6, "method":"tools/list"}"#),
        (r#"[{"id":7,"method":"tools/call","params":{}}]"#, r#"[{"id":7,"method":"tools/call","params":{}}]"#),
        (
            r#"{"id":8,"result":{"text":"\\ud83d \ud83d\ude00"}}"#,
            r#"{"id":8,"result":{"text":"\\ud83d \ud83d\ude00"}}"#,
        ),
        ("", ""),
    ] {
        assert_eq!(pending.outgoing(line.into()), Outgoing::Send(expected.into()), "{line}");
    }
}

#[test]
// promise: mcp-1
fn a_malformed_line_is_answered_and_half_a_character_is_replaced() {
    let mut pending = PendingRequests::default();
    for (line, code) in [("garbage", -32700), (r#"{"id":1,"#, -32700), ("5", -32600), (r#""text""#, -32600)] {
        let Outgoing::Refuse(error) = pending.outgoing(line.into()) else { panic!("{line} is sent") };
        let error: Value = serde_json::from_slice(&error).expect("JSON");
        assert_eq!((&error["error"]["code"], &error["id"]), (&json!(code), &Value::Null), "{line}");
    }
    for (line, code) in [
        (r#"{"jsonrpc":"2.0","id":"d","method":"tools/call","params":[1]}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":"d","method":"tools/call","params":"x"}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":"d","method":5}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":"d"}"#, -32600),
    ] {
        let Outgoing::Refuse(error) = pending.outgoing(line.into()) else { panic!("{line} is sent") };
        let error: Value = serde_json::from_slice(&error).expect("JSON");
        assert_eq!((&error["error"]["code"], &error["id"]), (&json!(code), &json!("d")), "{line}");
    }
    for line in [
        r#"{"id":"d","result":{}}"#,
        r#"{"id":"d","error":{"code":1,"message":"no"}}"#,
        r#"{"id":"d","method":"ping","params":null}"#,
    ] {
        assert!(matches!(pending.outgoing(line.into()), Outgoing::Send(_)), "{line}");
    }
    // No number is as large. The sender is told by its id where that can be read.
    let digits = "9".repeat(400);
    for (line, id) in [
        (r#"{"jsonrpc":"2.0","id":1e400,"method":"ping"}"#, Value::Null),
        (r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{"x":-1E400}}"#, json!(7)),
        (&format!(r#"{{"jsonrpc":"2.0","id":"a","method":"ping","params":[{digits}]}}"#), json!("a")),
    ] {
        let Outgoing::Refuse(error) = pending.outgoing(line.into()) else { panic!("{line} is sent") };
        let error: Value = serde_json::from_slice(&error).expect("JSON");
        assert_eq!((&error["error"]["code"], &error["id"]), (&json!(-32700), &id), "{line}");
    }
    let read = r#"{"id":3,"method":"ping","params":{"a":"2e9, 1e400"},"x":1e300}"#;
    assert!(matches!(pending.outgoing(read.into()), Outgoing::Send(_)));
    for (line, sent) in [
        (&br#"{"result":"a\ud83d"}"#[..], r#"{"result":"a\ufffd"}"#),
        (br#"{"result":"\uDE00\ud83dx\\ud83d"}"#, r#"{"result":"\ufffd\ufffdx\\ud83d"}"#),
        (br#"{"result":"\ud83d\u0041"}"#, r#"{"result":"\ufffd\u0041"}"#),
        (b"{\"result\":\"a\xffb\"}", "{\"result\":\"a\u{fffd}b\"}"),
    ] {
        assert_eq!(pending.outgoing(line.to_vec()), Outgoing::Send(sent.into()), "{sent}");
    }
}

#[test]
// promise: crash-1
fn the_next_server_learns_how_far_the_answers_read_that_the_host_takes() {
    let mut pending = PendingRequests::default();
    let call = |id: u32| format!(r#"{{"id":{id},"method":"tools/call","params":{{"name":"t"}}}}"#).into_bytes();
    let answer = |id: u32, session: &str, at: u64| {
        format!(r#"{{"id":{id},"result":{{"content":[],"_meta":{{"ptyd/readTo":{{"{session}":{at}}}}}}}}}"#)
            .into_bytes()
    };
    for id in 1..=3 {
        pending.outgoing(call(id));
    }
    assert!(pending.incoming(&answer(1, "s0-a", 10)) && pending.incoming(&answer(2, "s0-b", 20)));
    pending.incoming(&answer(7, "s0-a", 99));
    pending.incoming(br#"{"id":3,"result":{"content":[{"type":"text","text":"\"ptyd/readTo\":{\"s0-a\":99}"}]}}"#);
    let hello = |pending: &PendingRequests| handshake::with_read_positions(b"{\"v\":1}\n", &pending.read_to());
    assert_eq!(hello(&pending), b"{\"v\":1,\"readTo\":{\"s0-a\":10,\"s0-b\":20}}\n");
    let cancelled = br#"{"method":"notifications/cancelled","params":{"requestId":1}}"#;
    pending.outgoing(cancelled.to_vec());
    assert_eq!(hello(&pending), b"{\"v\":1,\"readTo\":{\"s0-b\":20}}\n");
    assert_eq!(hello(&PendingRequests::default()), b"{\"v\":1}\n");
    for id in 10..200 {
        pending.outgoing(call(id));
        pending.incoming(&answer(id, &format!("s0-{id}"), 1));
    }
    assert_eq!(pending.read_to().len(), 64, "it is bounded");
}

#[test]
fn the_next_server_gets_the_handshake_and_open_requests_and_the_host_sees_no_second_handshake() {
    let mut pending = PendingRequests::default();
    let say = |pending: &mut PendingRequests, line: &str| drop(pending.outgoing(line.into()));
    say(&mut pending, r#"{"id":0,"method":"initialize","params":{}}"#);
    assert!(pending.incoming(br#"{"id":0,"result":{}}"#));
    say(&mut pending, r#"{"method":"notifications/initialized"}"#);
    for id in 1..=3 {
        say(&mut pending, &format!(r#"{{"id":{id},"method":"ping"}}"#));
    }
    assert!(pending.incoming(br#"{"id":1,"result":{}}"#));
    assert!(pending.incoming(br#"{"method":"notifications/progress","params":{}}"#));
    say(&mut pending, r#"{"method":"notifications/cancelled","params":{"requestId":2}}"#);
    let (lines, refusals) = pending.replay(Instant::now(), Instant::now());
    let expected = "{\"id\":0,\"method\":\"initialize\",\"params\":{}}\n{\"method\":\"notifications/initialized\"}\n{\"id\":3,\"method\":\"ping\"}\n";
    assert_eq!((String::from_utf8(lines).expect("text").as_str(), refusals.as_slice()), (expected, b"".as_slice()));
    assert!(!pending.incoming(br#"{"id":0,"result":{}}"#));
    assert!(pending.awaits());
    assert!(pending.incoming(br#"{"id":3,"result":{}}"#));
    assert!(!pending.awaits());
}

#[test]
// promise: mcp-5
fn the_next_server_gets_the_hosts_subscriptions_and_log_level_and_the_host_sees_no_second_answer() {
    let mut pending = PendingRequests::default();
    let subscribe = |id: u64, uri: &str| json!({ "id": id, "method": "resources/subscribe", "params": { "uri": uri } });
    for (id, uri) in [(1, "ptyd://a"), (2, "ptyd://b"), (3, "ptyd://c")] {
        pending.outgoing(subscribe(id, uri).to_string().into());
    }
    pending.outgoing(br#"{"id":4,"method":"resources/unsubscribe","params":{"uri":"ptyd://a"}}"#.to_vec());
    let level = |id: u64, level: &str| json!({ "id": id, "method": "logging/setLevel", "params": { "level": level } });
    pending.outgoing(level(5, "debug").to_string().into());
    pending.outgoing(level(6, "info").to_string().into());
    // The third has no answer yet, so its answer is the host's.
    for id in [1, 2, 4, 5, 6] {
        assert!(pending.incoming(json!({ "id": id, "result": {} }).to_string().as_bytes()));
    }
    let (lines, refusals) = pending.replay(Instant::now(), Instant::now());
    let expected = format!("{}\n{}\n{}\n", level(6, "info"), subscribe(2, "ptyd://b"), subscribe(3, "ptyd://c"));
    assert_eq!((String::from_utf8(lines).expect("text"), refusals), (expected, Vec::new()));
    assert!(!pending.incoming(br#"{"id":2,"result":{}}"#));
    assert!(pending.incoming(br#"{"id":3,"result":{}}"#));
}

#[test]
fn an_open_handshake_is_sent_again_once_and_its_answer_is_the_hosts() {
    let mut pending = PendingRequests::default();
    pending.outgoing(br#"{"id":0,"method":"initialize"}"#.to_vec());
    assert_eq!(pending.replay(Instant::now(), Instant::now()).0, b"{\"id\":0,\"method\":\"initialize\"}\n");
    assert!(pending.incoming(br#"{"id":0,"result":{}}"#));
}

#[test]
fn a_request_that_every_server_dies_of_is_answered_by_the_shim() {
    let mut pending = PendingRequests::default();
    pending.outgoing(br#"{"id":"x","method":"ping"}"#.to_vec());
    let start = Instant::now();
    assert!(
        pending.replay(start, start).1.is_empty()
            && pending.replay(start + KILLS_WITHIN / 2, start + KILLS_WITHIN * 3).1.is_empty()
    );
    let refused: Value = serde_json::from_slice(&pending.replay(start + KILLS_WITHIN * 3, start + KILLS_WITHIN * 3).1)
        .expect("one line");
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("x"), &json!(-32000)));
    assert!(!pending.awaits());
}

#[test]
fn a_request_outlives_any_number_of_servers_that_had_it_for_long() {
    let mut pending = PendingRequests::default();
    pending.outgoing(br#"{"id":"x","method":"ping"}"#.to_vec());
    let start = Instant::now();
    for upgrade in 0..20 {
        let (lines, refusals) = pending.replay(start + KILLS_WITHIN * upgrade, start + KILLS_WITHIN * upgrade);
        assert_eq!((lines.as_slice(), refusals.len()), (b"{\"id\":\"x\",\"method\":\"ping\"}\n".as_slice(), 0));
    }
}

#[test]
fn more_open_requests_than_fit_are_refused_by_their_ids() {
    let mut pending = PendingRequests::default();
    for id in 0..1_024 {
        pending.outgoing(format!(r#"{{"id":{id},"method":"ping"}}"#).into_bytes());
    }
    assert_eq!(sent(pending.outgoing(br#"{"id":"last","method":"ping"}"#.to_vec()))["error"]["code"], -32000);
}

#[test]
fn a_line_without_an_end_is_thrown_away_and_the_next_one_is_read() {
    let mut lines = Lines::default();
    lines.push(b"one\n\r\n\ntw");
    assert_eq!((lines.next(), lines.next()), (Some(Line::Whole(b"one".to_vec())), None));
    lines.push(b"o\n");
    assert_eq!(lines.next(), Some(Line::Whole(b"two".to_vec())));
    lines.push(&vec![b'x'; LINE_BYTES_MAX + 1]);
    assert_eq!(lines.next(), None);
    lines.push(b"xx\nthree\n");
    assert_eq!((lines.next(), lines.next()), (Some(Line::TooLong), Some(Line::Whole(b"three".to_vec()))));
}

#[test]
fn the_hello_says_where_this_process_is() {
    let options = Options { detach: Detach::Keep, tools: Tools::Terminal, structured: true };
    let name = handshake::Name::of(None).expect("a name");
    let line = handshake::line(&options, &name);
    let hello: Value = serde_json::from_slice(&line).expect("one line of JSON");
    assert_eq!((&hello["v"], &hello["tools"], &hello["detach"]), (&json!(1), &json!("terminal"), &json!("keep")));
    assert_eq!(hello["structured"], true);
    assert_eq!(hello["client"].as_str().map(str::len), Some(32));
    assert_eq!(["keep", "0", "1.5"].map(detach), [Ok(Detach::Keep), Ok(Detach::After(0.0)), Ok(Detach::After(1.5))]);
    assert!(["never", "-1", "inf"].map(detach).iter().all(Result::is_err));
}

/// A server for the shim: takes one connection, upgrades it, and reads the hello.
struct Server(BufReader<UnixStream>);

impl Server {
    fn accept(listener: &UnixListener) -> Self {
        let mut stream = BufReader::new(listener.accept().expect("a shim").0);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(stream.read_line(&mut head).expect("a head") > 0);
        }
        assert!(head.starts_with("GET /mcp/stdio HTTP/1.1\r\nHost: localhost\r\n"), "{head}");
        let answer = b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: ptyd-mcp\r\n\r\n";
        stream.get_mut().write_all(answer).expect("the shim reads");
        let mut server = Self(stream);
        assert_eq!(server.line(), "hello");
        server
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    fn say(&mut self, line: &str) {
        self.0.get_mut().write_all(format!("{line}\n").as_bytes()).expect("the shim reads");
    }
}

/// A shim with its host's ends of the pipes.
struct Host {
    stdin: Option<UnixStream>,
    stdout: BufReader<UnixStream>,
    shim: JoinHandle<std::io::Result<Ending>>,
}

impl Host {
    fn start() -> (Self, UnixListener, tempfile::TempDir) {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("s");
        let listener = UnixListener::bind(&path).expect("a socket");
        let (stdin, shim_in) = UnixStream::pair().expect("a pair");
        let (stdout, shim_out) = UnixStream::pair().expect("a pair");
        let shim = std::thread::spawn(move || {
            let discovery = Discovery::of(discovered());
            carry(move || UnixStream::connect(&path), b"hello\n", 0, &discovery, shim_in, shim_out)
        });
        (Self { stdin: Some(stdin), stdout: BufReader::new(stdout), shim }, listener, dir)
    }

    fn say(&mut self, line: &str) {
        self.stdin.as_mut().expect("open").write_all(format!("{line}\n").as_bytes()).expect("the shim reads");
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    /// Closes stdin and says how the shim ended and what else it wrote.
    fn close(mut self) -> (Ending, String) {
        self.stdin = None;
        let ending = self.shim.join().expect("no panic").expect("a clean end");
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).expect("text");
        (ending, rest)
    }
}

fn discovered() -> Value {
    json!({ "supportedVersions": ["2026-07-28"], "capabilities": {} })
}

fn discover(id: u64, version: &str) -> String {
    let (version_key, capabilities) =
        ("io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/clientCapabilities");
    let params = json!({ "_meta": { version_key: version, capabilities: {} } });
    json!({ "id": id, "method": "server/discover", "params": params }).to_string()
}

#[test]
// promise: mcp-1
fn a_silent_server_is_still_discovered_and_its_later_answer_is_hidden() {
    let (mut host, listener, _dir) = Host::start();
    host.say(&discover(1, "2026-07-28"));
    // The connection is in the queue of a server that does not take it before this is answered.
    let answer: Value = serde_json::from_str(&host.line()).expect("JSON");
    assert_eq!(answer, json!({ "jsonrpc": "2.0", "id": 1, "result": discovered() }));
    let mut server = Server::accept(&listener);
    assert_eq!(server.line(), discover(1, "2026-07-28"));
    // The refusal of a revision is the server's to make.
    host.say(&discover(2, "2099-01-01"));
    assert_eq!(server.line(), discover(2, "2099-01-01"));
    server.say(r#"{"id":1,"result":"late"}"#);
    server.say(r#"{"id":2,"error":"revision"}"#);
    assert_eq!(host.line(), r#"{"id":2,"error":"revision"}"#);
    host.say(&discover(3, "2026-07-28"));
    server.line();
    server.say(r#"{"id":3,"result":"in time"}"#);
    assert_eq!(host.line(), r#"{"id":3,"result":"in time"}"#);
    assert_eq!(host.close(), (Ending::HostClosed, String::new()));
}

#[test]
fn lines_before_the_first_server_are_sent_once_and_in_order() {
    let (mut host, listener, _dir) = Host::start();
    let lines = [
        r#"{"id":0,"method":"initialize"}"#,
        r#"{"method":"notifications/initialized"}"#,
        r#"{"id":1,"method":"ping"}"#,
    ];
    lines.iter().for_each(|line| host.say(line));
    host.stdin = None;
    let mut server = Server::accept(&listener);
    assert_eq!([server.line(), server.line(), server.line()], lines);
    server.say(r#"{"id":0,"result":{}}"#);
    server.say(r#"{"id":1,"result":{}}"#);
    assert_eq!(host.close(), (Ending::HostClosed, "{\"id\":0,\"result\":{}}\n{\"id\":1,\"result\":{}}\n".to_owned()));
}

#[test]
// promise: crash-1
fn the_host_sees_only_a_delay_when_the_server_dies_in_the_middle_of_an_answer() {
    let (mut host, listener, _dir) = Host::start();
    host.say(r#"{"id":0,"method":"initialize"}"#);
    let mut first = Server::accept(&listener);
    assert_eq!(first.line(), r#"{"id":0,"method":"initialize"}"#);
    first.say(r#"{"id":0,"result":"first"}"#);
    assert_eq!(host.line(), r#"{"id":0,"result":"first"}"#);
    host.say(r#"{"method":"notifications/initialized"}"#);
    host.say(r#"{"id":1,"method":"tools/call","params":{"name":"terminal"}}"#);
    let call = r#"{"id":1,"method":"tools/call","params":{"name":"terminal","_meta":{"ptyd/request":2}}}"#;
    assert_eq!([first.line(), first.line()], [r#"{"method":"notifications/initialized"}"#, call]);
    first.0.get_mut().write_all(br#"{"id":1,"resu"#).expect("the shim reads");
    drop(first);

    let mut second = Server::accept(&listener);
    let handshake = [r#"{"id":0,"method":"initialize"}"#, r#"{"method":"notifications/initialized"}"#, call];
    assert_eq!([second.line(), second.line(), second.line()], handshake);
    second.say(r#"{"id":0,"result":"second"}"#);
    second.say(r#"{"id":1,"result":"done"}"#);
    assert_eq!(host.line(), r#"{"id":1,"result":"done"}"#);
    assert_eq!(host.close(), (Ending::HostClosed, String::new()));
}

#[test]
fn a_closed_stdin_ends_the_shim_at_once_but_answers_on_their_way_arrive() {
    let (mut host, listener, _dir) = Host::start();
    let mut server = Server::accept(&listener);
    host.say(r#"{"id":1,"method":"ping"}"#);
    host.say(r#"{"id":2,"method":"ping"}"#);
    assert_eq!([server.line(), server.line()], [r#"{"id":1,"method":"ping"}"#, r#"{"id":2,"method":"ping"}"#]);
    host.stdin = None;
    server.say(r#"{"id":1,"result":{}}"#);
    assert_eq!(host.close(), (Ending::HostClosed, "{\"id\":1,\"result\":{}}\n".to_owned()));
    // Until here the connection was open and the second request unanswered.
    drop(server);
}

#[test]
fn a_server_that_refuses_is_an_error_and_not_a_loop() {
    let (host, listener, _dir) = Host::start();
    let mut stream = listener.accept().expect("a shim").0;
    stream.write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 6\r\n\r\nnot me").expect("the shim reads");
    let error = host.shim.join().expect("no panic").expect_err("refused");
    assert_eq!(error.to_string(), "the server refused with 403: not me");
}

#[test]
fn answers_larger_than_a_pipe_arrive_whole_while_the_host_writes() {
    let (mut host, listener, _dir) = Host::start();
    let mut server = Server::accept(&listener);
    let (done, is_done) = mpsc::sync_channel(1);
    let large = format!(r#"{{"id":1,"result":"{}"}}"#, "x".repeat(3 << 20));
    let answer = large.clone();
    let serving = std::thread::spawn(move || {
        server.line();
        server.say(&answer);
        done.send(server.line().len()).expect("the test waits");
    });
    host.say(r#"{"id":1,"method":"ping"}"#);
    host.say(&format!(r#"{{"id":2,"method":"{}"}}"#, "y".repeat(2 << 20)));
    assert_eq!(host.line(), large);
    assert_eq!(is_done.recv().expect("the server read it"), (2 << 20) + 20);
    serving.join().expect("no panic");
}
