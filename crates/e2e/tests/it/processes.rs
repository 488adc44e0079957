//! The processes of a session, the signals sent to them, and a session's named actions.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use api::{CreateRequest, ErrorCode, NumberOrName, Process, ProcessState, SessionAction, SignalRequest};
use e2e::{Pid, Server, Session, eventually, with_descendants};

async fn processes(server: &Server, shell: &Session) -> Vec<Process> {
    server.client().processes(&shell.id).await.expect("known").processes
}

/// Waits until as many processes of this name are there and at rest.
async fn named(server: &Server, shell: &Session, name: &str, count: usize) -> Vec<Process> {
    eventually("they run", async || {
        let mut all = processes(server, shell).await;
        all.retain(|process| process.name == name);
        (all.len() == count && all.iter().all(|p| p.state == ProcessState::Sleeping)).then_some(all)
    })
    .await
}

#[tokio::test]
// promise: limit-8
async fn the_tree_of_a_session_is_reported_with_parents_groups_and_states() {
    let server = Server::start();
    let shell = server.session().await;
    shell.run("sleep 811 &").await;
    shell.begin("bash -c 'sleep 812; :' | sleep 813").await;
    named(&server, &shell, "sleep", 3).await;
    let all = processes(&server, &shell).await;
    let pid = shell.look().await.pid.expect("it lives");
    let one = |line: &str| all.iter().find(|p| p.command_line == line).unwrap_or_else(|| panic!("{line} in {all:?}"));
    assert_eq!(all.first().map(|p| (p.pid, p.parent_pid, p.is_foreground)), Some((pid, None, false)));
    let (job, inner, nested, last) =
        (one("sleep 811"), one("bash -c sleep 812; :"), one("sleep 812"), one("sleep 813"));
    assert_eq!([job.parent_pid, inner.parent_pid, last.parent_pid], [Some(pid); 3]);
    assert_eq!(nested.parent_pid, Some(inner.pid));
    assert_eq!([inner.process_group, nested.process_group, last.process_group], [inner.pid; 3]);
    assert_eq!([job, inner, nested, last].map(|p| p.is_foreground), [false, true, true, true]);
    assert_eq!([job, nested, last].map(|p| p.state), [ProcessState::Sleeping; 3]);
    assert_eq!(shell.look().await.resource_usage.processes, 5);
    shell.ends().await;
    assert_eq!(processes(&server, &shell).await, []);
}

#[tokio::test]
// promise: limit-8
async fn the_first_reading_of_a_process_covers_its_use_since_its_start() {
    let server = Server::start();
    let shell = server.session().await;
    let burner = shell.begin("bash -c 'while :; do :; done'").await;
    let shell_pid = Pid::new(shell.look().await.pid.expect("it lives"));
    let is_burner = |pid: &Pid| *pid != shell_pid && pid.command_line().contains("while");
    let pid = eventually("it runs", async || with_descendants(shell_pid).into_iter().find(is_burner)).await;
    eventually("it has worked", async || (pid.processor_time() > Duration::from_millis(500)).then_some(())).await;
    let first = processes(&server, &shell).await.into_iter().find(|p| p.pid == pid.number()).expect("it runs");
    assert!(first.cpu > 0.0, "{first:?}");
    shell.signal("INT").await;
    shell.end_of(&burner).await;
}

