//! The door on the wire: both eras, errors of either kind, progress, cancellation, and what is asked of the dispatch.

pub(super) mod real_server;

use std::sync::Arc;

use serde_json::{Value, json};

use super::test_support::{Client, Fake, ID, report, session};
use ptyd_core::action::{
    Action, ActionError, Composite, Create, EndedBy, Fresh, InputBytes, Outcome, OutputView, ScreenView, SessionPage,
    Since, TerminalView, TextView, View,
};

/// The fields that the 2026-07-28 era has in every request.
fn modern(id: u64, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
    });
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// Answers every `terminal` with `hi`.
fn says_hi(action: &Action) -> Option<Result<Outcome, ActionError>> {
    match action {
        Action::Composite(Composite::Terminal(_)) => {
            let view = TerminalView {
                report: report("hi\n"),
                fresh: Some(Fresh::First(Vec::new())),
                look: None,
                missed: Vec::new(),
                soft_timeout: ptyd_core::limits::SOFT_TIMEOUT,
            };
            Some(Ok(Outcome::Terminal(Box::new(view))))
        }
        Action::List(_) => {
            Some(Ok(Outcome::Sessions(SessionPage { sessions: vec![session()], total: 1, is_degraded: false })))
        }
        _ => Some(Err(ActionError::NoSession { id: "s0-aaaaaaaaaa".to_owned(), live: Some(vec![ID.to_owned()]) })),
    }
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().expect("a text block")
}

#[tokio::test]
async fn every_revision_from_2024_11_05_on_is_spoken_and_the_newest_needs_no_handshake() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let (server, _heard) = Fake::new(says_hi);
        let mut client = Client::connect(server, version).await;
        assert_eq!(client.initialize(version).await["result"]["protocolVersion"], version);
        let result = client.call(1, "terminal", json!({ "command": "echo hi" })).await;
        assert!(text(&result).starts_with("hi\n[exit 0 · session s0-k3v9q2m7xa · pid 4711 · user "), "{result}");
        assert_eq!(result["isError"], false);
    }
    let (server, _heard) = Fake::new(says_hi);
    let mut client = Client::connect(server, "modern").await;
    let discovered = client.ask(modern(1, "server/discover", json!({}))).await;
    assert!(discovered["result"]["supportedVersions"].as_array().expect("versions").contains(&json!("2026-07-28")));
    let called =
        client.ask(modern(2, "tools/call", json!({ "name": "terminal", "arguments": { "command": "echo hi" } }))).await;
    assert!(text(&called["result"]).starts_with("hi\n[exit 0"), "{called}");
    assert_eq!(called["result"]["resultType"], "complete");
}

