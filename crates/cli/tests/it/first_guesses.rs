//! The command line that people and agents use first: words that they know from docker, tmux and gh do here what they do there, `setup`
//! adds ptyd to their clients, and each command of the skill works.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::home::Home;

#[test]
// promise: cli-10
fn a_session_is_started_found_used_and_ended_by_the_words_of_other_tools() {
    let home = Home::new();
    let work = home.prints(&["new", "work"]);
    let work = work.trim();
    for list in [&["ps", "-q"][..], &["list", "-q"], &["ls", "-l", "-q"], &["ps", "-a", "--quiet"]] {
        assert_eq!(home.prints(list).trim(), work, "{list:?}");
    }
    assert!(home.prints(&["ls", "--json"]).contains("\"name\": \"work\""));
    assert!(home.prints(&["inspect", "work"]).contains(work));
    for run in [&["exec", "work", "echo", "$HOME; x"][..], &["exec", "-it", "work", "echo", "$HOME; x"]] {
        assert_eq!(home.prints(run), "$HOME; x\n", "several words are a program and its arguments");
    }
    assert_eq!(home.fails(&["exec", "work", "exit 7"]).0, 7);
    let other = home.prints(&["new-session", "-d", "-s", "x"]);
    assert_eq!(home.prints(&["ls", "-q"]), other, "exit ended the first one");
    home.prints(&["kill-session", "-t", "x"]);
    let third = home.prints(&["new", "-s", "third", "--", "printf", "%s\n", "a b", "c"]);
    assert_eq!(home.prints(&["wait", "third"]), "ended\n");
    assert_eq!(home.prints(&["logs", "--command", "c1", "third"]), "a b\nc\n");
    home.prints(&["resize", "third", "90x20"]);
    assert_eq!(home.prints(&["exec", "third", "tput cols"]), "90\n");
    home.prints(&["kill", "-9", third.trim()]);
    assert_eq!(home.prints(&["delete", "third"]), "");
    let (code, said) = home.fails(&["new", "ls"]);
    assert!(code == 0 && said.contains("`ptyd new -- ls` runs the program"), "{said}");
}

#[test]
// promise: cli-10
fn output_is_read_as_the_habits_of_logs_history_and_search_have_it() {
    let home = Home::new();
    home.prints(&["new", "first"]);
    home.prints(&["exec", "first", "seq 1 50"]);
    assert_eq!(home.fails(&["exec", "first", "echo needle; (exit 3)"]).0, 3);
    home.prints(&["new", "second"]);
    home.prints(&["exec", "second", "echo another needle"]);
    assert_eq!(
        home.prints(&["logs", "--command", "c1", "first"]),
        (1..=50).map(|n| format!("{n}\n")).collect::<String>()
    );
    let all = home.prints(&["logs", "first"]);
    for lines in [1, 3, 30] {
        let tail = home.prints(&["logs", "-n", &lines.to_string(), "first"]);
        let last: Vec<_> = all.lines().rev().take(lines).collect::<Vec<_>>().into_iter().rev().collect();
        assert_eq!(tail.lines().collect::<Vec<_>>(), last, "{lines}");
    }
    assert_eq!(home.prints(&["logs", "--since", "1h", "first"]), all);
    assert_eq!(home.prints(&["logs", "--tail", "0", "first"]), "");
    let (code, said) = home.fails(&["logs", "-t", "first"]);
    assert!(code == 2 && said.contains("without timestamps"), "{said}");
    let history = home.prints(&["history", "first"]);
    let rows: Vec<Vec<&str>> = history.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!((rows[0][1], &rows[1][..2], &rows[2][..2]), ("CODE", &["c1", "0"][..], &["c2", "3"][..]), "{history}");
    let last: Vec<api::CommandExecution> =
        serde_json::from_str(&home.prints(&["history", "-n", "1", "--json", "first"])).expect("JSON");
    assert_eq!(last.iter().map(|command| command.id.as_str()).collect::<Vec<_>>(), ["c2"]);
    assert_eq!(home.prints(&["search", "first", "needle$"]), "c2: needle\n");
    assert_eq!(home.prints(&["search", "^(another )?needle$"]), "first c2: needle\nsecond c1: another needle\n");
    assert_eq!(home.fails(&["search", "no such text"]).0, 1);
    let screen = home.prints(&["screen", "second"]);
    assert!(screen.contains("another needle") && !screen.contains('\x1b'), "{screen}");
    assert_eq!(home.prints(&["capture-pane", "-p", "-t", "second"]), screen);
    assert!(home.prints(&["screen", "--ansi", "second"]).contains('\x1b'));
}

