//! Crashes: the server is killed again and again, replaced, and its holders are killed; no byte and no code is lost.

use std::path::PathBuf;
use std::time::Duration;

use api::{CommandStatus, CreateRequest, EndedBy, SessionStatus};
use e2e::printer::{check, printer};

use e2e::{Home, PATIENCE, Random, Server, Start, count, eventually, holder, join_all, seq, spare_holders};

#[tokio::test]
// promise: crash-7
async fn the_spare_holder_takes_the_next_session_can_be_missing_and_ends_with_its_server() {
    let server = Server::start();
    let spare = async || {
        let found = async || spare_holders(server.home().path()).first().copied();
        eventually("a spare holder", found).await
    };
    let killed = spare().await;
    killed.kill();
    assert!(killed.ends_within(PATIENCE));
    let without = server.session().await;
    assert_eq!(without.gives("echo without").await, (0, "without\n".to_owned()));
    let next = spare().await;
    let with = server.session().await;
    assert_eq!(with.gives("echo with").await, (0, "with\n".to_owned()));
    assert_eq!(holder(&with).await, next);
    assert!(next.command_line().ends_with(&format!("/sessions/{}", with.id)), "{}", next.command_line());
    let last = spare().await;
    server.kill9();
    assert!(last.ends_within(PATIENCE));
    assert!(next.is_alive());
}

#[tokio::test]
// promise: crash-1
async fn the_server_can_be_killed_at_any_moment_and_no_byte_is_lost() {
    let mut random = Random::seeded();
    let server = Server::start();
    let shells = join_all((0..count(2, 20)).map(async |_| server.session().await)).await;
    let printing =
        join_all(shells.iter().enumerate().map(async |(number, shell)| shell.begin(&printer(number)).await)).await;
    for round in 0..count(5, 1_000) {
        server.kill9_after(random.moment(Duration::from_millis(150)));
        server.launch();
        // Every other time it is killed again while it starts.
        if round % 2 == 0 {
            server.is_ready();
        }
    }
    server.is_ready();
    let pids = join_all(shells.iter().map(async |shell| shell.look().await.pid)).await;
    assert!(pids.iter().all(Option::is_some), "all are alive: {pids:?}");
    std::fs::write(server.home().file("stop"), "").expect("written");
    for (number, (shell, printing)) in shells.iter().zip(&printing).enumerate() {
        check(&server, number, shell, printing).await;
    }
}

#[tokio::test]
// promise: crash-2
async fn a_command_that_began_before_a_kill_gives_its_result_after() {
    let server = Server::start();
    let (ends_during, ends_after, waits) = (server.session().await, server.session().await, server.session().await);
    let first = ends_during.begin("sleep 0.3; echo during; (exit 5)").await;
    let second = ends_after.begin("until [ -e go ]; do sleep 0.05; done; echo after; (exit 6)").await;
    let asked = waits.run("read -p 'name? ' n; echo got $n").await;
    let pid = ends_during.look().await.pid;
    server.kill9();
    // The first ends without a reader.
    let files = server.home().file("");
    let is_over = async || {
        let shown = std::fs::read(files.join("../state/ptyd/sessions").join(&ends_during.id).join("journal"))
            .unwrap_or_default();
        shown.windows(6).any(|window| window == b"during").then_some(())
    };
    eventually("it prints without a server", is_over).await;
    server.again();
    let done = ends_during.end_of(&first).await;
    assert_eq!(
        (done.exit_code, done.output.as_deref(), ends_during.look().await.pid),
        (Some(5), Some("during\n"), pid)
    );
    std::fs::write(server.home().file("go"), "").expect("written");
    let done = ends_after.end_of(&second).await;
    assert_eq!((done.exit_code, done.output.as_deref()), (Some(6), Some("after\n")));
    waits.types("John").await;
    let done = waits.end_of(&asked).await;
    assert_eq!((done.exit_code, done.output.as_deref()), (Some(0), Some("name? John\ngot John\n")));
}

/// A server that dies, or whose holders die, at a named point while a file is there; only a debug build does.
fn doomed(point: &str) -> (Server, PathBuf) {
    let home = Home::make();
    let file = home.file("doom");
    let fault = format!("{point}:{}", file.display()).into();
    (Server::start_in(home, Start { env: vec![("PTYD_FAULT", fault)], ..Start::default() }), file)
}

