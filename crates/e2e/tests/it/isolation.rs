//! Sessions never mix: not their output, not their input, not their state.

use api::EndedBy;
use e2e::{Server, count, join_all, seq};

#[tokio::test]
// promise: wait-4
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
    assert_ne!(a.session_id, b.session_id);
    assert_ne!(one.look().await.pid.expect("it lives"), two.look().await.pid.expect("it lives"));
}

#[tokio::test]
// promise: access-11
async fn a_program_cannot_take_its_own_session_over_and_the_next_server_still_can() {
    let server = Server::start();
    let shell = server.session().await;
    let socket = server.home().state().join("sessions").join(&shell.id).join("control");
    let program = "import os, socket, struct, sys\nos.chdir(os.path.dirname(sys.argv[1]))\nheard = []\nfor i in range(20):\n  \
                   s = socket.socket(socket.AF_UNIX)\n  s.connect('control')\n  try:\n    \
                   s.sendall(struct.pack('<IBHB', 4, 2, 1, 1))\n    heard.append(s.recv(1))\n  \
                   except OSError:\n    heard.append(b'')\nprint(set(heard))\n";
    std::fs::write(server.home().file("takes.py"), program).expect("written");
    let takes = format!("python3 takes.py {}", socket.display());
    assert_eq!(shell.gives(&takes).await, (0, "{b''}\n".to_owned()));
    let pid = shell.look().await.pid;
    server.kill9();
    server.again();
    assert_eq!((shell.look().await.pid, shell.gives("echo alive").await), (pid, (0, "alive\n".to_owned())));
}

#[tokio::test]
// promise: crash-8
async fn a_server_inside_a_session_serves_its_own_and_the_next_one_inside_finds_them() {
    let server = Server::start();
    let outer = server.session().await;
    let ptyd = server.ptyd(&[]).get_program().to_string_lossy().into_owned();
    outer.gives("mkdir -m 700 inner && export PTYD_STATE_DIR=$PWD/inner PTYD_RUNTIME_DIR=$PWD/inner").await;
    let serves = format!(
        "{ptyd} serve --listen 127.0.0.1:0 >inner/out 2>&1 & until grep -q 'try it' inner/out; do sleep 0.05; done"
    );
    outer.gives(&serves).await;
    let (code, id) = outer.gives(&format!("{ptyd} new")).await;
    assert_eq!(code, 0, "{id}");
    outer.gives("kill -9 $!; wait; rm inner/out").await;
    outer.gives(&serves).await;
    let (code, listed) = outer.gives(&format!("{ptyd} ls")).await;
    assert!(code == 0 && listed.contains(id.trim()) && !listed.contains("terminated"), "{listed}");
    let (code, ended) = outer.gives(&format!("{ptyd} kill {}; kill %1; wait", id.trim())).await;
    assert_eq!(code, 0, "{ended}");
}
