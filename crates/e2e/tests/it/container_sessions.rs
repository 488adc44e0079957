//! Sessions in containers, with real podman. Images are imported from folders that are made of programs of this machine, and need no
//! registry.

use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use api::{
    ApprovalState, Boundary, ConfinementTier, CreateRequest, EndedBy, ErrorCode, Limits, NumberOrName, OnEnd,
    SignalRequest, TokenRequest, TokenScope,
};
use client::{Client, ClientError};
use e2e::confinement::{Shared, attacks_of, is_used, keeps_settings, make_settings, one};
use e2e::limits::check_memory_hog;
use e2e::podman::Podman;
use e2e::shells::Dialect;
use e2e::user::{USER, is_root, run_as, serve};
use e2e::{
    Connection, Home, PATIENCE, Pid, Server, Session, Start, configure, eventually, in_part, is_program, lacks, not_run,
};
use serde_json::{Value, json};

/// The image with bash and the programs that the tests run.
const WITH_BASH: &str = "localhost/with-bash:1";
/// The image with busybox alone.
const WITH_BUSYBOX: &str = "localhost/with-busybox:1";
/// The image without a shell.
const WITHOUT_SHELL: &str = "localhost/without-shell:1";

/// The programs that make images and run containers.
const NEEDED: [&str; 5] = ["podman", "busybox", "tar", "ldd", "unshare"];

/// The programs beside bash.
const PROGRAMS: [&str; 25] = [
    "cat", "chmod", "env", "grep", "head", "id", "kill", "ln", "ls", "mkdir", "mount", "mv", "ps", "rm", "script",
    "setsid", "sh", "sleep", "stat", "stty", "tail", "touch", "tr", "tty", "wc",
];

/// A folder for an image, with the users that the tests have.
fn image_folder(home: &Home, name: &str) -> PathBuf {
    let folder = home.file(name);
    for made in ["bin", "etc", "root", "tmp", "home/app"] {
        fs::create_dir_all(folder.join(made)).expect("made");
    }
    fs::set_permissions(folder.join("tmp"), fs::Permissions::from_mode(0o1777)).expect("ours");
    let users = "root:x:0:0:root:/root:/bin/sh\napp:x:1000:1000::/home/app:/bin/sh\n";
    fs::write(folder.join("etc/passwd"), users).expect("written");
    fs::write(folder.join("etc/group"), "root:x:0:\napp:x:1000:\nmore:x:1001:app\n").expect("written");
    folder
}

/// Copies a program of this machine with its libraries; a program that it lacks is left out.
fn add(folder: &Path, program: &str) {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output().expect("sh");
    let found = String::from_utf8_lossy(&found.stdout).trim().to_owned();
    if !found.starts_with('/') {
        return;
    }
    fs::copy(&found, folder.join("bin").join(program)).expect("copied");
    let needs = Command::new("ldd").arg(&found).output().expect("the C library has it").stdout;
    for library in String::from_utf8_lossy(&needs).split_whitespace().filter(|word| word.starts_with('/')) {
        let copy = folder.join(library.trim_start_matches('/'));
        fs::create_dir_all(copy.parent().expect("it has one")).expect("made");
        fs::copy(library, copy).expect("copied");
    }
}

/// Makes the images in this podman's storage; the error says why podman cannot have them.
fn make_images(home: &Home, podman: &Podman) -> Result<(), String> {
    let bash = image_folder(home, "with-bash");
    ["bash"].into_iter().chain(PROGRAMS).for_each(|program| add(&bash, program));
    let busybox = image_folder(home, "with-busybox");
    add(&busybox, "busybox");
    let applets = Command::new("busybox").arg("--list").output().expect("busybox").stdout;
    for applet in String::from_utf8_lossy(&applets).lines().filter(|name| *name != "busybox") {
        symlink("busybox", busybox.join("bin").join(applet)).expect("made");
    }
    let shellless = image_folder(home, "without-shell");
    add(&shellless, "cat");
    for (folder, image) in [(bash, WITH_BASH), (busybox, WITH_BUSYBOX), (shellless, WITHOUT_SHELL)] {
        podman.imports(&folder, image).map_err(|why| format!("podman cannot import an image here: {why}"))?;
    }
    let tried = podman.does(&["run", "--rm", "--network", "none", WITH_BASH, "bash", "-c", "exit 7"]);
    match tried.status.code() {
        Some(7) => Ok(()),
        _ => Err(format!("podman cannot run here: {}", String::from_utf8_lossy(&tried.stderr))),
    }
}

