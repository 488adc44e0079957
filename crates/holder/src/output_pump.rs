//! Moves the terminal's output into the journal without keeping bytes in memory that a kill could lose.
//!
//! A little output is copied with read(2) and write(2), which costs less than two splices and a page; a flood is spliced
//! inside the kernel: leader → pipe → file. The holder is not the process that is killed, so the buffer is as safe as
//! the pipe. If splice(2) is refused, everything is copied.

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
/// Size of the buffer for a little output.
const BUFFER_BYTES: usize = 4 << 10;
/// Size of the buffer for a flood where splice was refused.
const BUFFER_FLOOD_BYTES: usize = 64 << 10;
/// A read of less than this has taken what there was, and poll(2) reports what comes later. One of more may be a piece of
/// a flood, of which a turn moves as much as it can.
const LITTLE_BYTES: usize = 512;

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

/// How much of the terminal's output a turn moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// Until a read finds little: poll(2) reports what is left or comes later.
    Pause,
    /// Until a read finds nothing: then everything that was written before is moved.
    Empty,
}

/// The way of a flood.
#[derive(Debug)]
struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
    /// How many bytes are in it.
    inside: usize,
    size: usize,
}

#[derive(Debug)]
pub(crate) struct Pump {
    /// `None` where splice(2) is refused.
    pipe: Option<Pipe>,
    /// The bytes of the newest copy are those before `filled`. They are in the journal up to `written`. It keeps its length,
    /// because filling it with zeros for each read costs more than the read.
    buffer: Vec<u8>,
    filled: usize,
    written: usize,
    /// The newest read was a large one.
    is_flood: bool,
    sizes: ReadSizes,
    /// Set when splice(2) was refused at run time, so that the holder can record it.
    pub(crate) refused: Option<Errno>,
}