#[tokio::test]
// promise: crash-1
async fn a_server_that_dies_before_it_indexes_or_while_it_adopts_loses_nothing() {
    for point in ["index", "adopt"] {
        let (server, doom) = doomed(point);
        let shells = join_all((0..count(2, 4)).map(async |_| server.session().await)).await;
        let printing =
            join_all(shells.iter().enumerate().map(async |(number, shell)| shell.begin(&printer(number)).await)).await;
        std::fs::write(&doom, "").expect("written");
        if point == "adopt" {
            server.kill9();
        }
        for _ in 0..3 {
            // The first time it runs; then it dies of the same again and again.
            if server.is_down() {
                server.launch();
            }
            assert!(server.pid().ends_within(PATIENCE), "it dies at {point}");
            server.kill9();
        }
        std::fs::remove_file(&doom).expect("there");
        server.again();
        std::fs::write(server.home().file("stop"), "").expect("written");
        for (number, (shell, printing)) in shells.iter().zip(&printing).enumerate() {
            check(&server, number, shell, printing).await;
        }
    }
}

#[tokio::test]
// promise: crash-4
async fn a_holder_that_dies_between_reading_and_telling_leaves_a_journal_that_is_read_to_its_last_byte() {
    for point in ["read", "written"] {
        let (server, doom) = doomed(point);
        let shell = server.session().await;
        let printing = shell.run_until(&printer(0), "^100$").await;
        std::fs::write(&doom, "").expect("written");
        let session = eventually("it is seen", async || {
            Some(shell.look().await).filter(|session| session.status == SessionStatus::Terminated)
        })
        .await;
        assert!(session.exit.is_some_and(|exit| exit.reason.contains("holder")), "{point}");
        let file = std::fs::read(&session.log_file).expect("there");
        // The next server tries out for itself how a terminal is read.
        std::fs::remove_file(&doom).expect("there");
        server.kill9();
        server.again();
        assert!(shell.journal().await == file, "{point}: every byte of the file can be read");
        let printed = file.get(usize::try_from(printing.start_offset).expect("small")..).expect("it has begun");
        let lines = printed.iter().filter(|byte| **byte == b'\n').count();
        assert!(lines > 0 && seq(lines + 1).starts_with(printed), "{point}: what was printed, without a gap");
        assert_eq!(server.session().await.gives("echo on").await, (0, "on\n".to_owned()));
        std::fs::write(server.home().file("stop"), "").expect("written");
    }
}

#[tokio::test]
// promise: crash-3
async fn an_upgrade_ends_nothing() {
    let server = Server::start();
    let shells = join_all((0..count(2, 4)).map(async |_| server.session().await)).await;
    let printing =
        join_all(shells.iter().enumerate().map(async |(number, shell)| shell.begin(&printer(number)).await)).await;
    let before = join_all(shells.iter().map(async |shell| shell.look().await.pid)).await;
    server.upgrade();
    let after = join_all(shells.iter().map(async |shell| shell.look().await.pid)).await;
    assert_eq!(before, after);
    std::fs::write(server.home().file("stop"), "").expect("written");
    for (number, (shell, printing)) in shells.iter().zip(&printing).enumerate() {
        check(&server, number, shell, printing).await;
    }
}

#[tokio::test]
// promise: crash-3
async fn a_wait_that_the_stopping_server_cuts_short_says_that_it_is_worth_asking_again() {
    let server = Server::start();
    let shell = server.session().await;
    let waits = tokio::spawn({
        let shell = shell.clone();
        async move {
            shell
                .try_run(&api::ExecuteRequest {
                    wait_for_completion: Some(true),
                    command: "touch began; sleep 1; echo done".to_owned(),
                    ..Default::default()
                })
                .await
        }
    });
    eventually("it runs", async || server.home().file("began").exists().then_some(())).await;
    let stopped = tokio::task::spawn_blocking({
        let pid = server.pid();
        move || pid.signal(rustix::process::Signal::TERM)
    });
    stopped.await.expect("sent");
    let cut = waits.await.expect("no panic").expect_err("the server stops");
    assert!(cut.is_outage(), "{cut}");
    assert_eq!(cut.code(), Some(api::ErrorCode::ServerRestarting));
    assert!(server.stop().success());
    server.again();
    let done = shell.end_of(&shell.command("c1").await).await;
    assert_eq!((done.exit_code, done.output.as_deref()), (Some(0), Some("done\n")));
}

