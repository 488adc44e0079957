//! The command line: exact bytes and exit codes, JSON where data is printed, and a server on demand.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Output, Stdio};

use e2e::{Home, Person, Server, seq};
use serde_json::{Value, json};

/// Runs ptyd; stdout, stderr, exit code.
fn ptyd(server: &Server, args: &[&str]) -> (String, String, Option<i32>) {
    told(server.ptyd(args).stdin(Stdio::null()).output().expect("it can be executed"))
}

fn told(output: Output) -> (String, String, Option<i32>) {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (text(output.stdout), text(output.stderr), output.status.code())
}

#[tokio::test]
// promise: cli-1
async fn run_passes_bytes_and_exit_codes_through() {
    let server = Server::start();
    let done = |out: &str, code: i32| (out.to_owned(), String::new(), Some(code));
    assert_eq!(ptyd(&server, &["run", "echo hi; (exit 7)"]), done("hi\n", 7));
    assert_eq!(ptyd(&server, &["run", "printf", "%s|", "a b", "it's"]), done("a b|it's|", 0));
    assert_eq!(ptyd(&server, &["run", "no-such-command 2>/dev/null"]), done("", 127));
    assert_eq!(ptyd(&server, &["run", "exit 3"]).2, Some(3));
    assert_eq!(ptyd(&server, &["run", "kill -9 $$"]).2, Some(137));
    assert_eq!(ptyd(&server, &["run", "--timeout", "0.3", "sleep 60"]).2, Some(124));
    let output =
        server.ptyd(&["run", "--raw", "seq 1 20000; printf '\\033[31m\\377'"]).output().expect("it can be executed");
    assert!(output.stdout == [seq(20_000), b"\x1b[31m\xff".to_vec()].concat(), "{} bytes", output.stdout.len());
    assert_eq!(
        server.client().list(None).await.expect("a list").total,
        0,
        "a session of its own ends with the command"
    );
}

#[tokio::test]
// promise: inside-2
async fn run_inside_runs_in_the_shell_that_reads_in_a_session() {
    let server = Server::start();
    let shell = server.session().await;
    e2e::inside::enters(&shell, "dash").await;
    let ran = ptyd(&server, &["run", "--session", &shell.id, "--inside", "echo $0; (exit 7)"]);
    assert_eq!(ran, ("dash\n".to_owned(), String::new(), Some(7)));
    let left = ptyd(&server, &["run", "--session", &shell.id, "--inside", "exit 3"]);
    assert!(left.2 == Some(1) && left.1.contains("the inner shell has ended: exit 3"), "{left:?}");
}

/// A recording's header, and all that was shown.
fn cast(server: &Server, name: &str) -> (Value, String) {
    let text = std::fs::read_to_string(server.home().file(name)).expect("a recording");
    let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let header = lines.next().expect("a header");
    (header, lines.filter(|event| event[1] == "o").filter_map(|event| event[2].as_str().map(str::to_owned)).collect())
}

#[tokio::test]
// promise: cli-5
async fn record_writes_what_was_shown_and_passes_the_exit_code_through() {
    let server = Server::start();
    let command = "tput cols; printf '\\033[32mgreen\\033[0m\\n'; (exit 7)";
    let recorded = ptyd(&server, &["record", "--name", "colours", "--size", "60x15", "--", command]);
    assert_eq!((recorded.0.as_str(), recorded.2), ("60\ngreen\n", Some(7)));
    let (header, shown) = cast(&server, "colours.cast");
    let told = ["version", "width", "height", "title"].map(|name| header[name].clone());
    assert_eq!(told, [Value::from(2), 60.into(), 15.into(), "colours".into()]);
    assert!(shown.contains("(exit 7)\r\n") && shown.contains("60\r\n\x1b[32mgreen\x1b[0m\r\n"), "{shown:?}");

    // An existing file is not overwritten, which is checked before anything runs.
    let again = ptyd(&server, &["record", "--output", "colours.cast", "--", "touch ran"]);
    assert_eq!((again.2, server.home().file("ran").exists()), (Some(1), false), "{}", again.1);
    assert!(again.1.contains("colours.cast already exists, and ptyd does not overwrite it"), "{}", again.1);
    // On stdout there is the recording and nothing else.
    let (printed, _, code) = ptyd(&server, &["record", "-o", "-", "--", "echo shown; (exit 3)"]);
    let header: Value = serde_json::from_str(printed.lines().next().expect("a line")).expect("JSON");
    assert!(header["version"] == 2 && printed.contains("shown\\r\\n") && code == Some(3), "{printed}");
    assert!(!server.home().file("-").exists());
    // `record` keeps a command that took too long as far as it went, and a session that has ended.
    let late = ["record", "-o", "late.cast", "--format", "3", "--timeout", "2", "--", "echo begun; sleep 60"];
    assert_eq!(ptyd(&server, &late).2, Some(124));
    let (header, shown) = cast(&server, "late.cast");
    assert!(header["version"] == 3 && shown.contains("begun\r\n"), "{header} {shown:?}");
    assert_eq!(ptyd(&server, &["record", "-o", "again.cast", "colours"]).2, Some(0));
    assert_eq!(cast(&server, "again.cast").0["title"], "colours");
    assert_eq!(ptyd(&server, &["record", "nobody"]).2, Some(3));
    assert_eq!(server.client().list(None).await.expect("a list").total, 0, "sessions of its own have ended");
}

