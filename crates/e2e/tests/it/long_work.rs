//! Long work of one principal takes nothing from others: what is judged, read, masked, looked at and recorded for it. Afterwards the server
//! is small again.

use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::net::TcpStream;
use std::process::Stdio;

use api::{CreateRequest, ExecuteRequest};
use e2e::attack::{Attack, Rig, head, sent, status};
use e2e::policy::by;
use e2e::{Home, Server, Start, configure, count, eventually, footprint};
use serde_json::json;

/// The secrets of the profile `secretive`.
const SECRETS: usize = 8;
/// The length of each: the longest that there may be.
const SECRET_BYTES: usize = 8_192;
/// The times of its idle size that a server may have after a busy moment.
const GROWN: u64 = 2;

const POLICY: &str = r#"
[policies.strict]
[[policies.strict.rules]]
name = "look"
verdict = "allow"
program = "echo"
[[policies.strict.rules]]
name = "no-tree"
verdict = "deny"
program = ["rm", "*a*b*c*d*"]
with = ["-*r*f*x*y*z*"]
"#;

/// A rig whose server has a profile with a policy, and one with secrets.
async fn rig() -> Rig {
    let home = Home::make();
    let names = (0..SECRETS).map(|n| format!("\"S{n}\"")).collect::<Vec<_>>().join(", ");
    let profiles = "[profiles.judged]\npolicy = \"strict\"\nrc = \"clean\"\n[profiles.secretive]\nsecrets = ";
    configure(&home, &format!("{profiles}[{names}]\n"));
    std::fs::write(home.path().join("config/ptyd/policy.toml"), POLICY).expect("written");
    Rig::on(Server::start_in(home, Start::default())).await
}

/// Sends this request and reads its whole answer.
fn answered(rig: &Rig, method: &str, path: &str, body: &str) -> impl Fn() + Send + Sync + use<> {
    let (address, ask) = (rig.server.address(), [head(method, path, &rig.write, body.len()), body.to_owned()].concat());
    let ask = ask.replacen("\r\n", "\r\nConnection: close\r\n", 1);
    // A stream of output has no end.
    let ask = if method == "GET" { ask.replace(", text/event-stream", "") } else { ask };
    move || {
        let mut stream = sent(address, &[ask.as_bytes()]);
        let _ = stream.read_to_end(&mut Vec::new());
    }
}

fn executes(rig: &Rig, session: &str, command: &str) -> impl Fn() + Send + Sync + use<> {
    answered(
        rig,
        "POST",
        &format!("/terminals/{session}/execute"),
        &json!({ "command": command, "timeout": 60 }).to_string(),
    )
}

/// A session of this profile that has printed so many bytes.
async fn printed(rig: &Rig, request: CreateRequest, bytes: usize) -> String {
    let id = rig.attacker().create(&request, None).await.expect("a session").id;
    let print = ExecuteRequest {
        command: format!("yes 'one two three four five six seven eight nine ten' | head -c {bytes}"),
        timeout: Some(60.0),
        max_chars: Some(0),
        ..ExecuteRequest::default()
    };
    rig.attacker().execute(&id, &print, None).await.expect("printed");
    id
}

#[tokio::test(flavor = "multi_thread")]
// promise: limit-6
async fn commands_that_take_long_to_judge_or_to_record_stall_nobody_else() {
    let mut rig = rig().await;
    let judged = rig.attacker().create(&by("judged"), None).await.expect("a session").id;
    for shape in ["rm;".repeat(21_000), "sudo ".repeat(13_000), "$(".repeat(24_000), "abcabcabcd".repeat(6_500)] {
        let what = format!("commands of {} bytes that begin with {:?}", shape.len(), &shape[..6]);
        rig.bears(&what, |rig| Attack::of(count(3, 8), executes(rig, &judged, &shape)));
    }
    let plain = rig.attacker().create(&CreateRequest::default(), None).await.expect("a session").id;
    let long = format!(": {}", "x".repeat(1_000_000));
    rig.bears("commands of 1 MB", |rig| Attack::of(count(2, 4), executes(rig, &plain, &long)));
}

