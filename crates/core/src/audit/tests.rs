//! The audit log against a real folder: what is written when, what waits, and what readers find.

use std::fs;
use std::path::Path;

use journal::Masks;
use sha2::{Digest as _, Sha256};

use super::*;
use crate::action::{
    Action, AuditFilter, AuditRecord, Composite, Create, Decision, Execute, Input, InputBytes, MakeToken, Outcome,
    TargetShell, Terminate,
};
use crate::config::AuditConfig;
use crate::ids::SessionId;
use crate::limits::{AUDIT_LINE_BYTES_MAX, AUDIT_TEXT_BYTES_MAX};
use crate::principal::{Door, Origin, Pass, Principal, Scope, TransportKind};
use crate::token_bounds::TokenBounds;

fn config(folder: &Path, audit: AuditMode) -> Config {
    Config {
        audit: AuditConfig { mode: audit, ..AuditConfig::default() },
        ..Config::of(([127, 0, 0, 1], 0).into(), folder.join("ptyd.sock"), folder.to_owned())
    }
}

fn log(folder: &Path) -> AuditLog {
    AuditLog::new(&config(folder, AuditMode::Required))
}

fn ann() -> Principal {
    let origin = Origin {
        door: Door::Mcp,
        transport: Some(TransportKind::Unix),
        from_session: None,
        is_users_process: false,
        client_name: None,
    };
    Principal { origin, ..Principal::named("ann", Scope::Write) }
}

fn session() -> SessionId {
    SessionId::parse("s0-aaaaaaaaaa").expect("an id")
}

fn execute(command: &str) -> Action {
    Action::Execute(Execute {
        session: session(),
        command: command.to_owned(),
        shell: TargetShell::Own,
        allowed_in: None,
        wait: None,
        time_limit: None,
        key: None,
        budget: 100.into(),
    })
}

fn terminate() -> Action {
    Action::Terminate(Terminate { session: session(), force: true, signo: None, grace: None, purges: false })
}

/// Performs an action that has this result, if the log lets it be done.
async fn act(log: &AuditLog, action: Action, done: Result<Outcome, ActionError>) -> Result<Outcome, ActionError> {
    act_as(&ann(), log, action, done).await
}

async fn act_as(
    caller: &Principal,
    log: &AuditLog,
    action: Action,
    done: Result<Outcome, ActionError>,
) -> Result<Outcome, ActionError> {
    let mut entry = log.entry(caller, &action, |_| (Some("work".to_owned()), Vec::new()));
    let result = match entry.begin().await {
        Ok(()) => done,
        Err(error) => Err(error),
    };
    entry.end(&result).await;
    result
}

/// Every line, oldest first.
fn lines(folder: &Path) -> Vec<AuditRecord> {
    let read = ReadAudit { limit: usize::MAX, ..ReadAudit::default() };
    let mut all = page(folder, &read).expect("readable").records;
    all.reverse();
    all
}

fn outline(folder: &Path) -> Vec<String> {
    let text = |line: &AuditRecord, name: &str| {
        line.get(name).map_or(String::new(), |v| format!(" {}", v.as_str().unwrap_or("?")))
    };
    lines(folder).iter().map(|line| ["event", "action", "outcome"].map(|name| text(line, name)).concat()).collect()
}

#[tokio::test]
// promise: audit-1
async fn a_change_has_a_line_before_it_and_one_before_its_answer() {
    let dir = tempfile::tempdir().expect("a directory");
    let log = log(dir.path());
    let (caller, action) = (ann(), execute("make test"));
    let mut entry = log.entry(&caller, &action, |_| (Some("work".to_owned()), Vec::new()));
    entry.begin().await.expect("written");
    let [request] = &lines(dir.path())[..] else { panic!("one line") };
    for (name, value) in [
        ("event", "request"),
        ("principal", "ann"),
        ("scope", "write"),
        ("credential", "user"),
        ("door", "mcp"),
        ("transport", "unix"),
        ("action", "execute"),
        ("session", "s0-aaaaaaaaaa"),
        ("sessionName", "work"),
        ("text", "make test"),
    ] {
        assert_eq!(request[name], value, "{request:?}");
    }
    entry.end(&Ok(Outcome::Typed(3))).await;
    let [_, answer] = &lines(dir.path())[..] else { panic!("two lines") };
    assert_eq!((&answer["id"], &answer["outcome"], answer.get("text")), (&request["id"], &"ok".into(), None));
}

