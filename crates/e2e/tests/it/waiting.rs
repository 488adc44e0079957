//! Waits: the first condition to be met ends a wait, and no wait ends the program.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use api::{CommandStatus, EndedBy, ExecuteRequest, WaitRequest};
use e2e::{Home, Server, Session, Start, count, eventually, join_all, lacks, passes};

#[tokio::test]
// promise: wait-1
async fn a_wait_that_times_out_leaves_the_program_running() {
    let server = Server::start();
    let shell = server.session().await;
    shell.gives("mkfifo gate").await;
    let waits = "read -r line <gate; echo $line".to_owned();
    let running = shell.run_as(ExecuteRequest { command: waits, timeout: Some(0.2), ..Default::default() }).await;
    assert_eq!(
        (running.status, running.ended_by, running.exit_code),
        (CommandStatus::Running, Some(EndedBy::TimedOut), None)
    );
    passes(server.home().file("gate"), "done\n").await;
    let done = shell.end_of(&running).await;
    assert_eq!((done.exit_code, done.output.as_deref()), (Some(0), Some("done\n")));
}

#[tokio::test]
async fn a_long_command_is_waited_for_in_one_call() {
    let server = Server::start();
    let shell = server.session().await;
    let request = ExecuteRequest {
        command: format!("sleep {}; echo done", count(2, 45)),
        timeout: Some(48.0),
        ..Default::default()
    };
    let done = shell.run_as(request).await;
    assert_eq!((done.ended_by, done.output.as_deref()), (Some(EndedBy::Ended), Some("done\n")));
}

#[tokio::test]
// promise: wait-3
async fn a_wait_for_an_ended_command_ends_once_its_output_was_searched() {
    let server = Server::start();
    let shell = server.session().await;
    let asks = async |pattern: &str| {
        let wait_for = Some(pattern.to_owned());
        let request = ExecuteRequest {
            wait_for_completion: Some(true),
            command: "echo said; (exit 3)".to_owned(),
            ..Default::default()
        };
        let request = ExecuteRequest { wait_for, timeout: Some(20.0), ..request };
        // A key names the request with its pattern, and asks for the same command again.
        let keyed = async || server.client().execute(&shell.id, &request, Some(pattern)).await.expect("it runs");
        let first = keyed().await;
        shell.end_of(&first).await;
        shell.run("echo never").await;
        let again = keyed().await;
        assert_eq!((again.id, again.exit_code), (first.id, Some(3)));
        again.ended_by
    };
    assert_eq!(asks("sai.").await, Some(EndedBy::Matched));
    // Output after its end is not its output.
    assert_eq!(asks("never").await, Some(EndedBy::Ended));
}

#[tokio::test]
async fn a_pattern_ends_a_wait_while_its_command_continues() {
    let server = Server::start();
    let shell = server.session().await;
    let command = shell.run_until("sleep 0.3; echo listening on 4711; read -r _", r"listening on (\d+)").await;
    assert_eq!((command.status, command.matched.as_deref()), (CommandStatus::Running, Some("listening on 4711")));
    // Not by an interrupt: a shell that forks at that very moment may lose it (seen with dash in vfork).
    shell.types("\n").await;
    assert_eq!(shell.end_of(&command).await.exit_code, Some(0));
}

#[tokio::test]
// promise: wait-3
async fn two_waits_on_one_session_both_end() {
    let server = Server::start();
    let shell = server.session().await;
    shell.gives("mkfifo gate").await;
    let command = shell.begin("read -r line <gate; echo $line").await;
    let wait = WaitRequest { timeout: Some(20.0), ..Default::default() };
    let quiet = WaitRequest { quiet_ms: Some(100), timeout: Some(20.0), ..Default::default() };
    let rests = async {
        let rests = shell.wait(&quiet).await;
        passes(server.home().file("gate"), "done\n").await;
        rests
    };
    let (one, two, three) = tokio::join!(shell.wait(&wait), shell.wait(&wait), rests);
    assert_eq!([one.ended_by, two.ended_by, three.ended_by], [EndedBy::Ended, EndedBy::Ended, EndedBy::Quiet]);
    assert_eq!(shell.end_of(&command).await.exit_code, Some(0));
}

