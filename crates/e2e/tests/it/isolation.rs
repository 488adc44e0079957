//! Sessions never mix: not their output, not their input, not their state.

use api::EndedBy;
use e2e::{Server, count, seq};

use crate::boundaries::join_all;

#[tokio::test]
async fn sessions_that_print_at_once_never_mix() {
    let server = Server::start();
    let lines = count(5_000, 50_000);
    let shells = join_all((0..16).map(async |_| server.session().await)).await;
    let all = join_all(shells.iter().enumerate().map(async |(number, shell)| {
        let done = shell.run(&format!("seq -f 's{number} %.0f' 1 {lines}")).await;
        shell.bytes_of(&done).await
    }))
    .await;
    for (number, bytes) in all.into_iter().enumerate() {
        let expected = String::from_utf8(seq(lines)).expect("digits");
        let expected: String = expected.lines().map(|line| format!("s{number} {line}\r\n")).collect();
        assert!(bytes == expected.as_bytes(), "session {number}: {} bytes for {}", bytes.len(), expected.len());
    }
}

#[tokio::test]
async fn two_sessions_have_nothing_in_common() {
    let server = Server::start();
    let (one, two) = (server.session().await, server.session().await);
    one.gives("cd /usr; X=one; export Y=one; stty cols 77; alias z='echo one'").await;
    let (code, output) = two.gives("echo \"$PWD|$X|$Y|$(stty size)\"; z").await;
    assert_eq!(code, 127);
    let here = server.home().file("");
    assert!(
        output.starts_with(&format!("{}|||40 120\n", here.display().to_string().trim_end_matches('/'))),
        "{output}"
    );
    let (a, b) = (one.run("read a; echo one got $a").await, two.run("read b; echo two got $b").await);
    let (second, first) = (two.types("2").await, one.types("1").await);
    assert_eq!((first.ended_by, second.ended_by), (EndedBy::Ended, EndedBy::Ended));
    assert_eq!((first.output.as_str(), second.output.as_str()), ("1\none got 1\n", "2\ntwo got 2\n"));
    assert_ne!((a.session_id, one.look().await.pid), (b.session_id, two.look().await.pid));
}