#[tokio::test]
// promise: audit-1
async fn an_answer_without_a_waiting_caller_is_recorded_and_nothing_is_done_before_the_first_line() {
    let dir = tempfile::tempdir().expect("a directory");
    let log = log(dir.path());
    let (caller, action) = (ann(), execute("sleep 100"));
    let mut entry = log.entry(&caller, &action, |_| (None, Vec::new()));
    entry.begin().await.expect("written");
    drop(entry);
    log.flush().await;
    assert_eq!(outline(dir.path()), [" request execute", " answer execute unanswered"]);
}

#[tokio::test]
// promise: audit-1
async fn the_same_reads_of_a_moment_are_one_line_with_their_count() {
    let dir = tempfile::tempdir().expect("a directory");
    let log = log(dir.path());
    for _ in 0..3 {
        act(&log, Action::Screen(session()), Ok(Outcome::Typed(0))).await.expect("read");
    }
    let busy = ActionError::NothingRuns { session: session() };
    act(&log, Action::Screen(session()), Err(busy)).await.expect_err("refused");
    let denied = ActionError::Denied { why: "no".to_owned() };
    act(&log, Action::Tokens, Err(denied)).await.expect_err("refused");
    act(&log, execute("true"), Ok(Outcome::Typed(0))).await.expect("run");
    act(&log, Action::Screen(session()), Ok(Outcome::Typed(0))).await.expect("read");
    let at_once = [" action tokens forbidden", " request execute", " answer execute ok"];
    assert_eq!(outline(dir.path()), at_once, "a refusal and a change are written at once");
    log.flush().await;
    assert_eq!(outline(dir.path())[3..], [" action screen ok", " action screen nothing_runs"]);
    let counts: Vec<_> = lines(dir.path()).iter().map(|line| line.get("count").cloned()).collect();
    assert_eq!(counts, [None, None, None, Some(4.into()), None]);
}

#[tokio::test]
// promise: audit-4
async fn no_line_contains_typed_input_or_a_variables_value() {
    let dir = tempfile::tempdir().expect("a directory");
    let log = log(dir.path());
    let input = |bytes, is_secret| {
        Action::Input(Input {
            session: session(),
            bytes,
            is_secret,
            wait: None,
            key: None,
            budget: 100.into(),
            is_hidden: false,
            without_echo: false,
            meant_for: None,
        })
    };
    let all = [
        input(InputBytes::Raw(b"hunter2".to_vec()), false),
        input(InputBytes::Paste { text: "hunter2".to_owned(), enters: true }, true),
        Action::Type { session: session(), bytes: b"hunter2".to_vec(), key: "hunter2".to_owned() },
        Action::ShowSecretRequest("hunter2".to_owned()),
        Action::Start(Box::new(Create { env: vec![("TOKEN".to_owned(), "hunter2".to_owned())], ..Create::default() })),
    ];
    for action in all {
        act(&log, action, Ok(Outcome::Typed(7))).await.expect("done");
    }
    log.flush().await;
    let text = fs::read_to_string(dir.path().join("audit.jsonl")).expect("there");
    assert!(!text.contains("hunter2"), "{text}");
    let lines = lines(dir.path());
    let bytes: Vec<_> = lines.iter().filter_map(|line| line.get("bytes")?.as_u64()).collect();
    assert_eq!(bytes, [7, 8, 7]);
    assert!(lines.iter().any(|line| line.get("envNames") == Some(&serde_json::json!(["TOKEN"]))));
}

