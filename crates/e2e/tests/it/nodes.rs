//! Servers behind one load balancer: every session's id has its node, and no node answers for another one.

use e2e::{Home, Mcp, Server, Start};
use serde_json::json;

fn start(node: &str) -> Server {
    Server::start_in(Home::make(), Start { env: vec![("PTYD_NODE", node.into())], ..Start::default() })
}

#[tokio::test]
async fn a_node_answers_421_for_the_session_of_another_node() {
    let (one, two) = (start("1"), start("2"));
    let there = two.session().await;
    let here = one.session().await;
    assert!(here.id.starts_with("s1-") && there.id.starts_with("s2-"), "{} {}", here.id, there.id);
    let mut connection = one.connect();
    for (method, path, body) in [
        ("GET", "", ""),
        ("GET", "/output", ""),
        ("GET", "/screen", ""),
        ("GET", "/commands/c1", ""),
        ("POST", "/execute", r#"{"command":"touch made"}"#),
        ("POST", "/input", r#"{"input":"touch made\n"}"#),
        ("DELETE", "", ""),
    ] {
        let reply = connection.ask(method, &format!("/terminals/{}{path}", there.id), body).expect("an answer");
        let said = reply.json();
        assert_eq!((reply.status, &said["code"]), (421, &json!("other_node")), "{method} {path}: {said}");
        assert!(said["detail"].as_str().is_some_and(|detail| detail.contains("on node 2")), "{said}");
        // The same request, with an id of this node that nobody has.
        let nobodys = format!("/terminals/s1-{}{path}", &there.id[3..]);
        assert_eq!(connection.ask(method, &nobodys, body).expect("an answer").status, 404, "{method} {path}");
    }
    let mut mcp = Mcp::start(&one).expect("a client");
    let answer = mcp.call("get_terminal_output", json!({ "session_id": there.id })).expect("an answer");
    assert!(answer.to_string().contains("is on node 2"), "{answer}");
    let logs = one.ptyd(&["logs", &there.id]).output().expect("it runs");
    let said = String::from_utf8_lossy(&logs.stderr).into_owned();
    assert!(logs.status.code() == Some(3) && said.contains("is on node 2"), "{said}");
    assert_eq!(there.gives("ls").await, (0, String::new()), "nothing of it was done");
    let refused = one.ptyd(&["serve", "--node", "65536"]).output().expect("it runs");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("must be a number from 0 to 65535, or auto"), "{said}");
}
