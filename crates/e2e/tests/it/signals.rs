//! Signals: to the foreground, through pipelines, to programs that ignore them, and to programs that stop without
//! ending.

use api::{EndedBy, ErrorCode, Foreground, NumberOrName, SignalRequest};
use e2e::{Server, marked};

/// The processes of a home whose command line is this.
fn running(server: &Server, command_line: &str) -> usize {
    marked(server.home().path()).into_iter().filter(|pid| pid.command_line() == command_line).count()
}

#[tokio::test]
// promise: signal-1
async fn an_interrupt_ends_a_whole_pipeline_and_not_the_shell() {
    let server = Server::start();
    let shell = server.session().await;
    let pipeline = shell.begin("sleep 501 | sleep 502 | sleep 503").await;
    e2e::eventually("the pipeline runs", async || (running(&server, "sleep 503") == 1).then_some(())).await;
    shell.signal("INT").await;
    let done = shell.end_of(&pipeline).await;
    assert_eq!((done.exit_code, done.signal.as_deref()), (Some(130), Some("INT")));
    assert_eq!(["sleep 501", "sleep 502", "sleep 503"].map(|line| running(&server, line)), [0, 0, 0]);
    assert_eq!(shell.gives("echo here").await, (0, "here\n".to_owned()));
}

#[tokio::test]
// promise: signal-1
async fn a_continue_reaches_a_shell_that_was_stopped_while_its_child_had_the_terminal() {
    let server = Server::start();
    let shell = server.session().await;
    // The child has ended by then, and the stopped shell does not see it.
    let command = shell.run_until("sh -c 'kill -STOP $PPID; echo stopped'", "stopped").await;
    let pid = shell.look().await.pid.expect("it runs");
    let is_stopped = || std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it lives").contains(") T ");
    e2e::eventually("the shell is stopped", async || is_stopped().then_some(())).await;
    shell.signal("CONT").await;
    let done = shell.end_of(&command).await;
    assert_eq!((done.exit_code, done.output.as_deref()), (Some(0), Some("stopped\n")));
    assert_eq!(shell.gives("echo here").await, (0, "here\n".to_owned()));
}

#[tokio::test]
async fn a_program_that_traps_the_interrupt_sees_it_and_continues() {
    let server = Server::start();
    let shell = server.session().await;
    // While bash starts a program or begins to wait, it loses one of a thousand interrupts itself.
    let traps = "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT]); print('set'); \
                 signal.sigwait([signal.SIGINT]); print('caught'); exit(9)";
    let command = shell.run_until(&format!("python3 -uc \"{traps}\""), "set").await;
    shell.signal("INT").await;
    let done = shell.end_of(&command).await;
    assert_eq!((done.exit_code, done.output.as_deref()), (Some(9), Some("set\ncaught\n")));
}

/// A shell with job control, slow as bash is on a busy machine: its first program has ended and still has the terminal, or a copy of
/// the shell has the terminal and is about to become the program.
const SLOW_SHELL: &str = r#"
import os, signal, sys
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
# As a shell's copy does, one of this handles an interrupt until it has become a program.
signal.signal(signal.SIGINT, lambda *_: None)

def start(run):
    reads, writes = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(writes)
        os.read(reads, 1)
        run()
        os._exit(0)
    os.setpgid(pid, pid)
    os.tcsetpgrp(0, pid)
    os.close(writes)
    return pid

def sleep():
    os.execvp("sleep", ["sleep", "600"])

def copy():
    os.write(1, b"ready\n")
    open("gate").read()
    sleep()

if sys.argv[1] == "ended":
    first = start(lambda: None)
    os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
    os.write(1, b"ready\n")
    open("gate").read()
    os.waitpid(first, 0)
    program = start(sleep)
else:
    program = start(copy)
code = os.waitstatus_to_exitcode(os.waitpid(program, 0)[1])
os.tcsetpgrp(0, os.getpgrp())
print("ended by", -code)
"#;

#[tokio::test]
// promise: signal-1
async fn an_interrupt_between_two_programs_reaches_the_second() {
    let server = Server::start();
    let folder = server.home().path().join("between");
    std::fs::create_dir(&folder).expect("a folder");
    std::fs::write(folder.join("shell.py"), SLOW_SHELL).expect("written");
    let made = std::process::Command::new("mkfifo").arg(folder.join("gate")).status().expect("mkfifo");
    assert!(made.success());
    let shell = server.session().await;
    shell.gives(&format!("cd {}", folder.display())).await;
    for stage in ["ended", "forked"] {
        let command = shell.run_until(&format!("python3 -u shell.py {stage}"), "ready").await;
        shell.presses(&["C-c"], None).await;
        std::fs::write(folder.join("gate"), "").expect("opened");
        let done = shell.end_of(&command).await;
        let output = done.output.as_deref().unwrap_or_default();
        assert!(output.ends_with("ended by 2\n"), "{stage}: {output}");
    }
}

