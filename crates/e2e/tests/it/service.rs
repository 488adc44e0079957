//! The server as a service: what its manager hears, the sockets that the manager opens, and the unit file.

use std::ffi::OsStr;
use std::fs;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use api::DrainQuery;
use client::Client;
use e2e::{Binary, Connection, Home, PATIENCE, Pid, Server, Session, Start, lacks, not_run};
use rustix::process::Signal;

/// A manager that reads all that is said to it.
struct Manager {
    path: PathBuf,
    messages: mpsc::Receiver<String>,
}

impl Manager {
    fn listen(home: &Home) -> Self {
        let path = home.path().join("manager");
        let socket = UnixDatagram::bind(&path).expect("a socket");
        let (sender, messages) = mpsc::sync_channel(1_024);
        // The thread ends with the test's process, or with the first message that nobody wants.
        thread::spawn(move || {
            let mut message = [0; 512];
            while let Ok(length) = socket.recv(&mut message) {
                let text = String::from_utf8_lossy(&message[..length]).into_owned();
                if sender.send(text).is_err() {
                    return;
                }
            }
        });
        Self { path, messages }
    }

    fn heard(&self) -> String {
        self.messages.recv_timeout(PATIENCE).expect("a message in time")
    }
}

#[tokio::test]
// promise: service-1
async fn the_manager_hears_that_the_server_is_ready_lives_and_stops() {
    let home = Home::make();
    let manager = Manager::listen(&home);
    let env = vec![("NOTIFY_SOCKET", manager.path.clone().into_os_string()), ("WATCHDOG_USEC", "20000".into())];
    let server = Server::start_in(home, Start { env, ..Start::default() });
    let (url, socket) = (server.address(), server.home().socket());
    assert_eq!(manager.heard(), format!("READY=1\nSTATUS=listens on http://{url} and {}", socket.display()));
    for _ in 0..3 {
        assert_eq!(manager.heard(), "WATCHDOG=1");
    }
    // The manager's socket is for the server, not for the programs in its sessions.
    let shell = server.session().await;
    assert_eq!(shell.gives("echo ${NOTIFY_SOCKET-none} ${WATCHDOG_USEC-none}").await, (0, "none none\n".to_owned()));
    assert!(server.stop().success());
    let last = loop {
        let message = manager.heard();
        if message != "WATCHDOG=1" {
            break message;
        }
    };
    assert_eq!(last, "STOPPING=1\nSTATUS=stopping; the sessions keep running");
    // A manager that reads nothing does not hinder the server: its queue is full after some messages.
    drop(manager);
    fs::remove_file(server.home().path().join("manager")).expect("there");
    let deaf = UnixDatagram::bind(server.home().path().join("manager")).expect("a socket");
    let sender = UnixDatagram::unbound().expect("a socket");
    sender.set_nonblocking(true).expect("a socket");
    while sender.send_to(b"full", server.home().path().join("manager")).is_ok() {}
    server.again();
    assert_eq!(shell.gives("echo on").await, (0, "on\n".to_owned()));
    assert!(server.stop().success(), "it stops in time");
    // Without a manager that listens, the server serves as well.
    drop(deaf);
    server.again();
    assert_eq!(shell.gives("echo again").await, (0, "again\n".to_owned()));
}

/// A server with the sockets of its manager.
struct Activated(Child);

impl Activated {
    fn start(home: &Home, unix: &UnixListener, tcp: &TcpListener) -> Self {
        let ptyd = Binary::find().path().display().to_string();
        Self::of(home, unix, tcp, &[&ptyd, "serve"], &[])
    }

    /// The same for this command, with these variables.
    fn of(home: &Home, unix: &UnixListener, tcp: &TcpListener, command: &[&str], env: &[(&str, &OsStr)]) -> Self {
        // The manager's descriptors begin with 3, and it names the process that they are for.
        let start = "exec 3<&0 4<&1 </dev/null >/dev/null; export LISTEN_FDS=2 LISTEN_PID=$$; exec \"$@\"";
        let of = |fd: std::io::Result<OwnedFd>| fd.expect("a copy");
        let child = Command::new("bash")
            .args(["-c", start, "bash"])
            .args(command)
            .env_clear()
            .envs(home.environment())
            .envs(env.iter().copied())
            .current_dir(home.file(""))
            .stdin(of(unix.try_clone().map(OwnedFd::from)))
            .stdout(of(tcp.try_clone().map(OwnedFd::from)))
            .stderr(fs::File::create(home.path().join("activated.log")).expect("a log"))
            .spawn();
        Self(child.expect("bash can be executed"))
    }

    fn stop(mut self) -> ExitStatus {
        Pid::new(self.0.id()).signal(Signal::TERM);
        self.0.wait().expect("ours to wait for")
    }
}

