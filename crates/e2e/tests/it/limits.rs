//! Limits: a session that exceeds one is stopped and reported, without effect on the others.

use std::time::{Duration, Instant};

use api::{
    Boundary, CommandExecution, CommandStatus, CreateRequest, EndedBy, Enforcer, ErrorCode, Limit, Limits,
    SessionStatus,
};
use e2e::limits::{check_hit, check_memory_hog, in_group};
use e2e::{Server, Session, Start, eventually, groups, join_all, marked};

async fn limited(server: &Server, limits: Limits) -> Session {
    server.session_with(CreateRequest { limits: Some(limits), ..Default::default() }).await
}

/// Commands of another session come to their ends while this one's command goes on.
async fn goes_on_beside(other: &Session, shell: &Session, running: &CommandExecution) {
    for _ in 0..20 {
        assert_eq!(other.run("true").await.exit_code, Some(0));
    }
    let now = shell.command(&running.id).await;
    assert_eq!(now.status, CommandStatus::Running, "the other session waited for its end: {now:?}");
}

#[tokio::test]
// promise: limit-2
async fn a_command_that_runs_too_long_is_ended_and_earlier_programs_continue() {
    let server = Server::start();
    let shell = limited(&server, Limits { command_seconds: Some(0.5), ..Limits::default() }).await;
    shell.gives("sleep 771 & echo $! > before").await;
    let done = shell.run("sleep 772").await;
    assert!([Some(130), Some(143)].contains(&done.exit_code), "{done:?}");
    check_hit(&shell, &done, Limit::CommandSeconds).await;
    assert_eq!(shell.gives("kill -0 $(< before) && echo it lives").await, (0, "it lives\n".to_owned()));
    // One that heeds neither INT nor TERM, with a child that does not either.
    let done = shell.run("(trap '' INT TERM; sleep 773; sleep 774)").await;
    assert_eq!((done.exit_code, done.limits_hit), (Some(137), vec![Limit::CommandSeconds]));
    // The shell itself: there is no other way out of this.
    let done = shell.run("trap '' INT; while :; do :; done").await;
    assert_eq!((done.status, done.limits_hit), (CommandStatus::Terminated, vec![Limit::CommandSeconds]));
    let session = shell.look().await;
    let reason = session.exit.map(|exit| exit.reason).unwrap_or_default();
    assert_eq!((session.status, reason.contains("commandSeconds")), (SessionStatus::Terminated, true), "{reason}");
}

/// The processes of this home with this command line.
fn running(server: &Server, command_line: &str) -> usize {
    marked(server.home().path()).into_iter().filter(|pid| pid.command_line() == command_line).count()
}

#[tokio::test]
// promise: limit-2
async fn stubborn_processes_of_a_command_are_killed_although_it_has_ended() {
    let server = Server::start();
    let shell = limited(&server, Limits { command_seconds: Some(0.4), ..Limits::default() }).await;
    let done = shell.run("(trap '' TERM INT; exec sleep 780) & sleep 781").await;
    assert_eq!(done.limits_hit, [Limit::CommandSeconds]);
    eventually("it is killed", async || (running(&server, "sleep 780") == 0).then_some(())).await;
    assert_eq!(shell.gives("echo alive").await.0, 0);
}

#[tokio::test]
// promise: limit-2
async fn a_job_of_before_a_restart_is_not_taken_for_a_later_command_s() {
    let server = Server::start();
    let shell = limited(&server, Limits { command_seconds: Some(0.6), ..Limits::default() }).await;
    shell.gives("sleep 782 & sleep 0.1").await;
    for _ in 0..2 {
        server.kill9();
        server.again();
        assert_eq!(shell.run("sleep 783").await.limits_hit, [Limit::CommandSeconds]);
        let running_on = shell.begin("sleep 784").await;
        server.kill9();
        server.again();
        assert_eq!(shell.end_of(&running_on).await.limits_hit, [Limit::CommandSeconds]);
        assert_eq!(["sleep 782", "sleep 783", "sleep 784"].map(|line| running(&server, line)), [1, 0, 0]);
    }
}

