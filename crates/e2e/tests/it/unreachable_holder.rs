//! A holder that does not answer: its callers get an error in time, other sessions are unaffected, the session does not
//! count as ended, and it can be killed.

use std::path::Path;

use api::{CreateRequest, EndedBy, ErrorCode, ExecuteRequest, SessionStatus, WaitRequest};
use rustix::fs::{Mode, OFlags};
use rustix::process::Signal;

use e2e::{PATIENCE, Pid, Server, Session, Start, eventually, holder, join_all, lacks};

/// Stops the holder, as a frozen control group does, and waits until it is stopped.
async fn stopped(shell: &Session) -> Pid {
    let holder = holder(shell).await;
    holder.signal(Signal::STOP);
    eventually("it stands still", async || (holder.state() == Some('T')).then_some(())).await;
    holder
}

/// The code with which the server refuses a request; panics if it does not answer in time.
async fn refused<T: std::fmt::Debug>(asked: impl Future<Output = Result<T, client::ClientError>>) -> Option<ErrorCode> {
    let answered = tokio::time::timeout(PATIENCE, asked).await.expect("it is answered in time");
    answered.expect_err("the holder does not answer").code()
}

async fn is_reachable(shell: &Session) {
    eventually("it answers again", async || (!shell.look().await.unreachable).then_some(())).await;
}

#[tokio::test]
// promise: crash-5
async fn a_request_to_a_silent_holder_is_refused_in_time_and_others_notice_nothing() {
    const UNREACHABLE: Option<ErrorCode> = Some(ErrorCode::SessionUnreachable);
    let server = Server::start();
    let (shell, other) = (server.session().await, server.session().await);
    let held = stopped(&shell).await;
    let run = ExecuteRequest { command: "true".to_owned(), timeout: Some(2.0), ..Default::default() };
    let line = api::InputRequest { input: Some("\n".to_owned()), ..Default::default() };
    let size = api::Dimensions { cols: 90, rows: 30 };
    let client = server.client();
    let asks = async {
        tokio::join!(
            refused(client.execute(&shell.id, &run, None)),
            refused(client.input(&shell.id, &line, None)),
            refused(client.resize(&shell.id, size)),
        )
    };
    let others = async {
        for _ in 0..20 {
            assert_eq!(other.gives("echo unharmed").await, (0, "unharmed\n".to_owned()));
        }
    };
    let (codes, ()) = tokio::join!(asks, others);
    assert_eq!(codes, (UNREACHABLE, UNREACHABLE, UNREACHABLE));

    // From now on nothing more is sent to it, so nothing of this happens when it goes on.
    assert_eq!(refused(client.terminate(&shell.id, false, None)).await, UNREACHABLE);
    assert_eq!(
        refused(client.execute(&shell.id, &ExecuteRequest { command: "exit 9".to_owned(), ..run }, None)).await,
        UNREACHABLE
    );
    let seen = shell.look().await;
    assert_eq!((seen.status, seen.unreachable, seen.exit), (SessionStatus::Running, true, None));
    assert!(seen.trouble.is_some_and(|trouble| trouble.contains(&format!("process {}", held.number()))));
    let wait = WaitRequest { timeout: Some(0.2), wait_for: Some("never".to_owned()), ..Default::default() };
    assert_eq!(shell.wait(&wait).await.ended_by, EndedBy::TimedOut, "a wait ends by its time");
    let listed = client.list(None).await.expect("a list").terminals;
    assert!(listed.iter().any(|session| session.id == shell.id && session.unreachable));

    held.signal(Signal::CONT);
    is_reachable(&shell).await;
    // The holder had been sent it before it was given up.
    eventually("`true` has ended", async || shell.look().await.current_command.is_none().then_some(())).await;
    assert_eq!(shell.gives("echo back").await, (0, "back\n".to_owned()));
    assert!(shell.look().await.trouble.is_none());
}

