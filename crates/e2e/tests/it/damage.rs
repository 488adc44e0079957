//! Damage and a full disk: nothing is hidden, nothing sound is thrown away, and the server is there.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use api::{ExecuteRequest, OutputQuery, OutputView, SessionStatus};
use e2e::{Home, Server, Start, eventually, seq};

/// The ids of the sessions that have ended, as the list gives them.
async fn ended(server: &Server) -> Vec<String> {
    let list = server.client().list(Some("terminated")).await.expect("a list");
    assert_eq!(list.total, list.terminals.len());
    list.terminals.into_iter().map(|session| session.id).collect()
}

/// Starts the next server, with its store or without, which lists all of these ended sessions.
async fn starts_and_lists(server: &Server, ids: &[String], loses_store: bool) {
    if loses_store {
        assert!(server.stop().success());
        std::fs::remove_file(server.home().state().join("store.db")).expect("there");
    }
    server.again();
    let (mut listed, mut all) = (ended(server).await, ids.to_vec());
    listed.sort();
    all.sort();
    assert_eq!(listed, all, "the store is lost: {loses_store}");
}

#[tokio::test]
// promise: damage-2
async fn a_damaged_store_hides_no_session_whichever_page_it_is() {
    let server = Server::start();
    let mut ids = Vec::new();
    for number in 0..6 {
        let shell = server.session().await;
        shell.gives(&format!("echo {number} {}", "x".repeat(3_000))).await;
        shell.ends().await;
        ids.push(shell.id);
    }
    assert_eq!(ended(&server).await, ids);
    let store = server.home().state().join("store.db");
    // A server that ends before the last user of its store leaves a part of it in the log beside it.
    let sound = eventually("the store is in one file", async || {
        server.stop();
        let sound = std::fs::read(&store).expect("there");
        if sound.len() / 4096 > 6 {
            return Some(sound);
        }
        server.again();
        assert_eq!(ended(&server).await, ids);
        None
    })
    .await;
    let pages = sound.len() / 4096;
    for page in 0..pages {
        let mut bytes = sound.clone();
        bytes[page * 4096..(page + 1) * 4096].fill(0xa5);
        std::fs::write(&store, &bytes).expect("written");
        server.again();
        assert_eq!(ended(&server).await, ids, "page {page}");
        let last = ids.last().expect("some");
        let history = server.client().commands(last).await.expect("known");
        assert_eq!((history.total, history.commands[0].command.len()), (1, 3_007), "page {page}");
        assert!(server.home().state().join("store.damaged").exists(), "page {page}");
        // A killed server leaves its write-ahead log beside the file that is damaged next.
        if page % 2 == 0 {
            server.kill9();
        } else {
            server.stop();
        }
    }
    std::fs::write(&store, "nothing that anybody could read").expect("written");
    server.again();
    assert_eq!(ended(&server).await, ids);
}

#[tokio::test]
async fn a_folder_that_was_deleted_while_no_server_ran_is_forgotten() {
    let server = Server::start();
    let (gone, kept) = (server.session().await, server.session().await);
    gone.ends().await;
    kept.ends().await;
    server.stop();
    std::fs::remove_dir_all(server.home().state().join("sessions").join(&gone.id)).expect("removed");
    server.again();
    assert_eq!(ended(&server).await, [kept.id]);
}

/// A small disk at the state directory, which only our own children see and which outlives a server.
struct Disk {
    keeper: Child,
    state: PathBuf,
}

