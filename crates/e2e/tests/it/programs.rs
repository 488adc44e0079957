//! Programs that need more than lines: passwords, and full-screen programs.

use api::{CommandStatus, EndedBy, ErrorCode, Foreground, InputRequest, WaitRequest};
use e2e::{Pid, Server, eventually, lacks};
use rustix::process::Signal;
use std::path::Path;
use std::sync::Arc;

/// The files below a folder that hold this text.
fn holding(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(holding(&path, text));
        } else if std::fs::read(&path).unwrap_or_default().windows(text.len()).any(|window| window == text.as_bytes()) {
            found.push(path.display().to_string());
        }
    }
    found
}

#[tokio::test]
// promise: send-6
async fn a_typed_secret_is_nowhere() {
    let server = Server::start();
    let shell = server.session().await;
    for (secret, is_said) in [("hunter2-said", true), ("hunter2-unsaid", false)] {
        let asked = shell.run("read -rsp 'Password: ' p; echo; echo ${#p}").await;
        assert_eq!((asked.foreground, asked.output.as_deref()), (Some(Foreground::PasswordWanted), Some("Password: ")));
        let request = InputRequest {
            input: Some(secret.to_owned()),
            end_with_newline: true,
            secret: is_said,
            timeout: Some(20.0),
            ..Default::default()
        };
        let answer = shell.input(&request).await;
        assert_eq!(answer.output, format!("\n{}\n", secret.len()));
        server.stop();
        assert_eq!(holding(server.home().path(), secret), [""; 0]);
        server.again();
        assert_eq!(holding(server.home().path(), secret), [""; 0]);
    }
}

#[tokio::test]
async fn nothing_but_a_persons_key_answers_a_question_for_a_key() {
    let server = Server::start();
    let shell = server.session().await;
    for question in ["read -n 1 -p 'go? ' k", "read -t 20 -n 1 -p 'go? ' k", "read -t 20 -rs -d q -p 'go? ' k"] {
        let asked = shell.run_until(&format!("{question}; echo; printf '%q\\n' \"$k\""), "go\\? ").await;
        let quiet = WaitRequest { quiet_ms: Some(500), timeout: Some(10.0), ..Default::default() };
        assert_eq!(shell.wait(&quiet).await.ended_by, EndedBy::Quiet, "{question} waits on");
        shell.sends(b"yq").await;
        let done = shell.end_of(&asked).await;
        assert_eq!(done.output.map(|text| text.ends_with("\ny\n")), Some(true), "{question}");
        // The keys that it did not read belong to the prompt.
        shell.sends(b"\x15").await;
    }
}

#[tokio::test]
// promise: screen-1, screen-3
async fn an_editor_is_a_screen_that_keys_drive() {
    if lacks(&["vim"]) {
        return;
    }
    let server = Server::start();
    let shell = server.session().await;
    let vim = shell.run("vim -u NONE -i NONE -N note").await;
    assert_eq!(vim.ended_by, Some(EndedBy::InputWanted));
    assert_eq!((vim.status, vim.foreground), (CommandStatus::Running, Some(Foreground::Fullscreen)), "{vim:?}");
    let screen = vim.screen.clone().expect("it paints");
    assert!(screen.alternate && screen.rows.iter().filter(|row| row.as_str() == "~").count() > 20, "{screen:?}");
    assert_eq!(shell.refusal("echo no").await, Some(ErrorCode::SessionBusy));
    let typing = shell.presses(&["i"], Some("INSERT")).await;
    assert_eq!(typing.ended_by, EndedBy::Matched, "{typing:?}");
    shell
        .input(&InputRequest {
            input: Some("typed text".to_owned()),
            wait_for: Some("typed text".to_owned()),
            ..Default::default()
        })
        .await;
    assert_eq!(shell.screen().await[0], "typed text");
    shell.presses(&["Escape"], None).await;
    shell.types(":wq").await;
    let done = shell.end_of(&vim).await;
    assert_eq!(done.exit_code, Some(0));
    assert_eq!(std::fs::read_to_string(server.home().file("note")).expect("written"), "typed text\n");
    let output = done.output.unwrap_or_default();
    assert!(!output.contains('~') && !output.contains("INSERT"), "no paint is left: {output:?}");
    assert_eq!(shell.gives("echo next").await, (0, "next\n".to_owned()));
}

#[tokio::test]
// promise: output-5
async fn answers_that_nobody_has_read_spoil_no_later_command() {
    let server = Server::start();
    let shell = server.session().await;
    // As vim does, which may be gone before it has read them; ESC P starts a search in the line editor.
    for modes in ["stty raw -echo", "true"] {
        for i in 0..5 {
            let asks = r"for i in {1..20}; do printf '\eP+q6b32\e\\'; done";
            shell.run(&format!("{modes}; {asks}; stty sane")).await;
            assert_eq!(shell.gives(&format!("echo after {i}")).await, (0, format!("after {i}\n")), "{modes}");
        }
    }
}

