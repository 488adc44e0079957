//! Edges of the contract without a file of their own: reports of a start, lists, positions, variables, resource usage,
//! and values beyond limits.

use std::process::Command;

use e2e::{Connection, Server, eventually};
use serde_json::{Value, json};

fn ask(http: &mut Connection, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let reply = http.ask(method, path, &body).expect("an answer");
    (reply.status, reply.json())
}

fn start(http: &mut Connection, wish: &Value) -> (String, Value) {
    let (status, made) = ask(http, "POST", "/terminals", wish);
    assert_eq!(status, 201, "{made}");
    (format!("/terminals/{}", made["id"].as_str().expect("an id")), made)
}

#[test]
// promise: rest-7
fn a_session_that_starts_slowly_is_creating_and_a_command_waits_for_its_prompt() {
    let server = Server::start();
    let http = &mut server.connect();
    let gate = server.home().file("gate");
    assert!(Command::new("mkfifo").arg(&gate).status().expect("mkfifo").success());
    std::fs::write(server.home().path().join(".bashrc"), format!("read -r _ < {}\n", gate.display())).expect("written");
    let (path, made) = start(http, &json!({}));
    assert_eq!((&made["status"], made["connection"]["socket"].is_string()), (&json!("creating"), true));
    let early =
        http.ask("POST", &format!("{path}/execute"), r#"{"command":"true","timeout":0.05}"#).expect("an answer");
    assert_eq!(early.problem(), (409, "session_not_ready".to_owned(), String::new()));
    let other = &mut server.connect();
    let done = std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            ask(
                other,
                "POST",
                &format!("{path}/execute"),
                &json!({ "waitForCompletion": true, "command": "echo late" }),
            )
        });
        std::fs::write(&gate, "go\n").expect("somebody reads");
        running.join().expect("an answer")
    });
    assert_eq!((done.0, &done.1["output"]), (200, &json!("late\n")));
    assert_eq!(ask(http, "GET", &path, &Value::Null).1["status"], "running");
}

#[test]
// promise: rest-5
fn lists_are_oldest_first_in_pages_with_the_whole_count() {
    let server = Server::start();
    let http = &mut server.connect();
    let names: Vec<String> = (0..5).map(|i| format!("n{i}")).collect();
    let paths: Vec<String> = names.iter().map(|name| start(http, &json!({ "name": name })).0).collect();
    let mut page = |query: &str| {
        let (status, list) = ask(http, "GET", &format!("/terminals?{query}"), &Value::Null);
        assert_eq!(status, 200, "{list}");
        let rows = list["terminals"].as_array().expect("a list").clone();
        (
            rows.iter().map(|row| row["name"].as_str().expect("a name").to_owned()).collect::<Vec<_>>(),
            list["total"].clone(),
        )
    };
    assert_eq!(page(""), (names.clone(), json!(5)));
    assert_eq!(page("limit=2&offset=1"), (names[1..3].to_vec(), json!(5)));
    assert_eq!(page("limit=2&offset=4"), (names[4..].to_vec(), json!(5)));
    assert_eq!(page("offset=9"), (vec![], json!(5)));
    assert_eq!(page("owner=nobody-else"), (vec![], json!(0)));
    assert_eq!(page("status=terminated"), (vec![], json!(0)));
    let http = &mut server.connect();
    ask(http, "DELETE", &format!("{}?force=true", paths[2]), &Value::Null);
    let (_, ended) = ask(http, "GET", "/terminals?status=terminated", &Value::Null);
    assert_eq!((&ended["total"], &ended["terminals"][0]["name"]), (&json!(1), &json!("n2")));
    for text in ["one", "two", "three"] {
        ask(
            http,
            "POST",
            &format!("{}/execute", paths[0]),
            &json!({ "waitForCompletion": true, "command": format!("echo {text}") }),
        );
    }
    let (_, commands) = ask(http, "GET", &format!("{}/commands?limit=1&offset=1", paths[0]), &Value::Null);
    assert_eq!((&commands["total"], &commands["commands"][0]["command"]), (&json!(3), &json!("echo two")));
}