#[tokio::test]
// promise: limit-2
async fn kills_by_the_kernel_while_no_server_ran_are_reported_and_the_group_is_removed() {
    let server = Server::start();
    let shell = limited(&server, Limits { memory_mb: Some(64), ..Limits::default() }).await;
    if !in_group(&shell, Limit::MemoryMb).await {
        return;
    }
    let hog = shell
        .begin("until [ -e go ]; do sleep 0.05; done; head -c 400M /dev/zero | tail; : > done; until [ -e end ]; do sleep 0.05; done; exit 9")
        .await;
    let (file, pid) = (server.home().file("done"), e2e::Pid::new(shell.look().await.pid.expect("it lives")));
    server.kill9();
    std::fs::write(server.home().file("go"), "").expect("written");
    eventually("the hog is dead", async || file.exists().then_some(())).await;
    server.again();
    let hits =
        eventually("it is told", async || Some(shell.look().await.limits_hit).filter(|hits| !hits.is_empty())).await;
    let of_command: Vec<_> = hits.iter().map(|hit| (hit.limit, hit.command_id.clone())).collect();
    assert_eq!(of_command, [(Limit::MemoryMb, Some(hog.id))]);
    server.kill9();
    std::fs::write(server.home().file("end"), "").expect("written");
    assert!(pid.ends_within(e2e::PATIENCE));
    server.again();
    eventually("its group is gone", async || groups(&shell.id).is_empty().then_some(())).await;
}

#[tokio::test]
// promise: limit-2
async fn a_command_that_prints_too_much_is_ended() {
    let server = Server::start();
    let shell = limited(&server, Limits { output_mb: Some(1.0), ..Limits::default() }).await;
    let done = shell.run("yes").await;
    assert!([Some(130), Some(143)].contains(&done.exit_code), "{:?}", done.exit_code);
    assert!(done.output_size > 1 << 20, "{}", done.output_size);
    check_hit(&shell, &done, Limit::OutputMb).await;
    // Each command has its own measure.
    for _ in 0..3 {
        let done = shell.run("head -c 600000 /dev/zero | tr '\\0' x").await;
        assert_eq!((done.exit_code, done.limits_hit), (Some(0), Vec::new()));
    }
}

#[tokio::test]
// promise: limit-3
async fn output_arrives_whole_and_at_its_rate() {
    let server = Server::start();
    let shell = limited(&server, Limits { output_mb_per_second: Some(1.0), ..Limits::default() }).await;
    let session = shell.look().await;
    assert_eq!(session.limits, Limits { output_mb_per_second: Some(1.0), ..Limits::default() });
    assert_eq!(session.limits_enforced_by, [(Limit::OutputMbPerSecond, Enforcer::Holder)].into());
    let numbers: String = (1..=400_000).map(|n| format!("{n}\r\n")).collect();
    let begun = Instant::now();
    let running = shell.begin("seq 400000").await;
    let done = shell.end_of(&running).await;
    let (took, bytes) = (begun.elapsed(), numbers.len() as u64);
    // One second's worth comes at once, and what the terminal held at the end came with the end.
    let least = (bytes - (1 << 20) - (128 << 10)) as f64 / f64::from(1 << 20);
    assert!(took.as_secs_f64() > least, "{bytes} bytes came in {took:?}");
    assert_eq!((done.exit_code, done.output_size), (Some(0), bytes));
    let from = done.start_offset;
    let journal = std::fs::read(server.home().state().join("sessions").join(&shell.id).join("journal")).expect("kept");
    assert!(
        journal.get(from as usize..).is_some_and(|at| at.starts_with(numbers.as_bytes())),
        "every byte in its place"
    );
    // The prompt after it may have had to wait, too.
    let hit = shell.look().await.limits_hit.into_iter().next().map(|hit| (hit.limit, hit.command_id, hit.count));
    assert_eq!(hit, Some((Limit::OutputMbPerSecond, Some(done.id), 1)));
    assert_eq!(done.limits_hit, [Limit::OutputMbPerSecond]);
}

