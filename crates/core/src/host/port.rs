//! The port to the machine of the sessions: programs, files, users, processes and control groups.
//!
//! All that a session's programs are and see is asked for by [`Host`], and holders are started and reached by
//! [`HolderBackend`](super::holders::HolderBackend), so that sessions may be in a container or on another machine without a
//! change to what is decided about them. The server's own state directory is on neither side: journals and events are
//! read as files.
//!
//! A call answers from the kernel's memory within microseconds. Those that say "blocks" may wait for a disk or read a
//! process tree for milliseconds. Requests make them on the blocking pool; a session's step makes them where it is, at
//! rare moments: a shell's new PATH, a signal, the end of a command after a stop key, a limit.

use std::collections::HashSet;
use std::fmt::Debug;
use std::fs::Metadata;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Duration;

pub(crate) use sys::cgroup::{Bounds, Controller, Counts};
pub(crate) use sys::process::Users;
pub(crate) use sys::user::User;

use crate::action::{ConfinementTier, ProcessState};

/// The environment variable that identifies a session's processes.
pub(crate) const TAG: &str = "PTYD_SESSION";
/// How precisely a process's start is known.
const START_PRECISION_US: u64 = 10_000;

/// The unique identity of a process: its id, and its start time in clock ticks since boot.
pub(crate) type Identity = (u32, u64);

/// One process at one moment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Process {
    pub(crate) identity: Identity,
    pub(crate) parent: u32,
    pub(crate) group: u32,
    pub(crate) session: u32,
    /// The program's name, at most 15 bytes.
    pub(crate) name: String,
    pub(crate) state: ProcessState,
    /// Stopped by a signal, and not by a debugger.
    pub(crate) is_job_stopped: bool,
    /// The foreground process group of its terminal, if it has one.
    pub(crate) foreground_group: Option<u32>,
    pub(crate) cpu_us: u64,
    /// The CPU time of its children that have ended and were reaped.
    pub(crate) reaped_cpu_us: u64,
    pub(crate) memory_bytes: u64,
    /// Since boot.
    pub(crate) started_us: u64,
}

impl Process {
    pub(crate) fn pid(&self) -> u32 {
        self.identity.0
    }

    /// Whether it certainly started before this time since boot.
    pub(crate) fn is_older_than(&self, since_boot_us: u64) -> bool {
        self.started_us.saturating_add(START_PRECISION_US) <= since_boot_us
    }

    /// Whether it is the first process of a sandbox's pid namespace, a fork of the holder that only reaps orphans. Every shell has
    /// a session of its own (setsid(2)), so nothing else is in the holder's.
    pub(crate) fn is_first_of_sandbox(&self, holder: u32) -> bool {
        self.session == holder && self.pid() != holder
    }
}

/// The kind of file at a path, behind every link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileFacts {
    pub(crate) is_directory: bool,
    /// Device and inode.
    pub(crate) which: (u64, u64),
    /// Seconds and nanoseconds of the last modification.
    pub(crate) modified: (i64, i64),
}

impl From<&Metadata> for FileFacts {
    fn from(of: &Metadata) -> Self {
        Self { is_directory: of.is_dir(), which: (of.dev(), of.ino()), modified: (of.mtime(), of.mtime_nsec()) }
    }
}

/// The programs of a file system: the machine's, or a container's.
pub(crate) trait Programs: Debug {
    /// The executable of this name on a PATH, or at this absolute path; blocks.
    fn resolve_program(&self, name: &str, path: Option<&[u8]>) -> Option<PathBuf>;

    /// The path without links; blocks.
    fn real_path(&self, path: &Path) -> Option<PathBuf>;
}

/// The machine of the sessions.
pub(crate) trait Host: Programs + Send + Sync {
    /// The file or directory at a path; blocks.
    fn file(&self, path: &Path) -> Option<FileFacts>;

    /// The same as far as another user may look, who has this [identity](User::identity); without one, the server's own.
    fn file_as(&self, identity: &[u32], path: &Path) -> Option<FileFacts> {
        if identity.is_empty() { self.file(path) } else { None }
    }

    /// The file or directory at a path of a process that has mounts of its own; blocks.
    fn file_inside(&self, pid: u32, path: &Path) -> Option<FileFacts>;

    /// The path without links, as far as it exists; blocks.
    fn resolved_path(&self, path: &Path) -> PathBuf;

    /// The path as this process has it: `/proc/self` is another process to each.
    fn path_of(&self, pid: u32, path: PathBuf) -> PathBuf;

    /// The path without links, as far as it exists, as a process in this one's namespaces has it; blocks.
    fn path_seen_by(&self, pid: u32, path: &Path) -> PathBuf;