#[tokio::test]
async fn a_client_that_discovers_first_may_still_initialize_on_the_same_stream() {
    let (server, _heard) = Fake::new(says_hi);
    let mut client = Client::connect(server, "both").await;
    client.ask(modern(1, "server/discover", json!({}))).await;
    assert_eq!(client.initialize("2025-11-25").await["result"]["protocolVersion"], "2025-11-25");
    let listed = client.ask(json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" })).await;
    assert_eq!(listed["result"]["tools"].as_array().map(Vec::len), Some(8));
    let prompts = client.ask(json!({ "jsonrpc": "2.0", "id": 3, "method": "prompts/list" })).await;
    assert_eq!(prompts["result"]["prompts"], json!([]));
}

#[tokio::test]
async fn a_mistake_of_the_model_is_a_tool_error_and_others_are_the_protocols() {
    let (server, _heard) = Fake::new(says_hi);
    let mut client = Client::connect(server, "errors").await;
    client.initialize("2025-11-25").await;
    let unknown =
        client.ask(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "shell" } })).await;
    assert_eq!(unknown["error"]["code"], -32602);
    for (method, code) in [("tools/call", -32602), ("resources/read", -32602), ("no/such", -32601)] {
        let answer = client.ask(json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": { "x": 1 } })).await;
        assert_eq!(answer["error"]["code"], code, "{method}: {answer}");
    }
    for (arguments, words) in [
        (json!({ "comand": "ls" }), "terminal has no argument \"comand\"; did you mean command?"),
        (
            json!({ "command": "x", "nosuch": 1 }),
            "terminal has no argument \"nosuch\"; it has command, inside, is_input",
        ),
        (json!({}), "terminal: command is required, a string"),
        (json!({ "command": ["a", "b"] }), "terminal: command must be a string, not [\"a\",\"b\"]"),
        (json!({ "command": "x", "timeout": "1s" }), "terminal: timeout must be a number, not \"1s\""),
        (
            json!({ "command": "x", "on_timeout": "stop" }),
            "terminal: on_timeout: unknown variant `stop`, expected one of",
        ),
        (json!({ "command": "x", "wait": false }), "terminal: timeout must be a number, not false"),
        (json!({ "command": "x", "is_input": true, "reset": true }), "reset and is_input"),
        (json!({ "command": "x", "timeout": -1 }), "timeout: -1 is not between 0 and 3600 seconds (not milliseconds)"),
        (json!({ "command": "x", "wait_for": "(" }), "unclosed group"),
    ] {
        let result = client.call(2, "terminal", arguments.clone()).await;
        assert_eq!(result["isError"], true, "{arguments}");
        assert!(text(&result).contains(words), "{arguments}: {result}");
    }
    let lost = client.call(3, "execute_in_terminal", json!({ "session_id": "s0-aaaaaaaaaa", "command": "ls" })).await;
    assert_eq!(
        text(&lost),
        format!("no session s0-aaaaaaaaaa; live: {ID}; ptyd removes a session some time after its end")
    );
    let missing = client
        .ask(json!({ "jsonrpc": "2.0", "id": 4, "method": "resources/read", "params": { "uri": "ptyd://x" } }))
        .await;
    assert_eq!(missing["error"]["code"], -32002);
    let missing = client.ask(modern(5, "resources/read", json!({ "uri": "ptyd://x" }))).await;
    assert_eq!(missing["error"]["code"], -32602);
}

#[tokio::test]
async fn a_call_without_a_shell_of_its_own_and_null_arguments_are_understood() {
    let (server, _heard) = Fake::new(says_hi);
    let mut client = Client::connect(server.clone(), "nulls").await;
    client.initialize("2025-11-25").await;
    let arguments = json!({ "command": "ls", "timeout": 2.5, "reset": null, "wait_for": null });
    client.call(9, "terminal", arguments).await;
    let asked = server.asked.lock().expect("free");
    let [Action::Composite(Composite::Terminal(call))] = asked.as_slice() else { panic!("{asked:?}") };
    assert_eq!(call.key.as_deref(), Some("nulls:9"));
    assert_eq!(call.timeout, Some(std::time::Duration::from_millis(2_500)));
    assert_eq!(call.client.cwd, Some("/x".into()));
    assert!(call.pattern.is_none() && !call.reset);
}

#[tokio::test]
async fn the_list_has_the_same_facts_twice_and_output_has_only_text() {
    let (server, _heard) = Fake::new(says_hi);
    let mut client = Client::connect(server, "list").await;
    client.initialize("2025-11-25").await;
    let listed = client.call(1, "list_terminal_sessions", json!({})).await;
    assert_eq!(
        text(&listed),
        "[s0-k3v9q2m7xa · idle · bash · pid 4711 · cwd /app · owner alice · last activity 1970-01-01T00:00:00Z]\n\
         [1 of 1 sessions]"
    );
    let summary = json!({
        "session_id": ID, "status": "running", "foreground": "idle", "shell": "bash", "pid": 4711, "cwd": "/app",
        "owner": "alice", "created_at": "1970-01-01T00:00:00Z", "last_activity": "1970-01-01T00:00:00Z",
        "dimensions": { "cols": 120, "rows": 40 },
    });
    assert_eq!(listed["structuredContent"], json!({ "sessions": [summary], "total": 1, "offset": 0 }));
    let ran = client.call(2, "terminal", json!({ "command": "echo hi" })).await;
    assert!(ran.get("structuredContent").is_none());
    let resources = client.ask(json!({ "jsonrpc": "2.0", "id": 3, "method": "resources/list" })).await;
    let uris: Vec<&Value> =
        resources["result"]["resources"].as_array().expect("some").iter().map(|r| &r["uri"]).collect();
    assert_eq!(uris, ["ptyd://sessions/s0-k3v9q2m7xa/output", "ptyd://sessions/s0-k3v9q2m7xa/screen"]);
}

