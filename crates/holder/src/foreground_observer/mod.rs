//! Collects the facts about the foreground: of all processes of a pipeline, and also of the job behind a program that runs
//! it on a terminal of its own and passes the keys on (script(1), sudo(8), `su --pty`). The rules about them are in the
//! crate `foreground`, which also says which fact is needed next.

use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use foreground::{
    EventLoop, Job, LoopLimit, Member, Missing, Modes, NESTED_MAX, Observation, PollCall, Process, Shell, THREADS_MAX,
    Terminal, Wait,
};
use sys::process::{self, Stat};
use sys::syscall::{self, Call};

/// How many processes of a job are examined.
const MEMBERS_MAX: usize = 256;
/// How many facts are fetched: each of an observation once, and of each of its terminals.
const FACTS_MAX: usize = 2 + 3 * (NESTED_MAX + 1);
/// How often the facts are collected for one observation while the modes change.
const LOOKS_MAX: usize = 4;
/// Major number of the followers' devices (devices.txt of the kernel's documentation).
const FOLLOWERS_MAJOR: u32 = 136;

/// The session's terminal, and the shell whose controlling terminal it is.
#[derive(Debug)]
pub(crate) struct Observer {
    tty: PathBuf,
    /// The shell has no line editor, or one without our private keys.
    takes_lines: bool,
}

impl Observer {
    pub(crate) fn new(tty: PathBuf, takes_lines: bool) -> Self {
        Self { tty, takes_lines }
    }

    /// The facts that decide now; `None` if the terminal is gone. A program sets the modes before it reads. If they change during an
    /// observation, the observer collects all facts again, because the old modes belong to no present reader.
    pub(crate) fn observe(&self, leader: BorrowedFd<'_>, shell: u32, quiet_us: u64) -> Option<Observation> {
        let mut look = self.look(leader, shell, quiet_us)?;
        for _ in 1..LOOKS_MAX {
            if !look.is_torn && modes(&sys::pty::modes(leader).ok()?) == look.seen.modes {
                break;
            }
            look = self.look(leader, shell, quiet_us)?;
        }
        Some(look.seen)
    }

    fn look(&self, leader: BorrowedFd<'_>, shell: u32, quiet_us: u64) -> Option<Look<'_>> {
        let modes = modes(&sys::pty::modes(leader).ok()?);
        let group = sys::pty::foreground_group(leader);
        let quiet_ms = foreground::quiet_step(quiet_us);
        let shell_itself = (group == shell).then(|| Shell {
            takes_lines: self.takes_lines,
            is_stopped: process::is_stopped(shell),
            process: self.shell_process(shell),
        });
        let seen = Observation { group, modes, quiet_ms, shell: shell_itself, ..Observation::default() };
        let mut look = Look { seen, shell, tty: &self.tty, all: Vec::new(), places: Vec::new(), is_torn: false };
        for _ in 0..FACTS_MAX {
            match foreground::missing(&look.seen) {
                Some(fact) => look.fetch(fact),
                None => break,
            }
        }
        Some(look)
    }

    /// The processes that may take keys from this shell, which has the terminal: they wait for it, too, and job control does not
    /// keep them from it.
    pub(crate) fn rivals(&self, shell: u32) -> Vec<u32> {
        let Some(ours) = process::stat(shell) else { return Vec::new() };
        let all = process::descendants(std::process::id(), MEMBERS_MAX).into_iter().filter_map(process::stat);
        let may_read = all.filter(|it| {
            let is_at_it = it.tty == 0 || it.tty == ours.tty;
            it.pid != shell && is_at_it && (it.session != ours.session || it.pgrp == ours.pgrp)
        });
        may_read.map(|it| it.pid).filter(|pid| observed(*pid, &self.tty).is_seen_to_wait()).collect()
    }

    /// The wait of the shell's own process.
    pub(crate) fn shell_process(&self, shell: u32) -> Process {
        observed(shell, &self.tty)
    }
}

/// The modes that the rules ask for.
pub(crate) fn modes(modes: &sys::pty::Modes) -> Modes {
    let sys::pty::Modes { canonical, echo, isig, maps_cr, maps_nl, .. } = *modes;
    Modes { canonical, echo, isig, maps_cr, maps_nl }
}

/// An observation that is being made.
struct Look<'a> {
    seen: Observation,
    shell: u32,
    tty: &'a Path,
    /// All processes of the job, on whichever terminal.
    all: Vec<Member>,
    /// The terminal of each job, and the processes that have it.
    places: Vec<(PathBuf, Vec<u32>)>,
    /// The modes of a further terminal have changed while its processes were examined.
    is_torn: bool,
}

