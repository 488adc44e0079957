//! Commands are data: every byte of a command and of an input arrives, or the answer says how many did.

use api::{CreateRequest, ErrorCode, Foreground, InputRequest};
use e2e::{Server, has_builtins};

#[tokio::test]
async fn bash_loads_its_builtins_however_it_is_started() {
    let server = Server::start();
    for login in [false, true] {
        let request = CreateRequest { shell: Some("bash".to_owned()), login, ..CreateRequest::default() };
        assert!(has_builtins(&server.session_with(request).await).await, "login: {login}");
    }
}

#[tokio::test]
// promise: send-1
async fn every_byte_of_a_command_arrives() {
    let server = Server::start();
    let shell = server.session().await;
    let line = "0123456789abcde\n";
    let texts = [
        "\tleading\ttab\n".to_owned(),
        "!! !$ !echo a!b ^a^b^\n".to_owned(),
        "\u{12}\u{3}\u{4}\u{15}\u{1a}\u{1b}[A\u{7f}\n".to_owned(),
        "dos\r\nline\r\n".to_owned(),
        "a trailing backslash\\\n".to_owned(),
        "äöü € 𝄞 👩‍👩‍👧 \u{301}\n".to_owned(),
        "x".repeat(6_000) + "\n",
        line.repeat(200 * 1024 / line.len()),
        line.repeat((1 << 20) / line.len() - 8),
    ];
    for text in texts {
        let shown: String = text.chars().take(30).collect();
        let (code, output) = shell.gives(&format!("cat > arrived <<'END'\n{text}END")).await;
        assert_eq!((code, output.as_str()), (0, ""), "{shown:?}");
        let arrived = std::fs::read_to_string(server.home().file("arrived")).expect("written");
        assert!(arrived == text, "{shown:?}: {} of {} bytes arrived", arrived.len(), text.len());
    }
    assert_eq!(shell.gives(r#"echo "a!b""#).await, (0, "a!b\n".to_owned()));
    assert_eq!(shell.gives("echo one\\").await.0, 0);
}

#[tokio::test]
async fn a_command_whose_name_is_a_keys_name_is_a_command() {
    let server = Server::start();
    let shell = server.session().await;
    shell.gives("for n in up tab end enter; do eval \"$n() { echo ran $n; }\"; done").await;
    for name in ["up", "tab", "end", "enter"] {
        assert_eq!(shell.gives(name).await, (0, format!("ran {name}\n")));
    }
}

#[tokio::test]
async fn a_long_line_of_input_arrives_whole_or_gets_an_error() {
    let server = Server::start();
    let shell = server.session().await;
    let cat = shell.run("cat > typed").await;
    assert_eq!(cat.foreground, Some(Foreground::InputWanted));
    let text = "y".repeat(5_000);
    let request = InputRequest { input: Some(text.clone()), ..InputRequest::default() };
    shell.input(&request).await;
    shell.sends(b"\x04\x04").await;
    shell.end_of(&cat).await;
    assert_eq!(std::fs::read_to_string(server.home().file("typed")).expect("made"), text);
    assert_eq!(shell.gives("echo next").await, (0, "next\n".to_owned()));
}

#[tokio::test]
// promise: send-4
async fn input_that_nobody_reads_is_bounded_and_counted() {
    let server = Server::start();
    let shell = server.session().await;
    let sleep = shell.begin("stty raw -echo; sleep 60; stty sane").await;
    let request = InputRequest { input: Some("z".repeat(1_000_000)), ..InputRequest::default() };
    let refused = server.client().input(&shell.id, &request, None).await.expect_err("nobody reads it");
    assert_eq!(refused.code(), Some(ErrorCode::InputStalled), "{refused}");
    assert!(refused.to_string().contains("1000000"), "it says how much of it: {refused}");
    server.client().terminate(&shell.id, true, None).await.expect("it ends all the same");
    drop(sleep);
}

#[tokio::test]
async fn lines_go_to_a_program_that_reads_lines() {
    let server = Server::start();
    let shell = server.session().await;
    let python = shell.run_until("python3 -q -i -c pass", ">>> ").await;
    for line in ["def f(x):", "    return x + 1", "", "f(41)"] {
        shell.sends(format!("{line}\r").as_bytes()).await;
    }
    shell.wait(&api::WaitRequest { wait_for: Some("^42".to_owned()), timeout: Some(20.0), ..Default::default() }).await;
    // Before python's editor has the terminal, the kernel takes C-d for an end of file, which the editor then reads as a NUL.
    let asks = async || (shell.look().await.foreground == Foreground::InputWanted).then_some(());
    e2e::eventually("python asks", asks).await;
    shell.sends(b"\x04").await;
    let done = shell.end_of(&python).await;
    let output = done.output.unwrap_or_default();
    assert_eq!((done.exit_code, output.contains("\n42\n")), (Some(0), true), "{output}");
}