#[tokio::test]
// promise: mcp-3
async fn progress_arrives_at_once_and_cancelling_a_call_ends_only_its_wait() {
    let (server, mut heard) = Fake::new(|_| None);
    let mut client = Client::connect(server, "waits").await;
    assert_eq!(heard.recv().await.as_deref(), Some("waits here"));
    client.initialize("2025-11-25").await;
    let params =
        json!({ "name": "terminal", "arguments": { "command": "sleep 9" }, "_meta": { "progressToken": "p" } });
    client.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })).await;
    let progress = client.next().await;
    let expected = json!({ "progressToken": "p", "progress": 0.0, "message": "started" });
    assert_eq!((progress["method"].as_str(), &progress["params"]), (Some("notifications/progress"), &expected));
    assert_eq!(heard.recv().await.as_deref(), Some("waiting"));
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } })).await;
    assert_eq!(heard.recv().await.as_deref(), Some("given up"));
}

#[tokio::test]
async fn a_call_that_waits_panics_or_is_cancelled_leaves_the_others_their_answers() {
    let (server, mut heard) = Fake::new(|action| match action {
        Action::Composite(_) => None,
        Action::List(_) => Some(Err(ActionError::Internal { why: "an answer".to_owned() })),
        _ => panic!("as a handler with a fault does"),
    });
    let mut client = Client::connect(server, "several").await;
    assert_eq!(heard.recv().await.as_deref(), Some("several here"));
    client.initialize("2025-11-25").await;
    let call = |id: u64, tool: &str, arguments: Value| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": tool, "arguments": arguments } });
    client.send(&call(1, "terminal", json!({ "command": "sleep 9" }))).await;
    assert_eq!(heard.recv().await.as_deref(), Some("waiting"));
    client.send(&call(2, "get_terminal_output", json!({ "session_id": ID }))).await;
    client.send(&call(3, "list_terminal_sessions", json!({}))).await;
    let fault = client.next().await;
    assert_eq!((&fault["id"], fault["error"]["code"].as_i64()), (&json!(2), Some(-32_603)));
    assert_eq!(client.next().await["id"], 3);
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } })).await;
    assert_eq!(heard.recv().await.as_deref(), Some("given up"));
    client.send(&call(4, "list_terminal_sessions", json!({}))).await;
    client.send(&json!({ "jsonrpc": "2.0", "id": 5, "method": "ping" })).await;
    let mut answered = [client.next().await["id"].take(), client.next().await["id"].take()];
    answered.sort_by_key(Value::as_u64);
    assert_eq!(answered, [4, 5]);
}

#[tokio::test]
async fn the_end_of_a_stream_ends_every_wait_at_once_and_the_last_connection_is_the_clients_going() {
    let (server, mut heard) = Fake::new(|_| None);
    let mut client = Client::connect(server.clone(), "goes").await;
    assert_eq!(heard.recv().await.as_deref(), Some("goes here"));
    client.initialize("2025-11-25").await;
    let params = json!({ "name": "terminal", "arguments": { "command": "sleep 9" } });
    client.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })).await;
    assert_eq!(heard.recv().await.as_deref(), Some("waiting"));
    let mut again = Client::connect(server, "goes").await;
    again.initialize("2025-11-25").await;
    assert_eq!(heard.recv().await.as_deref(), Some("goes here"));
    drop(client);
    assert_eq!(heard.recv().await.as_deref(), Some("given up"));
    drop(again);
    assert_eq!(heard.recv().await.as_deref(), Some("goes gone After(0ns)"));
}

#[tokio::test]
async fn a_stream_without_a_handshake_is_refused_with_the_reason() {
    let (server, _heard) = Fake::new(|_| None);
    let mut client = Client::raw(server);
    client.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize" })).await;
    let refused = client.next().await;
    assert_eq!(refused["error"]["code"], -32600);
}