#[tokio::test]
// promise: stop-1
async fn a_session_that_ignores_signals_is_killed() {
    let server = Server::start();
    let shell = server.session().await;
    shell
        .run_until("trap '' HUP INT TERM; bash -c 'trap \"\" HUP INT TERM; echo deaf; sleep 601; sleep 602'", "deaf")
        .await;
    let ended = shell.ends().await;
    assert_eq!((ended.left, ended.killed >= 2), (0, true), "{ended:?}");
    assert_eq!(running(&server, "sleep 601"), 0);
}

#[tokio::test]
// promise: signal-3
async fn a_stopped_program_is_reported_and_can_be_resumed() {
    let server = Server::start();
    let shell = server.session().await;
    let sleep = shell.begin("sleep 701").await;
    e2e::eventually("it runs", async || (running(&server, "sleep 701") == 1).then_some(())).await;
    shell.presses(&["C-z"], None).await;
    let stopped = shell.end_of(&sleep).await;
    assert_eq!(stopped.exit_code, Some(148));
    assert_eq!(stopped.signal.as_deref(), Some("TSTP"));
    let (code, jobs) = shell.gives("jobs").await;
    assert_eq!((code, jobs.contains("Stopped") && jobs.contains("sleep 701")), (0, true), "{jobs}");
    let resumed = shell.run_until("fg", "sleep 701").await;
    shell.signal("INT").await;
    assert_eq!(shell.end_of(&resumed).await.exit_code, Some(130));
}

/// A signal for one process.
async fn signal_to(server: &Server, shell: &e2e::Session, signo: u32, pid: u32) {
    let request = SignalRequest { signal: NumberOrName::Number(signo), target: Some(NumberOrName::Number(pid)) };
    server.client().signal(&shell.id, &request).await.expect("one of its own");
}

#[tokio::test]
// promise: signal-3
async fn a_shell_that_stops_itself_is_reported_as_stopped_and_continues() {
    let server = Server::start();
    let shell = server.session().await;
    let stopped = shell.run("kill -STOP $$; echo back; (exit 6)").await;
    assert_eq!((stopped.ended_by, stopped.foreground), (Some(EndedBy::Stopped), Some(Foreground::Stopped)));
    // A later request is answered at once.
    let wait = api::WaitRequest { input_wanted: true, timeout: Some(20.0), ..Default::default() };
    assert_eq!(shell.wait(&wait).await.ended_by, EndedBy::Stopped);
    let pid = shell.look().await.pid.expect("it lives");
    signal_to(&server, &shell, 18, pid).await;
    let done = shell.end_of(&stopped).await;
    assert_eq!((done.exit_code, done.output.as_deref()), (Some(6), Some("back\n")));
    assert_eq!(shell.look().await.foreground, Foreground::Idle);
}

#[tokio::test]
// promise: signal-3
async fn a_program_that_waits_for_a_stopped_one_is_reported_as_stopped_until_it_continues() {
    let server = Server::start();
    let shell = server.session().await;
    // Without job control of its own, so that no process takes the terminal back.
    let command = shell.begin("bash -c 'sleep 901; exit 6'").await;
    let sleeps = e2e::eventually("it runs", async || {
        marked(server.home().path()).into_iter().find(|pid| pid.command_line() == "sleep 901")
    })
    .await;
    let foreground = async |is: Foreground| {
        let is_told = async || (shell.look().await.foreground == is).then_some(());
        e2e::eventually(&format!("{is:?}"), is_told).await;
    };
    foreground(Foreground::Running).await;
    signal_to(&server, &shell, 19, sleeps.number()).await;
    foreground(Foreground::Stopped).await;
    signal_to(&server, &shell, 18, sleeps.number()).await;
    foreground(Foreground::Running).await;
    signal_to(&server, &shell, 15, sleeps.number()).await;
    assert_eq!(shell.end_of(&command).await.exit_code, Some(6));
}

