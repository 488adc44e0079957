//! The audit log of a real server: nothing that was answered is missing, whatever ends the server or fills its disk.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::{CreateRequest, ErrorCode, ExecuteRequest, InputRequest, SessionStatus, TokenRequest, TokenScope};
use client::Client;
use e2e::{Connection, Home, PATIENCE, Random, Server, Session, Start, audit_lines, count, eventually, token};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use serde_json::Value;

fn is(line: &Value, facts: &[(&str, &str)]) -> bool {
    facts.iter().all(|(name, value)| line[*name] == *value)
}

/// The answers to a client before its server was killed: commands, sessions and tokens.
#[derive(Default)]
struct Answered {
    commands: Vec<(String, String)>,
    sessions: Vec<String>,
    ended: Vec<String>,
    tokens: Vec<String>,
}

/// Acts until the server is gone.
async fn acts(client: Arc<Client>, session: String, round: usize, done: Arc<AtomicUsize>) -> Answered {
    let mut answered = Answered::default();
    for number in 0.. {
        let request =
            ExecuteRequest { wait_for_completion: Some(true), command: "true".to_owned(), ..ExecuteRequest::default() };
        let Ok(command) = client.execute(&session, &request, None).await else { break };
        answered.commands.push((session.clone(), command.id));
        let name = format!("t{round}-{number}");
        let token = TokenRequest {
            name: name.clone(),
            scope: TokenScope::Read,
            expires_in: None,
            profiles: Vec::new(),
            confinement: None,
            ..TokenRequest::default()
        };
        if client.make_token(&token).await.is_err() {
            break;
        }
        answered.tokens.push(name.clone());
        if client.revoke_token(&name).await.is_err() {
            break;
        }
        answered.tokens.push(name);
        let shell = CreateRequest { shell: Some("cat".to_owned()), ..CreateRequest::default() };
        let Ok(other) = client.create(&shell, None).await else { break };
        answered.sessions.push(other.id.clone());
        if client.terminate(&other.id, true, None).await.is_err() {
            break;
        }
        answered.ended.push(other.id);
        done.fetch_add(1, Ordering::Relaxed);
    }
    answered
}

