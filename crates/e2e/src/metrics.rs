//! The metrics of a server, as an operator scrapes them.

use crate::{Connection, Server};

/// The value of a sample.
pub fn value(text: &str, sample: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '))?;
    line.split(' ').next()?.parse().ok()
}

/// The metrics, by the server's own token.
pub fn scrape(server: &Server) -> String {
    scrape_with(server, &server.token())
}

/// The metrics, by this token.
pub fn scrape_with(server: &Server, token: &str) -> String {
    let token = format!("Bearer {token}");
    // An unauthenticated connection ends with its answer.
    let connect = || Connection::tcp(server.address()).expect("it listens");
    let refused = connect().send("GET", "/metrics", &[("Host", "localhost")], "").expect("an answer");
    assert_eq!(refused.status, 401);
    let headers = [("Host", "localhost"), ("Authorization", token.as_str())];
    let reply = connect().send("GET", "/metrics", &headers, "").expect("an answer");
    assert!(reply.header("content-type").is_some_and(|t| t.starts_with("application/openmetrics-text")));
    String::from_utf8(reply.body).expect("text")
}
