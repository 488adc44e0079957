//! Sandboxes: sessions with namespaces of their own. The attacks on them are in `confinement.rs`.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use api::{
    Boundary, CommandStatus, ConfinementTier, CreateRequest, EndedBy, Enforcer, ErrorCode, Limit, Limits, OnEnd,
    SessionStatus, TokenRequest, TokenScope, WaitRequest,
};
use client::{Client, ClientError};
use e2e::confinement::{SETTINGS, is_used, keeps_settings, make_settings};
use e2e::shells::{ALL, Dialect};
use e2e::user::serve;
use e2e::{
    Home, PATIENCE, Pid, Server, Session, Start, configure, eventually, join_all, lacks, not_run, with_descendants,
};

const CONFIGURATION: &str = r#"
[profiles.sandbox]
confinement = { tier = "sandbox" }

[profiles.process]
confinement = { tier = "process" }

[profiles.online]
confinement = { tier = "sandbox", network = true }
"#;

fn home() -> Home {
    let home = Home::make();
    configure(&home, CONFIGURATION);
    fs::create_dir_all(home.path().join("files/work")).expect("made");
    home
}

fn by(profile: &str, server: &Server) -> CreateRequest {
    CreateRequest {
        profile: Some(profile.to_owned()),
        cwd: Some(server.home().file("work").display().to_string()),
        shell: Some("bash".to_owned()),
        ..CreateRequest::default()
    }
}

/// The server; `None` if this machine has no sandboxes, which it has said then.
async fn having(server: Server) -> Option<Server> {
    match server.client().create(&by("sandbox", &server), None).await {
        Ok(session) => {
            server.client().terminate(&session.id, true, None).await.expect("it lives");
            Some(server)
        }
        Err(ClientError::Refused(problem)) if problem.detail.contains("its confinement needs") => {
            not_run(problem.detail);
            None
        }
        Err(other) => panic!("{other}"),
    }
}

async fn start() -> Option<Server> {
    having(Server::start_in(home(), Start::default())).await
}

async fn sandbox(server: &Server) -> Session {
    server.session_with(by("sandbox", server)).await
}

async fn shell_of(session: &Session) -> Pid {
    Pid::new(session.look().await.pid.expect("it lives"))
}

#[tokio::test]
// promise: access-15
async fn a_sandbox_has_places_processes_and_a_network_of_its_own() {
    let Some(server) = start().await else { return };
    let outside = tempfile::Builder::new().prefix("ptyd-e2e-").tempfile_in("/tmp").expect("made");
    let shell = sandbox(&server).await;
    let gives = async |command: &str| shell.gives(command).await.1;
    assert_eq!(gives("pwd").await.trim(), server.home().file("work").display().to_string());
    assert_ne!(shell.gives(&format!("ls {}", outside.path().display())).await.0, 0, "the machine's /tmp");
    assert_eq!(gives("echo mine >/tmp/file; echo >/var/tmp/other; cat /tmp/file").await, "mine\n");
    assert!(!Path::new("/tmp/file").exists());
    assert_eq!(gives("touch /usr/local/file 2>&1 | grep -c 'Read-only'").await, "1\n");
    assert_eq!(gives("chmod 700 ~/open 2>&1 || echo refused; tty").await.lines().last(), Some("/dev/pts/0"));
    // Its first process, its shell, and what the shell runs.
    assert_eq!(gives("echo $$; set -- /proc/[0-9]*; echo $#").await, "2\n2\n");
    assert_eq!(gives("tr -d '\\0' </proc/1/cmdline; cat /proc/1/comm").await, "ptyd-initptyd-init\n");
    assert_eq!(gives("tail -n +3 /proc/net/dev | wc -l").await, "1\n", "the loopback device alone");
    for other in ["ipc", "mnt", "net", "pid", "user", "uts", "cgroup"] {
        let own = fs::read_link(format!("/proc/{}/ns/{other}", shell_of(&shell).await.number())).expect("readable");
        assert_ne!(own, fs::read_link(format!("/proc/self/ns/{other}")).expect("readable"), "{other}");
    }
    if !lacks(&["python3", "script"]) {
        let lock = "/usr/bin/python3 -c 'import multiprocessing; multiprocessing.Lock(); print(1)'";
        assert_eq!(gives(lock).await, "1\n", "shared memory");
        assert_eq!(gives("script -qec tty /dev/null").await.trim(), "/dev/pts/1", "a terminal for a program");
    }
    // It takes no more terminals and shared memory from the machine than these.
    let mounts = gives("grep -oE '^(devpts /dev/pts|tmpfs /dev/shm) .*' /proc/self/mounts").await;
    assert!(mounts.contains("max=256") && mounts.contains("size=262144k"), "{mounts}");
    let other = sandbox(&server).await;
    assert_ne!(other.gives("cat /tmp/file").await.0, 0, "another sandbox's");
    assert_eq!(other.gives("tty").await.1, "/dev/pts/0\n");
}

