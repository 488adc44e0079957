//! Named secrets: given to sessions by profiles, and shown by no door, however they are printed and wherever they are cut.

use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Output, Stdio};

use api::{CreateRequest, ErrorCode, ExecuteRequest, InputRequest, OutputQuery, OutputView, TokenRequest, TokenScope};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use client::{Client, ClientError};
use e2e::{
    Connection, Follower, Home, Mcp, Random, Server, Session, Socket, SocketMessage, Start, configure, count,
    eventually, not_run,
};
use serde_json::{Value, json};

/// It stands in URLs otherwise than as it is, and in both alphabets of base64 otherwise.
const VALUE: &str = "Zk9>hunter2??correct~horse/st\u{e4}ple";
const OTHER: &str = "another-value-0123456789";

const PROFILES: &str = r#"
[profiles.deploy]
secrets = ["DEPLOY_KEY"]
[profiles.agent]
secrets = ["DEPLOY_KEY"]
secret_files = ["DEPLOY_KEY"]
[profiles.files]
secret_files = ["DEPLOY_KEY"]
[profiles.missing]
secrets = ["NOBODY_SET_IT"]
"#;

fn server() -> Server {
    let home = Home::make();
    configure(&home, PROFILES);
    Server::start_in(home, Start::default())
}

#[tokio::test]
// promise: secret-1
async fn a_failed_start_up_command_shows_no_secret() {
    let home = Home::make();
    configure(
        &home,
        &format!("{PROFILES}[profiles.fails]\nsecrets = ['DEPLOY_KEY']\nstartup = ['echo {OTHER}; false']\n"),
    );
    let server = Server::start_in(home, Start::default());
    assert!(set(&server, "DEPLOY_KEY", OTHER).status.success());
    let created = server.client().create(&by("fails"), None).await.expect("started");
    let [failed] = &created.startup_failed[..] else { panic!("{created:?}") };
    assert_eq!(failed.command, format!("echo {}; false", stars(OTHER)));
    let seen = server.client().session(&created.id).await.expect("it lives").startup_failed;
    assert_eq!(seen, created.startup_failed);
}

fn set(server: &Server, name: &str, value: &str) -> Output {
    let mut ptyd = server.ptyd(&["secret", "set", name]);
    let mut child = ptyd.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    // A name that is refused is refused before the value is read.
    match child.stdin.take().expect("a pipe").write_all(value.as_bytes()) {
        Err(e) if e.kind() == ErrorKind::BrokenPipe => {}
        written => written.expect("taken"),
    }
    child.wait_with_output().expect("it ends")
}

fn by(profile: &str) -> CreateRequest {
    CreateRequest { profile: Some(profile.to_owned()), ..CreateRequest::default() }
}

async fn session(server: &Server, profile: &str) -> Session {
    server.session_with(by(profile)).await
}

fn stars(text: &str) -> String {
    "*".repeat(text.len())
}

