//! Namespaces of its own for a confined shell (user, mount, pid, ipc, uts, cgroup and, without a network, net), beside the
//! rules of [`crate::confinement`].
//!
//! The first process of the pid namespace is a fork of the caller. It makes the mounts and then only reaps orphans; it
//! dies with the caller, and everything in the namespace with it (pid_namespaces(7)). It works on data that was prepared
//! before the fork, and allocates nothing.
//!
//! In a container, the namespaces are those that its engine has made, and the first process is connected to its holder.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::path::PathBuf;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use crate::confinement::{Namespaces, Rules};
use crate::spawn::failure::{SpawnError, Step, fail, last_errno};

mod layout;
mod mounts;

pub use layout::{Layout, OWN, TEMPORARY};

/// A made sandbox without its shell.
#[derive(Debug)]
pub struct Sandbox {
    init: u32,
    /// A pidfd of that process.
    process: OwnedFd,
    /// That process keeps its `/proc` files open to us until our end is closed; in a container it lives so long.
    setup: OwnedFd,
    namespaces: libc::c_int,
    kind: Namespaces,
}

/// The name of the first process, inside and outside.
const NAME: &CStr = c"ptyd-init";

/// The namespaces that every sandbox has.
const NAMESPACES: libc::c_int = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;

/// Those of a process that shares all but its mounts with the machine. The first lets an ordinary user have the second.
const OF_MOUNTS: libc::c_int = libc::CLONE_NEWUSER | libc::CLONE_NEWNS;

/// The namespaces of a container, by their names in `/proc/PID/ns`.
const OF_CONTAINER: [(&str, libc::c_int); 7] = [
    ("user", libc::CLONE_NEWUSER),
    ("mnt", libc::CLONE_NEWNS),
    ("pid", libc::CLONE_NEWPID),
    ("ipc", libc::CLONE_NEWIPC),
    ("uts", libc::CLONE_NEWUTS),
    ("cgroup", libc::CLONE_NEWCGROUP),
    ("net", libc::CLONE_NEWNET),
];

impl Sandbox {
    /// Begins to make one; [`Sandbox::wait`] says how it went.
    pub fn begin(layout: &mut Layout) -> Result<Self, SpawnError> {
        let failed = |errno| SpawnError { step: Step::Namespaces, errno };
        let (setup, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .map_err(|e| failed(e.raw_os_error()))?;
        let namespaces = match (layout.is_shared, layout.network) {
            (true, _) => OF_MOUNTS,
            (false, true) => NAMESPACES,
            (false, false) => NAMESPACES | libc::CLONE_NEWNET,
        };
        let kind = if layout.is_shared { Namespaces::Shared } else { Namespaces::Own };
        let mut process: libc::c_int = -1;
        let flags = (namespaces | libc::CLONE_PIDFD | libc::SIGCHLD) as libc::c_long;
        // SAFETY: without a stack of its own and without CLONE_VM this is a fork (clone(2)); the kernel writes a descriptor to
        // `process`. The child only makes system calls on what was prepared before, and never returns (`-> !`).
        let pid = unsafe {
            let pid = libc::syscall(libc::SYS_clone, flags, 0, &raw mut process, 0, 0);
            if pid == 0 {
                first_process(layout, theirs.as_raw_fd());
            }
            pid
        };
        let Some(init) = u32::try_from(pid).ok().filter(|_| process != -1) else { return Err(failed(last_errno())) };
        // SAFETY: the kernel has made this descriptor for us, and nothing else owns it.
        let process = unsafe { OwnedFd::from_raw_fd(process) };
        Ok(Self { init, process, setup, namespaces, kind })
    }

    /// The container whose first process has made this connection: its namespaces, as far as they are not this process's own. That
    /// process, and with it all others there, ends when this value is dropped or this process ends.
    pub fn of_container(connection: OwnedFd) -> io::Result<Self> {
        let process = crate::socket::peer_process(&connection)?;
        let init = crate::socket::peer(&connection)?.pid;
        let mut namespaces = 0;
        for (name, flag) in OF_CONTAINER {
            let of = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/{name}"));
            if of("self")? != of(&init.to_string())? {
                namespaces |= flag;
            }
        }
        Ok(Self { init, process, setup: connection, namespaces, kind: Namespaces::Container })
    }

    /// Whether a container engine has made it.
    #[must_use]
    pub fn is_container(&self) -> bool {
        self.kind == Namespaces::Container
    }

    /// Whether only its mounts are its own, so that its first process is of no use when a program has entered them.
    #[must_use]
    pub fn has_only_mounts(&self) -> bool {
        self.kind == Namespaces::Shared
    }

    /// The pidfd of its first process.
    #[must_use]
    pub fn process(&self) -> BorrowedFd<'_> {
        self.process.as_fd()
    }

    /// Waits until its mounts are made.
    pub fn wait(&self) -> Result<(), SpawnError> {
        if self.is_container() {
            return Ok(());
        }
        let mut note = [0; 5];
        let error = match rustix::io::retry_on_intr(|| rustix::io::read(&self.setup, &mut note)) {
            Ok(1) => return Ok(()),
            Ok(5) => {
                let [step, errno @ ..] = note;
                SpawnError { step: Step::of_code(step), errno: i32::from_ne_bytes(errno) }
            }
            Ok(_) => SpawnError { step: Step::Namespaces, errno: libc::ESRCH },
            Err(e) => SpawnError { step: Step::Namespaces, errno: e.raw_os_error() },
        };
        self.end();
        Err(error)
    }

