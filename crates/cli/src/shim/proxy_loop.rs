//! The poll loop: the host's lines to the server, the server's lines to the host, and another server when one dies.
//!
//! A server is looked for by a second thread: a server that hangs must not keep the host waiting. Reading stops while the other
//! side does not read, so memory is bounded in both directions.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::discovery::Discovery;
use super::handshake;
use super::lines::{Line, Lines};
use super::pending_requests::{Outgoing, PendingRequests};
use super::upgrade::{NotUpgraded, upgrade};
use super::write_buffer::WriteBuffer;

/// The size of one read: a whole answer of the usual budget.
const CHUNK: usize = 64 << 10;
/// Above this number of unsent bytes, their source is not read.
const UNSENT_MAX: usize = 1 << 20;
/// The bytes that a ready pipe accepts without blocking (PIPE_BUF); the host's pipes must not be made non-blocking.
const PIPE_BYTES: usize = 4_096;
/// How long the shim looks for a server.
const RECONNECT_MAX: Duration = Duration::from_secs(30);
/// The same before the first connection: a server that does not start now will not start later.
const FIRST_CONTACT_MAX: Duration = Duration::from_secs(3);
/// The first pause after a failure; it doubles.
const PAUSE_FIRST: Duration = Duration::from_millis(20);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// How long the server may take to say what it is, until the shim says it: hosts wait for 500 ms.
const DISCOVERY_PATIENCE: Duration = Duration::from_millis(300);
/// After the host closed stdin: time for pending answers (`printf … | ptyd mcp`), but not for waits.
const FAREWELL: Duration = Duration::from_millis(250);

/// Why the shim ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// The host closed stdin or stdout.
    HostClosed,
}

/// Carries lines until the host is gone; an error if no server can be reached.
pub(super) fn carry(
    connect: impl FnMut() -> io::Result<UnixStream> + Send + 'static,
    hello: &[u8],
    first_number: u64,
    discovery: &Discovery,
    stdin: impl AsFd,
    stdout: impl AsFd,
) -> io::Result<Ending> {
    let mut shim = Shim {
        connect: Arc::new(Mutex::new(connect)),
        hello,
        discovery,
        stdin: stdin.as_fd(),
        stdout: stdout.as_fd(),
        server: None,
        attempt: None,
        pending: PendingRequests::numbered_after(first_number),
        from_host: Lines::default(),
        from_server: Lines::default(),
        to_host: WriteBuffer::default(),
        to_server: WriteBuffer::default(),
        was_reached: false,
        trouble_since: None,
        next_try: Instant::now(),
        pause: PAUSE_FIRST,
        discovers_at: None,
        leaves_at: None,
    };
    loop {
        if let Some(ending) = shim.turn()? {
            return Ok(ending);
        }
    }
}

struct Shim<'a, C> {
    connect: Arc<Mutex<C>>,
    hello: &'a [u8],
    discovery: &'a Discovery,
    stdin: BorrowedFd<'a>,
    stdout: BorrowedFd<'a>,
    server: Option<UnixStream>,
    /// A server is being looked for.
    attempt: Option<Attempt>,
    pending: PendingRequests,
    from_host: Lines,
    from_server: Lines,
    to_host: WriteBuffer,
    to_server: WriteBuffer,
    /// Whether a server was ever reached.
    was_reached: bool,
    /// Since when no server has answered.
    trouble_since: Option<Instant>,
    /// When to look for a server again.
    next_try: Instant,
    /// The pause after that.
    pause: Duration,
    /// When the shim says what the server is, if that has not.
    discovers_at: Option<Instant>,
    /// The host closed stdin: the shim ends at this time.
    leaves_at: Option<Instant>,
}

/// The search for a server, on a thread of its own.
struct Attempt {
    /// Closed by the thread when there is a result.
    ends: UnixStream,
    result: mpsc::Receiver<Result<UnixStream, NotUpgraded>>,
}

impl<C: FnMut() -> io::Result<UnixStream> + Send + 'static> Shim<'_, C> {
    /// Begins to look for a server.
    fn look(&mut self) -> io::Result<()> {
        self.trouble_since.get_or_insert_with(Instant::now);
        let (ends, end) = UnixStream::pair()?;
        let (found, result) = mpsc::sync_channel(1);
        let connect = Arc::clone(&self.connect);
        let hello = handshake::with_read_positions(self.hello, &self.pending.read_to());
        std::thread::Builder::new().name("connect".to_owned()).spawn(move || {
            let stream = (connect.lock().unwrap_or_else(PoisonError::into_inner))();
            let _ = found.send(stream.map_err(NotUpgraded::unreached).and_then(|stream| upgrade(stream, &hello)));
            drop(end);
        })?;
        self.attempt = Some(Attempt { ends, result });
        Ok(())
    }