/// A time with some milliseconds on either side in which the session says nothing, as this machine's clock has it.
fn between_two_commands(http: &mut Connection, path: &str) -> String {
    let command = "sleep 0.05; date -u +%Y-%m-%dT%H:%M:%S.%6NZ >now; sleep 0.05; cat now";
    let (_, done) =
        ask(http, "POST", &format!("{path}/execute"), &json!({ "waitForCompletion": true, "command": command }));
    done["output"].as_str().expect("a time").trim_end().to_owned()
}

#[test]
// promise: rest-6
fn a_position_is_an_offset_a_time_or_the_callers_last_position() {
    let server = Server::start();
    let http = &mut server.connect();
    let (path, _) = start(http, &json!({}));
    ask(http, "POST", &format!("{path}/execute"), &json!({ "waitForCompletion": true, "command": "echo one" }));
    let between = between_two_commands(http, &path);
    let mut run = |text: &str| {
        let (_, done) =
            ask(http, "POST", &format!("{path}/execute"), &json!({ "waitForCompletion": true, "command": text }));
        done["startOffset"].as_u64().expect("an offset")
    };
    let second = run("echo two");
    let http = &mut server.connect();
    let read = |http: &mut Connection, query: &str| {
        let (status, output) = ask(http, "GET", &format!("{path}/output?{query}"), &Value::Null);
        assert_eq!(status, 200, "{output}");
        (output["text"].as_str().expect("text").to_owned(), output["nextOffset"].clone())
    };
    let (all, _) = read(http, "");
    assert!(all.contains("one\n") && all.contains("two\n"), "{all}");
    for form in [format!("since=o:{second}"), format!("since={second}")] {
        assert!(read(http, &form).0.starts_with("two\n"), "{form}");
    }
    // The prompt behind it may still be coming; what was read is not read again.
    let (rest, _) = read(http, "since=last");
    assert!(!rest.contains("two\n"), "{rest}");
    ask(http, "POST", &format!("{path}/execute"), &json!({ "command": "echo three", "waitForCompletion": false }));
    let (news, _) = read(http, "since=last&waitMs=20000");
    assert!(!news.contains("two\n"), "{news}");
    let since_long_ago = read(http, "since=2020-01-01T00:00:00Z").0;
    assert_eq!(since_long_ago.lines().filter(|line| *line == "one").count(), 1, "{since_long_ago}");
    assert_eq!(read(http, "since=2100-01-01T00:00:00Z").0, "", "nothing came after that");
    let since_between = read(http, &format!("since={between}")).0;
    let has = |line: &str| since_between.lines().any(|found| found == line);
    assert_eq!((has("one"), has("two")), (false, true), "since {between}: {since_between}");
    let refused = http.ask("GET", &format!("{path}/output?since=o:99999999"), "").expect("an answer");
    assert_eq!(refused.problem(), (422, "invalid_field".to_owned(), "since".to_owned()));
}

#[tokio::test]
// promise: rest-6
async fn an_answer_without_a_wait_shows_no_output_and_says_that_there_is_some() {
    let server = Server::start();
    let shell = server.session().await;
    // Of twenty quick commands, some have ended when their answer is made.
    for _ in 0..20 {
        let begun = shell.begin("echo some").await;
        assert_eq!((&begun.output, begun.truncated), (&None, begun.output_size > 0));
        let done = shell.end_of(&begun).await;
        assert_eq!((done.output.as_deref(), done.truncated), (Some("some\n"), false));
    }
}

#[test]
// promise: rest-6
fn the_newest_lines_are_kept_and_the_others_counted() {
    let server = Server::start();
    let http = &mut server.connect();
    let (path, _) = start(http, &json!({}));
    ask(
        http,
        "POST",
        &format!("{path}/execute"),
        &json!({ "waitForCompletion": true, "command": "printf '%s\\n' 1 2 3 4 5" }),
    );
    let (_, output) = ask(http, "GET", &format!("{path}/output?commandId=c1&maxLines=2"), &Value::Null);
    let text = output["text"].as_str().expect("text");
    assert!(text.ends_with("4\n5\n") && !text.contains("3\n"), "{text:?}");
    assert_eq!(output["omitted"]["bytes"], 9, "{output}");
}