#[tokio::test]
async fn a_pipe_for_a_command_of_a_confined_session_is_refused_with_the_remedy() {
    let Some(server) = start().await else { return };
    let shell = sandbox(&server).await;
    let mut run = server.ptyd(&["run", "-s", &shell.id, "cat"]);
    let mut child = run.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it can be executed");
    drop(child.stdin.take());
    let done = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.code() == Some(2) && said.contains("run it with </dev/null"), "{said}");
}

#[tokio::test]
// promise: access-15
async fn the_settings_of_a_project_are_only_read() {
    let Some(server) = start().await else { return };
    let work = server.home().file("work");
    make_settings(&work);
    for profile in ["sandbox", "process"] {
        keeps_settings(&server.session_with(by(profile, &server)).await, &work).await;
    }
    if !lacks(&["git"]) {
        let repository = server.home().file("repository");
        let git = |arguments: &[&str]| {
            let done =
                std::process::Command::new("git").arg("-C").arg(&repository).args(arguments).output().expect("git");
            assert!(done.status.success(), "{done:?}");
        };
        fs::create_dir(&repository).expect("made");
        git(&["init", "-q"]);
        let cwd = Some(repository.display().to_string());
        let shell = server.session_with(CreateRequest { cwd, ..by("sandbox", &server) }).await;
        let commits = "echo a >a && git add a && git -c user.name=a -c user.email=a@b commit -qm first && git log --oneline | wc -l";
        assert_eq!(shell.gives(commits).await, (0, "1\n".to_owned()));
        assert_ne!(shell.gives("git config core.fsmonitor id").await.0, 0);
    }
    configure(server.home(), "[profiles.sandbox]\nconfinement = { tier = \"sandbox\", project_settings = true }\n");
    let shell = sandbox(&server).await;
    for setting in SETTINGS {
        assert_eq!(shell.gives(&format!("echo mine >{setting} && cat {setting}")).await, (0, "mine\n".to_owned()));
    }
}

#[tokio::test]
// promise: access-15
async fn with_a_network_a_sandbox_has_the_machines() {
    if lacks(&["python3"]) {
        return;
    }
    let Some(server) = start().await else { return };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let connects = format!("/usr/bin/python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}))'");
    for (profile, reaches) in [("online", true), ("sandbox", false)] {
        let shell = server.session_with(by(profile, &server)).await;
        assert_eq!(shell.gives(&connects).await.0 == 0, reaches, "{profile}");
    }
    let shell = server.session_with(by("online", &server)).await;
    let begun = shell.begin("/usr/bin/python3 -m http.server --bind 127.0.0.1 0").await;
    let until = vec!["listening".to_owned()];
    let waited = shell.wait(&WaitRequest { until, timeout: Some(20.0), ..WaitRequest::default() }).await;
    assert_eq!(waited.ended_by, EndedBy::Matched);
    shell.signal("INT").await;
    shell.end_of(&begun).await;
}

