//! A server of a user other than root: operations reserved to root are not needed, or their lack is reported.
//!
//! Where the tests run as root, the server is another user's, made of numbers alone: no account is needed or left.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use api::{
    Boundary, CommandStatus, CreateRequest, EndedBy, Enforcer, ErrorCode, Foreground, Limit, Limits, SessionStatus,
};
use e2e::shells::ALL;
use e2e::user::{USER, is_root, run_as, serve};

use e2e::{Home, PATIENCE, Pid, Server, Session, copy_program, eventually, join_all, marked, sleepers, spawned};

/// A user who may not use that server.
const ANOTHER: &str = "65533";

/// Where a program is.
fn found(program: &str) -> String {
    let found = Command::new("which").arg(program).output().expect("which is there");
    String::from_utf8_lossy(&found.stdout).trim().to_owned()
}

fn ordinary() -> Server {
    serve(Home::make())
}

/// The processes of this home with this command line.
async fn runs(server: &Server, line: &str) -> Pid {
    let is_it = |pid: &Pid| pid.command_line() == line;
    eventually(line, async || marked(server.home().path()).into_iter().find(is_it)).await
}

#[tokio::test]
// promise: shell-16
async fn ends_questions_and_interrupts_are_reported_in_every_shell() {
    let server = ordinary();
    let user = fs::metadata(server.home().state()).expect("it is there");
    join_all(ALL.into_iter().enumerate().map(async |(number, dialect)| {
        let shell = dialect.session(&server).await;
        let name = dialect.name();
        let uid = std::os::unix::fs::MetadataExt::uid(&user);
        assert_eq!(shell.gives("id -u").await, (0, format!("{uid}\n")), "{name}");
        assert_eq!(shell.gives(&dialect.code(7)).await.0, 7, "{name}");

        let asked = shell.run(&dialect.ask("name? ")).await;
        assert_eq!((asked.ended_by, asked.foreground), (Some(EndedBy::InputWanted), Some(Foreground::InputWanted)));
        shell.types("Ada").await;
        let done = shell.end_of(&asked).await;
        assert!(done.output.as_deref().is_some_and(|output| output.ends_with("got:Ada\n")), "{name}: {done:?}");

        let asked = shell.run(dialect.ask_secret()).await;
        assert_eq!((asked.ended_by, asked.foreground), (Some(EndedBy::InputWanted), Some(Foreground::PasswordWanted)));
        shell.types("12345").await;
        let done = shell.end_of(&asked).await;
        assert!(done.output.as_deref().is_some_and(|output| output.ends_with("\n5\n")), "{name}: {done:?}");

        let line = format!("sleep 70{number}");
        let sleeps = shell.begin(&line).await;
        runs(&server, &line).await;
        shell.signal("INT").await;
        let done = shell.end_of(&sleeps).await;
        assert_eq!((done.status, done.exit_code), (CommandStatus::Completed, Some(130)), "{name}");
    }))
    .await;
}

#[tokio::test]
// promise: shell-16
async fn the_next_server_finds_running_commands_and_their_codes_and_ends_them_completely() {
    let server = ordinary();
    let shells = join_all(ALL.map(async |dialect| dialect.session(&server).await)).await;
    let asked = join_all(shells.iter().map(async |shell| shell.run("read n; sh -c \"exit $n\"").await)).await;
    server.kill9();
    server.again();
    for ((shell, asked), code) in shells.iter().zip(&asked).zip([0, 3, 7, 255]) {
        let seen = shell.look().await;
        assert_eq!(
            (seen.current_command.as_ref(), seen.foreground),
            (Some(&asked.id), Foreground::InputWanted),
            "{}",
            seen.shell
        );
        shell.types(&code.to_string()).await;
        assert_eq!(shell.end_of(asked).await.exit_code, Some(code), "{}", seen.shell);
    }
    spawned(&server, &shells[0]).await;
    for shell in &shells {
        let ended = shell.ends().await;
        assert_eq!((ended.left, ended.session.status), (0, SessionStatus::Terminated), "{ended:?}");
    }
    assert_eq!(sleepers(&server), []);
    assert_eq!(marked(server.home().path()), [server.pid()], "nothing but the server");
}

