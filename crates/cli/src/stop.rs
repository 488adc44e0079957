//! `stop`: stops the server of the state directory, and waits until its process has ended.

use std::fs::{self, DirEntry};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use api::DrainQuery;
use clap::Args;
use client::{Client, ClientError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::completion;
use crate::exit::Failure;
use crate::kill::counted;
use crate::paths::Paths;
use crate::print;

/// A server ends within two seconds; a machine may be slow.
const PATIENCE: Duration = Duration::from_secs(30);

const AFTER_HELP: &str = "Every session keeps running, and the next server takes it over. A running ptyd mcp starts \
 the next server at once. To end all sessions, first run ptyd kill --all.";

/// The options of `stop`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct StopOptions {
    // A person may mean a session, which `kill` ends.
    #[arg(hide = true)]
    #[arg(add = completion::sessions())]
    session: Option<String>,
}

/// Stops the server.
pub async fn stop(paths: &Paths, options: &StopOptions) -> Result<ExitCode, Failure> {
    if let Some(session) = &options.session {
        return Err(Failure::usage(format!("stop stops the server; `ptyd kill {session}` ends a session")));
    }
    let client = Client::unix(&paths.socket);
    let sessions = client.drain(&DrainQuery::default()).await.map(|drain| drain.sessions);
    let Some(pid) = end_server(&paths.state_dir)? else {
        return Err(match sessions {
            Err(error @ ClientError::NoServer(_)) => Failure::no_server(error),
            Err(error) => error.into(),
            Ok(_) => Failure::new(
                "the server answers, but its process cannot be seen from here; stop it in its container, or as its user",
            ),
        });
    };
    let left = match sessions {
        Ok(0) => "no session was running".to_owned(),
        Ok(count) => format!("{} running", counted(count, "session keeps", "sessions keep")),
        Err(_) => "its sessions keep running".to_owned(),
    };
    print::note(format_args!("the server (pid {pid}) has stopped; {left}"));
    Ok(ExitCode::SUCCESS)
}

/// Ends the server of this directory, and waits for that; its pid, if there is one.
pub fn end_server(state_dir: &Path) -> Result<Option<i32>, Failure> {
    let Some((pid, process)) = server(state_dir)? else { return Ok(None) };
    pidfd_send_signal(&process, Signal::TERM).map_err(io::Error::from)?;
    if !ends(&process)? {
        return Err(Failure::new(format!("process {pid} has not ended {} s after TERM", PATIENCE.as_secs())));
    }
    Ok(Some(pid))
}

/// The server of this directory: the process that the lock names and that has the lock's file open. A pid alone could be
/// another process's by now, or be from another container.
fn server(state_dir: &Path) -> io::Result<Option<(i32, OwnedFd)>> {
    let lock = state_dir.join("lock");
    let Ok(named) = fs::read_to_string(&lock) else { return Ok(None) };
    let Some(pid) = named.trim().parse().ok().filter(|pid| *pid > 0).and_then(Pid::from_raw) else { return Ok(None) };
    let process = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(process) => process,
        Err(rustix::io::Errno::SRCH) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let file = fs::metadata(&lock)?;
    let is_lock =
        |open: DirEntry| fs::metadata(open.path()).is_ok_and(|it| (it.dev(), it.ino()) == (file.dev(), file.ino()));
    let has_lock = fs::read_dir(format!("/proc/{}/fd", pid.as_raw_pid())).is_ok_and(|all| all.flatten().any(is_lock));
    Ok(has_lock.then_some((pid.as_raw_pid(), process)))
}

/// Whether the process ends in time; its pidfd becomes readable then (pidfd_open(2)).
fn ends(process: &OwnedFd) -> io::Result<bool> {
    let until = std::time::Instant::now() + PATIENCE;
    loop {
        let left = until.saturating_duration_since(std::time::Instant::now());
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&left)) {
            Ok(ready) => return Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    // promise: drain-3
    fn a_process_that_only_has_the_pid_of_a_server_is_not_one() {
        let dir = tempfile::tempdir().expect("a directory");
        assert!(server(dir.path()).expect("no lock").is_none());
        let lock = dir.path().join("lock");
        fs::write(&lock, format!("{}\n", std::process::id())).expect("written");
        assert!(server(dir.path()).expect("a stale pid").is_none());
        let _held = fs::File::open(&lock).expect("open");
        let found = server(dir.path()).expect("this process").map(|(pid, _)| pid.unsigned_abs());
        assert_eq!(found, Some(std::process::id()));
    }
}
