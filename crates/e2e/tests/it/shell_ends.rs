//! Ends of commands in every shell: questions, exit codes, forgeries, the shell's own death, refused commands,
//! interrupts.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use api::{Boundary, CommandStatus, EndedBy, ErrorCode, ExecuteRequest, Foreground, SessionStatus, WaitRequest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use e2e::shells::{Dialect, Trial, each};
use e2e::{count, eventually, marked};

#[tokio::test]
// promise: end-1
async fn a_question_is_not_an_end() {
    each("1 a question is not an end", async |t| {
        // The first command of a new session: the prompt was never used.
        let shell = t.dialect.session(t.server).await;
        let asked = shell.run(&t.dialect.ask("name? ")).await;
        let state = (asked.status, asked.ended_by, asked.foreground);
        let wanted = (CommandStatus::Running, Some(EndedBy::InputWanted), Some(Foreground::InputWanted));
        assert_eq!(state, wanted, "{:?}: {asked:?}", t.dialect);
        assert!(asked.output.as_deref().is_some_and(|o| o.ends_with("name? ")), "{:?}: {asked:?}", t.dialect);
        let answer = shell.types("John").await;
        assert_eq!(answer.ended_by, EndedBy::Ended, "{:?}: {answer:?}", t.dialect);
        let done = shell.end_of(&asked).await;
        let output = done.output.clone().unwrap_or_default();
        assert!(output.ends_with("got:John\n"), "{:?}: {done:?}", t.dialect);
        let told = (done.status, done.exit_code, done.boundary);
        assert_eq!(told, (CommandStatus::Completed, Some(0), Boundary::Attested), "{:?}: {done:?}", t.dialect);
    })
    .await;
}

#[tokio::test]
// promise: end-3, shell-1
async fn an_exit_code_is_the_commands_own() {
    each("2 exit codes", async |t| {
        for (command, code, signal) in [
            ("true".to_owned(), 0, None),
            ("false".to_owned(), 1, None),
            (t.dialect.code(7), 7, None),
            ("no-such-command".to_owned(), 127, None),
            ("/etc/passwd".to_owned(), 126, None),
            ("sh -c 'kill -TERM $$'".to_owned(), 143, Some("TERM")),
            ("false | true".to_owned(), 0, None),
        ] {
            let done = t.shell.run(&command).await;
            let told = (done.status, done.exit_code, done.signal.as_deref());
            assert_eq!(told, (CommandStatus::Completed, Some(code), signal), "{:?}: {command}", t.dialect);
        }
        // The next command sees the one before.
        let status = if t.dialect.is_fish() { "echo $status" } else { "echo $?" };
        t.shell.gives(&t.dialect.code(9)).await;
        assert_eq!(t.gives(status).await, t.is(0, "9\n"));
    })
    .await;
}

#[tokio::test]
async fn each_part_of_a_pipeline_has_a_status() {
    each("2 a status for each part of a pipeline", async |t| {
        let five = t.dialect.code(5);
        for (command, code, statuses) in [
            ("false | true".to_owned(), 0, vec![1, 0]),
            (format!("true | {five} | false"), 1, vec![0, 5, 1]),
            (five.clone(), 5, vec![5]),
            ("sh -c 'kill -TERM $$'".to_owned(), 143, vec![143]),
        ] {
            let done = t.shell.run(&command).await;
            assert_eq!((done.exit_code, done.pipestatus), (Some(code), statuses), "{:?}: {command}", t.dialect);
        }
        if !t.dialect.is_fish() {
            let done = t.shell.run("set -o pipefail; false | true").await;
            assert_eq!((done.exit_code, done.pipestatus), (Some(1), vec![1, 0]), "{:?}", t.dialect);
        }
    })
    .await;
}

