//! Many sessions at work at once: every command gets its own answer.

use e2e::{Load, Server, count};

fn load() -> Load {
    Load { sessions: count(16, 200), commands: count(5, 50) }
}

#[tokio::test(flavor = "multi_thread")]
// promise: wait-4
async fn every_command_of_many_sessions_at_once_is_answered_over_rest() {
    let server = Server::start();
    let loaded = load().over_rest(&server).await.expect("it listens");
    assert_eq!(loaded.errors, [""; 0]);
    assert_eq!(loaded.answered, load().sessions * load().commands);
}

#[tokio::test(flavor = "multi_thread")]
// promise: wait-4
async fn every_line_of_many_sessions_at_once_is_answered_over_the_socket() {
    let server = Server::start();
    let loaded = load().over_socket(&server).await;
    assert_eq!(loaded.errors, [""; 0]);
    assert_eq!(loaded.answered, load().sessions * load().commands);
}