#[tokio::test]
// promise: access-15
async fn a_sandbox_ends_as_one() {
    let Some(server) = start().await else { return };
    let escape = "trap '' HUP TERM; env -i setsid sh -c 'trap \"\" HUP TERM INT; sleep 4711 & wait' >/dev/null 2>&1 &";
    for end in ["requested", "exit", "shell killed", "holder killed", "first process killed"] {
        let shell = sandbox(&server).await;
        shell.run(escape).await;
        let pid = shell_of(&shell).await;
        let holder = pid.parent().expect("it has one");
        let is_sleep = |pid: &Pid| pid.command_line() == "sleep 4711";
        eventually("it runs", async || with_descendants(holder).into_iter().find(is_sleep)).await;
        let all: Vec<_> = with_descendants(holder).into_iter().filter(|it| *it != holder).collect();
        let first = all.iter().find(|it| it.parent() == Some(holder) && **it != pid).expect("the first process");
        match end {
            "requested" => assert_eq!(shell.ends().await.left, 0),
            "exit" => drop(shell.run("exit 3").await),
            "shell killed" => pid.kill(),
            "holder killed" => holder.kill(),
            _ => first.kill(),
        }
        for process in &all {
            assert!(process.ends_within(PATIENCE), "{end}: {}", process.command_line());
        }
        eventually("it has ended", async || shell.look().await.exit).await;
        if end == "exit" {
            assert_eq!(shell.look().await.exit.and_then(|exit| exit.exit_code), Some(3));
        }
    }
    let keep = CreateRequest { on_end: OnEnd::Keep, ..by("sandbox", &server) };
    match server.client().create(&keep, None).await {
        Err(ClientError::Refused(problem)) => {
            assert_eq!((problem.code, problem.field.as_deref()), (ErrorCode::InvalidField, Some("onEnd")));
        }
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
// promise: access-15
async fn a_sandbox_is_used_as_any_session() {
    let Some(server) = start().await else { return };
    if !lacks(&["fish"]) {
        Dialect::Fish.session(&server).await.gives("true").await;
    }
    join_all(ALL.into_iter().map(async |dialect| {
        let shell = Some(dialect.name().to_owned());
        let session = server.session_with(CreateRequest { shell, ..by("sandbox", &server) }).await;
        is_used(&server, &session, dialect).await;
    }))
    .await;
}

#[tokio::test]
// promise: access-15
async fn busybox_and_mksh_are_used_in_a_sandbox() {
    let Some(server) = start().await else { return };
    for name in ["busybox", "mksh"] {
        if lacks(&[name]) {
            continue;
        }
        let shell = server.session_with(CreateRequest { shell: Some(name.to_owned()), ..by("sandbox", &server) }).await;
        let done = shell.run("sh -c 'exit 7'").await;
        assert_eq!((done.exit_code, done.boundary), (Some(7), Boundary::Attested), "{name}");
        assert_eq!(shell.gives("tty; pwd | wc -l").await, (0, "/dev/pts/0\n1\n".to_owned()), "{name}");
        let asked = shell.run("head -n 1").await;
        assert_eq!(asked.ended_by, Some(EndedBy::InputWanted), "{name}");
        assert!(shell.types("line").await.output.contains("line"), "{name}");
        assert_eq!(shell.ends().await.left, 0, "{name}");
    }
}

#[tokio::test]
// promise: access-15
async fn a_sandbox_outlives_its_server() {
    let Some(server) = start().await else { return };
    let shell = sandbox(&server).await;
    let begun = shell.begin("sleep 0.5; echo over; sh -c 'exit 5'").await;
    server.kill9();
    server.again();
    let ended = shell.end_of(&begun).await;
    assert_eq!((ended.exit_code, ended.boundary), (Some(5), Boundary::Attested));
    assert_eq!(shell.gives("cat /tmp/x; echo y >/tmp/x; cat /tmp/x").await.0, 0);
}

#[tokio::test]
// promise: access-15
async fn the_strongest_tier_counts_wherever_it_is_asked_for() {
    let Some(server) = start().await else { return };
    let client = server.client();
    let (process, sandbox) = (Some(ConfinementTier::Process), Some(ConfinementTier::Sandbox));
    let token = async |name: &str, confinement| {
        let name = name.to_owned();
        let request = TokenRequest {
            name,
            scope: TokenScope::Write,
            expires_in: None,
            profiles: Vec::new(),
            confinement,
            ..TokenRequest::default()
        };
        Client::tcp(server.address(), client.make_token(&request).await.expect("made").token)
    };
    let (weak, strong) = (token("weak", process).await, token("strong", sandbox).await);
    for (of, profile, asked, given) in [
        (&weak, "process", process, process),
        (&weak, "process", sandbox, sandbox),
        (&weak, "sandbox", process, sandbox),
        (&weak, "sandbox", None, sandbox),
        (&strong, "process", None, sandbox),
        (&strong, "process", process, sandbox),
        (&strong, "sandbox", None, sandbox),
    ] {
        let request = CreateRequest { confinement: asked, ..by(profile, &server) };
        let session = of.create(&request, None).await.expect("started");
        assert_eq!(session.confinement, given, "{profile} {asked:?}");
    }
}

#[tokio::test]
// promise: access-15
async fn without_namespaces_no_weaker_session_is_started() {
    if lacks(&["unshare"]) {
        return;
    }
    // The server may make no user namespaces in its own one.
    let refuse = "echo 0 >/proc/sys/user/max_user_namespaces && exec \"$@\"";
    let behind = ["unshare", "--user", "--map-root-user", "sh", "-c", refuse, "sh"].map(Into::into).to_vec();
    let server = Server::start_in(home(), Start { behind, ..Start::default() });
    let weaker = server.client().create(&by("process", &server), None).await;
    if let Err(ClientError::Refused(problem)) = &weaker {
        return not_run(&problem.detail);
    }
    for request in [
        by("sandbox", &server),
        CreateRequest { confinement: Some(ConfinementTier::Sandbox), ..by("process", &server) },
    ] {
        match server.client().create(&request, None).await {
            Err(ClientError::Refused(problem)) => {
                assert_eq!(problem.code, ErrorCode::StartFailed);
                assert!(problem.detail.contains("its confinement needs namespaces of its own"), "{}", problem.detail);
            }
            other => panic!("not refused: {other:?}"),
        }
    }
    let given = server.client().capabilities().await.expect("an answer").confinement;
    let given: Vec<_> = given.into_iter().filter(|it| it.tier != ConfinementTier::Container).collect();
    let shown: Vec<_> = given.iter().map(|tier| (tier.tier, tier.available)).collect();
    assert_eq!(shown, [(ConfinementTier::Process, true), (ConfinementTier::Sandbox, false)]);
    let reason = given.last().and_then(|tier| tier.reason.clone()).expect("told");
    assert!(reason.contains("max_user_namespaces"), "{reason}");
}

#[tokio::test]
// promise: access-15
async fn an_ordinary_user_can_start_sandboxes() {
    let Some(server) = having(serve(home())).await else { return };
    let shell = sandbox(&server).await;
    assert_eq!(shell.gives("id -u >/tmp/x; cat /tmp/x; tty; echo a >made; cat made").await.0, 0);
    let made = fs::metadata(server.home().file("work").join("made")).expect("written");
    let owner = fs::metadata(server.home().file("work")).expect("there");
    use std::os::unix::fs::MetadataExt;
    assert_eq!((made.uid(), made.gid()), (owner.uid(), owner.gid()), "its user's");
    is_used(&server, &shell, Dialect::Bash).await;
}

#[tokio::test]
// promise: limit-2
async fn a_fork_bomb_in_an_ordinary_users_sandbox_fills_only_its_own_bound() {
    let Some(server) = having(serve(home())).await else { return };
    let limits = Limits { processes: Some(40), ..Limits::default() };
    let shell = server.session_with(CreateRequest { limits: Some(limits), ..by("sandbox", &server) }).await;
    let session = shell.look().await;
    assert_eq!(session.limits, limits);
    // Where the machine's administrator has given this user a part of the tree.
    let enforcer = session.limits_enforced_by[&Limit::Processes];
    assert!(matches!(enforcer, Enforcer::Cgroup | Enforcer::Rlimit), "{enforcer:?}");
    let other = sandbox(&server).await;
    let bound = other.gives("ulimit -Hu").await.1;
    assert!(enforcer == Enforcer::Cgroup || bound.trim().parse::<u64>().is_ok_and(|most| most <= 4_096), "{bound}");
    // The `read` behind the bomb needs no process of its own.
    shell.gives("mkfifo /tmp/gate").await;
    let bomb = shell.begin("bomb() { bomb | bomb & }; bomb; read -r line </tmp/gate").await;
    let count =
        async || server.client().processes(&shell.id).await.map(|list| list.processes.len()).unwrap_or_default();
    // The holder and the first process are not the session's.
    eventually("it is full", async || (count().await >= 40).then_some(())).await;
    for _ in 0..20 {
        assert_eq!(other.gives("(true) && echo alive").await, (0, "alive\n".to_owned()));
        assert!(count().await <= 42);
    }
    assert_eq!(shell.command(&bomb.id).await.status, CommandStatus::Running);
    let ended = shell.ends().await;
    assert_eq!((ended.left, ended.session.status), (0, SessionStatus::Terminated), "{ended:?}");
}