/// Everything below a folder.
fn below(folder: &Path) -> Vec<PathBuf> {
    let inside: Vec<_> = fs::read_dir(folder).expect("ours").map(|entry| entry.expect("ours").path()).collect();
    let deeper = inside.iter().filter(|path| path.is_dir()).flat_map(|path| below(path));
    deeper.chain(inside.iter().cloned()).collect()
}

#[tokio::test]
// promise: access-2
async fn secret_files_are_closed_to_others_even_in_an_open_folder() {
    let home = Home::make();
    fs::create_dir(home.state()).expect("a folder of our own");
    fs::set_permissions(home.state(), Permissions::from_mode(0o755)).expect("ours");
    let server = serve(home);
    let shell = server.session().await;
    shell.gives("echo secret").await;
    // Nothing is read by others but where it listens, and the scripts that every ptyd has.
    let (scripts, listen) = (server.home().state().join("shell-integration"), server.home().state().join("listen"));
    let places = below(&server.home().state()).into_iter().chain([server.home().socket()]);
    let open = places.filter(|path| !path.starts_with(&scripts) && *path != listen).filter(|path| {
        // The mode of a link itself means nothing.
        let mode = path.metadata().expect("ours").permissions().mode();
        mode & 0o077 != 0
    });
    assert_eq!(open.collect::<Vec<_>>(), Vec::<PathBuf>::new());
    let folder = server.home().state().join("sessions").join(&shell.id);
    for name in ["journal", "events", "spec", "control"] {
        assert!(folder.join(name).exists(), "{name} was looked at");
    }
}

/// The words of ptyd to a user who may not use this server, and its exit code.
fn said_to_another(server: &Server, args: &[&str]) -> (String, Option<i32>) {
    let [setpriv, rest @ ..] = run_as(ANOTHER);
    let ptyd = server.ptyd(args);
    let mut command = Command::new(setpriv);
    command.args(rest).arg(ptyd.get_program()).args(args).env_clear().envs(server.home().environment());
    command.stdin(Stdio::null()).current_dir("/");
    let output = command.output().expect("it can be executed");
    (String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned(), output.status.code())
}

#[tokio::test]
// promise: access-2
async fn another_user_is_refused_with_the_reason() {
    if !is_root() {
        return e2e::not_run("only root can be another user");
    }
    let server = ordinary();
    let shell = server.session().await;
    // The program itself is in the home: only the folder with the socket stays closed.
    for path in [server.home().path().to_owned(), server.home().file("")] {
        fs::set_permissions(path, Permissions::from_mode(0o755)).expect("root may");
    }
    let ways: [&[&str]; 4] = [&["ls"], &["run", "true"], &["kill", &shell.id], &["mcp"]];
    for args in ways {
        let (said, code) = said_to_another(&server, args);
        assert!(code == Some(4) && said.contains("ptyd.sock: Permission denied"), "{args:?}: {code:?} {said}");
        assert!(!said.contains("start one"), "{args:?}: there is one: {said}");
    }
    let (said, code) = said_to_another(&server, &["doctor"]);
    assert!(code == Some(1) && said.contains("fail  socket"), "{code:?} {said}");

    // A server whose socket is open to all users asks the kernel for the peer.
    fs::set_permissions(server.home().path().join("run"), Permissions::from_mode(0o755)).expect("root may");
    fs::set_permissions(server.home().socket(), Permissions::from_mode(0o666)).expect("root may");
    let [setpriv, rest @ ..] = run_as(ANOTHER);
    let asks = "use IO::Socket::UNIX; $s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or die $!; \
                print $s \"GET /terminals HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n\"; print <$s>";
    let asked = Command::new(setpriv).args(&rest).args(["perl", "-e", asks]).arg(server.home().socket()).output();
    let answer = String::from_utf8_lossy(&asked.expect("it can be executed").stdout).into_owned();
    assert!(
        answer.starts_with("HTTP/1.1 403 ") && answer.contains("this socket is for the user that runs the server"),
        "{answer}"
    );
    // Nor does another user's client send it anything, root's included: a user that may write the folder of a socket could
    // have put another one in its place.
    let refused =
        |uid: &str| format!("user {USER} listens there, who is neither this user ({uid}) nor root; nothing was sent");
    for args in ways {
        let (said, code) = said_to_another(&server, args);
        assert!(code == Some(4) && said.contains(&refused(ANOTHER)), "{args:?}: {code:?} {said}");
        let output = server.ptyd(args).stdin(Stdio::null()).output().expect("it can be executed");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(4) && said.contains(&refused("0")), "{args:?}: {said}");
    }
    let (said, _) = said_to_another(&server, &["doctor"]);
    assert!(said.contains("fail  socket") && said.contains(&refused(ANOTHER)), "{said}");
    // A holder accepts no other user either, and sends nothing.
    let control = server.home().state().join("sessions").join(&shell.id).join("control");
    for path in [server.home().path().join("state"), server.home().state(), server.home().state().join("sessions")] {
        fs::set_permissions(path, Permissions::from_mode(0o755)).expect("root may");
    }
    fs::set_permissions(control.parent().expect("a folder"), Permissions::from_mode(0o755)).expect("root may");
    fs::set_permissions(&control, Permissions::from_mode(0o666)).expect("root may");
    let [setpriv, rest @ ..] = run_as(ANOTHER);
    let connects = "use IO::Socket::UNIX; $s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or die $!; print 'heard ', <$s>";
    let heard = Command::new(setpriv).args(rest).args(["perl", "-e", connects]).arg(&control).output();
    let heard = heard.expect("it can be executed");
    assert_eq!(String::from_utf8_lossy(&heard.stdout), "heard ", "{}", String::from_utf8_lossy(&heard.stderr));
    assert_eq!(shell.gives("echo alive").await, (0, "alive\n".to_owned()));
}

