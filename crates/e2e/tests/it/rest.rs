//! The REST contract: exactly terminal-management.md §3.3.1 and §3.4, authentication, and the form of refusals.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use e2e::{Connection, Server};
use serde_json::{Value, json};

/// Asks, and gives the status and the JSON.
fn ask(connection: &mut Connection, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let reply = connection.ask(method, path, &body).expect("an answer");
    assert_eq!(reply.header("content-type"), Some("application/json"), "{method} {path}: {}", reply.json());
    assert!(reply.header("x-request-id").is_some(), "{method} {path}");
    (reply.status, reply.json())
}

/// A field of a data model: its path, and what its value must be.
type Field = (&'static str, fn(&Value) -> bool);

/// The names of an object's fields that have another type than this; empty when it is the data model.
fn unlike(object: &Value, model: &[Field]) -> Vec<&'static str> {
    let value = |path: &str| path.split('.').fold(object, |at, name| &at[name]).clone();
    model.iter().filter(|(path, is_right)| !is_right(&value(path))).map(|(path, _)| *path).collect()
}

fn is_time(value: &Value) -> bool {
    let form = regex::Regex::new(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$").expect("a pattern");
    value.as_str().is_some_and(|text| form.is_match(text))
}

const SESSION: [Field; 19] = [
    ("id", Value::is_string),
    ("status", Value::is_string),
    ("shell", Value::is_string),
    ("cwd", Value::is_string),
    ("env", Value::is_object),
    ("createdAt", is_time),
    ("lastActivity", is_time),
    ("owner", Value::is_string),
    ("dimensions.cols", Value::is_u64),
    ("dimensions.rows", Value::is_u64),
    ("resourceUsage.cpu", Value::is_number),
    ("resourceUsage.memory", Value::is_number),
    ("resourceUsage.processes", Value::is_u64),
    ("foreground", Value::is_string),
    ("boundary", Value::is_string),
    ("journal.firstOffset", Value::is_u64),
    ("journal.endOffset", Value::is_u64),
    ("connection.url", Value::is_string),
    ("connection.attach", Value::is_string),
];

const COMMAND: [Field; 14] = [
    ("id", Value::is_string),
    ("sessionId", Value::is_string),
    ("command", Value::is_string),
    ("status", Value::is_string),
    ("startedAt", is_time),
    ("completedAt", is_time),
    ("exitCode", Value::is_i64),
    ("outputSize", Value::is_u64),
    ("pipestatus", Value::is_array),
    ("startOffset", Value::is_u64),
    ("endOffset", Value::is_u64),
    ("cwd", Value::is_string),
    ("durationMs", Value::is_u64),
    ("output", Value::is_string),
];

#[test]
// promise: rest-1
fn every_endpoint_of_the_requirement_answers_with_its_data_model() {
    let server = Server::start();
    let http = &mut server.connect();
    let wish = json!({ "shell": "bash", "cwd": "/", "env": { "A": "b" }, "name": "mine", "owner": "local",
        "dimensions": { "cols": 100, "rows": 30 } });

    let reply = http.ask("POST", "/terminals", &wish.to_string()).expect("an answer");
    let made = reply.json();
    let path = format!("/terminals/{}", made["id"].as_str().expect("an id"));
    assert_eq!((reply.status, reply.header("location")), (201, Some(path.as_str())));
    assert_eq!(unlike(&made, &SESSION), [""; 0], "{made}");
    let shown = json!([
        made["status"],
        made["shell"],
        made["cwd"],
        made["env"],
        made["name"],
        made["owner"],
        made["dimensions"]
    ]);
    let asked = json!(["running", "bash", "/", { "A": "b" }, "mine", "local", { "cols": 100, "rows": 30 }]);
    assert_eq!(shown, asked);

    let (status, done) =
        ask(http, "POST", &format!("{path}/execute"), &json!({ "command": "echo $A; false", "timeout": 30 }));
    assert_eq!((status, unlike(&done, &COMMAND)), (200, vec![]), "{done}");
    assert_eq!(json!([done["status"], done["exitCode"], done["output"]]), json!(["completed", 1, "b\n"]));

    let command = format!("{path}/commands/{}", done["id"].as_str().expect("an id"));
    let (status, again) = ask(http, "GET", &command, &Value::Null);
    assert_eq!((status, unlike(&again, &COMMAND)), (200, vec![]), "{again}");
    assert_eq!(
        [&again["exitCode"], &again["output"], &again["startOffset"]],
        [&done["exitCode"], &done["output"], &done["startOffset"]]
    );

    let (status, raw) = ask(http, "GET", &format!("{command}?view=raw"), &Value::Null);
    assert_eq!((status, &raw["outputBase64"]), (200, &json!("Yg0K")));

    let (status, all) = ask(http, "GET", &format!("{path}/commands"), &Value::Null);
    assert_eq!((status, &all["total"], &all["commands"][0]["id"]), (200, &json!(1), &done["id"]));

    let size = json!({ "cols": 80, "rows": 24 });
    let (status, resized) = ask(http, "POST", &format!("{path}/resize"), &size);
    assert_eq!((status, &resized["dimensions"]), (200, &size));

    let (status, running) = ask(
        http,
        "POST",
        &format!("{path}/execute"),
        &json!({ "waitForCompletion": true, "command": "read x; echo got $x" }),
    );
    assert_eq!((status, &running["status"], &running["foreground"]), (202, &json!("running"), &json!("input_wanted")));
    assert_eq!([&running["exitCode"], &running["completedAt"]], [&Value::Null, &Value::Null]);

    let line = json!({ "input": "John", "endWithNewline": true, "timeout": 30 });
    let (status, typed) = ask(http, "POST", &format!("{path}/input"), &line);
    assert_eq!((status, &typed["endedBy"], &typed["command"]["exitCode"]), (200, &json!("ended"), &json!(0)));

    let (status, text) = ask(http, "GET", &format!("{path}/output?commandId=c2"), &Value::Null);
    assert_eq!((status, &text["text"]), (200, &json!("John\ngot John\n")));

    let (status, list) = ask(http, "GET", "/terminals", &Value::Null);
    assert_eq!((status, &list["total"], &list["terminals"][0]["id"]), (200, &json!(1), &made["id"]));

    let (status, usage) = ask(http, "GET", &path, &Value::Null);
    assert_eq!((status, unlike(&usage, &SESSION)), (200, vec![]), "{usage}");
    assert!(usage["resourceUsage"]["memory"].as_f64() > Some(0.5), "a shell uses memory: {usage}");
    assert!(usage["resourceUsage"]["processes"].as_u64() >= Some(1), "a shell is a process: {usage}");

    let twice = http.ask("DELETE", &format!("{path}?force=true"), r#"{"graceSeconds":1}"#).expect("an answer");
    assert_eq!((twice.status, &twice.json()["code"]), (422, &json!("invalid_field")), "parameters in two places");
    let unknown = http.ask("DELETE", &path, r#"{"forced":true}"#).expect("an answer");
    assert_eq!((unknown.status, &unknown.json()["field"]), (422, &json!("forced")), "a body is not ignored");
    // It notes every polite signal; by force there is none.
    let polite = "trap ': >asked' HUP TERM; echo set; until false; do sleep 1000 & wait; done";
    let polite = json!({ "command": polite, "waitFor": "set" });
    ask(http, "POST", &format!("{path}/execute"), &polite);
    let (status, ended) = ask(http, "DELETE", &path, &json!({ "force": true, "signal": null }));
    assert!(!server.home().file("asked").exists(), "the body's `force` was not obeyed");
    assert_eq!((status, &ended["session"]["status"], &ended["wasOver"]), (200, &json!("terminated"), &json!(false)));
    let (status, ended) = ask(http, "DELETE", &path, &Value::Null);
    assert_eq!((status, &ended["session"]["status"], &ended["wasOver"]), (200, &json!("terminated"), &json!(true)));
    let (_, list) = ask(http, "GET", "/terminals", &Value::Null);
    assert_eq!(list, json!({ "terminals": [], "total": 0 }));
    let (_, list) = ask(http, "GET", "/terminals?status=terminated", &Value::Null);
    assert_eq!((&list["total"], &list["terminals"][0]["id"]), (&json!(1), &made["id"]));
}

#[test]
// promise: access-1, access-3
fn over_loopback_a_token_a_loopback_host_and_no_foreign_origin_are_needed() {
    let server = Server::start();
    let token = format!("Bearer {}", server.token());
    let host = server.address().to_string();
    let of = |path: &str, headers: &[(&str, &str)]| {
        let mut http = Connection::tcp(server.address()).expect("it listens");
        let reply = http.send("GET", path, headers, "").expect("an answer");
        let (status, code, _) = reply.problem();
        (status, code)
    };
    let refused = |status: u16, code: &str| (status, code.to_owned());
    let fine = (200, String::new());
    let (own_host, own_token) = (("Host", host.as_str()), ("Authorization", token.as_str()));
    assert_eq!(of("/terminals", &[own_host, own_token]), fine);
    assert_eq!(of("/terminals", &[own_host, own_token, ("Origin", "http://localhost:3000")]), fine);
    assert_eq!(of("/terminals", &[own_host]), refused(401, "unauthorized"));
    assert_eq!(of("/terminals", &[own_host, ("Authorization", "Bearer wrong")]), refused(401, "unauthorized"));
    assert_eq!(of("/terminals", &[("Host", "evil.example"), own_token]), refused(403, "host_refused"));
    assert_eq!(
        of("/terminals", &[own_host, own_token, ("Origin", "https://evil.example")]),
        refused(403, "origin_refused")
    );
    assert_eq!([of("/livez", &[own_host]), of("/readyz", &[own_host])], [fine.clone(), fine]);
    assert_eq!(of("/livez", &[("Host", "evil.example")]), refused(403, "host_refused"));
    let mode = |path: std::path::PathBuf| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(
        [mode(server.home().state().join("token")), mode(server.home().state()), mode(server.home().socket())],
        [0o600, 0o700, 0o600]
    );
    assert!(!server.logged().contains(&server.token()), "a token is in no log");
}

#[test]
// promise: rest-3
fn a_refusal_is_a_problem_document_that_names_the_code_and_the_field() {
    let server = Server::start();
    let http = &mut server.connect();
    let (_, made) = ask(http, "POST", "/terminals", &json!({}));
    let path = format!("/terminals/{}", made["id"].as_str().expect("an id"));
    let at = |rest: &str| format!("{path}{rest}");
    let table = [
        ("POST", "/terminals".to_owned(), "{", (400, "malformed_body", "")),
        ("POST", "/terminals".to_owned(), r#"{"shel":"bash"}"#, (422, "invalid_field", "shel")),
        ("POST", "/terminals".to_owned(), r#"{"cwd":"/no/such/place"}"#, (422, "invalid_field", "cwd")),
        (
            "POST",
            "/terminals".to_owned(),
            r#"{"dimensions":{"cols":0,"rows":1}}"#,
            (422, "invalid_field", "dimensions.cols"),
        ),
        ("POST", at("/resize"), r#"{"cols":80,"rows":0}"#, (422, "invalid_field", "rows")),
        ("POST", at("/resize"), r#"{"cols":100000,"rows":24}"#, (422, "invalid_field", "cols")),
        ("POST", at("/resize"), r#"{"cols":-1,"rows":24}"#, (422, "invalid_field", "cols")),
        ("POST", at("/resize"), r#"{"cols":80}"#, (422, "invalid_field", "rows")),
        ("POST", at("/execute"), "{}", (422, "invalid_field", "command")),
        ("POST", at("/execute"), r#"{"command":"true","timeout":-1}"#, (422, "invalid_field", "timeout")),
        ("POST", at("/execute"), r#"{"command":"true","waitFor":"("}"#, (422, "invalid_field", "waitFor")),
        ("POST", at("/input"), r#"{"keys":["NoSuchKey"]}"#, (422, "invalid_field", "keys")),
        ("POST", at("/input"), "{}", (422, "invalid_field", "input")),
        ("POST", at("/signal"), r#"{"signal":"NOSUCH"}"#, (422, "invalid_field", "signal")),
        ("GET", at("/output?since=nonsense"), "", (422, "invalid_field", "since")),
        ("GET", at("/output?maxBytes=0"), "", (422, "invalid_field", "maxBytes")),
        ("GET", at("/commands/c9"), "", (404, "command_not_found", "")),
        ("GET", "/terminals/s0-aaaaaaaaaa".to_owned(), "", (404, "session_not_found", "")),
        ("DELETE", "/terminals/s0-aaaaaaaaaa".to_owned(), "", (404, "session_not_found", "")),
        (
            "POST",
            "/terminals/s0-aaaaaaaaaa/execute".to_owned(),
            r#"{"command":"true"}"#,
            (404, "session_not_found", ""),
        ),
        ("GET", "/nowhere".to_owned(), "", (404, "route_not_found", "")),
        ("PATCH", "/terminals".to_owned(), "", (405, "method_not_allowed", "")),
    ];
    for (method, path, body, (status, code, field)) in table {
        let reply = http.ask(method, &path, body).expect("an answer");
        assert_eq!(reply.problem(), (status, code.to_owned(), field.to_owned()), "{method} {path} {body}");
        let json = reply.json();
        assert!(json["detail"].as_str().is_some_and(|text| !text.is_empty()), "{json}");
        assert_eq!(json["requestId"].as_str(), reply.header("x-request-id"), "{json}");
    }
    ask(http, "DELETE", &at("?force=true"), &Value::Null);
    for (rest, body) in
        [("/execute", r#"{"command":"true"}"#), ("/input", r#"{"input":"x"}"#), ("/resize", r#"{"cols":80,"rows":24}"#)]
    {
        let reply = http.ask("POST", &at(rest), body).expect("an answer");
        assert_eq!(reply.problem(), (410, "session_ended".to_owned(), String::new()), "{rest}");
    }
}

#[test]
// promise: once-1, once-2
fn the_same_idempotency_key_runs_once_and_never_another_command() {
    let server = Server::start();
    let http = &mut server.connect();
    let file = server.home().file("count");
    let keyed = |http: &mut Connection, path: &str, body: &Value| {
        let key = if path.ends_with("/terminals") { "k0" } else { "k1" };
        let reply = http.send("POST", path, &[("Host", "localhost"), ("Idempotency-Key", key)], &body.to_string());
        reply.expect("an answer")
    };
    let made = keyed(http, "/terminals", &json!({ "name": "one" })).json();
    assert_eq!(keyed(http, "/terminals", &json!({ "name": "one" })).json()["id"], made["id"]);
    let path = format!("/terminals/{}/execute", made["id"].as_str().expect("an id"));
    let append = json!({ "waitForCompletion": true, "command": format!("echo once >> {}", file.display()) });
    let first = keyed(http, &path, &append).json();
    server.kill9();
    server.again();
    let http = &mut server.connect();
    let second = keyed(http, &path, &append).json();
    assert_eq!([&second["id"], &second["exitCode"]], [&first["id"], &json!(0)]);
    assert_eq!(std::fs::read_to_string(&file).expect("written"), "once\n");
    let reused = (422, "key_reused".to_owned(), String::new());
    let mut others = vec![json!({ "command": "echo other" })];
    for (name, value) in [("timeout", json!(5)), ("waitFor", json!("once")), ("waitForCompletion", json!(false))] {
        let mut other = append.clone();
        other[name] = value;
        others.push(other);
    }
    for other in others {
        assert_eq!(keyed(http, &path, &other).problem(), reused, "{other}");
    }
    let input = path.replace("/execute", "/input");
    assert_eq!(keyed(http, &input, &json!({ "input": "x" })).problem(), reused, "an input is another request");
}

#[test]
// promise: once-2
fn a_key_that_started_a_session_is_refused_for_a_command_and_for_input() {
    let server = Server::start();
    let http = &mut server.connect();
    let headers = [("Host", "localhost"), ("Idempotency-Key", "k1")];
    let made = http.send("POST", "/terminals", &headers, "{}").expect("an answer").json();
    let path = format!("/terminals/{}", made["id"].as_str().expect("an id"));
    for (word, body) in [("execute", r#"{"command":"true"}"#), ("input", r#"{"input":"x"}"#)] {
        let reply = http.send("POST", &format!("{path}/{word}"), &headers, body).expect("an answer");
        assert_eq!(reply.problem(), (422, "key_reused".to_owned(), String::new()), "{word}");
    }
}

#[test]
// promise: once-1
fn a_create_with_the_same_key_finds_its_session_after_its_end_and_in_the_next_server() {
    let server = Server::start();
    let create = |key: &str, body: Value| {
        let headers = [("Host", "localhost"), ("Idempotency-Key", key)];
        server.connect().send("POST", "/terminals", &headers, &body.to_string()).expect("an answer")
    };
    let (alive, ended) =
        (json!({ "name": "alive" }), json!({ "name": "ended", "dimensions": { "cols": 90, "rows": 30 } }));
    let ids = [create("k1", alive.clone()).json(), create("k2", ended.clone()).json()].map(|s| s["id"].clone());
    let path = format!("/terminals/{}?force=true", ids[1].as_str().expect("an id"));
    assert_eq!(server.connect().ask("DELETE", &path, "").expect("an answer").status, 200);
    for _ in 0..2 {
        for (key, body, id, status) in [("k1", &alive, &ids[0], "running"), ("k2", &ended, &ids[1], "terminated")] {
            let again = create(key, body.clone()).json();
            assert_eq!((&again["id"], &again["status"]), (id, &json!(status)));
            let other = create(key, json!({ "name": "another" }));
            assert_eq!(other.problem(), (422, "key_reused".to_owned(), String::new()));
        }
        server.kill9();
        server.again();
    }
    let left = server.connect().ask("GET", "/terminals", "").expect("an answer").json();
    assert_eq!(left["total"], 1, "no other session was started");
}

#[test]
fn the_greeting_of_serve_can_be_pasted() {
    let server = Server::start();
    let [url, token, mcp, curl] = server.greeting().try_into().expect("four lines");
    assert!(url.starts_with(&format!("ptyd listens on http://{}", server.address())), "{url}");
    assert_eq!(token, format!("token: in {}", server.home().state().join("token").display()));
    let listen = std::fs::read_to_string(server.home().state().join("listen")).expect("there");
    assert_eq!(listen, format!("{}\n", server.address()));
    // Other tests' homes have no curl of their own, and none is needed: a shell that takes the line apart shows it.
    let line = curl.strip_prefix("try it: curl").expect("a line to try");
    let words = Command::new("sh").args(["-c", &format!("printf '%s\\n' {line}")]).output().expect("a shell");
    let words = String::from_utf8(words.stdout).expect("text");
    let words: Vec<&str> = words.lines().collect();
    let bearer = format!("Authorization: Bearer {}", server.token());
    let place = format!("http://{}/terminals", server.address());
    assert_eq!(words, ["-s", "-H", &bearer, "-H", "Content-Type: application/json", "-d", "{}", &place]);
    let words = mcp.split_once(" -- ").expect("a command").1.split(' ').collect::<Vec<_>>();
    assert!(std::path::Path::new(words[0]).is_file() && words[1] == "mcp", "{mcp}");
    let mut http = Connection::tcp(server.address()).expect("it listens");
    let headers = [("Host", "127.0.0.1"), ("Authorization", bearer.trim_start_matches("Authorization: "))];
    assert_eq!(http.send("POST", "/terminals", &headers, "{}").expect("an answer").status, 201);
}

/// A batch whose answers are more than it gives: what is behind them is not done, and it is said of each.
fn is_full_at_16_mib(server: &Server) {
    let http = &mut server.connect();
    let (_, made) = ask(http, "POST", "/terminals", &json!({}));
    let path = format!("/terminals/{}", made["id"].as_str().expect("an id"));
    let flood = json!({ "command": "head -c 4200000 /dev/zero | tr '\\0' x", "maxChars": 0, "timeout": 30 });
    assert_eq!(ask(http, "POST", &format!("{path}/execute"), &flood).1["exitCode"], 0);
    // In base64 each has a third more than its four million bytes, so four of them are more than 16 MiB and three are not.
    let part = json!({ "method": "GET", "path": format!("{path}/output?since=o:0&view=raw&maxBytes=4000000") });
    let act = json!({ "method": "POST", "path": format!("{path}/execute"), "body": { "command": "touch not-done" } });
    let operations = json!([part, part, part, part, part, act]);
    let (status, answer) = ask(http, "POST", "/batch", &json!({ "operations": operations }));
    let responses = answer["responses"].as_array().expect("a list");
    let statuses: Vec<_> = responses.iter().map(|r| r["status"].as_u64().expect("a status")).collect();
    assert_eq!((status, statuses), (200, vec![200, 200, 200, 200, 429, 429]));
    assert_eq!(responses[5]["body"]["code"], "limit_reached", "{}", responses[5]);
    assert!(!server.home().file("not-done").exists(), "what is refused is not done");
    ask(http, "DELETE", &format!("{path}?force=true"), &Value::Null);
}

#[test]
// promise: rest-4
fn the_operations_of_a_batch_are_done_in_order_each_with_its_own_status() {
    let server = Server::start();
    let http = &mut server.connect();
    let (_, made) = ask(http, "POST", "/terminals", &json!({}));
    let path = format!("/terminals/{}", made["id"].as_str().expect("an id"));
    let run = |command: &str| json!({ "method": "POST", "path": format!("{path}/execute"), "body": { "waitForCompletion": true, "command": command } });
    let operations = json!([
        run("X=1"),
        run("echo $X; (exit 3)"),
        { "method": "GET", "path": format!("{path}/commands/c9") },
        { "method": "GET", "path": format!("{path}/screen") },
        { "method": "POST", "path": format!("{path}/resize"), "body": { "cols": 0, "rows": 1 } },
        { "method": "GET", "path": "/readyz" },
        { "method": "DELETE", "path": format!("{path}?force=true") },
        run("true"),
    ]);
    let (status, answer) = ask(http, "POST", "/batch", &json!({ "operations": operations }));
    let responses = answer["responses"].as_array().expect("a list");
    let statuses: Vec<_> = responses.iter().map(|r| r["status"].as_u64().expect("a status")).collect();
    assert_eq!((status, statuses), (200, vec![200, 200, 404, 200, 422, 404, 200, 410]), "{answer}");
    assert_eq!((&responses[1]["body"]["output"], &responses[1]["body"]["exitCode"]), (&json!("1\n"), &json!(3)));
    assert_eq!(responses[4]["body"]["field"], "cols");
    assert!(responses[3]["body"]["rows"].is_array(), "{answer}");
    assert!(responses[2]["body"]["requestId"].as_str().is_some_and(|id| id.ends_with(".2")), "{answer}");

    is_full_at_16_mib(&server);

    // The server closes a connection without a request for half a minute; the megabytes may have taken longer.
    let http = &mut server.connect();
    let many: Vec<_> = (0..65).map(|_| json!({ "method": "POST", "path": "/terminals" })).collect();
    let create = json!({ "method": "POST", "path": "/terminals" });
    let wrong = [
        (json!({ "operations": [] }), "operations"),
        (json!({ "operations": many }), "operations"),
        (json!({ "operations": [create, { "method": "POST", "path": "/batch" }] }), "operations[1].path"),
        (json!({ "operations": [create, { "method": "PUT", "path": "/terminals" }] }), "operations[1].method"),
        (json!({ "operations": [create, { "method": "GET", "path": "terminals" }] }), "operations[1].path"),
    ];
    for (body, field) in wrong {
        let reply = http.ask("POST", "/batch", &body.to_string()).expect("an answer");
        assert_eq!(reply.problem(), (422, "invalid_field".to_owned(), field.to_owned()), "{body}");
    }
    assert_eq!(ask(http, "GET", "/terminals", &Value::Null).1["total"], 0, "nothing was done");
}
