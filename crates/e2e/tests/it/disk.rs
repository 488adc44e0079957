//! The disk: full, freed, limited, and without the store.

use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use api::{EndedBy, OutputQuery, OutputView, SessionStatus, WaitRequest};
use e2e::{Server, Start, eventually, seq};

/// Whether this machine lets us mount something that only our own children see.
fn can_mount() -> bool {
    let can = Command::new("unshare").args(["-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]).status();
    let can = can.is_ok_and(|status| status.success());
    if !can {
        e2e::not_run("only root can mount a small disk");
    }
    can
}

#[tokio::test]
// promise: disk-1
async fn a_full_disk_stops_the_program_and_room_lets_it_continue() {
    if !can_mount() {
        return;
    }
    let mount =
        "mkdir -p \"$PTYD_STATE_DIR\" && mount -t tmpfs -o size=6m,mode=700 tmpfs \"$PTYD_STATE_DIR\" && exec \"$@\"";
    let behind = ["unshare", "-m", "sh", "-c", mount, "sh"].map(Into::into).to_vec();
    let server = Server::start_as(Start { behind, ..Start::default() });
    let shell = server.session().await;
    // The server's own view of the folder; ours is another.
    let inside = PathBuf::from(format!("/proc/{}/root", server.pid().number()))
        .join(server.home().state().strip_prefix("/").expect("absolute"));
    std::fs::write(inside.join("filler"), vec![0u8; 3 << 20]).expect("room for it");
    let lines = 600_000;
    let command = shell.begin(&format!("seq 1 {lines}; (exit 3)")).await;
    let trouble = eventually("the session says so", async || shell.look().await.trouble).await;
    assert!(trouble.contains("waits"), "{trouble}");
    let quiet = WaitRequest { quiet_ms: Some(300), timeout: Some(5.0), ..Default::default() };
    assert_eq!(shell.wait(&quiet).await.ended_by, EndedBy::Quiet, "the program waits");
    assert_eq!(shell.command(&command.id).await.exit_code, None);

    let mounted = format!("mount -o remount,size=64m {}", server.home().state().display());
    let pid = server.pid().number().to_string();
    let status = Command::new("nsenter").args(["-t", &pid, "-m", "sh", "-c", &mounted]).status().expect("nsenter");
    assert!(status.success());
    std::fs::remove_file(inside.join("filler")).expect("it can go");
    let done = shell.end_of(&command).await;
    assert_eq!(done.exit_code, Some(3));
    assert!(shell.bytes_of(&done).await == seq(lines), "nothing was lost");
    let session = shell.look().await;
    assert_eq!((session.trouble, session.status), (None, SessionStatus::Running));
    assert_eq!(shell.gives("echo on").await, (0, "on\n".to_owned()));
}

#[tokio::test]
// promise: disk-1
async fn an_exit_is_recorded_although_the_disk_is_full() {
    if !can_mount() {
        return;
    }
    let mount =
        "mkdir -p \"$PTYD_STATE_DIR\" && mount -t tmpfs -o size=4m,mode=700 tmpfs \"$PTYD_STATE_DIR\" && exec \"$@\"";
    let behind = ["unshare", "-m", "sh", "-c", mount, "sh"].map(Into::into).to_vec();
    let server = Server::start_as(Start { behind, ..Start::default() });
    let shell = server.session().await;
    shell.begin("yes").await;
    eventually("the session says so", async || shell.look().await.trouble).await;
    let ended = shell.ends().await;
    assert_eq!((ended.session.status, ended.left), (SessionStatus::Terminated, 0));
    assert!(shell.look().await.exit.is_some());
}

#[tokio::test]
// promise: disk-1
async fn an_exit_waits_for_room_for_the_last_output() {
    if !can_mount() {
        return;
    }
    let mount =
        "mkdir -p \"$PTYD_STATE_DIR\" && mount -t tmpfs -o size=6m,mode=700 tmpfs \"$PTYD_STATE_DIR\" && exec \"$@\"";
    let behind = ["unshare", "-m", "sh", "-c", mount, "sh"].map(Into::into).to_vec();
    let server = Server::start_as(Start { behind, ..Start::default() });
    let shell = server.session().await;
    shell.gives("true").await;
    let inside = PathBuf::from(format!("/proc/{}/root", server.pid().number()))
        .join(server.home().state().strip_prefix("/").expect("absolute"));
    let mut filler = std::fs::File::create(inside.join("filler")).expect("room for it");
    while filler.write(&[0; 4096]).is_ok_and(|written| written > 0) {}
    // More than what is left of the journal's last page, and less than the kernel keeps of a terminal that hangs up.
    let page = 4096 - shell.look().await.journal.end_offset % 4096;
    let numbers = page / 5 + 300;
    shell.begin(&format!("printf %05d {{1..{numbers}}}; exit 3")).await;
    eventually("the session says so", async || shell.look().await.trouble.filter(|trouble| trouble.contains("exited")))
        .await;
    let waiting = shell.look().await;
    assert_eq!((waiting.status, waiting.exit), (SessionStatus::Running, None));

    drop(filler);
    std::fs::remove_file(inside.join("filler")).expect("it can go");
    let session = eventually("it has ended", async || {
        Some(shell.look().await).filter(|session| session.status == SessionStatus::Terminated)
    })
    .await;
    assert_eq!((session.exit.and_then(|exit| exit.exit_code), session.trouble), (Some(3), None));
    let printed: String = (1..=numbers).map(|number| format!("{number:05}")).collect();
    let journal = String::from_utf8(shell.journal().await).expect("text");
    assert!(journal.contains(&printed), "nothing was lost: {journal:?}");
}

#[tokio::test]
// promise: output-3
async fn old_output_is_freed_and_its_readers_learn_of_the_gap() {
    let limit: u64 = 1 << 20;
    let server =
        Server::start_as(Start { env: vec![("PTYD_JOURNAL_BYTES_MAX", limit.to_string().into())], ..Start::default() });
    let shell = server.session().await;
    let gate = server.home().path().join("gate");
    // The server has seen the beginning before the flood removes it.
    let command = shell
        .run_until(&format!("mkfifo {0}; echo begins; read -r _ < {0}; seq 1 600000", gate.display()), "begins")
        .await;
    tokio::task::spawn_blocking(move || std::fs::write(gate, "go\n").expect("it is read")).await.expect("written");
    let done = shell.end_of(&command).await;
    assert_eq!((done.exit_code, done.output_size), (Some(0), ("begins\r\n".len() + seq(600_000).len()) as u64));
    let journal = shell.look().await.journal;
    let kept = journal.end_offset - journal.first_offset;
    assert!(journal.first_offset > 0 && kept >= limit / 2 && kept <= 2 * limit, "{journal:?}");
    let query = OutputQuery { since: Some("o:0".to_owned()), view: Some(OutputView::Raw), ..Default::default() };
    let output = shell.output(&query).await;
    assert_eq!(
        (output.gap, output.from_offset),
        (Some(api::Gap { from: 0, to: output.first_offset }), output.first_offset)
    );
    let commands = OutputQuery { kind: Some(api::OutputKind::Command), ..query };
    assert_eq!(shell.output(&commands).await.gap, output.gap, "nobody knows of which kind it was");
    let search = api::SearchQuery { q: "^600000$".to_owned(), since: Some("o:0".to_owned()), ..Default::default() };
    let found = server.client().search(&shell.id, &search).await.expect("a search");
    assert_eq!((found.gap, found.matches.len()), (output.gap, 1));
    let end = done.end_offset.expect("it has ended");
    let newest = shell.bytes(output.first_offset, end).await;
    assert!(seq(600_000).ends_with(&newest), "what is kept is the newest, exactly");
    // The command's text names what is freed, what can still be read, and ends with the newest lines: together all of it.
    let command = shell.command(&done.id).await;
    let omitted = command.omitted.expect("more than fits");
    let read_from = done.start_offset + omitted.freed;
    let read_bytes = omitted.to_offset - read_from;
    let line = format!(
        "[… {} bytes omitted: the first {} are no longer kept; GET …/output?since=o:{read_from}&maxBytes={read_bytes}]\n",
        omitted.freed + read_bytes,
        omitted.freed,
    );
    assert_eq!((omitted.from_offset, read_from), (done.start_offset, output.first_offset));
    let text = command.output.expect("its text");
    let tail = text.strip_prefix(&line).unwrap_or_else(|| panic!("{line:?} does not begin {text:?}"));
    // Each line ends with a carriage return in the journal, which is not in the text.
    let tail = tail.replace('\n', "\r\n");
    assert!(seq(600_000).ends_with(tail.as_bytes()), "the newest lines");
    assert_eq!(omitted.freed + read_bytes + tail.len() as u64, done.output_size, "0 bytes unaccounted for");
    let file = std::fs::metadata(shell.look().await.log_file).expect("there");
    let on_disk = std::os::unix::fs::MetadataExt::blocks(&file) * 512;
    assert!(on_disk < 3 * limit, "{on_disk} bytes are still on the disk");
}

#[tokio::test]
// promise: damage-2
async fn the_store_can_be_lost_and_sessions_and_history_are_back() {
    let server = Server::start();
    let (alive, ended) = (server.session().await, server.session().await);
    alive.gives("echo in the living").await;
    ended.gives("echo in the dead; false").await;
    ended.run("exit 4").await;
    server.stop();
    let state = server.home().state();
    for name in ["store.db", "store.db-wal", "store.db-shm"] {
        let _ = std::fs::remove_file(state.join(name));
    }
    let left = std::fs::read_dir(&state)
        .expect("there")
        .flatten()
        .filter(|e| e.file_name().to_string_lossy().starts_with("store"));
    assert_eq!(left.count(), 0);
    server.again();
    let ids = async |status| {
        server.client().list(status).await.expect("a list").terminals.into_iter().map(|s| s.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(None).await, std::slice::from_ref(&alive.id));
    assert_eq!(ids(Some("terminated")).await, std::slice::from_ref(&ended.id));
    let history = server.client().commands(&ended.id).await.expect("known").commands;
    let told: Vec<_> = history.iter().map(|c| (c.command.as_str(), c.exit_code)).collect();
    assert_eq!(told, [("echo in the dead; false", Some(1)), ("exit 4", None)]);
    assert_eq!(ended.command("c1").await.output.as_deref(), Some("in the dead\n"));
    assert_eq!(ended.look().await.exit.expect("how").exit_code, Some(4));
    assert_eq!(alive.command("c1").await.output.as_deref(), Some("in the living\n"));
    assert_eq!(alive.gives("echo and goes on").await, (0, "and goes on\n".to_owned()));
}

#[tokio::test]
// promise: damage-2
async fn the_whole_history_of_a_session_is_rebuilt() {
    const COUNT: usize = 200;
    let server = Server::start();
    let (alive, ended) = (server.session().await, server.session().await);
    for shell in [&alive, &ended] {
        for i in 1..=COUNT {
            shell.run(&format!("echo {i}; (exit {})", i % 8)).await;
        }
    }
    // Asked once; a server that reads this again must not answer again.
    let asked = alive.begin("printf '\\033[6n'; read -rsn1; read -rsdR; true").await;
    assert_eq!(alive.end_of(&asked).await.exit_code, Some(0));
    let last = alive.begin("sleep 1000").await;
    ended.ends().await;
    server.stop();
    for name in ["store.db", "store.db-wal", "store.db-shm"] {
        let _ = std::fs::remove_file(server.home().state().join(name));
    }
    server.again();
    assert_eq!(alive.look().await.current_command.as_ref(), Some(&last.id), "the first answer is true already");
    for (shell, more) in [(&alive, 2), (&ended, 0)] {
        let history = server.client().commands(&shell.id).await.expect("known");
        assert_eq!((history.total, history.commands.len()), (COUNT + more, COUNT + more));
        for (i, command) in (1..).zip(history.commands.iter().take(COUNT)) {
            assert_eq!((command.id.as_str(), command.exit_code), (format!("c{i}").as_str(), Some(i % 8)));
            assert_eq!(shell.command(&command.id).await.output.as_deref(), Some(format!("{i}\n").as_str()));
        }
    }
    alive.signal("INT").await;
    assert_eq!(alive.end_of(&last).await.exit_code, Some(130));
    assert_eq!(alive.gives("echo and goes on").await, (0, "and goes on\n".to_owned()), "nothing was typed meanwhile");
}