/// A storage with the images, which root's tests share: making them takes longer than most of these tests. It is made once for the
/// programs that this machine has now.
fn shared_images() -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("container-images");
    fs::create_dir_all(&folder).expect("a folder of our own");
    let lock = fs::File::create(folder.join("lock")).expect("ours");
    lock.lock().expect("no other test makes them now");
    let mut programs = DefaultHasher::new();
    include_str!("container_sessions.rs").hash(&mut programs);
    for program in ["bash", "busybox"].into_iter().chain(PROGRAMS) {
        let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output().expect("sh");
        let path = String::from_utf8_lossy(&found.stdout).trim().to_owned();
        let made = fs::metadata(&path).and_then(|found| found.modified()).ok();
        (path, made).hash(&mut programs);
    }
    let storage = folder.join(format!("{:x}", programs.finish()));
    if !storage.exists() {
        for entry in fs::read_dir(&folder).expect("ours").flatten().filter(|entry| entry.path().is_dir()) {
            fs::remove_dir_all(entry.path()).expect("it is of other programs, or of another version of this file");
        }
        let home = Home::make();
        make_images(&home, &Podman::set_up(&home, None))?;
        let unfinished = folder.join("unfinished");
        let copied = Command::new("sh")
            .args(["-c", "rm -rf \"$2\" && cp -a \"$1\" \"$2\" && mv \"$2\" \"$3\"", "sh"])
            .args([&home.file("storage/graph"), &unfinished, &storage])
            .status();
        assert!(copied.is_ok_and(|status| status.success()), "the storage is copied");
    }
    Ok(storage)
}

/// podman with these images for sessions of this home's server; `None` if it cannot have them, which is reported.
fn podman_with_images(home: &Home) -> Option<Podman> {
    if lacks(&NEEDED) {
        return None;
    }
    let made = if is_root() {
        shared_images().map(|images| Podman::set_up(home, Some(&images)))
    } else {
        let podman = Podman::set_up(home, None);
        make_images(home, &podman).map(|()| podman)
    };
    made.inspect(|podman| configure_profiles(home, podman)).map_err(not_run).ok()
}

/// The profiles of sessions in the images.
fn configure_profiles(home: &Home, podman: &Podman) {
    let engine = podman.program.display();
    let profile = |name: &str, image: &str, more: &str| {
        format!(
            "[profiles.{name}]\nconfinement = {{ tier = \"container\", engine = \"{engine}\", image = \"{image}\"{more} }}\n\n"
        )
    };
    let profiles = [
        profile("bash", WITH_BASH, ""),
        profile("busybox", WITH_BUSYBOX, ""),
        profile("python", WITH_BASH, ", readable = [\"/usr\"]"),
        profile("nobody", WITH_BASH, ", user = \"nobody-of-this-name\""),
        profile("broken", WITH_BASH, ", runtime = \"no-such-runtime\""),
        profile("online", WITH_BASH, ", network = true"),
        profile("shellless", WITHOUT_SHELL, ""),
        profile("missing", "localhost/nobody-has-this:1", ""),
        "[profiles.open]\n\n".to_owned(),
        // Engines that are none.
        profile("engineless", WITH_BASH, "").replace(&engine.to_string(), "/nonexistent/podman"),
        profile("silent", WITH_BASH, "").replace(&engine.to_string(), "true"),
        profile("app", WITH_BASH, ", user = \"app\"") + "secrets = [\"A_KEY\"]\nsecret_files = [\"A_KEY\"]\n\n",
    ];
    configure(home, &profiles.concat());
    fs::create_dir_all(home.file("work")).expect("made");
}

fn start() -> Option<(Server, Podman)> {
    start_with(|_| Vec::new())
}

