//! Idempotency: a repeated request with its key is performed once and gets the first answer, in every channel, also
//! while the first one still waits, after its session has ended and across a crash.

use std::sync::Arc;

use api::{
    Boundary, CommandExecution, CommandStatus, CreateRequest, EndedBy, ErrorCode, ExecuteRequest, Foreground,
    InputRequest, WaitAnswer,
};
use client::ClientError;
use e2e::{Server, Session, Socket, SocketMessage, eventually, join_all};
use tokio::task::JoinHandle;

/// More than a terminal takes without a reader.
const MANY: usize = 200_000;

/// A program that reads slowly until the file `go` is there, then everything, and says how many bytes there were.
const READER: &str = "rm -f go; python3 -c '
import os, select, time, tty
tty.setraw(0)
print(\"ready\", flush=True)
count = 0
while not os.path.exists(\"go\"):
    count += len(os.read(0, 500)) if select.select([0], [], [], 0.05)[0] else 0
    time.sleep(0.05)
while count < 200000 or select.select([0], [], [], 0.5)[0]:
    count += len(os.read(0, 65536))
print(count)'";

fn many() -> InputRequest {
    InputRequest { input: Some("A".repeat(MANY)), ..InputRequest::default() }
}

/// How long the events of a session are: they grow when its holder takes something.
fn events(server: &Server, shell: &Session) -> u64 {
    let file = server.home().state().join("sessions").join(&shell.id).join("events");
    std::fs::metadata(file).expect("a session").len()
}

/// Types in the background, and waits until the holder has it.
async fn typing(server: &Server, shell: &Session, key: &'static str) -> JoinHandle<Result<WaitAnswer, ClientError>> {
    let before = events(server, shell);
    let (client, id) = (Arc::clone(server.client()), shell.id.clone());
    let typing = tokio::spawn(async move { client.input(&id, &many(), Some(key)).await });
    eventually("the holder has it", async || (events(server, shell) > before).then_some(())).await;
    assert!(!typing.is_finished(), "it waits to be read");
    typing
}

async fn accepted(server: &Server, shell: &Session, key: &str) -> Option<usize> {
    server.client().input(&shell.id, &many(), Some(key)).await.expect("taken").accepted_bytes
}

/// How many bytes have come in all.
async fn came(server: &Server, shell: &Session, reader: &CommandExecution) -> String {
    std::fs::write(server.home().file("go"), "").expect("written");
    shell.end_of(reader).await.output.unwrap_or_default().replace("ready\n", "").trim().to_owned()
}

#[tokio::test]
// promise: once-1
async fn input_is_typed_once_while_the_first_one_waits_to_be_read() {
    let server = Server::start();
    let shell = server.session().await;

    let reader = shell.run_until(READER, "ready").await;
    let typed = async {
        let (one, two) = tokio::join!(accepted(&server, &shell, "parallel"), accepted(&server, &shell, "parallel"));
        assert_eq!((one, two), (Some(MANY), Some(MANY)));
    };
    let (said, ()) = tokio::join!(came(&server, &shell, &reader), typed);
    assert_eq!(said, MANY.to_string(), "the same key in parallel");

    let reader = shell.run_until(READER, "ready").await;
    let first = typing(&server, &shell, "given-up").await;
    first.abort();
    let (again, said) = tokio::join!(accepted(&server, &shell, "given-up"), came(&server, &shell, &reader));
    assert_eq!((again, said), (Some(MANY), MANY.to_string()), "asked again by who had given up");

    let reader = shell.run_until(READER, "ready").await;
    let first = typing(&server, &shell, "killed").await;
    server.kill9();
    assert!(first.await.expect("it does not panic").is_err());
    server.again();
    let other = InputRequest { secret: true, ..many() };
    let reused = server.client().input(&shell.id, &other, Some("killed")).await.expect_err("another request");
    assert_eq!(reused.code(), Some(ErrorCode::KeyReused));
    let (again, said) = tokio::join!(accepted(&server, &shell, "killed"), came(&server, &shell, &reader));
    assert_eq!((again, said), (Some(MANY), MANY.to_string()), "its server was killed");
    assert_eq!(accepted(&server, &shell, "killed").await, Some(MANY), "the first one is over");
}

#[tokio::test]
// promise: once-1
async fn an_input_of_one_number_is_typed_once_over_two_connections() {
    let server = Server::start();
    let shell = server.session().await;
    let reader = shell.run_until(READER, "ready").await;
    let before = events(&server, &shell);
    let mut first = Socket::visit(&server, &shell.id, "?client=me").await;
    first.types(1, "A".repeat(MANY).as_bytes()).await;
    eventually("the holder has it", async || (events(&server, &shell) > before).then_some(())).await;
    drop(first);
    let mut second = Socket::visit(&server, &shell.id, "?client=me").await;
    second.types(1, "A".repeat(MANY).as_bytes()).await;
    let typed = second.until(|heard| match heard {
        SocketMessage::Typed(seq) => Some(*seq),
        _ => None,
    });
    let (typed, said) = tokio::join!(typed, came(&server, &shell, &reader));
    assert_eq!((typed, said), (1, MANY.to_string()));
}

/// A session of some kind, and the command that appends a line to the file `ran` and goes on until there is a file `go`.
struct Channel {
    name: &'static str,
    shell: &'static str,
    enters: Option<&'static str>,
    command: &'static str,
}

const SH: &str = "echo ran >>ran; until [ -e go ]; do sleep 0.02; done";

/// Every way in which a command can reach what runs it.
const CHANNELS: [Channel; 9] = [
    Channel { name: "bash", shell: "bash", enters: None, command: SH },
    Channel { name: "dash", shell: "dash", enters: None, command: SH },
    Channel { name: "mksh", shell: "mksh", enters: None, command: SH },
    Channel { name: "inside sh", shell: "bash", enters: Some("env PS1='in$ ' dash"), command: SH },
    Channel { name: "inside bash", shell: "bash", enters: Some("bash --norc"), command: SH },
    Channel { name: "hooks lost", shell: "bash", enters: Some("exec bash --norc"), command: SH },
    Channel {
        name: "python3",
        shell: "python3",
        enters: None,
        command: "import os, time; _ = open('ran', 'a').write('ran\\n'); exec('while not os.path.exists(\"go\"): time.sleep(0.02)')",
    },
    Channel {
        name: "sqlite3",
        shell: "sqlite3",
        enters: None,
        command: ".shell echo ran >>ran; until [ -e go ]; do sleep 0.02; done",
    },
    Channel { name: "a program", shell: "./reads", enters: None, command: SH },
];

impl Channel {
    /// A session in a folder of its own.
    async fn session(&self, server: &Server) -> (Session, std::path::PathBuf) {
        use std::os::unix::fs::PermissionsExt;
        let folder = server.home().file(self.name);
        std::fs::create_dir(&folder).expect("a new one");
        let mut shell = self.shell.to_owned();
        if let Some(name) = shell.strip_prefix("./") {
            let file = folder.join(name);
            std::fs::write(&file, "#!/bin/sh\nwhile read -r line; do eval \"$line\"; done\n").expect("written");
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).expect("ours");
            shell = file.to_str().expect("text").to_owned();
        }
        let cwd = Some(folder.to_str().expect("text").to_owned());
        let session = server.session_with(CreateRequest { shell: Some(shell), cwd, ..Default::default() }).await;
        if let Some(enters) = self.enters {
            session.run(enters).await;
        }
        (session, folder)
    }

    fn is_inside(&self) -> bool {
        self.name.starts_with("inside")
    }

    fn asks(&self) -> ExecuteRequest {
        ExecuteRequest {
            command: self.command.to_owned(),
            inside: self.is_inside(),
            timeout: Some(20.0),
            ..Default::default()
        }
    }
}

fn ran(folder: &std::path::Path) -> usize {
    std::fs::read_to_string(folder.join("ran")).map_or(0, |text| text.lines().count())
}

/// The parts of an answer that every repetition of the request must give.
fn told(done: &CommandExecution) -> (String, CommandStatus, Option<i32>, Boundary, Option<String>, Option<String>) {
    let done = done.clone();
    (done.id, done.status, done.exit_code, done.boundary, done.output, done.error)
}

/// Runs the command of a channel under a key in the background, and waits until it runs.
async fn begins(
    server: &Server,
    channel: &Channel,
    (shell, folder): (&Session, &std::path::Path),
    key: &'static str,
) -> JoinHandle<Result<CommandExecution, ClientError>> {
    let before = ran(folder);
    let (client, id, asks) = (Arc::clone(server.client()), shell.id.clone(), channel.asks());
    let mut running = tokio::spawn(async move { client.execute(&id, &asks, Some(key)).await });
    let has_run = async || (ran(folder) > before).then_some(());
    let what = format!("it runs in {}", channel.name);
    tokio::select! {
        () = eventually(&what, has_run) => running,
        answer = &mut running => {
            let shown = shell.journal().await;
            panic!("it does not run in {}: {answer:?}\n{}", channel.name, shown.escape_ascii());
        }
    }
}

#[tokio::test]
// promise: once-1
async fn a_command_runs_once_in_every_channel() {
    let server = Server::start();
    join_all(CHANNELS.iter().map(async |channel| {
        let name = channel.name;
        let (shell, folder) = channel.session(&server).await;
        let asks = channel.asks();
        let keyed = async || server.client().execute(&shell.id, &asks, Some("one")).await;
        let goes = async {
            eventually("it runs", async || (ran(&folder) > 0).then_some(())).await;
            std::fs::write(folder.join("go"), "").expect("written");
        };
        let ((), one, two, three) = tokio::join!(goes, keyed(), keyed(), keyed());
        let [one, two, three] =
            [one, two, three].map(|done| done.unwrap_or_else(|error| panic!("refused in {name}: {error}")));
        assert_eq!(told(&one), told(&two), "{name}");
        assert_eq!(told(&one), told(&three), "{name}");
        let again = keyed().await.expect("known");
        assert_eq!((told(&again), ran(&folder)), (told(&one), 1), "{name}");
        // While it runs, for who has not waited.
        std::fs::remove_file(folder.join("go")).expect("written before");
        let first = begins(&server, channel, (&shell, &folder), "two").await;
        first.abort();
        let keyed = async || server.client().execute(&shell.id, &asks, Some("two")).await.expect("known");
        let (again, ()) = tokio::join!(keyed(), async { std::fs::write(folder.join("go"), "").expect("written") });
        assert_ne!((again.status, &again.id), (CommandStatus::Running, &one.id), "{name}");
        assert_eq!((told(&keyed().await), ran(&folder)), (told(&again), 2), "{name}");
        let other = ExecuteRequest { command: "echo other >>ran".to_owned(), ..channel.asks() };
        let reused = server.client().execute(&shell.id, &other, Some("two")).await.expect_err("another request");
        assert_eq!((reused.code(), ran(&folder)), (Some(ErrorCode::KeyReused), 2), "{name}");
    }))
    .await;
}

#[tokio::test]
// promise: once-1
async fn a_command_runs_once_in_every_channel_across_a_crash() {
    let server = Server::start();
    let all = join_all(CHANNELS.iter().map(async |channel| {
        let (shell, folder) = channel.session(&server).await;
        let first = begins(&server, channel, (&shell, &folder), "one").await;
        // The program may run before the server has read that it does.
        let running = eventually("it is known", async || shell.look().await.current_command).await;
        (channel, shell, folder, first, running)
    }))
    .await;
    server.kill9();
    server.again();
    join_all(all.into_iter().map(async |(channel, shell, folder, first, running)| {
        let name = channel.name;
        assert!(first.await.expect("it does not panic").is_err(), "{name}");
        // It is still there, and the same.
        let looked = shell.look().await.current_command;
        assert_eq!(looked.as_ref(), Some(&running), "{name}");
        let id = running;
        let listed = server.client().commands(&shell.id).await.expect("a list").commands;
        let listed: Vec<_> = listed.iter().map(|c| (c.id.clone(), c.status)).collect();
        assert_eq!(listed.last(), Some(&(id.clone(), CommandStatus::Running)), "{name}: {listed:?}");
        assert_eq!(shell.command(&id).await.status, CommandStatus::Running, "{name}");
        let keyed = async || {
            let done = server.client().execute(&shell.id, &channel.asks(), Some("one")).await;
            done.unwrap_or_else(|error| panic!("refused in {name}: {error}"))
        };
        let go = async {
            // So that it is asked for while it runs.
            eventually("it is asked for", async || shell.look().await.current_command).await;
            std::fs::write(folder.join("go"), "").expect("written");
        };
        let (again, two, ()) = tokio::join!(keyed(), keyed(), go);
        assert_eq!((again.id.as_str(), told(&again), ran(&folder)), (id.as_str(), told(&two), 1), "{name}");
        let has_code = !matches!(name, "python3" | "sqlite3" | "a program" | "hooks lost");
        assert_eq!((again.exit_code == Some(0), again.status), (has_code, CommandStatus::Completed), "{name}");
    }))
    .await;
}

#[tokio::test]
// promise: once-3
async fn a_command_that_ended_its_session_is_answered_as_it_ended() {
    let server = Server::start();
    for (command, code) in [("exit 5", Some(5)), ("exec true", Some(0)), ("kill -9 $$", None)] {
        let shell = server.session().await;
        let request = ExecuteRequest {
            command: format!("echo ran >>ran-{}; {command}", shell.id),
            timeout: Some(20.0),
            ..ExecuteRequest::default()
        };
        let keyed = async || {
            let done = server.client().execute(&shell.id, &request, Some("one")).await;
            done.unwrap_or_else(|error| panic!("{command}: {error}"))
        };
        let first = keyed().await;
        assert_eq!((first.status, first.ended_by), (CommandStatus::Terminated, Some(EndedBy::Exited)), "{first:?}");
        let again = keyed().await;
        assert_eq!((told(&again), again.ended_by), (told(&first), first.ended_by), "{command}");
        server.kill9();
        server.again();
        let again = keyed().await;
        assert_eq!((told(&again), again.ended_by), (told(&first), first.ended_by), "{command}, another server");
        assert_eq!(
            server.client().session(&shell.id).await.expect("kept").exit.and_then(|e| e.exit_code),
            code,
            "{command}"
        );
        let ran = std::fs::read_to_string(server.home().file(&format!("ran-{}", shell.id))).expect("it ran");
        assert_eq!(ran, "ran\n", "{command}");
        // A request that did not run before does not run now.
        let other = server.client().execute(&shell.id, &request, Some("two")).await.expect_err("it has ended");
        assert_eq!(other.code(), Some(ErrorCode::SessionEnded), "{command}");
        let other = ExecuteRequest { command: "echo other".to_owned(), ..request.clone() };
        let other = server.client().execute(&shell.id, &other, Some("one")).await.expect_err("another request");
        assert_eq!(other.code(), Some(ErrorCode::KeyReused), "{command}");
    }
}

#[tokio::test]
// promise: once-3
async fn a_repeated_input_is_answered_with_the_command_that_it_was_for() {
    let server = Server::start();
    let shell = server.session().await;
    let asked = shell.run("read -rp 'name? ' name; echo got:$name; (exit 3)").await;
    assert_eq!(asked.ended_by, Some(EndedBy::InputWanted), "{asked:?}");
    let request = InputRequest {
        input: Some("Ada".to_owned()),
        end_with_newline: true,
        timeout: Some(20.0),
        ..InputRequest::default()
    };
    let typed = async || server.client().input(&shell.id, &request, Some("once")).await.expect("answered");
    let first = typed().await;
    assert_eq!(first.command.as_ref().map(|c| (c.id.as_str(), c.exit_code)), Some(("c1", Some(3))), "{first:?}");
    shell.gives("echo after").await;
    let told = |answer: &WaitAnswer| {
        let command = answer.command.as_ref().map(|c| (c.id.clone(), c.exit_code));
        (answer.ended_by, command, answer.next_offset)
    };
    for _ in 0..2 {
        let again = typed().await;
        assert_eq!(told(&again), told(&first));
        // A server that took over from a killed one may not know that the question was shown, and shows it again.
        let before = again.output.strip_suffix(&first.output);
        assert!(before.is_some_and(|it| it.is_empty() || it == "name? "), "{again:?}");
        server.kill9();
        server.again();
    }
}

#[tokio::test]
// promise: once-3
async fn input_that_ended_its_session_is_answered_as_it_was() {
    let server = Server::start();
    let shell = server.session().await;
    let request = InputRequest { input: Some("exit 5\r".to_owned()), ..InputRequest::default() };
    let keyed = async || server.client().input(&shell.id, &request, Some("one")).await.expect("taken").accepted_bytes;
    assert_eq!(keyed().await, Some(7));
    let has_ended = async || shell.look().await.exit.map(|_| ());
    eventually("it has ended", has_ended).await;
    assert_eq!(keyed().await, Some(7));
    server.kill9();
    server.again();
    assert_eq!(keyed().await, Some(7));
    let other = server.client().input(&shell.id, &request, Some("two")).await.expect_err("it has ended");
    assert_eq!(other.code(), Some(ErrorCode::SessionEnded));
}

#[tokio::test]
// promise: once-3
async fn input_that_is_not_typed_again_leaves_the_session_as_it_was() {
    let server = Server::start();
    for channel in CHANNELS.iter().filter(|c| matches!(c.name, "inside sh" | "inside bash" | "python3" | "a program")) {
        let (shell, folder) = channel.session(&server).await;
        let name = channel.name;
        std::fs::write(folder.join("go"), "").expect("written");
        let input =
            InputRequest { input: Some(channel.command.to_owned()), end_with_newline: true, ..InputRequest::default() };
        let keyed = async || server.client().input(&shell.id, &input, Some("one")).await.expect("taken").accepted_bytes;
        let first = keyed().await;
        eventually("it has run", async || (ran(&folder) == 1).then_some(())).await;
        // So that the reader's state was reported before, and does not change any more.
        let reads = async || {
            let told = shell.look().await.foreground;
            matches!(told, Foreground::InputWanted | Foreground::Idle).then_some(())
        };
        eventually(&format!("{name} reads"), reads).await;
        assert_eq!(keyed().await, first, "{name}");
        eventually(&format!("{name} is known to read"), reads).await;
        let done = server.client().execute(&shell.id, &channel.asks(), None).await;
        assert!(done.is_ok(), "{name}: {done:?}");
        assert_eq!(ran(&folder), 2, "{name}");
    }
}

#[tokio::test]
// promise: once-3
async fn nobody_is_refused_for_the_own_command_asked_in_parallel() {
    let server = Server::start();
    let shell = server.session().await;
    for round in 0..30 {
        let request =
            ExecuteRequest { command: "echo ran >>ran".to_owned(), timeout: Some(20.0), ..Default::default() };
        let key = format!("round-{round}");
        let six = (0..6).map(async |_| server.client().execute(&shell.id, &request, Some(&key)).await);
        let six = join_all(six).await;
        let told: Vec<_> = six.iter().map(|done| done.as_ref().map(|d| (d.id.clone(), d.exit_code))).collect();
        assert!(told.iter().all(|one| matches!(one, Ok((_, Some(0))))), "round {round}: {told:?}");
        let ids: std::collections::HashSet<_> = told.iter().flatten().map(|(id, _)| id).collect();
        assert_eq!(ids.len(), 1, "round {round}: {told:?}");
    }
    assert_eq!(shell.gives("wc -l <ran").await, (0, "30\n".to_owned()));
}

#[tokio::test]
async fn a_key_is_known_when_its_command_has_left_the_memory() {
    let server = Server::start();
    let shell = server.session().await;
    let request = ExecuteRequest {
        command: "echo ran >>ran; echo said; (exit 3)".to_owned(),
        timeout: Some(20.0),
        ..Default::default()
    };
    let keyed = async || server.client().execute(&shell.id, &request, Some("one")).await.expect("it runs");
    let first = keyed().await;
    for _ in 0..70 {
        shell.gives("true").await;
    }
    let again = keyed().await;
    assert_eq!((&again.id, again.status, again.exit_code), (&first.id, first.status, first.exit_code));
    assert_eq!((again.output.as_deref(), again.ended_by), (Some("said\n"), Some(EndedBy::Ended)));
    assert_eq!(shell.gives("wc -l <ran").await, (0, "1\n".to_owned()));
}

/// The list and the current command, as text.
async fn story(server: &Server, shell: &Session) -> Vec<serde_json::Value> {
    let listed = server.client().commands(&shell.id).await.expect("a list").commands;
    let mut told: Vec<_> = listed.iter().map(|c| serde_json::to_value(c).expect("plain")).collect();
    told.push(serde_json::to_value(shell.look().await.current_command).expect("plain"));
    told
}

#[tokio::test]
// promise: crash-2
async fn the_next_server_and_the_records_agree_on_ends_that_no_shell_reported() {
    let server = Server::start();
    for (shell, commands) in [
        ("bash", vec!["echo before; (exit 2)", "exec bash --norc", "echo one", "echo two"]),
        ("bash", vec!["true", "exec dash", "echo one"]),
        ("python3", vec!["1 + 1", "print('two')"]),
        ("bash", vec!["bash --norc", "inside: echo in; exit 3", "sleep 0"]),
    ] {
        let session = server.session_with(CreateRequest { shell: Some(shell.to_owned()), ..Default::default() }).await;
        for command in &commands {
            let text = command.strip_prefix("inside: ");
            let request = ExecuteRequest {
                command: text.unwrap_or(command).to_owned(),
                inside: text.is_some(),
                timeout: Some(20.0),
                ..ExecuteRequest::default()
            };
            session.run_as(request).await;
        }
        let before = story(&server, &session).await;
        assert_eq!(before.len(), commands.len() + 1, "{commands:?}: {before:#?}");
        server.kill9();
        server.again();
        assert_eq!(story(&server, &session).await, before, "{commands:?}, the next server");
        session.ends().await;
        assert_eq!(story(&server, &session).await, before, "{commands:?}, the records");
        std::fs::remove_file(server.home().state().join("store.db")).expect("derived");
        server.stop();
        server.again();
        assert_eq!(story(&server, &session).await, before, "{commands:?}, the records without a store");
    }
}
