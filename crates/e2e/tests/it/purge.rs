//! Purging: the records of an ended session can be removed at once and completely.

use std::path::Path;

use api::{CreateRequest, ErrorCode, SessionStatus};
use e2e::{Server, Start, eventually};

/// The files below this folder in which these bytes are.
fn holding(folder: &Path, bytes: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(holding(&path, bytes));
        } else if std::fs::read(&path).is_ok_and(|text| text.windows(bytes.len()).any(|part| part == bytes.as_bytes()))
        {
            found.push(path.display().to_string());
        }
    }
    found
}

#[tokio::test]
// promise: stop-6
async fn a_purged_session_leaves_no_byte_of_its_output_and_of_its_commands() {
    purge_leaves_nothing("off").await;
}

#[tokio::test]
// promise: stop-6
async fn the_principal_of_a_purged_command_stays_in_the_audit_log_alone() {
    purge_leaves_nothing("required").await;
}

async fn purge_leaves_nothing(audit: &str) {
    let server = Server::start_as(Start { env: vec![("PTYD_AUDIT", audit.into())], ..Start::default() });
    let (purged, kept) = (server.session().await, server.session().await);
    // More than a page of the store: what is deleted on several pages is overwritten on all.
    let long = format!("echo needle-in-a-command {}", "x".repeat(20_000));
    assert_eq!(purged.run(&long).await.exit_code, Some(0));
    purged.gives("printf 'needle-in-%s\\n' an-output").await;
    kept.gives("echo another").await;
    for shell in [&purged, &kept] {
        shell.ends().await;
    }
    let state = server.home().state();
    assert_eq!(server.client().list(Some("terminated")).await.expect("a list").total, 2);
    let in_history =
        async || holding(&state, "needle-in-a-command").iter().find(|file| file.contains("store.db")).cloned();
    eventually("the history is written", in_history).await;
    assert_eq!(holding(&state, "needle-in-an-output").len(), 1);
    let folder = state.join("sessions").join(&purged.id);

    let answer = server.client().purge(&purged.id, false).await.expect("it has ended");
    assert_eq!((answer.was_over, answer.session.id.as_str()), (true, purged.id.as_str()));
    assert!(answer.freed_bytes.is_some_and(|bytes| bytes >= 20_000), "{:?}", answer.freed_bytes);
    assert!(!folder.exists());
    let log = state.join("audit.jsonl").display().to_string();
    let recorded = if audit == "off" { vec![] } else { vec![log] };
    for (needle, left) in
        [("needle-in-a-command", &recorded), ("needle-in-an-output", &vec![]), (&purged.id, &recorded)]
    {
        assert_eq!(holding(&state, needle), *left, "{needle}");
    }
    for _ in 0..2 {
        let gone = server.client().session(&purged.id).await.expect_err("there is none");
        assert_eq!(gone.code(), Some(ErrorCode::SessionNotFound));
        let again = server.client().purge(&purged.id, true).await.expect_err("there is none");
        assert_eq!(again.code(), Some(ErrorCode::SessionNotFound));
        let left = server.client().list(Some("terminated")).await.expect("a list");
        assert_eq!((left.total, left.terminals.len(), left.terminals[0].id.as_str()), (1, 1, kept.id.as_str()));
        assert_eq!(kept.command("c1").await.output.as_deref(), Some("another\n"));
        server.kill9();
        server.again();
    }
}

#[tokio::test]
// promise: stop-6
async fn a_living_session_is_only_purged_by_force() {
    let server = Server::start();
    let shell = server.session_with(CreateRequest { name: Some("lives".to_owned()), ..Default::default() }).await;
    let refused = server.client().purge(&shell.id, false).await.expect_err("it lives");
    assert_eq!(refused.code(), Some(ErrorCode::SessionAlive));
    assert!(refused.to_string().contains("force=true"), "{refused}");
    assert_eq!(shell.gives("echo still here").await, (0, "still here\n".to_owned()));
    shell.begin("sleep 1000").await;
    let answer = server.client().purge(&shell.id, true).await.expect("by force");
    assert_eq!((answer.was_over, answer.left, answer.session.status), (false, 0, SessionStatus::Terminated));
    assert!(!server.home().state().join("sessions").join(&shell.id).exists());
    assert_eq!(server.client().list(Some("terminated")).await.expect("a list").total, 0);
}

#[tokio::test]
async fn a_session_of_somebody_else_cannot_be_purged() {
    let server = Server::start();
    let shell = server.session().await;
    shell.ends().await;
    let body = r#"{"name":"stranger","scope":"write"}"#;
    let token = server.connect().ask("POST", "/tokens", body).expect("an answer").json()["token"].clone();
    let token = token.as_str().expect("a token");
    let stranger = client::Client::tcp(server.address(), token);
    let refused = stranger.purge(&shell.id, true).await.expect_err("not theirs");
    assert_eq!(refused.code(), Some(ErrorCode::SessionNotFound));
    assert_eq!(shell.look().await.status, SessionStatus::Terminated);
}