#[tokio::test]
async fn sessions_are_made_listed_typed_at_read_and_ended() {
    let server = Server::start();
    let (id, _, code) = ptyd(&server, &["new", "--name", "work"]);
    let id = id.trim_end();
    assert_eq!(code, Some(0));
    let (list, _, _) = ptyd(&server, &["ls", "--json"]);
    let list: Value = serde_json::from_str(&list).expect("JSON");
    assert_eq!((&list[0]["id"], &list[0]["name"]), (&Value::from(id), &Value::from("work")));
    let (list, _, _) = ptyd(&server, &["ls"]);
    let words: Vec<Vec<&str>> = list.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(words[0], ["NAME", "CLIENT", "STATE", "RUNS", "SINCE", "ATTACHED", "FOLDER"]);
    assert_eq!(words[1][..4], ["work", "ptyd", "idle", "-"]);

    assert_eq!(
        ptyd(&server, &["run", "-s", "work", "cd /usr; echo first"]),
        ("first\n".to_owned(), String::new(), Some(0))
    );
    assert_eq!(ptyd(&server, &["run", "-s", id, "pwd"]).0, "/usr\n");
    assert_eq!(ptyd(&server, &["send", "work", "echo sent $((40+2))"]).2, Some(0));
    let shell = e2e::Session::new(server.client().clone(), id.to_owned());
    e2e::eventually("it ran", async || {
        String::from_utf8_lossy(&shell.journal().await).contains("sent 42").then_some(())
    })
    .await;
    let (text, _, code) = ptyd(&server, &["logs", "work"]);
    assert_eq!((text.contains("first\n") && text.contains("sent 42\n"), code), (true, Some(0)), "{text}");
    let raw = server.ptyd(&["logs", "--raw", "work"]).output().expect("it can be executed");
    assert!(raw.stdout == shell.journal().await, "raw is raw");

    assert_eq!(ptyd(&server, &["kill", "work"]).2, Some(0));
    assert_eq!(ptyd(&server, &["ls", "--json"]).0, "[]\n");
    let (list, _, _) = ptyd(&server, &["ls", "--json", "--all"]);
    let list: Value = serde_json::from_str(&list).expect("JSON");
    assert_eq!(list[0]["status"], "terminated");
    let (list, _, _) = ptyd(&server, &["ls", "--all"]);
    // Its last command is that of `run -s`, and what was typed behind it is none.
    assert!(list.contains("ended, code 0  pwd"), "how it ended: {list}");
}

#[tokio::test]
async fn an_empty_list_and_a_command_without_a_server_name_the_next_step() {
    let server = Server::start();
    let (out, err, code) = ptyd(&server, &["ls"]);
    assert_eq!((out.as_str(), code), ("", Some(0)));
    assert_eq!(err, "ptyd: no sessions; `ptyd new` starts one; `ptyd ls --all` shows ended ones\n");
    server.stop();
    let (_, err, code) = ptyd(&server, &["ls"]);
    let why = format!("ptyd: no server answers: there is no socket {}; `ptyd new`,", server.home().socket().display());
    assert!(err.starts_with(&why) && code == Some(5), "{err}");
    let (_, err, code) = ptyd(&server, &[]);
    assert!(
        err.contains("Usage: ptyd [OPTIONS] <COMMAND>") && err.contains("Run a command") && code == Some(2),
        "{err}"
    );
    server.again();
}