/// The server with these variables.
fn start_with(env: impl FnOnce(&Home) -> Vec<(&'static str, OsString)>) -> Option<(Server, Podman)> {
    let home = Home::make();
    let podman = podman_with_images(&home)?;
    let env = env(&home);
    Some((Server::start_in(home, Start { env, ..Start::default() }), podman))
}

/// A program that runs this before it is podman.
fn engine_that(server: &Server, podman: &Podman, first: &str) -> PathBuf {
    let program = server.home().file("engine");
    let script = format!("#!/bin/sh\n{first}\nexec {} \"$@\"\n", podman.program.display());
    fs::write(&program, script).expect("written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("ours");
    program
}

/// The table of a profile for a container of the image with bash.
fn of_engine(name: &str, engine: &Path, more: &str) -> String {
    let engine = engine.display();
    format!(
        "[profiles.{name}]\nconfinement = {{ tier = \"container\", engine = \"{engine}\", image = \"{WITH_BASH}\"{more} }}\n"
    )
}

/// The code and the words with which a session is refused.
async fn refused(server: &Server, request: &CreateRequest) -> (ErrorCode, String) {
    match server.client().create(request, None).await {
        Err(ClientError::Refused(problem)) => (problem.code, problem.detail.clone()),
        other => panic!("not refused: {other:?}"),
    }
}

fn by(profile: &str, server: &Server) -> CreateRequest {
    CreateRequest {
        profile: Some(profile.to_owned()),
        cwd: Some(server.home().file("work").display().to_string()),
        ..CreateRequest::default()
    }
}

/// All containers are gone, and so is what the server keeps of them.
async fn none_is_left(server: &Server, podman: &Podman) {
    eventually("its container is removed", async || podman.containers().is_empty().then_some(())).await;
    let kept = server.home().state().join("containers");
    let is_program = |entry: &fs::DirEntry| entry.file_name() == "ptyd-init";
    let folders = || fs::read_dir(&kept).expect("there").flatten().filter(|it| !is_program(it)).count();
    eventually("its folder is removed", async || (folders() == 0).then_some(())).await;
    // Each of the images asks for one.
    let volumes = || podman.does(&["volume", "ls", "--quiet"]).stdout;
    eventually("its volumes are removed", async || volumes().is_empty().then_some(())).await;
}

/// The first process of the container with this shell.
fn first_process(shell: Pid) -> Pid {
    let holder = shell.parent().expect("its holder").number();
    let info = fs::read_to_string(format!("/proc/{holder}/fdinfo/1")).expect("readable");
    let pid = info.lines().find_map(|line| line.strip_prefix("Pid:")).expect("a pidfd");
    Pid::new(pid.trim().parse().expect("a number"))
}

async fn shell_of(session: &Session) -> Pid {
    Pid::new(session.look().await.pid.expect("it lives"))
}

#[tokio::test]
// promise: access-16
async fn a_session_in_a_container_is_used_as_any_other() {
    let Some((server, podman)) = start() else { return };
    let shell = server.session_with(by("bash", &server)).await;
    assert_eq!(shell.look().await.confinement, Some(ConfinementTier::Container));
    assert_eq!(podman.containers().trim(), format!("ptyd-{}", shell.id));
    is_used(&server, &shell, Dialect::Bash).await;
    assert_eq!(shell.gives("tty; echo $$; cat /proc/1/comm").await.1, "/dev/pts/0\n2\nptyd-init\n");
    let kinds = "user -> image's: $HOME $SHELL_OF_SERVER. $PWD";
    let shown = shell.gives(&format!("echo \"{kinds}\"; echo $PATH")).await.1;
    let work = server.home().file("work");
    let expected = format!("user -> image's: /root . {}\n/usr/local/sbin:", work.display());
    assert!(shown.starts_with(&expected), "{shown}");
    // An image that names no locale has the terminal's characters.
    assert_eq!(shell.gives("printf '\\u202e' | wc -c").await.1, "3\n");
    // Its files are the image's and the workspace's.
    fs::write(work.join("given"), "given\n").expect("written");
    assert_eq!(shell.gives("cat given; echo made >made").await, (0, "given\n".to_owned()));
    assert_eq!(fs::read_to_string(work.join("made")).expect("written"), "made\n");
    let secret = server.home().state().join("token");
    assert_ne!(
        shell.gives(&format!("cat {} || ls {}", secret.display(), work.join("..").join("podman").display())).await.0,
        0
    );
    assert_eq!(shell.gives("echo x >/etc/own; cat /etc/own").await, (0, "x\n".to_owned()));
    assert_eq!(shell.ends().await.left, 0);
    // Every container is a fresh one.
    let other = server.session_with(by("bash", &server)).await;
    assert_ne!(other.gives("cat /etc/own").await.0, 0);
    assert_eq!(other.ends().await.left, 0);
    none_is_left(&server, &podman).await;
}

#[tokio::test]
// promise: access-16
async fn busybox_is_used_in_a_container() {
    let Some((server, podman)) = start() else { return };
    let shell = server.session_with(by("busybox", &server)).await;
    let done = shell.run("sh -c 'exit 7'").await;
    assert_eq!((done.exit_code, done.boundary), (Some(7), Boundary::Attested));
    assert_eq!(shell.gives("tty; echo $$").await, (0, "/dev/pts/0\n2\n".to_owned()));
    let asked = shell.run("head -n 1").await;
    assert_eq!(asked.ended_by, Some(EndedBy::InputWanted));
    assert!(shell.types("line").await.output.contains("line"));
    let begun = shell.begin("sleep 812").await;
    let sleeping = eventually("it runs", async || one(&server, &shell, "sleep 812").await).await;
    assert!(sleeping.sandbox_pid.is_some_and(|inside| inside < 1_000), "{sleeping:?}");
    shell.signal("INT").await;
    assert_eq!(shell.end_of(&begun).await.signal.as_deref(), Some("INT"));
    assert_eq!(shell.ends().await.left, 0);
    none_is_left(&server, &podman).await;
}

#[tokio::test]
// promise: access-16
async fn a_container_ends_as_one_and_is_removed() {
    let Some((server, podman)) = start() else { return };
    let escape = "trap '' HUP TERM; env -i setsid sh -c 'trap \"\" HUP TERM INT; sleep 4711 & wait' >/dev/null 2>&1 &";
    for end in ["requested", "exit", "shell killed", "holder killed", "first process killed", "container removed"] {
        let shell = server.session_with(by("bash", &server)).await;
        shell.run(escape).await;
        // An orphan is not a descendant of the holder, and is a process of the session.
        shell.run("(setsid sleep 4712 >/dev/null 2>&1 &)").await;
        let orphan = eventually("it runs", async || one(&server, &shell, "sleep 4712").await).await;
        assert_eq!(orphan.parent_pid, None, "{end}");
        eventually("it runs", async || one(&server, &shell, "sleep 4711").await).await;
        let all = server.client().processes(&shell.id).await.expect("known").processes;
        let all: Vec<_> = all.into_iter().map(|it| Pid::new(it.pid)).collect();
        assert!(all.len() >= 4, "{all:?}");
        let pid = shell_of(&shell).await;
        match end {
            "requested" => assert_eq!(shell.ends().await.left, 0),
            "exit" => drop(shell.run("exit 3").await),
            "shell killed" => pid.kill(),
            "holder killed" => pid.parent().expect("its holder").kill(),
            "first process killed" => first_process(pid).kill(),
            _ => {
                assert!(
                    podman
                        .does(&["rm", "--force", "--volumes", "--time", "0", &format!("ptyd-{}", shell.id)])
                        .status
                        .success()
                )
            }
        }
        for process in &all {
            assert!(process.ends_within(PATIENCE), "{end}: {}", process.command_line());
        }
        eventually("it has ended", async || shell.look().await.exit).await;
        if end == "exit" {
            assert_eq!(shell.look().await.exit.and_then(|exit| exit.exit_code), Some(3));
        }
        none_is_left(&server, &podman).await;
    }
}

#[tokio::test]
// promise: access-16, crash-1
async fn a_container_outlives_its_server_and_leftovers_of_an_earlier_server_are_removed() {
    let Some((server, podman)) = start() else { return };
    let shell = server.session_with(by("bash", &server)).await;
    shell.run("kept=1").await;
    shell.run("(setsid sleep 4712 >/dev/null 2>&1 &)").await;
    let begun = shell.begin("sleep 0.5; echo over; sh -c 'exit 5'").await;
    server.kill9();
    server.again();
    let ended = shell.end_of(&begun).await;
    assert_eq!((ended.exit_code, ended.boundary), (Some(5), Boundary::Attested));
    assert_eq!(shell.gives("echo $kept").await.1, "1\n");
    let orphan = eventually("it is known", async || one(&server, &shell, "sleep 4712").await).await;
    let (signal, target) = (NumberOrName::Name("KILL".to_owned()), Some(NumberOrName::Number(orphan.pid)));
    server.client().signal(&shell.id, &SignalRequest { signal, target }).await.expect("sent");
    eventually("it is gone", async || one(&server, &shell, "sleep 4712").await.is_none().then_some(())).await;
    // Nobody of the engine removes the container now.
    let pid = shell_of(&shell).await;
    let first = first_process(pid);
    let monitor = first.parent().expect("podman's");
    server.kill9();
    monitor.kill();
    pid.parent().expect("its holder").kill();
    assert!(first.ends_within(PATIENCE) && pid.ends_within(PATIENCE));
    assert_eq!(podman.containers().trim(), format!("ptyd-{}", shell.id));
    server.again();
    none_is_left(&server, &podman).await;
    assert!(shell.look().await.exit.is_some());
}

#[tokio::test]
// promise: access-16
async fn a_container_whose_server_dies_during_its_start_is_removed() {
    let env = |home: &Home| vec![("PTYD_FAULT", format!("container:{}", home.file("doom").display()).into())];
    let Some((server, podman)) = start_with(env) else { return };
    let doom = server.home().file("doom");
    fs::write(&doom, "").expect("written");
    assert!(server.client().create(&by("bash", &server), None).await.is_err());
    server.kill9();
    fs::remove_file(&doom).expect("there");
    assert_ne!(fs::read_dir(server.home().state().join("containers")).expect("there").count(), 1, "it is known");
    server.again();
    none_is_left(&server, &podman).await;
    assert_eq!(server.client().list(None).await.expect("known").total, 0);
}

#[tokio::test]
// promise: access-16, limit-2
async fn the_limits_of_a_session_hold_in_a_container() {
    let Some((server, podman)) = start() else { return };
    let limits = Some(Limits { memory_mb: Some(64), ..Limits::default() });
    let shell = server.session_with(CreateRequest { limits, ..by("bash", &server) }).await;
    let done = shell.run("head -c 400M /dev/zero | tail").await;
    check_memory_hog(&shell, &done).await;
    assert_eq!(shell.ends().await.left, 0);
    none_is_left(&server, &podman).await;
}

#[tokio::test]
// promise: access-16
async fn other_shells_attest_in_a_container() {
    let Some((server, podman)) = start() else { return };
    // The machine's, with its libraries.
    for name in ["zsh", "fish", "dash", "mksh"] {
        if !is_program(name) {
            in_part(format!("there is no {name} on PATH"));
            continue;
        }
        let shell = CreateRequest { shell: Some(name.to_owned()), ..by("python", &server) };
        let shell = server.session_with(shell).await;
        let done = shell.run("sh -c 'exit 7'").await;
        assert_eq!((done.exit_code, done.boundary), (Some(7), Boundary::Attested), "{name}");
        assert_eq!(shell.gives("tty").await.1, "/dev/pts/0\n", "{name}");
        assert_eq!(shell.ends().await.left, 0, "{name}");
    }
    none_is_left(&server, &podman).await;
}

#[tokio::test]
// promise: access-16
async fn an_impossible_container_starts_no_weaker_session() {
    let Some((server, podman)) = start() else { return };
    let client = server.client();
    let container = Some(ConfinementTier::Container);
    let unnamed = CreateRequest { confinement: container, ..by("open", &server) };
    let of_shell = |shell: &str| CreateRequest { shell: Some(shell.to_owned()), ..by("bash", &server) };
    for (request, code, why) in [
        (by("missing", &server), ErrorCode::StartFailed, "nobody-has-this:1: image not known"),
        (by("engineless", &server), ErrorCode::StartFailed, "there is no program \"/nonexistent/podman\" here"),
        (by("broken", &server), ErrorCode::StartFailed, "no-such-runtime"),
        (by("shellless", &server), ErrorCode::StartFailed, "without-shell:1 has no shell"),
        (by("silent", &server), ErrorCode::StartFailed, "does not connect to this server"),
        (by("nobody", &server), ErrorCode::StartFailed, "nobody-of-this-name"),
        (of_shell("zsh"), ErrorCode::InvalidField, "in the image localhost/with-bash:1: no program \"zsh\""),
        (unnamed, ErrorCode::InvalidField, "names an `image`"),
        (CreateRequest { on_end: OnEnd::Keep, ..by("bash", &server) }, ErrorCode::InvalidField, "omit `keep`"),
        (
            CreateRequest { cwd: Some("/usr".to_owned()), ..by("bash", &server) },
            ErrorCode::InvalidField,
            "cannot be the",
        ),
    ] {
        match client.create(&request, None).await {
            Err(ClientError::Refused(problem)) => {
                assert_eq!(problem.code, code, "{}", problem.detail);
                assert!(problem.detail.contains(why), "{}", problem.detail);
            }
            other => panic!("{why}: not refused: {other:?}"),
        }
    }
    none_is_left(&server, &podman).await;
    assert_eq!(client.list(None).await.expect("known").total, 0);
    // A token gets what is asked for it.
    let (name, scope) = ("bot".to_owned(), TokenScope::Write);
    let token = TokenRequest {
        name,
        scope,
        expires_in: None,
        profiles: Vec::new(),
        confinement: container,
        policy: None,
        secrets: Vec::new(),
    };
    let bot = Client::tcp(server.address(), client.make_token(&token).await.expect("made").token);
    let weaker = CreateRequest { confinement: Some(ConfinementTier::Process), ..by("bash", &server) };
    assert_eq!(bot.create(&weaker, None).await.expect("started").confinement, container);
    let refused = bot.create(&by("open", &server), None).await.err().and_then(|e| e.code());
    assert_eq!(refused, Some(ErrorCode::InvalidField));
    let given = client.capabilities().await.expect("an answer").confinement;
    let shown = given.into_iter().find(|it| it.tier == ConfinementTier::Container).expect("told");
    assert_eq!((shown.available, shown.reason), (true, None));
}

#[tokio::test]
// promise: access-16, secret-3
async fn a_container_has_the_user_the_secrets_and_the_network_of_its_profile() {
    let Some((server, podman)) = start() else { return };
    fs::set_permissions(server.home().file("work"), fs::Permissions::from_mode(0o777)).expect("ours");
    server.client().set_secret("A_KEY", "0123456789abcdef".to_owned()).await.expect("set");
    let shell = server.session_with(by("app", &server)).await;
    let gives = async |command: &str| shell.gives(command).await.1;
    assert_eq!(
        gives("id -u; id -G; echo ~; tty; stat -c %u $(tty)").await,
        "1000\n1000 1001\n/home/app\n/dev/pts/0\n1000\n"
    );
    assert_eq!(
        gives("echo $A_KEY; cat $A_KEY_FILE; echo; echo $A_KEY_FILE").await,
        "****************\n****************\n/.ptyd/secrets/A_KEY\n"
    );
    assert_eq!(gives("echo ${#A_KEY}; wc -c <$A_KEY_FILE").await, "16\n16\n");
    assert_eq!(shell.run("sh -c 'exit 7'").await.boundary, Boundary::Attested);
    let asked = shell.run("head -n 1").await;
    assert_eq!(asked.ended_by, Some(EndedBy::InputWanted));
    shell.types("line").await;
    shell.gives("touch made").await;
    assert_eq!(MetadataExt::uid(&fs::metadata(server.home().file("work").join("made")).expect("made")), 1000);
    shell.ends().await;
    let devices = "wc -l </proc/net/dev";
    let off = server.session_with(by("bash", &server)).await.gives(devices).await.1;
    assert_eq!(off, "3\n", "the loopback device alone");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let connects = format!("(: </dev/tcp/127.0.0.1/{port})");
    for (profile, reaches) in [("online", true), ("bash", false)] {
        let shell = server.session_with(by(profile, &server)).await;
        assert_eq!(shell.gives(&connects).await.0 == 0, reaches, "{profile}");
        shell.ends().await;
    }
    for session in server.client().list(None).await.expect("known").terminals {
        let _ = server.client().terminate(&session.id, true, None).await;
    }
    none_is_left(&server, &podman).await;
}

#[tokio::test]
// promise: policy-8
async fn an_orphan_in_a_container_decides_at_no_page() {
    let Some((server, podman)) = start() else { return };
    fs::write(server.home().path().join("config/ptyd/policy.toml"), "[policies.asks]\n").expect("written");
    let request = TokenRequest {
        name: "bot".to_owned(),
        scope: TokenScope::Write,
        policy: Some("asks".to_owned()),
        ..TokenRequest::default()
    };
    let token = server.client().make_token(&request).await.expect("made").token;
    let its = Client::tcp(server.address(), token.clone()).create(&by("open", &server), None).await.expect("started");
    let call = json!({ "name": "execute_in_terminal", "arguments": { "session_id": its.id, "command": "touch made" } });
    let task = asks_over_mcp(&server, &token, "tools/call", call)["taskId"].as_str().expect("a task").to_owned();
    let state = asks_over_mcp(&server, &token, "tasks/get", json!({ "taskId": task }));
    let url = state["inputRequests"]["approval"]["params"]["url"].as_str().expect("a page");
    let (_, page) = url.split_once("/ask/").expect("its name");
    let shell = server.session_with(by("online", &server)).await;
    let (host, port) = (server.address(), server.address().port());
    let orphan = format!(
        "until [ -e go ]; do sleep 0.1; done; exec 3<>/dev/tcp/127.0.0.1/{port}\n\
         printf 'POST /ask/{page} HTTP/1.1\\r\\nHost: {host}\\r\\nContent-Length: 14\\r\\nConnection: close\\r\\n\\r\\ndecision=allow' >&3\n\
         head -n 1 <&3 >code; mv code answer\n"
    );
    fs::write(server.home().file("work/orphan"), orphan).expect("written");
    assert_eq!(shell.gives("(setsid bash orphan </dev/null >/dev/null 2>&1 &)").await.0, 0);
    fs::write(server.home().file("work/go"), "").expect("written");
    let answer = server.home().file("work/answer");
    let answer = eventually("it is answered", async || fs::read_to_string(&answer).ok()).await;
    assert_eq!(answer.trim(), "HTTP/1.1 401 Unauthorized");
    assert_eq!(server.client().approvals().await.expect("a list").approvals[0].state, ApprovalState::Pending);
    shell.ends().await;
    none_is_left(&server, &podman).await;
}

/// The result of a request of a client that takes tasks and sends people to pages.
fn asks_over_mcp(server: &Server, token: &str, method: &str, mut params: Value) -> Value {
    let name = params["name"].as_str().or(params["taskId"].as_str()).expect("its name").to_owned();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "raw", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {
            "extensions": { "io.modelcontextprotocol/tasks": {} }, "elicitation": { "url": {} },
        },
    });
    let bearer = format!("Bearer {token}");
    let session = params["arguments"]["session_id"].as_str().map(str::to_owned);
    let mut headers = vec![
        ("Host", "localhost"),
        ("Authorization", bearer.as_str()),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", method),
        ("Mcp-Name", name.as_str()),
    ];
    headers.extend(session.as_deref().map(|session| ("Mcp-Param-Session", session)));
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let mut connection = Connection::tcp(server.address()).expect("it listens");
    connection.send("POST", "/mcp", &headers, &request.to_string()).expect("an answer").json()["result"].clone()
}

