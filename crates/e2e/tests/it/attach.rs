//! `ptyd attach`, by a person at a real terminal.

use e2e::{Person, Server};

/// Twice, and one leaves.
const LEAVE: &[u8] = b"\x1c\x1c";

/// Attaches, and waits until the terminal is in its hands: what is typed before belongs to nobody yet.
fn attached(server: &Server, id: &str, cols: u16, rows: u16) -> Person {
    let mut person = Person::starts(&server.ptyd(&["attach", id]), cols, rows);
    person.sees("\x1b[2J");
    person
}

fn modes(person: &Person) -> String {
    format!("{:?}", person.modes())
}

#[tokio::test]
async fn a_person_sees_types_resizes_and_leaves() {
    let server = Server::start();
    let shell = server.session().await;
    shell.gives("echo before the visit").await;
    let mut person = attached(&server, &shell.id, 90, 25);
    person.sees("before the visit");
    person.types(b"echo typed $((40+2)); stty size\r");
    person.sees("typed 42\r\n");
    person.sees("25 90\r\n");
    person.resizes(101, 33);
    e2e::eventually("the session has the new size", async || {
        (shell.look().await.dimensions == api::Dimensions { cols: 101, rows: 33 }).then_some(())
    })
    .await;
    person.types(b"stty size\r");
    person.sees("33 101\r\n");
    person.types(LEAVE);
    person.sees("detached; the session goes on");
    assert_eq!(person.leaves().code(), Some(0));
    assert_eq!(shell.gives("echo after the visit").await, (0, "after the visit\n".to_owned()));
}

#[tokio::test]
async fn the_terminal_is_given_back_as_it_was() {
    let server = Server::start();
    let shell = server.session().await;
    let mut person = attached(&server, &shell.id, 80, 24);
    person.types(b"echo ready $((40+2))\r");
    person.sees("ready 42\r\n");
    let during = modes(&person);
    person.types(LEAVE);
    assert_eq!(person.leaves().code(), Some(0));
    let left = modes(&person);
    let mut witness = Person::starts(&server.ptyd(&["ls"]), 80, 24);
    witness.leaves();
    assert_eq!(left, modes(&witness), "as a terminal that nobody changed");
    assert_ne!(left, during, "it was raw");
}

#[tokio::test]
async fn two_people_at_one_session_see_the_same() {
    let server = Server::start();
    let shell = server.session().await;
    let attach = || attached(&server, &shell.id, 80, 24);
    let (mut one, mut two) = (attach(), attach());
    one.types(b"echo both $((40+2))\r");
    one.sees("both 42\r\n");
    two.sees("both 42\r\n");
    two.types(b"echo again $((40+3))\r");
    one.sees("again 43\r\n");
    two.sees("again 43\r\n");
    shell.run("exit 6").await;
    one.sees("session ended with code 6");
    two.sees("session ended with code 6");
    assert_eq!([one.leaves().code(), two.leaves().code()], [Some(0), Some(0)]);
}

#[tokio::test]
async fn a_visit_outlives_a_restart_of_the_server() {
    let server = Server::start();
    let shell = server.session().await;
    let mut person = attached(&server, &shell.id, 80, 24);
    person.types(b"echo one $((40+1))\r");
    person.sees("one 41\r\n");
    server.kill9();
    server.again();
    person.types(b"echo two $((40+2))\r");
    person.sees("two 42\r\n");
    person.types(LEAVE);
    assert_eq!(person.leaves().code(), Some(0));
}
