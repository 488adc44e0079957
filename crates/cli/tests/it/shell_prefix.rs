//! The commands of a host's own shell tool run in sessions, and behave as below the host's shell: the contract of
//! `CLAUDE_CODE_SHELL_PREFIX`, in the forms that Claude Code 2.1.332 uses.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use crate::home::Home;

/// A host with a folder, a conversation and a prefix.
struct Host {
    home: Home,
    prefix: PathBuf,
}

impl Host {
    fn new() -> Self {
        let home = Home::new();
        std::fs::create_dir(home.dir.path().join("web")).expect("made");
        let prefix = home.prints(&["shell-prefix"]).trim_end().into();
        Self { home, prefix }
    }

    fn folder(&self) -> PathBuf {
        self.home.dir.path().join("web").canonicalize().expect("there")
    }

    /// The prefix with a command of the shell tool.
    fn tool(&self, line: &str) -> Command {
        let mut command = Command::new(&self.prefix);
        self.home.environment(command.arg(line)).current_dir(self.folder()).stdin(Stdio::null());
        command.env("SHELL", "/bin/bash").env("CLAUDE_CODE_SESSION_ID", "96c1d797-065c");
        command
    }

    /// The output of the tool, and its exit code.
    fn gives(&self, line: &str) -> (String, i32) {
        said(&self.tool(line).output().expect("the prefix runs"))
    }

    /// The sessions that there are and were.
    fn sessions(&self) -> Vec<serde_json::Value> {
        serde_json::from_str(&self.home.prints(&["ls", "--all", "--json"])).expect("a list")
    }
}

fn said(output: &Output) -> (String, i32) {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    (String::from_utf8(text).expect("text"), output.status.code().unwrap_or(-1))
}

/// A command that runs, and its first line.
fn begun(command: &mut Command) -> (Child, BufReader<std::process::ChildStdout>, String) {
    let mut child = command.stdout(Stdio::piped()).spawn().expect("the prefix runs");
    let mut output = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    output.read_line(&mut line).expect("a line");
    (child, output, line)
}

#[test]
// promise: cli-12
fn a_command_of_a_hosts_shell_tool_ends_as_below_its_own_shell_and_is_recorded() {
    let host = Host::new();
    let there = host.home.dir.path().join("cwd");
    let line = |command: &str| {
        format!(
            "{{ shopt -u extglob; }} >/dev/null 2>&1 || true && eval '{command}' < /dev/null && pwd -P >| {}",
            there.display()
        )
    };
    assert_eq!(host.gives(&line("echo hello; (exit 7)")), ("hello\n".into(), 7));
    assert!(!there.exists(), "a failure does not reach the end of the host's line");
    assert_eq!(host.gives(&line("read x; printf \"%s\\n\" \"$?\" a\\\\nb")), ("1\na\\nb\n".into(), 0));
    assert_eq!(std::fs::read_to_string(&there).expect("written"), format!("{}\n", host.folder().display()));
    // Neither directories nor variables stay.
    host.gives("cd /; export FOO=1");
    assert_eq!(host.gives("pwd; echo \"[$FOO]$-\""), (format!("{}\n[]hBc\n", host.folder().display()), 0));
    assert_eq!(host.gives("kill -9 $$").1, 137);
    let sessions = host.sessions();
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    assert!(sessions[0]["name"].as_str().is_some_and(|name| name.starts_with("claude/web ")), "{sessions:?}");
    let history = host.home.prints(&["history", sessions[0]["id"].as_str().expect("an id")]);
    assert!(history.contains("echo hello; (exit 7)"), "{history}");
}