#[tokio::test]
// promise: limit-3
async fn ends_and_questions_do_not_wait_for_the_rate_of_the_output() {
    let server = Server::start();
    let rate = 0.01;
    let shell = limited(&server, Limits { output_mb_per_second: Some(rate), ..Limits::default() }).await;
    let free = server.session().await;
    let numbers: String = (1..=1200).map(|n| format!("{n}\n")).collect();
    assert_eq!(shell.run("seq 3000").await.limits_hit, [Limit::OutputMbPerSecond]);
    // A terminal holds about 8 KiB (pty.c), so each of these ends at once, and would take half a second and more to come.
    let (mut slowed, mut at_once) = (Vec::new(), Vec::new());
    for code in 0..11 {
        let command = format!("seq 1200; (exit {code})");
        let begun = Instant::now();
        let done = shell.run(&command).await;
        slowed.push(begun.elapsed());
        assert_eq!((done.exit_code, done.boundary), (Some(code), Boundary::Attested));
        assert_eq!((done.output.as_deref(), &done.limits_hit), (Some(&*numbers), &vec![Limit::OutputMbPerSecond]));
        let begun = Instant::now();
        assert_eq!(free.run(&command).await.exit_code, Some(code));
        at_once.push(begun.elapsed());
    }
    slowed.sort();
    at_once.sort();
    // The medians of the two in turn, and half of the time in which all of it would come at its rate.
    let at_its_rate = Duration::from_secs_f64(numbers.len() as f64 / (rate * f64::from(1 << 20)));
    assert!(slowed[5] < at_once[5] + at_its_rate / 2, "{slowed:?}, and without a rate {at_once:?}");
    let asked = shell.run("seq 1200; read -rp 'name? ' name; echo \"got $name\"").await;
    assert_eq!(asked.ended_by, Some(EndedBy::InputWanted));
    assert_eq!(asked.output, Some(numbers + "name? "));
    shell.types("x").await;
    assert_eq!(shell.end_of(&asked).await.exit_code, Some(0));
    // Nor does a session end because of what is left of it.
    shell.run("seq 1200").await;
    shell.ends().await;
}

#[tokio::test]
// promise: limit-3
async fn a_flood_in_the_background_is_slowed_down_too_and_delays_no_command() {
    let server = Server::start();
    let shell = limited(&server, Limits { output_mb_per_second: Some(0.1), ..Limits::default() }).await;
    let other = server.session().await;
    let begun = Instant::now();
    assert_eq!(shell.run("yes & echo $! > flood").await.exit_code, Some(0));
    let hits = eventually("it is told", async || Some(shell.look().await.limits_hit).filter(|h| !h.is_empty())).await;
    assert!(hits.iter().all(|hit| hit.limit == Limit::OutputMbPerSecond), "{hits:?}");
    for code in [0, 7, 0, 3] {
        let done = shell.run(&format!("(exit {code})")).await;
        assert_eq!((done.exit_code, done.boundary), (Some(code), Boundary::Attested));
    }
    let waits = shell.begin("wait").await;
    goes_on_beside(&other, &shell, &waits).await;
    shell.presses(&["C-c"], None).await;
    shell.end_of(&waits).await;
    assert_eq!(shell.run("kill $(< flood); wait").await.status, CommandStatus::Completed);
    let (took, size) = (begun.elapsed(), shell.look().await.journal.end_offset);
    // Each of the ends may have let through what stood before it.
    let most = (took.as_secs_f64() + 1.0) * 0.1 * f64::from(1 << 20) + 6.0 * 192.0 * 1024.0;
    assert!((size as f64) < most, "{size} bytes in {took:?}");
}