impl Disk {
    fn mount(home: &Home, size: &str) -> Option<Self> {
        let can = Command::new("unshare").args(["-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]).status();
        if !can.is_ok_and(|status| status.success()) {
            println!("not run: mounting needs root");
            return None;
        }
        let state = home.state();
        let script = format!(
            "mkdir -p {0} && mount -t tmpfs -o size={size},mode=700 tmpfs {0} && echo && exec cat",
            state.display()
        );
        let mut keeper = Command::new("unshare")
            .args(["-m", "sh", "-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("unshare");
        let mut line = [0];
        std::io::Read::read_exact(keeper.stdout.as_mut().expect("piped"), &mut line).expect("it is mounted");
        Some(Self { keeper, state })
    }

    fn start(&self) -> Start {
        let behind = ["nsenter", "-m", "-t", &self.keeper.id().to_string()].map(OsString::from).to_vec();
        // Retention removes no ended session, although the disk has no room.
        Start { behind, env: vec![("PTYD_RETENTION_FREE", "0".into())], ..Start::default() }
    }

    /// The path by which we see a file on it.
    fn file(&self, name: &str) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.keeper.id()));
        root.join(self.state.strip_prefix("/").expect("absolute")).join(name)
    }

    /// Takes all the room that is left.
    fn fill(&self) {
        let mut filler = std::fs::File::options().create(true).append(true).open(self.file("filler")).expect("a file");
        for size in [65_536, 4_096, 512, 1] {
            while filler.write(&vec![0; size]).is_ok_and(|written| written > 0) {}
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = self.keeper.kill().and_then(|()| self.keeper.wait());
    }
}

#[tokio::test]
// promise: disk-2
async fn a_server_starts_on_a_full_disk_knows_every_session_and_ends_them() {
    let home = Home::make();
    let Some(disk) = Disk::mount(&home, "12m") else { return };
    let server = Server::start_in(home, disk.start());
    let (old, live) = (server.session().await, server.session().await);
    old.gives("echo in the old one").await;
    old.ends().await;
    assert_eq!(ended(&server).await, std::slice::from_ref(&old.id));
    for is_stopped in [true, false] {
        disk.fill();
        if is_stopped {
            // It removes its `listen`, whose room is taken at once.
            assert!(server.stop().success());
            disk.fill();
        } else {
            server.kill9();
        }
        server.again();
        assert!(!disk.file("store.damaged").exists(), "a sound store is kept");
        let living = server.client().list(None).await.expect("a list").terminals;
        assert!(living.iter().any(|session| session.id == live.id));
        assert_eq!(ended(&server).await, std::slice::from_ref(&old.id));
        assert_eq!(old.command("c1").await.output.as_deref(), Some("in the old one\n"));
    }
    let stopped = server.ptyd(&["kill", &live.id]).status().expect("ptyd");
    assert!(stopped.success());
    // In a list at once, and although nothing can be written.
    assert_eq!(ended(&server).await, [old.id.clone(), live.id.clone()]);

    std::fs::remove_file(disk.file("filler")).expect("it can go");
    let shell = server.session().await;
    shell.gives("echo again").await;
    shell.ends().await;
    let all = [old.id, live.id, shell.id];
    assert_eq!(ended(&server).await, all);
    server.kill9();
    server.again();
    assert_eq!(ended(&server).await, all);
}

#[tokio::test]
// promise: disk-2
async fn a_full_disk_is_relieved_by_a_purge() {
    let home = Home::make();
    let Some(disk) = Disk::mount(&home, "12m") else { return };
    let server = Server::start_in(home, disk.start());
    let (old, waits) = (server.session().await, server.session().await);
    old.run("head -c 3000000 /dev/zero | tr '\\0' x").await;
    old.ends().await;
    disk.fill();
    let command = waits.begin("head -c 1000000 /dev/zero | tr '\\0' y; (exit 3)").await;
    eventually("it waits for the disk", async || waits.look().await.trouble).await;
    let listed = server.client().list(None).await.expect("a list").terminals;
    assert!(listed.iter().any(|session| session.id == waits.id && session.trouble.is_some()), "{listed:?}");
    let mut http = server.connect();
    let mut gauge = |name: &str| -> String {
        let text = String::from_utf8(http.ask("GET", "/metrics", "").expect("an answer").body).expect("text");
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name} in {text}"));
        line.rsplit(' ').next().expect("a figure").to_owned()
    };
    let readiness = || server.connect().ask("GET", "/readyz", "").expect("an answer");
    let waiting = readiness();
    let why = String::from_utf8_lossy(&waiting.body).into_owned();
    assert!(waiting.status == 503 && why.contains("1 session waits for room"), "{} {why}", waiting.status);
    assert_eq!(gauge("ptyd_sessions{state=\"stalled\"}"), "1");
    assert!(gauge("ptyd_disk_free_bytes").parse::<u64>().expect("a number") < 65_536);
    let said = |words: &str| server.logged().lines().filter(|l| l.contains(words) && l.contains(&waits.id)).count();
    assert_eq!(said("waits for room on the disk"), 1, "{}", server.logged());
    let purged = server.client().purge(&old.id, false).await.expect("it can be purged");
    assert!(purged.freed_bytes.is_some_and(|bytes| bytes >= 3_000_000), "{purged:?}");
    assert_eq!(waits.end_of(&command).await.exit_code, Some(3));
    assert_eq!(waits.look().await.status, SessionStatus::Running);
    assert_eq!((readiness().status, gauge("ptyd_sessions{state=\"stalled\"}").as_str()), (200, "0"));
    assert_eq!(said("waits for room on the disk no longer"), 1, "{}", server.logged());
    assert_eq!(
        waits
            .try_run(&ExecuteRequest { wait_for_completion: Some(true), command: "true".into(), ..Default::default() })
            .await
            .expect("room")
            .exit_code,
        Some(0)
    );
    assert_eq!(ended(&server).await, Vec::<String>::new());
}

#[tokio::test]
// promise: stop-5
async fn the_oldest_ended_sessions_make_room_for_one_that_lives() {
    let home = Home::make();
    let Some(disk) = Disk::mount(&home, "24m") else { return };
    let start = disk.start();
    let env = vec![("PTYD_RETENTION_FREE", "1000000".into()), ("PTYD_TEST_TIME_SCALE", "0.01".into())];
    let server = Server::start_in(home, Start { env, ..start });
    let mut old = Vec::new();
    for _ in 0..3 {
        let shell = server.session().await;
        shell.run("head -c 3000000 /dev/zero | tr '\\0' x").await;
        shell.ends().await;
        old.push(shell.id);
    }
    let waits = server.session().await;
    disk.fill();
    // Each of them makes more room than is asked for, so only the oldest goes.
    let command = waits.begin("head -c 1000000 /dev/zero | tr '\\0' y; (exit 3)").await;
    assert_eq!(waits.end_of(&command).await.exit_code, Some(3));
    let left =
        eventually("the oldest has gone", async || Some(ended(&server).await).filter(|left| left.len() < 3)).await;
    assert_eq!(left, old[1..]);
}

#[tokio::test]
async fn the_next_start_removes_files_that_a_kill_left_behind() {
    let server = Server::start();
    server.stop();
    let sessions = server.home().state().join("sessions");
    let left = [sessions.join("s0-aaaaaaaaaa"), sessions.join(".splice-1")];
    left.iter().for_each(|folder| std::fs::create_dir(folder).expect("made"));
    std::fs::write(left[1].join("journal"), "half").expect("written");
    std::fs::write(server.home().state().join("tokens.new"), "half").expect("written");
    server.again();
    // The server listens while it still looks at the folders.
    let is_empty = || std::fs::read_dir(&sessions).expect("there").count() == 0;
    eventually("they are removed", async || is_empty().then_some(())).await;
    assert!(!server.home().state().join("tokens.new").exists());
    assert!(!server.logged().contains("cannot be read"), "{}", server.logged());
}

/// Flips a bit of the file in the middle of the first of these words.
fn flip(file: &std::path::Path, words: &str) -> usize {
    let mut bytes = std::fs::read(file).expect("there");
    let at =
        bytes.windows(words.len()).position(|part| part == words.as_bytes()).expect("it is there") + words.len() / 2;
    bytes[at] ^= 0x04;
    std::fs::write(file, bytes).expect("written");
    at
}

#[tokio::test]
// promise: damage-3
async fn a_living_session_with_damaged_events_says_so_and_can_be_ended() {
    let server = Server::start();
    let shell = server.session().await;
    shell.gives("echo before").await;
    shell.gives("echo the damaged one").await;
    let events = server.home().state().join("sessions").join(&shell.id).join("events");
    server.kill9();
    let at = flip(&events, "echo the damaged one");
    server.again();
    let session = shell.look().await;
    assert_eq!(session.status, SessionStatus::Running);
    let trouble = session.trouble.expect("it is told");
    let told: usize =
        trouble.split("byte ").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok()).expect("a place");
    assert!(trouble.starts_with("damaged: events") && told < at && at - told < 200, "{trouble} ({at})");
    assert_eq!(shell.command("c1").await.output.as_deref(), Some("before\n"));
    // No command's end could be reported, so none is begun.
    assert_eq!(shell.refusal("echo after").await, Some(api::ErrorCode::SessionNotReady));
    assert_eq!(shell.ends().await.left, 0);
    for _ in 0..2 {
        let ended = shell.look().await;
        assert_eq!((ended.status, ended.trouble.as_deref()), (SessionStatus::Terminated, Some(trouble.as_str())));
        let exit = ended.exit.expect("it has ended");
        assert!(exit.reason.starts_with("how it ended is not known; damaged: events"), "{exit:?}");
        server.stop();
        server.again();
    }
}