#[tokio::test]
async fn a_pager_waits_and_leaves_no_paint() {
    if lacks(&["less"]) {
        return;
    }
    let server = Server::start();
    let shell = server.session().await;
    let less = shell.run("seq 1 500 | less").await;
    assert_eq!(
        (less.ended_by, less.foreground),
        (Some(EndedBy::InputWanted), Some(Foreground::Fullscreen)),
        "{less:?}"
    );
    let next = shell.presses(&["Space"], Some("^7[0-9]$")).await;
    assert_eq!(next.ended_by, EndedBy::Matched, "{next:?}");
    assert_eq!(shell.screen().await[0], "40");
    shell.presses(&["q"], None).await;
    let done = shell.end_of(&less).await;
    assert_eq!((done.exit_code, done.output.as_deref()), (Some(0), Some("")));
}

/// Paints its screen again by itself while it waits for a key, as monitors do.
const MONITOR: &str = "import select, sys, termios, tty\ntty.setcbreak(0)\nprint('\\x1b[?1049h', end='')\nwhile True:\n  \
                       print('\\x1b[H\\x1b[2Jload', end='', flush=True)\n  \
                       if select.select([sys.stdin], [], [], 0.3)[0] and sys.stdin.read(1) == 'q': break\n\
                       print('\\x1b[?1049l', end='')\n";

#[tokio::test]
// promise: screen-1, screen-3
async fn a_screen_that_repaints_itself_answers_when_it_waits_for_a_key() {
    let server = Server::start();
    let shell = server.session().await;
    std::fs::write(server.home().file("monitor.py"), MONITOR).expect("written");
    let monitor = shell.run("python3 monitor.py").await;
    assert_eq!((monitor.ended_by, monitor.foreground), (Some(EndedBy::InputWanted), Some(Foreground::Fullscreen)));
    assert_eq!(monitor.screen.clone().expect("it paints").rows[0], "load");
    shell.presses(&["q"], None).await;
    assert_eq!(shell.end_of(&monitor).await.exit_code, Some(0));
}

/// A server that also reads keys, as development servers do.
const DEV_SERVER: &str = "import select, socket, sys\ns = socket.create_server(('127.0.0.1', 0))\nprint('press q to quit', flush=True)\n\
                          while True:\n  r, _, _ = select.select([s, sys.stdin], [], [])\n  if sys.stdin in r and sys.stdin.readline().strip() == 'q': break\n";

#[tokio::test]
// promise: ask-3
async fn a_server_that_also_reads_keys_runs_and_does_not_ask() {
    let server = Server::start();
    let shell = server.session().await;
    std::fs::write(server.home().file("dev.py"), DEV_SERVER).expect("written");
    let dev = shell.run_until("python3 dev.py", "press q").await;
    let wait = WaitRequest { input_wanted: true, timeout: Some(1.0), ..Default::default() };
    let answer = shell.wait(&wait).await;
    assert_eq!((answer.ended_by, answer.foreground), (EndedBy::TimedOut, Foreground::Running));
    shell.types("q").await;
    assert_eq!(shell.end_of(&dev).await.exit_code, Some(0));
}

#[tokio::test]
// promise: screen-4
async fn a_paste_for_pypy_removes_its_indents_only_where_it_is_not_in_brackets() {
    let server = Server::start();
    let shell = server.session().await;
    // A reader is known by the name of its file.
    assert_eq!(shell.gives("cp \"$(command -v head)\" pypy3").await.0, 0);
    let paste =
        InputRequest { input: Some("a\nb".to_owned()), paste: true, end_with_newline: true, ..InputRequest::default() };
    for (modes, count, shown) in [
        (r"\e[?2004h", 16, " 033   [   2   0   0   ~   a  \\r   b 033   [   2   0   1   ~  \\r\n"),
        ("", 5, "   a  \\r 025   b  \\r\n"),
    ] {
        let reads = format!("printf '{modes}'; stty raw -echo; (exec -a head ./pypy3 -c {count} >bytes)");
        let command = shell.run(&format!("{reads}; stty sane; printf '\\e[?2004l'; od -An -c bytes")).await;
        assert_eq!(command.ended_by, Some(EndedBy::InputWanted), "{command:?}");
        shell.input(&paste).await;
        let output = shell.end_of(&command).await.output.unwrap_or_default();
        assert!(output.ends_with(shown), "{output:?}");
    }
}