    /// The path without links, or `None` if it leads through a link in `/proc`, which shows this process what others may not see.
    fn path_outside_proc(&self, path: &Path) -> Option<PathBuf>;

    /// The place that a path names; the error is a link on the way that a session could have made. Blocks.
    fn place(&self, path: &Path) -> Result<PathBuf, PathBuf>;

    /// The folders of the server's own `PATH`.
    fn program_folders(&self) -> Vec<PathBuf>;

    /// The server's own `HOME`.
    fn home(&self) -> Option<PathBuf>;

    /// The directory of a session whose request names none.
    fn default_directory(&self) -> PathBuf;

    /// Why this machine cannot give a session this confinement; `None` if it can. Makes a sandbox to see it; blocks.
    fn confinement_hindrance(&self, tier: ConfinementTier) -> Option<String>;

    /// A user by name; blocks.
    fn user(&self, name: &str) -> io::Result<Option<User>>;

    /// The shell that the user database has for the server's user; blocks.
    fn login_shell(&self) -> Option<String>;

    fn process(&self, pid: u32) -> Option<Process>;

    /// Each of these processes with its descendants, parents before children; an empty list for one that is gone.
    /// Blocks if there are many.
    fn process_trees(&self, roots: &[u32]) -> Vec<Vec<Process>>;

    /// The arguments of a process; empty if it has ended.
    fn command_line(&self, pid: u32) -> String;

    /// The working directory of a process, if it may be looked at and still exists.
    fn working_directory(&self, pid: u32) -> Option<PathBuf>;

    /// Whether the working directory of a process was removed.
    fn is_directory_gone(&self, pid: u32) -> bool;

    /// The pid of a process in the innermost namespace that has it.
    fn innermost_pid(&self, pid: u32) -> Option<u32>;

    /// The program that a process executes, if it may be looked at.
    fn executable(&self, pid: u32) -> Option<PathBuf>;

    /// The real and the effective user of a process, and whether its program's file is set-user-id.
    fn users(&self, pid: u32) -> Option<Users>;

    /// The name of a user in the user database; blocks.
    fn user_name(&self, uid: u32) -> Option<String>;

    /// The user who has opened the TCP socket with these addresses on this machine; blocks.
    fn tcp_user(&self, own: SocketAddr, peer: SocketAddr) -> Option<u32>;

    /// Whether a process ignores a signal.
    fn ignores(&self, pid: u32, signo: i32) -> bool;

    /// A number that changes with each execve(2) of a process, if it may be looked at.
    fn image(&self, pid: u32) -> Option<u64>;

    /// The TCP ports on which the descendants of a process listen; blocks.
    fn listening_ports(&self, root: u32) -> HashSet<u16>;

    /// The same for those that are in this process group, and their descendants; blocks.
    fn ports_of_job(&self, root: u32, group: u32) -> HashSet<u16>;

    fn since_boot_us(&self) -> u64;

    /// Sends a signal to this process, and to no later one with its pid; false if it is gone.
    fn signal_exactly(&self, process: Identity, signo: i32) -> bool;

    /// Waits for the end of a process; false if it still lives after `longest`, or its end cannot be determined.
    fn ends_within(&self, process: Identity, longest: Duration) -> Pin<Box<dyn Future<Output = bool> + Send>>;

    /// Kills every process with this variable (`NAME=value`) in its environment that did not start before `began`, in
    /// the clock of [`Identity`]; returns them. Blocks.
    fn sweep(&self, variable: &str, began: u64) -> Vec<Process>;

    /// Whether groups that the server makes have this controller.
    fn has_controller(&self, controller: Controller) -> bool;

    /// Whether the kernel bounds the processes of each user namespace for itself (`RLIMIT_NPROC`).
    fn bounds_tasks_of_namespaces(&self) -> bool;

    /// The files by which a process joins the control group of this name.
    fn group_entrances(&self, name: &str) -> Vec<PathBuf>;

    /// Makes that group; blocks.
    fn make_group(&self, name: &str, bounds: Bounds) -> io::Result<()>;

    /// The group with these entrances, whichever server made it.
    fn group(&self, entrances: &[PathBuf]) -> Box<dyn ControlGroup>;
}

/// The control group of a session.
pub(crate) trait ControlGroup: Debug + Send + Sync {
    /// The present counters; one that cannot be read counts as zero.
    fn counts(&self) -> Counts;

    /// Removes it; a group with processes remains.
    fn remove(&self);
}

/// Every process of a holder's session, parents before children.
pub(crate) fn descendants(host: &dyn Host, holder: u32) -> Vec<Process> {
    let mut all = host.process_trees(&[holder]).pop().unwrap_or_default();
    all.drain(..all.len().min(1));
    all.retain(|it| !it.is_first_of_sandbox(holder));
    all
}
