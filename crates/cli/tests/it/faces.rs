//! A person recognises sessions: by names of which no two are the same, and by a list that says what each of them does.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use crate::home::Home;

/// The rows of `ls`, without headings.
fn rows(home: &Home, arguments: &[&str]) -> Vec<String> {
    home.prints(arguments).lines().skip(1).map(str::to_owned).collect()
}

#[test]
// promise: cli-15
fn of_many_starts_with_one_name_at_once_one_succeeds_and_the_others_name_it() {
    let home = Home::new();
    home.prints(&["serve", "--background"]);
    let starts: Vec<_> = (0..8)
        .map(|_| {
            let mut start = home.command(&["new", "--name", "demo"]);
            start.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
        })
        .collect();
    let ends: Vec<_> = starts.into_iter().map(|start| start.wait_with_output().expect("it ends")).collect();
    let (made, refused): (Vec<_>, Vec<_>) = ends.iter().partition(|end| end.status.success());
    assert_eq!((made.len(), refused.len()), (1, 7), "{ends:?}");
    let id = String::from_utf8_lossy(&made[0].stdout).trim().to_owned();
    for end in refused {
        let said = String::from_utf8_lossy(&end.stderr);
        assert!(
            said.contains(&format!("session {id} is already named demo")) && end.status.code() == Some(1),
            "{said}"
        );
    }
    // The name is free once its session has ended.
    home.prints(&["kill", "demo"]);
    home.prints(&["new", "demo"]);
}

#[test]
// promise: cli-15
fn a_new_name_is_kept_by_the_next_server_and_in_the_records() {
    let home = Home::new();
    let first = home.prints(&["new", "one"]);
    home.prints(&["new", "two"]);
    let (code, said) = home.fails(&["rename", "two", "one"]);
    assert!(code == 1 && said.contains("already named one"), "{said}");
    for wrong in ["", "a\tb", first.trim(), &"x".repeat(101)] {
        assert_ne!(home.fails(&["rename", "two", wrong]).0, 0, "{wrong:?}");
    }
    home.prints(&["rename", "one", "claude/web"]);
    home.prints(&["rename", "two", "one"]);
    home.prints(&["exec", "claude/web", "true"]);
    home.end_server(sys::signal::KILL);
    home.prints(&["serve", "--background"]);
    assert_eq!(home.prints(&["exec", "claude/web", "echo $PTYD_SESSION"]), first);
    let (code, said) = home.fails(&["new", "claude/web"]);
    assert!(code == 1 && said.contains(first.trim()), "{said}");
    home.prints(&["kill", "claude/web"]);
    assert!(home.prints(&["ls", "--all", "--json"]).contains("\"name\": \"claude/web\""));
    assert!(
        rows(&home, &["ls", "--all"])
            .iter()
            .any(|row| row.starts_with("claude/web ") && row.contains("ended, code 0  echo"))
    );
}

/// The answers of an MCP client of this name, which calls these tools in this folder of the home.
fn calls(home: &Home, client: &str, folder: &str, tools: &[(&str, &str)]) -> Vec<serde_json::Value> {
    let mut command = home.command(&["mcp"]);
    let mut mcp = command
        .current_dir(home.dir.path().join(folder))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let (mut to, from) = (mcp.stdin.take().expect("a pipe"), mcp.stdout.take().expect("a pipe"));
    let mut lines = BufReader::new(from).lines();
    let mut ask = |id: usize, method: &str, params: serde_json::Value| {
        let request = serde_json::json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        writeln!(to, "{request}").expect("it reads");
        serde_json::from_str::<serde_json::Value>(&lines.next().expect("an answer").expect("text")).expect("JSON")
    };
    let hello = serde_json::json!({ "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": { "name": client, "version": "1" } });
    ask(0, "initialize", hello);
    let answers = tools.iter().enumerate().map(|(number, (tool, arguments))| {
        let arguments: serde_json::Value = serde_json::from_str(arguments).expect("JSON");
        ask(number + 1, "tools/call", serde_json::json!({ "name": tool, "arguments": arguments }))
    });
    let answers = answers.collect();
    drop(to);
    mcp.wait().expect("it ends");
    answers
}