fn percent(value: &str) -> String {
    let escaped = |byte: u8| match byte {
        byte if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    value.bytes().map(escaped).collect()
}

/// The forms of a value, without the first three bytes, which a door may show.
fn forms(value: &str) -> Vec<Vec<u8>> {
    let mut forms = vec![value.as_bytes()[3..].to_vec(), percent(value).as_bytes()[3..].to_vec()];
    for engine in [STANDARD, URL_SAFE] {
        for before in 0..3 {
            let encoded = engine.encode([&vec![0; before], value.as_bytes()].concat());
            forms.push(encoded.as_bytes()[7..encoded.len() - 4].to_vec());
        }
    }
    forms
}

fn shows(bytes: &[u8], value: &str) -> bool {
    // A part of eight bytes is enough.
    let parts: Vec<_> =
        forms(value).into_iter().flat_map(|form| form.windows(8).map(<[u8]>::to_vec).collect::<Vec<_>>()).collect();
    parts.iter().any(|part| memchr::memmem::find(bytes, part).is_some())
}

fn checked(door: &str, bytes: &[u8]) {
    assert!(!shows(bytes, VALUE), "{door} shows it: {}", String::from_utf8_lossy(bytes));
}

/// Looks behind every door that reads, live or ended. Returns how many have masks.
fn look(server: &Server, id: &str) -> usize {
    let mut masked = 0;
    let mut connection = server.connect();
    let mut get = |path: String| {
        let reply = connection.ask("GET", &path, "").expect("an answer");
        checked(&path, &reply.body);
        let data = reply.json()["dataBase64"].as_str().map(|data| STANDARD.decode(data).expect("base64"));
        if let Some(data) = &data {
            checked(&path, data);
        }
        masked += usize::from(memchr::memmem::find(data.as_deref().unwrap_or(&reply.body), b"********").is_some());
        reply.json()
    };
    let of = |rest: &str| format!("/terminals/{id}{rest}");
    for rest in [
        "",
        "/environment",
        "/commands",
        "/processes",
        "/signals",
        "/search?q=.",
        "/search?q=correct",
        "/recording",
        "/recording?version=3",
    ] {
        get(of(rest));
    }
    for view in ["text", "raw", "stream"] {
        get(of(&format!("/output?view={view}")));
    }
    for format in ["json", "text", "ansi"] {
        get(of(&format!("/screen?format={format}")));
    }
    for command in get(of("/commands?limit=1000"))["commands"].as_array().into_iter().flatten() {
        get(of(&format!("/commands/{}", command["id"].as_str().expect("an id"))));
    }
    for path in ["/terminals", "/terminals?status=all", "/audit?limit=1000", "/approvals", "/secrets", "/metrics"] {
        get(path.to_owned());
    }
    check_files(&server.home().state());
    checked("the log", server.logged().as_bytes());
    masked
}

/// Looks into every file of the server's, but into those that have values: docs/threat-model.md names them.
fn check_files(folder: &Path) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let has_values =
            ["journal", "events", "spec", "secrets", "secrets.json"].iter().any(|name| path.ends_with(name));
        if path.is_dir() && !has_values {
            check_files(&path);
        } else if path.is_file() && !has_values {
            checked(&path.display().to_string(), &std::fs::read(&path).unwrap_or_default());
        }
    }
}

fn raw(server: &Server, id: &str, file: &str) -> Vec<u8> {
    std::fs::read(server.home().state().join("sessions").join(id).join(file)).expect("there")
}