#[tokio::test]
// promise: wait-4
async fn sixty_four_sessions_work_at_once() {
    let server = Server::start();
    let shells = join_all((0..64).map(async |_| server.session().await)).await;
    shells[0].gives("mkfifo gate").await;
    // Open for both, so that a byte stays until it is read.
    let mut gate = File::options().read(true).write(true).open(server.home().file("gate")).expect("a FIFO");
    let all = shells
        .iter()
        .enumerate()
        .map(async |(number, shell)| shell.gives(&format!(": >there-{number}; read -rn 1 <gate; echo {number}")).await);
    // None goes on before all of them have begun.
    let opens = async {
        let is_there = |number| server.home().file(&format!("there-{number}")).exists();
        eventually("all of them run", async || (0..64).all(is_there).then_some(())).await;
        gate.write_all(&[b'x'; 64]).expect("room in a FIFO");
    };
    let (all, ()) = tokio::join!(join_all(all), opens);
    let expected: Vec<_> = (0..64).map(|number| (0, format!("{number}\n"))).collect();
    assert_eq!(all, expected);
}

#[tokio::test]
async fn the_end_of_a_session_ends_its_waits() {
    let server = Server::start();
    let shell = server.session().await;
    let command = shell.run_until("echo partly; sleep 60", "partly").await;
    let wait = WaitRequest { timeout: Some(20.0), ..Default::default() };
    let (answer, ended) = tokio::join!(shell.wait(&wait), shell.ends());
    assert_eq!((answer.ended_by, ended.was_over), (EndedBy::Exited, false));
    let done = shell.command(&command.id).await;
    assert_eq!((done.status, done.exit_code), (CommandStatus::Terminated, None));
}

/// Runs it until one of the words comes true.
async fn until(shell: &Session, command: &str, words: &[&str]) -> api::CommandExecution {
    let words = words.iter().map(ToString::to_string).collect();
    let request =
        ExecuteRequest { command: command.to_owned(), until: words, timeout: Some(20.0), ..ExecuteRequest::default() };
    shell.run_as(request).await
}

#[tokio::test]
// promise: wait-5
async fn a_wait_ends_when_a_process_of_the_session_listens() {
    let server = Server::start();
    let shell = server.session().await;
    let listens = r#"perl -MIO::Socket::INET -e '
        $s = IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1"); print "on ", $s->sockport, "\n"; sleep 60'"#;
    // Another program's port is none of the session's.
    let _other = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let command = until(&shell, &format!("echo begun; {listens}"), &["listening"]).await;
    let matched = command.matched.clone().expect("it listens");
    let port: u16 = matched.strip_prefix("listening:").expect("the port").parse().expect("a number");
    assert_eq!((command.status, command.ended_by), (CommandStatus::Running, Some(EndedBy::Matched)));
    assert!(command.output.as_deref().is_some_and(|text| text.starts_with("begun\n")), "{command:?}");
    // One that is asked for by its number, and is there already.
    let wait = WaitRequest { until: vec![matched.clone()], timeout: Some(20.0), ..WaitRequest::default() };
    let again = shell.wait(&wait).await;
    assert_eq!((again.ended_by, again.matched.as_deref()), (EndedBy::Matched, Some(matched.as_str())));
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
}

#[tokio::test]
// promise: wait-5
async fn a_wait_ends_when_a_file_appears_and_an_old_file_does_not_count() {
    let server = Server::start();
    let shell = server.session().await;
    shell.gives("mkdir -p build && cd build && echo old >made").await;
    let begun = Instant::now();
    let command = until(&shell, "sleep 0.3; echo new >made; sleep 60", &["file:made"]).await;
    assert_eq!((command.ended_by, command.matched.as_deref()), (Some(EndedBy::Matched), Some("file:made")));
    assert!(begun.elapsed() >= Duration::from_millis(300), "the old file was taken for the new one");
    // To who only looks, it is there.
    let wait = WaitRequest { until: vec!["file:made".to_owned()], timeout: Some(20.0), ..WaitRequest::default() };
    assert_eq!(shell.wait(&wait).await.matched.as_deref(), Some("file:made"));
}

#[tokio::test]
// promise: wait-5
async fn a_wait_ends_when_something_has_gone_from_the_screen() {
    let server = Server::start();
    let shell = server.session().await;
    let spins = r"sleep 0.2; printf 'loading 1'; sleep 0.2; printf '\r\e[Kloading 2'; sleep 0.2; printf '\r\e[Kready'; read -r _";
    let begun = Instant::now();
    let command = until(&shell, spins, &[r"gone:loading \d"]).await;
    assert_eq!(command.matched.as_deref(), Some(r"gone:loading \d"), "{command:?}");
    assert!(begun.elapsed() >= Duration::from_millis(600), "it ended before it was there, or while it was");
    assert_eq!(command.output.as_deref(), Some("ready"));
}

