//! Servers behind one load balancer: every session's id has its node, and no node answers for another one.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use api::{CreateRequest, ErrorCode, EventKind, SessionListQuery, TokenScope};
use client::Client;
use e2e::{Binary, Follower, Home, Mcp, Redis, Server, Session, Start, eventually, lacks, token};
use serde_json::json;

fn start(node: &str) -> Server {
    Server::start_in(Home::make(), Start { env: vec![("PTYD_NODE", node.into())], ..Start::default() })
}

#[tokio::test]
// promise: node-1
async fn a_node_answers_421_for_the_session_of_another_node() {
    let (one, two) = (start("1"), start("2"));
    let there = two.session().await;
    let here = one.session().await;
    assert!(here.id.starts_with("s1-") && there.id.starts_with("s2-"), "{} {}", here.id, there.id);
    for (method, path, body) in [
        ("GET", "", ""),
        ("GET", "/output", ""),
        ("GET", "/screen", ""),
        ("GET", "/commands/c1", ""),
        ("POST", "/execute", r#"{"command":"touch made"}"#),
        ("POST", "/input", r#"{"input":"touch made\n"}"#),
        ("DELETE", "", ""),
    ] {
        // A refusal before the body is read closes the connection.
        let reply = one.connect().ask(method, &format!("/terminals/{}{path}", there.id), body).expect("an answer");
        let said = reply.json();
        assert_eq!((reply.status, &said["code"]), (421, &json!("other_node")), "{method} {path}: {said}");
        assert!(said["detail"].as_str().is_some_and(|detail| detail.contains("on node 2")), "{said}");
        // The same request, with an id of this node that nobody has.
        let nobodys = format!("/terminals/s1-{}{path}", &there.id[3..]);
        assert_eq!(one.connect().ask(method, &nobodys, body).expect("an answer").status, 404, "{method} {path}");
    }
    let mut mcp = Mcp::start(&one).expect("a client");
    let answer = mcp.call("get_terminal_output", json!({ "session_id": there.id })).expect("an answer");
    assert!(answer.to_string().contains("is on node 2"), "{answer}");
    let logs = one.ptyd(&["logs", &there.id]).output().expect("it runs");
    let said = String::from_utf8_lossy(&logs.stderr).into_owned();
    assert!(logs.status.code() == Some(3) && said.contains("is on node 2"), "{said}");
    assert_eq!(there.gives("ls").await, (0, String::new()), "nothing of it was done");
    for address in ["https://ptyd-{node}", "http://ptyd:7893", "http://ptyd-{node}/at"] {
        let refused = one.ptyd(&["serve", "--peers", address]).output().expect("it runs");
        assert!(!refused.status.success(), "{address}");
    }
    let refused = one.ptyd(&["serve", "--node", "65536"]).output().expect("it runs");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("must be a number from 0 to 65535, or auto"), "{said}");
}

/// A node with this directory, whose lease is three seconds. It shares its tokens.
fn node(number: &str, redis: &Redis) -> Server {
    let home = Home::make();
    let key = home.path().join("fleet-key");
    std::fs::write(&key, "0123456789abcdef0123456789abcdef\n").expect("written");
    std::fs::set_permissions(&key, Permissions::from_mode(0o600)).expect("private");
    let env = [
        ("PTYD_NODE", number.into()),
        ("PTYD_REDIS", redis.url().into()),
        ("PTYD_FLEET_KEY", key.into()),
        ("PTYD_TEST_TIME_SCALE", "0.2".into()),
    ];
    Server::start_in(home, Start { env: env.to_vec(), ..Start::default() })
}

/// A Redis, two nodes that use it, and a session on each, which both nodes list.
struct Fleet {
    redis: Redis,
    one: Server,
    two: Server,
    first: Session,
    second: Session,
    both: (Vec<(String, bool)>, bool),
    home: Home,
}

async fn fleet() -> Option<Fleet> {
    if lacks(&["redis-server", "redis-cli"]) {
        return None;
    }
    let home = Home::make();
    let redis = Redis::start(home.path());
    let (one, two) = (node("1", &redis), node("2", &redis));
    let (first, second) = (one.session().await, two.session().await);
    let both = whole(&[&first, &second]);
    for node in [&one, &two] {
        lists(node, &both).await;
    }
    Some(Fleet { redis, one, two, first, second, both, home })
}

/// The ids in a node's list, whether each is unreachable, and whether the list is degraded.
async fn listed(node: &Server) -> (Vec<(String, bool)>, bool) {
    let list = node.client().list_as(&SessionListQuery::default()).await.expect("a list");
    assert_eq!(list.total, list.terminals.len());
    (list.terminals.into_iter().map(|one| (one.id, one.unreachable)).collect(), list.degraded)
}

/// The list that has these sessions, all reachable.
fn whole(sessions: &[&Session]) -> (Vec<(String, bool)>, bool) {
    (sessions.iter().map(|session| (session.id.clone(), false)).collect(), false)
}

async fn lists(node: &Server, expected: &(Vec<(String, bool)>, bool)) {
    eventually(&format!("the list {expected:?}"), async || (listed(node).await == *expected).then_some(())).await;
}

#[tokio::test]
// promise: node-2
async fn every_node_lists_the_sessions_of_all() {
    let Some(Fleet { redis, one, two, first, second, home: _home, .. }) = fleet().await else { return };
    let third = one.session().await;
    for node in [&one, &two] {
        lists(node, &whole(&[&first, &second, &third])).await;
    }
    // Node 1 tells of a command on node 2 once it has begun.
    let begun = second.begin("sleep 600").await;
    let running = async || {
        let list = one.client().list_as(&SessionListQuery::default()).await.expect("a list").terminals;
        let told = list.into_iter().find(|told| told.id == second.id).expect("listed");
        (told.current_command.as_ref() == Some(&begun.id)).then_some(told)
    };
    let told = eventually("node 1 tells the command on node 2", running).await;
    assert_eq!((told.foreground, told.cwd), (api::Foreground::Running, second.look().await.cwd));
    let mut mcp = Mcp::start(&one).expect("a client");
    let answer = mcp.call("list_terminal_sessions", json!({})).expect("an answer").to_string();
    assert!([&first, &second, &third].iter().all(|session| answer.contains(&session.id)), "{answer}");
    let names = SessionListQuery { limit: Some(1), offset: Some(1), ..SessionListQuery::default() };
    let page = one.client().list_as(&names).await.expect("a list");
    assert_eq!((page.total, page.terminals[0].id.as_str()), (3, second.id.as_str()));
    // `kill --all` ends the sessions of its node, and says that others are left.
    let killed = two.ptyd(&["kill", "--all"]).output().expect("ptyd");
    let said = String::from_utf8_lossy(&killed.stderr);
    assert!(killed.status.success() && said.contains("2 sessions of other nodes not ended"), "{said}");
    lists(&one, &whole(&[&first, &third])).await;
    assert_eq!(redis.does(&["HLEN", &format!("ptyd:{{2}}:sessions:{}", first.look().await.owner)]), "0\n");
}

#[tokio::test]
// promise: node-3
async fn without_the_directory_sessions_work_and_lists_say_that_they_are_not_whole() {
    let Some(Fleet { mut redis, one, two, first, second, both, home: _home }) = fleet().await else { return };
    redis.freeze();
    assert_eq!(listed(&one).await, (vec![(first.id.clone(), false)], true));
    assert_eq!(first.gives("echo works").await, (0, "works\n".to_owned()));
    let third = one.session().await;
    third.ends().await;
    redis.thaw();
    lists(&one, &both).await;
    redis.empty();
    for node in [&one, &two] {
        lists(node, &both).await;
    }
    // It evicts keys, or another Redis with older data takes its place.
    let owner = first.look().await.owner;
    redis.does(&["SREM", "ptyd:nodes", "2"]);
    redis.does(&["DEL", &format!("ptyd:{{2}}:sessions:{owner}")]);
    lists(&one, &both).await;
    // A key that cannot be read takes away nothing but its own sessions.
    redis.does(&["SADD", "ptyd:nodes", "7", "no number"]);
    redis.does(&["SET", "ptyd:{7}:owners", "no set"]);
    redis.does(&["HSET", &format!("ptyd:{{2}}:sessions:{owner}"), "s2-aaaaaaaaaa", "no record"]);
    lists(&one, &(both.0.clone(), true)).await;
    redis.empty();
    lists(&one, &both).await;
    redis.kill();
    assert_eq!(second.gives("echo works").await, (0, "works\n".to_owned()));
    assert_eq!(listed(&two).await, (vec![(second.id.clone(), false)], true));
    // A server starts without it, too.
    one.kill9();
    one.again();
    assert_eq!(first.gives("echo works").await, (0, "works\n".to_owned()));
    redis.replace();
    for node in [&one, &two] {
        lists(node, &both).await;
    }
}

#[tokio::test]
// promise: node-4
async fn the_sessions_of_a_lost_node_are_unreachable_and_not_ended_and_two_servers_are_not_one_node() {
    let Some(Fleet { redis, home, one, two, first, second, both }) = fleet().await else { return };
    let url = redis.url();
    let mut another = Command::new(Binary::find().path());
    another
        .args(["serve", "--listen", "127.0.0.1:0", "--node", "2", "--redis", &url])
        .env_clear()
        .envs(home.environment());
    let refused = another.output().expect("it runs");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && said.contains("serves as node 2; stop it, or choose another --node"),
        "{said}"
    );
    two.kill9();
    lists(&one, &(vec![(first.id.clone(), false), (second.id.clone(), true)], false)).await;
    // Its next server is the same node, and has the same sessions.
    two.again();
    lists(&one, &both).await;
    assert_eq!(second.gives("echo works").await, (0, "works\n".to_owned()));
}