#[tokio::test]
// promise: shell-16
async fn a_limit_is_enforced_without_a_control_group_or_refused() {
    let server = ordinary();
    let limits = Limits { memory_mb: Some(64), open_files: Some(50), ..Limits::default() };
    let shell = server.session_with(CreateRequest { limits: Some(limits), ..CreateRequest::default() }).await;
    let kept: Vec<_> = shell.look().await.limits_enforced_by.into_iter().collect();
    let request =
        CreateRequest { limits: Some(Limits { processes: Some(40), ..Limits::default() }), ..CreateRequest::default() };
    let processes = server.client().create(&request, None).await;
    let files = (Limit::OpenFiles, Enforcer::Rlimit);
    if kept == [(Limit::MemoryMb, Enforcer::Cgroup), files] {
        // Only where the machine's administrator has given this user a part of the tree.
        processes.expect("what keeps memory keeps processes");
    } else {
        assert_eq!(kept, [(Limit::MemoryMb, Enforcer::Rlimit), files]);
        let refused = processes.expect_err("nobody can keep it here");
        assert_eq!(refused.code(), Some(ErrorCode::InvalidField));
        assert!(refused.to_string().contains("control group"), "{refused}");
    }
    assert_ne!(shell.gives("head -c 400M /dev/zero | tail").await.0, 0);
    assert_eq!(shell.gives("ulimit -n; echo alive").await, (0, "50\nalive\n".to_owned()));
}

#[tokio::test]
// promise: ask-4
async fn the_password_that_su_asks_for_is_reported_and_su_can_be_interrupted() {
    let server = ordinary();
    let shell = server.session().await;
    let asked = shell.run("su -c true").await;
    assert_eq!((asked.ended_by, asked.foreground), (Some(EndedBy::InputWanted), Some(Foreground::PasswordWanted)));
    shell.presses(&["C-c"], None).await;
    let done = shell.end_of(&asked).await;
    assert_eq!(
        (done.status, done.exit_code.is_some_and(|code| code != 0)),
        (CommandStatus::Completed, true),
        "{done:?}"
    );
    assert_eq!(shell.gives("echo alive").await, (0, "alive\n".to_owned()));
}

