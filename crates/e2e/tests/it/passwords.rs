//! Passwords: input without echo is in no record and in no read, and a secret is typed only while the terminal does not
//! echo.

use api::{ErrorCode, Foreground, InputRequest, OutputQuery, OutputView};
use e2e::{Server, Session, Socket, SocketMessage, eventually, join_all};

/// A shell, and what asks for sixteen characters that are not shown.
const ASKS: [(&str, &str); 11] = [
    ("bash", "read -rs x; echo got ${#x}"),
    ("bash", "read -rsn 16 x; echo got ${#x}"),
    ("bash", "read -res x; echo got ${#x}"),
    ("bash", "f() { read -rs -d '' -n 16 x; }; f; echo got ${#x}"),
    ("bash", "python3 -c 'import getpass; print(\"got\", len(getpass.getpass()))'"),
    ("bash", "stty -echo; head -n 1 | wc -c | sed 's/^ */got /;s/17/16/'; stty echo"),
    ("zsh", "read -rs x; echo got ${#x}"),
    ("zsh", "read -rsk 16 x; echo got ${#x}"),
    ("fish", "read -s x; echo got (string length -- $x)"),
    ("dash", "stty -echo; read -r x; stty echo; echo got ${#x}"),
    ("mksh", "stty -echo; read -r x; stty echo; echo got ${#x}"),
];

async fn session(server: &Server, shell: &str) -> Session {
    let request = api::CreateRequest { shell: Some(shell.to_owned()), ..Default::default() };
    server.session_with(request).await
}

/// The files of the state directory that hold these words.
fn files_with(server: &Server, words: &str) -> Vec<std::path::PathBuf> {
    let mut folders = vec![server.home().state()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            match std::fs::read(&path) {
                Ok(bytes) if bytes.windows(words.len()).any(|window| window == words.as_bytes()) => found.push(path),
                Ok(_) => {}
                Err(_) => folders.push(path),
            }
        }
    }
    found
}

/// Whether it is in anything that can be read of the session, or on the disk.
async fn is_kept_nowhere(server: &Server, shell: &Session, secret: &str, what: &str) {
    let reads = ["output", "output?view=raw", "commands", "recording", "screen", "search?q=S3CRET"];
    for read in reads {
        let path = format!("/terminals/{}/{read}", shell.id);
        let reply = server.connect().ask("GET", &path, "").expect("an answer");
        assert_eq!(reply.status, 200, "{read}");
        assert!(!String::from_utf8_lossy(&reply.body).contains(secret), "{what}: in {read}");
    }
    let raw = OutputQuery { view: Some(OutputView::Stream), ..OutputQuery::default() };
    assert!(!format!("{:?}", shell.output(&raw).await).contains(secret), "{what}: in the stream");
    assert_eq!(files_with(server, secret), Vec::<std::path::PathBuf>::new(), "{what}: on the disk");
    assert!(!server.logged().contains(secret), "{what}: in the log");
}

async fn asks_for_it(shell: &Session, what: &str) {
    let asks = async || {
        let told = shell.look().await.foreground;
        matches!(told, Foreground::PasswordWanted | Foreground::InputWanted).then_some(())
    };
    eventually(&format!("{what} asks"), asks).await;
}

#[tokio::test]
// promise: send-6
async fn input_without_echo_is_in_no_record_and_no_reading() {
    let server = Server::start();
    for by_person in [true, false] {
        join_all(ASKS.iter().enumerate().map(async |(number, (name, asks))| {
            let server = &server;
            let what = format!("{asks} in {name}, {}", if by_person { "typed" } else { "run" });
            let shell = session(server, name).await;
            let secret = format!("S3CRET{}{number:09}", u8::from(by_person));
            // A first command, so that it is the prompt at which the line is typed.
            shell.run("true").await;
            if by_person {
                shell.sends(format!("{asks}\r").as_bytes()).await;
            } else {
                shell.begin(asks).await;
            }
            asks_for_it(&shell, &what).await;
            let ends = if asks.contains("16 x") { "" } else { "\r" };
            if number % 2 == 0 {
                shell.sends(format!("{secret}{ends}").as_bytes()).await;
            } else {
                let mut person = Socket::visit(server, &shell.id, "").await;
                let keys = format!("{secret}{ends}").into_bytes();
                for (seq, key) in (1..).zip(&keys) {
                    person.types(seq, &[*key]).await;
                }
                let last = keys.len() as u64;
                person.until(|heard| matches!(heard, SocketMessage::Typed(seq) if *seq == last).then_some(())).await;
            }
            let says = async || {
                let shown = String::from_utf8_lossy(&shell.journal().await).into_owned();
                shown.contains("got 16").then_some(())
            };
            eventually(&format!("{what} gets all"), says).await;
            is_kept_nowhere(server, &shell, &secret, &what).await;
            // The shell records typed lines again at its prompt; the program has printed its last line and may not have ended.
            eventually("its prompt", async || (shell.look().await.foreground == Foreground::Idle).then_some(())).await;
            shell.gives("true").await;
        }))
        .await;
    }
}