#[tokio::test]
// promise: crash-4
async fn a_holder_that_is_killed_at_any_moment_leaves_what_it_read_and_no_invented_end() {
    let mut random = Random::seeded();
    let server = Server::start();
    let other = server.session().await;
    for round in 0..count(3, 200) {
        let shell = server.session().await;
        let printing = shell.begin(&printer(round)).await;
        let holds = holder(&shell).await;
        tokio::time::sleep_until(tokio::time::Instant::now() + random.moment(Duration::from_millis(50))).await;
        holds.kill();
        let session = eventually("it is seen", async || {
            Some(shell.look().await).filter(|session| session.status == SessionStatus::Terminated)
        })
        .await;
        let end = shell.command(&printing.id).await;
        assert_eq!((end.exit_code, session.exit.is_some()), (None, true), "round {round}: {end:?}");
        let file = std::fs::read(&session.log_file).expect("there");
        assert!(shell.journal().await == file, "round {round}: every byte of the file can be read");
        let printed = &file[usize::try_from(printing.start_offset).expect("small")..];
        let lines = printed.iter().filter(|byte| **byte == b'\n').count();
        assert!(seq(lines + 1).starts_with(printed), "round {round}: a gap or a stranger's byte in {lines} lines");
        assert_eq!(other.gives("echo unaffected").await, (0, "unaffected\n".to_owned()));
    }
}

#[tokio::test]
// promise: crash-4
async fn a_holder_that_dies_while_no_server_runs_is_noticed_by_the_next() {
    let server = Server::start();
    let (shell, other) = (server.session().await, server.session().await);
    shell.gives("seq 1 1000").await;
    let printed = shell.journal().await;
    let (holds, runs) = (holder(&shell).await, e2e::Pid::new(shell.look().await.pid.expect("it lives")));
    server.kill9();
    holds.kill();
    assert!(holds.ends_within(PATIENCE));
    server.again();
    let session = eventually("it is seen", async || {
        Some(shell.look().await).filter(|session| session.status == SessionStatus::Terminated)
    })
    .await;
    assert!(session.exit.is_some_and(|exit| exit.reason.contains("holder")));
    assert!(runs.ends_within(PATIENCE), "its shell is gone");
    assert!(shell.journal().await.starts_with(&printed), "what was written can be read");
    assert_eq!(other.gives("echo unaffected").await, (0, "unaffected\n".to_owned()));
}

#[tokio::test]
// promise: crash-4
async fn a_command_whose_holder_is_killed_has_the_same_end_for_every_caller() {
    let server = Server::start();
    let shell = server.session().await;
    let begun = shell.begin("sleep 100").await;
    let holds = holder(&shell).await;
    holds.kill();
    assert!(holds.ends_within(PATIENCE));
    let session = eventually("it is seen", async || {
        Some(shell.look().await).filter(|session| session.status == SessionStatus::Terminated)
    })
    .await;
    let at = session.exit.expect("it has ended").at;
    assert_eq!(shell.command(&begun.id).await.completed_at, Some(at.clone()));
    assert_eq!(shell.look().await.exit.expect("it has ended").at, at);
}

#[tokio::test]
// promise: crash-2
async fn the_next_server_reports_every_command_as_the_previous_one_did() {
    let server = Server::start();
    let (alive, ended) = (server.session().await, server.session().await);
    let mut told = Vec::new();
    for i in 0..40 {
        for shell in [&alive, &ended] {
            shell.run(&format!("cd /; echo {i}; (exit {})", i % 7)).await;
        }
    }
    for shell in [&alive, &ended] {
        for i in 1..=40 {
            told.push(shell.command(&format!("c{i}")).await);
        }
    }
    ended.ends().await;
    server.kill9();
    server.again();
    let mut again = Vec::new();
    for shell in [&alive, &ended] {
        for i in 1..=40 {
            again.push(shell.command(&format!("c{i}")).await);
        }
    }
    assert_eq!(again, told);
}

