//! The documentation page: self-contained, entered with a ticket of its own, and without information about sessions.

use e2e::{Connection, Server};
use serde_json::{Value, json};

fn ticket(server: &Server, body: &Value) -> String {
    let reply = server.connect().ask("POST", "/tickets", &body.to_string()).expect("an answer");
    assert_eq!((reply.status, reply.header("cache-control")), (201, Some("no-store")));
    reply.json()["ticket"].as_str().expect("a ticket").to_owned()
}

#[tokio::test]
// promise: access-7
async fn a_browser_enters_the_docs_once_by_a_ticket_for_them_and_by_no_other() {
    let server = Server::start();
    let session = server.session().await;
    let host = server.address().to_string();
    let of = |path: String| {
        let mut http = Connection::tcp(server.address()).expect("it listens");
        http.send("GET", &path, &[("Host", &host)], "").expect("an answer")
    };
    let unauthorized = (401, "unauthorized".to_owned(), String::new());
    let forbidden = (403, "forbidden".to_owned(), String::new());
    assert_eq!(of("/docs".to_owned()).problem(), unauthorized);
    let docs = ticket(&server, &json!({ "page": "docs" }));
    assert_eq!(of(format!("/openapi.json?ticket={docs}")).problem(), unauthorized);
    assert_eq!(of(format!("/docs?ticket={docs}")).status, 200);
    assert_eq!(of(format!("/docs?ticket={docs}")).problem(), unauthorized, "it is good once");
    let socket = ticket(&server, &json!({ "session": session.id }));
    assert_eq!(of(format!("/docs?ticket={socket}")).problem(), forbidden);
    let docs = ticket(&server, &json!({ "page": "docs" }));
    assert_eq!(of(format!("/terminals/{}/socket?ticket={docs}", session.id)).problem(), forbidden);
    assert!(!server.logged().contains(&docs), "a ticket is in no log");
}

#[test]
// promise: access-7
fn the_page_has_every_operation_and_schema_and_may_load_and_run_nothing() {
    let server = Server::start();
    let http = &mut server.connect();
    let document = http.ask("GET", "/openapi.json", "").expect("an answer").json();
    let reply = http.ask("GET", "/docs", "").expect("an answer");
    assert_eq!(reply.header("content-type"), Some("text/html; charset=utf-8"));
    let html = String::from_utf8(reply.body.clone()).expect("text");
    let operations =
        document["paths"].as_object().expect("paths").values().flat_map(|p| p.as_object().expect("methods"));
    let names: Vec<&str> = operations.map(|(_, o)| o["operationId"].as_str().expect("a name")).collect();
    let schemas = document["components"]["schemas"].as_object().expect("schemas").keys();
    for id in names.iter().copied().chain(schemas.map(String::as_str)) {
        assert_eq!(html.matches(&format!("id=\"{id}\"")).count(), 1, "{id}");
    }
    assert!(names.len() > 20, "{names:?}");
    for word in ["<script", "<link", "<img", "<iframe", " src=", "@import", "url("] {
        assert!(!html.contains(word), "the page has {word}");
    }
    let address = format!("http://{}", server.address());
    let examples = html.matches("curl -s").count();
    assert!(examples > 20 && html.matches(&format!("&quot;{address}/")).count() == examples, "{examples}: {address}");
    let policy = reply.header("content-security-policy").expect("a policy");
    let nonce = policy.split_once("style-src 'nonce-").and_then(|(_, rest)| rest.split_once('\'')).expect("a nonce").0;
    assert_eq!(
        policy,
        format!(
            "default-src 'none'; style-src 'nonce-{nonce}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
    );
    assert_eq!(html.matches(&format!("<style nonce=\"{nonce}\">")).count(), 1);
    assert_eq!(
        [reply.header("referrer-policy"), reply.header("cache-control")],
        [Some("no-referrer"), Some("no-store")]
    );
    let again = http.ask("GET", "/docs", "").expect("an answer");
    assert_ne!(again.header("content-security-policy"), Some(policy), "a nonce is used once");
}