#[tokio::test]
// promise: audit-3
async fn nothing_unrecorded_runs_but_anything_can_be_ended() {
    let dir = tempfile::tempdir().expect("a directory");
    let blocks = dir.path().join("audit.jsonl");
    for (mode, runs) in [(AuditMode::Required, false), (AuditMode::BestEffort, true), (AuditMode::Off, true)] {
        fs::create_dir(&blocks).expect("made");
        let log = AuditLog::new(&config(dir.path(), mode));
        let run = act(&log, execute("true"), Ok(Outcome::Typed(0))).await;
        assert_eq!(run.is_ok(), runs, "{mode:?}");
        if let Err(error) = run {
            let said = error.to_string();
            assert!(said.contains("audit.jsonl") && said.contains("--audit best-effort"), "{said}");
        }
        act(&log, terminate(), Ok(Outcome::Typed(0))).await.expect("ended in any case");
        assert_eq!(log.trouble().is_some(), mode != AuditMode::Off);
        fs::remove_dir(&blocks).expect("removed");
        act(&log, execute("echo again"), Ok(Outcome::Typed(0))).await.expect("room again");
        assert_eq!(log.trouble(), None);
        let there = outline(dir.path());
        let late = [" request terminate", " answer terminate ok", " request execute", " answer execute ok"];
        match mode {
            AuditMode::Required => {
                assert_eq!(there[0], " action execute resources_exhausted");
                assert_eq!(there[1..], late);
            }
            AuditMode::BestEffort => assert_eq!((there.len(), &there[2..]), (6, &late.map(str::to_owned)[..])),
            AuditMode::Off => assert_eq!(there, [""; 0]),
        }
        let _ = fs::remove_file(&blocks);
    }
}

#[tokio::test]
// promise: audit-3
async fn lines_without_room_are_counted_and_the_count_is_a_line() {
    let dir = tempfile::tempdir().expect("a directory");
    let blocks = dir.path().join("audit.jsonl");
    fs::create_dir(&blocks).expect("made");
    let log = AuditLog::new(&config(dir.path(), AuditMode::BestEffort));
    let long = "x".repeat(AUDIT_TEXT_BYTES_MAX);
    for _ in 0..400 {
        act(&log, execute(&long), Ok(Outcome::Typed(0))).await.expect("done");
    }
    fs::remove_dir(&blocks).expect("removed");
    log.flush().await;
    let lines = lines(dir.path());
    let [gap] = &lines.iter().filter_map(|line| line.get("lost")?.as_u64()).collect::<Vec<_>>()[..] else {
        panic!("one line counts them")
    };
    let kept = lines.len() - 1;
    assert_eq!(kept + usize::try_from(*gap).expect("few"), 2 * 400);
    let bytes = fs::metadata(&blocks).expect("there").len();
    assert!((AUDIT_PENDING_BYTES_MAX as u64 / 2..AUDIT_PENDING_BYTES_MAX as u64 + 1_000).contains(&bytes), "{bytes}");
}

/// Texts of a caller who would fill the log, some with characters that take six bytes of JSON each.
fn long_texts() -> [String; 4] {
    ["x", "\u{1}", "\"é", "\u{202e}日"].map(|part| part.repeat(200_000))
}