    /// Ends everything in it.
    pub fn end(&self) {
        let _ = rustix::process::pidfd_send_signal(&self.process, rustix::process::Signal::KILL);
        let id = rustix::process::WaitId::PidFd(self.process.as_fd());
        let _ = rustix::process::waitid(id, rustix::process::WaitIdOptions::EXITED);
    }

    /// The root directory inside, as it is named outside; only while this value lives.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root", self.init))
    }

    /// The pidfd and the namespaces of setns(2).
    pub(crate) fn entrance(&self) -> (RawFd, libc::c_int) {
        (self.process.as_raw_fd(), self.namespaces)
    }
}

/// Why this machine cannot make a sandbox, found by making one; `None` if it can.
#[must_use]
pub fn hindrance() -> Option<String> {
    let tried = || -> Result<(), SpawnError> {
        let mut layout = Layout::prepare(&Rules { namespaces: Namespaces::Own, ..Rules::default() }, None)
            .map_err(|e| SpawnError { step: Step::Mounts, errno: e.raw_os_error().unwrap_or(0) })?;
        let sandbox = Sandbox::begin(&mut layout)?;
        sandbox.wait()?;
        sandbox.end();
        Ok(())
    };
    refusal(&tried().err()?)
}

/// The part of a sandbox that the machine refuses; `None` if another step failed.
#[must_use]
pub fn refusal(error: &SpawnError) -> Option<String> {
    let what = match error.step {
        Step::Namespaces => "namespaces of its own (user, mount, pid, ipc, uts, cgroup, net)",
        Step::Mounts => "mounts of its own in a user namespace",
        Step::Proc => "a whole /proc of its own in a user namespace",
        _ => return None,
    };
    let why = io::Error::from_raw_os_error(error.errno);
    // A limit of namespaces(7), which is 0 where they are switched off.
    let limit = if error.errno == libc::ENOSPC {
        "; sysctl user.max_user_namespaces and similar settings limit them"
    } else {
        ""
    };
    Some(format!("needs {what}, which this machine refuses to this user: {why}{limit}"))
}

/// Becomes the first process of the namespaces.
///
/// # Safety
/// In a fork of the caller; only async-signal-safe calls are made.
unsafe fn first_process(layout: &mut Layout, setup: RawFd) -> ! {
    // SAFETY: each call works on numbers, on locals, or on the layout's valid strings.
    unsafe {
        // Not to be taken for a holder.
        libc::prctl(libc::PR_SET_NAME, NAME.as_ptr(), 0, 0, 0);
        crate::start::show_as(NAME);
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &all, std::ptr::null_mut());
        close_range(0, setup.unsigned_abs().saturating_sub(1));
        close_range(setup.unsigned_abs() + 1, u32::MAX);
        libc::umask(0);
        // No groups can be given up then, which may be what keeps a program from a file (user_namespaces(7)).
        for (file, text) in [
            (c"/proc/self/setgroups", c"deny"),
            (c"/proc/self/uid_map", &layout.uid),
            (c"/proc/self/gid_map", &layout.gid),
        ] {
            if !write_to(file, text) {
                fail(setup, Step::Namespaces);
            }
        }
        if let Err(step) = mounts::make(layout) {
            fail(setup, step);
        }
        let (header, none) = ([0x2008_0522_u32, 0], [0u32; 6]);
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1
            || libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()) == -1
            // After the last change of credentials, which would clear it.
            || libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) == -1
        {
            fail(setup, Step::Namespaces);
        }
        let mut byte = [0u8];
        // A caller that has died before that call is not there to be told.
        if libc::write(setup, byte.as_ptr().cast(), 1) != 1 {
            libc::_exit(127);
        }
        while libc::read(setup, byte.as_mut_ptr().cast(), 1) == -1 && last_errno() == libc::EINTR {}
        // Its memory is a copy of the caller's, and its /proc files are inside, too.
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
        close_range(0, u32::MAX);
        let mut children: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut children);
        libc::sigaddset(&mut children, libc::SIGCHLD);
        loop {
            while libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) > 0 {}
            libc::sigwaitinfo(&children, std::ptr::null_mut());
        }
    }
}

/// Closes all descriptors from the first to the last one.
///
/// # Safety
/// The caller uses none of these descriptors any more.
unsafe fn close_range(first: u32, last: u32) {
    // SAFETY: three numbers; the descriptors are the caller's to close. It is EINVAL where there is none between them.
    unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
}

/// # Safety
/// Async-signal-safe; for a forked child.
unsafe fn write_to(file: &CStr, text: &CStr) -> bool {
    // SAFETY: both strings are valid for the length of the calls.
    unsafe {
        let fd = libc::open(file.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        if fd == -1 {
            return false;
        }
        let length = text.to_bytes().len();
        let written = libc::write(fd, text.as_ptr().cast(), length);
        libc::close(fd);
        usize::try_from(written) == Ok(length)
    }
}