#[tokio::test]
// promise: signal-4
async fn a_signal_can_be_for_one_process_or_for_all() {
    let server = Server::start();
    let shell = server.session().await;
    let command = shell.run_until("sh -c 'echo pid $$; exec sleep 801'", "pid \\d+").await;
    let pid: u32 = command.matched.clone().expect("it matched").trim_start_matches("pid ").parse().expect("a number");
    let request = SignalRequest { signal: NumberOrName::Number(10), target: Some(NumberOrName::Number(pid)) };
    server.client().signal(&shell.id, &request).await.expect("one of its own");
    let done = shell.end_of(&command).await;
    assert_eq!((done.exit_code, done.signal.as_deref()), (Some(138), Some("USR1")));
    // A foreign process, which the signal would end.
    let mut other = std::process::Command::new("sleep").arg("802").spawn().expect("it can be executed");
    let foreign = SignalRequest { signal: NumberOrName::Number(10), target: Some(NumberOrName::Number(other.id())) };
    let refused = server.client().signal(&shell.id, &foreign).await.expect_err("none of its own");
    assert_eq!(refused.code(), Some(ErrorCode::InvalidField), "{refused}");
    assert!(refused.to_string().contains("target"), "{refused}");
    assert!(other.try_wait().expect("ours").is_none(), "it was not signalled");
    other.kill().and_then(|()| other.wait()).expect("ours to end");

    // All processes of the session: the one in the background, the one in the foreground, and the shell, which lets it pass.
    shell.gives("trap : USR1; sleep 803 &").await;
    let front = shell.begin("sleep 804").await;
    let runs = |line: &'static str| running(&server, line);
    e2e::eventually("both run", async || (runs("sleep 803") + runs("sleep 804") == 2).then_some(())).await;
    let all = NumberOrName::Name("session".to_owned());
    let request = SignalRequest { signal: NumberOrName::Name("USR1".to_owned()), target: Some(all) };
    server.client().signal(&shell.id, &request).await.expect("a target");
    assert_eq!(shell.end_of(&front).await.signal.as_deref(), Some("USR1"));
    e2e::eventually("both have ended", async || (runs("sleep 803") + runs("sleep 804") == 0).then_some(())).await;
    assert_eq!(shell.gives("echo here").await.1.lines().last(), Some("here"));
}

#[tokio::test]
// promise: signal-1
async fn a_flood_is_interrupted_at_once() {
    let server = Server::start();
    let shell = server.session().await;
    let quick = e2e::count(1, 10);
    #[expect(clippy::cast_precision_loss, reason = "a few seconds")]
    let request = api::ExecuteRequest {
        command: "yes".to_owned(),
        timeout: Some(quick as f64),
        max_chars: Some(100),
        ..Default::default()
    };
    let flood = shell.run_as(request).await;
    assert_eq!((flood.ended_by, flood.foreground), (Some(EndedBy::TimedOut), Some(Foreground::Running)));
    // The flood's own bytes are the clock: a busy machine slows both down. Before, it ran for a second.
    let before = shell.look().await.journal.end_offset;
    shell.signal("INT").await;
    let done = shell.end_of(&flood).await;
    assert_eq!(done.exit_code, Some(130));
    let after = done.end_offset.expect("it has ended").saturating_sub(before);
    assert!(after < before, "{before} bytes before the interrupt, and {after} after it");
    assert_eq!(shell.gives("echo calm").await, (0, "calm\n".to_owned()));
}

#[tokio::test]
// promise: signal-1
async fn an_interrupt_ends_a_program_that_reads_no_key_if_the_terminal_makes_no_signals() {
    let server = Server::start();
    let shell = server.session().await;
    for modes in ["stty -isig", "stty raw -echo"] {
        for is_key in [true, false] {
            let sleeps = shell.begin(&format!("{modes}; sleep 504")).await;
            e2e::eventually("it sleeps", async || (running(&server, "sleep 504") == 1).then_some(())).await;
            if is_key {
                shell.presses(&["C-c"], None).await;
            } else {
                shell.signal("INT").await;
            }
            assert_eq!(shell.end_of(&sleeps).await.exit_code, Some(130), "{modes}");
            assert_eq!(shell.gives("stty sane; echo fine").await, (0, "fine\n".to_owned()), "{modes}");
        }
    }
    // So does the shell itself.
    let loops = shell.begin("stty -isig; echo on; while :; do :; done").await;
    e2e::eventually("it loops", async || {
        (shell.look().await.journal.end_offset > loops.start_offset + 3).then_some(())
    })
    .await;
    shell.presses(&["C-c"], None).await;
    assert_eq!(shell.end_of(&loops).await.exit_code, Some(130));
    assert_eq!(shell.gives("stty sane; echo fine").await, (0, "fine\n".to_owned()));
    // A program that reads has the key, and only that.
    let other = server.session().await;
    for (reads, line) in [
        ("stty raw -echo; head -c 1", &b""[..]),
        ("stty raw -echo; head -c 1; sleep 1", b""),
        ("stty -isig -echo; head -n 1", b"\r"),
    ] {
        let asks = shell.run(&format!("({reads}) | od -An -tx1; stty sane")).await;
        shell.presses(&["C-c"], None).await;
        // Longer than the holder waits for a reader.
        other.run("sleep 1").await;
        if !line.is_empty() {
            shell.sends(line).await;
        }
        let done = shell.end_of(&asks).await;
        assert_eq!(
            (done.exit_code, done.output.expect("text").split_whitespace().next()),
            (Some(0), Some("03")),
            "{reads}"
        );
    }
}