impl Drop for Activated {
    fn drop(&mut self) {
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

#[tokio::test]
// promise: service-2
async fn a_server_listens_on_the_sockets_of_its_manager_and_none_of_their_clients_is_refused() {
    let home = Home::make();
    let unix = UnixListener::bind(home.socket()).expect("a socket");
    let tcp = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = tcp.local_addr().expect("an address");
    let client = std::sync::Arc::new(Client::unix(home.socket()));
    // The manager holds the connection until the server is there.
    let mut early = Connection::tcp(address).expect("the manager listens");
    let first = Activated::start(&home, &unix, &tcp);
    assert_eq!(early.ask("GET", "/livez", "").expect("an answer").status, 200);
    assert_eq!(fs::read_to_string(home.state().join("listen")).expect("written"), format!("{address}\n"));
    // Clients know the state directory only.
    assert_eq!(
        fs::canonicalize(home.state().join("ptyd.sock")).expect("a link"),
        fs::canonicalize(home.socket()).expect("it is there")
    );
    let session = client.create(&Default::default(), None).await.expect("it takes sessions");
    let shell = Session::new(std::sync::Arc::clone(&client), session.id);
    assert_eq!(shell.gives("x=kept; echo ${LISTEN_FDS-none}").await, (0, "none\n".to_owned()));
    assert!(first.stop().success());
    // Nobody but the manager listens now, and the next server answers.
    let mut late = Connection::tcp(address).expect("the manager listens");
    let waits = tokio::spawn(async move { shell.gives("echo $x").await });
    let second = Activated::start(&home, &unix, &tcp);
    assert_eq!(late.ask("GET", "/livez", "").expect("an answer").status, 200);
    assert_eq!(waits.await.expect("no panic"), (0, "kept\n".to_owned()));
    assert_eq!(client.drain(&DrainQuery::default()).await.expect("an answer").sessions, 1);
    assert!(second.stop().success());
    // The rig's own server ends the session, and looks for what is left.
    assert!(fs::symlink_metadata(home.socket()).is_ok(), "the file is the manager's");
    drop((unix, tcp));
    Server::start_in(home, Start::default());
}

/// Runs `ptyd service` with these arguments; its exit code, and what it prints to stderr.
fn service(home: &Home, behind: &[&str], args: &[&str]) -> (Option<i32>, String) {
    let ptyd = Binary::find();
    let mut words = behind.iter().map(OsStr::new).chain([ptyd.path().as_os_str(), OsStr::new("service")]);
    let mut command = Command::new(words.next().expect("a program"));
    command.args(words).args(args).env_clear().envs(home.environment()).env("PATH", path(home));
    let output = command.current_dir(home.file("")).stdin(Stdio::null()).output().expect("it can be executed");
    (output.status.code(), String::from_utf8(output.stderr).expect("text"))
}

/// The home's own programs come first.
fn path(home: &Home) -> String {
    format!("{}:{}", home.file("bin").display(), std::env::var("PATH").expect("there is one"))
}

/// Everything in the home's folder of configurations.
fn configuration(home: &Home) -> Vec<PathBuf> {
    let mut found = vec![home.path().join("config")];
    let mut next = 0;
    while let Some(folder) = found.get(next) {
        let inner = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let inner: Vec<_> = inner.collect();
        found.extend(inner);
        next += 1;
    }
    found.sort();
    found
}

#[tokio::test]
// promise: service-3
async fn the_units_are_right_for_systemd_start_a_server_and_go_without_a_trace() {
    if lacks(&["systemctl", "systemd-analyze"]) {
        return;
    }
    let home = Home::make();
    let before = configuration(&home);
    let (code, said) = service(&home, &[], &["install", "--user"]);
    assert_eq!(code, Some(0), "{said}");
    let units = home.path().join("config/systemd/user");
    let [unit, socket] = ["ptyd.service", "ptyd.socket"].map(|name| units.join(name));
    let mut verify = Command::new("systemd-analyze");
    verify.args(["--user", "--recursive-errors=yes", "verify"]).args([&unit, &socket]);
    verify.env("XDG_RUNTIME_DIR", home.path().join("run")).env("HOME", home.path());
    let verified = verify.output().expect("it can be executed");
    assert!(verified.status.success() && verified.stderr.is_empty(), "{}", String::from_utf8_lossy(&verified.stderr));

    // The test takes the part of systemd: it opens the socket, runs the command, and hears the answer.
    let value = |file: &Path, name: &str| {
        let text = fs::read_to_string(file).expect("written");
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('=')).map(str::to_owned).expect("a line")
    };
    assert_eq!(value(&socket, "ListenStream"), home.socket().display().to_string());
    let (listens, tcp) =
        (UnixListener::bind(home.socket()).expect("a socket"), TcpListener::bind("127.0.0.1:0").expect("a port"));
    let manager = Manager::listen(&home);
    let line = value(&unit, "ExecStart");
    let words: Vec<&str> = line.split(' ').collect();
    let server = Activated::of(&home, &listens, &tcp, &words, &[("NOTIFY_SOCKET", manager.path.as_os_str())]);
    assert!(manager.heard().starts_with("READY=1\n"));
    assert!(Client::unix(home.socket()).is_ready().await);
    assert!(server.stop().success());

    // As `systemctl enable` links them.
    for (unit, target) in [("ptyd.service", "default.target.wants"), ("ptyd.socket", "sockets.target.wants")] {
        fs::create_dir(units.join(target)).expect("made");
        std::os::unix::fs::symlink(units.join(unit), units.join(target).join(unit)).expect("linked");
    }
    let (code, said) = service(&home, &[], &["uninstall", "--user"]);
    assert_eq!((code, configuration(&home)), (Some(0), before), "{said}");
    let (code, said) = service(&home, &[], &["uninstall", "--user"]);
    assert!(code == Some(1) && said.contains("no unit of ptyd is installed"), "{said}");
}

#[tokio::test]
// promise: service-3
async fn a_unit_that_a_person_wrote_is_neither_replaced_nor_removed() {
    let home = Home::make();
    let units = home.path().join("config/systemd/user");
    fs::create_dir_all(&units).expect("made");
    fs::create_dir_all(home.file("bin")).expect("made");
    fake_systemctl(&home);
    fs::write(units.join("ptyd.service"), "[Service]\nExecStart=/mine\n").expect("written");
    for what in ["install", "uninstall"] {
        let (code, said) = service(&home, &[], &[what, "--user"]);
        assert!(code == Some(1) && said.contains("ptyd has not written this file"), "{said}");
    }
    assert_eq!(fs::read_to_string(units.join("ptyd.service")).expect("kept"), "[Service]\nExecStart=/mine\n");
    assert!(!units.join("ptyd.socket").exists());
}

/// A program that writes down how it was called, in the place of systemd's.
fn fake_systemctl(home: &Home) {
    let program = home.file("bin/systemctl");
    let text = "#!/bin/sh\n[ \"$1\" = --version ] && { echo 'systemd 255 (255.4-1)'; exit; }\necho \"$@\" >> called\n";
    fs::create_dir_all(home.file("bin")).expect("made");
    fs::write(&program, text).expect("written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("ours");
}

#[tokio::test]
// promise: service-3
async fn install_has_systemd_take_the_place_of_a_running_server_and_uninstall_ends_that() {
    // A machine whose process 1 is systemd, as far as a program can see.
    let behind = [
        "unshare",
        "--mount",
        "sh",
        "-c",
        "mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system && exec \"$@\"",
        "sh",
    ];
    if lacks(&["unshare"])
        || !Command::new(behind[0]).args(&behind[1..]).arg("true").status().is_ok_and(|s| s.success())
    {
        return not_run("only root makes a namespace of mounts here, and sees the processes outside");
    }
    let server = Server::start();
    let (home, shell) = (server.home(), server.session().await);
    fake_systemctl(home);
    let called = || fs::read_to_string(home.file("called")).unwrap_or_default();
    let (code, said) = service(home, &behind, &["install", "--user"]);
    assert_eq!(code, Some(0), "{said}");
    let expected = "--user daemon-reload\n--user enable ptyd.service ptyd.socket\n--user start ptyd.socket\n--user start ptyd.service\n";
    assert_eq!(called(), expected);
    assert!(server.pid().ends_within(Duration::ZERO), "install has ended it");
    assert!(server.stop().success());
    let unit = fs::read_to_string(home.path().join("config/systemd/user/ptyd.service")).expect("written");
    assert!(unit.contains("\nDelegateSubgroup=ptyd-server\n"), "{unit}");
    fs::remove_file(home.file("called")).expect("there");
    let (code, said) = service(home, &behind, &["uninstall", "--user"]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(called(), "--user disable --now ptyd.socket ptyd.service\n--user daemon-reload\n");
    server.again();
    assert_eq!(shell.gives("echo on").await, (0, "on\n".to_owned()));
}

#[tokio::test]
// promise: service-2
async fn a_server_removes_no_socket_that_another_has_put_in_the_place_of_its_own() {
    let server = Server::start();
    fs::remove_file(server.home().socket()).expect("there");
    let other = UnixListener::bind(server.home().socket()).expect("a socket");
    assert!(server.stop().success());
    assert!(fs::symlink_metadata(server.home().socket()).is_ok(), "the other one's");
    drop(other);
    server.again();
    assert!(server.client().is_ready().await);
    assert!(server.stop().success());
    assert!(fs::symlink_metadata(server.home().socket()).is_err(), "its own");
}

#[test]
// promise: service-2
fn a_server_refuses_sockets_of_another_kind_and_an_open_address_without_protection() {
    let home = Home::make();
    let unix = UnixListener::bind(home.socket()).expect("a socket");
    let open = TcpListener::bind("0.0.0.0:0").expect("a port");
    let mut activated = Activated::start(&home, &unix, &open);
    assert_eq!(activated.0.wait().expect("ours").code(), Some(1));
    let log = fs::read_to_string(home.path().join("activated.log")).expect("a log");
    assert!(log.contains("--public-url"), "{log}");
}
