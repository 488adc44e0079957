//! One pseudo-terminal pair: open, size, modes, foreground process group.
//!
//! The *leader* is our side, the *follower* the shell's (pty(7); older texts say master and slave).

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, ptsname, unlockpt};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Winsize, tcflush, tcgetattr, tcgetpgrp,
    tcsetattr, tcsetwinsize,
};

/// An open pair. Both descriptors are close-on-exec; the leader does not block.
#[derive(Debug)]
pub struct Pty {
    /// Our side.
    pub leader: OwnedFd,
    /// The shell's side; the holder drops it once the shell runs, so that a hang-up is noticed.
    pub follower: OwnedFd,
    /// The follower's path, such as `/dev/pts/7`.
    pub path: CString,
}

/// The terminal modes that matter for input (termios(3)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Modes {
    /// ICANON: input is delivered line by line, edited by the kernel.
    pub canonical: bool,
    /// ECHO: the kernel echoes input.
    pub echo: bool,
    /// ISIG: the interrupt characters raise signals.
    pub isig: bool,
    /// Not NOFLSH: they also discard unread input.
    pub flushes: bool,
    /// ICRNL: a carriage return is read as a newline. Line editors switch it off, other programs that read single keys
    /// mostly leave it on.
    pub maps_cr: bool,
    /// INLCR: a newline is read as a carriage return. Together with ICRNL it identifies zsh's line editor.
    pub maps_nl: bool,
    /// The character that ends a partial line (VEOF), 0 when switched off.
    pub eof: u8,
    /// The characters that edit or end a canonical line besides newline: VERASE, VKILL, VWERASE, VLNEXT, VINTR,
    /// VQUIT, VSUSP, VEOL, VEOL2, VREPRINT.
    pub specials: [u8; 10],
}

impl Pty {
    /// Opens a new pair of the given size (pts(4)).
    pub fn open(cols: u16, rows: u16) -> io::Result<Self> {
        let leader = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&leader)?;
        unlockpt(&leader)?;
        Self::of_leader(leader, cols, rows)
    }

    /// The same on another devpts file system, of which this is the `ptmx`.
    pub fn open_at(ptmx: &std::path::Path, cols: u16, rows: u16) -> io::Result<Self> {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let leader = rustix::fs::open(ptmx, flags, rustix::fs::Mode::empty())?;
        unlockpt(&leader)?;
        Self::of_leader(leader, cols, rows)
    }

    fn of_leader(leader: OwnedFd, cols: u16, rows: u16) -> io::Result<Self> {
        let path = ptsname(&leader, Vec::new())?;
        resize(leader.as_fd(), cols, rows)?;
        let follower = ioctl_tiocgptpeer(&leader, OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        // Like every UTF-8 terminal: erasing removes a whole character (termios(3)).
        let mut modes = tcgetattr(&follower)?;
        modes.input_modes |= InputModes::IUTF8;
        tcsetattr(&follower, OptionalActions::Now, &modes)?;
        let flags = rustix::fs::fcntl_getfl(&leader)?;
        rustix::fs::fcntl_setfl(&leader, flags | OFlags::NONBLOCK)?;
        Ok(Self { leader, follower, path })
    }
}

/// Sets the size; the kernel sends SIGWINCH to the foreground group if it changed (ioctl_tty(2), TIOCSWINSZ).
pub fn resize(leader: BorrowedFd<'_>, cols: u16, rows: u16) -> io::Result<()> {
    let size = Winsize { ws_row: rows, ws_col: cols, ws_xpixel: 0, ws_ypixel: 0 };
    Ok(tcsetwinsize(leader, size)?)
}