#[tokio::test]
// promise: audit-6
async fn a_line_is_short_whatever_a_caller_writes_and_has_the_hash_of_a_long_text() {
    for long in long_texts() {
        let dir = tempfile::tempdir().expect("a directory");
        let log = log(dir.path());
        let names = || (0..100).map(|n| (format!("{n}{long}").chars().take(3_000).collect(), long.clone())).collect();
        let create = Create {
            name: Some(long.clone()),
            shell: Some(long.clone()),
            cwd: Some(long.clone().into()),
            profile: Some(long.clone()),
            owner: Some(long.clone()),
            env: names(),
            ..Create::default()
        };
        let bounds = TokenBounds { profiles: vec![long.clone(); 50], policy: Some(long.clone()), ..Default::default() };
        let token = MakeToken { name: long.clone(), scope: Scope::Write, lifetime: None, bounds };
        let all = [
            execute(&long),
            Action::Start(Box::new(create.clone())),
            Action::Composite(Composite::Create(Box::new(create))),
            Action::MakeToken(token),
            Action::FindSession(long.clone()),
            Action::FindNamedAction { session: session(), name: long.clone() },
            Action::RemoveSecret { name: long.clone() },
            Action::RevokeToken { name: long.clone() },
            Action::DecideApproval { id: long.clone(), decision: Decision::Deny },
        ];
        let denied = || ActionError::Denied { why: long.clone() };
        for action in all {
            let caller = Principal { client: Some(long.clone()), ..ann() };
            let mut entry = log.entry(&caller, &action, |_| (Some(long.clone()), Vec::new()));
            entry.begin().await.expect("written");
            entry.end(&Err(denied())).await;
        }
        let refusal = Refusal {
            transport: "tcp",
            peer: None,
            method: long.clone(),
            path: long.clone(),
            code: "unauthorized",
            unrecorded: 0,
        };
        log.refused(&refusal).await;
        log.flush().await;
        let file = fs::read(dir.path().join("audit.jsonl")).expect("there");
        let longest = file.split(|b| *b == b'\n').map(<[u8]>::len).max().expect("lines");
        assert!((AUDIT_TEXT_BYTES_MAX..AUDIT_LINE_BYTES_MAX).contains(&longest), "{longest}");
        let lines = lines(dir.path());
        let request = &lines[0];
        assert!(long.starts_with(request["text"].as_str().expect("a text")));
        assert_eq!(request["textBytes"], long.len());
        let hash: String = Sha256::digest(&long).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(request["textSha256"], hash);
        let start = lines.iter().find(|line| line.contains_key("envNames")).expect("a start");
        let kept = start["envNames"].as_array().expect("names").len() as u64;
        assert_eq!(start["omittedNames"].as_u64().expect("a count") + kept, 100);
    }
}

#[tokio::test]
// promise: audit-6
async fn a_short_text_is_whole_and_a_secret_at_the_cut_is_masked() {
    let dir = tempfile::tempdir().expect("a directory");
    let log = log(dir.path());
    act(&log, execute("make"), Ok(Outcome::Typed(0))).await.expect("done");
    let masks = Masks::new([b"a-secret-of-some-length".to_vec()]);
    let action = execute(&format!("{}a-secret-of-some-length", "x".repeat(AUDIT_TEXT_BYTES_MAX - 8)));
    let caller = ann();
    let mut entry = log.entry(&caller, &action, |_| (None, vec![masks]));
    entry.begin().await.expect("written");
    entry.end(&Ok(Outcome::Typed(0))).await;
    let lines = lines(dir.path());
    assert_eq!((&lines[0]["text"], lines[0].get("textBytes")), (&"make".into(), None));
    let text = lines[2]["text"].as_str().expect("a text");
    assert!(text.ends_with("********") && !text.contains("a-s"), "{text}");
}

