//! A server on demand: when nobody answers on the socket, one is started that outlives whoever asked for it.
//!
//! Blocking and without a runtime, because the stdio shim uses it too. Two that start one at the same moment are
//! sorted out by the server's own lock: the loser's server ends, and both find the winner's socket.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::paths::Paths;

/// How long a server may take until its socket answers.
const PATIENCE: Duration = Duration::from_secs(10);
/// How a server on demand ends that finds another one in its place (sysexits.h, EX_TEMPFAIL).
pub const TAKEN: u8 = 75;

/// A connection to the server, which is started if there is none.
pub fn connect_or_start(paths: &Paths) -> io::Result<UnixStream> {
    match UnixStream::connect(&paths.socket) {
        Ok(stream) => Ok(stream),
        Err(e) if is_absent(&e) => start_server(paths),
        Err(e) => Err(e),
    }
}

/// Whether this error means that no server is there (and not, say, that the socket is somebody else's).
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

/// Starts a server and waits until it says that it listens.
pub fn start_server(paths: &Paths) -> io::Result<UnixStream> {
    let in_state_dir = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", paths.state_dir.display()));
    DirBuilder::new().recursive(true).mode(0o700).create(&paths.state_dir).map_err(in_state_dir)?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let log = OpenOptions::new().append(true).create(true).mode(0o600).open(paths.log())?;
        let mut child = command(paths)?.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn()?;
        let greeting = child.stdout.take().expect("invariant: it was asked for");
        if !is_greeted(&greeting, deadline)? {
            return Err(failed(paths, "does not answer"));
        }
        if let Ok(stream) = UnixStream::connect(&paths.socket) {
            // Whoever started it may live long: without this thread a server that ends would stay as a zombie.
            std::thread::spawn(move || child.wait());
            return Ok(stream);
        }
        let status = child.wait()?;
        // Another one was a moment faster and is not there yet: the next attempt finds it, or takes its place.
        if status.code() != Some(i32::from(TAKEN)) || Instant::now() > deadline {
            return Err(failed(paths, &format!("ended ({status})")));
        }
    }
}

/// Waits until the server has printed something, which it does once it listens, or has closed its stdout by ending.
fn is_greeted(greeting: &ChildStdout, deadline: Instant) -> io::Result<bool> {
    let left = deadline.saturating_duration_since(Instant::now());
    let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
    let mut fds = [PollFd::new(greeting, PollFlags::IN)];
    loop {
        match poll(&mut fds, Some(&timeout)) {
            Ok(ready) => return Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn failed(paths: &Paths, how: &str) -> io::Error {
    let log = paths.log();
    let last = last_line(&log).map(|line| format!(": {line}")).unwrap_or_default();
    io::Error::other(format!("the server was started and {how}{last}; its log is {}", log.display()))
}

/// `ptyd serve`, apart from the terminal and, under systemd, from the session and scope of whoever asked.
fn command(paths: &Paths) -> io::Result<Command> {
    let program = std::env::current_exe()?;
    let mut command = if has_scopes() {
        let mut systemd = Command::new("systemd-run");
        systemd.args(["--user", "--scope", "--quiet", "--collect", "--"]).arg(program);
        systemd
    } else {
        Command::new(program)
    };
    command.args(["serve", "--detached"]);
    command.arg("--state-dir").arg(&paths.state_dir).arg("--socket").arg(&paths.socket);
    // Not where it happened to be asked for: sessions that name no directory start here, and it must not be in the
    // way of an unmount.
    let home = std::env::var_os("HOME").filter(|h| Path::new(h).is_dir());
    command.current_dir(home.unwrap_or_else(|| "/".into()));
    Ok(command)
}

/// Whether this user's systemd gives scopes of their own; logind ends what stays in a login's scope.
fn has_scopes() -> bool {
    Path::new("/run/systemd/system").exists()
        && Command::new("systemd-run")
            .args(["--user", "--scope", "--quiet", "--collect", "--", "true"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
}

fn last_line(log: &Path) -> Option<String> {
    use std::io::{Read, Seek, SeekFrom};
    /// The end of a log in which a last line surely is.
    const TAIL: u64 = 4_096;
    let mut file = File::open(log).ok()?;
    let len = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(TAIL))).ok()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    text.lines().rev().map(str::trim).find(|l| !l.is_empty()).map(str::to_owned)
}