#[tokio::test]
// promise: secret-1
async fn a_secret_of_a_profile_is_a_variable_and_no_answer_shows_its_value() {
    let server = server();
    assert!(set(&server, "DEPLOY_KEY", &format!("{VALUE}\n")).status.success());
    let shell = session(&server, "deploy").await;
    assert_eq!(
        shell.gives("echo \"[$DEPLOY_KEY]\"; LC_ALL=C; echo ${#DEPLOY_KEY}").await,
        (0, format!("[{}]\n34\n", stars(VALUE)))
    );
    // Every offset stays what it is.
    let shown = shell.journal().await;
    // The prompt may come meanwhile.
    let mut journal = raw(&server, &shell.id, "journal");
    journal.truncate(shown.len());
    let at = memchr::memmem::find(&journal, VALUE.as_bytes()).expect("the journal has it as it came");
    let behind = at + VALUE.len();
    assert_eq!((&shown[..at], &shown[behind..]), (&journal[..at], &journal[behind..]));
    assert_eq!(shown[at..behind], *stars(VALUE).as_bytes());
    let mut follower = Follower::open(&server, &server.token(), None);
    // In all forms, in a command, in input, in a title, in the arguments of a program.
    let text = format!("printf '%s\\n' '{VALUE}' {} {}", percent(VALUE), STANDARD.encode(format!("user:{VALUE}")));
    let done = shell.run(&text).await;
    let output = done.output.clone().unwrap_or_default();
    assert!(done.command.contains(&stars(VALUE)) && output.starts_with(&stars(VALUE)), "{done:?}");
    checked("the answer", serde_json::to_string(&done).expect("JSON").as_bytes());
    loop {
        let line = follower.line().expect("the stream goes on");
        checked("an event", line.as_bytes());
        if line.contains("\"command.completed\"") {
            break;
        }
    }
    shell.run("printf '%s' \"$DEPLOY_KEY\" | base64; printf '\\e]0;%s\\a' \"$DEPLOY_KEY\"").await;
    shell.begin("sleep 1000 & exec 7>&1; bash -c 'sleep 1000; :' \"$DEPLOY_KEY\"").await;
    shell.sends(format!("{VALUE}\r").as_bytes()).await;
    assert!(look(&server, &shell.id) >= 10, "masks are where the text is");
    let processes = server.connect().ask("GET", &format!("/terminals/{}/processes", shell.id), "").expect("an answer");
    assert!(String::from_utf8_lossy(&processes.body).contains(&stars(VALUE)), "a command line has it");
    shell.signal("INT").await;
    // The next server knows what is masked, live and ended, also when it was changed and removed.
    server.kill9();
    server.again();
    assert_eq!(shell.gives("echo \"$DEPLOY_KEY\"").await, (0, format!("{}\n", stars(VALUE))));
    assert!(set(&server, "DEPLOY_KEY", OTHER).status.success());
    look(&server, &shell.id);
    assert!(server.ptyd(&["secret", "rm", "DEPLOY_KEY"]).status().expect("it runs").success());
    shell.ends().await;
    look(&server, &shell.id);
    server.kill9();
    server.again();
    assert!(look(&server, &shell.id) >= 8, "an ended one, too");
    let bearer = format!("Bearer {}", server.token());
    let headers = [("Host", "localhost"), ("Authorization", bearer.as_str())];
    let mut connection = Connection::tcp(server.address()).expect("it listens");
    let events = connection.send("GET", &format!("/terminals/{}/output/stream?view=text", shell.id), &headers, "");
    let events = events.expect("a stream that ends").body;
    checked("output as events", &events);
    assert!(memchr::memmem::find(&events, stars(VALUE).as_bytes()).is_some());
}

#[tokio::test]
// promise: secret-1
async fn a_session_without_secrets_shows_what_it_printed() {
    let server = server();
    assert!(set(&server, "DEPLOY_KEY", VALUE).status.success());
    let shell = server.session().await;
    let (code, output) = shell.gives(&format!("echo '{VALUE}'; echo \"[$DEPLOY_KEY]\"")).await;
    assert_eq!((code, output), (0, format!("{VALUE}\n[]\n")));
    // The audit log is one for all sessions.
    checked("audit.jsonl", &std::fs::read(server.home().state().join("audit.jsonl")).expect("there"));
}