impl Look<'_> {
    fn fetch(&mut self, fact: Missing) {
        match fact {
            Missing::Leader => {
                let leader = Some(observed(self.seen.group, self.tty)).filter(Process::may_wait);
                let processes = leader.into_iter().collect();
                self.seen.jobs.push(Job { modes: self.seen.modes, processes, ..Job::default() });
            }
            Missing::Others => self.fetch_members(),
            Missing::Nested(at) => {
                let nested = self.nested(at);
                if let Some(job) = self.seen.jobs.get_mut(at) {
                    job.has_nested = Some(nested.is_some());
                }
                self.seen.jobs.extend(nested);
            }
            Missing::Listening(at) => {
                let members = self.places.get(at).map_or(&[][..], |(_, members)| members);
                let listens = members.iter().any(|pid| process::listens(*pid));
                if let Some(job) = self.seen.jobs.get_mut(at) {
                    job.listens = Some(listens);
                }
            }
            Missing::EventLoop(at) => {
                let tty = self.places.get(at).map_or(self.tty, |(tty, _)| tty);
                if let Some(job) = self.seen.jobs.get_mut(at) {
                    job.event_loop = job.deciding_process().map(|process| event_loop(process.pid, tty));
                }
            }
        }
    }

    /// Examines every process of the foreground group.
    fn fetch_members(&mut self) {
        let all = process::descendants(std::process::id(), MEMBERS_MAX).into_iter().filter_map(process::stat);
        let all = all.filter(|s| s.state != b'Z').map(|s| member(&s));
        let members = foreground::members(all, self.seen.group, self.shell);
        let is_stopped = foreground::all_are_stopped(&members).unwrap_or_else(|| process::is_stopped(self.shell));
        if is_stopped {
            self.seen.stopped = Some(members.first().map_or(self.shell, |m| m.pid));
        }
        let ours = process::stat(self.shell).map_or(Terminal::None, |s| terminal(s.tty));
        let here = foreground::at_terminal(&members, ours);
        let job = if is_stopped { Job::default() } else { job(self.tty, &here) };
        self.seen.jobs = vec![Job { modes: self.seen.modes, ..job }];
        self.places = vec![(self.tty.to_owned(), here)];
        self.all = members;
    }

    /// The job on the terminal that the deciding process of this one has given to one of its descendants; `None` if there
    /// is no such terminal or it cannot be read.
    fn nested(&mut self, at: usize) -> Option<Job> {
        let outer = self.seen.jobs.get(at)?.deciding_process()?.pid;
        let inner = foreground::nested(&self.all, outer)?;
        let Terminal::Pseudo(number) = inner.terminal else { return None };
        let tty = PathBuf::from(format!("/dev/pts/{number}"));
        // The process may have a /dev of its own, in which this path is another terminal than here.
        let there = PathBuf::from(format!("/proc/{}/root{}", inner.pid, tty.display()));
        let modes = || Some(modes(&sys::pty::modes_at(&there).ok()?));
        let before = modes()?;
        // After this call, input that was passed on has woken its reader.
        sys::pty::unread_at(&there);
        let members = foreground::nested_job(&self.all, inner)?;
        let job = job(&tty, &members);
        self.places.push((tty, members));
        self.is_torn |= modes()? != before;
        Some(Job { modes: before, ..job })
    }
}

fn member(stat: &Stat) -> Member {
    let Stat { pid, ppid: parent, pgrp: group, session, foreground_group: foreground, .. } = *stat;
    let (terminal, is_stopped) = (terminal(stat.tty), stat.state == b'T');
    Member { pid, parent, group, session, terminal, foreground, is_stopped }
}

/// The terminal with this device number (`tty_nr` of proc(5)).
fn terminal(tty: u32) -> Terminal {
    let (major, minor) = ((tty >> 8) & 0xfff, (tty & 0xff) | ((tty >> 12) & 0xf_ff00));
    match major {
        FOLLOWERS_MAJOR => Terminal::Pseudo(minor),
        0 => Terminal::None,
        _ => Terminal::Other,
    }
}

/// The waits of these processes at their terminal.
fn job(tty: &Path, members: &[u32]) -> Job {
    let mut job = Job { is_whole: true, ..Job::default() };
    for process in members.iter().map(|pid| observed(*pid, tty)) {
        if process.may_wait() {
            job.processes.push(process);
        } else {
            job.has_others = true;
        }
    }
    job
}