#[test]
// promise: cli-10
fn the_server_is_started_shown_and_described_by_the_words_of_other_tools() {
    let home = Home::new();
    let (code, said) = home.fails(&["serve", "--background"]);
    assert!(code == 0 && said.contains("server.log"), "{said}");
    let (code, said) = home.fails(&["serve", "-d"]);
    assert!(code == 1 && said.contains("a server already runs"), "{said}");
    home.prints(&["run", "-d", "--name", "asks", "--limit", "openFiles=100", "-e", "WORD=x", "read -p \"$WORD? \" y"]);
    assert_eq!(home.fails(&["wait", "asks"]).0, 6);
    for status in ["status", "info"] {
        let told = home.prints(&[status]);
        assert!(told.contains("1 waiting for a person") && told.contains("asks: wants input"), "{told}");
    }
    let told: serde_json::Value = serde_json::from_str(&home.prints(&["status", "--json"])).expect("JSON");
    assert_eq!((&told["sessions"], &told["idle"]), (&1.into(), &0.into()));
    for top in ["top", "stats"] {
        assert!(home.prints(&[top]).lines().any(|line| line.contains("asks")));
    }
    assert_eq!(home.prints(&["approve"]) + &home.prints(&["deny"]), "");
    for list in [&["token", "list"][..], &["secret", "list"], &["config", "list"], &["version"]] {
        home.prints(list);
    }
    assert_eq!(home.prints(&["version"]), home.prints(&["--version"]));
    home.prints(&["token", "create", "x", "--unconfined"]);
    home.prints(&["token", "delete", "x"]);
}

#[test]
// promise: cli-10
fn shells_and_man_read_the_whole_command_line() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = home.prints(&["completion", shell]);
        let file = home.dir.path().join("script");
        std::fs::write(&file, &script).expect("written");
        // A shell that is not on this machine is one that this test cannot ask.
        if let Ok(checked) = Command::new(shell).arg("-n").arg(&file).env_clear().output() {
            assert!(checked.status.success(), "{shell}: {checked:?}");
        }
    }
    assert!(home.prints(&["man"]).contains("ptyd") && home.prints(&["man", "run"]).contains("approval"));
    assert_eq!(home.fails(&["man", "nothing"]).0, 2);
}

#[test]
// promise: cli-6
fn a_word_that_is_not_known_gets_no_tip_that_leads_elsewhere() {
    let home = Home::new();
    for words in [
        &["share", "demo"][..],
        &["self", "update"],
        &["login"],
        &["update"],
        &["run", "-x", "true"],
        &["send", "s", "-x"],
        &["rename"],
    ] {
        let (code, said) = home.fails(words);
        assert!(code == 2 && !said.contains("tip:"), "{words:?}: {said}");
    }
    for (word, meant) in [("attch", "attach"), ("serch", "search"), ("histry", "history")] {
        let (code, said) = home.fails(&[word]);
        assert!(code == 2 && said.contains(&format!("'{meant}'")), "{word}: {said}");
    }
    home.prints(&["new", "s"]);
    let (code, said) = home.fails(&["stop", "s"]);
    assert!(code == 2 && said.contains("`ptyd kill s` ends a session"), "{said}");
    let (code, said) = home.fails(&["send", "s", "--entr", "ls"]);
    assert!(code == 2 && said.contains("--entr"), "{said}");
}