#[tokio::test]
async fn a_command_that_speaks_to_programs_says_so_to_a_person() {
    let server = Server::start();
    let mut person = Person::starts(&server.ptyd(&["mcp"]), 80, 24);
    person.sees("speaks MCP on stdin and stdout, for an MCP client to start");
    person.types(b"\x04");
    assert_eq!(person.leaves().code(), Some(0));
}

#[tokio::test]
// promise: cli-6
async fn a_mistyped_option_is_not_run_as_a_command() {
    let server = Server::start();
    let (out, err, code) = ptyd(&server, &["run", "--timout", "5", "touch ran"]);
    assert!(out.is_empty() && code == Some(2) && err.contains("'--timeout'"), "{err}");
    assert!(!server.home().file("ran").exists());
    // Options behind the first word, or behind two hyphens, belong to the command.
    assert_eq!(ptyd(&server, &["run", "printf", "%s", "--timeout"]).0, "--timeout");
    assert_eq!(ptyd(&server, &["run", "--", "echo", "-n", "x"]).0, "x");
}

#[tokio::test]
// promise: cli-7
async fn many_sessions_are_ended_at_once_and_what_they_left_is_removed() {
    let server = Server::start();
    for name in ["one", "two", "three"] {
        assert_eq!(ptyd(&server, &["new", "--name", name]).2, Some(0));
    }
    // The missing one does not affect the others.
    let (_, err, code) = ptyd(&server, &["kill", "one", "nobody"]);
    assert!(err.contains("1 process ended") && err.contains("no session nobody") && code == Some(3), "{err}");
    let (_, err, code) = ptyd(&server, &["rm", "two", "one"]);
    assert!(
        err.contains("is alive; end it with `ptyd kill`") && err.contains("1 session removed") && code == Some(1),
        "{err}"
    );
    let (_, err, code) = ptyd(&server, &["kill", "--all"]);
    assert_eq!((err.lines().count(), code), (2, Some(0)), "{err}");
    assert_eq!(ptyd(&server, &["prune", "--older-than", "1h"]).1, "0 sessions removed, 0 bytes freed\n");
    let (_, err, code) = ptyd(&server, &["prune", "--ended"]);
    assert!(err.starts_with("2 sessions removed, ") && code == Some(0), "{err}");
    let folders = std::fs::read_dir(server.home().state().join("sessions")).expect("a folder").count();
    assert_eq!((folders, ptyd(&server, &["ls", "--all"]).0), (0, String::new()));
    let (_, err, _) = ptyd(&server, &["new", "--name", "last"]);
    assert_eq!(err, "");
    assert_eq!(ptyd(&server, &["rm", "--force", "last"]).2, Some(0));
}

#[tokio::test]
// promise: cli-4
async fn a_removal_without_a_session_says_which_arguments_it_needs() {
    let server = Server::start();
    let (out, err, code) = ptyd(&server, &["rm", "nosuch"]);
    assert!(out.is_empty() && err.starts_with("ptyd: no session nosuch") && code == Some(3), "{code:?}: {err}");
    let (out, err, code) = ptyd(&server, &["prune"]);
    let told = ["prune removes ended sessions", "`ptyd prune --ended`", "`ptyd prune --older-than 1d`"];
    assert!(out.is_empty() && code == Some(2), "{code:?}: {out}");
    assert!(told.iter().all(|words| err.contains(words)) && !err.contains("Usage"), "{err}");
}

