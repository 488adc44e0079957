//! A real server in a home of its own: started, killed, stopped, replaced, and cleaned up after.
//!
//! When it goes out of scope it ends every session, stops the server and looks for what is left; anything is a failure.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::CreateRequest;
use client::Client;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;

use crate::not_run::{is_program, not_run};
use crate::processes::{groups, marked};
use crate::{Binary, Connection, Home, PATIENCE, Pid, Session, copy_program};

/// The settings of a server's start.
#[derive(Debug, Clone, Default)]
pub struct Start {
    /// A program and its arguments that come before ptyd's, such as one that makes a namespace and executes it.
    pub behind: Vec<OsString>,
    /// Variables besides the home's.
    pub env: Vec<(&'static str, OsString)>,
    /// The home's socket, if the test opens it as a service manager would: clients wait there while no server runs.
    pub socket: Option<Arc<UnixListener>>,
}

impl Start {
    /// A server that gets this home's socket from its manager.
    pub fn activated(home: &Home) -> Self {
        let socket = UnixListener::bind(home.socket()).expect("a socket");
        // A manager passes its sockets from descriptor 3 on, and names the process that they are for.
        let pass = "exec 3<&0 </dev/null; export LISTEN_FDS=1 LISTEN_PID=$$; exec \"$@\"";
        let behind = ["bash", "-c", pass, "bash"].map(OsString::from).to_vec();
        Self { behind, socket: Some(Arc::new(socket)), ..Self::default() }
    }
}

/// A server, and everything that it may leave behind.
#[derive(Debug)]
pub struct Server {
    home: Home,
    start: Start,
    client: Arc<Client>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    binary: Binary,
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    child: Child,
    stdout: Option<BufReader<ChildStdout>>,
    /// Its output when it was ready.
    greeting: Vec<String>,
}

/// Reads a server's output until it listens; `try it:` is the last line.
const LAST_LINE: &str = "try it: ";

impl Server {
    /// A server in a fresh home.
    pub fn start() -> Self {
        Self::start_as(Start::default())
    }

    /// The same in a special way.
    pub fn start_as(start: Start) -> Self {
        Self::start_in(Home::make(), start)
    }

    /// The same in a home that was prepared.
    pub fn start_in(home: Home, start: Start) -> Self {
        Self::start_with(Binary::find(), home, start)
    }

    /// The same with another binary.
    pub fn start_with(binary: Binary, home: Home, start: Start) -> Self {
        // The home belongs to the user that runs the server.
        let owner = fs::metadata(home.path()).expect("it is there").uid();
        let client = Arc::new(Client::unix_of(home.socket(), owner));
        let server = Self { home, start, client, state: Mutex::new(State { binary, running: None }) };
        server.launch();
        server.is_ready();
        server
    }

    /// Its home.
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// A client over its Unix socket; it stays valid when the server is replaced.
    pub fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// Its process.
    pub fn pid(&self) -> Pid {
        Pid::new(self.running(|running| running.child.id()))
    }

    /// The lines that it printed once it listened.
    pub fn greeting(&self) -> Vec<String> {
        self.running(|running| running.greeting.clone())
    }

    /// Its loopback address.
    pub fn address(&self) -> SocketAddr {
        let first = self.greeting().remove(0);
        let address = first.split_once("http://").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
        address.unwrap_or_else(|| panic!("no address in the greeting: {first}"))
    }

    /// Its bearer token.
    pub fn token(&self) -> String {
        fs::read_to_string(self.home.state().join("token")).expect("made at the first start")
    }

    /// A raw connection over the Unix socket.
    pub fn connect(&self) -> Connection {
        Connection::unix(&self.home.socket()).expect("it listens")
    }

    /// A bare connection to the Unix socket, for bytes as they are on the wire.
    pub fn wire(&self) -> std::os::unix::net::UnixStream {
        std::os::unix::net::UnixStream::connect(self.home.socket()).expect("it listens")
    }

    /// A session with everything at its default.
    pub async fn session(&self) -> Session {
        self.session_with(CreateRequest::default()).await
    }

    /// A session.
    pub async fn session_with(&self, request: CreateRequest) -> Session {
        let session = match self.client.create(&request, None).await {
            Ok(session) => session,
            Err(error) => {
                // A test whose shell this machine lacks is distinguished from a failing one.
                let shell = request.shell.as_deref().filter(|shell| !shell.contains('/') && !is_program(shell));
                shell.into_iter().for_each(|shell| not_run(format!("there is no {shell} on PATH")));
                panic!("a session: {error}")
            }
        };
        Session::new(Arc::clone(&self.client), session.id)
    }

    /// A command of ptyd's own, in this home.
    pub fn ptyd(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.state().binary.path());
        command.args(args).env_clear().envs(self.home.environment()).current_dir(self.home.file(""));
        command
    }

    /// Starts the process and does not wait until it listens.
    pub fn launch(&self) {
        let mut state = self.state();
        assert!(state.running.is_none(), "it runs");
        let ptyd = state.binary.path().as_os_str().to_owned();
        let words: Vec<OsString> = self.start.behind.iter().cloned().chain([ptyd, "serve".into()]).collect();
        let log = File::options().append(true).create(true).open(self.log()).expect("a log");
        let mut child = Command::new(&words[0])
            .args(&words[1..])
            .env_clear()
            .envs(self.home.environment())
            .envs(self.start.env.iter().map(|(name, value)| (*name, value)))
            .current_dir(self.home.file(""))
            .stdin(
                self.start
                    .socket
                    .as_ref()
                    .map_or_else(Stdio::null, |socket| OwnedFd::from(socket.try_clone().expect("a copy")).into()),
            )
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("the binary can be executed");
        let stdout = child.stdout.take().map(BufReader::new);
        state.running = Some(Running { child, stdout, greeting: Vec::new() });
    }