#[tokio::test]
// promise: wait-5
async fn a_wait_ends_at_the_bell_and_not_at_the_end_of_a_title() {
    let server = Server::start();
    let shell = server.session().await;
    let command = until(
        &shell,
        r"printf '\e]0;title\a'; echo no bell; read -r _; printf '\a'; read -r _",
        &["bell", "quiet:300"],
    )
    .await;
    assert_eq!((command.ended_by, command.output.as_deref()), (Some(EndedBy::Quiet), Some("no bell\n")));
    let enter = api::InputRequest {
        input: Some("\n".to_owned()),
        until: vec!["bell".to_owned()],
        timeout: Some(20.0),
        ..Default::default()
    };
    let rung = shell.input(&enter).await;
    assert_eq!((rung.ended_by, rung.matched.as_deref()), (EndedBy::Matched, Some("bell")));
}

#[tokio::test]
// promise: wait-5
async fn a_wait_for_another_condition_ignores_questions_unless_it_names_them() {
    let server = Server::start();
    let shell = server.session().await;
    let command = until(&shell, "read -rp 'name? ' n; echo got $n", &["listening", "input"]).await;
    assert_eq!((command.ended_by, command.output.as_deref()), (Some(EndedBy::InputWanted), Some("name? ")));
    shell.types("x\n").await;
    assert_eq!(shell.end_of(&command).await.exit_code, Some(0));
    let command = until(&shell, "read -rt 0.5 -p 'name? ' n; echo; echo over >left; read -r n", &["file:left"]).await;
    assert_eq!(command.matched.as_deref(), Some("file:left"), "{command:?}");
}

/// Programs that wait for anything but the terminal, or for nothing.
const DO_NOT_ASK: [&str; 15] = [
    "sleep 30",
    "while :; do :; done",
    "sleep 30 | cat",
    "(while :; do echo line; sleep 0.1; done) | while read -r line; do echo \"$line\"; done",
    "echo old >log; tail -f log",
    "echo old >log; (while :; do date >>log; sleep 0.1; done) & tail -f log | grep --line-buffered :",
    "mkfifo pipe; read -r line <pipe",
    "sleep 30 & wait",
    // A reader of a log that comes over a socket, as `docker logs -f` is: it never looks at the terminal.
    "python3 -c 'import socket, threading, time\na, b = socket.socketpair()\ndef log():\n  while True: a.send(b\"line\\n\"); time.sleep(0.1)\n\
     threading.Thread(target=log, daemon=True).start()\nwhile True: print(b.recv(99).decode(), end=\"\", flush=True)'",
    "python3 -c 'import select, time\nwhile True: select.select([], [], [], 0.05)'",
    // One thread takes orders while the program works.
    "python3 -c 'import os, threading, time\nthreading.Thread(target=os.read, args=(0, 9), daemon=True).start()\nwhile True: time.sleep(0.3)'",
    // One thread passes keys on to a connection, as `docker exec -it` does, while what is at its other end works.
    "python3 -c 'import os, select, socket, threading, tty\ntty.setraw(0)\nother, end = socket.socketpair()\nlooks = select.epoll()\n\
     looks.register(end, 1)\nthreading.Thread(target=looks.poll, daemon=True).start()\n\
     keys = threading.Thread(target=os.read, args=(0, 9), daemon=True)\nkeys.start()\nkeys.join()'",
    // `script` passes keys on to its own terminal and waits for them; the program behind it works with its line open.
    "script -qec 'printf working...; sleep 30' /dev/null",
    "script -qec \"script -qec 'printf working...; sleep 30' /dev/null\" /dev/null",
    // A wheel that turns behind an open line, with an eye on the keys.
    "python3 -c 'import select, sys\nwhile not select.select([sys.stdin], [], [], 0.2)[0]: print(\"\\r| loading\", end=\"\", flush=True)'",
];