#[test]
// promise: cli-12
fn a_prefix_passes_its_input_and_environment_on_exactly() {
    let host = Host::new();
    let bytes: Vec<u8> = (0..200_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let mut child = host
        .tool("cat >got; echo $X")
        .env("X", "a b\n'c'")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("run");
    child.stdin.take().expect("piped").write_all(&bytes).expect("written");
    assert_eq!(said(&child.wait_with_output().expect("ends")), ("a b 'c'\n".into(), 0));
    assert_eq!(std::fs::read(host.folder().join("got")).expect("there"), bytes);
    assert_eq!(host.gives("echo \"[$X]\""), ("[]\n".into(), 0));
    // A host without a conversation gets a session for each command, which ends with it.
    let alone = said(&host.tool("echo alone; exit 3").env_remove("CLAUDE_CODE_SESSION_ID").output().expect("runs"));
    assert_eq!(alone, ("alone\n".into(), 3));
}

#[test]
// promise: cli-12
fn commands_of_a_conversation_run_side_by_side_and_end_with_their_prefix() {
    let host = Host::new();
    let (mut child, mut rest, first) =
        begun(&mut host.tool("echo $$; trap 'echo over; exit' TERM INT; while :; do sleep 0.01; done"));
    assert_eq!(host.gives("echo beside"), ("beside\n".into(), 0));
    assert_eq!(host.sessions().len(), 2);
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::TERM)
        .expect("signalled");
    assert!(!child.wait().expect("ends").success());
    let mut last = String::new();
    rest.read_to_string(&mut last).expect("text");
    assert!(!std::path::Path::new("/proc").join(first.trim()).exists(), "{first}{last}");
    // Both are idle now, and none is added.
    assert_eq!(host.gives("echo again"), ("again\n".into(), 0));
    assert_eq!(host.sessions().len(), 2);
}

#[test]
// promise: cli-12
fn a_command_has_the_environment_and_the_end_of_input_of_its_host_whatever_the_server_has() {
    let host = Host::new();
    // The server starts here, with variables that the host does not have.
    let mut first = host.home.command(&["new", "first"]);
    assert!(first.env("FOREIGN", "1").env("a.b", "1").env("PTYD_URL", "").status().expect("it runs").success());
    let exported = host.tool("echo \"[$FOREIGN]\"").env("BASH_FUNC_f%%", "() { :; }").env("a.b", "1").output();
    assert_eq!(said(&exported.expect("runs")), ("[]\n".into(), 0));
    assert_eq!(host.gives("cat; echo $?"), ("0\n".into(), 0), "nothing is read from the session's terminal");
    let elsewhere = host.tool("echo here").env("PTYD_URL", "https://ptyd.invalid").output().expect("runs");
    assert_eq!(said(&elsewhere), ("here\n".into(), 0));
    // A command whose reader has gone ends, as by SIGPIPE.
    let (mut child, output, first) = begun(&mut host.tool("echo $$; while echo more; do :; done"));
    drop(output);
    assert!(!child.wait().expect("ends").success());
    let process = PathBuf::from("/proc").join(first.trim());
    while process.exists() {
        std::thread::yield_now();
    }
}

#[test]
// promise: cli-12
fn commands_that_begin_at_once_in_a_new_conversation_all_run() {
    let host = Host::new();
    let all: Vec<_> = (0..6)
        .map(|n| host.tool(&format!("echo {n}; exit {n}")).stdout(Stdio::piped()).spawn().expect("the prefix runs"))
        .collect();
    for (n, child) in all.into_iter().enumerate() {
        let output = child.wait_with_output().expect("ends");
        assert_eq!(said(&output), (format!("{n}\n"), i32::try_from(n).expect("small")));
    }
}

#[test]
// promise: cli-12
fn hooks_and_servers_of_the_host_are_passed_straight_through() {
    let host = Host::new();
    let mut child = host
        .tool("echo to stderr >&2; cat")
        .env("CLAUDE_PROJECT_DIR", host.folder())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("run");
    child.stdin.take().expect("piped").write_all(b"{\"id\":1}\r\n\x1b[31m\0").expect("written");
    let output = child.wait_with_output().expect("ends");
    assert_eq!((&output.stdout[..], &output.stderr[..]), (&b"{\"id\":1}\r\n\x1b[31m\0"[..], &b"to stderr\n"[..]));
    assert!(!host.home.dir.path().join("state/lock").exists(), "no server was needed");
}