#[tokio::test]
// promise: access-16
async fn nothing_gets_out_of_a_container() {
    if lacks(&["/usr/bin/python3", "ipcmk"]) {
        return;
    }
    let Some((server, podman)) = start() else { return };
    are_kept(&server).await;
    none_is_left(&server, &podman).await;
}

async fn are_kept(server: &Server) {
    let (home, other, shared) = (server.home().path().to_owned(), server.session().await, Shared::make());
    fs::create_dir_all(home.join(".ssh")).expect("made");
    fs::write(home.join(".ssh/id"), "id\n").expect("written");
    fs::write(home.join("open"), "open\n").expect("written");
    let shell = server.session_with(by("python", server)).await;
    let printed = attacks_of(server, &shell, &other, ConfinementTier::Container, &shared.variables()).await;
    assert_eq!(printed, "tried 76\n");
    for untouched in ["new", ".netrc", "moved"] {
        assert!(!home.join(untouched).exists(), "{untouched}");
    }
    assert!(!Path::new("/etc/confined").exists());
    shell.ends().await;
}

#[tokio::test]
// promise: access-16
async fn an_ordinary_user_has_containers() {
    let home = Home::make();
    if lacks(&NEEDED) {
        return;
    }
    // Not root's images: their files are another user's.
    let mut podman = Podman::set_up(&home, None);
    configure_profiles(&home, &podman);
    if is_root() {
        // An ordinary user's podman does all in the mount namespace of its first call.
        let without_second = "umount /sys/fs/cgroup/unified 2>/dev/null; exec \"$@\"";
        podman.behind = ["unshare", "-m", "sh", "-c", without_second, "sh"].map(str::to_owned).into();
        podman.behind.extend(run_as(USER));
    }
    let server = serve(home);
    // Before the server, it ends what an ordinary user's podman leaves.
    let podman = podman;
    if let Err(why) = make_images(server.home(), &podman) {
        return not_run(why);
    }
    let shell = server.session_with(by("bash", &server)).await;
    let done = shell.run("sh -c 'exit 7'").await;
    assert_eq!((done.exit_code, done.boundary), (Some(7), Boundary::Attested));
    assert_eq!(shell.gives("id -u; tty; echo made >made; cat made").await.1, "0\n/dev/pts/0\nmade\n");
    let made = fs::metadata(server.home().file("work").join("made")).expect("made");
    let of_home = fs::metadata(server.home().file("work")).expect("made");
    assert_eq!(MetadataExt::uid(&made), MetadataExt::uid(&of_home), "the container's root is the server's user");
    let asked = shell.run("head -n 1").await;
    assert_eq!(asked.ended_by, Some(EndedBy::InputWanted));
    shell.types("line").await;
    shell.run("(setsid sleep 4712 >/dev/null 2>&1 &)").await;
    let orphan = eventually("it runs", async || one(&server, &shell, "sleep 4712").await).await;
    assert_eq!(shell.ends().await.left, 0);
    assert!(Pid::new(orphan.pid).ends_within(PATIENCE));
    if !lacks(&["/usr/bin/python3", "ipcmk"]) {
        are_kept(&server).await;
    }
    none_is_left(&server, &podman).await;
}

