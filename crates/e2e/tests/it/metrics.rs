//! The operator's view: counters without names of owners or sessions, and slow calls, by their request's id.

use api::{TokenRequest, TokenScope};
use e2e::metrics::{scrape, scrape_with, value};
use e2e::{Server, Session, Socket, Start};

async fn work(shell: &Session) {
    shell.run("true").await;
    shell.run("head -c 100000 /dev/zero | tr '\\0' x; false").await;
    // A program that wants an answer.
    let asked = shell.run("read -p 'name? ' n").await;
    assert_eq!(asked.foreground, Some(api::Foreground::InputWanted));
    shell.types("Ada").await;
    shell.begin("sleep 60").await;
}

#[tokio::test]
// promise: rest-10
async fn metrics_show_what_the_server_does_and_not_for_whom() {
    let server = Server::start();
    let (shell, other) = (server.session().await, server.session().await);
    work(&shell).await;
    // The datagrams that a session's other processes sent to its holder are counted at its end.
    assert_eq!(other.run("bash -c 'printf forged >&97'").await.exit_code, Some(0));
    let limits = api::Limits { command_seconds: Some(0.2), ..api::Limits::default() };
    let limited = server.session_with(api::CreateRequest { limits: Some(limits), ..Default::default() }).await;
    assert_eq!(limited.run("sleep 60").await.limits_hit, [api::Limit::CommandSeconds]);
    other.ends().await;
    limited.ends().await;
    let socket = Socket::visit(&server, &shell.id, "").await;
    let asked = server.connect().ask("GET", "/terminals/s0-nope", "").expect("an answer");
    assert_eq!(asked.status, 404);
    let text = scrape(&server);
    let expected = [
        ("ptyd_sessions{state=\"live\"}", 1.0),
        ("ptyd_sessions{state=\"ended\"}", 2.0),
        (concat!("ptyd_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"}"), 1.0),
        ("ptyd_approvals_waiting", 0.0),
        ("ptyd_command_seconds_count", 5.0),
        ("ptyd_refusals_total{code=\"session_not_found\"}", 1.0),
        ("ptyd_sessions_created_total", 3.0),
        ("ptyd_sessions_ended_total", 2.0),
        ("ptyd_commands_total{outcome=\"zero\"}", 3.0),
        ("ptyd_commands_total{outcome=\"nonzero\"}", 2.0),
        ("ptyd_waits_total{ended_by=\"ended\"}", 5.0),
        ("ptyd_waits_total{ended_by=\"input_wanted\"}", 1.0),
        ("ptyd_attention_total", 1.0),
        ("ptyd_limits_hit_total{limit=\"commandSeconds\"}", 1.0),
        ("ptyd_records_dropped_total", 1.0),
        ("ptyd_websockets", 1.0),
        ("ptyd_http_answer_seconds_count{route=\"/terminals/{session}/execute\",status=\"2xx\"}", 6.0),
        ("ptyd_http_answer_seconds_count{route=\"/terminals\",status=\"2xx\"}", 3.0),
    ];
    for (sample, expected) in expected {
        assert_eq!(value(&text, sample), Some(expected), "{sample} in\n{text}");
    }
    assert!(value(&text, "ptyd_output_bytes_total").is_some_and(|bytes| bytes > 100_000.0));
    assert!(value(&text, "process_resident_memory_bytes").is_some_and(|bytes| bytes > 1_000_000.0));
    assert!(value(&text, "process_open_fds").is_some_and(|descriptors| descriptors > 3.0));
    assert!(value(&text, "process_cpu_seconds_total").is_some_and(|seconds| seconds > 0.0));
    for name in [&shell.id, &other.id, "sleep"] {
        assert!(!text.contains(name), "{name} is in no label");
    }
    drop(socket);
    server.kill9();
    server.again();
    // The answer waits for the session's adoption, which runs in the background.
    shell.look().await;
    assert_eq!(value(&scrape(&server), "ptyd_adoptions_total{result=\"done\"}"), Some(1.0));
}

#[tokio::test]
// promise: rest-10
async fn a_slow_call_is_logged_with_its_requests_id_and_a_wait_is_not() {
    let env = vec![("PTYD_SLOW_CALL", "0".into())];
    let server = Server::start_as(Start { env, ..Start::default() });
    let shell = server.session().await;
    let path = format!("/terminals/{}", shell.id);
    let headers = [("Host", "localhost"), ("X-Request-Id", "look-1")];
    let mut connection = server.connect();
    assert_eq!(connection.send("GET", &path, &headers, "").expect("an answer").status, 200);
    let headers = [("Host", "localhost"), ("X-Request-Id", "wait-1")];
    let body = r#"{"timeout":0.05,"waitFor":"never"}"#;
    assert_eq!(connection.send("POST", &format!("{path}/wait"), &headers, body).expect("an answer").status, 200);
    let log = server.logged();
    let slow: Vec<&str> = log.lines().filter(|line| line.contains("slow")).collect();
    assert!(slow.iter().any(|line| line.contains("request{id=look-1}") && line.contains("action=\"show\"")), "{log}");
    assert!(!slow.iter().any(|line| line.contains("wait-1")), "{log}");
}

#[tokio::test]
// promise: access-5
async fn a_token_that_may_only_read_is_enough_to_scrape() {
    let server = Server::start();
    let shell = server.session().await;
    let scraper = TokenRequest {
        name: "scraper".to_owned(),
        scope: TokenScope::Read,
        expires_in: None,
        profiles: Vec::new(),
        confinement: None,
        ..TokenRequest::default()
    };
    let token = server.client().make_token(&scraper).await.expect("made").token;
    let text = scrape_with(&server, &token);
    assert_eq!((value(&text, "ptyd_sessions{state=\"live\"}"), text.contains(&shell.id)), (Some(1.0), false));
}