#[test]
// promise: rest-6
fn lines_from_a_position_on_are_pages_and_without_one_they_are_the_newest() {
    let server = Server::start();
    let http = &mut server.connect();
    let (path, _) = start(http, &json!({}));
    let mut run = |command: &str| {
        let wish = json!({ "command": command, "waitForCompletion": true });
        ask(http, "POST", &format!("{path}/execute"), &wish).1["startOffset"].as_u64().expect("an offset")
    };
    let mut at = run("seq 1 5");
    // More than one reading has.
    run("seq 1 200000");
    for expected in ["1\n2\n", "3\n4\n"] {
        let (_, page) = ask(http, "GET", &format!("{path}/output?since=o:{at}&maxLines=2"), &Value::Null);
        assert_eq!((&page["text"], &page["omitted"]), (&json!(expected), &Value::Null), "{page}");
        at = page["nextOffset"].as_u64().expect("an offset");
    }
    let query = format!("kind=command&since=o:{at}&maxLines=2");
    let (_, page) = ask(http, "GET", &format!("{path}/output?{query}"), &Value::Null);
    assert_eq!(page["text"], "5\n", "{page}");
    let (_, newest) = ask(http, "GET", &format!("{path}/output?maxLines=3"), &Value::Null);
    assert!(newest["text"].as_str().expect("text").contains("199999\n200000\n"), "{newest}");
    assert_eq!(newest["nextOffset"], newest["endOffset"]);
}

#[test]
// promise: rest-11
fn a_long_command_is_answered_with_its_id_unless_the_request_asks_for_a_wait() {
    let server = Server::start();
    let http = &mut server.connect();
    let (path, _) = start(http, &json!({}));
    let execute = format!("{path}/execute");
    ask(http, "POST", &execute, &json!({ "command": "true", "waitForCompletion": true }));
    let (status, long) = ask(http, "POST", &execute, &json!({ "command": "sleep 600" }));
    assert_eq!((status, &long["id"], &long["status"]), (202, &json!("c2"), &json!("running")));
    assert_eq!((&long["endedBy"], long["waitedMs"].as_u64() < Some(30_000)), (&json!("timed_out"), true), "{long}");
    ask(http, "POST", &format!("{path}/signal"), &json!({ "signal": "INT" }));
    let (_, waited) = ask(http, "POST", &format!("{path}/wait"), &json!({ "timeout": 20 }));
    assert_eq!(waited["endedBy"], "ended", "{waited}");
    let awaited = json!({ "command": "sleep 1.5; echo slept", "waitForCompletion": true });
    let (status, done) = ask(http, "POST", &execute, &awaited);
    assert_eq!((status, &done["output"]), (200, &json!("slept\n")), "{done}");
}

#[test]
// promise: access-9
fn the_variables_are_shown_without_secrets_and_the_session_has_them() {
    let server = Server::start();
    let http = &mut server.connect();
    let (path, made) =
        start(http, &json!({ "env": { "PLAIN": "seen", "API_TOKEN": "hidden", "DB_PASSWORD": "hidden" } }));
    let shown = json!({ "PLAIN": "seen", "API_TOKEN": "***", "DB_PASSWORD": "***" });
    assert_eq!(made["env"], shown);
    assert_eq!(ask(http, "GET", &path, &Value::Null).1["env"], shown);
    let wish = json!({ "waitForCompletion": true, "command": "[ $API_TOKEN = hidden ]" });
    assert_eq!(ask(http, "POST", &format!("{path}/execute"), &wish).1["exitCode"], 0);
    assert!(!server.logged().contains("hidden"));
}