    /// Takes the server that was found, or prepares the next attempt; on success all open requests are sent (again).
    fn reach(&mut self, attempt: &Attempt) -> io::Result<()> {
        let since = *self.trouble_since.get_or_insert_with(Instant::now);
        let patience = if self.was_reached { RECONNECT_MAX } else { FIRST_CONTACT_MAX };
        let failed = || NotUpgraded::Never(io::Error::other("the search for a server failed; this is a bug"));
        let found = attempt.result.recv().unwrap_or_else(|_| Err(failed()));
        // The answers to what was on its way when the host closed stdin come only now.
        self.leaves_at = self.leaves_at.map(|_| Instant::now() + FAREWELL);
        match found {
            Ok(stream) => {
                // A partial line of the dead server is not continued by the next one.
                self.from_server.clear();
                // The first server gets what came while it was looked for, once and as it came.
                if self.was_reached {
                    let (lines, refusals) = self.pending.replay(since, Instant::now());
                    self.to_server.clear();
                    self.to_server.push(&lines);
                    self.to_host.push(&refusals);
                }
                self.server = Some(stream);
                self.was_reached = true;
                Ok(())
            }
            Err(NotUpgraded::Later(_)) if since.elapsed() < patience => {
                self.next_try = Instant::now() + self.pause;
                self.pause = (self.pause * 2).min(PAUSE_MAX);
                Ok(())
            }
            Err(NotUpgraded::Later(error) | NotUpgraded::Never(error)) => {
                // Every open request gets an error, because no answer will come.
                self.to_host.push(&self.pending.give_up(&error.to_string()));
                while !self.to_host.is_empty() && self.write_host().is_ok() {}
                Err(error)
            }
        }
    }

    /// The server is gone. Reconnecting to a server that ends each time uses pauses, too.
    fn lose_server(&mut self) {
        self.server = None;
        self.to_server.clear();
        if self.trouble_since.is_none() {
            self.pause = PAUSE_FIRST;
            self.next_try = Instant::now();
        } else {
            self.next_try = Instant::now() + self.pause;
            self.pause = (self.pause * 2).min(PAUSE_MAX);
        }
    }

    /// One poll, and the handling of its results.
    fn turn(&mut self) -> io::Result<Option<Ending>> {
        let now = Instant::now();
        let is_done = !self.pending.awaits() && self.to_host.is_empty() && self.to_server.is_empty();
        if self.attempt.is_none() && self.leaves_at.is_some_and(|at| is_done || now >= at) {
            return Ok(Some(Ending::HostClosed));
        }
        if self.server.is_none() && self.attempt.is_none() && now >= self.next_try {
            self.look()?;
        }
        if self.discovers_at.is_some_and(|at| now >= at) {
            self.discovers_at = None;
            let answers = self.pending.discover(self.discovery);
            self.to_host.push(&answers);
        }
        let reads_host = self.leaves_at.is_none() && self.to_server.len() < UNSENT_MAX;
        let found = self.poll(reads_host)?;
        let ended = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
        if found.stdout.intersects(PollFlags::ERR | PollFlags::NVAL) {
            return Ok(Some(Ending::HostClosed));
        }
        if found.attempt.intersects(PollFlags::IN | ended)
            && let Some(attempt) = self.attempt.take()
        {
            self.reach(&attempt)?;
        }
        if found.server.intersects(PollFlags::IN | ended) && !self.read_server() {
            self.lose_server();
        }
        if found.stdin.intersects(PollFlags::IN | ended) && !self.read_host()? {
            self.leaves_at = Some(Instant::now() + FAREWELL);
        }
        // Bytes just read are written in the same turn; a socket or pipe is almost always ready.
        if !self.to_server.is_empty() && self.server.is_some() && !self.write_server() {
            // Its last answers may still be there.
            while self.server.as_ref().is_some_and(|server| is_ready(server.as_fd(), PollFlags::IN))
                && self.read_server()
            {}
            self.lose_server();
        }
        if !self.to_host.is_empty() && is_ready(self.stdout, PollFlags::OUT) && self.write_host().is_err() {
            return Ok(Some(Ending::HostClosed));
        }
        Ok(None)
    }