#[tokio::test]
// promise: damage-3
async fn a_living_session_whose_spec_or_header_is_damaged_is_found_and_can_be_ended() {
    let server = Server::start();
    let (one, other) = (server.session().await, server.session().await);
    for shell in [&one, &other] {
        shell.gives("echo before").await;
    }
    server.kill9();
    let sessions = server.home().state().join("sessions");
    flip(&sessions.join(&one.id).join("spec"), "xterm-256color");
    flip(&sessions.join(&other.id).join("events"), "ptydevnt");
    server.again();
    for (shell, file) in [(&one, "damaged: spec"), (&other, "damaged: events")] {
        let session = shell.look().await;
        assert_eq!(session.status, SessionStatus::Running);
        assert!(session.trouble.as_ref().is_some_and(|trouble| trouble.starts_with(file)), "{session:?}");
        assert!(
            shell.bytes(0, session.journal.end_offset).await.windows(7).any(|part| part == b"before\r"),
            "{session:?}"
        );
        assert_eq!(shell.refusal("echo after").await, Some(api::ErrorCode::SessionNotReady));
        assert_eq!(shell.ends().await.left, 0);
        assert_eq!(shell.look().await.status, SessionStatus::Terminated);
    }
}

#[tokio::test]
// promise: damage-3
async fn damaged_ended_sessions_are_listed_and_name_the_unknown_facts() {
    let server = Server::start();
    let mut ids = Vec::new();
    for _ in 0..4 {
        let shell = server.session().await;
        shell.gives("echo before").await;
        shell.gives("seq 1 500").await;
        shell.ends().await;
        ids.push(shell.id);
    }
    assert_eq!(ended(&server).await, ids);
    let end = server.client().session(&ids[3]).await.expect("it is there").journal.end_offset;
    server.stop();
    let file = |number: usize, name: &str| server.home().state().join("sessions").join(&ids[number]).join(name);
    flip(&file(0, "events"), "seq 1 500");
    flip(&file(1, "spec"), "xterm-256color");
    let header = std::fs::read(file(2, "events")).expect("there");
    std::fs::write(file(2, "events"), [b"x", &header[1..]].concat()).expect("written");
    let journal = std::fs::File::options().write(true).open(file(3, "journal")).expect("there");
    let cut = journal.metadata().expect("there").len() - 1_000;
    journal.set_len(cut).expect("cut");
    server.again();
    assert_eq!(ended(&server).await, ids);
    let mut told = Vec::new();
    for id in &ids {
        let session = server.client().session(id).await.expect("it is there");
        assert_eq!((session.status, session.owner.is_empty()), (SessionStatus::Terminated, false));
        let trouble = session.trouble.expect("it is told");
        assert!(trouble.starts_with("damaged: "), "{trouble}");
        told.push(trouble);
    }
    let parts =
        ["events cannot be read from byte", "spec cannot be read", "events cannot be read (", "the output ends at"];
    for (trouble, part) in told.iter().zip(parts) {
        assert!(trouble.contains(part), "{trouble}");
    }
    // Whole records are read, and a cut one is reported.
    let command =
        async |number: usize, id: &str| server.client().command(&ids[number], id, 10_000).await.expect("known");
    for number in [0, 1, 3] {
        assert_eq!(command(number, "c1").await.output.as_deref(), Some("before\n"), "{number}");
    }
    let cut = command(3, "c2").await;
    assert!(cut.error.as_ref().is_some_and(|why| why.contains("output may be missing")), "{cut:?}");
    assert!(cut.omitted.as_ref().is_some_and(|omitted| (omitted.freed, omitted.to_offset) == (1_000, end)), "{cut:?}");
    assert_eq!(server.client().session(&ids[3]).await.expect("it is there").journal.end_offset, end);
    for id in &ids {
        assert!(server.client().purge(id, false).await.expect("it can be removed").freed_bytes.is_some());
    }
}

