//! Signals by name and number, and a descriptor that becomes readable when a signal is pending.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// The standard signals by name (signal(7)); the numbers are this architecture's.
pub const SIGNALS: [(&str, i32); 31] = [
    ("HUP", libc::SIGHUP),
    ("INT", libc::SIGINT),
    ("QUIT", libc::SIGQUIT),
    ("ILL", libc::SIGILL),
    ("TRAP", libc::SIGTRAP),
    ("ABRT", libc::SIGABRT),
    ("BUS", libc::SIGBUS),
    ("FPE", libc::SIGFPE),
    ("KILL", libc::SIGKILL),
    ("USR1", libc::SIGUSR1),
    ("SEGV", libc::SIGSEGV),
    ("USR2", libc::SIGUSR2),
    ("PIPE", libc::SIGPIPE),
    ("ALRM", libc::SIGALRM),
    ("TERM", libc::SIGTERM),
    ("STKFLT", libc::SIGSTKFLT),
    ("CHLD", libc::SIGCHLD),
    ("CONT", libc::SIGCONT),
    ("STOP", libc::SIGSTOP),
    ("TSTP", libc::SIGTSTP),
    ("TTIN", libc::SIGTTIN),
    ("TTOU", libc::SIGTTOU),
    ("URG", libc::SIGURG),
    ("XCPU", libc::SIGXCPU),
    ("XFSZ", libc::SIGXFSZ),
    ("VTALRM", libc::SIGVTALRM),
    ("PROF", libc::SIGPROF),
    ("WINCH", libc::SIGWINCH),
    ("IO", libc::SIGIO),
    ("PWR", libc::SIGPWR),
    ("SYS", libc::SIGSYS),
];

/// SIGINT.
pub const INT: i32 = libc::SIGINT;
/// SIGHUP.
pub const HUP: i32 = libc::SIGHUP;
/// SIGTERM.
pub const TERM: i32 = libc::SIGTERM;
/// SIGKILL.
pub const KILL: i32 = libc::SIGKILL;
/// SIGCONT.
pub const CONT: i32 = libc::SIGCONT;
/// SIGTSTP.
pub const TSTP: i32 = libc::SIGTSTP;
/// SIGCHLD.
pub const CHLD: i32 = libc::SIGCHLD;
/// SIGIO.
pub const IO: i32 = libc::SIGIO;
/// SIGPIPE.
pub const PIPE: i32 = libc::SIGPIPE;
/// SIGQUIT.
pub const QUIT: i32 = libc::SIGQUIT;

/// The highest signal number that kill(2) takes (SIGRTMAX of the kernel).
pub const SIGNO_MAX: i32 = 64;

/// The name without `SIG`, or `SIG<number>` for a real-time signal.
pub fn name(signo: i32) -> String {
    SIGNALS.iter().find(|(_, n)| *n == signo).map_or_else(|| format!("SIG{signo}"), |(name, _)| (*name).to_owned())
}

/// Parses `TERM`, `SIGTERM`, `sigterm` or `15`.
pub fn parse(text: &str) -> Option<i32> {
    if let Ok(n) = text.parse::<i32>() {
        return (1..=SIGNO_MAX).contains(&n).then_some(n);
    }
    let upper = text.to_ascii_uppercase();
    let bare = upper.strip_prefix("SIG").unwrap_or(&upper);
    SIGNALS.iter().find(|(name, _)| *name == bare).map(|(_, n)| *n)
}

/// Sends a signal to a process, or to a process group when `pid` is negative (kill(2)).
pub fn send(pid: i32, signo: i32) -> io::Result<()> {
    // SAFETY: kill(2) takes two numbers and touches no memory.
    if unsafe { libc::kill(pid, signo) } == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Ignores a signal in this process from now on (signal(2)); a spawned shell gets the defaults back.
pub fn ignore(signo: i32) {
    // SAFETY: SIG_IGN runs no code of ours, so there is no handler whose soundness could matter.
    unsafe { libc::signal(signo, libc::SIG_IGN) };
}

/// Blocks the signals and returns a descriptor that is readable while one of them is pending (signalfd(2)).
pub fn descriptor(signals: &[i32]) -> io::Result<OwnedFd> {
    // SAFETY: an all-zero sigset_t is a valid object; sigemptyset then initialises it, and every pointer is to
    // this local. signalfd returns a new descriptor with no other owner.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for s in signals {
            libc::sigaddset(&mut set, *s);
        }
        if libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) == -1 {
            return Err(io::Error::last_os_error());
        }
        let fd = libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if fd == -1 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Takes one pending signal's number from such a descriptor; `None` if there is none.
pub fn take(fd: &OwnedFd) -> Option<i32> {
    /// sizeof(struct signalfd_siginfo); the first field is the number (signalfd(2)).
    const SIGINFO_BYTES: usize = 128;
    let mut info = [0u8; SIGINFO_BYTES];
    match rustix::io::read(fd, &mut info[..]) {
        Ok(SIGINFO_BYTES) => Some(i32::from_ne_bytes([info[0], info[1], info[2], info[3]])),
        _ => None,
    }
}

/// Sends this process [`IO`] whenever something is removed from the folder, as long as the descriptor is open
/// (fcntl(2), F_NOTIFY). Unblocked, that signal ends a process.
pub fn on_removals(folder: BorrowedFd<'_>) -> io::Result<()> {
    /// From linux/fcntl.h: something was removed; report it each time.
    const DN_DELETE: libc::c_int = 0x8;
    const DN_MULTISHOT: libc::c_int = 0x8000_0000_u32.cast_signed();
    // SAFETY: this fcntl takes two numbers and touches no memory of ours; the descriptor is open because it is borrowed.
    let asked = unsafe { libc::fcntl(folder.as_raw_fd(), libc::F_NOTIFY, DN_DELETE | DN_MULTISHOT) };
    if asked == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The signal that ended a process with this wait status; `None` if it exited (wait(2)).
pub fn of_wait_status(status: i32) -> Option<i32> {
    let signo = status & 0x7f;
    (signo != 0 && signo != 0x7f).then_some(signo)
}

/// The signal that a shell's exit code above 128 means, if it means one.
pub fn of_exit_code(code: i32) -> Option<i32> {
    (129..=128 + SIGNO_MAX).contains(&code).then(|| code - 128)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_known_by_name_with_and_without_sig_and_by_number() {
        assert_eq!([parse("TERM"), parse("sigterm"), parse("15")], [Some(15); 3]);
        assert_eq!([parse("NOPE"), parse("0"), parse("65"), parse("")], [None; 4]);
        assert_eq!(name(9), "KILL");
    }
}