#[tokio::test]
async fn times_and_sizes_have_units_and_an_empty_variable_is_none() {
    let server = Server::start();
    let (made, _, _) = ptyd(&server, &["new", "--json", "--max-age", "2h", "--inactivity-timeout", "90"]);
    let made: Value = serde_json::from_str(&made).expect("JSON");
    assert_eq!((&made["maxAge"], &made["inactivityTimeout"]), (&Value::from(7200.0), &Value::from(90.0)));
    std::fs::write(server.home().file("c.toml"), "[server]\nretention_age = \"2d\"\njournal_bytes = \"64MiB\"\n")
        .expect("ours");
    let shown = server
        .ptyd(&["config", "show", "--json", "--config", "c.toml"])
        .env("PTYD_RUNTIME_DIR", "")
        .env("PTYD_MAX_AGE", "")
        .output();
    let (shown, err, code) = told(shown.expect("it can be executed"));
    let shown: Value = serde_json::from_str(&shown).unwrap_or_else(|_| panic!("{code:?} {err}"));
    let value = |name: &str| shown[name]["value"].clone();
    assert_eq!([value("retention_age"), value("journal_bytes")], [Value::from(172_800), Value::from(64 << 20)]);
    assert_eq!(shown["max_age"]["source"], "default");
    std::fs::write(server.home().file("c.toml"), "\n[server]\nlisen = 1\n").expect("ours");
    let (_, err, code) = ptyd(&server, &["config", "show", "--config", "c.toml"]);
    assert!(
        err.contains("c.toml, line 3: server.lisen: is not a setting; did you mean listen?") && code == Some(2),
        "{err}"
    );
    let (_, err, _) = ptyd(&server, &["serve", "--listen", "localhost:7894"]);
    assert!(err.contains("must be an address and a port, like 127.0.0.1:7893"), "{err}");
}

#[tokio::test]
async fn a_search_without_a_match_ends_as_grep_does() {
    let server = Server::start();
    let shell = server.session().await;
    shell.run("echo needle").await;
    let (out, _, code) = ptyd(&server, &["search", &shell.id, "^needle$"]);
    assert_eq!((out.as_str(), code), ("c1: needle\n", Some(0)));
    assert_eq!(ptyd(&server, &["search", &shell.id, "haystack"]), (String::new(), String::new(), Some(1)));
}

#[tokio::test]
// promise: cli-7
async fn a_session_is_found_by_its_id_without_looking_at_all_there_are() {
    let server = Server::start();
    let shell = server.session().await;
    let asked = |args: &[&str]| {
        let trace = server.home().file("trace");
        let ptyd = server.ptyd(args);
        let mut strace = std::process::Command::new("strace");
        strace
            .args(["-f", "-e", "trace=sendto,write,writev", "-s", "200", "-o"])
            .arg(&trace)
            .arg(ptyd.get_program())
            .args(args);
        strace.env_clear().envs(server.home().environment()).stdin(Stdio::null());
        assert!(strace.output().expect("strace is there").status.success(), "{args:?}");
        let trace = std::fs::read_to_string(trace).expect("written");
        trace.matches("GET /terminals?").count()
    };
    assert_eq!(asked(&["logs", &shell.id]), 0);
    assert_eq!(asked(&["logs", &shell.id[..8]]), 1, "only what lives is looked at");
    shell.ends().await;
    assert_eq!(asked(&["logs", &shell.id]), 0);
}

#[tokio::test]
async fn each_kind_of_failure_has_its_own_exit_code() {
    let server = Server::start();
    let of = |args: &[&str]| {
        let (out, err, code) = ptyd(&server, args);
        assert!(out.is_empty() && !err.is_empty(), "{args:?}: {out:?} {err:?}");
        code
    };
    assert_eq!(of(&["logs", "nobody"]), Some(3));
    assert_eq!(of(&["kill", "nobody"]), Some(3));
    assert_eq!(of(&["ls", "--no-such-option"]), Some(2));
    assert_eq!(of(&["attach", "nobody"]), Some(2), "there is no terminal");
    server.stop();
    assert_eq!(of(&["ls"]), Some(5));
    server.again();
}

#[tokio::test]
// promise: cli-6
async fn the_exit_code_says_that_nobody_read_the_output() {
    let server = Server::start();
    server.session().await;
    let commands =
        ["ls --json", "ls", "new --json", "new", "config show --json", "config show", "doctor", "logs nobody"];
    for command in commands {
        let args: Vec<_> = command.split(' ').collect();
        let [out, err] = [(), ()].map(|()| UnixStream::pair().expect("a pair").0);
        let unread = |end: UnixStream| Stdio::from(OwnedFd::from(end));
        let status = server.ptyd(&args).stdin(Stdio::null()).stdout(unread(out)).stderr(unread(err)).status();
        let code = if command == "logs nobody" { 3 } else { 1 };
        assert_eq!(status.expect("it can be executed").code(), Some(code), "{command}");
    }
}

