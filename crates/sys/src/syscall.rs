//! The system call in which a thread is, with the descriptors and the time limit that it was given (proc(5), `syscall`).
//!
//! Everything here is a sample, as in [`crate::process`]. An ancestor may read this where other processes may not
//! (ptrace(2), access mode checks; Yama).

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A system call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    /// read(2) and its kin.
    Read {
        /// The descriptor.
        fd: u64,
        /// How many bytes are asked for; of readv(2) how many buffers.
        bytes: u64,
    },
    /// poll(2).
    Poll(Set),
    /// select(2), of which only the read set counts.
    Select(Set),
    /// epoll_wait(2).
    Epoll(Set),
    /// futex(2).
    Futex {
        /// It has no time limit.
        is_endless: bool,
    },
    /// sigsuspend(2), pause(2) or sigtimedwait(2).
    Signal {
        /// It has no time limit.
        is_endless: bool,
    },
    /// Another one.
    Other,
}

/// The descriptors that a call waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Set {
    /// At most [`FDS_MAX`], except those of an epoll instance.
    pub fds: Vec<u64>,
    /// The time limit in milliseconds; `None` without one, and where it cannot be read.
    pub limit_ms: Option<u64>,
}

/// How many descriptors of one poll or select are read.
pub const FDS_MAX: usize = 1024;