#[tokio::test]
// promise: node-5
async fn a_follower_at_any_node_gets_the_events_of_all_nodes_once_and_in_order() {
    let Some(Fleet { redis, one, two, first, second, home: _home, .. }) = fleet().await else { return };
    let both = [first, second];
    let followers = [&one, &two].map(|node| Follower::open(node, &node.token(), None));
    let exits = |round: usize| (0..3).map(move |number| 10 * round + number);
    for round in 0..2 {
        for session in &both {
            for code in exits(round) {
                assert_eq!(session.gives(&format!("(exit {code})")).await.0, i32::try_from(code).expect("small"));
            }
        }
        // The events of the second round wait for the directory.
        if round == 0 {
            redis.freeze();
        }
    }
    redis.thaw();
    for mut follower in followers {
        let mut told = vec![Vec::new(); 2];
        while told.iter().any(|codes: &Vec<_>| codes.len() < 6) {
            let event = follower.next_event();
            assert_ne!(event.event, EventKind::Gap, "{event:?}");
            if event.event == EventKind::CommandCompleted {
                let at = both.iter().position(|session| event.session_id.as_ref() == Some(&session.id));
                told[at.expect("one of them")].push(event.exit_code.expect("it has ended") as usize);
            }
        }
        let expected: Vec<usize> = (0..2).flat_map(exits).collect();
        assert_eq!(told, [expected.clone(), expected]);
    }
}

