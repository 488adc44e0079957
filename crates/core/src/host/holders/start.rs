//! The holder's program, and the start of a holder.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::{Child, Command};
use wire::Spec;

use super::super::port::Identity;
use super::connection::HolderConnection;
use super::folder::SessionFolder;
use super::liveness;

/// The holder's program, embedded in this one.
static HOLDER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/ptyd-holder"));
/// The file for it where the kernel does not execute a memfd.
const HOLDER_FILE: &str = "ptyd-holder";

/// Whether the holder is statically linked: a dynamic one takes almost twice the memory in every session.
#[must_use]
pub fn holder_is_static() -> bool {
    !names_an_interpreter(HOLDER)
}

/// Whether the kernel starts a dynamic linker for this program (elf(5), `PT_INTERP`). The header of a 64-bit program
/// has the offset of the program header table at 32, the size of an entry at 54, and their number at 56.
fn names_an_interpreter(program: &[u8]) -> bool {
    const PT_INTERP: u32 = 3;
    let short = |at: usize| usize::from(u16::from_le_bytes([program[at], program[at + 1]]));
    let word = |at: usize| program[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
    let table = program[32..40].try_into().map_or(0, u64::from_le_bytes) as usize;
    (0..short(56)).any(|number| word(table + number * short(54)) == PT_INTERP)
}

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
        file.write_all(HOLDER)?;
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
        file.write_all(HOLDER)?;
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

    /// Kills it, and waits for its end.
    pub(crate) async fn kill(mut self) {
        let _ = self.0.kill().await;
    }

    /// Reaps it; the session learns of its end from the connection.
    pub(crate) async fn reap(mut self) {
        let _ = self.0.wait().await;
    }
}

/// A holder that waits for a session's folder. It ends when its server does.
#[derive(Debug)]
pub(super) struct SpareHolder {
    started: StartedHolder,
    /// The length of the path that it waits for.
    path_bytes: usize,
}

impl SpareHolder {
    /// Starts one for a session in this folder, with an id of this length.
    pub(super) fn start(binary: &HolderBinary, sessions: &Path, id_bytes: usize) -> io::Result<Self> {
        let instead = sessions.join(format!("{:-<id_bytes$}", wire::SPARE));
        Ok(Self { started: spawn(binary, &instead)?, path_bytes: instead.as_os_str().len() })
    }

    /// Gives it the session's folder; `None` if it cannot have it or is gone.
    fn hold(mut self, folder: &Path) -> Option<StartedHolder> {
        let path = folder.as_os_str().as_bytes();
        let is_alive = matches!(self.started.process.0.try_wait(), Ok(None));
        let takes_it = is_alive && path.len() == self.path_bytes && self.started.connection.send_path(path);
        takes_it.then_some(self.started)
    }
}

/// Creates the session's folder, stores the spec and the secrets that are files, and has a holder begin in it: the spare one, or a new one.
pub(super) fn start(
    binary: &HolderBinary,
    spare: Option<SpareHolder>,
    folder: &Path,
    spec: &Spec,
    secrets: &[(String, String)],
) -> io::Result<StartedHolder> {
    sys::fault::stall("create");
    std::fs::DirBuilder::new().mode(0o700).create(folder)?;
    spec.store(folder)?;
    SessionFolder::at(folder.to_owned()).write_secrets(secrets)?;
    match spare.and_then(|spare| spare.hold(folder)) {
        Some(started) => Ok(started),
        None => spawn(binary, folder),
    }
}

fn spawn(binary: &HolderBinary, folder: &Path) -> io::Result<StartedHolder> {
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
        .stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    Ok(StartedHolder { connection, process: HolderProcess(child) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    // promise: cli-8
    fn the_holder_in_this_program_is_static() {
        let own = std::fs::read("/proc/self/exe").expect("we run");
        assert_eq!(names_an_interpreter(&own), cfg!(not(target_feature = "crt-static")), "this program itself");
        assert!(holder_is_static(), "a static C library is missing here (libc6-dev has it, or the musl target)");
    }
}