#[tokio::test]
// promise: crash-5
async fn a_session_whose_holder_does_not_answer_is_ended_by_force_with_everything_in_it() {
    let server = Server::start();
    let (by_rest, by_command, after_restart) = (server.session().await, server.session().await, server.session().await);
    let all = [&by_rest, &by_command, &after_restart];
    let mut pids = Vec::new();
    for shell in all {
        let (_, pid) = shell.gives("(setsid sleep 1000 > /dev/null 2>&1 & echo $!)").await;
        pids.push(Pid::new(pid.trim().parse().expect("a pid")));
        pids.push(Pid::new(shell.look().await.pid.expect("it lives")));
        pids.push(stopped(shell).await);
    }
    let ended = tokio::time::timeout(PATIENCE, server.client().terminate(&by_rest.id, true, None)).await;
    let ended = ended.expect("in time").expect("ended");
    assert_eq!((ended.session.status, ended.left, ended.was_over), (SessionStatus::Terminated, 0, false));
    assert!(ended.killed >= 2, "{ended:?}");
    let mut kill = server.ptyd(&["kill", "--force", &by_command.id]);
    let kill = tokio::task::spawn_blocking(move || kill.output().expect("it runs"));
    let kill = tokio::time::timeout(PATIENCE, kill).await.expect("in time").expect("no panic");
    assert!(kill.status.success(), "{}", String::from_utf8_lossy(&kill.stderr));

    server.kill9();
    server.again();
    let ended = tokio::time::timeout(PATIENCE, server.client().terminate(&after_restart.id, true, None)).await;
    let ended = ended.expect("in time").expect("ended");
    assert_eq!((ended.session.status, ended.left, ended.was_over), (SessionStatus::Terminated, 0, false));
    for pid in pids {
        assert!(pid.ends_within(PATIENCE), "{} lives", pid.command_line());
    }
    let over = server.client().list(Some("terminated")).await.expect("a list").terminals;
    for shell in all {
        assert!(over.iter().any(|session| session.id == shell.id), "on record: {over:?}");
        let seen = shell.look().await;
        assert_eq!(seen.status, SessionStatus::Terminated);
        let reason = seen.exit.expect("it has ended").reason;
        assert!(reason.starts_with("terminated by force on request"), "{reason}");
    }
}