/// The session that a create with this key made at a node, or the answer of a node that has found it at another one.
async fn create_once(node: &Server, body: &CreateRequest, key: &str) -> Result<String, String> {
    match node.client().create(body, Some(key)).await {
        Ok(made) => Ok(made.id),
        Err(error) if error.code() == Some(ErrorCode::OtherNode) => Err(error.to_string()),
        Err(error) => Err(format!("refused: {error}")),
    }
}

#[tokio::test]
// promise: node-7
async fn a_create_with_one_key_at_two_nodes_makes_one_session() {
    let Some(Fleet { mut redis, one, two, home: _home, .. }) = fleet().await else { return };
    let plain = CreateRequest::default();
    let mut keys = 0;
    for round in 0..3 {
        let key = format!("at-once-{round}");
        let answers = tokio::join!(create_once(&one, &plain, &key), create_once(&two, &plain, &key));
        let ((Ok(made), Err(told)) | (Err(told), Ok(made))) = answers else { panic!("{answers:?}") };
        assert!(told.contains(&format!("{made} is on node")), "{told}");
        keys += 1;
    }
    // A create that fails leaves the key to the next one, at any node.
    let faulty = CreateRequest { cwd: Some("/no/such/folder".into()), ..CreateRequest::default() };
    let failed = create_once(&one, &faulty, "failed").await.expect_err("no such folder");
    assert!(failed.starts_with("refused: "), "{failed}");
    let made = create_once(&two, &plain, "failed").await.expect("a session");
    assert!(made.starts_with("s2-"), "{made}");
    keys += 1;
    // The node has its keys from its store after a restart, and writes them into an emptied directory.
    two.kill9();
    redis.empty();
    two.again();
    let all = async || (redis.does(&["KEYS", "ptyd:create:*"]).lines().count() == keys).then_some(());
    eventually("the directory has every key again", all).await;
    let told = create_once(&one, &plain, "failed").await.expect_err("node 2 has it");
    assert!(told.contains(&format!("{made} is on node 2")), "{told}");
    assert_eq!(create_once(&two, &plain, "failed").await, Ok(made.clone()));
    // Without the directory, a node knows its own keys only.
    redis.kill();
    assert_eq!(create_once(&two, &plain, "failed").await, Ok(made));
    let alone = create_once(&one, &plain, "alone").await.expect("a session");
    assert_eq!(create_once(&one, &plain, "alone").await, Ok(alone));
}

