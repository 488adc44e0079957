//! `ptyd attach`, by a person at a real terminal.

use std::path::PathBuf;
use std::process::Command;

use api::{CreateRequest, Dimensions};
use e2e::{Person, Server, eventually};

/// Twice, and one leaves.
const LEAVE: &[u8] = b"\x1c\x1c";

/// Attaches, and waits until it reads the terminal: earlier keys have no reader yet.
fn attached(server: &Server, id: &str, cols: u16, rows: u16) -> Person {
    let mut person = Person::starts(&server.ptyd(&["attach", id]), cols, rows);
    person.sees("\x1b[2J");
    person
}

fn modes(person: &Person) -> String {
    format!("{:?}", person.modes())
}

#[tokio::test]
// promise: cli-3
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
    eventually("the session has the new size", async || {
        (shell.look().await.dimensions == Dimensions { cols: 101, rows: 33 }).then_some(())
    })
    .await;
    person.types(b"stty size\r");
    person.sees("33 101\r\n");
    person.types(LEAVE);
    person.sees("detached; the session keeps running");
    assert_eq!(person.leaves().code(), Some(0));
    assert_eq!(shell.gives("echo after the visit").await, (0, "after the visit\n".to_owned()));
}

#[tokio::test]
// promise: cli-3
async fn the_terminal_is_restored() {
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

/// A real tmux with a plain shell.
struct Tmux {
    socket: PathBuf,
}

impl Tmux {
    fn starts(server: &Server) -> Self {
        let tmux = Self { socket: server.home().file("tmux") };
        let mut command = tmux.command(&["-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "sh"]);
        command
            .env_clear()
            .envs(server.home().environment())
            .env("PS1", "host$ ")
            .env("SHELL", "/bin/sh")
            .current_dir(server.home().file(""));
        assert!(command.status().expect("tmux is there").success());
        tmux
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(&self.socket).args(args);
        command
    }

    fn types(&self, keys: &[&str]) {
        assert!(self.command(&[&["send-keys"], keys].concat()).status().expect("tmux is there").success());
    }

    /// The screen without the empty rows at its end, and the cursor's column and row.
    fn shows(&self) -> (Vec<String>, String) {
        let text = |args: &[&str]| {
            String::from_utf8_lossy(&self.command(args).output().expect("tmux is there").stdout).into_owned()
        };
        let rows = text(&["capture-pane", "-p"]);
        (rows.trim_end().lines().map(str::to_owned).collect(), text(&["display", "-p", "#{cursor_x} #{cursor_y}"]))
    }

    /// The same once this line is there and the shell waits for a command at its end.
    async fn at_prompt(&self, line: &str) -> (Vec<String>, String) {
        eventually("the prompt", async || {
            let shown = self.shows();
            let is_there = shown.0.iter().any(|row| row == line) && shown.0.last().is_some_and(|row| row == "host$");
            is_there.then_some(shown)
        })
        .await
    }

    async fn shows_at_last(&self, line: &str) {
        eventually(line, async || self.shows().0.iter().any(|row| row.contains(line)).then_some(())).await;
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = self.command(&["kill-server"]).status();
    }
}

#[tokio::test]
// promise: cli-3
async fn a_visit_leaves_the_screen_and_the_cursor_as_they_were() {
    let server = Server::start();
    let shell = server.session_with(CreateRequest { name: Some("demo".to_owned()), ..Default::default() }).await;
    shell.run("printf '\\033[5;10r'; seq 100").await;
    let tmux = Tmux::starts(&server);
    tmux.at_prompt("host$").await;
    let program = server.ptyd(&[]).get_program().to_string_lossy().into_owned();
    for (mark, painted, command) in [
        ("first", "99", None),
        // A program that switches screens meanwhile is seen, and what was there before comes back all the same.
        ("second", "inner screen", Some("tput smcup; echo inner screen; tput csr 3 7; read -n 1")),
    ] {
        // A program has had the alternate screen here before, with a cursor saved at the top.
        tmux.types(&[
            &format!("printf 'A\\033[?1049h\\033[?1049lB\\n'; clear; echo {mark}; seq 5; stty -a >before"),
            "Enter",
        ]);
        let before = tmux.at_prompt(mark).await.0;
        tmux.types(&[&format!("{program} attach demo; stty -a >after"), "Enter"]);
        tmux.shows_at_last("100").await;
        if let Some(command) = command {
            tmux.types(&[command, "Enter"]);
        }
        tmux.shows_at_last(painted).await;
        tmux.types(&["C-\\", "C-\\"]);
        let told = "[demo: detached; the session keeps running]";
        tmux.shows_at_last(told).await;
        let (rows, cursor) = tmux.at_prompt(mark).await;
        assert_eq!(rows[..before.len() - 1], before[..before.len() - 1], "what was there");
        assert_eq!(rows[rows.len() - 2], told);
        assert_eq!(cursor, format!("6 {}\n", rows.len() - 1), "behind the prompt: {rows:?}");
        let modes = ["before", "after"].map(|name| std::fs::read_to_string(server.home().file(name)).expect("written"));
        assert_eq!(modes[0], modes[1]);
    }
}

#[tokio::test]
// promise: cli-15
async fn an_attached_person_is_listed_and_no_longer_after_leaving() {
    let server = Server::start();
    let shell = server.session().await;
    let viewers = async || server.client().session(&shell.id).await.expect("it lives").viewers;
    assert_eq!(viewers().await, Vec::<String>::new());
    let mut person = attached(&server, &shell.id, 80, 24);
    eventually("the person is listed", async || (viewers().await.len() == 1).then_some(())).await;
    let name = server.client().session(&shell.id).await.expect("it lives").owner;
    let listed = server.ptyd(&["ls"]).output().expect("it runs").stdout;
    let listed = String::from_utf8(listed).expect("text");
    assert!(listed.lines().nth(1).is_some_and(|row| row.contains(&format!("  {name}  "))), "{listed}");
    person.types(b"\x1c\x1c");
    person.leaves();
    eventually("nobody is listed", async || viewers().await.is_empty().then_some(())).await;
}

#[tokio::test]
async fn an_attached_person_follows_a_program_that_switches_screens() {
    let server = Server::start();
    let shell = server.session().await;
    std::fs::write(server.home().file("text"), "in the editor\n").expect("ours");
    let mut person = attached(&server, &shell.id, 80, 24);
    person.types(format!("echo below; vim -u NONE -i NONE {}\r", server.home().file("text").display()).as_bytes());
    person.sees("in the editor");
    person.types(b":q\r");
    person.sees("below");
    person.types(b"echo after $((40+2))\r");
    person.sees("after 42\r\n");
    person.types(LEAVE);
    assert_eq!(person.leaves().code(), Some(0));
}

#[tokio::test]
async fn a_session_needs_no_name_if_it_is_the_only_one_or_chosen_from_the_list() {
    let server = Server::start();
    let mut lost = Person::starts(&server.ptyd(&["attach"]), 70, 20);
    lost.sees("no sessions; `ptyd new` starts one");
    assert_eq!(lost.leaves().code(), Some(3));
    let shell = server.session().await;
    let before = shell.look().await.dimensions;
    let mut person = Person::starts(&server.ptyd(&["attach"]), 70, 20);
    person.sees(r"C-\ C-\ detaches]");
    person.sees("\x1b[2J");
    person.types(b"stty size\r");
    person.sees("20 70\r\n");
    person.types(LEAVE);
    assert_eq!((person.leaves().code(), shell.look().await.dimensions), (Some(0), before));

    // A read-only client neither resizes the session nor types in it.
    let mut guest = Person::starts(&server.ptyd(&["attach", "--read-only"]), 60, 18);
    guest.sees("\x1b[2J");
    guest.types(b"echo typed\r");
    shell.gives("echo seen $((40+2))").await;
    guest.sees("seen 42");
    assert_eq!(shell.look().await.dimensions, before);
    guest.types(LEAVE);
    assert_eq!(guest.leaves().code(), Some(0));
    let journal = String::from_utf8_lossy(&shell.journal().await).into_owned();
    assert!(!journal.contains("typed"), "{journal:?}");

    let other = server
        .session_with(CreateRequest { dimensions: Some(Dimensions { cols: 80, rows: 24 }), ..Default::default() });
    let other = other.await;
    let mut person = Person::starts(&server.ptyd(&["attach"]), 70, 20);
    person.sees("Attach to (number or name): ");
    person.types(b"3\r");
    person.sees("you chose none of them");
    assert_eq!(person.leaves().code(), Some(2));
    let mut person = Person::starts(&server.ptyd(&["attach"]), 70, 20);
    person.sees("Attach to (number or name): ");
    person.types(b"2\r");
    person.sees(r"C-\ C-\ detaches]");
    person.types(b"echo here $((40+3))\r");
    person.sees("here 43");
    person.types(LEAVE);
    assert_eq!(person.leaves().code(), Some(0));
    assert!(String::from_utf8_lossy(&other.journal().await).contains("here 43"));
    other.ends().await;
}

#[tokio::test]
// promise: cli-6
async fn a_session_is_not_attached_to_itself() {
    let server = Server::start();
    let outer = server.session_with(CreateRequest { name: Some("outer".to_owned()), ..Default::default() }).await;
    let inner = server.session().await;
    let program = server.ptyd(&[]).get_program().to_string_lossy().into_owned();
    let attach = |id: &str| format!("{program} --socket {} attach {id}", server.home().socket().display());
    let refused = async |id: &str, why: &str| {
        let (code, output) = inner.gives(&attach(id)).await;
        let output = output.replace('\n', " ");
        assert!(code == 2 && output.contains(why), "{output}");
    };
    refused(&inner.id, "this terminal is session").await;
    // Nor to one in which it is shown.
    inner.run("echo shown $((40+2))").await;
    outer.begin(&attach(&inner.id)).await;
    eventually("it is shown", async || outer.screen().await.iter().any(|row| row == "shown 42").then_some(())).await;
    refused("outer", "this terminal is shown in session").await;
    // One that shows another session does not matter.
    let third = server.session().await;
    third.begin(&attach("outer")).await;
    eventually("it is shown", async || third.screen().await.iter().any(|row| row == "shown 42").then_some(())).await;
    refused(&third.id, "this terminal is shown in session").await;
}