#[test]
// promise: cli-15
fn an_agents_sessions_are_called_after_it_and_its_folder_and_the_audit_log_names_it() {
    let home = Home::new();
    std::fs::create_dir(home.dir.path().join("web")).expect("made");
    let shell = [("terminal", "{\"command\": \"echo hi\"}"), ("start_terminal_session", "{}")];
    calls(&home, "claude-code", "web", &shell);
    calls(&home, "My Agent", "web", &shell[..1]);
    let all: Vec<serde_json::Value> = serde_json::from_str(&home.prints(&["ls", "--json"])).expect("JSON");
    let names: BTreeSet<_> =
        all.iter().filter_map(|one| Some((one["name"].as_str()?, one["clientName"].as_str()?))).collect();
    let expected = [("claude/web", "claude-code"), ("claude/web-2", "claude-code"), ("my-agent/web", "My Agent")];
    assert_eq!(names, expected.into());
    assert!(rows(&home, &["ls"]).iter().all(|row| row.ends_with("  ~/web")), "{}", home.prints(&["ls"]));
    let audit = home.prints(&["audit", "--action", "start"]);
    assert!(audit.contains("clientName=claude-code") && audit.contains("clientName=\"My Agent\""), "{audit}");
}

#[test]
// promise: cli-15
fn the_list_begins_with_what_waits_for_a_person_and_leaves_out_what_other_commands_wait_for() {
    let home = Home::new();
    home.prints(&["new", "rests"]);
    home.prints(&["new", "types"]);
    home.prints(&["send", "types", "sleep 12345"]);
    home.prints(&["wait", "types", "--until", "quiet:100"]);
    home.prints(&["run", "-d", "--name", "asks", "read -p 'Deploy? ' answer"]);
    assert_eq!(home.fails(&["wait", "asks"]).0, 6);
    home.prints(&["new", "over", "--", "exit 3"]);
    let _ = home.fails(&["wait", "over"]);
    assert_eq!(home.fails(&["run", "exit 7"]).0, 7);
    let columns = |rows: Vec<String>| -> Vec<Vec<String>> {
        rows.iter()
            .map(|row| row.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect())
            .collect()
    };
    let live = columns(rows(&home, &["ls"]));
    let told: Vec<_> = live.iter().map(|row| [&row[0], &row[2], &row[3]].map(String::as_str)).collect();
    let expected = [
        ["asks", "wants input", "read -p 'Deploy? ' answer"],
        ["types", "running", "sleep 12345"],
        ["rests", "idle", "-"],
    ];
    assert_eq!(told, expected);
    let all = columns(rows(&home, &["ls", "--all"]));
    let ended: Vec<_> = all[3..].iter().map(|row| [&row[1], &row[2], &row[3]].map(String::as_str)).collect();
    assert_eq!(ended, [["ptyd-run", "ended, code 7", "exit 7"], ["ptyd", "ended, code 3", "exit 3"]]);
    // Ids are there for programs.
    let ids = home.prints(&["ls", "-q"]);
    assert_eq!(ids.lines().count(), 3);
}

#[test]
// promise: cli-15
fn a_command_of_another_command_is_listed_on_request_and_mentioned_without() {
    let home = Home::new();
    home.prints(&["serve", "--background"]);
    let mut command = home.command(&["run", "echo ready; read x"]);
    let mut run = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    let mut line = String::new();
    BufReader::new(run.stdout.take().expect("a pipe")).read_line(&mut line).expect("text");
    assert_eq!(line, "ready\n");
    let listed = home.ptyd(&["ls"]);
    assert!(listed.stdout.is_empty(), "{listed:?}");
    let said = String::from_utf8_lossy(&listed.stderr).into_owned();
    assert!(said.contains("1 session of another command is not listed"), "{said}");
    assert!(rows(&home, &["ls", "--all"])[0].contains("  ptyd-run  "));
    home.prints(&["kill", "--all"]);
    run.wait().expect("it ends");
}