    /// Waits until a descriptor is ready.
    fn poll(&self, reads_host: bool) -> io::Result<PollResult> {
        let wants = |is_wanted: bool, flag: PollFlags| if is_wanted { flag } else { PollFlags::empty() };
        let mut fds = Vec::with_capacity(3);
        fds.push(PollFd::from_borrowed_fd(self.stdout, wants(!self.to_host.is_empty(), PollFlags::OUT)));
        // There is an attempt only while there is no server.
        if let Some(attempt) = &self.attempt {
            fds.push(PollFd::new(&attempt.ends, PollFlags::IN));
        }
        // An unused descriptor is left out: a closed pipe would wake the loop again and again.
        if reads_host {
            fds.push(PollFd::from_borrowed_fd(self.stdin, PollFlags::IN));
        }
        let reads_server = self.to_host.len() < UNSENT_MAX;
        let server_flags = wants(reads_server, PollFlags::IN) | wants(!self.to_server.is_empty(), PollFlags::OUT);
        if let Some(server) = self.server.as_ref().filter(|_| !server_flags.is_empty()) {
            fds.push(PollFd::new(server, server_flags));
        }
        let (is_looking, has_server) = (self.attempt.is_some(), self.server.is_some());
        let next_try = Some(self.next_try).filter(|_| !has_server && !is_looking);
        let leaves_at = self.leaves_at.filter(|_| !is_looking);
        let wake = [leaves_at, next_try, self.discovers_at].into_iter().flatten().min();
        let timeout = wake.and_then(|at| Timespec::try_from(at.saturating_duration_since(Instant::now())).ok());
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut found = fds.iter().map(PollFd::revents);
        let stdout = found.next().unwrap_or(PollFlags::empty());
        let attempt = found.by_ref().take(usize::from(is_looking)).next().unwrap_or(PollFlags::empty());
        let stdin = found.by_ref().take(usize::from(reads_host)).next().unwrap_or(PollFlags::empty());
        Ok(PollResult { stdout, attempt, stdin, server: found.next().unwrap_or(PollFlags::empty()) })
    }

    /// `false` if the server is gone.
    fn read_server(&mut self) -> bool {
        let Some(server) = &self.server else { return false };
        let mut chunk = [MaybeUninit::uninit(); CHUNK];
        match rustix::io::read(server, &mut chunk) {
            Ok(([], _)) => return false,
            Ok((bytes, _)) => self.from_server.push(bytes),
            Err(Errno::INTR | Errno::AGAIN) => return true,
            Err(_) => return false,
        }
        while let Some(line) = self.from_server.next() {
            self.trouble_since = None;
            // The server sends no line that is too long.
            let Line::Whole(line) = line else { continue };
            if self.pending.incoming(&line) {
                self.to_host.line(&line);
            }
        }
        if self.discovers_at.is_some() && !self.pending.awaits_discovery() {
            self.discovers_at = None;
        }
        true
    }

    /// `false` if the host has closed its end.
    fn read_host(&mut self) -> io::Result<bool> {
        let mut chunk = [MaybeUninit::uninit(); CHUNK];
        match rustix::io::read(self.stdin, &mut chunk) {
            Ok(([], _)) | Err(Errno::IO | Errno::BADF) => return Ok(false),
            Ok((bytes, _)) => self.from_host.push(bytes),
            Err(Errno::INTR | Errno::AGAIN) => return Ok(true),
            Err(error) => return Err(error.into()),
        }
        while let Some(line) = self.from_host.next() {
            let (side, line) = match line {
                Line::Whole(line) => match self.pending.outgoing(line) {
                    Outgoing::Send(line) => (&mut self.to_server, line),
                    Outgoing::Refuse(line) => (&mut self.to_host, line),
                },
                Line::TooLong => (&mut self.to_host, too_long()),
            };
            side.line(&line);
        }
        if self.pending.awaits_discovery() {
            self.discovers_at.get_or_insert_with(|| Instant::now() + DISCOVERY_PATIENCE);
        }
        Ok(true)
    }

    /// `false` if the server is gone.
    fn write_server(&mut self) -> bool {
        let Some(server) = &self.server else { return false };
        match rustix::io::write(server, self.to_server.rest()) {
            Ok(n) => self.to_server.advance(n),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => return false,
        }
        true
    }

    fn write_host(&mut self) -> io::Result<()> {
        let rest = self.to_host.rest();
        match rustix::io::write(self.stdout, &rest[..rest.len().min(PIPE_BYTES)]) {
            Ok(n) => self.to_host.advance(n),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

/// The result of a poll.
struct PollResult {
    stdout: PollFlags,
    attempt: PollFlags,
    stdin: PollFlags,
    server: PollFlags,
}

/// Whether a read of it or a write to it would not block.
fn is_ready(fd: BorrowedFd<'_>, what: PollFlags) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(fd, what)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    // An error or a hang-up counts as ready: the write then reports it.
    poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0)
}

fn too_long() -> Vec<u8> {
    let limit = super::lines::LINE_BYTES_MAX;
    format!("{{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{{\"code\":-32600,\"message\":\"ptyd mcp: a line is longer than {limit} bytes\"}}}}")
        .into_bytes()
}
