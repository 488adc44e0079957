//! Sessions beside each other, and two commands at once.

use std::time::{Duration, Instant};

use api::{CreateRequest, ErrorCode};
use e2e::{Server, join_all};

#[tokio::test]
// promise: end-7
async fn thirty_two_new_sessions_at_once_each_return_their_own_output() {
    let server = Server::start();
    let one = async |number: usize| {
        let shell = server.session().await;
        let begun = Instant::now();
        let given = shell.gives(&format!("sleep 1; echo p{number}")).await;
        assert_eq!(given, (0, format!("p{number}\n")));
        assert!(begun.elapsed() >= Duration::from_secs(1), "session {number} ended after {:?}", begun.elapsed());
    };
    join_all((0..32).map(one)).await;
}

#[tokio::test]
// promise: send-5
async fn of_two_commands_at_once_one_is_refused() {
    let server = Server::start();
    let shell = server.session().await;
    let ask = api::ExecuteRequest {
        wait_for_completion: Some(true),
        command: "sleep 0.3; echo one".to_owned(),
        ..Default::default()
    };
    let (one, two) = tokio::join!(shell.try_run(&ask), shell.try_run(&ask));
    let (fine, refused) = if one.is_ok() { (one, two) } else { (two, one) };
    assert_eq!(fine.expect("one runs").output.as_deref(), Some("one\n"));
    assert_eq!(refused.expect_err("one is refused").code(), Some(ErrorCode::SessionBusy));
}

#[tokio::test]
async fn a_session_keeps_the_changes_that_a_command_makes() {
    let server = Server::start();
    let shell = server.session_with(CreateRequest { cwd: Some("/".to_owned()), ..CreateRequest::default() }).await;
    shell.gives("cd /usr; A=1; export B=2; f() { echo f$A; }; alias g='echo g'").await;
    assert_eq!(shell.gives("pwd; f; sh -c 'echo $B'; g").await, (0, "/usr\nf1\n2\ng\n".to_owned()));
}
