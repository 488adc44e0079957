//! Moves the terminal's output into the journal without keeping bytes in memory that a kill could lose.
//!
//! splice(2) moves pages inside the kernel: leader → pipe → file. If it is refused, read(2) and write(2) do the same
//! with one buffer; the holder is not the process that is killed, so that is as safe, only slower.

use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use sys::fault::{self, ReadSizes};

/// Pipe size while the session is quiet: one page. Large pipes exhaust a per-user kernel budget (pipe(7)).
const PIPE_IDLE_BYTES: usize = 4 << 10;
/// Pipe size under a flood of output.
const PIPE_FLOOD_BYTES: usize = 256 << 10;
/// How much one turn moves at most, so that a flood never starves the control connections.
const TURN_BYTES_MAX: usize = 256 << 10;
/// Size of the fallback's buffer.
const BUFFER_BYTES: usize = 64 << 10;

/// The result of one turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// All output is in the journal.
    Drained,
    /// There is more.
    More,
    /// The journal cannot take more now; bytes already taken from the terminal wait in the pipe.
    Full(Errno),
    /// Another process has cut the journal, and nothing is written to it before what is missing is given up; bytes
    /// already taken from the terminal wait in the pipe.
    Cut,
    /// The terminal was hung up and all output is in the journal.
    HungUp,
}

#[derive(Debug)]
enum Transfer {
    /// Through this pipe: how many bytes are in it, and its size.
    Splice { read: OwnedFd, write: OwnedFd, inside: usize, size: usize },
    /// Through this buffer: `from` is the first byte not written yet.
    Copy { buffer: Vec<u8>, from: usize },
}

#[derive(Debug)]
pub(crate) struct Pump {
    way: Transfer,
    sizes: ReadSizes,
    /// Set when splice(2) was refused at run time, so that the holder can record it.
    pub(crate) refused: Option<Errno>,
}

impl Pump {
    pub(crate) fn new(may_splice: bool) -> Self {
        let pipe = may_splice.then(|| pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).ok()).flatten();
        let way = match pipe {
            Some((read, write)) => {
                let size = fcntl_setpipe_size(&write, PIPE_IDLE_BYTES).unwrap_or(PIPE_IDLE_BYTES);
                Transfer::Splice { read, write, inside: 0, size }
            }
            None => Transfer::Copy { buffer: Vec::new(), from: 0 },
        };
        Self { way, sizes: ReadSizes::of_environment(), refused: None }
    }

    /// Moves at most one turn's bytes, and no more than `most`.
    pub(crate) fn turn(&mut self, leader: BorrowedFd<'_>, journal: &mut journal::Writer, most: usize) -> Turn {
        let most = most.min(TURN_BYTES_MAX);
        let mut moved = 0;
        loop {
            if self.has_taken() && journal.is_cut() {
                return Turn::Cut;
            }
            if let Err(e) = self.empty_into(journal) {
                return Turn::Full(e);
            }
            if moved > 0 {
                fault::point("written");
            }
            if moved >= most || moved > 0 && self.sizes.are_random() {
                return Turn::More;
            }
            match self.fill_from(leader, most - moved) {
                Ok(0) => return Turn::HungUp,
                Ok(n) => {
                    moved += n;
                    fault::point("read");
                }
                Err(Errno::AGAIN | Errno::INTR) => return Turn::Drained,
                // Every descriptor of the follower is closed: read(2) on the leader fails with EIO (Linux, tty_io.c).
                Err(Errno::IO) => return Turn::HungUp,
                Err(e) if self.is_splice() => {
                    // The refused call moved nothing, so continue by copying.
                    self.refused = Some(e);
                    self.way = Transfer::Copy { buffer: Vec::new(), from: 0 };
                }
                Err(e) => return Turn::Full(e),
            }
        }
    }

    /// Frees the memory that a flood used; called when the session has been quiet.
    pub(crate) fn rest(&mut self) {
        match &mut self.way {
            Transfer::Splice { write, inside: 0, size, .. } if *size > PIPE_IDLE_BYTES => {
                *size = fcntl_setpipe_size(write, PIPE_IDLE_BYTES).unwrap_or(*size);
            }
            Transfer::Copy { buffer, .. } if buffer.is_empty() => *buffer = Vec::new(),
            Transfer::Splice { .. } | Transfer::Copy { .. } => {}
        }
    }

    /// Whether bytes from the terminal wait in the pipe or buffer.
    fn has_taken(&self) -> bool {
        match &self.way {
            Transfer::Splice { inside, .. } => *inside > 0,
            Transfer::Copy { buffer, from } => *from < buffer.len(),
        }
    }

    fn is_splice(&self) -> bool {
        matches!(self.way, Transfer::Splice { .. })
    }

    /// Moves up to `most` bytes from the terminal into the empty pipe or buffer.
    fn fill_from(&mut self, leader: BorrowedFd<'_>, most: usize) -> Result<usize, Errno> {
        match &mut self.way {
            Transfer::Splice { write, inside, size, .. } => {
                let most = self.sizes.next(*size).min(most);
                let n = splice(leader, None, &*write, None, most, SpliceFlags::NONBLOCK | SpliceFlags::MOVE)?;
                *inside += n;
                if n >= *size && *size < PIPE_FLOOD_BYTES {
                    *size = fcntl_setpipe_size(&*write, PIPE_FLOOD_BYTES).unwrap_or(*size);
                }
                Ok(n)
            }
            Transfer::Copy { buffer, from } => {
                buffer.resize(self.sizes.next(BUFFER_BYTES).min(most), 0);
                let read = rustix::io::read(leader, &mut buffer[..]);
                // The rest of the buffer (all of it after an error) holds no output.
                buffer.truncate(read.unwrap_or(0));
                *from = 0;
                read
            }
        }
    }

    /// Moves the whole pipe or buffer into the journal.
    fn empty_into(&mut self, journal: &mut journal::Writer) -> Result<(), Errno> {
        match &mut self.way {
            Transfer::Splice { read, inside, .. } => {
                while *inside > 0 {
                    let mut at = journal.end().0;
                    match splice(&*read, None, journal.fd(), Some(&mut at), *inside, SpliceFlags::MOVE) {
                        Ok(0) => return Err(Errno::NOSPC),
                        Ok(n) => {
                            journal.advance(n as u64);
                            *inside -= n;
                        }
                        Err(Errno::INTR) => {}
                        Err(e) => return Err(e),
                    }
                }
                Ok(())
            }
            Transfer::Copy { buffer, from } => {
                while *from < buffer.len() {
                    match journal.append(buffer.get(*from..).unwrap_or_default()) {
                        Ok(0) => return Err(Errno::NOSPC),
                        Ok(n) => *from += n,
                        Err(e) => return Err(Errno::from_io_error(&e).unwrap_or(Errno::IO)),
                    }
                }
                buffer.clear();
                *from = 0;
                Ok(())
            }
        }
    }
}