#[tokio::test]
// promise: limit-2
async fn a_burner_is_ended_in_the_foreground_and_in_the_background() {
    let server = Server::start();
    let shell = limited(&server, Limits { cpu_seconds: Some(0.3), ..Limits::default() }).await;
    let done = shell.run("while :; do :; done").await;
    assert_eq!(done.exit_code, Some(130), "the shell itself is only interrupted");
    check_hit(&shell, &done, Limit::CpuSeconds).await;
    let done = shell.run("sh -c 'while :; do :; done'").await;
    assert_eq!(done.limits_hit, [Limit::CpuSeconds]);
    // Many short ones use it up as well as a long one.
    let done = shell.run("while :; do /bin/true; done").await;
    assert_eq!(done.limits_hit, [Limit::CpuSeconds]);
    // The signal that ends one command can meet the next one before it begins. Then that one is told as not run.
    let burns = "sh -c 'trap \"\" TERM; while :; do :; done' & echo $! > burner";
    while shell.run(burns).await.status == CommandStatus::Failed {
        assert!(!server.home().file("burner").exists(), "it was not run");
    }
    let burner = std::fs::read_to_string(server.home().file("burner")).expect("written");
    let burner = e2e::Pid::new(burner.trim().parse().expect("a pid"));
    assert!(burner.ends_within(e2e::PATIENCE));
    let hits =
        eventually("it is on record", async || Some(shell.look().await.limits_hit).filter(|hits| hits.len() >= 4))
            .await;
    assert!(hits.iter().all(|hit| hit.limit == Limit::CpuSeconds), "{hits:?}");
    assert_eq!(shell.gives("echo alive").await, (0, "alive\n".to_owned()));
}

#[tokio::test]
// promise: limit-2
async fn a_memory_hog_is_killed_and_its_shell_is_not() {
    let server = Server::start();
    let (shell, other) =
        (limited(&server, Limits { memory_mb: Some(64), ..Limits::default() }).await, server.session().await);
    // tail keeps the newest line, and there is only one. It is killed again and again until the other session is through.
    let hog = shell.begin("until [ -e over ]; do sleep 0.1; head -c 400M /dev/zero | tail; done").await;
    eventually("it is killed", async || Some(shell.look().await.limits_hit).filter(|hits| !hits.is_empty())).await;
    goes_on_beside(&other, &shell, &hog).await;
    std::fs::write(server.home().file("over"), "").expect("written");
    let done = shell.end_of(&hog).await;
    check_memory_hog(&shell, &done).await;
}

#[tokio::test]
// promise: limit-2
async fn a_shell_that_is_killed_for_its_memory_names_its_limit() {
    let server = Server::start();
    let mut ended = Vec::new();
    for _ in 0..4 {
        let shell = limited(&server, Limits { memory_mb: Some(64), ..Limits::default() }).await;
        if !in_group(&shell, Limit::MemoryMb).await {
            return;
        }
        // bash itself keeps the bytes.
        let hog = shell.begin("x=$(head -c 400M /dev/zero | tr '\\0' x)").await;
        let done = shell.end_of(&hog).await;
        assert_eq!((done.status, &done.limits_hit), (CommandStatus::Terminated, &vec![Limit::MemoryMb]), "{done:?}");
        ended.push(shell);
    }
    // The next server tells the same.
    for _ in 0..2 {
        for shell in &ended {
            let session = shell.look().await;
            let hits: Vec<_> = session.limits_hit.iter().map(|hit| (hit.limit, hit.count)).collect();
            let how = session.exit.map(|exit| exit.reason).unwrap_or_default();
            assert_eq!(hits, [(Limit::MemoryMb, 1)], "{how}");
            assert!(how.starts_with("it reached its memoryMb; the shell was killed by KILL"), "{how}");
        }
        server.kill9();
        server.again();
    }
}

#[tokio::test]
// promise: limit-2
async fn a_fork_bomb_stays_small_and_leaves_nothing() {
    let server = Server::start();
    let other = server.session().await;
    let limits = Limits { processes: Some(40), ..Limits::default() };
    let request = CreateRequest { limits: Some(limits), ..Default::default() };
    let shell = match server.client().create(&request, None).await {
        Ok(session) => Session::new(std::sync::Arc::clone(server.client()), session.id),
        Err(e) => {
            assert_eq!(e.code(), Some(ErrorCode::InvalidField), "{e}");
            return e2e::not_run(format!("no control group can be made here, and the limit is refused: {e}"));
        }
    };
    shell.gives("mkfifo gate").await;
    // The `read` behind the bomb needs no process of its own.
    let bomb = shell.begin("bomb() { bomb | bomb & }; bomb; read -r line <gate").await;
    let hits =
        eventually("forks are refused", async || Some(shell.look().await.limits_hit).filter(|hits| !hits.is_empty()))
            .await;
    assert!(hits.iter().all(|hit| hit.limit == Limit::Processes && hit.count > 0), "{hits:?}");
    goes_on_beside(&other, &shell, &bomb).await;
    assert!(marked(server.home().path()).len() < 60);
    let ended = shell.ends().await;
    assert_eq!((ended.left, ended.session.status), (0, SessionStatus::Terminated), "{ended:?}");
}

