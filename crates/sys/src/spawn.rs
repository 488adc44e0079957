//! Starts the shell on its terminal: a fork that copies no memory, then code that never returns, with a pipe for errors.

use std::cell::Cell;
use std::ffi::{CStr, CString, NulError};
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use rustix::pipe::{PipeFlags, pipe_with};

use crate::confinement::{self, Confinement};
use crate::sandbox::Sandbox;

pub(crate) mod failure;
mod out_of_memory;

pub use failure::{SpawnError, Step};
use failure::{fail, last_errno};

/// A limit of setrlimit(2), for a process and each of its children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// Descriptors, `RLIMIT_NOFILE`.
    OpenFiles,
    /// Bytes of address space, `RLIMIT_AS`.
    AddressSpace,
    /// Processes and threads of this user in its user namespace, `RLIMIT_NPROC`.
    Tasks,
}

/// All data for the new process; prepared before it is there, because it may not allocate.
#[derive(Debug)]
pub struct Program {
    path: CString,
    argv: Vec<CString>,
    envp: Vec<CString>,
    cwd: CString,
    umask: u32,
    limits: Vec<(Resource, u64)>,
    groups: Vec<File>,
    identity: Option<Identity>,
    confinement: Option<Confinement>,
    /// The pidfd of a sandbox's first process, and its namespaces.
    sandbox: Option<(RawFd, libc::c_int)>,
}

/// Another user to run as, with all ids that the kernel needs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Identity {
    /// setuid(2).
    pub uid: u32,
    /// setgid(2).
    pub gid: u32,
    /// setgroups(2).
    pub groups: Vec<u32>,
}

impl Program {
    /// Refuses arguments with a NUL byte, which execve(2) cannot pass.
    pub fn new(path: &[u8], argv: &[Vec<u8>], env: &[Vec<u8>], cwd: &[u8], umask: u32) -> Result<Self, NulError> {
        let all = |list: &[Vec<u8>]| list.iter().map(|a| CString::new(a.as_slice())).collect::<Result<Vec<_>, _>>();
        let (path, argv, envp, cwd) = (CString::new(path)?, all(argv)?, all(env)?, CString::new(cwd)?);
        Ok(Self {
            path,
            argv,
            envp,
            cwd,
            umask,
            limits: Vec::new(),
            groups: Vec::new(),
            identity: None,
            confinement: None,
            sandbox: None,
        })
    }

    /// Applies these limits, soft and hard, and joins the groups with these `cgroup.procs` files.
    pub fn bounded(mut self, limits: Vec<(Resource, u64)>, groups: Vec<File>) -> Self {
        (self.limits, self.groups) = (limits, groups);
        self
    }

