//! Forgers who know the secret: a process that is not the shell itself ends no command, whatever it sends.
//!
//! In each shell that attests its ends, the record of an end with the shell's own secret and the running command's own
//! number is sent by every process that a command can start; the kernel's stamp of the sender is all that is wrong with it.

use api::{Boundary, CommandStatus, CreateRequest};
use e2e::metrics::{scrape, value};
use e2e::{Server, Session};

/// Sends its second argument and a NUL to the descriptor that its first one names, and writes the marker that belongs to it.
const FORGER: &str = "\
import os, sys
record = os.fsencode(sys.argv[2])
assert os.write(int(sys.argv[1]), record + b'\\0') == len(record) + 1
with open('/dev/tty', 'wb') as terminal:
    terminal.write(b'\\x1b]7337;D;' + record.split(b';')[2] + b'\\x07')
";

/// The record of a good end elsewhere, with the nonce that the forger's marker has.
fn record(secret: &str, id: &str, nonce: u64) -> String {
    format!("\"D;${secret};{nonce};${id};0;0;;/forged\"")
}

/// The words of one shell: its socket, and its names for the secret, the running command and an exit code.
struct Words {
    shell: &'static str,
    socket: u32,
    secret: &'static str,
    id: &'static str,
    is_fish: bool,
}

impl Words {
    fn with_keys(shell: &'static str) -> Self {
        Self { shell, socket: 97, secret: "__ptyd_secret", id: "__ptyd_id", is_fish: shell == "fish" }
    }

    fn typed_at(shell: &'static str) -> Self {
        Self { shell, socket: 9, secret: "__ptyd_k", id: "__ptyd_i", is_fish: false }
    }

    fn ends_with(&self, code: i32) -> String {
        if self.is_fish { format!("sh -c 'exit {code}'") } else { format!("(exit {code})") }
    }
}

/// The facts of a command's end that a forger would change.
async fn facts(shell: &Session, command: &str) -> (CommandStatus, Option<i32>, Option<String>, Boundary, bool) {
    let done = shell.run(command).await;
    let has_gone_on = done.output.is_some_and(|output| output.contains("after\n"));
    (done.status, done.exit_code, done.cwd, done.boundary, has_gone_on)
}

async fn no_forger_ends_a_command_of(words: Words) {
    let server = Server::start();
    let request = CreateRequest { shell: Some(words.shell.to_owned()), ..CreateRequest::default() };
    let shell = server.session_with(request).await;
    let forger = server.home().file("forger.py");
    std::fs::write(&forger, FORGER).expect("written");
    let (forger, socket) = (forger.display(), words.socket);
    let own = if words.is_fish { "$fish_pid" } else { "$$" };
    let forged = |nonce| record(words.secret, words.id, nonce);

    // The commands that send it, and how many records the socket gets.
    let in_shell = format!("printf \"%s\\000\" \"$r\" >&{socket}; printf \"\\033]7337;D;102\\007\" >/dev/tty");
    let subshell = match words.is_fish {
        // fish has no subshell; another shell comes nearest.
        true => format!("r={} bash -c '{in_shell}'", forged(102)),
        false => format!("r={}; ({in_shell})", forged(102)),
    };
    let background = if words.is_fish { "wait" } else { "wait $!" };
    let ways = [
        (format!("python3 {forger} {socket} {}", forged(101)), 1),
        (subshell, 1),
        (format!("python3 {forger} {socket} {} & {background}", forged(103)), 1),
        (format!("python3 {forger} {socket} {} | cat", forged(104)), 1),
        // A socket cannot be opened by its name in /proc; data written there reaches no reader.
        (format!("sh -c 'printf \"%s\\0\" \"$1\" >/proc/$2/fd/{socket}' sh {} {own} 2>/dev/null", forged(105)), 0),
    ];
    let folder = server.home().file("").display().to_string().trim_end_matches('/').to_owned();
    let mut sent = 0;
    for (code, (way, records)) in (3..).zip(ways) {
        let told = facts(&shell, &format!("{way}; echo after; {}", words.ends_with(code))).await;
        let own = (CommandStatus::Completed, Some(code), Some(folder.clone()), Boundary::Attested, true);
        assert_eq!(told, own, "{}: {way}", words.shell);
        sent += records;
    }
    assert_eq!(shell.look().await.cwd, folder, "{}", words.shell);
    shell.ends().await;
    assert_eq!(value(&scrape(&server), "ptyd_records_dropped_total"), Some(f64::from(sent)), "{}", words.shell);
}

#[tokio::test]
// promise: end-2
async fn no_forger_with_the_secret_ends_a_command_of_bash() {
    no_forger_ends_a_command_of(Words::with_keys("bash")).await;
}

#[tokio::test]
// promise: end-2
async fn no_forger_with_the_secret_ends_a_command_of_zsh() {
    no_forger_ends_a_command_of(Words::with_keys("zsh")).await;
}

#[tokio::test]
// promise: end-2
async fn no_forger_with_the_secret_ends_a_command_of_fish() {
    no_forger_ends_a_command_of(Words::with_keys("fish")).await;
}

#[tokio::test]
// promise: end-2
async fn no_forger_with_the_secret_ends_a_command_of_dash() {
    no_forger_ends_a_command_of(Words::typed_at("dash")).await;
}

#[tokio::test]
// promise: end-2
async fn no_forger_with_the_secret_ends_a_command_of_busybox() {
    no_forger_ends_a_command_of(Words::typed_at("busybox")).await;
}

#[tokio::test]
// promise: end-2
async fn no_forger_with_the_secret_ends_a_command_of_mksh() {
    no_forger_ends_a_command_of(Words::typed_at("mksh")).await;
}