/// Programs that ask without a word, each in a way of its own.
const ASK: [&str; 8] = [
    "head -n 1",
    "set +m; head -n 1",
    "set +m; sh -c 'read x; :' | cat",
    "python3 -c 'import os; os.system(\"head -n 1\")'",
    "script -qec 'head -n 1' /dev/null",
    "script -qec \"script -qec 'head -n 1' /dev/null\" /dev/null",
    "python3 -c 'import select, sys; print(\"name:\", flush=True); select.select([sys.stdin], [], []); sys.stdin.readline()'",
    "python3 -c 'import os, threading\nreader = threading.Thread(target=os.read, args=(0, 9))\nreader.start()\nreader.join()'",
];

#[tokio::test]
// promise: ask-1, ask-2
async fn a_program_that_reads_asks_whatever_its_group_and_its_threads() {
    let server = Server::start();
    let shells = join_all(ASK.iter().map(async |_| server.session().await)).await;
    let told = join_all(ASK.iter().zip(&shells).map(async |(command, shell)| {
        let asks = shell.run(command).await;
        shell.types("x").await;
        (*command, asks.ended_by, shell.end_of(&asks).await.exit_code)
    }))
    .await;
    assert_eq!(told, ASK.map(|command| (command, Some(EndedBy::InputWanted), Some(0))));
}

#[tokio::test]
// promise: ask-3
async fn a_program_that_does_not_read_the_terminal_is_never_reported_to_ask() {
    let server = Server::start();
    let shells = join_all(DO_NOT_ASK.iter().map(async |_| server.session().await)).await;
    let told = join_all(DO_NOT_ASK.iter().zip(&shells).enumerate().map(async |(number, (command, shell))| {
        shell.gives(&format!("mkdir {number} && cd {number}")).await;
        shell.begin(command).await;
        let wait = WaitRequest { input_wanted: true, timeout: Some(2.0), ..WaitRequest::default() };
        let answer = shell.wait(&wait).await;
        shell.signal("INT").await;
        (*command, answer.ended_by, answer.foreground)
    }))
    .await;
    let expected = DO_NOT_ASK.map(|command| (command, EndedBy::TimedOut, api::Foreground::Running));
    assert_eq!(told, expected);
}

#[tokio::test]
// promise: wait-5
async fn a_wait_at_the_prompt_can_end_by_a_background_job() {
    let server = Server::start();
    let shell = server.session().await;
    shell.gives("(sleep 0.3; touch ~/made) &").await;
    let wait = |word: &str| WaitRequest { until: vec![word.to_owned()], timeout: Some(20.0), ..WaitRequest::default() };
    let made = shell.wait(&wait("file:~/made")).await;
    assert_eq!((made.ended_by, made.matched.as_deref()), (EndedBy::Matched, Some("file:~/made")));
    shell
        .gives("(sleep 0.3; exec perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(Listen => 1); sleep 60') &")
        .await;
    for _ in 0..2 {
        let listens = shell.wait(&wait("listening")).await;
        assert!(listens.matched.is_some_and(|word| word.starts_with("listening:")));
    }
}

#[tokio::test]
// promise: wait-5
async fn text_that_appears_and_vanishes_at_once_counts_as_gone() {
    let server = Server::start();
    let shell = server.session().await;
    let command = until(&shell, r"printf 'Loading'; printf '\r\e[K'; read -r _", &["gone:Loading"]).await;
    assert_eq!(command.matched.as_deref(), Some("gone:Loading"), "{command:?}");
}

/// The number of repetitions per shell: a surplus report comes only if prompt and end come in one piece.
const ROUNDS: usize = 60;

#[tokio::test]
// promise: wait-2
async fn a_pattern_never_sees_the_prompt_behind_a_commands_end() {
    let server = Server::start();
    let shell = server.session().await;
    shell.gives("PS1='at the prompt: '").await;
    for round in 0..ROUNDS {
        let request = ExecuteRequest {
            command: format!("sleep 0.0{}; echo done", round % 5),
            wait_for: Some("prompt".to_owned()),
            timeout: Some(20.0),
            ..Default::default()
        };
        let done = shell.run_as(request).await;
        let told = (done.status, done.ended_by, done.matched.as_deref(), done.output.as_deref());
        assert_eq!(told, (CommandStatus::Completed, Some(EndedBy::Ended), None, Some("done\n")), "round {round}");
    }
}