#[tokio::test]
// promise: audit-1
async fn a_browsers_log_in_and_its_log_out_have_lines_of_their_own() {
    let server = Server::start();
    let mut connection = Connection::tcp(server.address()).expect("it listens");
    let mut asks = |method: &str, path: &str, fields: &[(&str, &str)], body: &str| {
        let headers = [&[("Host", "localhost")], fields].concat();
        connection.send(method, path, &headers, body).expect("an answer")
    };
    let bearer = format!("Bearer {}", server.token());
    let by_token = [("Authorization", bearer.as_str())];
    assert_eq!(asks("POST", "/tickets", &by_token, r#"{"page":"sessions"}"#).status, 201);
    let logged_in = asks("POST", "/login", &by_token, "");
    let cookie = logged_in.header("set-cookie").and_then(|it| it.split(';').next()).expect("a cookie").to_owned();
    let key = logged_in.json()["key"].as_str().expect("a key").to_owned();
    let by_browser = [("Cookie", cookie.as_str()), ("Ptyd-Login", key.as_str()), ("Sec-Fetch-Site", "same-origin")];
    assert_eq!(asks("DELETE", "/login", &by_browser, "").status, 204);
    assert_eq!(asks("DELETE", "/login", &by_browser, "").status, 401, "it has ended");
    let lines = audit_lines(&server.home().state());
    let answered = lines.iter().filter(|line| is(line, &[("event", "answer"), ("outcome", "ok")]));
    let actions: Vec<_> = answered.filter_map(|line| line["action"].as_str()).collect();
    assert_eq!(actions, ["make log-in link", "log in", "log out"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
// promise: audit-2
async fn a_server_that_is_killed_at_any_moment_has_a_line_for_all_that_was_answered() {
    let mut random = Random::seeded();
    // Small files, so that some are full when the server is killed.
    let env = vec![("PTYD_AUDIT_BYTES", "1MiB".into()), ("PTYD_AUDIT_FILES", "99".into())];
    let server = Server::start_as(Start { env, ..Start::default() });
    let shell = server.session().await;
    let mut all = Answered::default();
    for round in 0..count(6, 100) {
        let done = Arc::new(AtomicUsize::new(0));
        let acting = tokio::spawn(acts(Arc::clone(server.client()), shell.id.clone(), round, Arc::clone(&done)));
        // The moment is one of the server's work, however long a busy machine takes for it.
        let least = 2 + usize::try_from(random.below(3)).expect("small");
        eventually("it acts", async || (done.load(Ordering::Relaxed) >= least).then_some(())).await;
        let time = random.moment(Duration::from_millis(100));
        tokio::task::block_in_place(|| server.kill9_after(time));
        let answered = acting.await.expect("it ends with the server");
        all.commands.extend(answered.commands);
        all.sessions.extend(answered.sessions);
        all.ended.extend(answered.ended);
        all.tokens.extend(answered.tokens);
        if round % 3 == 0 {
            // As if the kernel had written a part of a line only.
            let file = server.home().state().join("audit.jsonl");
            let torn = std::fs::OpenOptions::new().append(true).open(file).expect("there");
            std::io::Write::write_all(&mut &torn, b"{\"time\":\"2026-").expect("written");
        }
        server.again();
        eventually("it can be used again", async || shell.try_run(&quick()).await.ok()).await;
    }
    let lines = audit_lines(&server.home().state());
    let mut answers: HashMap<&str, Vec<&Value>> = HashMap::new();
    for line in lines.iter().filter(|line| line["event"] == "answer") {
        answers.entry(line["action"].as_str().expect("an action")).or_default().push(line);
    }
    let requests: HashMap<&str, &Value> =
        lines.iter().filter(|line| line["event"] == "request").map(|l| (l["id"].as_str().expect("an id"), l)).collect();
    assert!(answers.values().flatten().all(|line| requests.contains_key(line["id"].as_str().expect("an id"))));
    let of = |action: &str| answers.get(action).map(Vec::as_slice).unwrap_or_default();
    for (session, command) in &all.commands {
        let is_it = |line: &&&Value| is(line, &[("session", session), ("command", command), ("outcome", "ok")]);
        let line = of("execute").iter().find(is_it).unwrap_or_else(|| panic!("{command} has no line"));
        assert_eq!(requests[line["id"].as_str().expect("an id")]["text"], "true");
    }
    for (action, sessions) in [("start", &all.sessions), ("terminate", &all.ended)] {
        for session in sessions {
            assert!(of(action).iter().any(|line| is(line, &[("session", session), ("outcome", "ok")])), "{session}");
        }
    }
    for name in &all.tokens {
        assert!(requests.values().any(|line| is(line, &[("token", name)])), "{name}");
    }
    assert!(all.commands.len() > 6, "it has been used: {} commands", all.commands.len());
}

fn quick() -> ExecuteRequest {
    ExecuteRequest { wait_for_completion: Some(true), command: "true".to_owned(), ..ExecuteRequest::default() }
}

#[tokio::test]
// promise: audit-2
async fn a_command_that_ends_while_no_server_runs_has_a_line_of_its_end() {
    let server = Server::start();
    let (alive, ended) = (server.session().await, server.session().await);
    let command = alive.begin("while [ ! -e go ]; do read -t 0.05 <> <(:); done; echo twelve bytes; (exit 7)").await;
    let last = ended.begin("while [ ! -e go ]; do read -t 0.05 <> <(:); done; exit 9").await;
    server.kill9();
    std::fs::write(server.home().file("go"), "").expect("written");
    let sessions = server.home().state().join("sessions");
    eventually("the other session has ended", async || {
        (!sessions.join(&ended.id).join("control").exists()).then_some(())
    })
    .await;
    server.again();
    assert_eq!(alive.end_of(&command).await.exit_code, Some(7));
    let of = |shell: &Session, command: &str| {
        let facts = [("event", "end"), ("session", shell.id.as_str()), ("command", command)];
        audit_lines(&server.home().state()).into_iter().find(|line| is(line, &facts))
    };
    let line = eventually("its line", async || of(&alive, &command.id)).await;
    assert_eq!(
        (&line["exitCode"], &line["outputBytes"], &line["status"]),
        (&7.into(), &14.into(), &"completed".into())
    );
    let line = eventually("its line", async || of(&ended, &last.id)).await;
    assert_eq!(line["status"], "terminated");
}

#[tokio::test]
// promise: audit-3
async fn on_a_full_disk_ptyd_runs_nothing_that_it_cannot_record_and_still_ends_sessions() {
    let can = Command::new("unshare").args(["-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]).status();
    if !can.is_ok_and(|status| status.success()) {
        e2e::not_run("only root can mount a small disk");
        return;
    }
    for (mode, runs) in [("required", false), ("best-effort", true)] {
        let mount = "mkdir -p \"$PTYD_STATE_DIR\" && mount -t tmpfs -o size=6m,mode=700 tmpfs \"$PTYD_STATE_DIR\" && exec \"$@\"";
        let behind = ["unshare", "-m", "sh", "-c", mount, "sh"].map(Into::into).to_vec();
        let server = Server::start_as(Start { behind, env: vec![("PTYD_AUDIT", mode.into())], ..Start::default() });
        let inside = PathBuf::from(format!("/proc/{}/root", server.pid().number()))
            .join(server.home().state().strip_prefix("/").expect("absolute"));
        let (shell, other) = (server.session().await, server.session().await);
        shell.gives("true").await;
        let mut filler = std::fs::File::create(inside.join("filler")).expect("room for it");
        while std::io::Write::write(&mut filler, &[0; 4096]).is_ok_and(|written| written > 0) {}
        // Some lines can be written in what is reserved for them.
        let long = ExecuteRequest {
            wait_for_completion: Some(true),
            command: format!("true {}", "x".repeat(2_000)),
            ..ExecuteRequest::default()
        };
        let refused =
            eventually("a command is refused, or the reserve is used up", async || match shell.try_run(&long).await {
                Err(error) => Some(Some(error)),
                Ok(_) => (runs && server.logged().contains("the audit log cannot be written")).then_some(None),
            })
            .await;
        match refused {
            Some(error) => {
                let said = error.to_string();
                assert!(!runs && error.code() == Some(ErrorCode::ResourcesExhausted), "{said}");
                assert!(said.contains("audit.jsonl") && said.contains("free disk space"), "{said}");
            }
            None => assert!(runs),
        }
        // No session is lost, and each can be read and ended.
        assert_eq!(shell.look().await.status, SessionStatus::Running);
        assert_eq!(other.ends().await.session.status, SessionStatus::Terminated);
        drop(filler);
        std::fs::remove_file(inside.join("filler")).expect("it can go");
        assert_eq!(shell.gives("echo again").await, (0, "again\n".to_owned()));
        let ends = |line: &Value| is(line, &[("action", "terminate"), ("session", &other.id), ("outcome", "ok")]);
        assert!(audit_lines(&inside).iter().any(ends), "its line was kept for later");
    }
}

#[tokio::test]
// promise: audit-4
async fn no_line_of_the_log_has_typed_input_or_a_variables_value() {
    let server = Server::start();
    let env = [("API_KEY".to_owned(), "value-of-the-key".to_owned())];
    let shell = server.session_with(CreateRequest { env: env.into(), ..CreateRequest::default() }).await;
    shell.run_until("read -rs secret; echo \"${#secret}\"", "").await;
    let typed = InputRequest { input: Some("hunter2\n".to_owned()), secret: true, ..InputRequest::default() };
    shell.input(&typed).await;
    shell.types("echo typed-at-the-prompt").await;
    let there = eventually("the lines", async || {
        let lines = audit_lines(&server.home().state());
        (lines.iter().filter(|line| line["event"] == "answer" && line["action"] == "input").count() >= 2)
            .then_some(lines)
    })
    .await;
    let input = there.iter().find(|line| is(line, &[("event", "request"), ("action", "input")])).expect("a line");
    assert_eq!((&input["bytes"], &input["secret"], input.get("text")), (&8.into(), &true.into(), None));
    let text = std::fs::read_to_string(server.home().state().join("audit.jsonl")).expect("there");
    for hidden in ["hunter2", "typed-at-the-prompt", "value-of-the-key"] {
        assert!(!text.contains(hidden), "{hidden}");
    }
    assert!(there.iter().any(|line| line["envNames"] == serde_json::json!(["API_KEY"])));
}

#[tokio::test]
// promise: audit-4
async fn an_admin_reads_the_log_over_rest_and_at_the_command_line_and_nobody_else() {
    let server = Server::start();
    let [ann, admin] =
        [token(&server, "ann", TokenScope::Write).await, token(&server, "root-ish", TokenScope::Admin).await];
    let of_ann = Client::tcp(server.address(), &ann);
    let hers = of_ann.create(&CreateRequest { name: Some("hers".to_owned()), ..CreateRequest::default() }, None).await;
    let hers = hers.expect("created").id;
    let run = |command: &str| ExecuteRequest {
        wait_for_completion: Some(true),
        command: command.to_owned(),
        ..ExecuteRequest::default()
    };
    of_ann.execute(&hers, &run("echo first"), None).await.expect("run");
    of_ann.execute(&hers, &run("echo 'a \u{1b}[2J b'; false"), None).await.expect("run");
    let ask = |token: &str, path: &str| {
        let mut connection = Connection::tcp(server.address()).expect("it listens");
        let bearer = format!("Bearer {token}");
        connection.send("GET", path, &[("Host", "localhost"), ("Authorization", &bearer)], "").expect("an answer")
    };
    assert_eq!(ask(&ann, "/audit").status, 403);
    let page = ask(&admin, "/audit?principal=ann&action=execute&session=hers&limit=1").json();
    assert_eq!((page["lines"][0]["event"].as_str(), page["hasMore"].as_bool()), (Some("request"), Some(true)));
    assert_eq!(page["lines"][0]["text"], "echo 'a \u{1b}[2J b'; false");
    let page = ask(&admin, "/audit?text=echo%20first&since=2020-01-01T00:00:00Z&limit=1&offset=0").json();
    assert_eq!((page["lines"].as_array().map(Vec::len), page["hasMore"].as_bool()), (Some(1), Some(false)));
    for wrong in ["/audit?since=yesterday", "/audit?limit=0", "/audit?nothing=1"] {
        assert_eq!(ask(&admin, wrong).status, 422, "{wrong}");
    }
    let print = |args: &[&str]| {
        let done = server.ptyd(&[&["audit"], args].concat()).output().expect("ptyd");
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).expect("text")
    };
    let people = print(&["--session", &hers, "--action", "request", "--text", "echo"]);
    let told: Vec<&str> = people.lines().collect();
    assert_eq!(told.len(), 2, "{people}");
    assert!(
        told[0].contains("  ann  rest  execute  ") && told[0].ends_with("text=\"echo first\"  clientName=ptyd"),
        "{people}"
    );
    assert!(told[1].ends_with(r#"text="echo 'a \e[2J b'; false"  clientName=ptyd"#), "{people}");
    let json = print(&["--json", "--principal", "ann", "--action", "end", "--since", "1h"]);
    let codes: Vec<Value> =
        json.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")["exitCode"].clone()).collect();
    assert_eq!(codes, [0, 1]);
    assert_eq!(print(&["-n", "1", "--action", "start"]).lines().count(), 1);

    let mut following = server
        .ptyd(&["audit", "--follow", "-n", "0", "--action", "request", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("ptyd");
    let out = following.stdout.take().expect("piped");
    let is_over = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&is_over);
    let reading = tokio::task::spawn_blocking(move || {
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line).expect("readable");
        over.store(true, Ordering::Release);
        line
    });
    // It prints what comes after it looked first, whenever that is.
    eventually("a new line is printed", async || {
        of_ann.execute(&hers, &run("echo followed"), None).await.expect("run");
        is_over.load(Ordering::Acquire).then_some(())
    })
    .await;
    let line: Value = serde_json::from_str(&reading.await.expect("read")).expect("JSON");
    assert_eq!(line["text"], "echo followed");
    following.kill().expect("ours to kill");
    following.wait().expect("ours to wait for");
    // The log is there without a server, too.
    server.stop();
    assert!(print(&["--action", "terminate"]).is_empty());
    assert!(print(&["--text", "echo first"]).contains("echo first"));
    server.again();
}

/// The JSON of a message of RFC 5424 from ptyd.
fn json_of(message: &str) -> Option<Value> {
    let (header, json) = message.split_once(" - {")?;
    let fields: Vec<_> = header.split(' ').collect();
    let [priority, _time, _host, "ptyd", _process, _event] = fields[..] else { panic!("{message}") };
    assert!(["<108>1", "<110>1"].contains(&priority), "{message}");
    serde_json::from_str(&format!("{{{json}")).ok()
}

/// A syslog server for one connection, which is returned; all its messages are collected.
fn receive(listener: &TcpListener, into: &Arc<Mutex<Vec<Value>>>) -> (TcpStream, std::thread::JoinHandle<()>) {
    let connection = listener.accept().expect("a connection").0;
    let (mut stream, into) = (BufReader::new(connection.try_clone().expect("a descriptor")), Arc::clone(into));
    let collect = move || {
        let mut count = Vec::new();
        while stream.read_until(b' ', &mut count).expect("bytes") > 0 {
            let bytes = std::str::from_utf8(&count).expect("digits").trim_end().parse().expect("a count");
            let mut message = vec![0; bytes];
            stream.read_exact(&mut message).expect("a whole message");
            let message = String::from_utf8(message).expect("UTF-8");
            into.lock().expect("no panic").push(json_of(&message).expect("JSON"));
            count.clear();
        }
    };
    (connection, std::thread::spawn(collect))
}

#[tokio::test]
// promise: audit-5
async fn a_syslog_server_gets_every_line_even_those_written_while_it_or_ptyd_was_down() {
    // A socket that does not listen: nobody else gets the port, and ptyd does not reach it before the first restart.
    let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None);
    let socket = socket.expect("a socket");
    rustix::net::sockopt::set_socket_reuseaddr(&socket, true).expect("a socket");
    rustix::net::bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let listener = TcpListener::from(socket);
    let address = listener.local_addr().expect("bound");
    let received = Arc::new(Mutex::new(Vec::new()));
    let env = vec![("PTYD_AUDIT_SYSLOG", format!("tcp:{address}").into())];
    let server = Server::start_as(Start { env, ..Start::default() });
    let shell = server.session().await;
    server.kill9();
    server.again();
    rustix::net::listen(&listener, 1).expect("bound");
    let has_all = async || {
        let (received, lines) = (received.lock().expect("no panic"), audit_lines(&server.home().state()));
        lines.iter().all(|line| received.contains(line)).then_some(())
    };
    let (connection, first) = receive(&listener, &received);
    eventually("every line has come", has_all).await;
    // The syslog server goes, and takes what is still sent before ptyd notices.
    drop(listener);
    connection.shutdown(Shutdown::Write).expect("connected");
    shell.run("echo while it is down").await;
    first.join().expect("the connection ends");
    server.kill9();
    server.again();
    shell.run("echo after a restart").await;
    let listener = TcpListener::bind(address).expect("the same port");
    let (_connection, _second) = receive(&listener, &received);
    eventually("every line has come", has_all).await;
    assert!(received.lock().expect("no panic").iter().any(|line| line["text"] == "echo after a restart"));
}

#[tokio::test]
// promise: audit-5
async fn datagrams_of_udp_and_of_a_unix_socket_have_the_same_messages() {
    let home = Home::make();
    let (udp, path) = (UdpSocket::bind("127.0.0.1:0").expect("a port"), home.path().join("log"));
    let unix = UnixDatagram::bind(&path).expect("a socket");
    udp.set_read_timeout(Some(PATIENCE)).expect("a socket");
    unix.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let to_udp = format!("udp:{}", udp.local_addr().expect("bound"));
    for (to, is_udp) in [(to_udp, true), (format!("unix:{}", path.display()), false)] {
        let server = Server::start_as(Start { env: vec![("PTYD_AUDIT_SYSLOG", to.into())], ..Start::default() });
        server.session().await;
        let mut message = vec![0; 65_536];
        loop {
            let count = if is_udp { udp.recv(&mut message) } else { unix.recv(&mut message) }.expect("a datagram");
            let message = std::str::from_utf8(&message[..count]).expect("UTF-8");
            if json_of(message).expect("JSON")["action"] == "start" {
                break;
            }
        }
    }
}