#[tokio::test]
async fn a_command_starts_a_server_if_none_runs_and_the_server_outlives_it() {
    let server = Server::start_in(Home::make(), e2e::Start::default());
    server.stop();
    assert_eq!(ptyd(&server, &["run", "echo on demand"]), ("on demand\n".to_owned(), String::new(), Some(0)));
    assert_eq!(ptyd(&server, &["ls"]).2, Some(0), "it is still there");
    // A child that the server has just forked has its command line for a moment.
    let started = e2e::eventually("one server", async || {
        Some(e2e::marked(server.home().path())).filter(|started| started.len() == 1)
    });
    let started = started.await;
    started[0].signal(rustix::process::Signal::TERM);
    assert!(started[0].ends_within(e2e::PATIENCE));
    server.again();
}

#[tokio::test]
// promise: cli-9
async fn every_client_of_a_state_directory_finds_its_one_server_whatever_its_environment_lacks() {
    let server = Server::start();
    // The server's socket is elsewhere, and this client knows the state directory alone.
    let mut lists = server.ptyd(&["ls"]);
    lists.env_remove("PTYD_RUNTIME_DIR").env_remove("XDG_RUNTIME_DIR");
    assert_eq!(lists.stdout(Stdio::null()).status().expect("it can be executed").code(), Some(0));

    // Codex, cron and SDKs start programs without XDG_RUNTIME_DIR, a login shell with it.
    let home = server.home().file("person");
    std::fs::create_dir_all(home.join("run")).expect("made");
    for first_has_it in [true, false] {
        for has_it in [first_has_it, !first_has_it] {
            let mut run = server.ptyd(&["run", "echo here"]);
            run.env_clear().env("HOME", &home).env("PATH", "/usr/bin:/bin");
            if has_it {
                run.env("XDG_RUNTIME_DIR", home.join("run"));
            }
            let said = run.output().expect("it can be executed");
            assert_eq!((said.stdout, said.status.code()), (b"here\n".to_vec(), Some(0)), "{has_it}");
        }
        let servers = e2e::marked(&home).into_iter().filter(|pid| pid.command_line().contains(" serve "));
        let servers: Vec<_> = servers.collect();
        assert_eq!(servers.len(), 1);
        servers[0].signal(rustix::process::Signal::TERM);
        assert!(servers[0].ends_within(e2e::PATIENCE));
    }
}

#[tokio::test]
// promise: cli-1
async fn run_prints_its_json_also_if_the_exit_code_is_unknown() {
    let server = Server::start();
    let shell = server.session().await;
    ptyd(&server, &["run", "-s", &shell.id, "exec cat"]);
    let (shown, why, code) = ptyd(&server, &["run", "-s", &shell.id, "--json", "here"]);
    let shown: Value = serde_json::from_str(&shown).unwrap_or_else(|e| panic!("{e}: {shown} {why}"));
    assert_eq!((&shown["command"], &shown["exitCode"], code), (&json!("here"), &Value::Null, Some(1)), "{why}");
    assert!(shown["output"].as_str().is_some_and(|output| output.contains("here")), "{shown}");
    assert!(why.contains("exit code is unknown"), "{why}");
}

#[tokio::test]
// promise: limit-1
async fn a_session_is_made_with_a_lifetime_and_limits() {
    let server = Server::start();
    let new = |more: &[&str]| ptyd(&server, &[&["new", "--json"], more].concat());
    let (made, _, code) = new(&[
        "--inactivity-timeout",
        "600",
        "--max-age",
        "3600",
        "--limit",
        "cpuSeconds=2.5",
        "--limit",
        "openFiles=64",
    ]);
    let made: Value = serde_json::from_str(&made).expect("JSON");
    let limits = ["limits", "inactivityTimeout", "maxAge"].map(|name| made[name].clone());
    let expected = [json!({ "cpuSeconds": 2.5, "openFiles": 64 }), json!(600.0), json!(3600.0)];
    assert_eq!((limits, code), (expected, Some(0)));
    // The command line refuses a wrong name, the server a wrong number.
    for (wrong, status, why) in [
        ("cpu=1", 2, "unknown field `cpu`"),
        ("cpuSeconds", 2, "must be NAME=NUMBER"),
        ("openFiles=many", 2, "many is not a number"),
        ("openFiles=3", 1, "limits.openFiles: 3 is not between 32 and 1048576"),
    ] {
        let (out, err, code) = new(&["--limit", wrong]);
        assert_eq!((out.as_str(), code, err.contains(why)), ("", Some(status), true), "{wrong}: {err}");
    }
}
