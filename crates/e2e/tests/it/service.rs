//! The server as a service: what its manager hears, the sockets that the manager opens, and the unit file.

use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::process::{Child, Command, ExitStatus};

use api::DrainQuery;
use client::Client;
use e2e::{Binary, Connection, Home, PATIENCE, Pid, Server, Session, Start};
use rustix::process::Signal;

/// The next message to the manager.
fn heard(manager: &UnixDatagram) -> String {
    let mut message = [0; 512];
    let length = manager.recv(&mut message).expect("a message in time");
    String::from_utf8(message[..length].to_vec()).expect("text")
}

#[tokio::test]
// promise: service-1
async fn the_manager_hears_that_the_server_is_ready_lives_and_stops() {
    let home = Home::make();
    let path = home.path().join("manager");
    let manager = UnixDatagram::bind(&path).expect("a socket");
    manager.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let env = vec![("NOTIFY_SOCKET", path.into_os_string()), ("WATCHDOG_USEC", "20000".into())];
    let server = Server::start_in(home, Start { env, ..Start::default() });
    let (url, socket) = (server.address(), server.home().socket());
    assert_eq!(heard(&manager), format!("READY=1\nSTATUS=listens on http://{url} and {}", socket.display()));
    for _ in 0..3 {
        assert_eq!(heard(&manager), "WATCHDOG=1");
    }
    // The manager's socket is for the server, not for the programs in its sessions.
    let shell = server.session().await;
    assert_eq!(shell.gives("echo ${NOTIFY_SOCKET-none} ${WATCHDOG_USEC-none}").await, (0, "none none\n".to_owned()));
    assert!(server.stop().success());
    let last = loop {
        let message = heard(&manager);
        if message != "WATCHDOG=1" {
            break message;
        }
    };
    assert_eq!(last, "STOPPING=1\nSTATUS=stopping; the sessions live on");
    // Without a manager that listens, the server serves as well.
    drop(manager);
    server.again();
    assert_eq!(shell.gives("echo on").await, (0, "on\n".to_owned()));
}

/// A server with the sockets of its manager.
struct Activated(Child);

impl Activated {
    fn start(home: &Home, unix: &UnixListener, tcp: &TcpListener) -> Self {
        // The manager's descriptors begin with 3, and it names the process that they are for.
        let start = "exec 3<&0 4<&1 </dev/null >/dev/null; export LISTEN_FDS=2 LISTEN_PID=$$; exec \"$@\"";
        let of = |fd: std::io::Result<OwnedFd>| fd.expect("a copy");
        let child = Command::new("bash")
            .args(["-c", start, "bash"])
            .arg(Binary::find().path())
            .arg("serve")
            .env_clear()
            .envs(home.environment())
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

#[test]
// promise: service-2
fn a_server_refuses_sockets_of_another_kind_and_an_open_address_without_protection() {
    let home = Home::make();
    let unix = UnixListener::bind(home.socket()).expect("a socket");
    let open = TcpListener::bind("0.0.0.0:0").expect("a port");
    let mut activated = Activated::start(&home, &unix, &open);
    assert_eq!(activated.0.wait().expect("ours").code(), Some(1));
    let mut log = String::new();
    fs::File::open(home.path().join("activated.log")).and_then(|mut f| f.read_to_string(&mut log)).expect("a log");
    assert!(log.contains("--public-url"), "{log}");
}