/// Whether this token is valid at a node.
async fn admits(node: &Server, shown: &str) -> bool {
    match Client::tcp(node.address(), shown.to_owned()).list(None).await {
        Ok(_) => true,
        Err(error) if error.code() == Some(ErrorCode::Unauthorized) => false,
        Err(error) => panic!("{error}"),
    }
}

async fn refuses(node: &Server, shown: &str) {
    eventually("the node refuses the token", async || (!admits(node, shown).await).then_some(())).await;
}

#[tokio::test]
// promise: node-6
async fn a_token_that_one_node_makes_or_revokes_is_made_and_revoked_at_all_nodes() {
    let Some(Fleet { mut redis, one, two, home: _home, .. }) = fleet().await else { return };
    // The other node learns of it by the first request with it.
    let ann = token(&one, "ann", TokenScope::Write).await;
    assert!(admits(&two, &ann).await);
    let names: Vec<String> =
        two.client().tokens().await.expect("a list").tokens.into_iter().map(|it| it.name).collect();
    assert_eq!(names, ["ann"]);
    let mut follower = Follower::open(&one, &ann, None);
    two.client().revoke_token("ann").await.expect("revoked");
    assert!(!admits(&two, &ann).await);
    refuses(&one, &ann).await;
    while follower.line().is_some() {}
    // Its name is free at both.
    let again = token(&one, "ann", TokenScope::Write).await;
    assert!(admits(&two, &again).await && !admits(&one, &ann).await);

    // A record without the code of the fleet makes nothing.
    let records = |redis: &Redis| redis.does(&["HVALS", "ptyd:{tokens}:records"]);
    let genuine = records(&redis).lines().find(|line| !line.contains("revoked")).expect("a valid token's").to_owned();
    for (key, record) in [("forged", genuine.replace("write", "admin")), ("copied", genuine)] {
        redis.does(&["HSET", "ptyd:{tokens}:records", key, &record]);
    }
    redis.does(&["SET", "ptyd:{tokens}:version", "forged"]);
    let bob = token(&two, "bob", TokenScope::Read).await;
    assert!(admits(&one, &bob).await);
    let scopes: Vec<(String, TokenScope)> =
        one.client().tokens().await.expect("a list").tokens.into_iter().map(|it| (it.name, it.scope)).collect();
    assert_eq!(scopes, [("ann".to_owned(), TokenScope::Write), ("bob".to_owned(), TokenScope::Read)]);

    // Without the directory, tokens are valid, and revoked at once where somebody revokes them.
    redis.kill();
    assert!(admits(&one, &again).await && admits(&two, &again).await);
    one.client().revoke_token("ann").await.expect("revoked");
    assert!(!admits(&one, &again).await);
    // The directory that answers next is empty, and the node that still has the token is away meanwhile.
    two.kill9();
    redis.replace();
    eventually("node 1 has told the directory", async || records(&redis).contains("revoked").then_some(())).await;
    two.again();
    refuses(&two, &again).await;
    assert!(admits(&one, &bob).await && admits(&two, &bob).await);
}

#[test]
// promise: node-6
fn a_key_of_a_fleet_that_is_short_or_has_no_directory_is_refused_with_the_remedy() {
    let home = Home::make();
    let key = home.path().join("key");
    std::fs::write(&key, "short").expect("written");
    std::fs::set_permissions(&key, Permissions::from_mode(0o600)).expect("private");
    let refused = |options: &[&str]| {
        let mut serve = Command::new(Binary::find().path());
        serve.args(["serve", "--listen", "127.0.0.1:0"]).args(options).env_clear().envs(home.environment());
        let output = serve.output().expect("it runs");
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let key = key.to_str().expect("text");
    let said = refused(&["--redis", "redis://127.0.0.1:1", "--fleet-key", key]);
    assert!(said.contains("at least 32 bytes; make one with `openssl rand -hex 32`"), "{said}");
    assert!(refused(&["--fleet-key", key]).contains("--redis"));
}