#[tokio::test]
// promise: access-16
async fn the_settings_of_a_project_are_only_read_in_a_container() {
    let Some((server, podman)) = start() else { return };
    let work = server.home().file("work");
    make_settings(&work);
    let shell = server.session_with(by("bash", &server)).await;
    keeps_settings(&shell, &work).await;
    shell.ends().await;
    none_is_left(&server, &podman).await;
}

#[tokio::test]
// promise: access-16
async fn a_folder_that_is_exchanged_before_its_mount_is_not_mounted() {
    let Some((server, podman)) = start() else { return };
    let home = server.home().file("").display().to_string();
    let secret = server.home().file("secret");
    fs::create_dir_all(&secret).expect("made");
    let below = server.home().file("work/below");
    fs::create_dir_all(&below).expect("made");
    // The second one is mounted at another place, and the folder above shows the checked one at its path, where it is again.
    for (exchanged, link, writable) in
        [("work", secret.as_path(), vec!["work"]), ("work/below", Path::new("/tmp"), vec!["work", "work/below"])]
    {
        let place = format!("{home}{exchanged}");
        let script = format!(
            "[ \"$1\" = run ] || exec {0} \"$@\"\nmv -T {place} {home}aside; ln -s {1} {place}\n{0} \"$@\"; code=$?\n\
             rm {place}; mv -T {home}aside {place}; exit $code",
            podman.program.display(),
            link.display()
        );
        let engine = engine_that(&server, &podman, &script);
        let mounted: Vec<_> = writable.into_iter().map(|it| format!("{home}{it}")).collect();
        configure(server.home(), &of_engine("exchanged", &engine, &format!(", writable = {mounted:?}")));
        let (code, why) = refused(&server, &by("exchanged", &server)).await;
        assert_eq!(code, ErrorCode::StartFailed, "{why}");
        assert!(why.contains(" was replaced during the start"), "{why}");
    }
    none_is_left(&server, &podman).await;
}