#[tokio::test]
// promise: audit-6
async fn a_token_that_has_used_up_its_share_changes_nothing_and_fills_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let (_revokes, revoked) = tokio::sync::watch::channel(false);
    let pass = Some(Pass::new(revoked, None, None, TokenBounds::default()));
    let bot = Principal { pass, ..Principal::named("bot", Scope::Write) };
    for mode in [AuditMode::Required, AuditMode::BestEffort] {
        let audit = AuditConfig { mode, share: 10_000, ..AuditConfig::default() };
        let log = AuditLog::new(&Config { audit, ..config(dir.path(), mode) });
        let size = || fs::metadata(dir.path().join("audit.jsonl")).map_or(0, |file| file.len());
        let (mut runs, long, begin) = (0, "x".repeat(3_000), size());
        let refused = loop {
            match act_as(&bot, &log, execute(&long), Ok(Outcome::Typed(0))).await {
                Ok(_) if runs < 100 => runs += 1,
                answer => break answer.err(),
            }
        };
        if mode == AuditMode::BestEffort {
            assert_eq!((refused.map(|e| e.to_string()), runs), (None, 100));
            continue;
        }
        let said = refused.expect("refused").to_string();
        assert!(said.contains("--audit-share") && runs >= 2, "{said}");
        assert!((10_000..20_000).contains(&(size() - begin)));
        // Refusals, reads of invented sessions, and what always works: counted, by the hundreds in a few lines.
        log.flush().await;
        let begin = size();
        for number in 0..300 {
            act_as(&bot, &log, execute(&long), Ok(Outcome::Typed(0))).await.expect_err("refused");
            let denied = ActionError::Denied { why: "no".to_owned() };
            act_as(&bot, &log, Action::Tokens, Err(denied)).await.expect_err("refused");
            act_as(&bot, &log, terminate(), Ok(Outcome::Typed(0))).await.expect("ends");
            act_as(&bot, &log, Action::Screen(session()), Ok(Outcome::Typed(0))).await.expect("reads");
            let none = ActionError::NoSession { id: String::new(), live: None };
            act_as(&bot, &log, Action::FindSession(number.to_string()), Err(none)).await.expect_err("none");
        }
        log.flush().await;
        assert!(size() - begin < 3_000, "{}", size() - begin);
        let ends = lines(dir.path()).into_iter().rev().find(|line| line["action"] == "terminate").expect("a line");
        assert_eq!((&ends["session"], &ends["count"]), (&session().as_str().into(), &300.into()));
        // Neither others nor the server's user lose anything by it.
        act(&log, execute("true"), Ok(Outcome::Typed(0))).await.expect("done");
    }
}

#[tokio::test]
// promise: audit-6
async fn invented_names_of_a_token_fill_little_of_the_log_and_block_no_change() {
    let dir = tempfile::tempdir().expect("a directory");
    let (_revokes, revoked) = tokio::sync::watch::channel(false);
    let pass = Some(Pass::new(revoked, None, None, TokenBounds::default()));
    let bot = Principal { pass, ..Principal::named("bot", Scope::Write) };
    let audit = AuditConfig { share: 20_000, ..AuditConfig::default() };
    let log = AuditLog::new(&Config { audit, ..config(dir.path(), AuditMode::Required) });
    for number in 0..5_000 {
        let none = ActionError::NoSession { id: String::new(), live: None };
        act_as(&bot, &log, Action::FindSession(number.to_string()), Err(none)).await.expect_err("none");
    }
    log.flush().await;
    let size = fs::metadata(dir.path().join("audit.jsonl")).expect("there").len();
    assert!((10_000..40_000).contains(&size), "{size}");
    let counted: u64 =
        lines(dir.path()).iter().map(|line| line.get("count").map_or(1, |n| n.as_u64().expect("n"))).sum();
    assert_eq!(counted, 5_000);
    act_as(&bot, &log, execute("true"), Ok(Outcome::Typed(0))).await.expect("done");
}

#[tokio::test]
// promise: audit-3
async fn no_request_hangs_if_the_disk_does_not_answer() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut log = log(dir.path());
    log.on.as_mut().expect("on").patience = Duration::from_millis(20);
    // As a write holds it.
    let on = log.on.as_ref().expect("on");
    let _held = on.file.lock().await;
    let refused = act(&log, execute("true"), Ok(Outcome::Typed(0))).await.expect_err("refused").to_string();
    assert!(refused.contains("the disk has accepted no line for 0.02 s"), "{refused}");
    act(&log, terminate(), Ok(Outcome::Typed(0))).await.expect("ended in any case");
}