/// A session whose program shows `name? `, and answers what it is typed.
fn dialogue(action: &Action) -> Option<Result<Outcome, ActionError>> {
    Some(Ok(match action {
        Action::Show(_) => Outcome::Session(Box::new(session())),
        Action::Wait { wait, .. } if wait.pattern.is_some() => return None,
        Action::Wait { .. } => {
            let mut now = report("");
            now.output.from = 42;
            Outcome::Report(Box::new(now))
        }
        Action::Output(read) => {
            let shown = if read.since == Since::Offset(0) { "make\nname? " } else { "name? Jo\nage? 7\nold\n" };
            Outcome::Output(OutputView {
                view: View::Text,
                bytes: Vec::new(),
                text: TextView { head: shown.into(), ..TextView::default() },
                from: 0,
                next: 100,
                first: 0,
                end: 100,
                gap: None,
                is_final: false,
                room: None,
            })
        }
        Action::Input(input) => {
            let mut report = report("ignored");
            report.output.from = 42;
            report.command.as_mut().expect("one").end_offset = Some(90);
            report.accepted_bytes = Some(2);
            let awaits_age = input.wait.as_ref().and_then(|w| w.pattern.as_ref()).is_some_and(|p| p.as_str() == "age");
            report.ended_by = if awaits_age { EndedBy::Matched } else { EndedBy::TimedOut };
            Outcome::Report(Box::new(report))
        }
        _ => return Some(Err(ActionError::Restarting)),
    }))
}

#[tokio::test]
async fn a_dialogue_sees_the_present_prompt_and_says_which_step_did_not_match() {
    let (server, _heard) = Fake::new(dialogue);
    let mut client = Client::connect(server.clone(), "talks").await;
    client.initialize("2025-11-25").await;
    let steps = json!([
        { "wait_for": "name", "input": "Jo" }, { "wait_for": "age", "keys": ["7", "Enter"] }, { "wait_for": "never", "input": "x" },
    ]);
    let result = client.call(1, "send_input_to_terminal", json!({ "session_id": ID, "steps": steps })).await;
    let told = text(&result);
    assert!(
        told.starts_with(
            "name? Jo\nage? 7\nold\n[step 3 of 3 did not match \"never\", nothing of it was typed · exit 0 · "
        ),
        "{told}"
    );
    let asked = server.asked.lock().expect("free");
    let Some(Action::Output(last)) = asked.last() else { panic!("{asked:?}") };
    assert_eq!((&last.since, last.limit), (&Since::Offset(42), 48));
    let typed: Vec<(&InputBytes, Option<&str>)> = asked
        .iter()
        .filter_map(|a| if let Action::Input(i) = a { Some((&i.bytes, i.key.as_deref())) } else { None })
        .collect();
    let keys = InputBytes::Keys(["7", "Enter"].iter().flat_map(|k| ptyd_core::keys::parse(k).expect("keys")).collect());
    assert_eq!(typed, [(&InputBytes::Raw(b"Jo".to_vec()), Some("talks:1/0")), (&keys, Some("talks:1/1"))]);
}

#[tokio::test]
async fn lines_are_pasted_only_where_they_are_a_block_or_the_call_says_so() {
    let (server, _heard) = Fake::new(dialogue);
    let mut client = Client::connect(server.clone(), "types").await;
    client.initialize("2025-11-25").await;
    let block = "if x:\n  y\n";
    for (number, input, paste) in
        [(1, block, None), (2, block, Some(false)), (3, block, Some(true)), (4, "x", None), (5, "x", Some(true))]
    {
        let arguments = json!({ "session_id": ID, "input": input, "paste": paste, "end_with_newline": true });
        client.call(number, "send_input_to_terminal", arguments).await;
    }
    let asked = server.asked.lock().expect("free");
    let typed: Vec<&InputBytes> =
        asked.iter().filter_map(|a| if let Action::Input(i) = a { Some(&i.bytes) } else { None }).collect();
    let paste = |text: &str| InputBytes::Paste { text: text.to_owned(), enters: true };
    let raw = |text: &str| InputBytes::Raw(text.as_bytes().to_vec());
    let typed_block = raw("if x:\n  y\n\r");
    assert_eq!(typed, [&paste(block), &typed_block, &paste(block), &raw("x\r"), &paste("x")]);
}

