//! The command line that people guess: words that they know from docker, tmux, gh and git do here what they do there.

use std::path::PathBuf;
use std::process::{Command, Output};

/// A home of its own, with the server that its first command starts.
struct Home {
    dir: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().expect("a directory") }
    }

    fn lock(&self) -> PathBuf {
        self.dir.path().join("state/lock")
    }

    fn ptyd(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ptyd"));
        command.args(arguments).env_clear().current_dir(self.dir.path());
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", self.dir.path()).env("LC_ALL", "C.UTF-8");
        command.env("PTYD_STATE_DIR", self.dir.path().join("state")).env("PTYD_LISTEN", "127.0.0.1:0");
        command.output().expect("ptyd runs")
    }

    /// The standard output of a command that succeeds.
    fn prints(&self, arguments: &[&str]) -> String {
        let output = self.ptyd(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// The exit code, and what was printed for people.
    fn fails(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.ptyd(arguments);
        (output.status.code().expect("a code"), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        self.ptyd(&["kill", "--all", "--force"]);
        let pid = std::fs::read_to_string(self.lock()).ok().and_then(|text| text.trim().parse().ok());
        if let Some(pid) = pid
            && sys::signal::send(pid, sys::signal::TERM).is_ok()
        {
            let lock = std::fs::File::open(self.lock()).expect("the lock file");
            lock.lock().expect("free once the server has ended");
        }
    }
}

#[test]
// promise: cli-10
fn a_session_is_started_found_used_and_ended_by_the_words_of_other_tools() {
    let home = Home::new();
    let work = home.prints(&["new", "work"]);
    let work = work.trim();
    for list in [&["ps", "-q"][..], &["list", "-q"], &["ls", "-l", "-q"], &["ps", "-a", "--quiet"]] {
        assert_eq!(home.prints(list).trim(), work, "{list:?}");
    }
    assert!(home.prints(&["ls", "--format", "json"]).contains("\"name\": \"work\""));
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
    assert_eq!(home.prints(&["logs", "--tail", "0", "-t", "first"]), "");
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
        assert!(told.contains("1 waiting for somebody") && told.contains("asks: input_wanted"), "{told}");
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
        assert!(["attach", "--timeout", "history"].iter().all(|word| script.contains(word.trim_start_matches('-'))));
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
        &["dashboard"],
        &["login"],
        &["update"],
        &["run", "-x", "true"],
        &["send", "s", "-x"],
        &["rename", "a"],
    ] {
        let (code, said) = home.fails(words);
        assert!(code == 2 && !said.contains("tip:"), "{words:?}: {said}");
    }
    for (word, meant) in [("attch", "attach"), ("serch", "search"), ("histry", "history")] {
        let (code, said) = home.fails(&[word]);
        assert!(code == 2 && said.contains(&format!("'{meant}'")), "{word}: {said}");
    }
    home.prints(&["new", "s"]);
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
    assert_eq!(home.prints(&["wait", "w", "--timeout", "60"]), "ended\n", "a typed line is no command with a code");
}