#[tokio::test]
// promise: screen-4
async fn a_paste_is_in_brackets_and_the_mouse_is_reported_where_the_program_asked_for_them() {
    let server = Server::start();
    let shell = server.session().await;
    let reads = |modes: &str, count: usize| {
        format!(
            "printf '{modes}'; stty raw -echo; echo go; x=$(head -c {count} | od -An -c); stty sane; echo \"$x\"; printf '\\e[?2004l\\e[?1000l'"
        )
    };
    let paste =
        InputRequest { input: Some("a\nb".to_owned()), paste: true, end_with_newline: true, ..InputRequest::default() };
    for (modes, count, shown) in [
        (r"\e[?2004h", 16, " 033   [   2   0   0   ~   a  \\r   b 033   [   2   0   1   ~  \\r\n"),
        ("", 4, "   a  \\r   b  \\r\n"),
    ] {
        let command = shell.run_until(&reads(modes, count), "go").await;
        shell.input(&paste).await;
        let output = shell.end_of(&command).await.output.unwrap_or_default();
        assert!(output.ends_with(shown), "{output:?}");
    }
    let ends = InputRequest { input: Some("x\x1b[201~rm".to_owned()), ..paste.clone() };
    assert_eq!(shell.input_refusal(&ends).await, Some(ErrorCode::InvalidField));
    let command = shell.run_until(&reads(r"\e[?1000h\e[?1006h", 20), "go").await;
    shell.presses(&["Click:5,10"], None).await;
    let output = shell.end_of(&command).await.output.unwrap_or_default();
    let pressed = " 033   [   <   0   ;   1   0   ;   5   M 033   [   <   0   ;   1\n   0   ;   5   m\n";
    assert!(output.ends_with(pressed), "{output:?}");
    let click = InputRequest { keys: Some(vec!["Click:1,1".to_owned()]), ..InputRequest::default() };
    assert_eq!(shell.input_refusal(&click).await, Some(ErrorCode::InvalidField));
}

#[tokio::test]
// promise: screen-6
async fn a_screen_names_the_selection_and_the_rows_that_are_new_to_its_reader() {
    let server = Server::start();
    let shell = server.session().await;
    let menu = r"printf '\e[?1049h\e[2J\e[Hone\r\n\e[7mtwo\e[0m'; read -rsn1 _; printf '\e[Hone\r\ntwo\r\n\e[7mthree\e[0m'; read -rsn1 _; printf '\e[?1049l'";
    let first = shell.run(menu).await;
    let first = first.screen.clone().unwrap_or_else(|| panic!("it paints: {first:?}"));
    let chosen =
        |screen: &api::Screen| screen.inverse.iter().map(|s| (s.row, s.col, s.text.clone())).collect::<Vec<_>>();
    assert_eq!((chosen(&first), first.changed_rows.clone()), (vec![(1, 0, "two".to_owned())], None));
    let next = shell.presses(&["j"], Some("three")).await.screen.expect("it paints");
    // The row that is no longer chosen looks different, too.
    assert_eq!((chosen(&next), next.changed_rows.clone()), (vec![(2, 0, "three".to_owned())], Some(vec![1, 2])));
}

#[tokio::test]
// promise: output-2
async fn a_first_look_at_a_long_output_keeps_nobody_waiting() {
    let server = Server::start();
    let shell = server.session().await;
    // Rows outside of the margins stay, so nothing is passed over; and so much is not drawn ahead.
    shell.run("printf '\\033[2;20r'; seq 1000000 | tail -c 4000000").await;
    let (client, id) = (Arc::clone(server.client()), shell.id.clone());
    let look = tokio::spawn(async move { client.screen(&id).await });
    let mut asked = 0;
    while !look.is_finished() {
        shell.look().await;
        asked += 1;
    }
    let screen = look.await.expect("no panic").expect("a screen");
    assert!(screen.rows.iter().any(|row| row == "1000000"), "{:?}", screen.rows);
    // It is drawn in turns, between which others are answered.
    assert!(asked >= 5, "{asked}");
}

#[tokio::test]
// promise: end-2
async fn a_program_that_was_stopped_while_it_polled_asks_again_when_it_continues() {
    if lacks(&["python3"]) {
        return;
    }
    let server = Server::start();
    let shell = server.session().await;
    let program = "import select, sys\nsys.stdout.write('name> ')\nsys.stdout.flush()\npolled = select.poll()\n\
                   polled.register(0, select.POLLIN)\npolled.poll()\nprint('got', sys.stdin.readline())\n";
    std::fs::write(server.home().file("ask.py"), program).expect("written");
    // The session's shell does not learn that a child of its child is stopped.
    let asked = shell.run("sh -c 'python3 ask.py; echo end'").await;
    assert_eq!(asked.foreground, Some(Foreground::InputWanted), "{asked:?}");
    let all = server.client().processes(&shell.id).await.expect("known").processes;
    let python = all.iter().find(|it| it.name.starts_with("python"));
    let python = Pid::new(python.unwrap_or_else(|| panic!("{all:?}")).pid);
    for _ in 0..3 {
        python.signal(Signal::STOP);
        eventually("it is stopped", async || (python.state() == Some('T')).then_some(())).await;
        python.signal(Signal::CONT);
        eventually("it sleeps again", async || (python.state() == Some('S')).then_some(())).await;
        // Typed input makes the holder look again.
        shell.sends(b"x\x7f").await;
        let asks = async || (shell.look().await.foreground == Foreground::InputWanted).then_some(());
        eventually("it asks", asks).await;
    }
}