/// The output of a command in a terminal of this width.
fn in_terminal(home: &Home, cols: u16, arguments: &str, variables: &[(&str, &str)]) -> String {
    let mut script = Command::new("script");
    let line = format!("stty cols {cols} rows 20; {} {arguments}", env!("CARGO_BIN_EXE_ptyd"));
    home.environment(script.args(["-qec", &line, "/dev/null"])).env("TERM", "xterm").envs(variables.iter().copied());
    let output = script.stdin(Stdio::null()).output().expect("script runs");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
// promise: cli-15
fn in_a_terminal_the_list_fits_and_colours_what_waits_unless_told_not_to() {
    let home = Home::new();
    home.prints(&["new", "漢字の名前"]);
    home.prints(&["run", "-d", "--name", "asks", &format!("read -p '{}? ' x", "long ".repeat(30))]);
    assert_eq!(home.fails(&["wait", "asks"]).0, 6);
    for cols in [20, 60, 80] {
        let list = in_terminal(&home, cols, "ls", &[("NO_COLOR", "1")]);
        assert!(!list.contains('\x1b') && list.contains('…'), "{list}");
        for line in list.lines() {
            let width: usize = line.trim_end().chars().map(|c| if c.is_ascii() || c == '…' { 1 } else { 2 }).sum();
            assert!(width <= cols.into(), "{width} in {cols}: {line:?}");
        }
    }
    let list = in_terminal(&home, 80, "ls", &[]);
    let coloured: Vec<_> = list.lines().filter(|line| line.contains('\x1b')).collect();
    assert!(coloured.len() == 1 && coloured[0].contains("asks"), "{list:?}");
    assert!(!home.prints(&["ls"]).contains('\x1b'), "a pipe has no colours");
}

/// The offers of a shell behind `ptyd attach cl`, by the script that ptyd prints for it.
const ASKS: [(&str, &str); 3] = [
    (
        "bash",
        "source <(ptyd completion bash); COMP_WORDS=(ptyd attach cl); COMP_CWORD=2; COMP_TYPE=9; \
         $(complete -p ptyd | sed 's/.*-F \\([^ ]*\\).*/\\1/') ptyd cl attach; printf '%s\\n' \"${COMPREPLY[@]}\"",
    ),
    (
        "zsh",
        // Outside of a prompt zsh completes nothing, so what its own functions are given is printed.
        "compdef() { asked=$1 }; _describe() { print -l \"${(@P)argv[-1]}\" }; eval \"$(ptyd completion zsh)\"; \
         words=(ptyd attach cl); CURRENT=3; $asked",
    ),
    ("fish", "ptyd completion fish | source; complete -C 'ptyd attach cl'"),
];

#[test]
// promise: cli-15
fn each_shell_completes_the_names_of_live_sessions() {
    let home = Home::new();
    std::fs::create_dir_all(home.dir.path().join("bin")).expect("made");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_ptyd"), home.dir.path().join("bin/ptyd")).expect("linked");
    let offers = |shell: &str, asks: &str| {
        let output = home.environment(Command::new(shell).args(["-c", asks])).output();
        output.ok().map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let mut asked = 0;
    for (shell, asks) in ASKS {
        // A shell that is not on this machine is one that this test cannot ask.
        let Some(before) = offers(shell, asks) else { continue };
        assert!(!before.contains("claude") && !home.state().join("lock").exists(), "{shell}: no server is started");
        asked += 1;
    }
    assert!(asked > 0);
    home.prints(&["new", "claude/web"]);
    home.prints(&["new", "codex/api"]);
    // An agent names a session, and a person completes it: the shell must not run the name.
    let hostile = [
        "cl;touch ran",
        "cl$(touch ran)",
        "cl`touch ran`",
        "cl*",
        "cl a",
        "cl|touch ran",
        "cl&",
        "cl'",
        "cl~",
        "cl\u{202e}x",
    ];
    for name in hostile {
        home.prints(&["new", name]);
    }
    for (shell, asks) in ASKS {
        if let Some(offered) = offers(shell, asks) {
            assert!(offered.contains("claude/web") && !offered.contains("codex"), "{shell}: {offered:?}");
            assert_eq!(offered.matches("cl").count(), 1, "{shell}: {offered:?}");
        }
    }
}