    /// Runs as another user, which only root may do; in a container it is one of its users.
    pub fn owned_by(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Runs confined.
    pub fn confined(mut self, confinement: Confinement) -> Self {
        self.confinement = Some(confinement);
        self
    }

    /// Runs in a sandbox, which must live until the program does.
    pub fn inside(mut self, sandbox: &Sandbox) -> Self {
        self.sandbox = Some(sandbox.entrance());
        self
    }
}

/// Starts a process that executes `program` as the leader of a new session on `follower`, with each of `extra` at its descriptor,
/// in this order. Returns the pid once execve(2) has succeeded.
///
/// The caller must be single-threaded: the child runs Rust code between fork and exec.
pub fn on_terminal(
    program: &Program,
    follower: BorrowedFd<'_>,
    extra: &[(BorrowedFd<'_>, RawFd)],
) -> Result<u32, SpawnError> {
    let mut argv: Vec<*const libc::c_char> = program.argv.iter().map(|a| a.as_ptr()).collect();
    argv.push(std::ptr::null());
    let mut envp: Vec<*const libc::c_char> = program.envp.iter().map(|a| a.as_ptr()).collect();
    envp.push(std::ptr::null());
    let limits: Vec<_> = program.limits.iter().map(|(resource, value)| (resource.number(), *value)).collect();
    let groups: Vec<RawFd> = program.groups.iter().map(AsRawFd::as_raw_fd).collect();
    let extra: Vec<_> = extra.iter().map(|(fd, at)| (fd.as_raw_fd(), *at)).collect();
    let preference = out_of_memory::preference();
    let (errors, report) =
        pipe_with(PipeFlags::CLOEXEC).map_err(|e| SpawnError { step: Step::Descriptors, errno: e.raw_os_error() })?;
    let mut stack = [const { MaybeUninit::<u128>::uninit() }; CHILD_STACK_BYTES / 16];
    // A program in a sandbox is the child's child, which has the lower part.
    let (inner_stack, stack) = stack.split_at_mut(CHILD_STACK_BYTES / 32);
    let plan = Plan {
        path: program.path.as_ptr(),
        argv: argv.as_ptr(),
        envp: envp.as_ptr(),
        cwd: program.cwd.as_ptr(),
        umask: program.umask,
        follower: follower.as_raw_fd(),
        extra: &extra,
        preference: &preference,
        report: report.as_raw_fd(),
        limits: &limits,
        groups: &groups,
        identity: program.identity.as_ref().map(|i| (i.uid, i.gid, i.groups.as_slice())),
        confinement: program.confinement.as_ref().map(Confinement::plan),
        sandbox: program.sandbox,
        inner_stack: inner_stack.as_mut_ptr_range().end.cast(),
        inside: Cell::new(0),
    };
    // As vfork(2), but on a stack of its own: a copy of the page tables, and of each page that is written meanwhile, would
    // only be thrown away by execve(2). This thread goes on when the child has executed the program or ended.
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: the end of the array is an aligned end of a stack, and `plan` and all that it points to outlive the child's use,
    // because this thread waits for it. The process is single-threaded (the caller's contract), so nobody else changes
    // the memory that both have. The child only makes system calls on what was prepared above and never returns
    // (`become_program` is `-> !`).
    match unsafe { libc::clone(child, stack.as_mut_ptr_range().end.cast(), flags, (&raw const plan).cast_mut().cast()) }
    {
        -1 => Err(SpawnError { step: Step::Fork, errno: last_errno() }),
        child => {
            drop(report);
            let pid = match plan.sandbox {
                None => child,
                Some(_) => {
                    // It has only entered the namespaces, and is gone.
                    reap(child);
                    plan.inside.get()
                }
            };
            let mut note = [0u8; 5];
            match rustix::io::read(&errors, &mut note[..]) {
                Ok(5) => {
                    // The process has reported and exited.
                    reap(pid);
                    let errno = i32::from_ne_bytes([note[1], note[2], note[3], note[4]]);
                    Err(SpawnError { step: Step::of_code(note[0]), errno })
                }
                _ => Ok(pid.unsigned_abs()),
            }
        }
    }
}

/// Waits for the end of a child; 0 is none.
fn reap(pid: libc::pid_t) {
    if let Some(pid) = rustix::process::Pid::from_raw(pid) {
        let _ =
            rustix::io::retry_on_intr(|| rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty()));
    }
}

impl Resource {
    fn number(self) -> RlimitResource {
        match self {
            Self::OpenFiles => libc::RLIMIT_NOFILE,
            Self::AddressSpace => libc::RLIMIT_AS,
            Self::Tasks => libc::RLIMIT_NPROC,
        }
    }
}

#[cfg(target_env = "gnu")]
type RlimitResource = libc::__rlimit_resource_t;
#[cfg(not(target_env = "gnu"))]
type RlimitResource = libc::c_int;

/// Plain pointers and numbers: the only data that the child uses.
struct Plan<'a> {
    path: *const libc::c_char,
    argv: *const *const libc::c_char,
    envp: *const *const libc::c_char,
    cwd: *const libc::c_char,
    umask: u32,
    follower: RawFd,
    extra: &'a [(RawFd, RawFd)],
    preference: &'a CStr,
    report: RawFd,
    limits: &'a [(RlimitResource, u64)],
    groups: &'a [RawFd],
    identity: Option<(u32, u32, &'a [u32])>,
    confinement: Option<confinement::Plan<'a>>,
    sandbox: Option<(RawFd, libc::c_int)>,
    /// The end of the stack of a process in a sandbox.
    inner_stack: *mut libc::c_void,
    /// The pid of that process.
    inside: Cell<libc::pid_t>,
}

/// More than the frames of the child need; a multiple of 16 bytes, to which a stack is aligned.
const CHILD_STACK_BYTES: usize = 64 << 10;

/// The beginning of the child.
extern "C" fn child(plan: *mut libc::c_void) -> libc::c_int {
    // SAFETY: it is the plan of [`on_terminal`], which waits until this process has its own memory or is gone.
    unsafe {
        let plan = &*plan.cast::<Plan<'_>>();
        if plan.inside.get() == 0 {
            // Before a sandbox is entered, where `/proc` is read-only; the program there inherits it.
            out_of_memory::prefer(plan.preference);
        }
        match plan.sandbox {
            Some((process, namespaces)) if plan.inside.get() == 0 => enter(plan, process, namespaces),
            _ => become_program(plan),
        }
    }
}

/// Enters the namespaces and starts the program there, as a child of this process's parent: only children are in a pid
/// namespace (setns(2)), and the parent shall reap the program itself.
///
/// # Safety
/// As [`become_program`].
unsafe fn enter(plan: &Plan<'_>, process: RawFd, namespaces: libc::c_int) -> ! {
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PARENT | libc::SIGCHLD;
    // SAFETY: the stack is the lower part of the one that [`on_terminal`] has made, and this process uses the upper one. It
    // waits until the program has been executed or is gone.
    unsafe {
        if libc::setns(process, namespaces) == -1 {
            fail(plan.report, Step::Namespaces);
        }
        plan.inside.set(-1);
        let pid = libc::clone(child, plan.inner_stack, flags, std::ptr::from_ref(plan).cast_mut().cast());
        plan.inside.set(pid.max(0));
        if pid == -1 {
            fail(plan.report, Step::Fork);
        }
        libc::_exit(0)
    }
}

/// The child's side. Only async-signal-safe calls (signal-safety(7)); errors go over the pipe as (step, errno).
///
/// # Safety
/// Must be called in a fresh child with pointers that are valid in it.
unsafe fn become_program(plan: &Plan<'_>) -> ! {
    // SAFETY: every call is async-signal-safe and works on the plan's valid pointers or on locals; `sigset_t` may be
    // zeroed before sigemptyset initialises it.
    unsafe {
        // The holder ignores and blocks signals; the shell must start with the defaults.
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        for signo in 1..=crate::signal::SIGNO_MAX {
            libc::signal(signo, libc::SIG_DFL);
        }
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
        if libc::setsid() == -1 {
            fail(plan.report, Step::Session);
        }
        if libc::ioctl(plan.follower, libc::TIOCSCTTY as _, 0) == -1 {
            fail(plan.report, Step::Terminal);
        }
        // The report pipe must not occupy a descriptor that is about to be placed.
        let report = libc::fcntl(plan.report, libc::F_DUPFD_CLOEXEC, 200);
        if report == -1 {
            fail(plan.report, Step::Descriptors);
        }
        for standard in 0..3 {
            if libc::dup2(plan.follower, standard) == -1 {
                fail(report, Step::Descriptors);
            }
        }
        for group in plan.groups {
            // Zero means the writing process.
            if libc::write(*group, c"0".as_ptr().cast(), 1) != 1 {
                fail(report, Step::Group);
            }
        }
        // After everything opened before the fork was used, because one of those may have this number; and before the
        // limit of descriptors, which may be lower.
        for (from, at) in plan.extra {
            let is_placed = if from == at { libc::fcntl(*from, libc::F_SETFD, 0) } else { libc::dup2(*from, *at) };
            if is_placed == -1 {
                fail(report, Step::Descriptors);
            }
        }
        for (resource, value) in plan.limits {
            let both = libc::rlimit { rlim_cur: *value as libc::rlim_t, rlim_max: *value as libc::rlim_t };
            if libc::setrlimit(*resource, &both) == -1 {
                fail(report, Step::Limit);
            }
        }
        // In a container the ids are those of its user namespace; elsewhere the caller has done this.
        if let (Some(_), Some((uid, ..))) = (plan.sandbox, plan.identity)
            && libc::fchown(0, uid, libc::gid_t::MAX) == -1
        {
            fail(report, Step::Terminal);
        }
        // After everything that only root may do, and before chdir(2), which needs this user's permissions.
        if let Some((uid, gid, all)) = plan.identity
            // The C library's functions would also look after other threads, which are the parent's.
            && (libc::syscall(libc::SYS_setgroups, all.len(), all.as_ptr()) == -1
                || libc::syscall(libc::SYS_setgid, gid) == -1
                || libc::syscall(libc::SYS_setuid, uid) == -1)
        {
            fail(report, Step::User);
        }
        libc::umask(plan.umask as libc::mode_t);
        if libc::chdir(plan.cwd) == -1 {
            fail(report, Step::Directory);
        }
        // Last: the calls before it may need what it takes away.
        if plan.confinement.is_some_and(|confinement| !confinement.apply()) {
            fail(report, Step::Confinement);
        }
        libc::execve(plan.path, plan.argv, plan.envp);
        fail(report, Step::Exec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pty::Pty;
    use std::os::fd::AsFd;

    fn program(path: &str, cwd: &str) -> Program {
        Program::new(path.as_bytes(), &[path.as_bytes().to_vec()], &[], cwd.as_bytes(), 0o022).expect("no NUL inside")
    }

    #[test]
    fn a_limit_that_cannot_be_set_and_a_group_that_cannot_be_joined_have_different_errors() {
        let pty = Pty::open(80, 24).expect("a pty");
        let of = |limits, groups| {
            let program = program("/bin/true", "/").bounded(limits, groups);
            on_terminal(&program, pty.follower.as_fd(), &[]).map_err(|e| (e.step, e.errno))
        };
        // Above the system's limit for every process (sysctl fs.nr_open).
        assert_eq!(of(vec![(Resource::OpenFiles, u64::MAX - 1)], Vec::new()), Err((Step::Limit, libc::EPERM)));
        let full = File::options().write(true).open("/dev/full").expect("there");
        assert_eq!(of(Vec::new(), vec![full]), Err((Step::Group, libc::ENOSPC)));
        assert!(of(vec![(Resource::OpenFiles, 64)], Vec::new()).is_ok());
    }

    #[test]
    fn a_program_is_killed_before_its_starter_where_memory_is_exhausted() {
        let of = |process: &str| -> i32 {
            let file = std::fs::read_to_string(format!("/proc/{process}/oom_score_adj")).expect("there");
            file.trim().parse().expect("a number")
        };
        let own = of("self");
        let pty = Pty::open(80, 24).expect("a pty");
        let cat = on_terminal(&program("/bin/cat", "/"), pty.follower.as_fd(), &[]).expect("started");
        assert_eq!((of(&cat.to_string()), of("self")), ((own + 500).min(1_000), own));
        drop(pty);
        reap(cat.cast_signed());
    }

    #[test]
    // promise: access-13
    fn a_confined_program_reaches_what_its_rules_name_and_nothing_else() {
        use rustix::event::{PollFd, PollFlags, poll};
        use std::io::Read;
        if let Some(why) = confinement::hindrance() {
            return crate::not_run::not_run(why);
        }
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        for made in ["home/src", "home/.ssh", "work"] {
            std::fs::create_dir_all(at(made)).expect("made");
        }
        for file in ["home/.ssh/key", "home/src/text", "outside"] {
            std::fs::write(at(file), "read\n").expect("written");
        }
        std::os::unix::fs::symlink(at("home/.ssh"), at("link")).expect("made");
        let rules = confinement::Rules {
            readable: ["/usr", "/bin", "/lib", "/lib64", "/etc"]
                .map(Into::into)
                .into_iter()
                .chain([at("home")])
                .collect(),
            // The second one is a link, which could have been made after these rules.
            writable: vec![at("work"), at("link")],
            kept: Vec::new(),
            devices: vec!["/dev/null".into(), "/dev/tty".into()],
            // The second one does not exist yet.
            hidden: vec![at("home/.ssh"), at("home/.later")],
            network: false,
            namespaces: confinement::Namespaces::Shared,
        };
        let script = "cat home/.ssh/key; cat link/key; cat outside; ls home; echo later >home/.later; echo x >home/src/text; echo x >new
            kill -0 $PPID; cat home/src/text; echo work >work/a; mv work/a work/b; cat work/b; echo x >/dev/null && echo end"
            .replace("home/", &format!("{}/", at("home").display()));
        let argv = ["sh", "-c", &script].map(|word| word.as_bytes().to_vec());
        let program = Program::new(
            b"/bin/sh",
            &argv,
            &[b"PATH=/usr/bin:/bin".to_vec()],
            folder.path().as_os_str().as_encoded_bytes(),
            0o022,
        );
        let confined = confinement::Confinement::prepare(&rules, None).expect("this kernel can");
        let pty = Pty::open(80, 24).expect("a pty");
        on_terminal(&program.expect("no NUL").confined(confined), pty.follower.as_fd(), &[]).expect("started");
        drop(pty.follower);
        let (mut leader, mut shown) = (File::from(pty.leader), String::new());
        // EIO is the end of a terminal.
        let mut buffer = [0; 4096];
        loop {
            poll(&mut [PollFd::new(&leader, PollFlags::IN)], None).expect("polled");
            let Ok(count) = leader.read(&mut buffer) else { break };
            shown.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
        let refused = shown.lines().filter(|line| line.contains("ermission denied") || line.contains("not permitted"));
        assert_eq!((refused.count(), shown.lines().last()), (8, Some("end")), "{shown}");
        let lines: Vec<_> = shown.lines().filter(|line| !line.is_empty() && !line.contains(':')).collect();
        assert_eq!(lines, ["read", "work", "end"], "{shown}");
    }

    #[test]
    fn a_missing_program_and_a_missing_directory_have_different_errors() {
        let pty = Pty::open(80, 24).expect("a pty");
        let e = on_terminal(&program("/nonexistent", "/"), pty.follower.as_fd(), &[]).expect_err("no such program");
        assert_eq!((e.step, e.errno), (Step::Exec, libc::ENOENT));
        let e = on_terminal(&program("/bin/true", "/nonexistent"), pty.follower.as_fd(), &[]).expect_err("no such dir");
        assert_eq!((e.step, e.errno), (Step::Directory, libc::ENOENT));
    }
}