#[tokio::test]
// promise: wait-2
async fn a_pattern_never_matches_text_before_the_beginning_of_its_command() {
    let server = Server::start();
    for name in ["bash", "zsh", "fish", "dash", "mksh"] {
        let create = api::CreateRequest { shell: Some(name.to_owned()), ..Default::default() };
        let shell = server.session_with(create).await;
        for round in 0..ROUNDS / 4 {
            // Some editors show the line that hands a command over.
            let request = ExecuteRequest {
                command: "sleep 0.01; echo done".to_owned(),
                wait_for: Some("ptyd|sleep|eval|[$]".to_owned()),
                timeout: Some(20.0),
                ..Default::default()
            };
            let done = shell.run_as(request).await;
            let told = (done.ended_by, done.matched.as_deref(), done.output.as_deref());
            assert_eq!(told, (Some(EndedBy::Ended), None, Some("done\n")), "round {round} of {name}");
        }
        // The same for a wait that begins while it runs, and that has not read the prompt.
        shell.types("echo typed by hand; sleep 0.1\n").await;
        let gate = server.home().file(&format!("gate-{name}"));
        assert!(Command::new("mkfifo").arg(&gate).status().expect("mkfifo").success());
        let begun = eventually_begins(&shell, &format!("cat {}; echo late", gate.display())).await;
        let wait = WaitRequest { wait_for: Some("by hand|[$]".to_owned()), timeout: Some(0.2), ..Default::default() };
        let waited = server.client().wait(&shell.id, &wait).await.expect("a wait");
        assert_eq!((waited.ended_by, waited.matched), (EndedBy::TimedOut, None), "{name}");
        std::fs::write(&gate, "").expect("cat reads it");
        assert_eq!(shell.end_of(&begun).await.output.as_deref(), Some("late\n"), "{name}");
    }
}

/// Begins a command once what was typed before has ended.
async fn eventually_begins(shell: &Session, command: &str) -> api::CommandExecution {
    eventually("the prompt is back", async || {
        let request = ExecuteRequest {
            command: command.to_owned(),
            wait_for_completion: Some(false),
            ..ExecuteRequest::default()
        };
        shell.try_run(&request).await.ok()
    })
    .await
}

#[tokio::test]
// promise: limit-5
async fn a_wait_beyond_the_bound_is_refused_and_open_waits_are_answered() {
    use std::io::{Read as _, Write as _};
    let server = Server::start();
    let shell = server.session().await;
    let asks = shell.run("read -p 'go? ' go; echo gone").await;
    let body = r#"{"waitFor":"^gone","timeout":60}"#;
    let path = format!("/terminals/{}/wait", shell.id);
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let mut open: Vec<_> = (0..260)
        .map(|_| {
            let mut wire = server.wire();
            wire.write_all(head.as_bytes()).and_then(|()| wire.write_all(body.as_bytes())).expect("it listens");
            wire
        })
        .collect();
    // No other request runs meanwhile: one that took a place for a moment would have one of these refused in its stead.
    let mut refused = Vec::new();
    eventually("four of 260 are answered", async || {
        let answered = |wire: &mut std::os::unix::net::UnixStream| {
            wire.set_nonblocking(true).is_ok() && wire.read(&mut [0; 1]).is_ok()
        };
        refused.extend(open.extract_if(.., answered));
        (refused.len() == 4).then_some(())
    })
    .await;
    for mut wire in refused {
        wire.set_nonblocking(false).expect("ours");
        let mut answer = String::new();
        wire.read_to_string(&mut answer).expect("an answer");
        assert!(answer.contains(" 429 ") && answer.contains("at its limit of 256"), "{answer}");
    }
    shell.sends(b"now\n").await;
    // A wait for its end would need a place, too.
    let has_ended = async || (shell.command(&asks.id).await.status == CommandStatus::Completed).then_some(());
    eventually("it ends", has_ended).await;
    assert_eq!(open.len(), 256);
    for mut wire in open {
        wire.set_nonblocking(false).expect("ours");
        let mut answer = String::new();
        wire.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains(r#""endedBy":"matched""#), "{answer}");
    }
    let once_more = WaitRequest { timeout: Some(0.01), ..WaitRequest::default() };
    assert!(server.client().wait(&shell.id, &once_more).await.is_ok(), "places are free again");
}

#[tokio::test]
// promise: wait-3
async fn a_repeated_wait_sees_the_output_from_while_no_server_ran() {
    let server = Server::start();
    let shell = server.session().await;
    let command = "until [ -e go ]; do sleep 0.02; done; echo READY; until [ -e on ]; do sleep 0.02; done; echo READY";
    shell.run_until(&format!("echo READY; {command}"), "READY").await;
    let wait = WaitRequest { wait_for: Some("READY".to_owned()), timeout: Some(0.2), ..Default::default() };
    let asks = async |file: &str| {
        // No wait sees a match twice, whichever server it asks.
        let waited = shell.wait(&wait).await;
        assert_eq!((waited.ended_by, waited.matched), (EndedBy::TimedOut, None), "before {file}");
        server.kill9();
        let journal = server.home().state().join("sessions").join(&shell.id).join("journal");
        let before = std::fs::metadata(&journal).expect("a session").len();
        std::fs::write(server.home().file(file), "").expect("written");
        let is_printed = async || (std::fs::metadata(&journal).expect("a session").len() > before).then_some(());
        eventually("it is printed without a server", is_printed).await;
        server.again();
        let wait = WaitRequest { timeout: Some(20.0), ..wait.clone() };
        let waited = shell.wait(&wait).await;
        assert_eq!((waited.ended_by, waited.matched.as_deref()), (EndedBy::Matched, Some("READY")), "after {file}");
    };
    asks("go").await;
    asks("on").await;
}

/// Polls the terminal and a pipe, and asks when the pipe has something.
const ASKS_LATER: &str = r#"
import os, select, sys
go, told = (os.open(path, os.O_RDWR) for path in sys.argv[1:])
os.write(told, b"polls")
while 0 not in select.select([0, go], [], [])[0]:
    os.read(go, 1)
    os.write(1, b"name? ")
    os.write(told, b"asked")
"#;

fn make_fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().expect("coreutils has it").success());
}