#[tokio::test]
// promise: limit-1
async fn open_files_are_limited_for_good() {
    let server = Server::start();
    let shell = limited(&server, Limits { open_files: Some(64), ..Limits::default() }).await;
    assert_eq!(shell.gives("ulimit -Sn; ulimit -Hn").await, (0, "64\n64\n".to_owned()));
    let opens = "import os; [os.dup(0) for _ in range(100)]";
    assert_ne!(shell.run(&format!("python3 -c '{opens}'")).await.exit_code, Some(0));
}

#[tokio::test]
// promise: limit-2
async fn the_next_server_knows_and_enforces_the_limits_that_a_session_hit() {
    let server = Server::start();
    let limits = Limits { command_seconds: Some(0.4), cpu_seconds: Some(1_000.0), ..Limits::default() };
    let shell = limited(&server, limits).await;
    let done = shell.run("sleep 775").await;
    let before = shell.look().await;
    let running = shell.begin("sleep 776").await;
    server.kill9();
    server.again();
    let again = shell.command(&done.id).await;
    assert_eq!((again.exit_code, again.limits_hit), (done.exit_code, vec![Limit::CommandSeconds]));
    let ended = shell.end_of(&running).await;
    assert_eq!(ended.limits_hit, [Limit::CommandSeconds], "{ended:?}");
    let after = shell.look().await;
    assert_eq!(after.limits, before.limits);
    assert_eq!(after.limits_hit.first(), before.limits_hit.first());
    shell.ends().await;
    let past = shell.look().await;
    assert_eq!((past.limits, past.limits_hit.len()), (before.limits, 2));
}

#[tokio::test]
// promise: limit-2
async fn a_control_group_is_removed_with_its_session() {
    let server = Server::start();
    let limits = Limits { memory_mb: Some(512), processes: Some(200), ..Limits::default() };
    let made = join_all((0..4).map(async |_| server.client().create(&limited_request(limits), None).await)).await;
    for session in made.into_iter().flatten() {
        let shell = Session::new(std::sync::Arc::clone(server.client()), session.id.clone());
        assert_eq!(shell.gives("echo $((6 * 7))").await, (0, "42\n".to_owned()));
        assert!(!groups(&session.id).is_empty());
        shell.ends().await;
        eventually("its group is gone", async || groups(&session.id).is_empty().then_some(())).await;
    }
}

fn limited_request(limits: Limits) -> CreateRequest {
    CreateRequest { limits: Some(limits), ..Default::default() }
}

#[tokio::test]
// promise: limit-1
async fn a_limit_out_of_its_range_is_refused_by_name() {
    let server = Server::start();
    let refusal = async |limits: Limits| {
        let refused = server.client().create(&limited_request(limits), None).await.expect_err("out of range");
        (refused.code(), refused.to_string())
    };
    for (limits, field) in [
        (Limits { cpu_seconds: Some(0.0), ..Limits::default() }, "limits.cpuSeconds"),
        (Limits { memory_mb: Some(1), ..Limits::default() }, "limits.memoryMb"),
        (Limits { processes: Some(1), ..Limits::default() }, "limits.processes"),
        (Limits { open_files: Some(3), ..Limits::default() }, "limits.openFiles"),
        (Limits { output_mb: Some(-1.0), ..Limits::default() }, "limits.outputMb"),
        (Limits { command_seconds: Some(1e12), ..Limits::default() }, "limits.commandSeconds"),
    ] {
        let (code, text) = refusal(limits).await;
        assert_eq!(code, Some(ErrorCode::InvalidField));
        assert!(text.contains(field), "{text}");
    }
}