#[tokio::test]
// promise: access-16
async fn a_readable_folder_cannot_be_changed_below_another_mount() {
    if !is_root() {
        not_run("only root mounts a file system");
        return;
    }
    let Some((server, podman)) = start() else { return };
    let readable = server.home().file("readable");
    let below = readable.join("below");
    fs::create_dir_all(&below).expect("made");
    let cwd = Some(readable.display().to_string());
    let of_profile = |name| CreateRequest { cwd: cwd.clone(), ..by(name, &server) };
    let places = format!(", readable = [{readable:?}], writable = [{below:?}]");
    configure(server.home(), &of_engine("both", &podman.program, &places));
    let shell = server.session_with(of_profile("both")).await;
    let touches = format!("touch {0}/new; echo $?; touch {0}/below/new; echo $?", readable.display());
    assert!(shell.gives(&touches).await.1.ends_with("1\n0\n"), "what is named as writable is");
    shell.ends().await;
    let script = format!(
        "[ \"$1\" = run ] && exec unshare -m sh -c 'mount -t tmpfs none {} && exec \"$@\"' sh {} \"$@\"",
        below.display(),
        podman.program.display()
    );
    let engine = engine_that(&server, &podman, &script);
    let places = format!(", readable = [{readable:?}], writable = [{:?}]", server.home().file("work"));
    configure(server.home(), &of_engine("below", &engine, &places));
    let (code, why) = refused(&server, &of_profile("below")).await;
    assert_eq!(code, ErrorCode::StartFailed, "{why}");
    assert!(
        why.contains(&format!("{} must be read-only, but the mount at {}", readable.display(), below.display())),
        "{why}"
    );
    none_is_left(&server, &podman).await;
}

