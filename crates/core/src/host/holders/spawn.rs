//! The holder's program, and the process of a holder.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::{Child, Command};

use super::super::holder_program::holder;
use super::super::port::Identity;
use super::connection::HolderConnection;
use super::liveness;

/// The file for it where the kernel does not execute a memfd.
const HOLDER_FILE: &str = "ptyd-holder";

/// The holder's program as an executable path.
#[derive(Debug)]
pub(crate) struct HolderBinary {
    pub(crate) path: PathBuf,
    /// Whether splice(2) carries a terminal's output into the sessions' folder, as the holder itself has tried.
    pub(crate) may_splice: bool,
    /// Keeps the memory file alive.
    _file: Option<std::fs::File>,
}

/// Whether splice(2) carries a terminal's output into a file of this folder, for `ptyd doctor`.
#[must_use]
pub fn splice_works(folder: &Path) -> bool {
    HolderBinary::in_memory(folder).is_ok_and(|binary| binary.may_splice)
}

/// Runs the holder's self-test in this folder; an error means that it cannot be executed.
fn self_test(program: &Path, folder: &Path) -> io::Result<bool> {
    let mut holder = std::process::Command::new(program);
    let holder = holder.arg(wire::SELF_TEST).arg(folder).stdin(Stdio::null()).stderr(Stdio::null());
    match holder.status()?.code() {
        Some(wire::SPLICE_WORKS) => Ok(true),
        Some(wire::SPLICE_FAILS) => Ok(false),
        _ => Err(io::Error::other("the holder does not start")),
    }
}

impl HolderBinary {
    /// A memfd, so that replacing or deleting ptyd's own file never affects a running holder; a file in the state directory
    /// where memfds may not be executed (sysctl vm.memfd_noexec).
    pub(crate) fn prepare(state_dir: &Path, sessions: &Path) -> io::Result<Self> {
        Self::in_memory(sessions).or_else(|_| Self::in_folder(state_dir, sessions))
    }

    fn in_memory(sessions: &Path) -> io::Result<Self> {
        use std::io::Write;
        let fd = rustix::fs::memfd_create("ptyd-holder", rustix::fs::MemfdFlags::CLOEXEC)?;
        let mut file = std::fs::File::from(fd);
        file.write_all(&holder())?;
        // Opened again for reading: a file that is open for writing cannot be executed (execve(2), ETXTBSY).
        let writable = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let readable = std::fs::File::open(&writable)?;
        drop(file);
        let path = PathBuf::from(format!("/proc/self/fd/{}", readable.as_raw_fd()));
        let may_splice = self_test(&path, sessions)?;
        Ok(Self { path, may_splice, _file: Some(readable) })
    }

    fn in_folder(state_dir: &Path, sessions: &Path) -> io::Result<Self> {
        use std::io::Write;
        let path = state_dir.join(HOLDER_FILE);
        let draft = state_dir.join(format!(".{HOLDER_FILE}-{}", std::process::id()));
        let mut file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o700).open(&draft)?;
        file.write_all(&holder())?;
        drop(file);
        std::fs::rename(&draft, &path)?;
        let may_splice = self_test(&path, sessions)?;
        Ok(Self { path, may_splice, _file: None })
    }
}

/// A holder that was just started, and its process.
#[derive(Debug)]
pub(crate) struct StartedHolder {
    /// The holder's first connection.
    pub(crate) connection: HolderConnection,
    pub(crate) process: HolderProcess,
}

/// The process of a holder that this server started.
#[derive(Debug)]
pub(crate) struct HolderProcess(Child);

impl HolderProcess {
    pub(crate) fn identity(&self) -> Option<Identity> {
        self.0.id().and_then(liveness::identity)
    }

    /// Whether it runs.
    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }

    /// Kills it, and waits for its end.
    pub(crate) async fn kill(mut self) {
        let _ = self.0.kill().await;
    }

    /// Reaps it; the session learns of its end from the connection.
    pub(crate) async fn reap(mut self) {
        let _ = self.0.wait().await;
    }
}

/// `container`: the connection of the first process of the session's container, which the holder gets as standard output.
pub(super) fn spawn(binary: &HolderBinary, folder: &Path, container: Option<OwnedFd>) -> io::Result<StartedHolder> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    // Nothing may fail once the holder runs: no code would end it.
    ours.set_nonblocking(true)?;
    let connection = HolderConnection::new(ours)?;
    // Without a pre-exec hook the standard library uses posix_spawn(3), which does not copy this process's page tables.
    let child = Command::new(&binary.path)
        .arg0("ptyd-holder")
        .arg(folder)
        .env_clear()
        // Freed memory goes back to the heap, not to a cache of the thread that keeps pages from being given back: 8 KiB less
        // for each session. Only for the GNU C library.
        .env("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0")
        .envs(sys::fault::passed_on())
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(container.map_or_else(Stdio::null, Stdio::from))
        .stderr(Stdio::null())
        .spawn()?;
    Ok(StartedHolder { connection, process: HolderProcess(child) })
}