#[tokio::test]
// promise: limit-1
async fn a_servers_limits_apply_to_requests_without_limits() {
    let env = vec![("PTYD_LIMITS", "commandSeconds=0.3,openFiles=64".into()), ("PTYD_MAX_AGE", "3600".into())];
    let server = Server::start_as(Start { env, ..Start::default() });
    let kept = async |shell: &Session| {
        let session = shell.look().await;
        (session.limits, session.max_age)
    };
    let shell = server.session().await;
    let default = Limits { open_files: Some(64), command_seconds: Some(0.3), ..Limits::default() };
    assert_eq!(kept(&shell).await, (default, Some(3600.0)));
    let done = shell.run("ulimit -n; sleep 60").await;
    check_hit(&shell, &done, Limit::CommandSeconds).await;
    let own = Limits { command_seconds: Some(50.0), output_mb: Some(1.0), ..Limits::default() };
    let expected = Limits { open_files: Some(64), ..own };
    let own = limited(&server, own).await;
    assert_eq!(kept(&own).await, (expected, Some(3600.0)));
    assert_eq!(own.gives("sleep 0.4; ulimit -n").await, (0, "64\n".to_owned()));
}

#[tokio::test]
// promise: limit-4
async fn no_session_is_started_beyond_what_the_operator_allows() {
    let env =
        vec![("PTYD_LIMITS_MAX", "commandSeconds=5,openFiles=64,maxAge=600".into()), ("PTYD_MAX_AGE", "60".into())];
    let server = Server::start_as(Start { env, ..Start::default() });
    let session = server.session().await.look().await;
    let allowed = Limits { open_files: Some(64), command_seconds: Some(5.0), ..Limits::default() };
    assert_eq!((session.limits, session.max_age), (allowed, Some(60.0)));
    let own = limited(&server, Limits { command_seconds: Some(4.0), ..Limits::default() }).await;
    assert_eq!(own.gives("ulimit -n").await, (0, "64\n".to_owned()));
    let refused = async |request: CreateRequest| {
        let error = server.client().create(&request, None).await.expect_err("more than allowed");
        assert_eq!(error.code(), Some(ErrorCode::InvalidField));
        error.to_string()
    };
    let more = Limits { command_seconds: Some(6.0), ..Limits::default() };
    let why = refused(limited_request(more)).await;
    assert!(why.contains("limits.commandSeconds: must be 5 or less"), "{why}");
    let why = refused(CreateRequest { max_age: Some(601.0), ..CreateRequest::default() }).await;
    assert!(why.contains("maxAge: must be 600 or less"), "{why}");
    // None at all is more than any.
    let forever = CreateRequest { max_age: Some(0.0), ..CreateRequest::default() };
    assert_eq!(server.session_with(forever).await.look().await.max_age, Some(600.0));
}

#[test]
// promise: limit-1
fn a_server_does_not_start_with_a_limit_that_it_cannot_enforce() {
    use std::os::unix::fs::{PermissionsExt, chown};
    use std::os::unix::process::CommandExt;
    if !rustix::process::geteuid().is_root() {
        return e2e::not_run("only root can start a server as a user who may surely make no control group");
    }
    let nobody = 65_534;
    // That user may not be able to walk to where the binary was built.
    let place = tempfile::tempdir().expect("a folder");
    let folder = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(place.path(), folder).expect("ours");
    chown(place.path(), Some(nobody), None).expect("we are root");
    let binary = place.path().join("server");
    e2e::copy_program(e2e::Binary::find().path(), &binary);
    chown(&binary, Some(nobody), None).expect("we are root");
    let mut serve = std::process::Command::new(&binary);
    serve.args(["serve", "--listen", "127.0.0.1:0", "--limit", "processes=10"]).env_clear().current_dir(place.path());
    serve.env("HOME", place.path()).env("XDG_RUNTIME_DIR", place.path()).uid(nobody).gid(nobody);
    let refused = serve.output().expect("it runs");
    assert!(!refused.status.success(), "{refused:?}");
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(why.contains("limits.processes: cannot be enforced here"), "{why}");
}