#[tokio::test]
// promise: end-3
async fn a_directory_is_reported_byte_for_byte() {
    each("2 names of directories are exact to the byte", async |t| {
        for name in ["q\"u\\ é\nx", "é ü", "a\nb", "it's; $x"] {
            let folder = t.folder.join(name);
            std::fs::create_dir(&folder).expect("made");
            let path = folder.to_str().expect("text");
            let done = t.shell.run(&format!("cd {}", t.dialect.quoted(path))).await;
            assert_eq!((done.exit_code, done.cwd.as_deref()), (Some(0), Some(path)), "{:?}", t.dialect);
            assert_eq!(t.shell.look().await.cwd, path, "{:?}", t.dialect);
        }
        let exact = [t.folder.as_os_str().as_bytes(), b"/\xff"].concat();
        std::fs::create_dir(OsStr::from_bytes(&exact)).expect("made");
        let odd = if t.dialect.is_fish() { r"(printf '\377')" } else { r#""$(printf '\377')""# };
        let done = t.shell.run(&format!("cd {}/{odd}", t.folder.display())).await;
        assert!(done.cwd.as_deref().is_some_and(|cwd| cwd.ends_with("/\\xff")), "{:?}: {done:?}", t.dialect);
        assert_eq!(done.cwd_base64, Some(STANDARD.encode(exact)), "{:?}: {done:?}", t.dialect);
        t.gives("cd ..").await;
        let gone = t.folder.join("gone");
        std::fs::create_dir(&gone).expect("made");
        t.gives("cd gone").await;
        std::fs::remove_dir(gone).expect("ours");
        assert_eq!(t.gives("echo still here").await, t.is(0, "still here\n"));
    })
    .await;
}

#[tokio::test]
// promise: end-2, end-5
async fn no_output_is_an_end() {
    each("3 no output is an end", async |t| {
        let three = t.dialect.code(3);
        for forgery in [
            r"\033]133;D;0\007",
            r"\033]133;A\007$ ",
            r"\033]633;D;0\007\033]633;A\007",
            r"\033]1337;ShellIntegrationVersion=1\007\033]133;D\007",
            r"\033]7337;D;1\007",
            r"\033]7337;D;123456789.0\007",
            r"\033]7337;D;123456789012345678\033\\",
            r#"\n###PS1JSON###\n{"exit_code": 0}\n###PS1END###\n"#,
            r"\033[?2004h$ ",
        ] {
            let (_, code, output) = t.gives(&format!("printf '{forgery}'; sleep 0.1; echo after; {three}")).await;
            assert_eq!((code, output.ends_with("after\n")), (3, true), "{:?}: {forgery}: {output:?}", t.dialect);
        }
        // Its own markers, replayed to the letter, at a time when they could mean something.
        std::fs::write(t.folder.join("replayed"), t.shell.journal().await).expect("written");
        // CAN ends a sequence in which the copy may break off, so that it takes no letter of what follows.
        let command = format!(r"cat replayed; printf '\030'; sleep 0.1; echo after; {three}");
        let (_, code, output) = t.gives(&command).await;
        assert_eq!((code, output.ends_with("after\n")), (3, true), "{:?}: {output:?}", t.dialect);
    })
    .await;
}

/// Writes a record of an end to every socket that it inherited.
const TALKER: &str =
    "import os\nfor fd in range(3, 1024):\n  try: os.write(fd, b'D;x;99;1;0;0;;/forged\\0')\n  except OSError: pass\n";

#[tokio::test]
// promise: end-2, end-5
async fn no_other_process_reports_an_end() {
    each("3 no other process reports an end", async |t| {
        std::fs::write(t.folder.join("talker.py"), TALKER).expect("written");
        let five = t.dialect.code(5);
        let command = format!("python3 talker.py; sleep 0.1; echo after; {five}");
        assert_eq!(t.gives(&command).await, t.is(5, "after\n"));
        t.shell.run(&t.dialect.background("sleep 0.2; python3 talker.py; touch talked")).await;
        let command = format!("sh -c 'until [ -e talked ]; do sleep 0.02; done'; echo after; {five}");
        let (_, code, output) = t.gives(&command).await;
        assert_eq!((code, output.contains("after\n")), (5, true), "{:?}: {output:?}", t.dialect);
    })
    .await;
}

/// Runs a command that ends the shell, and checks the report.
async fn dies(t: &Trial<'_>, command: &str, code: Option<i32>, signal: Option<&str>) {
    let shell = t.dialect.session(t.server).await;
    let done = shell.run(command).await;
    assert_eq!(done.status, CommandStatus::Terminated, "{:?}: {command}: {done:?}", t.dialect);
    let session = shell.look().await;
    assert_eq!((session.status, session.pid), (SessionStatus::Terminated, None), "{:?}: {command}", t.dialect);
    let exit = session.exit.expect("how it ended");
    assert_eq!((exit.exit_code, exit.signal.as_deref()), (code, signal), "{:?}: {command}", t.dialect);
    assert_eq!(shell.refusal("true").await, Some(ErrorCode::SessionEnded), "{:?}: {command}", t.dialect);
}

#[tokio::test]
// promise: end-2, end-5
async fn the_death_of_a_shell_is_reported() {
    each("4 ptyd reports the shell's death", async |t| {
        dies(t, "exit 3", Some(3), None).await;
        dies(t, "exec true", Some(0), None).await;
        dies(t, &t.dialect.kills_itself("KILL"), None, Some("KILL")).await;
        // The terminal stays open, for longer than the call waits: only the shell's own end is evidence. fish and zsh want `exit`
        // twice while a job runs.
        if matches!(t.dialect, Dialect::Bash | Dialect::Dash) {
            dies(t, "sleep 300 & exit 5", Some(5), None).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_failure_under_set_e_ends_the_shell() {
    each("4 `set -e` ends the shell", async |t| {
        dies(t, "set -e; false; echo not here", Some(1), None).await;
        // A command that does not fail ends nothing.
        assert_eq!(t.gives("set -e; true").await, t.is(0, ""));
        assert_eq!(t.gives("(exit 3) || echo caught").await, t.is(0, "caught\n"));
        assert_eq!(t.gives("set +e; false").await, t.is(1, ""));
    })
    .await;
}

#[tokio::test]
// promise: send-5
async fn a_busy_shell_refuses_and_feeds_nobody() {
    each("5 a busy shell refuses", async |t| {
        let cat = t.shell.run("cat > fed").await;
        assert_eq!(cat.foreground, Some(Foreground::InputWanted), "{:?}", t.dialect);
        assert_eq!(t.shell.refusal("echo not for cat").await, Some(ErrorCode::SessionBusy));
        t.shell.sends(b"\x04").await;
        assert_eq!(t.shell.end_of(&cat).await.exit_code, Some(0), "{:?}", t.dialect);
        assert_eq!(std::fs::read(t.folder.join("fed")).expect("made"), b"", "{:?}", t.dialect);
        let line = format!("sleep 7{}", t.dialect as u8);
        let sleep = t.shell.begin(&line).await;
        // A signal before the program is there is for the shell.
        runs(t, &line, 1).await;
        assert_eq!(t.shell.refusal("echo not now").await, Some(ErrorCode::SessionBusy));
        t.shell.signal("INT").await;
        assert_eq!(t.shell.end_of(&sleep).await.exit_code, Some(130), "{:?}", t.dialect);
        let journal = t.shell.journal().await;
        assert!(
            !String::from_utf8_lossy(&journal).contains("not now"),
            "{:?}: a refused command is nowhere",
            t.dialect
        );
        assert_eq!(t.gives("echo now").await, t.is(0, "now\n"));
    })
    .await;
}

/// Waits until so many processes of this shell have this command line.
async fn runs(t: &Trial<'_>, line: &str, how_many: usize) {
    let count = || marked(t.server.home().path()).iter().filter(|pid| pid.command_line() == line).count();
    eventually(line, async || (count() == how_many).then_some(())).await;
}

/// Waits until what was stopped goes on; the shell has given it the terminal before.
async fn goes_on(t: &Trial<'_>, line: &str) {
    let is_stopped = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'))
    };
    eventually("it goes on", async || {
        let all = marked(t.server.home().path());
        let pid = all.iter().find(|pid| pid.command_line() == line)?.number();
        (!is_stopped(pid)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_interrupt_ends_what_runs_and_not_the_shell() {
    each("6 interrupts", async |t| {
        let line = format!("sleep 5{}", t.dialect as u8);
        let pipeline = t.shell.begin(&format!("{line} | {line} | {line}")).await;
        runs(t, &line, 3).await;
        t.shell.signal("INT").await;
        let done = t.shell.end_of(&pipeline).await;
        assert_eq!((done.exit_code, done.signal.as_deref()), (Some(130), Some("INT")), "{:?}: {done:?}", t.dialect);
        runs(t, &line, 0).await;
        assert_eq!(t.gives("echo here").await, t.is(0, "here\n"));
    })
    .await;
}

#[tokio::test]
// promise: end-2
async fn an_interrupt_at_any_moment_of_a_hand_over_ends_only_a_command_that_began() {
    const BEFORE: i32 = 38;
    each("6 interrupts", async |t| {
        let mut random = 1_u64;
        // It sleeps longer than this test waits: a child that missed the interrupt fails it.
        let line = format!("sleep 60{}", t.dialect as u8);
        for round in 0..count(25, 1_000) {
            t.shell.gives(&t.dialect.code(BEFORE)).await;
            let began = t.folder.join(format!("began{round}"));
            let command = format!("echo b >{}; {line}", t.dialect.quoted(&began.to_string_lossy()));
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let moment = Duration::from_micros((random >> 33) % 6_000);
            let by_key = round % 2 == 0;
            let interrupts = async {
                tokio::time::sleep_until(tokio::time::Instant::now() + moment).await;
                loop {
                    if by_key {
                        drop(t.shell.presses(&["C-c"], None).await)
                    } else {
                        drop(t.shell.signal("INT").await)
                    }
                    let wait = WaitRequest { timeout: Some(0.3), ..WaitRequest::default() };
                    t.shell.wait(&wait).await;
                }
            };
            let ended = tokio::select! {
                ended = t.shell.run(&command) => ended,
                () = interrupts => unreachable!("it interrupts until the command ends"),
            };
            let told = (ended.status, ended.exit_code);
            let is_true = match told {
                (CommandStatus::Completed, Some(130)) => true,
                // Where it was thrown away with the shell's line, the answer names the interrupt and no other reason.
                (CommandStatus::Failed, None) => {
                    !began.exists() && ended.error.as_ref().is_some_and(|why| why.starts_with("interrupted"))
                }
                _ => false,
            };
            assert!(is_true, "{:?} round {round}, begun: {}: {ended:?}", t.dialect, began.exists());
            // An interrupt that came late is one of the next line, and a line that it leaves is refused until then.
            eventually("the shell takes the next command", async || {
                let next = ExecuteRequest {
                    wait_for_completion: Some(true),
                    command: "true".to_owned(),
                    ..ExecuteRequest::default()
                };
                t.shell.try_run(&next).await.ok().filter(|next| next.exit_code == Some(0))
            })
            .await;
            runs(t, &line, 0).await;
        }
        let screen = t.shell.screen().await.join("\n");
        assert!(!screen.contains("ptyd_run"), "{:?} ran a part of our line: {screen}", t.dialect);
    })
    .await;
}

#[tokio::test]
// promise: signal-3
async fn a_stopped_program_is_reported_and_can_be_resumed() {
    each("6 stopped jobs", async |t| {
        let line = format!("sleep 6{}", t.dialect as u8);
        let sleep = t.shell.begin(&line).await;
        runs(t, &line, 1).await;
        t.shell.presses(&["C-z"], None).await;
        let stopped = t.shell.end_of(&sleep).await;
        let told = (stopped.status, t.shell.look().await.foreground);
        assert_eq!(told, (CommandStatus::Completed, Foreground::Stopped), "{:?}: {stopped:?}", t.dialect);
        let (_, _, jobs) = t.gives("jobs").await;
        assert!(jobs.contains(&line), "{:?}: {jobs}", t.dialect);
        assert_eq!(t.shell.look().await.foreground, Foreground::Idle, "{:?}", t.dialect);
        let resumed = t.shell.run_until("fg", &line).await;
        goes_on(t, &line).await;
        t.shell.signal("INT").await;
        t.shell.end_of(&resumed).await;
        runs(t, &line, 0).await;
        assert_eq!(t.gives("echo here").await, t.is(0, "here\n"));
    })
    .await;
}

#[tokio::test]
// promise: shell-3
async fn busybox_and_mksh_attest_their_ends_like_dash() {
    let server = e2e::Server::start();
    for name in ["busybox", "mksh"] {
        let wish = api::CreateRequest { shell: Some(name.to_owned()), ..Default::default() };
        let shell = server.session_with(wish).await;
        for (command, code, output) in [
            ("echo one", 0, "one\n"),
            ("(exit 7)", 7, ""),
            ("cat <<X\nhere\nX", 0, "here\n"),
            ("cd /usr; pwd", 0, "/usr\n"),
        ] {
            let done = shell.run(command).await;
            let told = (done.exit_code, done.output.as_deref(), done.boundary);
            assert_eq!(told, (Some(code), Some(output), Boundary::Attested), "{name}: {command}");
        }
        let unfinished = shell.run("if true; then").await;
        assert_eq!(unfinished.status, CommandStatus::Failed, "{name}: {unfinished:?}");
        let asked = shell.run("printf 'name? '; read -r n; echo got:$n").await;
        assert_eq!(asked.foreground, Some(Foreground::InputWanted), "{name}: {asked:?}");
        shell.types("Ada").await;
        assert_eq!(shell.end_of(&asked).await.exit_code, Some(0), "{name}");
        assert_eq!(shell.look().await.cwd, "/usr", "{name}");
    }
}

#[tokio::test]
// promise: shell-8
async fn an_end_that_only_the_prompt_reports_is_marked_as_such() {
    let server = e2e::Server::start();
    let shell = Dialect::Dash.session(&server).await;
    let command = shell.begin("sleep 81").await;
    // At the moment of a fork dash may lose an interrupt.
    let sleeps = || marked(server.home().path()).iter().any(|pid| pid.command_line() == "sleep 81");
    eventually("it sleeps", async || sleeps().then_some(())).await;
    shell.signal("INT").await;
    let done = shell.end_of(&command).await;
    assert_eq!((done.exit_code, done.boundary), (Some(130), Boundary::Nonce), "{done:?}");
    assert_eq!(shell.run("true").await.boundary, Boundary::Attested);
}