#[tokio::test]
// promise: damage-1
async fn records_cut_at_the_end_are_reported_as_damage_without_a_store_too() {
    let server = Server::start();
    let mut ids = Vec::new();
    for _ in 0..4 {
        let shell = server.session().await;
        shell.gives("echo before").await;
        shell.ends().await;
        ids.push(shell.id);
    }
    let killed = server.session().await;
    killed.gives("echo before").await;
    server.stop();
    // A record of its end, a part of it, and more than that; the first is whole.
    for (id, cut) in ids.iter().zip([0, 7, 45, 150]) {
        let events = server.home().state().join("sessions").join(id).join("events");
        let events = std::fs::File::options().write(true).open(events).expect("there");
        events.set_len(events.metadata().expect("there").len() - cut).expect("cut");
    }
    let store = server.home().state().join("store.db");
    for is_there in [true, false] {
        if !is_there {
            server.stop();
            std::fs::remove_file(&store).expect("there");
            server.again();
            server.stop();
            std::fs::write(&store, "nothing that anybody could read").expect("written");
        }
        server.again();
        assert_eq!(ended(&server).await, ids);
        for (number, id) in ids.iter().enumerate() {
            let session = server.client().session(id).await.expect("it is there");
            let exit = session.exit.expect("it has ended");
            let is_known = exit.reason == "terminated on request; the shell was killed by HUP";
            let is_unknown = exit.reason.starts_with("how it ended is not known");
            assert_eq!((is_known, is_unknown), (number == 0, number > 0), "{number}: {exit:?}");
            let is_told = session.trouble.as_ref().is_some_and(|trouble| trouble.starts_with("damaged: events"));
            assert_eq!(is_told, number > 0, "{number}: {:?}", session.trouble);
            assert_eq!(exit.exit_code, None, "{number}");
        }
    }
    assert_eq!(killed.ends().await.left, 0);
}

