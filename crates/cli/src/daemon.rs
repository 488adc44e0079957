//! A server on demand: if no server answers on the socket, one is started that outlives the command.
//!
//! Blocking and without a runtime, because the stdio shim uses it, too. The server's own lock resolves concurrent
//! starts: the losing server ends, and both commands find the winner's socket.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use client::Client;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::exit::Failure;
use crate::login;
use crate::paths::Paths;

/// How long a server may take until its socket answers.
const PATIENCE: Duration = Duration::from_secs(10);
/// The first pause after another server was faster; it doubles.
const PAUSE_FIRST: Duration = Duration::from_millis(20);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// The exit code of a server on demand that finds another one running (sysexits.h, EX_TEMPFAIL).
pub const TAKEN: u8 = 75;

/// Connects to the server, and starts one if there is none.
pub fn connect_or_start(paths: &Paths) -> io::Result<UnixStream> {
    match connect(&paths.socket) {
        Ok(stream) => Ok(stream),
        Err(e) if e.get_ref().is_some() => Err(e),
        Err(e) if is_absent(&e) => start_server(paths),
        Err(e) => Err(io::Error::new(e.kind(), format!("{}: {e}", paths.socket.display()))),
    }
}

/// A client of the server that the options mean. This machine's is started if there is none.
pub fn client(paths: &Paths) -> Result<Client, Failure> {
    if paths.url.is_none() {
        connect_or_start(paths).map_err(|error| Failure::unreached(&error))?;
    }
    login::client(paths)
}

/// Connects to the running server, if it belongs to this user or root.
fn connect(socket: &Path) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(socket)?;
    client::owner::check(&stream, socket, None)?;
    Ok(stream)
}

/// Whether this error means that no server is there (and not, for example, that the socket belongs to another user).
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

/// Starts a server and waits until it reports that it listens.
pub fn start_server(paths: &Paths) -> io::Result<UnixStream> {
    start(paths, || command(paths), PATIENCE)
}

/// Starts the server that this process was asked to be, in the background, and waits until it listens.
pub fn serve_in_background(paths: &Paths) -> Result<(), Failure> {
    match connect(&paths.socket) {
        Ok(_) => return Err(Failure::new(format!("a server already runs at {}", paths.socket.display()))),
        Err(error) if is_absent(&error) => {}
        Err(error) => return Err(Failure::unreached(&error)),
    }
    let is_ours = |word: &OsString| ["-d", "--background", "--daemon"].iter().any(|name| word == name);
    let command = || {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(std::env::args_os().skip(1).filter(|word| !is_ours(word))).arg("--detached");
        Ok(command)
    };
    start(paths, command, PATIENCE).map(drop).map_err(|error| Failure::unreached(&error))
}

fn start(paths: &Paths, command: impl Fn() -> io::Result<Command>, patience: Duration) -> io::Result<UnixStream> {
    let in_state_dir = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", paths.state_dir.display()));
    DirBuilder::new().recursive(true).mode(0o700).create(&paths.state_dir).map_err(in_state_dir)?;
    let deadline = Instant::now() + patience;
    let mut pause = PAUSE_FIRST;
    loop {
        let log = OpenOptions::new().append(true).create(true).mode(0o600).open(paths.log())?;
        let mut child = command()?.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn()?;
        let mut greeting = child.stdout.take().expect("invariant: it was asked for");
        match is_readable(&greeting, deadline) {
            Ok(true) => {}
            // A server that does not report in time would keep the lock, and block the next attempt.
            silent @ (Ok(false) | Err(_)) => {
                let _ = child.kill().and_then(|()| child.wait());
                return Err(silent.err().unwrap_or_else(|| failed(paths, "does not answer")));
            }
        }
        if greeting.read(&mut [0])? > 0 {
            // This process may live long: without the thread, a server that ends would stay a zombie.
            std::thread::spawn(move || child.wait());
            return connect(&paths.socket);
        }
        let status = child.wait()?;
        if status.code() != Some(i32::from(TAKEN)) || Instant::now() + pause > deadline {
            return Err(failed(paths, &format!("ended ({status})")));
        }
        // Another server was faster. Its socket appears soon, or it ends, and then the next attempt succeeds.
        let _ = poll(&mut [], Timespec::try_from(pause).ok().as_ref());
        pause = (pause * 2).min(PAUSE_MAX);
        if let Ok(stream) = connect(&paths.socket) {
            return Ok(stream);
        }
    }
}

/// Waits until the server has printed something, which it does once it listens, or has closed its stdout by ending.
fn is_readable(greeting: &ChildStdout, deadline: Instant) -> io::Result<bool> {
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

/// The command `ptyd serve`, detached from the terminal and, under systemd, from the user's session and scope.
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
    if let Some(config) = &paths.config {
        command.arg("--config").arg(config);
    }
    // The token is for the server at the URL, and the server to start is this machine's.
    if std::env::var_os("PTYD_URL").is_some() {
        command.env_remove("PTYD_URL").env_remove("PTYD_TOKEN");
    }
    // Not the present directory: sessions without a directory start here, and the server must not prevent an unmount.
    let home = std::env::var_os("HOME").filter(|h| Path::new(h).is_dir());
    command.current_dir(home.unwrap_or_else(|| "/".into()));
    Ok(command)
}

/// Whether this user's systemd can create scopes; logind ends processes that stay in a login's scope.
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
    use std::io::{Seek, SeekFrom};
    /// The last line of a log is within this many bytes of its end.
    const TAIL: u64 = 4_096;
    let mut file = File::open(log).ok()?;
    let len = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(TAIL))).ok()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    text.lines().rev().map(str::trim).find(|l| !l.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error for a server that is this script, and the file that the script wrote.
    fn start_script(script: &str, patience: Duration) -> (String, String) {
        let dir = tempfile::tempdir().expect("a directory");
        let paths =
            Paths { state_dir: dir.path().to_owned(), socket: dir.path().join("ptyd.sock"), config: None, url: None };
        let command = || {
            let mut command = Command::new("sh");
            command.args(["-c", script]).current_dir(dir.path());
            Ok(command)
        };
        let failed = start(&paths, command, patience).expect_err("nobody listens");
        (failed.to_string(), std::fs::read_to_string(dir.path().join("note")).unwrap_or_default())
    }

    #[test]
    fn a_server_that_does_not_answer_is_not_left_behind() {
        let longer = (0..6).map(|times| Duration::from_millis(300) * 2u32.pow(times));
        // A busy machine may not have begun the script when it is ended.
        let (failed, pid) = longer
            .map(|patience| start_script("echo $$ > note; exec sleep 1000", patience))
            .find(|(_, pid)| !pid.is_empty())
            .expect("it has begun");
        assert!(failed.contains("does not answer"), "{failed}");
        assert!(!sys::process::is_alive(pid.trim().parse().expect("it ran")));
    }

    #[test]
    fn a_client_starts_no_second_server_while_one_is_starting() {
        // Two find that another server was faster, and the third fails for itself.
        let script = "echo once >> note; [ $(wc -l < note) -lt 3 ] && exit 75; exit 7";
        let (failed, started) = start_script(script, PATIENCE);
        assert!(failed.contains("ended (exit status: 7)"), "{failed}");
        assert_eq!(started.lines().count(), 3, "{started}");
    }
}