/// A builtin of each shell that reads in the shell's own editor, and a code of what came.
const EDITS: [(&str, &str); 3] =
    [("bash", "read -e n; (exit $n)"), ("zsh", "n=; vared n; (exit $n)"), ("fish", "read n; sh -c \"exit $n\"")];

#[tokio::test]
// promise: crash-2
async fn a_command_that_uses_the_shells_own_editor_is_the_same_to_the_next_servers() {
    let server = Server::start();
    let one = async |(shell, text): (&str, &str)| {
        let shell = server.session_with(CreateRequest { shell: Some(shell.to_owned()), ..Default::default() }).await;
        let asked = shell.run(text).await;
        assert_eq!(asked.ended_by, Some(EndedBy::InputWanted), "{asked:?}");
        (shell, asked)
    };
    let all = join_all(EDITS.map(one)).await;
    server.kill9();
    server.again();
    for (shell, asked) in &all {
        let now = shell.look().await;
        assert_eq!(
            (now.current_command.as_ref(), now.foreground),
            (Some(&asked.id), api::Foreground::InputWanted),
            "{asked:?}"
        );
        shell.types("7").await;
        let done = shell.end_of(asked).await;
        assert_eq!(done.exit_code, Some(7), "{done:?}");
        shell.ends().await;
    }
    server.kill9();
    server.again();
    for (shell, asked) in &all {
        let done = shell.command(&asked.id).await;
        assert_eq!((done.status, done.exit_code), (CommandStatus::Completed, Some(7)), "{done:?}");
    }
}

#[tokio::test]
// promise: crash-2
async fn a_key_that_begins_a_sequence_in_the_shells_own_editor_costs_no_exit_code() {
    let server = Server::start();
    for (shell, text) in [("bash", "read -e x; (exit 7)"), ("zsh", "x=; vared x; (exit 7)")] {
        let shell = server.session_with(CreateRequest { shell: Some(shell.to_owned()), ..Default::default() }).await;
        let asked = shell.run(text).await;
        assert_eq!(asked.ended_by, Some(EndedBy::InputWanted), "{asked:?}");
        for key in ["Escape", "C-v", "a"] {
            let until = vec!["quiet:600".to_owned()];
            let keys = Some(vec![key.to_owned()]);
            shell.input(&api::InputRequest { keys, until, timeout: Some(20.0), ..Default::default() }).await;
        }
        let now = shell.command(&asked.id).await;
        assert_eq!((now.status, now.boundary), (CommandStatus::Running, api::Boundary::Attested), "{now:?}");
        shell.types("").await;
        let done = shell.end_of(&asked).await;
        assert_eq!((done.exit_code, done.boundary), (Some(7), api::Boundary::Attested), "{done:?}");
        assert!(!done.output.unwrap_or_default().contains("338~"), "the report key became input");
    }
}

#[tokio::test]
// promise: crash-6
async fn a_fault_in_one_session_ends_nothing_and_the_session_is_taken_up_again() {
    let (server, doom) = doomed("turn");
    let (shell, other) = (server.session().await, server.session().await);
    let asked = shell.run("cd /; read -rp 'name? ' name; echo got $name; (exit 7)").await;
    assert_eq!(asked.ended_by, Some(EndedBy::InputWanted));
    let mut http = server.connect();
    for _ in 0..3 {
        std::fs::write(&doom, "").expect("written");
        // A request meanwhile is answered to retry, and not that the session has ended.
        let seen = eventually("it is taken up again", async || {
            let has_faulted = !doom.exists();
            let reply = http.ask("GET", &format!("/terminals/{}", shell.id), "").expect("an answer");
            assert!(matches!(reply.status, 200 | 503), "{}", reply.json());
            (reply.status == 200 && has_faulted).then(|| reply.json())
        })
        .await;
        assert_eq!(seen["status"], "running");
    }
    shell.types("John").await;
    let done = shell.end_of(&asked).await;
    assert_eq!((done.exit_code, done.output.as_deref()), (Some(7), Some("name? John\ngot John\n")));
    assert_eq!(other.gives("echo unharmed").await, (0, "unharmed\n".to_owned()));
}