/// The wait of a process at this terminal.
fn observed(pid: u32, tty: &Path) -> Process {
    let mut seen = Process { pid, first: wait(pid, pid, tty), ..Process::default() };
    if matches!(seen.first, Wait::Elsewhere | Wait::ForItself) {
        // Another thread may wait for the terminal; only the first ones of a program with very many are examined.
        let mut threads = Vec::new();
        process::for_each_task(pid, |tid| {
            if tid != pid && threads.len() < THREADS_MAX {
                threads.push(tid);
            }
        });
        let others = threads.into_iter().map(|tid| wait(pid, tid, tty));
        seen.others = others.filter(|wait| matches!(wait, Wait::Reads { .. } | Wait::Polls { .. })).collect();
    }
    if std::iter::once(&seen.first).chain(&seen.others).any(|wait| matches!(wait, Wait::Reads { .. })) {
        seen.has_connection = has_connection(pid);
    }
    seen
}

/// The wait of a thread.
fn wait(pid: u32, tid: u32, tty: &Path) -> Wait {
    let is_tty = |fd: &u64| syscall::is_terminal(pid, *fd, tty);
    let poll = |call, set: syscall::Set| {
        let terminal = set.fds.iter().filter(|fd| is_tty(fd)).count();
        let (count, others) = (u32::try_from(terminal), u32::try_from(set.fds.len() - terminal));
        let (terminal, others) = (count.unwrap_or(u32::MAX), others.unwrap_or(u32::MAX));
        if terminal == 0 { Wait::Elsewhere } else { Wait::Polls { call, terminal, others, limit_ms: set.limit_ms } }
    };
    let wait = match syscall::of(pid, tid) {
        Err(_) => return Wait::Hidden,
        Ok(Some(Call::Read { fd, bytes })) if is_tty(&fd) => Wait::Reads { bytes },
        Ok(Some(Call::Poll(set))) => poll(PollCall::Poll, set),
        Ok(Some(Call::Select(set))) => poll(PollCall::Select, set),
        Ok(Some(Call::Epoll(set))) => poll(PollCall::Epoll, set),
        Ok(Some(Call::Futex { is_endless: true } | Call::Signal { is_endless: true })) => return Wait::ForItself,
        Ok(_) => Wait::Elsewhere,
    };
    // The kernel shows the old call of a thread that was woken on another CPU until that CPU runs it.
    if wait == Wait::Elsewhere || !syscall::is_asleep(pid, tid) { Wait::Elsewhere } else { wait }
}

/// Whether a multi-threaded program also waits for a connection.
fn has_connection(pid: u32) -> bool {
    let mut threads = 0;
    process::for_each_task(pid, |_| threads += 1);
    let is = |target: &Path, kind: &[u8]| target.as_os_str().as_bytes().starts_with(kind);
    threads > 1
        && syscall::targets(pid)
            .filter(|(_, target)| is(target, b"anon_inode:[eventpoll]"))
            .any(|(epoll, _)| syscall::watched(pid, epoll).iter().any(|fd| is(&syscall::target(pid, *fd), b"socket:")))
}

/// A program that wakes up later than this shows nothing that moves.
const LONG_MS: u64 = 1_000;

/// The event loop of a process.
fn event_loop(pid: u32, tty: &Path) -> EventLoop {
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let (watched, limit) = match syscall::of(pid, pid) {
        Ok(Some(Call::Epoll(syscall::Set { fds, limit_ms: None }))) => (fds, LoopLimit::Endless),
        Ok(Some(Call::Epoll(syscall::Set { fds, limit_ms: Some(LONG_MS..) }))) => (fds, LoopLimit::Long),
        _ => return EventLoop::default(),
    };
    let mut seen = EventLoop { limit, ..EventLoop::default() };
    process::for_each_task(pid, |tid| {
        let is_idle = matches!(
            syscall::of(pid, tid),
            Ok(Some(Call::Futex { .. } | Call::Epoll(syscall::Set { limit_ms: None, .. })))
        );
        seen.working_threads += u32::from(tid != pid && !is_idle);
    });
    let mut children = Vec::new();
    process::children(pid, &mut children);
    seen.children = count(children.len());
    let targets: Vec<PathBuf> = syscall::targets(pid).map(|(_, target)| target).collect();
    let is_foreign = |fd: &u64| {
        let target = syscall::target(pid, *fd);
        match target.as_os_str().as_bytes() {
            b"anon_inode:[eventfd]" | b"anon_inode:[io_uring]" | b"anon_inode:[signalfd]" => false,
            // Both ends of the pipe are its own.
            pipe if pipe.starts_with(b"pipe:") => targets.iter().filter(|t| **t == target).count() < 2,
            _ => !syscall::is_terminal(pid, *fd, tty),
        }
    };
    seen.foreign = count(watched.iter().filter(|fd| is_foreign(fd)).count());
    seen
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]
mod tests;