    /// Waits until it listens.
    pub fn is_ready(&self) {
        let mut state = self.state();
        let running = state.running.as_mut().expect("it was launched");
        let Some(mut stdout) = running.stdout.take() else { return };
        while running.greeting.last().is_none_or(|line| !line.starts_with(LAST_LINE)) {
            let mut line = String::new();
            let has_more = stdout.buffer().contains(&b'\n') || is_readable(stdout.get_ref(), PATIENCE);
            assert!(has_more, "it does not listen after {PATIENCE:?}");
            let read = stdout.read_line(&mut line).expect("a pipe can be read");
            if read == 0 {
                let log = fs::read_to_string(self.log()).unwrap_or_default();
                panic!("it ended before it listened: {log}");
            }
            running.greeting.push(line.trim_end().to_owned());
        }
    }

    /// `kill -9`, and its end.
    pub fn kill9(&self) {
        let mut running = self.state().running.take().expect("it runs");
        running.child.kill().expect("ours to kill");
        running.child.wait().expect("ours to wait for");
    }

    /// Whether it was killed or stopped, and not started again.
    pub fn is_down(&self) -> bool {
        self.state().running.is_none()
    }

    /// The same after a time in which it must not end by itself.
    pub fn kill9_after(&self, time: Duration) {
        assert!(!self.pid().ends_within(time), "it ended by itself");
        self.kill9();
    }

    /// Asks it to stop (TERM), and waits for its end.
    pub fn stop(&self) -> ExitStatus {
        let mut running = self.state().running.take().expect("it runs");
        let pid = Pid::new(running.child.id());
        pid.signal(Signal::TERM);
        if !pid.ends_within(PATIENCE) {
            pid.kill();
        }
        running.child.wait().expect("ours to wait for")
    }

    /// Starts it again.
    pub fn again(&self) {
        self.launch();
        self.is_ready();
    }

    /// Stops it and starts a copy of the binary, as an upgrade does.
    pub fn upgrade(&self) {
        let copy = self.home.file("ptyd-new");
        copy_program(self.state().binary.path(), &copy);
        assert!(self.stop().success(), "it stops cleanly");
        self.again_as(Binary::at(copy));
    }

    /// Starts another binary in its place.
    pub fn again_as(&self, binary: Binary) {
        self.state().binary = binary;
        self.again();
    }

    /// Its log.
    pub fn logged(&self) -> String {
        fs::read_to_string(self.log()).unwrap_or_default()
    }

    fn log(&self) -> std::path::PathBuf {
        self.home.path().join("server.log")
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn running<T>(&self, look: impl FnOnce(&Running) -> T) -> T {
        look(self.state().running.as_ref().expect("it runs"))
    }

    /// Ends every session over the server, as a user would.
    fn end_sessions(&self) -> std::io::Result<()> {
        let mut connection = Connection::unix(&self.home.socket())?;
        let list = connection.ask("GET", "/terminals?limit=1000", "")?.json();
        for session in list["terminals"].as_array().into_iter().flatten() {
            let id = session["id"].as_str().unwrap_or_default();
            connection.ask("DELETE", &format!("/terminals/{id}?force=true"), "")?;
        }
        Ok(())
    }

    /// Ends everything and says what resisted.
    fn clean_up(&self) -> Vec<String> {
        let mut trouble = Vec::new();
        if self.state().running.is_none() && !marked(self.home.path()).is_empty() {
            self.again();
        }
        if self.state().running.is_some() {
            self.end_sessions().unwrap_or_else(|error| trouble.push(format!("sessions could not be ended: {error}")));
            let status = self.stop();
            if !status.success() {
                trouble.push(format!("the server did not stop cleanly: {status}"));
            }
        }
        // Processes may still be exiting after their signal.
        for pid in marked(self.home.path()) {
            let what = pid.command_line();
            if !pid.ends_within(PATIENCE) {
                trouble.push(format!("left behind: {} {what}", pid.number()));
            }
        }
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let here = self.home.path().display().to_string();
        trouble.extend(mounts.lines().filter(|line| line.contains(&here)).map(|line| format!("mounted: {line}")));
        trouble
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- the server's log\n{}", self.logged());
            if let Some(mut running) = self.state().running.take() {
                let _ = running.child.kill().and_then(|()| running.child.wait());
            }
            let left = marked(self.home.path());
            left.iter().for_each(|pid| pid.kill());
            // A group can be removed once no process is in it.
            left.into_iter().filter(|pid| !pid.ends_within(PATIENCE)).for_each(Pid::kill);
            let sessions = fs::read_dir(self.home.path().join("state/ptyd/sessions")).into_iter().flatten().flatten();
            let left = sessions.flat_map(|entry| groups(&entry.file_name().to_string_lossy()));
            left.for_each(|group| drop(fs::remove_dir(group)));
            return;
        }
        let trouble = self.clean_up();
        marked(self.home.path()).into_iter().for_each(Pid::kill);
        assert!(trouble.is_empty(), "{}\n--- the server's log\n{}", trouble.join("\n"), self.logged());
    }
}

/// Whether there is something to read, or an end, within this time.
pub(crate) fn is_readable(fd: impl AsFd, longest: Duration) -> bool {
    let longest = Timespec::try_from(longest).expect("a short time");
    poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&longest)).is_ok_and(|ready| ready > 0)
}