#[tokio::test]
// promise: crash-5
async fn the_next_server_serves_other_sessions_at_once_and_adopts_a_stopped_holder_when_it_continues() {
    let server = Server::start();
    let (shell, other) = (server.session().await, server.session().await);
    shell.gives("echo before").await;
    let pid = shell.look().await.pid;
    let held = stopped(&shell).await;
    server.kill9();
    server.again();
    assert_eq!(other.gives("echo unharmed").await, (0, "unharmed\n".to_owned()));
    let seen = shell.look().await;
    assert_eq!((seen.status, seen.unreachable, seen.exit, seen.pid), (SessionStatus::Running, true, None, pid));
    assert_eq!(shell.refusal("true").await, Some(ErrorCode::SessionUnreachable));
    let ids = async |status| {
        server.client().list(status).await.expect("a list").terminals.into_iter().map(|s| s.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(None).await, [shell.id.clone(), other.id.clone()]);
    assert!(ids(Some("terminated")).await.is_empty(), "only what has ended is told as ended");
    assert_eq!(shell.command("c1").await.output.as_deref(), Some("before\n"), "its records can be read");

    held.signal(Signal::CONT);
    is_reachable(&shell).await;
    assert_eq!(shell.look().await.pid, pid);
    assert_eq!(shell.gives("echo back").await, (0, "back\n".to_owned()));
}

#[tokio::test]
// promise: crash-1
async fn a_session_is_found_by_its_name_before_the_next_server_has_taken_it_on() {
    let server = Server::start();
    let shell = server.session_with(CreateRequest { name: Some("build".to_owned()), ..Default::default() }).await;
    let run = ExecuteRequest {
        command: "echo on".to_owned(),
        wait_for_completion: Some(true),
        timeout: Some(2.0),
        ..ExecuteRequest::default()
    };
    let held = stopped(&shell).await;
    server.kill9();
    server.again();
    let by_name = || server.client().execute("build", &run, None);
    assert_eq!(refused(by_name()).await, Some(ErrorCode::SessionUnreachable));
    held.signal(Signal::CONT);
    let ran = eventually("it runs", async || by_name().await.ok()).await;
    assert_eq!(ran.output.as_deref(), Some("on\n"));
}

#[tokio::test]
// promise: crash-5
async fn a_session_whose_socket_is_gone_lives_on_is_reported_and_can_be_ended_by_force() {
    let server = Server::start();
    let shell = server.session().await;
    let pid = Pid::new(shell.look().await.pid.expect("it lives"));
    let socket = server.home().state().join("sessions").join(&shell.id).join("control");
    std::fs::remove_file(socket).expect("there");
    server.kill9();
    server.again();
    let seen = shell.look().await;
    assert_eq!((seen.status, seen.unreachable, seen.exit), (SessionStatus::Running, true, None));
    assert!(seen.trouble.is_some_and(|trouble| trouble.contains("socket")));
    assert_eq!(refused(server.client().terminate(&shell.id, false, None)).await, Some(ErrorCode::SessionUnreachable));
    assert!(pid.is_alive(), "nothing of it was ended");
    let ended = server.client().terminate(&shell.id, true, None).await.expect("ended");
    assert_eq!((ended.session.status, ended.left), (SessionStatus::Terminated, 0));
    assert!(pid.ends_within(PATIENCE));
    for _ in 0..2 {
        let seen = shell.look().await;
        let reason = seen.exit.expect("it has ended").reason;
        assert!(reason.starts_with("terminated by force on request"), "{reason}");
        assert_eq!(seen.trouble, None, "nothing of it is damaged");
        server.kill9();
        server.again();
    }
    assert!(!server.logged().contains("damaged"), "{}", server.logged());
}

#[tokio::test]
// promise: crash-5
async fn a_session_without_socket_whose_holder_file_is_damaged_or_gone_lives_on_and_is_not_pruned() {
    let server = Server::start();
    let (cut, gone) = (server.session().await, server.session().await);
    let living = [&cut, &gone];
    let mut pids = Vec::new();
    for shell in living {
        pids.push(Pid::new(shell.look().await.pid.expect("it lives")));
    }
    server.kill9();
    let folder = |shell: &Session| server.home().state().join("sessions").join(&shell.id);
    let claim = std::fs::File::options().write(true).open(folder(&cut).join("holder")).expect("there");
    claim.set_len(20).expect("cut");
    std::fs::remove_file(folder(&gone).join("holder")).expect("there");
    for shell in living {
        std::fs::remove_file(folder(shell).join("control")).expect("there");
    }
    server.again();
    for shell in living {
        let seen = shell.look().await;
        assert_eq!((seen.status, seen.unreachable, seen.exit), (SessionStatus::Running, true, None));
    }
    let pruned = server.ptyd(&["prune", "--ended"]).output().expect("it runs");
    assert!(pruned.status.success(), "{}", String::from_utf8_lossy(&pruned.stderr));
    for (shell, pid) in living.iter().zip(&pids) {
        assert!(folder(shell).join("journal").exists() && pid.is_alive(), "nothing of it was ended");
        let ended = server.client().terminate(&shell.id, true, None).await.expect("ended");
        assert_eq!((ended.session.status, ended.left, ended.was_over), (SessionStatus::Terminated, 0, false));
        assert!(ended.killed > 0 && pid.ends_within(PATIENCE), "{ended:?}");
    }
}

/// Listens on `control` in the working directory as a holder of protocol 65535 does, says when it does, and ends with the process
/// that is given.
const FOREIGN_HOLDER: &str = "
import os, select, socket, struct, sys
ends = os.pidfd_open(int(sys.argv[1]))
listener = socket.socket(socket.AF_UNIX)
listener.bind('control')
listener.listen(64)
print('listens', flush=True)
held = []
while ends not in select.select([ends, listener], [], [])[0]:
    held.append(listener.accept()[0])
    held[-1].sendall(struct.pack('<IBHIIHHIQQ', 35, 0x82, 65535, 1, 1, 80, 24, 0, 0, 64))
";

#[tokio::test]
// promise: crash-5
async fn a_holder_with_an_unknown_protocol_is_reported_left_alone_and_ended_by_force() {
    if lacks(&["python3"]) {
        return;
    }
    let server = Server::start();
    let (shell, other) = (server.session().await, server.session().await);
    shell.gives("echo before").await;
    let (pid, held) = (Pid::new(shell.look().await.pid.expect("it lives")), holder(&shell).await);
    server.kill9();
    let folder = server.home().state().join("sessions").join(&shell.id);
    std::fs::rename(folder.join("control"), folder.join("control-of-its-own")).expect("there");
    let mut foreign = std::process::Command::new("python3")
        .args(["-c", FOREIGN_HOLDER, &held.number().to_string()])
        .current_dir(&folder)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("it can be executed");
    let mut line = String::new();
    let mut told = std::io::BufReader::new(foreign.stdout.take().expect("a pipe"));
    std::io::BufRead::read_line(&mut told, &mut line).expect("it says that it listens");

    server.again();
    let seen = shell.look().await;
    assert_eq!((seen.status, seen.unreachable, seen.exit), (SessionStatus::Running, true, None));
    assert!(seen.trouble.as_ref().is_some_and(|trouble| trouble.contains("protocol 65535")), "{:?}", seen.trouble);
    assert_eq!(shell.refusal("true").await, Some(ErrorCode::SessionUnreachable));
    assert_eq!(shell.command("c1").await.output.as_deref(), Some("before\n"), "its records can be read");
    assert_eq!(other.gives("echo unharmed").await, (0, "unharmed\n".to_owned()));
    assert_eq!(refused(server.client().terminate(&shell.id, false, None)).await, Some(ErrorCode::SessionUnreachable));
    assert!(pid.is_alive() && held.is_alive(), "nothing of it was ended");
    let ended = server.client().terminate(&shell.id, true, None).await.expect("ended");
    assert_eq!((ended.session.status, ended.left), (SessionStatus::Terminated, 0));
    assert!(pid.ends_within(PATIENCE) && held.ends_within(PATIENCE));
    assert!(foreign.wait().expect("ours to wait for").success());
}

/// Changes one byte of a file of the session's folder.
fn damage(server: &Server, shell: &Session, file: &str) {
    let path = server.home().state().join("sessions").join(&shell.id).join(file);
    let mut bytes = std::fs::read(&path).expect("there");
    bytes[0] ^= 0xff;
    let file = std::fs::File::options().write(true).open(&path).expect("there");
    std::os::unix::fs::FileExt::write_all_at(&file, &bytes[..1], 0).expect("written");
}

#[tokio::test]
// promise: damage-3
async fn a_live_session_with_damaged_files_is_listed_says_so_and_can_be_ended() {
    let server = Server::start();
    for force in [false, true] {
        let (spec, events) = (server.session().await, server.session().await);
        let mut pids = Vec::new();
        for (shell, file) in [(&spec, "spec"), (&events, "events")] {
            shell.gives("echo kept").await;
            pids.push(Pid::new(shell.look().await.pid.expect("it lives")));
            damage(&server, shell, file);
        }
        server.kill9();
        server.again();
        let listed = server.client().list(None).await.expect("a list").terminals;
        for shell in [&spec, &events] {
            let seen = listed.iter().find(|session| session.id == shell.id).expect("it is listed");
            assert_eq!(seen.status, SessionStatus::Running);
            assert!(seen.trouble.as_ref().is_some_and(|t| t.contains("damaged")), "{seen:?}");
            assert_eq!(shell.look().await.trouble, seen.trouble);
            assert_eq!(shell.refusal("true").await, Some(ErrorCode::SessionNotReady));
            let purged = server.client().purge(&shell.id, false).await.expect_err("it lives");
            assert_eq!(purged.code(), Some(ErrorCode::SessionAlive));
            let ended = server.client().terminate(&shell.id, force, None).await.expect("ended");
            assert_eq!((ended.session.status, ended.left, ended.was_over), (SessionStatus::Terminated, 0, false));
        }
        for pid in pids {
            assert!(pid.ends_within(PATIENCE));
        }
    }
}

/// A named pipe at which a process of a debug build waits until the test lets it go.
fn pipe(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status().expect("mkfifo");
    assert!(made.success());
}

#[tokio::test]
// promise: crash-5
async fn a_named_pipe_as_the_holder_file_or_the_note_of_force_holds_up_neither_a_forced_end_nor_others() {
    let server = Server::start();
    let (answers, is_silent, other) = (server.session().await, server.session().await, server.session().await);
    let mut pids = Vec::new();
    for shell in [&answers, &is_silent] {
        pids.push(Pid::new(shell.look().await.pid.expect("it lives")));
        pids.push(holder(shell).await);
        let folder = server.home().state().join("sessions").join(&shell.id);
        std::fs::remove_file(folder.join("holder")).expect("there");
        for file in ["holder", "killed-on-request"] {
            pipe(&folder.join(file));
        }
    }
    stopped(&is_silent).await;
    let end = |id| tokio::time::timeout(PATIENCE, server.client().terminate(id, true, None));
    let others = async {
        for _ in 0..20 {
            assert_eq!(other.gives("echo unharmed").await, (0, "unharmed\n".to_owned()));
        }
    };
    let (one, two, ()) = tokio::join!(end(&answers.id), end(&is_silent.id), others);
    for ended in [one, two] {
        let ended = ended.expect("in time").expect("ended");
        assert_eq!((ended.session.status, ended.left, ended.was_over), (SessionStatus::Terminated, 0, false));
    }
    for pid in pids {
        assert!(pid.ends_within(PATIENCE));
    }
}

/// Waits until a process has come to the pipe; it goes on when the result is dropped.
async fn has_come(path: &Path) -> std::fs::File {
    // Without waiting, a pipe can be opened for writing once a process has it open for reading (fifo(7)).
    let open = || rustix::fs::open(path, OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty());
    eventually("it comes", async || open().ok().map(Into::into)).await
}

fn stalling(point: &str) -> (Server, std::path::PathBuf) {
    let home = e2e::Home::make();
    let file = home.file("stall");
    let fault = format!("{point}:{}", file.display()).into();
    (Server::start_in(home, Start { env: vec![("PTYD_FAULT", fault)], ..Start::default() }), file)
}

#[tokio::test]
// promise: disk-3
async fn one_creation_that_waits_for_the_disk_delays_nobody_else() {
    let (server, file) = stalling("create");
    let shell = server.session().await;
    pipe(&file);
    let mut creating = Vec::new();
    let mut stalled = Vec::new();
    // More than the server has workers.
    for i in 0..8 {
        let client = std::sync::Arc::clone(server.client());
        let key = format!("key-{i}");
        creating.push(tokio::spawn(async move { client.create(&Default::default(), Some(&key)).await }));
    }
    stalled.push(has_come(&file).await);
    std::fs::remove_file(&file).expect("there");
    assert_eq!(server.connect().ask("GET", "/livez", "").expect("an answer").status, 200);
    assert_eq!(shell.gives("echo unharmed").await, (0, "unharmed\n".to_owned()));
    let made = server.client().create(&Default::default(), Some("another-key")).await.expect("another is made");
    assert_eq!(made.status, SessionStatus::Running);
    assert!(creating.iter().any(|one| !one.is_finished()), "the stalled ones wait");
    drop(stalled);
    for made in join_all(creating).await {
        made.expect("no panic").expect("made in the end");
    }
}

#[tokio::test]
// promise: disk-3
async fn no_list_hangs_if_the_disk_of_the_store_does_not_answer_and_live_sessions_are_listed_at_once() {
    let (server, file) = stalling("store");
    let (live, old) = (server.session().await, server.session().await);
    old.ends().await;
    pipe(&file);
    let client = std::sync::Arc::clone(server.client());
    let asked = tokio::spawn(async move { client.list(Some("terminated")).await });
    let frozen = has_come(&file).await;
    std::fs::remove_file(&file).expect("there");
    let listed = server.client().list(None).await.expect("a list").terminals;
    assert_eq!(listed.iter().map(|session| &session.id).collect::<Vec<_>>(), [&live.id]);
    assert_eq!(live.gives("echo unharmed").await, (0, "unharmed\n".to_owned()));
    assert!(!asked.is_finished(), "it waits for the disk");
    // More than may wait at once, none of which waits for ever.
    let more = (0..40).map(|_| server.client().list(Some("terminated")));
    for refused in join_all(more).await.into_iter().chain([asked.await.expect("no panic")]) {
        let refused = refused.expect_err("the disk does not answer");
        assert_eq!(refused.code(), Some(ErrorCode::ResourcesExhausted), "{refused}");
        assert!(refused.to_string().contains("store.db") && refused.to_string().contains("retry later"), "{refused}");
    }
    assert_eq!(live.gives("echo unharmed").await, (0, "unharmed\n".to_owned()));
    drop(frozen);
    eventually("the disk answers again", async || {
        let list = server.client().list(Some("terminated")).await.ok()?;
        (list.terminals.len() == 1 && list.terminals[0].id == old.id).then_some(())
    })
    .await;
}

#[tokio::test]
// promise: disk-3
async fn a_purge_and_a_wait_fail_in_time_if_the_disk_of_the_store_does_not_answer() {
    // Each waits until ptyd's patience with a disk ends.
    let cases = [("store", false), ("store-write", false), ("store-write", true), ("removal", true)];
    join_all(cases.map(async |(point, purges)| {
        let (server, file) = stalling(point);
        let (live, old) = (server.session().await, server.session().await);
        old.ends().await;
        pipe(&file);
        let (client, id) = (std::sync::Arc::clone(server.client()), [&live.id, &old.id][usize::from(purges)].clone());
        let asked = tokio::spawn(async move {
            let wait = WaitRequest { wait_for: Some("never".into()), timeout: Some(1.0), ..Default::default() };
            if purges { client.purge(&id, false).await.map(drop) } else { client.wait(&id, &wait).await.map(drop) }
        });
        let frozen = has_come(&file).await;
        let refused = tokio::time::timeout(PATIENCE, asked).await.expect("in time").expect("no panic");
        let refused = refused.expect_err("the disk does not answer");
        let (code, named) = match point {
            "removal" => (ErrorCode::RemovalContinues, "the removal continues"),
            _ => (ErrorCode::ResourcesExhausted, "store.db"),
        };
        assert_eq!(refused.code(), Some(code), "{point}: {refused}");
        assert!(refused.to_string().contains(named), "{point}: {refused}");
        std::fs::remove_file(&file).expect("there");
        assert_eq!(live.gives("echo unharmed").await, (0, "unharmed\n".to_owned()));
        drop(frozen);
        if purges {
            eventually("it is purged", async || {
                let again = server.client().purge(&old.id, false).await;
                again.is_err_and(|e| e.code() == Some(ErrorCode::SessionNotFound)).then_some(())
            })
            .await;
        }
    }))
    .await;
}

#[tokio::test]
// promise: crash-8
async fn a_server_inside_a_session_says_that_it_cannot_serve_that_session() {
    let server = Server::start();
    let (around, other) = (server.session().await, server.session().await);
    let (go, pid) = (server.home().file("go"), server.home().file("pid"));
    pipe(&go);
    let serve = server.ptyd(&["serve"]);
    let variables = server.home().environment();
    let variables: Vec<_> = variables.iter().map(|(name, value)| format!("{name}='{}'", value.display())).collect();
    let command = format!(
        "(read -r _ <'{}'; exec env -i {} '{}' serve >/dev/null 2>'{}') & echo $! >'{}'",
        go.display(),
        variables.join(" "),
        serve.get_program().to_string_lossy(),
        server.home().file("inner.log").display(),
        pid.display()
    );
    assert_eq!(around.run(&command).await.exit_code, Some(0));
    server.kill9();
    std::fs::write(&go, "go\n").expect("it is read");
    let trouble = eventually("it serves, and knows of each", async || {
        let list = server.client().list(None).await.ok()?.terminals;
        let of = |id: &str| list.iter().find(|session| session.id == id);
        let is_taken_on = of(&other.id).is_some_and(|session| !session.unreachable);
        of(&around.id).filter(|session| is_taken_on && session.unreachable)?.trouble.clone()
    })
    .await;
    let why = "this server runs inside this session, and a holder refuses programs of its own session; start the server \
               outside of it";
    assert_eq!(trouble, why);
    let log = std::fs::read_to_string(server.home().file("inner.log")).expect("a log");
    let said = log.lines().filter(|line| line.contains(why) && line.contains(&around.id)).count();
    assert_eq!(said, 1, "{log}");
    let inner: u32 = std::fs::read_to_string(&pid).expect("written").trim().parse().expect("a pid");
    let inner = Pid::new(inner);
    inner.kill();
    assert!(inner.ends_within(PATIENCE));
    server.again();
    is_reachable(&around).await;
    assert_eq!(around.gives("echo back").await, (0, "back\n".to_owned()));
}

#[tokio::test]
// promise: once-1
async fn a_create_that_the_server_did_not_survive_is_one_session_when_it_is_asked_again() {
    for point in ["begin", "claimed"] {
        let (server, file) = stalling(point);
        pipe(&file);
        let client = std::sync::Arc::clone(server.client());
        let first = tokio::spawn(async move { client.create(&Default::default(), Some("once")).await });
        let held = has_come(&file).await;
        server.kill9();
        assert!(first.await.expect("no panic").is_err(), "the server died before it answered");
        std::fs::remove_file(&file).expect("there");
        server.again();
        let again = server.client().create(&Default::default(), Some("once")).await.expect("asked again");
        drop(held);
        let shell = Session::new(std::sync::Arc::clone(server.client()), again.id.clone());
        eventually("it runs", async || {
            let now = shell.look().await;
            (now.status == SessionStatus::Running && !now.unreachable).then_some(())
        })
        .await;
        assert_eq!(shell.gives("echo once").await, (0, "once\n".to_owned()));
        let once_more = server.client().create(&Default::default(), Some("once")).await.expect("asked once more");
        assert_eq!(once_more.id, again.id);
        let folders = || std::fs::read_dir(server.home().state().join("sessions")).expect("there").flatten().count();
        let holders = || {
            let all = e2e::marked(server.home().path());
            all.into_iter().filter(|pid| pid.command_line().starts_with("ptyd-holder")).count()
        };
        eventually("one folder and one holder", async || ((folders(), holders()) == (1, 1)).then_some(())).await;
        server.kill9();
        server.again();
        let ids: Vec<_> =
            server.client().list(None).await.expect("a list").terminals.into_iter().map(|s| s.id).collect();
        assert_eq!(ids, [again.id], "{point}");
    }
}

#[tokio::test]
// promise: once-1
async fn a_create_whose_server_and_holder_died_starts_a_session_when_it_is_asked_again() {
    let (server, file) = stalling("claimed");
    pipe(&file);
    let client = std::sync::Arc::clone(server.client());
    let first = tokio::spawn(async move { client.create(&Default::default(), Some("once")).await });
    let held = has_come(&file).await;
    let holders = || {
        let all = e2e::marked(server.home().path());
        all.into_iter().filter(|pid| pid.command_line().starts_with("ptyd-holder")).collect::<Vec<_>>()
    };
    server.kill9();
    assert!(first.await.expect("no panic").is_err(), "the server died before it answered");
    holders().into_iter().for_each(Pid::kill);
    eventually("no holder is left", async || holders().is_empty().then_some(())).await;
    drop(held);
    std::fs::remove_file(&file).expect("there");
    server.again();
    let again = server.client().create(&Default::default(), Some("once")).await.expect("asked again");
    assert_eq!((again.status, &again.exit), (SessionStatus::Running, &None));
    let shell = Session::new(std::sync::Arc::clone(server.client()), again.id.clone());
    assert_eq!(shell.gives("echo once").await, (0, "once\n".to_owned()));
    let ids = async |status| -> Vec<String> {
        server.client().list(status).await.expect("a list").terminals.into_iter().map(|session| session.id).collect()
    };
    assert_eq!((ids(None).await, ids(Some("terminated")).await), (vec![again.id], Vec::new()));
}

#[tokio::test]
// promise: crash-6
async fn a_session_at_which_the_server_fails_again_and_again_says_so_and_its_bytes_can_be_read() {
    let home = e2e::Home::make();
    let doom = home.file("doom");
    let fault = format!("turn:{}", doom.display()).into();
    let server = Server::start_in(home, Start { env: vec![("PTYD_FAULT", fault)], ..Start::default() });
    let shell = server.session().await;
    shell.gives("echo kept").await;
    let trouble = eventually("it is not taken up for ever", async || {
        match server.client().session(&shell.id).await {
            Ok(session) if session.unreachable && session.trouble.as_ref().is_some_and(|t| t.contains("bug")) => {
                return session.trouble;
            }
            Ok(_) => {}
            Err(error) => assert_eq!(error.code(), Some(ErrorCode::ServerRestarting), "{error}"),
        }
        // It fails once for each time that the file is there.
        std::fs::write(&doom, "").expect("written");
        None
    })
    .await;
    let _ = std::fs::remove_file(&doom);
    assert!(trouble.contains("5 times"), "{trouble}");
    assert!(String::from_utf8_lossy(&shell.journal().await).contains("kept"), "its bytes can be read");
    let ended = server.client().terminate(&shell.id, false, None).await.expect("ended");
    assert_eq!((ended.session.status, ended.left), (SessionStatus::Terminated, 0));
}

#[tokio::test]
// promise: rest-7
async fn a_server_without_descriptors_says_that_the_same_request_is_worth_trying_again() {
    let behind = ["prlimit", "--nofile=256:256"].map(Into::into).to_vec();
    let server = Server::start_as(Start { behind, ..Start::default() });
    let mut http = server.connect();
    let mut made = Vec::new();
    let refused = loop {
        let reply = http.ask("POST", "/terminals", "{}").expect("an answer");
        if reply.status != 201 {
            break reply;
        }
        made.push(reply.json()["id"].as_str().expect("an id").to_owned());
        assert!(made.len() < 256, "it has no limit");
    };
    assert_eq!(
        (refused.status, refused.json()["code"].as_str()),
        (503, Some("resources_exhausted")),
        "{}",
        refused.json()
    );
    assert!(refused.header("retry-after").is_some_and(|seconds| seconds.parse::<u32>().is_ok_and(|s| s > 0)));
    for id in made {
        // The records of the first one may not be openable, for the same lack.
        let reply = http.ask("DELETE", &format!("/terminals/{id}?force=true"), "").expect("an answer");
        assert!(matches!(reply.status, 200 | 503), "{}", reply.json());
    }
    assert_eq!(http.ask("POST", "/terminals", "{}").expect("an answer").status, 201, "it was worth it");
}

#[tokio::test]
// promise: limit-4
async fn a_server_with_too_few_descriptors_for_its_sessions_answers_and_takes_them_on_as_others_end() {
    let limit = tempfile::NamedTempFile::new().expect("a file");
    let allows = |descriptors: &str| std::fs::write(limit.path(), descriptors).expect("written");
    allows("4096");
    // A holder inherits the hard limit of the server that started it, and a shell needs more than the second server has.
    let script = format!("exec prlimit --nofile=$(cat {}) \"$@\"", limit.path().display());
    let behind = ["sh", "-c", &script, "sh"].map(Into::into).to_vec();
    let server = Server::start_as(Start { behind, ..Start::default() });
    let mut shells = Vec::new();
    for _ in 0..24 {
        shells.push(server.session().await);
    }
    server.kill9();
    allows("90");
    server.again();
    let waits = async || {
        let mut waiting = Vec::new();
        for shell in &shells {
            let view = shell.look().await;
            if view.unreachable && view.trouble.as_deref().is_some_and(|why| why.contains("90 descriptors")) {
                waiting.push(shell.id.clone());
            }
        }
        (waiting.len() == 22).then_some(waiting)
    };
    let waiting = eventually("two of them have their descriptors", waits).await;
    let mut http = server.connect();
    let refused = http.ask("POST", "/terminals", "{}").expect("an answer");
    assert_eq!((refused.status, refused.json()["code"].as_str()), (503, Some("resources_exhausted")));
    let (adopted, others): (Vec<_>, Vec<_>) = shells.iter().partition(|shell| !waiting.contains(&shell.id));
    assert_eq!(adopted[0].gives("echo on").await, (0, "on\n".to_owned()));
    for shell in adopted {
        server.client().terminate(&shell.id, true, None).await.expect("ended");
    }
    eventually("the next ones have theirs", async || {
        let mut reached = 0;
        for shell in &others {
            reached += usize::from(!shell.look().await.unreachable);
        }
        (reached == 2).then_some(())
    })
    .await;
    // Few at a time would end slowly.
    server.kill9();
    allows("4096");
    server.again();
}