#[tokio::test]
// promise: limit-8
async fn a_sessions_usage_covers_its_whole_tree_and_its_activity_is_shown() {
    let server = Server::start();
    let http = &mut server.connect();
    let (path, made) = start(http, &json!({}));
    let wish = json!({ "waitForCompletion": true, "command": "sleep 1000 & (sleep 1000 & wait) & sleep 1000 &" });
    ask(http, "POST", &format!("{path}/execute"), &wish);
    let now = eventually("the shell, its three jobs and the grandchild", async || {
        let (_, now) = ask(&mut server.connect(), "GET", &path, &Value::Null);
        (now["resourceUsage"]["processes"].as_u64() == Some(5)).then_some(now)
    })
    .await;
    assert!(now["lastActivity"].as_str() > made["lastActivity"].as_str(), "{now}");
    // A look is not activity; output of jobs that were just started may still come.
    eventually("two looks find the same activity", async || {
        let looked = [(); 2].map(|()| ask(&mut server.connect(), "GET", &path, &Value::Null).1["lastActivity"].clone());
        (looked[0] == looked[1]).then_some(())
    })
    .await;
    // A list has the same values, from one reading of all processes if there are many sessions.
    for count in [1, 17] {
        while ask(http, "GET", "/terminals", &Value::Null).1["total"].as_u64() < Some(count) {
            start(http, &json!({}));
        }
        let (_, list) = ask(http, "GET", "/terminals", &Value::Null);
        let all = list["terminals"].as_array().expect("a list");
        let used = |session: &Value| session["resourceUsage"]["processes"].as_u64();
        let told: Vec<_> = all.iter().map(used).collect();
        let expected: Vec<_> = (0..count).map(|n| Some(if n == 0 { 5 } else { 1 })).collect();
        assert_eq!(told, expected);
        assert!(all.iter().all(|session| session["resourceUsage"]["memory"].as_f64() > Some(0.5)), "{list}");
    }
}

#[test]
fn a_refusal_over_a_limit_says_to_try_again() {
    let server = Server::start();
    let http = &mut server.connect();
    for _ in 0..128 {
        assert_eq!(ask(http, "POST", "/tickets", &json!({ "page": "docs" })).0, 201);
    }
    let refused = http.ask("POST", "/tickets", r#"{"page":"docs"}"#).expect("an answer");
    assert_eq!(refused.problem(), (429, "limit_reached".to_owned(), String::new()));
    assert_eq!(refused.header("retry-after"), Some("5"));
}

#[test]
// promise: end-10
fn a_command_without_a_wait_that_ends_its_session_is_not_refused() {
    let server = Server::start();
    let http = &mut server.connect();
    for _ in 0..30 {
        let (path, _) = start(http, &json!({}));
        let wish = json!({ "command": "exit 4", "waitForCompletion": false });
        let (status, done) = ask(http, "POST", &format!("{path}/execute"), &wish);
        assert!(matches!(status, 200 | 202) && done["id"] == "c1", "{status} {done}");
    }
}

#[test]
// promise: rest-9
fn a_refusal_that_comes_before_the_body_was_read_says_that_the_connection_closes() {
    use std::io::{Read, Write};
    let server = Server::start();
    let head = |token: &str, length: usize| {
        let host = server.address();
        format!(
            "POST /mcp HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nContent-Length: {length}\r\n\r\n"
        )
    };
    let mut wire = std::net::TcpStream::connect(server.address()).expect("it listens");
    wire.write_all(head("wrong", 10).as_bytes()).expect("sent");
    let mut answer = String::new();
    wire.read_to_string(&mut answer).expect("it closes");
    assert!(answer.starts_with("HTTP/1.1 401 ") && answer.contains("\r\nconnection: close\r\n"), "{answer}");
    // Where the whole body was read, the connection stays.
    let token = server.token();
    let mut wire = std::net::TcpStream::connect(server.address()).expect("it listens");
    for _ in 0..2 {
        wire.write_all(format!("{}{{}}", head(&token, 2)).as_bytes()).expect("sent");
        let mut buffer = [0; 4096];
        let read = wire.read(&mut buffer).expect("answered");
        let answer = String::from_utf8_lossy(&buffer[..read]).into_owned();
        assert!(answer.starts_with("HTTP/1.1 4") && !answer.contains("connection: close"), "{answer}");
    }
}