#[test]
// promise: cli-10
fn a_wait_tells_by_its_code_what_came() {
    let home = Home::new();
    home.prints(&["new", "w"]);
    assert_eq!(home.prints(&["wait", "w"]), "ended\n", "nothing runs");
    home.prints(&["run", "-d", "--name", "d", "sleep 600"]);
    assert_eq!(home.fails(&["wait", "d", "--timeout", "0.2"]).0, 124);
    home.prints(&["keys", "d", "C-c"]);
    let _ = home.fails(&["wait", "d"]);
    home.prints(&["send", "--enter", "w", "read answer; (exit $answer)"]);
    let (code, _) = home.fails(&["wait", "w"]);
    assert_eq!(code, 6, "it asks");
    home.prints(&["send-keys", "w", "5", "Enter"]);
    // The shell tells the code of the typed line.
    let waited = home.ptyd(&["wait", "w", "--timeout", "60"]);
    assert_eq!((waited.status.code(), waited.stdout.as_slice()), (Some(1), b"ended 5\n".as_slice()));
}

/// A program that appends its arguments to `calls`, as the hosts' own commands get them.
const RECORDS: &str = "#!/bin/sh\necho \"${0##*/} $*\" >> \"$HOME/calls\"\n";

#[test]
// promise: cli-11
fn setup_adds_ptyd_to_every_client_and_undo_leaves_no_trace() {
    let home = Home::new();
    let zed = "// mine\n{\n  \"theme\": \"One\", // dark\n}\n";
    home.has(".config/zed/settings.json", zed);
    home.has(".config/Code/User/settings.json", "{}");
    home.has(".cursor/mcp.json", "{\"mcpServers\": {\"other\": {\"command\": \"x\"}}}");
    home.has(".claude/settings.json", "{\n  \"permissions\": {\"allow\": [\"Bash(ls)\"]}\n}\n");
    for host in ["claude", "codex"] {
        home.has(&format!("bin/{host}"), RECORDS);
        let program = home.dir.path().join("bin").join(host);
        std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).expect("set");
    }
    let before = home.files();
    let (code, said) = home.fails(&["setup", "--print", "--allow", "--instructions", "--skill"]);
    assert!(
        code == 0 && ["Claude Code", "Codex", "Cursor", "VS Code", "Zed"].iter().all(|host| said.contains(host)),
        "{said}"
    );
    let (code, said) = home.fails(&["setup"]);
    assert!(code == 2 && said.contains("add --yes"), "{said}");
    assert_eq!(home.files(), before, "nothing is written unasked");
    let binary = std::fs::canonicalize(env!("CARGO_BIN_EXE_ptyd")).expect("it is there");
    let binary = binary.to_str().expect("text");
    for _ in 0..2 {
        assert_eq!(home.fails(&["setup", "--yes", "--allow", "--instructions", "--skill"]).0, 0);
    }
    let files = home.files();
    let read = |path: &str| files.get(&home.dir.path().join(path)).unwrap_or_else(|| panic!("{path} is there"));
    for (file, list) in [
        (".cursor/mcp.json", "mcpServers"),
        (".config/Code/User/mcp.json", "servers"),
        (".config/zed/settings.json", "context_servers"),
    ] {
        let text: String = read(file)
            .lines()
            .map(|line| line.split(" //").next().unwrap_or_default())
            .filter(|l| !l.starts_with("//"))
            .collect();
        let json: serde_json::Value = serde_json::from_str(&text.replace(",}", "}")).expect(&text);
        assert_eq!(
            (&json[list]["ptyd"]["command"], &json[list]["ptyd"]["args"][0]),
            (&binary.into(), &"mcp".into()),
            "{file}"
        );
    }
    assert!(read(".cursor/mcp.json").contains("other") && read(".config/zed/settings.json").contains("// dark"));
    assert!(read(".claude/settings.json").contains("\"Bash(ls)\", \"mcp__ptyd\""));
    assert!(read(".claude/CLAUDE.md").contains("ptyd") && read(".codex/AGENTS.md").contains("ptyd"));
    assert!(read(".claude/skills/ptyd/SKILL.md") == read(".agents/skills/ptyd/SKILL.md"));
    let added = format!("claude mcp add --scope user ptyd -- {binary} mcp\ncodex mcp add ptyd -- {binary} mcp\n");
    assert_eq!(*read("calls"), added.repeat(2));
    assert_eq!(home.fails(&["setup", "--undo"]).0, 0);
    let mut after = home.files();
    let calls = after.remove(&home.dir.path().join("calls")).expect("calls");
    assert!(
        calls.contains("claude mcp remove --scope user ptyd") && calls.contains("codex mcp remove ptyd"),
        "{calls}"
    );
    assert_eq!(after.into_iter().filter(|(path, _)| !path.ends_with("state")).collect::<BTreeMap<_, _>>(), before);
}

