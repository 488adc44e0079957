//! Many sessions: beyond what the kernel gives, in a list, and over a restart.

use std::sync::Arc;
use std::time::{Duration, Instant};

use api::{CreateRequest, ErrorCode, ExecuteRequest, SessionList, SessionListQuery, SessionStatus};
use e2e::{Server, Start, count};

/// A session with a small shell.
fn small() -> CreateRequest {
    CreateRequest { shell: Some("sh".to_owned()), ..CreateRequest::default() }
}

fn folders(server: &Server) -> usize {
    std::fs::read_dir(server.home().state().join("sessions")).expect("there").flatten().count()
}

#[tokio::test]
// promise: limit-4
async fn the_refusal_names_a_remedy_if_the_kernel_gives_no_terminal_and_nothing_is_left() {
    const TERMINALS: usize = 3;
    let mount = format!("mount -t devpts -o newinstance,ptmxmode=666,max={TERMINALS} devpts /dev/pts && exec \"$@\"");
    let behind = ["unshare", "-m", "sh", "-c", mount.as_str(), "sh"];
    if !std::process::Command::new(behind[0]).args(&behind[1..]).arg("true").status().is_ok_and(|s| s.success()) {
        return e2e::not_run("only root can mount a small devpts");
    }
    let server = Server::start_as(Start { behind: behind.map(Into::into).to_vec(), ..Start::default() });
    let mut made = Vec::new();
    let refused = loop {
        match server.client().create(&small(), None).await {
            Ok(session) => made.push(session.id),
            Err(error) => break error,
        }
        assert!(made.len() <= TERMINALS, "it has no limit");
    };
    assert_eq!((refused.code(), made.len()), (Some(ErrorCode::ResourcesExhausted), TERMINALS), "{refused}");
    let told = refused.to_string();
    for part in ["no terminal can be opened", "/dev/pts may have 3 terminals", "mount -o remount,max=4096 /dev/pts"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert_eq!(folders(&server), TERMINALS, "nothing is left of it");
    assert_eq!(server.client().list(None).await.expect("a list").total as usize, TERMINALS);
    let doctor = server.ptyd(&["doctor"]).output().expect("ptyd");
    assert!(doctor.status.code().is_some(), "it ends");
    server.client().terminate(&made[0], true, None).await.expect("ended");
    server.client().create(&small(), None).await.expect("there is room for one");
}

#[tokio::test]
async fn a_list_reflects_earlier_answers() {
    let server = Server::start();
    let (shell, other) = (server.session().await, server.session().await);
    let row = async || {
        let list = server.client().list(None).await.expect("a list");
        assert_eq!(list.total, 2);
        list.terminals.into_iter().find(|row| row.id == shell.id).expect("it is listed")
    };
    for round in 0..count(20, 500) {
        let directory = ["/", "/dev"][round % 2];
        shell.gives(&format!("cd {directory}")).await;
        let now = row().await;
        assert_eq!((now.cwd.as_str(), now.current_command), (directory, None), "round {round}");
        let running = shell.begin("read answer").await;
        assert_eq!(row().await.current_command, Some(running.id.clone()), "round {round}");
        shell.types("go").await;
        shell.end_of(&running).await;
    }
    server.client().terminate(&shell.id, true, None).await.expect("ended");
    let left = server.client().list(None).await.expect("a list");
    assert_eq!(left.terminals.iter().map(|row| &row.id).collect::<Vec<_>>(), [&other.id]);
}

#[tokio::test(flavor = "multi_thread")]
// promise: crash-1
async fn after_a_kill_the_first_list_has_every_session_and_the_first_command_runs() {
    let server = Server::start();
    let only = server.client().create(&small(), None).await.expect("created").id;
    let mut alone = Vec::new();
    for round in 0..3 {
        alone.push(first_answers(&server, &only, round).await.0);
    }
    let all = count(30, 3_000);
    let mut making = tokio::task::JoinSet::new();
    for _ in 0..8.min(all) {
        let client = Arc::clone(server.client());
        making.spawn(async move {
            let mut ids = Vec::new();
            for _ in 0..all / 8 {
                ids.push(client.create(&small(), None).await.expect("created").id);
            }
            ids
        });
    }
    let mut ids = making.join_all().await.concat();
    ids.push(only);
    ids.sort();
    let mut among_all = Vec::new();
    for round in 0..3 {
        let (took, first) = first_answers(&server, &ids[(7 * round) % ids.len()], round).await;
        among_all.push(took);
        assert_eq!(first.total, ids.len(), "round {round}");
        let mut told: Vec<_> = first.terminals;
        while told.len() < ids.len() {
            let query = SessionListQuery { offset: Some(told.len() as u64), ..page() };
            told.extend(server.client().list_as(&query).await.expect("a list").terminals);
        }
        let strange = told.iter().find(|row| row.status != SessionStatus::Running || row.unreachable);
        assert!(strange.is_none(), "round {round}: {strange:?}");
        let mut listed: Vec<_> = told.into_iter().map(|row| row.id).collect();
        listed.sort();
        assert!(listed == ids, "round {round}: {} of {}", listed.len(), ids.len());
    }
    // The median of three: the first answers wait for no other session to be taken over.
    alone.sort();
    among_all.sort();
    println!("{all} sessions: {among_all:?}, one alone: {alone:?}");
    assert!(among_all[1] <= alone[1] * 10, "{among_all:?}, and {alone:?} of one alone");
}

fn page() -> SessionListQuery {
    SessionListQuery { limit: Some(1_000), ..SessionListQuery::default() }
}

/// Kills the server; the time from then until the next one has run a command in this session and told the first list.
async fn first_answers(server: &Server, id: &str, round: usize) -> (Duration, SessionList) {
    server.kill9();
    let begun = Instant::now();
    server.again();
    let request = ExecuteRequest {
        wait_for_completion: Some(true),
        command: format!("echo {round}"),
        ..ExecuteRequest::default()
    };
    let ran = server.client().execute(id, &request, None).await.expect("it runs");
    let first = server.client().list_as(&page()).await.expect("a list");
    assert_eq!(ran.output, Some(format!("{round}\n")));
    (begun.elapsed(), first)
}