/// The follower's modes, read through the leader.
pub fn modes(leader: BorrowedFd<'_>) -> io::Result<Modes> {
    let t = tcgetattr(leader)?;
    let code = |index| t.special_codes[index];
    Ok(Modes {
        canonical: t.local_modes.contains(LocalModes::ICANON),
        echo: t.local_modes.contains(LocalModes::ECHO),
        isig: t.local_modes.contains(LocalModes::ISIG),
        flushes: !t.local_modes.contains(LocalModes::NOFLSH),
        maps_cr: t.input_modes.contains(InputModes::ICRNL),
        maps_nl: t.input_modes.contains(InputModes::INLCR),
        eof: code(SpecialCodeIndex::VEOF),
        specials: [
            code(SpecialCodeIndex::VERASE),
            code(SpecialCodeIndex::VKILL),
            code(SpecialCodeIndex::VWERASE),
            code(SpecialCodeIndex::VLNEXT),
            code(SpecialCodeIndex::VINTR),
            code(SpecialCodeIndex::VQUIT),
            code(SpecialCodeIndex::VSUSP),
            code(SpecialCodeIndex::VEOL),
            code(SpecialCodeIndex::VEOL2),
            code(SpecialCodeIndex::VREPRINT),
        ],
    })
}

/// The modes of another terminal, such as the one that script(1) gives its program.
pub fn modes_at(follower: &std::path::Path) -> io::Result<Modes> {
    modes(open_follower(follower)?.as_fd())
}

/// The number of unread input bytes (ioctl_tty(2), FIONREAD); only the follower has it.
///
/// A kernel worker delivers input to the line discipline and wakes the reader, some time after write(2). poll(2) on the
/// follower waits until that worker has done so (n_tty.c, `n_tty_poll`). So after this call every byte that was written
/// before it is counted here, or its reader is awake.
pub fn unread(leader: BorrowedFd<'_>) -> usize {
    follower_of(leader).map_or(0, |follower| unread_of(&follower))
}

/// The same of another terminal, by the path of its follower.
pub fn unread_at(follower: &std::path::Path) -> usize {
    open_follower(follower).map_or(0, |follower| unread_of(&follower))
}

fn unread_of(fd: &OwnedFd) -> usize {
    let _ = poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&Timespec::default()));
    rustix::io::ioctl_fionread(fd).map_or(0, |n| usize::try_from(n).unwrap_or(usize::MAX))
}

/// Discards unread input, as the line discipline does at a character that raises a signal (termios(3), NOFLSH):
/// undelivered input, and delivered input that was not read.
pub fn discard_typed(leader: BorrowedFd<'_>) -> io::Result<()> {
    tcflush(leader, QueueSelector::OFlush)?;
    Ok(tcflush(follower_of(leader)?, QueueSelector::IFlush)?)
}

/// By the leader (ioctl_tty(2), TIOCGPTPEER), because in a sandbox's devpts the path names another terminal than here.
fn follower_of(leader: BorrowedFd<'_>) -> rustix::io::Result<OwnedFd> {
    ioctl_tiocgptpeer(leader, OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
}

fn open_follower(follower: &std::path::Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::open(follower, flags, rustix::fs::Mode::empty())
}

/// The foreground process group, 0 if there is none (ioctl_tty(2), TIOCGPGRP).
pub fn foreground_group(leader: BorrowedFd<'_>) -> u32 {
    tcgetpgrp(leader).map_or(0, |p| p.as_raw_nonzero().get().unsigned_abs())
}

/// Sends a signal to the foreground process group from the terminal itself (TIOCSIG, drivers/tty/pty.c).
///
/// Unlike the interrupt *character*, this does not make the line discipline discard pending output.
pub fn signal_foreground(leader: BorrowedFd<'_>, signo: i32) -> io::Result<()> {
    /// `_IOW('T', 0x36, int)` of asm-generic/ioctls.h, the same on every architecture that we build for.
    const TIOCSIG: libc::c_ulong = 0x4004_5436;
    // SAFETY: TIOCSIG takes its argument by value and touches no memory of ours; the descriptor is open for the
    // length of the call because it is borrowed.
    let r = unsafe { libc::ioctl(leader.as_raw_fd(), TIOCSIG as _, signo as libc::c_ulong) };
    if r == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    // promise: ask-5
    fn typed_bytes_are_counted_as_soon_as_they_were_written() {
        let pty = Pty::open(80, 24).expect("a pseudoterminal");
        for round in 0..500 {
            rustix::io::write(&pty.leader, b"line\n").expect("it fits");
            assert_eq!(unread(pty.leader.as_fd()), 5, "round {round}");
            tcflush(&pty.follower, QueueSelector::IFlush).expect("a terminal");
        }
    }
}