#[test]
// promise: cli-11
fn every_command_of_the_skill_works() {
    let home = Home::new();
    home.has("src/file", "");
    home.has("password-file", "a password\n");
    home.has("bin/nothing", "");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_ptyd"), home.dir.path().join("bin/ptyd")).expect("linked");
    let skill = home.prints(&["skill"]);
    assert!(skill.lines().count() <= 60, "{}", skill.lines().count());
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
    let blocks: Vec<&str> = skill.split("```sh\n").skip(1).filter_map(|block| block.split("```").next()).collect();
    let mut ran = 0;
    for line in blocks.iter().flat_map(|block| block.lines()) {
        let line = line.replace("8765", &port.to_string());
        let mut shell = Command::new("sh");
        let output = home.environment(shell.args(["-c", &line])).output().expect("it runs");
        let expected: &[i32] = match line.as_str() {
            line if line.contains("exec --timeout 2 server") => &[124],
            line if line.contains("search") => &[1],
            line if line.contains("'read ") => &[6],
            // Python's server handles the interrupt as it likes.
            "ptyd wait server --timeout 30" => &[0, 1],
            _ => &[0],
        };
        assert!(output.status.code().is_some_and(|code| expected.contains(&code)), "{line}: {output:?}");
        if line == "ptyd screen work" {
            assert!(String::from_utf8_lossy(&output.stdout).contains("Hello Ada"), "{output:?}");
        }
        ran += 1;
    }
    assert!(ran >= 18, "{ran}");
    home.prints(&["skill", "--add"]);
    let added = std::fs::read_to_string(home.dir.path().join(".agents/skills/ptyd/SKILL.md")).expect("text");
    assert_eq!(added, skill);
}

#[test]
// promise: cli-11
fn an_agent_reads_the_whole_command_line_as_json() {
    let home = Home::new();
    let told: serde_json::Value = serde_json::from_str(&home.prints(&["agent-context"])).expect("JSON");
    let commands = told["commands"].as_array().expect("a list");
    let names: Vec<&str> = commands.iter().filter_map(|command| command["name"].as_str()).collect();
    for name in ["run", "exec", "send", "keys", "wait", "screen", "logs", "history"] {
        assert!(names.contains(&name), "{names:?}");
        assert!(home.ptyd(&[name, "--help"]).status.success());
    }
    let wait = commands.iter().find(|command| command["name"] == "wait").expect("there");
    let until =
        wait["options"].as_array().and_then(|all| all.iter().find(|one| one["name"] == "--until")).expect("there");
    assert!(
        until["about"].as_str().is_some_and(|about| about.contains("listening:PORT")) && until["value"] == "CONDITION"
    );
    let codes = told["exitCodes"].as_array().expect("a list");
    let help = home.prints(&["--help"]);
    for code in codes {
        let line =
            format!("  {:<3}  {}\n", code["code"].as_u64().expect("a number"), code["meaning"].as_str().expect("text"));
        assert!(help.contains(&line), "{line}{help}");
    }
    assert_eq!(codes.len(), 10);
}