#[tokio::test]
// promise: limit-8
async fn a_process_shows_its_use_and_ended_processes_count() {
    let server = Server::start();
    let shell = server.session().await;
    let burner = shell.begin("bash -c 'while :; do :; done'").await;
    let look = async || {
        let all = processes(&server, &shell).await;
        all.into_iter().find(|p| p.command_line.contains("while"))
    };
    let pid = Pid::new(eventually("it runs", async || look().await).await.pid);
    // Its share of a processor depends on the machine; the kernel's values at other moments bound it.
    let used = || (Instant::now(), pid.processor_time());
    let (earliest, first, early) = (used(), look().await, used());
    eventually("it has worked", async || (used().1 > early.1 + Duration::from_millis(500)).then_some(())).await;
    let (late, busy, latest) = (used(), look().await.expect("it runs"), used());
    let least = share(late.1 - early.1, latest.0 - earliest.0) * 0.9;
    let most = share(latest.1 - earliest.1, late.0 - early.0) * 1.1;
    assert!(least > 0.0 && (least..=most).contains(&busy.cpu), "{least}..{most}: {first:?}, {busy:?}");
    assert!(busy.memory > 0.5 && busy.cpu_seconds > 0.4, "{busy:?}");
    shell.signal("INT").await;
    shell.end_of(&burner).await;
    // Time that was used by what has ended belongs to the session's usage all the same.
    let begun = Instant::now();
    let pid = shell.look().await.pid.expect("it lives");
    let before = of_ended_children(pid);
    let short = "for ((i = 0; i < 300; i++)); do /bin/true; done";
    shell.run(short).await;
    let used = of_ended_children(pid) - before;
    let told = shell.look().await.resource_usage.cpu;
    assert!(!used.is_zero() && told > share(used, begun.elapsed()) * 0.9, "{told}: {used:?}");
}

/// Percent of one processor.
fn share(used: Duration, of: Duration) -> f64 {
    used.as_secs_f64() / of.as_secs_f64() * 100.0
}

/// The processor time of this process's ended children (proc(5), `cutime` and `cstime`).
fn of_ended_children(pid: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("readable");
    let fields = stat.rsplit_once(')').expect("a name").1;
    let ticks = |at| fields.split_ascii_whitespace().nth(at).and_then(|n| n.parse::<u64>().ok()).expect("a number");
    Duration::from_millis((ticks(13) + ticks(14)) * 10)
}

#[tokio::test]
// promise: signal-4
async fn every_signal_is_recorded_with_its_receivers_and_their_state() {
    let server = Server::start();
    let shell = server.session().await;
    shell.run("sleep 823 &").await;
    let job = named(&server, &shell, "sleep", 1).await.first().expect("one").pid;
    shell.begin("sleep 821 | sleep 822").await;
    named(&server, &shell, "sleep", 3).await;
    let to = |signal: &str, target| SignalRequest { signal: NumberOrName::Name(signal.to_owned()), target };
    let target = NumberOrName::Number(job);
    server.client().signal(&shell.id, &to("STOP", Some(target.clone()))).await.expect("sent");
    shell.signal("TERM").await;
    let nobody = server.client().signal(&shell.id, &to("TERM", Some(NumberOrName::Number(1)))).await;
    assert_eq!(nobody.expect_err("not of this session").code(), Some(ErrorCode::InvalidField));
    let foreground = NumberOrName::Name("foreground".to_owned());
    let (stopped, ended) = (("sleep".to_owned(), ProcessState::Stopped), ("sleep".to_owned(), ProcessState::Ended));
    let expected =
        [("STOP".to_owned(), target, vec![stopped]), ("TERM".to_owned(), foreground, vec![ended.clone(), ended])];
    eventually("they have done what they were told", async || {
        let told = server.client().signals(&shell.id).await.expect("known").signals;
        let brief = |s: api::SentSignal| {
            (s.signal, s.target, s.receivers.into_iter().map(|r| (r.name, r.state)).collect::<Vec<_>>())
        };
        (told.into_iter().map(brief).collect::<Vec<_>>() == expected).then_some(())
    })
    .await;
    server.kill9();
    server.again();
    let again = server.client().signals(&shell.id).await.expect("known").signals;
    assert_eq!(again.iter().map(|s| s.signal.as_str()).collect::<Vec<_>>(), ["STOP", "TERM"]);
}