#[tokio::test]
// promise: access-16
async fn no_container_is_started_for_a_request_that_is_refused() {
    let env = |_: &Home| vec![("PTYD_SESSIONS_MAX", "1".into()), ("PTYD_LIMITS_MAX", "openFiles=256".into())];
    let Some((server, podman)) = start_with(env) else { return };
    let ran = server.home().file("ran");
    let engine = engine_that(&server, &podman, &format!("[ \"$1\" = run ] && touch {}", ran.display()));
    let unknown = of_engine("unknown", &engine, "") + "policy = \"nobody\"\n";
    configure(server.home(), &(of_engine("bash", &engine, "") + &unknown));
    let limits = Some(Limits { open_files: Some(512), ..Limits::default() });
    let (code, why) = refused(&server, &by("unknown", &server)).await;
    assert!(code == ErrorCode::InvalidField && why.contains("no policy \"nobody\""), "{why}");
    let (code, why) = refused(&server, &CreateRequest { limits, ..by("bash", &server) }).await;
    assert!(code == ErrorCode::InvalidField && why.contains("must be 256 or less"), "{why}");
    assert!(!ran.exists());
    let shell = server.session_with(by("bash", &server)).await;
    assert!(ran.exists());
    fs::remove_file(&ran).expect("there");
    let (code, why) = refused(&server, &by("bash", &server)).await;
    assert_eq!(code, ErrorCode::LimitReached, "{why}");
    assert!(!ran.exists());
    shell.ends().await;
    none_is_left(&server, &podman).await;
}