/// Whether splice(2) carries bytes unchanged from a terminal into a file of this folder; tested once per server.
pub fn splice_works(folder: &std::path::Path) -> bool {
    try_splice(folder).unwrap_or(false)
}

fn try_splice(folder: &std::path::Path) -> std::io::Result<bool> {
    use std::os::fd::AsFd;
    let pty = sys::pty::Pty::open(80, 24)?;
    let trial = folder.join(format!(".splice-{}", std::process::id()));
    std::fs::create_dir_all(&trial)?;
    let result = (|| {
        let mut journal = journal::Writer::create(&trial, journal::Retention::UNLIMITED)?;
        // Without a newline, so that the line discipline changes nothing.
        let sample: Vec<u8> = (0..2048u32).map(|i| b'a' + u8::try_from(i % 26).unwrap_or(0)).collect();
        rustix::io::write(&pty.follower, &sample)?;
        let mut pump = Pump::new(true);
        let deadline = sys::time::monotonic_us() + 500_000;
        while journal.end().0 < sample.len() as u64 && sys::time::monotonic_us() < deadline {
            let mut fds = [rustix::event::PollFd::new(&pty.leader, rustix::event::PollFlags::IN)];
            let wait = rustix::event::Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
            rustix::event::poll(&mut fds, Some(&wait))?;
            pump.turn(pty.leader.as_fd(), &mut journal, usize::MAX);
        }
        let came = std::fs::read(trial.join(journal::JOURNAL_FILE))?;
        Ok(came == sample && pump.is_splice())
    })();
    let _ = std::fs::remove_dir_all(&trial);
    result
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    // promise: end-2
    fn both_ways_carry_the_same_bytes_in_pieces_of_any_size() {
        for (may_splice, is_random) in [(true, false), (false, false), (true, true), (false, true)] {
            let dir = tempfile::tempdir().unwrap();
            let pty = sys::pty::Pty::open(80, 24).unwrap();
            let mut journal = journal::Writer::create(dir.path(), journal::Retention::UNLIMITED).unwrap();
            let mut pump = Pump::new(may_splice);
            if is_random {
                pump.sizes = ReadSizes::seeded(7);
            }
            let sample: Vec<u8> = (0..200_000u32).map(|i| b' ' + (i % 90) as u8).collect();
            let writer = std::thread::spawn({
                let sample = sample.clone();
                let follower = pty.follower;
                move || {
                    let mut rest = &sample[..];
                    while !rest.is_empty() {
                        let n = rustix::io::write(&follower, rest).unwrap();
                        rest = &rest[n..];
                    }
                }
            });
            loop {
                let mut fds = [rustix::event::PollFd::new(&pty.leader, rustix::event::PollFlags::IN)];
                rustix::event::poll(&mut fds, None).unwrap();
                let before = journal.end();
                let turn = pump.turn(pty.leader.as_fd(), &mut journal, usize::MAX);
                assert!(!is_random || journal.end().since(before) <= 4096, "one piece is one turn");
                if turn == Turn::HungUp {
                    break;
                }
            }
            writer.join().unwrap();
            assert!(
                std::fs::read(dir.path().join("journal")).unwrap() == sample,
                "splice: {may_splice}, random: {is_random}"
            );
        }
    }

    #[test]
    fn a_turn_that_finds_nothing_adds_nothing() {
        for may_splice in [true, false] {
            let dir = tempfile::tempdir().unwrap();
            let pty = sys::pty::Pty::open(80, 24).unwrap();
            let mut journal = journal::Writer::create(dir.path(), journal::Retention::UNLIMITED).unwrap();
            let mut pump = Pump::new(may_splice);
            for _ in 0..3 {
                assert_eq!(pump.turn(pty.leader.as_fd(), &mut journal, usize::MAX), Turn::Drained);
            }
            assert_eq!(journal.end().0, 0, "splice: {may_splice}");
        }
    }

    #[test]
    fn the_self_test_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        assert!(splice_works(dir.path()));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