/// So many sessions that have printed and ended, and the server has stopped.
async fn sessions_that_have_ended(server: &Server, count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for _ in 0..count {
        let shell = server.session().await;
        shell.gives("echo before").await;
        shell.ends().await;
        ids.push(shell.id);
    }
    assert!(server.stop().success());
    ids
}

#[tokio::test]
// promise: damage-3
async fn ended_sessions_whose_journal_or_events_are_gone_are_listed_and_can_be_removed() {
    let server = Server::start();
    let ids = sessions_that_have_ended(&server, 7).await;
    let folder = |id: &String| server.home().state().join("sessions").join(id);
    std::fs::remove_file(folder(&ids[0]).join("journal")).expect("there");
    std::fs::remove_file(folder(&ids[1]).join("events")).expect("there");
    std::fs::create_dir(folder(&ids[1]).join("events")).expect("made");
    for file in ["journal", "events", "spec"] {
        std::fs::remove_file(folder(&ids[2]).join(file)).expect("there");
    }
    // In their places: a directory, a named pipe without a writer, and a link to itself.
    std::fs::remove_file(folder(&ids[3]).join("journal")).expect("there");
    std::fs::create_dir(folder(&ids[3]).join("journal")).expect("made");
    for (id, file) in [(&ids[4], "journal"), (&ids[5], "events")] {
        let file = folder(id).join(file);
        std::fs::remove_file(&file).expect("there");
        assert!(Command::new("mkfifo").arg(&file).status().expect("mkfifo").success());
    }
    let journal = folder(&ids[6]).join("journal");
    std::fs::remove_file(&journal).expect("there");
    std::os::unix::fs::symlink("journal", &journal).expect("linked");
    for loses_store in [false, true] {
        starts_and_lists(&server, &ids, loses_store).await;
        for id in &ids {
            let session = server.client().session(id).await.expect("it is there");
            let trouble = session.trouble.unwrap_or_default();
            assert!(trouble.starts_with("damaged: "), "{id}: {trouble}");
            for at in [session.created_at, session.last_activity, session.exit.expect("it has ended").at] {
                assert!(!at.starts_with("1970"), "{id}: {at}");
            }
        }
    }
    for id in [&ids[0], &ids[3], &ids[4], &ids[6]] {
        let recorded = server.client().recording(id, 2, |_| ()).await.expect_err("there is nothing to play");
        assert!(recorded.to_string().contains("damaged: journal cannot be read"), "{recorded}");
        let search = api::SearchQuery { q: "before".to_owned(), ..Default::default() };
        let found = server.client().search(id, &search).await.expect_err("there is nothing to search");
        assert!(found.to_string().contains("damaged: journal cannot be read"), "{found}");
    }
    for id in &ids {
        server.client().purge(id, false).await.expect("removed");
        assert!(!folder(id).exists(), "{id}");
    }
    assert_eq!(ended(&server).await, Vec::<String>::new());
}