impl Pump {
    pub(crate) fn new(may_splice: bool) -> Self {
        let pipe = may_splice.then(|| pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).ok()).flatten();
        let pipe = pipe.map(|(read, write)| {
            let size = fcntl_setpipe_size(&write, PIPE_IDLE_BYTES).unwrap_or(PIPE_IDLE_BYTES);
            Pipe { read, write, inside: 0, size }
        });
        let sizes = ReadSizes::of_environment();
        Self { pipe, buffer: Vec::new(), filled: 0, written: 0, is_flood: false, sizes, refused: None }
    }

    /// Moves at most one turn's bytes, and no more than `most`.
    pub(crate) fn turn(
        &mut self,
        leader: BorrowedFd<'_>,
        journal: &mut journal::Writer,
        most: usize,
        until: Until,
    ) -> Turn {
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
            if moved > 0 && !self.is_flood && until == Until::Pause {
                return Turn::Drained;
            }
            match self.fill_from(leader, most - moved) {
                Ok(0) => return Turn::HungUp,
                Ok(n) => {
                    moved += n;
                    self.is_flood = n >= LITTLE_BYTES;
                    fault::point("read");
                }
                Err(Errno::AGAIN | Errno::INTR) => return Turn::Drained,
                // Every descriptor of the follower is closed: read(2) on the leader fails with EIO (Linux, tty_io.c).
                Err(Errno::IO) => return Turn::HungUp,
                Err(e) if self.is_flood && self.pipe.is_some() => {
                    // The refused call moved nothing, so continue by copying.
                    (self.pipe, self.refused) = (None, Some(e));
                }
                Err(e) => return Turn::Full(e),
            }
        }
    }

    /// The newest bytes of the journal, as far as they are still in memory.
    pub(crate) fn newest(&self) -> &[u8] {
        self.buffer.get(..self.written).unwrap_or_default()
    }

    /// Frees the memory that output used; called when the session has been quiet.
    pub(crate) fn rest(&mut self) {
        if let Some(Pipe { write, inside: 0, size, .. }) = &mut self.pipe
            && *size > PIPE_IDLE_BYTES
        {
            *size = fcntl_setpipe_size(write, PIPE_IDLE_BYTES).unwrap_or(*size);
        }
        if self.written == self.filled {
            (self.buffer, self.filled, self.written) = (Vec::new(), 0, 0);
        }
    }

    /// Whether bytes from the terminal wait in the pipe or buffer.
    fn has_taken(&self) -> bool {
        self.written < self.filled || self.pipe.as_ref().is_some_and(|pipe| pipe.inside > 0)
    }

    /// Moves up to `most` bytes from the terminal into the empty pipe or buffer.
    fn fill_from(&mut self, leader: BorrowedFd<'_>, most: usize) -> Result<usize, Errno> {
        (self.filled, self.written) = (0, 0);
        match &mut self.pipe {
            Some(Pipe { write, inside, size, .. }) if self.is_flood => {
                let most = self.sizes.next(*size).min(most);
                let n = splice(leader, None, &*write, None, most, SpliceFlags::NONBLOCK | SpliceFlags::MOVE)?;
                *inside += n;
                if n >= *size && *size < PIPE_FLOOD_BYTES {
                    *size = fcntl_setpipe_size(&*write, PIPE_FLOOD_BYTES).unwrap_or(*size);
                }
                Ok(n)
            }
            pipe => {
                let size = if self.is_flood && pipe.is_none() { BUFFER_FLOOD_BYTES } else { BUFFER_BYTES };
                let most = self.sizes.next(size).min(most);
                if self.buffer.len() < most {
                    self.buffer.resize(most, 0);
                }
                self.filled = rustix::io::read(leader, self.buffer.get_mut(..most).unwrap_or_default())?;
                Ok(self.filled)
            }
        }
    }

    /// Moves the whole pipe or buffer into the journal.
    fn empty_into(&mut self, journal: &mut journal::Writer) -> Result<(), Errno> {
        if let Some(Pipe { read, inside, .. }) = &mut self.pipe {
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
        }
        while let Some(rest) = self.buffer.get(self.written..self.filled).filter(|rest| !rest.is_empty()) {
            match journal.append(rest) {
                Ok(0) => return Err(Errno::NOSPC),
                Ok(n) => self.written += n,
                Err(e) => return Err(Errno::from_io_error(&e).unwrap_or(Errno::IO)),
            }
        }
        Ok(())
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
        pump.is_flood = true;
        let deadline = sys::time::monotonic_us() + 500_000;
        while journal.end().0 < sample.len() as u64 && sys::time::monotonic_us() < deadline {
            let mut fds = [rustix::event::PollFd::new(&pty.leader, rustix::event::PollFlags::IN)];
            let wait = rustix::event::Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
            rustix::event::poll(&mut fds, Some(&wait))?;
            pump.turn(pty.leader.as_fd(), &mut journal, usize::MAX, Until::Empty);
        }
        let came = std::fs::read(trial.join(journal::JOURNAL_FILE))?;
        Ok(came == sample && pump.pipe.is_some())
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
                let turn = pump.turn(pty.leader.as_fd(), &mut journal, usize::MAX, Until::Pause);
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
                assert_eq!(pump.turn(pty.leader.as_fd(), &mut journal, usize::MAX, Until::Pause), Turn::Drained);
            }
            assert_eq!(journal.end().0, 0, "splice: {may_splice}");
        }
    }

    #[test]
    fn a_little_output_is_one_read_and_stays_in_memory_and_until_empty_nothing_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let pty = sys::pty::Pty::open(80, 24).unwrap();
        let mut journal = journal::Writer::create(dir.path(), journal::Retention::UNLIMITED).unwrap();
        let mut pump = Pump::new(true);
        rustix::io::write(&pty.follower, b"little").unwrap();
        assert_eq!(pump.turn(pty.leader.as_fd(), &mut journal, usize::MAX, Until::Pause), Turn::Drained);
        assert_eq!((pump.newest(), journal.end().0), (&b"little"[..], 6));
        rustix::io::write(&pty.follower, &[b'x'; 3000]).unwrap();
        assert_eq!(pump.turn(pty.leader.as_fd(), &mut journal, usize::MAX, Until::Empty), Turn::Drained);
        assert_eq!((pump.newest(), journal.end().0), (&b""[..], 3006));
        pump.rest();
        assert_eq!(pump.buffer.capacity(), 0);
    }

    #[test]
    fn the_self_test_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        assert!(splice_works(dir.path()));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