/// The call of a thread; `None` if it runs, an error if it may not be examined or is gone.
///
/// The kernel shows the old call of a thread that was woken on another CPU until that CPU runs it: [`is_asleep`] knows.
pub fn of(pid: u32, tid: u32) -> io::Result<Option<Call>> {
    let line = fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall"))?;
    let mut words = line.split_ascii_whitespace();
    let Some(number) = words.next().and_then(|w| w.parse::<i64>().ok()) else { return Ok(None) };
    let mut arguments = [u64::MAX; 5];
    for (argument, word) in arguments.iter_mut().zip(words) {
        *argument = u64::from_str_radix(word.trim_start_matches("0x"), 16).unwrap_or(u64::MAX);
    }
    let [a, b, c, d, e] = arguments;
    let number = if number == libc::SYS_restart_syscall { restarted(pid, tid) } else { number };
    let set = |fds, limit| Set { fds, limit_ms: limit_ms(pid, number, limit) };
    Ok(Some(match number {
        libc::SYS_read | libc::SYS_readv | libc::SYS_pread64 => Call::Read { fd: a, bytes: c },
        libc::SYS_ppoll => Call::Poll(set(polled(pid, a, b), c)),
        libc::SYS_pselect6 => Call::Select(set(selected(pid, a, b), e)),
        libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => Call::Epoll(set(watched(pid, a), d)),
        libc::SYS_futex => Call::Futex { is_endless: d == 0 },
        libc::SYS_rt_sigtimedwait => Call::Signal { is_endless: c == 0 },
        libc::SYS_rt_sigsuspend => Call::Signal { is_endless: true },
        // The older calls do not exist on every architecture.
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll => Call::Poll(set(polled(pid, a, b), c)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_select => Call::Select(set(selected(pid, a, b), e)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_epoll_wait => Call::Epoll(set(watched(pid, a), d)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_pause => Call::Signal { is_endless: true },
        _ => Call::Other,
    }))
}

/// The call that a thread goes on with after it was stopped or frozen in it. The kernel shows restart_syscall(2), with the arguments of the
/// interrupted call, and tells by the place where the thread sleeps which one that was.
fn restarted(pid: u32, tid: u32) -> i64 {
    let place = fs::read_to_string(format!("/proc/{pid}/task/{tid}/wchan")).unwrap_or_default();
    match place {
        #[cfg(target_arch = "x86_64")]
        place if place.contains("poll") => libc::SYS_poll,
        place if place.contains("futex") => libc::SYS_futex,
        _ => libc::SYS_restart_syscall,
    }
}

/// Whether a thread sleeps interruptibly: the state `S` of proc_pid_stat(5), which a woken thread no longer has.
pub fn is_asleep(pid: u32, tid: u32) -> bool {
    let raw = fs::read(format!("/proc/{pid}/task/{tid}/stat")).unwrap_or_default();
    raw.iter().rposition(|b| *b == b')').and_then(|close| raw.get(close + 2)) == Some(&b'S')
}

/// The file of a descriptor: a path, or a name such as `socket:[7]` (proc_pid_fd(5)); empty if it cannot be read.
pub fn target(pid: u32, fd: u64) -> PathBuf {
    fs::read_link(format!("/proc/{pid}/fd/{fd}")).unwrap_or_default()
}

/// The files of all descriptors of a process.
pub fn targets(pid: u32) -> impl Iterator<Item = (u64, PathBuf)> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let fds = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    fds.map(move |fd| (fd, target(pid, fd)))
}

/// Whether this descriptor is the terminal with this path, also by the name of a controlling terminal.
pub fn is_terminal(pid: u32, fd: u64, tty: &Path) -> bool {
    let target = target(pid, fd);
    target == tty || target.as_os_str().as_bytes() == b"/dev/tty"
}

/// The descriptors that an epoll instance watches (`tfd:` lines of `/proc/<pid>/fdinfo/<fd>`).
pub fn watched(pid: u32, epoll: u64) -> Vec<u64> {
    let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{epoll}")).unwrap_or_default();
    info.lines()
        .filter_map(|l| l.strip_prefix("tfd:"))
        .filter_map(|l| l.split_ascii_whitespace().next().and_then(|n| n.parse().ok()))
        .collect()
}

/// The time limit of a wait: milliseconds in the older calls, a `struct timespec` or `timeval` in the others.
fn limit_ms(pid: u32, call: i64, limit: u64) -> Option<u64> {
    let (is_milliseconds, is_timeval) = match call {
        libc::SYS_epoll_pwait => (true, false),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_epoll_wait | libc::SYS_poll => (true, false),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_select => (false, true),
        _ => (false, false),
    };
    if is_milliseconds {
        // An int, for which the kernel shows all 64 bits of the register; negative without a limit.
        return u64::try_from(limit as i32).ok();
    }
    if limit == 0 {
        return None;
    }
    let bytes = memory(pid, limit, 16);
    let number = |at| bytes.get(at..at + 8)?.try_into().ok().map(u64::from_ne_bytes);
    let (seconds, part) = (number(0)?, number(8)?);
    Some(seconds.saturating_mul(1_000).saturating_add(part / if is_timeval { 1_000 } else { 1_000_000 }))
}

fn memory(pid: u32, at: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    let read = fs::File::open(format!("/proc/{pid}/mem")).and_then(|f| f.read_at(&mut bytes, at)).unwrap_or(0);
    bytes.truncate(read);
    bytes
}

/// The descriptors in a `struct pollfd` array (poll(2)): 32 bits each, every eight bytes.
fn polled(pid: u32, array: u64, count: u64) -> Vec<u64> {
    let count = usize::try_from(count).unwrap_or(0).min(FDS_MAX);
    memory(pid, array, count * 8)
        .chunks_exact(8)
        .filter_map(|c| u64::try_from(i32::from_ne_bytes([c[0], c[1], c[2], c[3]])).ok())
        .collect()
}

/// The descriptors in the read set of select(2): one bit each.
fn selected(pid: u32, count: u64, set: u64) -> Vec<u64> {
    let count = usize::try_from(count).unwrap_or(0).min(FDS_MAX);
    let bits = memory(pid, set, count.div_ceil(8));
    (0..count).filter(|i| bits.get(i / 8).is_some_and(|b| b >> (i % 8) & 1 == 1)).map(|i| i as u64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_shown_with_its_descriptor_and_its_bytes() {
        use std::io::{Read, Write};
        let piped = std::process::Stdio::piped;
        let mut shell = std::process::Command::new("sh");
        let mut shell = shell.args(["-c", "echo; read x"]).stdin(piped()).stdout(piped()).spawn().expect("sh is there");
        let (mut input, mut output) = (shell.stdin.take().expect("piped"), shell.stdout.take().expect("piped"));
        output.read_exact(&mut [0]).expect("it has begun");
        while !is_asleep(shell.id(), shell.id()) {
            std::thread::yield_now();
        }
        let call = of(shell.id(), shell.id()).expect("a child of ours");
        // read(1) of POSIX takes no byte behind its line, so from a pipe one at a time.
        assert_eq!(call, Some(Call::Read { fd: 0, bytes: 1 }));
        assert!(target(shell.id(), 0).as_os_str().as_bytes().starts_with(b"pipe:"));
        assert!(!is_terminal(shell.id(), 0, Path::new("/dev/pts/0")));
        input.write_all(b"\n").expect("it reads");
        shell.wait().expect("it ends");
        assert!(of(shell.id(), shell.id()).is_err(), "it is gone");
    }

    #[test]
    fn a_wait_for_several_descriptors_is_shown_with_each_and_its_limit() {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().expect("a pair");
        let tid = std::sync::atomic::AtomicU32::new(0);
        std::thread::scope(|scope| {
            let (tid, theirs) = (&tid, &theirs);
            scope.spawn(move || {
                let me = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
                tid.store(me, std::sync::atomic::Ordering::SeqCst);
                let limit = Timespec { tv_sec: 77, tv_nsec: 5_000_000 };
                poll(&mut [PollFd::new(theirs, PollFlags::IN)], Some(&limit)).expect("it is woken");
            });
            let pid = std::process::id();
            let set = loop {
                let tid = tid.load(std::sync::atomic::Ordering::SeqCst);
                match of(pid, tid) {
                    Ok(Some(Call::Poll(set))) if is_asleep(pid, tid) => break set,
                    _ => std::thread::yield_now(),
                }
            };
            use std::os::fd::AsRawFd;
            let fd = u64::from(theirs.as_raw_fd().unsigned_abs());
            assert_eq!(set, Set { fds: vec![fd], limit_ms: Some(77_005) });
            drop(ours);
        });
    }
}