/// Prints the secret in two writes each, cut at random, with something between the lines.
fn in_pieces(times: usize) -> String {
    format!(
        "for ((i = 0; i < {times}; i++)); do ((n = RANDOM % ${{#DEPLOY_KEY}})); printf 'x%s' \"${{DEPLOY_KEY:0:n}}\"; \
         printf '%s.%d\\n' \"${{DEPLOY_KEY:n}}\" $i; done"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
// promise: secret-1
async fn a_secret_that_is_printed_in_pieces_is_shown_by_no_door_while_it_is_printed() {
    let times = count(400, 10_000);
    let mut random = Random::seeded();
    let server = server();
    assert!(set(&server, "DEPLOY_KEY", VALUE).status.success());
    let shell = session(&server, "deploy").await;
    let mut socket = Socket::visit(&server, &shell.id, "?since=o:0&behind=all").await;
    let command = shell.begin(&in_pieces(times)).await;
    let (mut pages, mut viewed, mut next, mut seen) = (Vec::new(), Vec::new(), 0, 0);
    loop {
        let is_over = shell.look().await.current_command.is_none();
        let limit = Some(1 + random.below(200) * if is_over { 10_000 } else { 1 });
        let since = Some(format!("o:{next}"));
        let query = OutputQuery { since, max_bytes: limit, view: Some(OutputView::Raw), ..OutputQuery::default() };
        let page = shell.output(&query).await;
        pages.extend(STANDARD.decode(page.data_base64.expect("raw")).expect("base64"));
        next = page.next_offset;
        if random.below(4) == 0 {
            checked("the screen", shell.screen().await.join("\n").as_bytes());
            let text = shell.output(&OutputQuery { max_lines: Some(5), ..OutputQuery::default() }).await;
            checked("text", text.text.unwrap_or_default().as_bytes());
        }
        if let SocketMessage::Data(_, to, bytes) = socket.next().await {
            viewed.extend(bytes);
            seen = to;
            socket.parsed(seen).await;
        }
        if is_over && next >= page.end_offset {
            break;
        }
    }
    let end = shell.end_of(&command).await.end_offset.expect("it ended");
    while seen < end {
        if let SocketMessage::Data(_, to, bytes) = socket.next().await {
            viewed.extend(bytes);
            seen = to;
            socket.parsed(seen).await;
        }
    }
    checked("pages", &pages);
    checked("a viewer", &viewed);
    // Each was there, and what is around it still is.
    let journal = raw(&server, &shell.id, "journal");
    assert_eq!(memchr::memmem::find_iter(&journal, VALUE).count(), times);
    for number in 0..times {
        let behind = format!(".{number}\r\n");
        assert!(memchr::memmem::find(&pages, behind.as_bytes()).is_some(), "{number} in pages");
        assert!(memchr::memmem::find(&viewed, behind.as_bytes()).is_some(), "{number} at the viewer");
    }
    look(&server, &shell.id);
}

#[tokio::test]
// promise: secret-1
async fn a_model_is_shown_no_secret() {
    let server = server();
    assert!(set(&server, "DEPLOY_KEY", VALUE).status.success());
    let mut mcp = Mcp::start(&server).expect("a client");
    let said = |value: Value| {
        let text = value.to_string();
        checked("a tool", text.as_bytes());
        text
    };
    let first = said(mcp.call("terminal", json!({ "command": "echo \"[$DEPLOY_KEY]\"" })).expect("an answer"));
    assert!(first.contains(&stars(VALUE)), "{first}");
    said(mcp.call("terminal", json!({ "command": format!("echo '{VALUE}'") })).expect("an answer"));
    said(mcp.call("terminal", json!({ "command": in_pieces(50) })).expect("an answer"));
    // A reset gives the same secrets.
    said(mcp.call("terminal", json!({ "command": "true", "reset": true })).expect("an answer"));
    let again = said(
        mcp.call("terminal", json!({ "command": "echo \"again [$DEPLOY_KEY][$(cat $DEPLOY_KEY_FILE)]\"" }))
            .expect("an answer"),
    );
    assert!(again.contains(&format!("again [{0}][{0}]", stars(VALUE))), "{again}");
    let started = mcp.call("start_terminal_session", json!({ "profile": "deploy" })).expect("an answer");
    assert!(!said(started).contains("isError\":true"));
}

#[tokio::test]
// promise: secret-3
async fn a_secret_can_be_a_file_that_is_removed_with_the_session() {
    let server = server();
    let key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\n-----END KEY-----\n";
    assert!(set(&server, "DEPLOY_KEY", &format!("{key}\n")).status.success());
    let shell = session(&server, "files").await;
    let (code, output) =
        shell.gives("cat \"$DEPLOY_KEY_FILE\"; stat -c %a \"$DEPLOY_KEY_FILE\"; echo \"[$DEPLOY_KEY]\"").await;
    let lines: Vec<_> = key.lines().map(stars).collect();
    assert_eq!((code, output), (0, format!("{}\n600\n[]\n", lines.join("\n"))));
    let file = server.home().state().join("sessions").join(&shell.id).join("secrets/DEPLOY_KEY");
    assert_eq!(std::fs::read_to_string(&file).expect("there"), key);
    assert_eq!(std::fs::metadata(file.parent().expect("a folder")).expect("there").permissions().mode() & 0o777, 0o700);
    shell.ends().await;
    assert!(!file.exists(), "it goes with the session");
    look(&server, &shell.id);
    // So it does with one that ends while no server runs.
    let shell = session(&server, "files").await;
    let folder = server.home().state().join("sessions").join(&shell.id);
    shell.begin("until [ -e go ]; do sleep 0.01; done; exit").await;
    server.kill9();
    assert!(folder.join("secrets/DEPLOY_KEY").exists());
    std::fs::write(server.home().file("go"), "").expect("written");
    eventually("the end of its holder", async || (!folder.join("control").exists()).then_some(())).await;
    server.again();
    shell.look().await;
    eventually("the end of its file", async || (!folder.join("secrets").exists()).then_some(())).await;
}

#[tokio::test]
// promise: secret-3
async fn a_confined_session_reads_its_own_secret_file_and_no_other_secret() {
    let server = server();
    assert!(set(&server, "DEPLOY_KEY", VALUE).status.success());
    let cwd = Some(server.home().file("").display().to_string());
    let confinement = Some(api::ConfinementTier::Process);
    let shell = match server.client().create(&CreateRequest { confinement, cwd, ..by("files") }, None).await {
        Ok(made) => Session::new(std::sync::Arc::clone(server.client()), made.id),
        Err(error) => return not_run(error),
    };
    assert_eq!(shell.gives("cat \"$DEPLOY_KEY_FILE\"; echo").await, (0, format!("{}\n", stars(VALUE))));
    let all = server.home().state().join("secrets.json");
    assert_ne!(shell.gives(&format!("cat '{}' 2>/dev/null", all.display())).await.0, 0);
}

#[tokio::test]
// promise: secret-3
async fn a_session_whose_secret_is_not_set_does_not_start() {
    let server = server();
    let refused = server.client().create(&by("missing"), None).await;
    match refused {
        Err(ClientError::Refused(problem)) => {
            assert_eq!(problem.code, ErrorCode::StartFailed);
            assert!(
                problem.detail.contains("NOBODY_SET_IT") && problem.detail.contains("ptyd secret set"),
                "{problem:?}"
            );
        }
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
// promise: secret-2
async fn secrets_are_set_by_an_admin_and_shown_to_nobody() {
    let server = server();
    let short = set(&server, "DEPLOY_KEY", "1234567\n");
    let words = String::from_utf8_lossy(&short.stderr).into_owned();
    assert!(!short.status.success() && words.contains("at least 8") && !words.contains("1234567"), "{words}");
    assert!(set(&server, "DEPLOY_KEY", VALUE).status.success());
    let file = server.home().state().join("secrets.json");
    assert_eq!(std::fs::metadata(&file).expect("there").permissions().mode() & 0o777, 0o600);
    let listed = server.ptyd(&["secret", "ls"]).output().expect("it runs");
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.contains("DEPLOY_KEY") && listed.contains("agent, deploy, files"), "{listed}");
    checked("the list", listed.as_bytes());
    // A token that is not an admin's neither reads nor writes them; a program in a session does neither, whoever's it is.
    let request = TokenRequest {
        name: "agent".to_owned(),
        scope: TokenScope::Write,
        expires_in: None,
        profiles: Vec::new(),
        confinement: None,
        ..TokenRequest::default()
    };
    let token = format!("Bearer {}", server.client().make_token(&request).await.expect("made").token);
    let body = json!({ "value": "a value of its own" }).to_string();
    for (method, path, body) in
        [("GET", "/secrets", ""), ("PUT", "/secrets/X", body.as_str()), ("DELETE", "/secrets/DEPLOY_KEY", "")]
    {
        let mut connection = Connection::tcp(server.address()).expect("it listens");
        let headers = [("Host", "localhost"), ("Authorization", token.as_str())];
        assert_eq!(connection.send(method, path, &headers, body).expect("an answer").status, 403, "{method} {path}");
    }
    let shell = server.session().await;
    let socket = server.home().socket();
    let ptyd = format!("{:?} --socket {socket:?}", server.ptyd(&[]).get_program());
    for command in ["secret ls", "secret rm DEPLOY_KEY", "secret set X <<<'a value of its own'"] {
        let (code, output) = shell.gives(&format!("{ptyd} {command} 2>&1")).await;
        assert!(code != 0 && output.contains("no program in a session"), "{command}: {output}");
    }
    let text = std::fs::read_to_string(server.home().state().join("audit.jsonl")).expect("there");
    assert!(text.lines().any(|line| line.contains("set secret") && line.contains("DEPLOY_KEY")), "{text}");
    checked("the audit log", text.as_bytes());
    let asked =
        ExecuteRequest { wait_for_completion: Some(true), command: "true".to_owned(), ..ExecuteRequest::default() };
    assert!(shell.try_run(&asked).await.is_ok());
}

#[tokio::test]
// promise: secret-1
async fn a_command_with_a_secret_runs_in_a_nested_shell_as_any_other() {
    let server = server();
    assert!(set(&server, "DEPLOY_KEY", VALUE).status.success());
    let shell = session(&server, "deploy").await;
    shell.run("bash --norc").await;
    let command = format!("echo '{VALUE}' | cut -c 1-2; (exit 5)");
    let done = shell
        .run_as(ExecuteRequest { wait_for_completion: Some(true), command, inside: true, ..ExecuteRequest::default() })
        .await;
    assert_eq!((done.exit_code, done.output.as_deref()), (Some(5), Some("Zk\n")));
    assert!(done.command.contains(&stars(VALUE)));
    look(&server, &shell.id);
}

#[tokio::test]
// promise: secret-1
async fn the_echo_of_typed_input_with_a_secret_is_masked() {
    let server = server();
    assert!(set(&server, "DEPLOY_KEY", VALUE).status.success());
    let shell = session(&server, "deploy").await;
    shell.begin("cat").await;
    let request = InputRequest {
        input: Some(format!("say {VALUE} twice\n")),
        wait_for: Some("twice".to_owned()),
        ..InputRequest::default()
    };
    let answer = shell.input(&request).await;
    checked("the answer", serde_json::to_string(&answer).expect("JSON").as_bytes());
    look(&server, &shell.id);
}

#[tokio::test]
// promise: secret-1
async fn a_policys_words_about_a_command_with_a_secret_are_masked() {
    let home = Home::make();
    configure(
        &home,
        "[profiles.strict]\nshell = \"bash\"\nrc = \"clean\"\nsecrets = [\"DEPLOY_KEY\"]\npolicy = \"strict\"\n",
    );
    let policy = "[policies.strict]\n[[policies.strict.rules]]\nname = \"look\"\nverdict = \"allow\"\nprogram = \"ls\"\nmatch = [\"ls\"]\n";
    std::fs::write(home.path().join("config/ptyd/policy.toml"), policy).expect("written");
    let server = Server::start_in(home, Start::default());
    assert!(set(&server, "DEPLOY_KEY", VALUE).status.success());
    let shell = session(&server, "strict").await;
    let command = format!("'{VALUE}' --{VALUE}");
    let refused =
        shell.try_run(&ExecuteRequest { wait_for_completion: Some(true), command, ..ExecuteRequest::default() }).await;
    match refused {
        Err(ClientError::Refused(problem)) => {
            assert_eq!(problem.code, ErrorCode::ApprovalNeeded);
            checked("the refusal", format!("{problem:?}").as_bytes());
        }
        other => panic!("not refused: {other:?}"),
    }
    let typed = InputRequest { input: Some(VALUE.to_owned()), ..InputRequest::default() };
    assert_eq!(shell.input_refusal(&typed).await, Some(ErrorCode::ApprovalNeeded));
    let waiting = server.client().approvals().await.expect("a list").approvals;
    let commands: Vec<_> = waiting.iter().filter_map(|one| one.command.as_deref().or(one.input.as_deref())).collect();
    let stars = stars(VALUE);
    assert_eq!(commands, [format!("'{stars}' --{stars}"), stars]);
    look(&server, &shell.id);
}

#[tokio::test]
// promise: secret-1
async fn a_secret_with_colours_or_cursor_movements_within_it_is_masked_where_it_is_text() {
    let server = server();
    assert!(set(&server, "DEPLOY_KEY", VALUE).status.success());
    let shell = session(&server, "deploy").await;
    let shapes = [
        r#"printf '%s\033[31m%s\033[0m\n' "${DEPLOY_KEY:0:9}" "${DEPLOY_KEY:9}""#,
        r#"printf '%sx\b%s\n' "${DEPLOY_KEY:0:9}" "${DEPLOY_KEY:9}""#,
        r#"printf 'x%s\r%s\n' "${DEPLOY_KEY:1}" "${DEPLOY_KEY:0:1}""#,
        r#"printf '\033[10C%s\r\033[1C%s\n' "${DEPLOY_KEY:9}" "${DEPLOY_KEY:0:9}""#,
    ];
    for command in shapes {
        let done = shell.run(command).await;
        let output = done.output.expect("text");
        assert!(output.contains(&stars(VALUE)), "{command}: {output:?}");
        let found = server
            .client()
            .search(&shell.id, &api::SearchQuery { q: "[*]{8}".to_owned(), ..Default::default() })
            .await
            .expect("a search");
        let hits = format!("{found:?}");
        let rows = shell.screen().await.join("\n");
        for (place, text) in [("answer", &output), ("search", &hits), ("screen", &rows)] {
            assert!(!text.contains(VALUE), "{command}: {place}: {text}");
        }
    }
}

#[tokio::test]
// promise: secret-1
async fn the_reason_of_a_refusal_is_masked_before_it_is_cut() {
    let home = Home::make();
    configure(
        &home,
        "[profiles.strict]\nshell = \"bash\"\nrc = \"clean\"\nsecrets = [\"DEPLOY_KEY\"]\npolicy = \"strict\"\n",
    );
    let policy = "[policies.strict]\ndefault = \"deny\"\nunproven = \"deny\"\n";
    std::fs::write(home.path().join("config/ptyd/policy.toml"), policy).expect("written");
    let server = Server::start_in(home, Start::default());
    assert!(set(&server, "DEPLOY_KEY", VALUE).status.success());
    let shell = session(&server, "strict").await;
    let beginning: String = VALUE.chars().take(5).collect();
    for pad in (0..200).step_by(3) {
        let pad = "x".repeat(pad);
        for command in [format!("echo '{pad}{VALUE}'"), format!("echo a >{pad}{VALUE}"), format!("'{pad}' '{VALUE}' &")]
        {
            let refused = shell.try_run(&ExecuteRequest { command, ..ExecuteRequest::default() }).await;
            let Err(ClientError::Refused(problem)) = refused else { panic!("not refused: {refused:?}") };
            let said = format!("{problem:?}");
            assert!(problem.code == ErrorCode::PolicyDenied && !said.contains(&beginning), "{said}");
            assert!(said.len() < 1_000, "{said}");
        }
    }
    let audit = std::fs::read_to_string(server.home().state().join("audit.jsonl")).expect("there");
    assert!(!audit.contains(&beginning) && !server.logged().contains(&beginning));
}

#[tokio::test]
// promise: secret-1
async fn a_session_whose_spec_is_damaged_has_the_masks_of_all_secrets() {
    let server = server();
    assert!(set(&server, "DEPLOY_KEY", VALUE).status.success());
    let shell = session(&server, "deploy").await;
    shell.run("echo \"$DEPLOY_KEY\"").await;
    shell.ends().await;
    server.kill9();
    let spec = server.home().state().join("sessions").join(&shell.id).join("spec");
    let mut bytes = std::fs::read(&spec).expect("there");
    bytes[20] ^= 1;
    std::fs::write(&spec, bytes).expect("written");
    server.again();
    assert!(look(&server, &shell.id) >= 5);
    assert!(shell.look().await.trouble.is_some_and(|trouble| trouble.contains("damaged: spec")));
}

#[tokio::test]
// promise: secret-2
async fn a_name_that_no_secret_has_and_the_servers_own_token_over_tcp_are_refused_with_the_reason() {
    let home = Home::make();
    configure(&home, "[profiles.harmful]\nsecrets = ['LD_PRELOAD']\n");
    let server = Server::start_in(home, Start::default());
    for (name, shown) in
        [("", "\"\" is not a name"), ("a-b", "\"a-b\" is not a name"), ("PTYD_X", "cannot begin with PTYD_")]
    {
        let done = set(&server, name, VALUE);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!((done.status.code(), said.lines().count(), said.contains(shown)), (Some(2), 1, true), "{said}");
    }
    // Programs find and load code by it, so it is given as no variable.
    assert!(set(&server, "LD_PRELOAD", VALUE).status.success());
    let refused = server.client().create(&by("harmful"), None).await.expect_err("refused");
    assert_eq!(refused.code(), Some(ErrorCode::StartFailed));
    assert!(refused.to_string().contains("LD_PRELOAD decides which code"), "{refused}");
    // A program in a session can read that token.
    let tcp = Client::tcp(server.address(), server.token());
    for refused in [tcp.set_secret("OTHER", OTHER.to_owned()).await.err(), tcp.secrets().await.err()] {
        assert_eq!(refused.expect("refused").code(), Some(ErrorCode::Forbidden));
    }
}

#[tokio::test]
// promise: secret-4
async fn the_sessions_of_a_token_get_its_secrets_masked_and_the_next_server_knows() {
    let server = server();
    assert!(set(&server, "DEPLOY_KEY", VALUE).status.success() && set(&server, "OTHER", OTHER).status.success());
    let of = |name: &str, secrets: &[&str]| {
        let (name, secrets) = (name.to_owned(), secrets.iter().map(|one| (*one).to_owned()).collect());
        TokenRequest { name, secrets, ..TokenRequest::default() }
    };
    let owner = server.client();
    for wrong in [&["key"][..], &["OTHER=LD_PRELOAD"], &["OTHER=A", "DEPLOY_KEY=A"]] {
        let refused = owner.make_token(&of("bot", wrong)).await.err().expect("refused");
        assert_eq!(refused.code(), Some(ErrorCode::InvalidField), "{wrong:?}");
    }
    let new = server
        .ptyd(&["token", "new", "bot", "--unconfined", "--secret", "OTHER=API_KEY", "--secret", "OTHER"])
        .output();
    let new = String::from_utf8(new.expect("it runs").stdout).expect("a token");
    // Each server has an address of its own.
    let bot = || std::sync::Arc::new(Client::tcp(server.address(), new.trim().to_owned()));
    let listed = owner.tokens().await.expect("listed").tokens;
    assert_eq!(listed[0].secrets, ["OTHER=API_KEY", "OTHER"]);
    let audit = std::fs::read_to_string(server.home().state().join("audit.jsonl")).expect("there");
    assert!(audit.lines().any(|line| line.contains("\"tokenSecrets\":[\"OTHER\",\"OTHER\"]")), "{audit}");
    // With the profile's, and without a profile.
    for (profile, given) in [(Some("deploy"), VALUE), (None, "none")] {
        let request = CreateRequest { profile: profile.map(str::to_owned), ..CreateRequest::default() };
        let id = bot().create(&request, None).await.expect("started").id;
        let session = Session::new(bot(), id.clone());
        let shown = format!(
            "{}\n{}\n{}\n",
            stars(OTHER),
            stars(OTHER),
            if given == "none" { given.to_owned() } else { stars(VALUE) }
        );
        let command = "echo $API_KEY; echo $OTHER; echo ${DEPLOY_KEY:-none}";
        assert_eq!(session.gives(command).await, (0, shown.clone()));
        assert_eq!(session.gives("echo ${#API_KEY}").await, (0, format!("{}\n", OTHER.len())));
        server.kill9();
        server.again();
        let session = Session::new(bot(), id.clone());
        assert_eq!(session.gives(command).await, (0, shown));
        assert!(!shows(
            &server.connect().ask("GET", &format!("/terminals/{id}/environment"), "").expect("an answer").body,
            OTHER
        ));
    }
    // The owner's own sessions have none of them.
    assert_eq!(server.session().await.gives("echo ${API_KEY:-none}").await, (0, "none\n".to_owned()));
    assert!(server.ptyd(&["secret", "rm", "OTHER"]).status().expect("it runs").success());
    let refused = bot().create(&CreateRequest::default(), None).await.expect_err("not set");
    assert!(refused.to_string().contains("its token gives it the secret \"OTHER\", which is not set"), "{refused}");
}