#[tokio::test]
// promise: audit-4
async fn a_search_finds_what_matches_newest_first_in_all_files() {
    let dir = tempfile::tempdir().expect("a directory");
    let audit = AuditConfig { bytes: 600, files: 50, ..AuditConfig::default() };
    let log = AuditLog::new(&Config { audit, ..config(dir.path(), AuditMode::Required) });
    for number in 0..20 {
        act(&log, execute(&format!("echo {number}")), Ok(Outcome::Typed(0))).await.expect("done");
    }
    assert!(file::files(dir.path()).len() > 5, "more than one file");
    let find = |filter: AuditFilter, limit, offset| {
        let found = page(dir.path(), &ReadAudit { filter, limit, offset }).expect("readable");
        let texts = found.records.iter().map(|line| line.get("text").and_then(|t| t.as_str()).unwrap_or("").to_owned());
        (texts.collect::<Vec<_>>(), found.has_more)
    };
    let text = |text: &str| AuditFilter { text: Some(text.to_owned()), ..AuditFilter::default() };
    assert_eq!(
        find(text("echo 1"), 3, 0),
        (vec!["echo 19".to_owned(), "echo 18".to_owned(), "echo 17".to_owned()], true)
    );
    assert_eq!(find(text("echo 1"), 3, 9), (vec!["echo 10".to_owned(), "echo 1".to_owned()], false));
    let events = AuditFilter { action: Some("request".to_owned()), ..AuditFilter::default() };
    assert_eq!(find(events.clone(), 100, 0).0.len(), 20);
    for (filter, count) in [
        (AuditFilter { session: Some("s0-aaaaaaaaaa".to_owned()), ..events.clone() }, 20),
        (AuditFilter { session: Some("work".to_owned()), ..events.clone() }, 20),
        (AuditFilter { session: Some("other".to_owned()), ..events.clone() }, 0),
        (AuditFilter { principal: Some("ann".to_owned()), ..events.clone() }, 20),
        (AuditFilter { principal: Some("bob".to_owned()), ..events.clone() }, 0),
        (AuditFilter { since: Some(SystemTime::now() - Duration::from_secs(3600)), ..events.clone() }, 20),
        (AuditFilter { since: Some(SystemTime::now() + Duration::from_secs(3600)), ..events.clone() }, 0),
        (AuditFilter { until: Some(SystemTime::now() - Duration::from_secs(3600)), ..events.clone() }, 0),
    ] {
        assert_eq!(find(filter.clone(), 100, 0).0.len(), count, "{filter:?}");
    }
    assert_eq!(find(AuditFilter::default(), 100, 0).0.len(), 40);
}

#[tokio::test]
// promise: audit-4
async fn a_follower_gets_each_line_once_also_across_full_files() {
    let dir = tempfile::tempdir().expect("a directory");
    let audit = AuditConfig { bytes: 600, files: 50, ..AuditConfig::default() };
    let log = AuditLog::new(&Config { audit, ..config(dir.path(), AuditMode::Required) });
    let requests = AuditFilter { action: Some("request".to_owned()), ..AuditFilter::default() };
    let mut before = Follower::from_end(dir.path(), &requests).expect("there is no file yet");
    act(&log, execute("first"), Ok(Outcome::Typed(0))).await.expect("done");
    let mut follower = Follower::from_end(dir.path(), &requests).expect("there");
    let mut seen = Vec::new();
    for number in 0..30 {
        act(&log, execute(&format!("echo {number}")), Ok(Outcome::Typed(0))).await.expect("done");
        // Sometimes several files are full between two looks.
        if number % 7 == 0 {
            seen.extend(follower.read().expect("readable"));
        }
    }
    seen.extend(follower.read().expect("readable"));
    let expected: Vec<String> = (0..30).map(|number| format!("echo {number}")).collect();
    assert_eq!(seen.iter().map(|line| line["text"].as_str().expect("text").to_owned()).collect::<Vec<_>>(), expected);
    assert_eq!(before.read().expect("readable").len(), 31);
    assert_eq!(follower.read().expect("readable").len(), 0);
}