#[tokio::test]
async fn a_wait_for_text_that_appeared_between_two_calls_returns_at_once() {
    let (server, mut heard) = Fake::new(dialogue);
    let mut client = Client::connect(server, "polls").await;
    assert_eq!(heard.recv().await.as_deref(), Some("polls here"));
    client.initialize("2025-11-25").await;
    let arguments = json!({ "session_id": ID, "since": "last", "wait_for": "age. \\d", "timeout": 60 });
    let result = client.call(1, "get_terminal_output", arguments).await;
    assert_eq!(heard.recv().await.as_deref(), Some("waiting"));
    assert_eq!(heard.recv().await.as_deref(), Some("given up"));
    assert!(text(&result).ends_with(" · next o:100]"), "{result}");
}

#[tokio::test]
async fn the_next_server_answers_for_a_stopping_one_and_other_answers_arrive_at_once() {
    let (server, mut heard) = Fake::new(|_| Some(Err(ActionError::Restarting)));
    let mut client = Client::connect(Arc::clone(&server) as _, "asks").await;
    client.initialize("2025-11-25").await;
    let broken = client.call(1, "terminal", json!({ "command": "make" })).await;
    assert!(text(&broken).contains("retry"), "{broken}");
    server.stopping.store(true, std::sync::atomic::Ordering::Relaxed);
    let params = json!({ "name": "terminal", "arguments": { "command": "make" }, "_meta": { "ptyd/request": 2 } });
    client.send(&json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params })).await;
    client.send(&json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/list" })).await;
    assert_eq!(client.next().await["id"], 3, "the call has no answer");
    drop(client);
    assert_eq!(heard.recv().await.as_deref(), Some("asks here"));
    assert!(heard.recv().await.is_some_and(|word| word.starts_with("asks gone")));
}

#[tokio::test]
async fn a_session_starts_in_the_directory_that_its_client_names() {
    let (server, _heard) = Fake::new(|_| Some(Ok(Outcome::Session(Box::new(session())))));
    let mut client = Client::connect(Arc::clone(&server) as _, "starts").await;
    client.initialize("2025-11-25").await;
    for (id, cwd) in (1..).zip(["", "src", "/app", "~", "~/src"]) {
        client.call(id, "start_terminal_session", json!({ "cwd": cwd })).await;
    }
    let asked = server.asked.lock().expect("free");
    let place = |c: &Create| Some(c.cwd.as_ref().or(c.otherwise.cwd.as_ref())?.to_str()?.to_owned());
    let started =
        asked.iter().filter_map(|a| if let Action::Composite(Composite::Create(c)) = a { place(c) } else { None });
    // The client is in /x, and only the session knows what its home is.
    assert_eq!(started.collect::<Vec<_>>(), ["/x", "/x/src", "/app", "~", "~/src"]);
}

#[tokio::test]
async fn a_screen_is_shown_with_its_cursor_and_read_as_a_resource() {
    let (server, _heard) = Fake::new(|action| {
        Some(Ok(match action {
            Action::Screen(_) => Outcome::Screen(ScreenView {
                rows: vec!["~".into(), "".into()],
                cursor_row: 1,
                cursor_col: 0,
                cursor_visible: false,
                title: "".into(),
                cols: 80,
                inverse: Vec::new(),
                marks: Vec::new(),
                is_title_new: true,
                changed: None,
                moved: None,
                is_alternate: true,
                painter: Default::default(),
                ansi: Vec::new(),
                at: 55,
            }),
            _ => Outcome::Session(Box::new(session())),
        }))
    });
    let mut client = Client::connect(Arc::clone(&server) as _, "screen").await;
    client.initialize("2025-11-25").await;
    let result = client.call(1, "get_terminal_output", json!({ "session_id": ID, "view": "screen" })).await;
    assert!(text(&result).starts_with("~\n[idle · screen 80×2 · cursor hidden row 2 column 1 · session "), "{result}");
    let uri = format!("ptyd://sessions/{ID}/screen");
    let read =
        client.ask(json!({ "jsonrpc": "2.0", "id": 2, "method": "resources/read", "params": { "uri": uri } })).await;
    assert_eq!(read["result"]["contents"][0]["text"], "~\n");
}