#[tokio::test]
// promise: damage-3
async fn a_named_pipe_or_a_file_of_any_size_as_the_spec_delays_no_start() {
    let server = Server::start();
    let ids = sessions_that_have_ended(&server, 2).await;
    let spec = |id: &String| server.home().state().join("sessions").join(id).join("spec");
    // Far more than the memory of the server; the file is sparse and takes no space.
    std::fs::File::options().write(true).open(spec(&ids[0])).expect("there").set_len(1 << 40).expect("extended");
    std::fs::remove_file(spec(&ids[1])).expect("there");
    assert!(Command::new("mkfifo").arg(spec(&ids[1])).status().expect("mkfifo").success());
    for loses_store in [false, true] {
        starts_and_lists(&server, &ids, loses_store).await;
        for (id, why) in ids.iter().zip(["it is longer than", "it is not a regular file"]) {
            let trouble = server.client().session(id).await.expect("it is there").trouble.unwrap_or_default();
            assert!(trouble.starts_with("damaged: spec") && trouble.contains(why), "{id}: {trouble}");
        }
    }
    for id in &ids {
        server.client().purge(id, false).await.expect("purged");
    }
    assert_eq!(ended(&server).await, Vec::<String>::new());
}

/// The session's state, and the answer to a raw read of everything.
async fn told(shell: &e2e::Session) -> (Option<String>, api::Journal, Option<api::Gap>, Vec<u8>) {
    let session = shell.look().await;
    let query = OutputQuery { since: Some("o:0".to_owned()), view: Some(OutputView::Raw), ..Default::default() };
    let output = shell.output(&query).await;
    let bytes = shell.bytes(output.from_offset, session.journal.end_offset).await;
    (session.trouble, session.journal, output.gap, bytes)
}

#[tokio::test]
// promise: output-6
async fn a_journal_that_is_cut_under_a_living_session_is_reported_and_reads_as_a_gap_and_never_as_zeros() {
    for to in [0, 100, 5_000] {
        let server = Server::start();
        let shell = server.session().await;
        // A program that waits for input prints nothing more.
        let lost = shell.run_until("seq 1 3000; read -p 'ask: ' x", "ask: $").await;
        let journal = server.home().state().join("sessions").join(&shell.id).join("journal");
        let journal = std::fs::File::options().write(true).open(journal).expect("there");
        journal.set_len(to).expect("cut");

        // No output has come since, so only the file itself shows it.
        let session = shell.look().await;
        assert!(session.trouble.as_ref().is_some_and(|t| t.starts_with("damaged: the journal was cut")), "{session:?}");
        assert_eq!(session.status, SessionStatus::Running);
        let logged = server.logged();
        assert!(logged.lines().any(|l| l.contains("the journal was cut") && l.contains(&shell.id)), "{logged}");
        let query = OutputQuery { since: Some(format!("o:{to}")), view: Some(OutputView::Raw), ..Default::default() };
        let output = shell.output(&query).await;
        let gap = api::Gap { from: to, to: session.journal.end_offset };
        assert_eq!((output.gap, output.next_offset), (Some(gap), gap.to), "cut to {to}");
        let omitted = shell.command(&lost.id).await.omitted.expect("its end is missing");
        assert_eq!((omitted.from_offset, omitted.to_offset), (lost.start_offset.max(to), gap.to), "cut to {to}");

        shell.types("go").await;
        assert_eq!(shell.end_of(&lost).await.exit_code, Some(0));
        assert_eq!(shell.gives("echo on").await, (0, "on\n".to_owned()), "cut to {to}");
        let before = told(&shell).await;
        let (trouble, kept, missing, bytes) = &before;
        assert!(trouble.as_ref().is_some_and(|t| t.starts_with("damaged: the journal was cut")), "{trouble:?}");
        assert_eq!((kept.first_offset, *missing), (gap.to, Some(api::Gap { from: 0, to: gap.to })));
        assert!(!bytes.contains(&0) && bytes.windows(4).any(|part| part == b"on\r\n"), "{bytes:?}");
        let omitted = shell.command(&lost.id).await.omitted.expect("little of it is left");
        assert_eq!(omitted.freed, gap.to - lost.start_offset);
        server.kill9();
        server.again();
        // Its prompt may be longer by now.
        let after = told(&shell).await;
        assert_eq!((&after.0, after.1.first_offset, &after.2), (trouble, gap.to, missing), "cut to {to}");
        assert!(after.3.starts_with(bytes), "cut to {to}");
        assert_eq!(shell.gives("echo and on").await, (0, "and on\n".to_owned()));
        shell.ends().await;
        let ended = told(&shell).await;
        assert_eq!((&ended.0, ended.1.first_offset, &ended.2), (trouble, gap.to, missing), "cut to {to}");
        assert!(ended.3.starts_with(bytes), "cut to {to}");
        server.stop();
        server.again();
        assert_eq!(told(&shell).await, ended, "cut to {to}");
    }
}