#[tokio::test]
// promise: shell-3
async fn a_shell_that_cannot_be_inspected_still_reports_its_ends() {
    if !is_root() {
        return e2e::not_run("only root can make a program that its user may not read");
    }
    let server = ordinary();
    join_all(ALL.map(async |dialect| {
        // The kernel shows of it what it shows of every process where `kernel.yama.ptrace_scope` is 2.
        let (name, program) = (dialect.name(), server.home().file(dialect.name()));
        copy_program(Path::new(&found(name)), &program);
        fs::set_permissions(&program, Permissions::from_mode(0o711)).expect("ours");
        let shell = Some(program.display().to_string());
        let shell = server.session_with(CreateRequest { shell, ..CreateRequest::default() }).await;
        for code in [0, 7, 0] {
            let done = shell.run(&dialect.code(code)).await;
            assert_eq!((done.boundary, done.exit_code), (Boundary::Attested, Some(code)), "{name}");
        }
        // Its own `read`, of which nothing is to be seen.
        let asked = shell.run_until("echo asks; read n; echo got:$n", "asks").await;
        assert_eq!(asked.foreground, Some(Foreground::Running), "{name}");
        shell.types("Ada").await;
        let done = shell.end_of(&asked).await;
        assert!(done.output.as_deref().is_some_and(|output| output.ends_with("got:Ada\n")), "{name}: {done:?}");
        let asked = shell.run(dialect.ask_secret()).await;
        assert_eq!(asked.foreground, Some(Foreground::PasswordWanted), "{name}");
        shell.types("12345").await;
        assert_eq!(shell.end_of(&asked).await.exit_code, Some(0), "{name}");
    }))
    .await;
}

/// A program that runs another one as root altogether, as sudo does; nothing where the machine has no such thing.
fn becomes_root(server: &Server) -> Option<String> {
    let up = server.home().file("up");
    if !is_root() {
        e2e::not_run("only root can make a program that becomes root");
        return None;
    }
    copy_program(Path::new(&found("setpriv")), &up);
    // The folders above are the user's alone.
    fs::set_permissions(&up, Permissions::from_mode(0o4755)).expect("ours");
    let words = format!("{} --reuid=0 --regid=0 --clear-groups -- ", up.display());
    let [setpriv, rest @ ..] = run_as(USER);
    let tried = Command::new(setpriv).args(rest).args(["sh", "-c", &format!("{words} id -u")]).output();
    let is_up = tried.is_ok_and(|tried| tried.stdout == b"0\n");
    if !is_up {
        e2e::not_run(format!("no program changes its user in {}", up.display()));
    }
    is_up.then_some(words)
}

#[tokio::test]
// promise: ask-4
async fn the_wants_of_a_program_of_roots_are_reported_as_far_as_the_kernel_shows_them() {
    let server = ordinary();
    let Some(up) = becomes_root(&server) else { return };
    let shell = server.session().await;
    // A prompt without echo wants a secret, for every user.
    let asked = shell.run(&format!("{up} bash -c 'read -rsp \"Password: \" p; echo; exit ${{#p}}'")).await;
    assert_eq!((asked.ended_by, asked.foreground), (Some(EndedBy::InputWanted), Some(Foreground::PasswordWanted)));
    shell.types("12345").await;
    assert_eq!(shell.end_of(&asked).await.exit_code, Some(5));
    // A question that echoes can be awaited by its words, and its program reads the keys.
    let asked = shell.run_until(&format!("{up} bash -c 'read -rp \"Go on? \" n; exit $n'"), "Go on\\? ").await;
    assert_eq!(asked.foreground, Some(Foreground::Running));
    shell.types("7").await;
    assert_eq!(shell.end_of(&asked).await.exit_code, Some(7));
}

#[tokio::test]
// promise: ask-4
async fn a_key_interrupts_a_program_of_root_and_processes_that_cannot_be_ended_are_counted() {
    let server = ordinary();
    let Some(up) = becomes_root(&server) else { return };
    let shell = server.session().await;
    let sleeps = shell.begin(&format!("{up} sleep 710")).await;
    runs(&server, "sleep 710").await;
    shell.presses(&["C-c"], None).await;
    assert_eq!(shell.end_of(&sleeps).await.exit_code, Some(130));
    shell.begin(&format!("{up} env --ignore-signal=HUP,INT,TERM sleep 711")).await;
    let left = runs(&server, "sleep 711").await;
    let ended = shell.ends().await;
    left.kill();
    assert_eq!((ended.left, ended.session.status), (1, SessionStatus::Terminated), "{ended:?}");
    assert!(left.ends_within(PATIENCE));
    let other: Session = server.session().await;
    assert_eq!(other.gives("echo alive").await, (0, "alive\n".to_owned()));
}