fn secret(text: &str) -> InputRequest {
    InputRequest { input: Some(text.to_owned()), secret: true, ..InputRequest::default() }
}

#[tokio::test]
// promise: send-7
async fn a_secret_is_refused_where_the_terminal_echoes_input() {
    let server = Server::start();
    for name in ["bash", "zsh", "fish", "dash", "mksh"] {
        let shell = session(&server, name).await;
        shell.run("true").await;
        assert_eq!(shell.input_refusal(&secret("S3CRET-at-prompt\r")).await, Some(ErrorCode::WouldEcho), "{name}");
        // Nothing of it was typed, so the prompt is as it was.
        let reads = shell.run("sh -c 'read -r x; echo got $x'").await;
        assert_eq!(shell.input_refusal(&secret("S3CRET-at-read\n")).await, Some(ErrorCode::WouldEcho), "{name}");
        shell.types("shown").await;
        let done = shell.end_of(&reads).await;
        assert_eq!((done.exit_code, done.output.as_deref()), (Some(0), Some("shown\ngot shown\n")), "{name}");
        is_kept_nowhere(&server, &shell, "S3CRET", name).await;
    }
}

#[tokio::test]
// promise: send-7
async fn a_secret_that_comes_before_the_echo_is_off_is_typed_unseen_or_refused() {
    let server = Server::start();
    join_all(["bash", "dash", "mksh", "zsh"].map(async |name| {
        let shell = session(&server, name).await;
        for millis in (0..200).step_by(20) {
            let what = format!("{name}, {millis} ms before the echo is off");
            let waits = if millis == 0 { String::new() } else { format!("sleep 0.{millis:03}; ") };
            let asks = format!("printf 'which%s' '?'; {waits}stty -echo; read -r x; stty echo; echo got ${{#x}}");
            let asks = shell.run_until(&asks, r"which\?").await;
            // How long this takes on a busy machine decides which it is, and both are right.
            match server.client().input(&shell.id, &secret("S3CRET\n"), None).await {
                Ok(_) => {}
                Err(refused) => {
                    assert_eq!(refused.code(), Some(ErrorCode::WouldEcho), "{what}: {refused}");
                    asks_for_it(&shell, &what).await;
                    shell.input(&secret("S3CRET\n")).await;
                }
            }
            let done = shell.end_of(&asks).await;
            // Nothing of a refused one was typed, so it is read once and whole.
            assert!(done.output.as_deref().is_some_and(|o| o.contains("got 6")), "{what}: {done:?}");
        }
        is_kept_nowhere(&server, &shell, "S3CRET", name).await;
    }))
    .await;
}

#[tokio::test]
async fn a_viewer_sees_others_input_only_as_far_as_the_terminal_echoes_it() {
    let server = Server::start();
    let shell = server.session().await;
    let asks = shell.run("read -rs x; echo got ${#x}").await;
    let mut viewer = Socket::visit(&server, &shell.id, "").await;
    shell.input(&secret("S3CRET\n")).await;
    let mut heard = Vec::new();
    while !String::from_utf8_lossy(&heard).contains("got 6") {
        match viewer.next().await {
            SocketMessage::Data(_, to, bytes) => {
                heard.extend(bytes);
                viewer.parsed(to).await;
            }
            // Drawn when the viewer has come, which may be after the end.
            SocketMessage::Snapshot(_, bytes) => heard.extend(bytes),
            other => heard.extend(format!("{other:?}").into_bytes()),
        }
    }
    assert!(!String::from_utf8_lossy(&heard).contains("S3CRET"));
    assert_eq!(shell.end_of(&asks).await.exit_code, Some(0));
}