#[tokio::test]
// promise: signal-4
async fn a_signal_that_the_kernel_refuses_is_on_record_with_the_reason() {
    let server = Server::start();
    let shell = server.session().await;
    // It gives the terminal to a group that is empty then.
    let script = "import os, signal, time\n\
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)\n\
        child = os.fork()\n\
        if child == 0: time.sleep(600)\n\
        os.setpgid(child, child)\n\
        os.tcsetpgrp(0, child)\n\
        os.kill(child, signal.SIGKILL)\n\
        os.wait()\n\
        print('nobody is left')\n\
        time.sleep(600)\n";
    let path = server.home().file("leave.py");
    std::fs::write(&path, script).expect("a file");
    shell.run_until(&format!("python3 {}", path.display()), "nobody is left").await;
    let request = SignalRequest { signal: NumberOrName::Name("TERM".to_owned()), target: None };
    let refused = server.client().signal(&shell.id, &request).await.expect_err("nobody is there");
    assert_eq!(refused.code(), Some(ErrorCode::NothingRuns));
    let sent =
        eventually("it is on record", async || server.client().signals(&shell.id).await.expect("known").signals.pop())
            .await;
    let expected = ("TERM", NumberOrName::Name("foreground".to_owned()), Some("No such process (os error 3)"), vec![]);
    assert_eq!((sent.signal.as_str(), sent.target, sent.error.as_deref(), sent.receivers), expected);
}

#[tokio::test]
// promise: stop-3
async fn the_steps_of_an_end_take_as_long_as_requested() {
    let server = Server::start();
    let (short, long) = (server.session().await, server.session().await);
    for shell in [&short, &long] {
        shell
            .run_until("trap '' HUP TERM; bash -c 'trap \"\" HUP TERM; echo deaf; sleep 831; sleep 832'", "deaf")
            .await;
    }
    let asks = |shell: &Session, query: &str| {
        let (mut connection, path) = (server.connect(), format!("/terminals/{}?{query}", shell.id));
        tokio::task::spawn_blocking(move || connection.ask("DELETE", &path, "").expect("answered").status)
    };
    assert_eq!(asks(&short, "graceSeconds=61").await.expect("no panic"), 422);
    let waits = asks(&long, "graceSeconds=60&signal=TERM");
    assert_eq!(asks(&short, "graceSeconds=0.05&signal=TERM").await.expect("no panic"), 200);
    assert!(!waits.is_finished(), "the longer steps are over before the shorter ones");
    assert_eq!(asks(&long, "force=true").await.expect("no panic"), 200);
    assert_eq!(waits.await.expect("no panic"), 200);
}

#[tokio::test]
// promise: stop-3
async fn a_session_performs_its_named_actions() {
    let server = Server::start();
    let action = |signal: Option<&str>, keys: Option<&[&str]>, command: Option<&str>| SessionAction {
        signal: signal.map(|name| NumberOrName::Name(name.to_owned())),
        keys: keys.map(|keys| keys.iter().map(|key| (*key).to_owned()).collect()),
        command: command.map(str::to_owned),
    };
    let actions = BTreeMap::from([
        ("reload".to_owned(), action(Some("HUP"), None, None)),
        ("answer".to_owned(), action(None, Some(&["y", "e", "s", "Enter"]), None)),
        ("greet".to_owned(), action(None, None, Some("echo hello from here"))),
    ]);
    let shell = server.session_with(CreateRequest { actions, ..Default::default() }).await;
    let greeted = server.client().act(&shell.id, "greet").await.expect("done");
    let command = greeted.command.expect("it runs one");
    assert_eq!(shell.end_of(&command).await.output.as_deref(), Some("hello from here\n"));
    let server_like = shell
        .run_until("bash -c 'trap \"echo reloaded\" HUP; read -p \"go on? \" a; echo got $a; exit 3'", r"go on\? ")
        .await;
    server.client().act(&shell.id, "reload").await.expect("done");
    server.client().act(&shell.id, "answer").await.expect("done");
    let done = shell.end_of(&server_like).await;
    let output = done.output.unwrap_or_default();
    assert_eq!(
        (done.exit_code, output.contains("reloaded"), output.contains("got yes")),
        (Some(3), true, true),
        "{output}"
    );
    let unknown = server.client().act(&shell.id, "nope").await.expect_err("not there");
    assert_eq!(unknown.code(), Some(ErrorCode::InvalidField));
    assert!(unknown.to_string().contains("answer, greet, reload"), "{unknown}");
}
