//! The session's terminal, and the shell whose controlling terminal it is.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use sys::pty::{self, Modes};

#[derive(Debug)]
pub(crate) struct Terminal {
    leader: OwnedFd,
    shell_pid: u32,
    cols: u16,
    rows: u16,
}

impl Terminal {
    pub(crate) fn new(leader: OwnedFd, shell_pid: u32, (cols, rows): (u16, u16)) -> Self {
        Self { leader, shell_pid, cols, rows }
    }

    pub(crate) fn leader(&self) -> BorrowedFd<'_> {
        self.leader.as_fd()
    }

    pub(crate) fn shell_pid(&self) -> u32 {
        self.shell_pid
    }

    /// Columns and rows.
    pub(crate) fn size(&self) -> (u16, u16) {
        (self.cols, self.rows)
    }

    pub(crate) fn resize(&mut self, cols: u16, rows: u16) -> io::Result<()> {
        pty::resize(self.leader.as_fd(), cols, rows)?;
        (self.cols, self.rows) = (cols, rows);
        Ok(())
    }

    pub(crate) fn modes(&self) -> Option<Modes> {
        pty::modes(self.leader.as_fd()).ok()
    }

    /// Whether the shell itself, and no program that it runs, is the foreground job.
    pub(crate) fn shell_is_foreground(&self) -> bool {
        pty::foreground_group(self.leader.as_fd()) == self.shell_pid
    }

    /// Writes to the terminal as a keyboard would. The leader does not block.
    pub(crate) fn write(&self, bytes: &[u8]) -> Result<usize, Errno> {
        rustix::io::write(&self.leader, bytes)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_recorded_only_if_the_kernel_accepted_it() {
        let pty = pty::Pty::open(80, 24).unwrap();
        let mut terminal = Terminal::new(pty.leader, 1, (80, 24));
        terminal.resize(100, 30).unwrap();
        assert_eq!(terminal.size(), (100, 30));
        assert!(terminal.modes().is_some_and(|modes| modes.echo), "a new terminal echoes");
        assert!(!terminal.shell_is_foreground(), "it has no foreground yet");
        let mut no_terminal = Terminal::new(std::fs::File::open("/dev/null").unwrap().into(), 1, (80, 24));
        assert!(no_terminal.resize(100, 30).is_err());
        assert_eq!(no_terminal.size(), (80, 24));
    }
}