#[tokio::test]
// promise: output-6
async fn a_journal_that_is_cut_under_a_running_command_leaves_its_end_exact() {
    let server = Server::start();
    let shell = server.session().await;
    let journal = server.home().state().join("sessions").join(&shell.id).join("journal");
    let command = shell.run_until("seq 1 3000; read -p 'ask: ' x; seq 1 100000; (exit 3)", "ask: $").await;
    std::fs::File::options().write(true).open(&journal).expect("there").set_len(0).expect("cut");
    shell.types("go").await;
    let done = shell.end_of(&command).await;
    assert_eq!(done.exit_code, Some(3));
    let (trouble, kept, _, bytes) = told(&shell).await;
    assert!(trouble.is_some_and(|t| t.starts_with("damaged: the journal was cut")));
    assert!(kept.first_offset > done.start_offset && !bytes.contains(&0), "{kept:?}");
    assert!(shell.bytes(kept.first_offset, done.end_offset.expect("ended")).await.ends_with(&seq(100_000)));
    assert_eq!(shell.gives("echo on").await, (0, "on\n".to_owned()));
}

/// Damage to a file.
#[derive(Debug, Clone, Copy)]
enum Harm {
    Byte(u64),
    Cut(u64),
    Removed,
}

impl Harm {
    fn does(self, path: &std::path::Path) {
        let file = std::fs::File::options().write(true).open(path).expect("there");
        let done = match self {
            Self::Byte(at) => std::os::unix::fs::FileExt::write_all_at(&file, &[0xa5], at),
            Self::Cut(length) => file.set_len(length),
            Self::Removed => std::fs::remove_file(path),
        };
        done.expect("done");
    }
}

#[tokio::test]
// promise: damage-3
async fn the_first_delete_ends_a_session_with_any_damage_of_events_or_spec() {
    let server = Server::start();
    let sessions = server.home().state().join("sessions");
    let events = [Harm::Byte(0), Harm::Byte(8), Harm::Byte(17), Harm::Cut(20), Harm::Cut(0), Harm::Removed];
    let spec = [Harm::Cut(20), Harm::Cut(0), Harm::Removed];
    for (name, harm) in events.map(|harm| ("events", harm)).into_iter().chain(spec.map(|harm| ("spec", harm))) {
        for (is_adopted, purges) in [(false, false), (false, true), (true, false), (true, true)] {
            let shell = server.session().await;
            shell.gives("echo before").await;
            harm.does(&sessions.join(&shell.id).join(name));
            if is_adopted {
                server.kill9();
                server.again();
            }
            let case = format!("{name} {harm:?}, adopted: {is_adopted}, purged: {purges}");
            let asked = if purges {
                server.client().purge(&shell.id, true).await
            } else {
                server.client().terminate(&shell.id, false, None).await
            };
            let told = asked.unwrap_or_else(|e| panic!("{case}: {e}"));
            assert_eq!((told.session.status, told.left), (SessionStatus::Terminated, 0), "{case}");
            assert!(!told.was_over, "{case}: {told:?}");
            if !purges {
                let session = shell.look().await;
                assert_eq!(session.status, SessionStatus::Terminated, "{case}: {session:?}");
                assert!(session.trouble.as_ref().is_some_and(|t| t.starts_with("damaged: ")), "{case}: {session:?}");
                let exit = session.exit.expect("it has ended");
                assert!(!exit.reason.is_empty(), "{case}");
                for at in [session.created_at, session.last_activity, exit.at] {
                    assert!(!at.starts_with("1970"), "{case}: an unknown time is bounded by that of the files: {at}");
                }
            }
        }
    }
}