#[tokio::test]
// promise: access-16
async fn an_engine_that_cannot_be_executed_leaves_nothing() {
    let Some((server, podman)) = start() else { return };
    let (file, broken) = (server.home().file("file"), server.home().file("broken"));
    fs::write(&file, "").expect("written");
    fs::write(&broken, "#!/nonexistent/interpreter\n").expect("written");
    fs::set_permissions(&broken, fs::Permissions::from_mode(0o755)).expect("ours");
    configure(server.home(), &(of_engine("file", &file, "") + &of_engine("broken", &broken, "")));
    for profile in ["file", "broken"] {
        let (code, why) = refused(&server, &by(profile, &server)).await;
        assert!(code == ErrorCode::StartFailed && why.contains("there is no program"), "{why}");
    }
    none_is_left(&server, &podman).await;
}

#[tokio::test]
// promise: access-16
async fn a_container_that_was_not_started_is_removed_once() {
    let Some((server, podman)) = start() else { return };
    let (calls, fails) = (server.home().file("calls"), server.home().file("fails"));
    let (shown, when) = (calls.display(), fails.display());
    let first = format!("echo $1 >>{shown}; [ -e {when} ] && {{ echo why >&2; exit 1; }}");
    let engine = engine_that(&server, &podman, &first);
    configure(server.home(), &of_engine("failing", &engine, ""));
    fs::write(&fails, "").expect("written");
    let (_, why) = refused(&server, &by("failing", &server)).await;
    assert!(why.contains("why"), "{why}");
    assert_eq!(fs::read_to_string(calls).expect("it was run"), "run\nrm\n");
    fs::remove_file(fails).expect("there");
    server.kill9();
    server.again();
    none_is_left(&server, &podman).await;
}