/// A holder at the point `sampled`, which goes on when the file is closed; the next one waits at another pipe of this path.
/// The signal, which the program ignores, makes the holder send the same sample again.
async fn stalled_holder(shell: &Session, gate: &Path) -> File {
    make_fifo(gate);
    let signalled = tokio::spawn({
        let shell = shell.clone();
        async move { shell.signal("WINCH").await }
    });
    let path = gate.to_owned();
    let opened = tokio::task::spawn_blocking(move || File::options().write(true).open(path));
    let opened = opened.await.expect("no panic").expect("a pipe");
    std::fs::remove_file(gate).expect("ours");
    // A holder that stalls on an earlier sample answers later.
    drop(signalled);
    opened
}

/// The question comes between the holder's sample of a program that polled before, and the holder's last look for output before it
/// sends the sample.
#[tokio::test]
// promise: ask-1
async fn a_question_that_comes_during_a_sample_ends_the_wait() {
    if lacks(&["python3"]) {
        return;
    }
    let home = Home::make();
    let [gate, go, told, program] = ["gate", "go", "told", "program.py"].map(|name| home.file(name));
    let env = vec![("PTYD_FAULT", format!("sampled:{}", gate.display()).into())];
    let server = Server::start_in(home, Start { env, ..Start::default() });
    for pipe in [&go, &told] {
        make_fifo(pipe);
    }
    std::fs::write(&program, ASKS_LATER).expect("written");
    let words = async |expected: &'static str| {
        let told = told.clone();
        let read = move || {
            let mut bytes = vec![0; expected.len()];
            File::options()
                .read(true)
                .write(true)
                .open(told)
                .and_then(|mut file| file.read_exact(&mut bytes))
                .map(|()| bytes)
        };
        assert_eq!(tokio::task::spawn_blocking(read).await.expect("no panic").expect("told"), expected.as_bytes());
    };
    let shell = server.session().await;
    let command = format!("python3 {} {} {}", program.display(), go.display(), told.display());
    let asks = tokio::spawn({
        let shell = shell.clone();
        async move { shell.run_as(ExecuteRequest { command, timeout: Some(20.0), ..Default::default() }).await }
    });
    words("polls").await;
    // The first samples may be of a program that works, or tell that it polls.
    for _ in 0..3 {
        drop(stalled_holder(&shell, &gate).await);
    }
    let stalled = stalled_holder(&shell, &gate).await;
    std::fs::write(&go, "1").expect("it polls");
    words("asked").await;
    drop(stalled);
    let asks = asks.await.expect("no panic");
    assert_eq!((asks.ended_by, asks.output.as_deref()), (Some(EndedBy::InputWanted), Some("name? ")));
}