#[tokio::test(flavor = "multi_thread")]
// promise: limit-6
async fn large_and_masked_reads_delay_no_other() {
    let mut rig = rig().await;
    for n in 0..SECRETS {
        let mut ptyd = rig.server.ptyd(&["secret", "set", &format!("S{n}")]);
        let mut child = ptyd.stdin(Stdio::piped()).spawn().expect("it runs");
        let mut value = String::new();
        // No two of them begin in the same way.
        (0..SECRET_BYTES / 8).for_each(|at| write!(value, "{n}{at:07}").expect("text"));
        child.stdin.take().expect("a pipe").write_all(value.as_bytes()).expect("taken");
        assert!(child.wait().expect("it ends").success());
    }
    let bytes = count(6 << 20, 60 << 20);
    let plain = printed(&rig, CreateRequest::default(), bytes).await;
    let masked = printed(&rig, by("secretive"), bytes).await;
    for (what, session, query) in [
        ("raw reads", &plain, "view=raw&maxBytes=4194304"),
        ("masked raw reads", &masked, "view=raw&maxBytes=4194304"),
        ("small masked raw reads", &masked, "view=raw&maxBytes=4096"),
        ("text", &plain, "view=text&maxBytes=4194304&maxChars=1000000"),
        ("masked text", &masked, "view=text&maxBytes=4194304&maxChars=30000"),
    ] {
        let path = format!("/terminals/{session}/output?{query}&since=o:1000");
        rig.bears(what, |rig| Attack::of(count(3, 6), answered(rig, "GET", &path, "")));
    }
    let path = format!("/terminals/{plain}/recording");
    rig.bears("recordings", |rig| Attack::of(count(2, 6), answered(rig, "GET", &path, "")));
    // Answers that nobody takes hold a bounded room, and only that of their principal.
    let path = format!("/terminals/{plain}/output?view=raw&maxBytes=4194304");
    rig.bears("answers that are not taken", |rig| -> Vec<TcpStream> {
        let ask = head("GET", &path, &rig.write, 0).replace(", text/event-stream", "");
        (0..count(24, 100)).map(|_| sent(rig.server.address(), &[ask.as_bytes()])).collect()
    });
}

#[tokio::test(flavor = "multi_thread")]
// promise: limit-6
async fn waits_for_ports_and_files_of_one_principal_stall_nobody_else() {
    let mut rig = rig().await;
    let mut sessions = Vec::new();
    for _ in 0..count(8, 20) {
        sessions.push(rig.attacker().create(&CreateRequest::default(), None).await.expect("a session").id);
    }
    let body = json!({ "until": ["listening:1", "file:/none", "listening"], "timeout": 60 }).to_string();
    let wait = |rig: &Rig| -> Vec<TcpStream> {
        let ask = |id: &String| {
            let head = head("POST", &format!("/terminals/{id}/wait"), &rig.write, body.len());
            sent(rig.server.address(), &[head.as_bytes(), body.as_bytes()])
        };
        (0..120).flat_map(|_| sessions.iter().map(ask)).collect()
    };
    rig.bears("waits for ports and files", wait);
    // One of them still ends when its file is there.
    let held = wait(&rig);
    let file = rig.server.home().path().join("there");
    let body = json!({ "until": [format!("file:{}", file.display())], "timeout": 60 }).to_string();
    let ask = head("POST", &format!("/terminals/{}/wait", sessions[0]), &rig.write, body.len());
    let mut waiting = sent(rig.server.address(), &[ask.as_bytes(), body.as_bytes()]);
    std::fs::write(&file, "").expect("written");
    assert_eq!(status(&mut waiting), Some(200));
    drop(held);
}

#[tokio::test(flavor = "multi_thread")]
// promise: limit-6
async fn a_server_that_was_busy_is_small_again() {
    let mut rig = rig().await;
    rig.trues();
    let idle = footprint(rig.server.pid()).resident_bytes;
    let judged = rig.attacker().create(&by("judged"), None).await.expect("a session").id;
    drop(Attack::of(4, executes(&rig, &judged, &"rm;".repeat(21_000))));
    let plain = printed(&rig, CreateRequest::default(), 6 << 20).await;
    drop(Attack::of(4, answered(&rig, "GET", &format!("/terminals/{plain}/output?view=raw&maxBytes=4194304"), "")));
    let long =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "\u{1}".repeat(1_000_000) } });
    drop(Attack::of(4, answered(&rig, "POST", "/mcp", &long.to_string())));
    let commands = executes(&rig, &plain, &format!(": {}", "x".repeat(1_000_000)));
    (0..count(40, 100)).for_each(|_| commands());
    println!("{} MiB idle, {} MiB at most", idle >> 20, footprint(rig.server.pid()).peak_bytes >> 20);
    eventually("the server is small again", async || {
        let now = footprint(rig.server.pid()).resident_bytes;
        (now <= idle * GROWN).then_some(())
    })
    .await;
}
