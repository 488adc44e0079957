//! The attestation socket: the shell's greeting goes out, its reports come in, each stamped by the kernel with its sender.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sys::socket;

/// The longest datagram: bash flushes its output when its buffer is full, which is BUFSIZ at most (stdio.h).
pub(crate) const DATAGRAM_BYTES_MAX: usize = 8192;

#[derive(Debug)]
pub(crate) struct AttestationSocket {
    socket: OwnedFd,
    /// The other end is closed everywhere (`exec 97>&-`), so poll(2) would always report the socket as ready.
    is_hung_up: bool,
    /// Bytes still to be sent to the shell: the secret and the path of the staged command.
    greeting: VecDeque<u8>,
}

/// The result of one receive call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Received<'b> {
    /// Nothing has arrived, or nothing ever will.
    Nothing,
    /// A datagram without bytes, which any process may send.
    Empty,
    /// The pid of its sender, and its bytes.
    Datagram(u32, &'b [u8]),
}

impl AttestationSocket {
    pub(crate) fn new(socket: OwnedFd, greeting: VecDeque<u8>) -> Self {
        Self { socket, is_hung_up: false, greeting }
    }

    /// Sends one byte per datagram: bash reads this socket one byte at a time, and the kernel drops the rest of a
    /// datagram that was read in part.
    pub(crate) fn greet(&mut self) {
        while let Some(byte) = self.greeting.front() {
            match rustix::net::send(&self.socket, &[*byte], rustix::net::SendFlags::DONTWAIT) {
                Ok(_) => {
                    self.greeting.pop_front();
                }
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => break,
                Err(_) => self.greeting.clear(),
            }
        }
    }

    /// The socket with its events, unless it is closed at the other end.
    pub(crate) fn polled(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        let unsent = if self.greeting.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
        (!self.is_hung_up).then(|| (self.socket.as_fd(), PollFlags::IN | unsent))
    }

    pub(crate) fn receive<'b>(&mut self, buffer: &'b mut [u8]) -> Received<'b> {
        let Ok(Some(datagram)) = socket::receive(self.socket.as_fd(), buffer) else { return Received::Nothing };
        if datagram.len > 0 {
            return Received::Datagram(datagram.pid, buffer.get(..datagram.len).unwrap_or_default());
        }
        // An empty datagram from a child, or the end of the socket: only POLLHUP tells them apart.
        self.is_hung_up = self.reports_hang_up();
        if self.is_hung_up { Received::Nothing } else { Received::Empty }
    }

    fn reports_hang_up(&self) -> bool {
        let mut fds = [PollFd::new(&self.socket, PollFlags::empty())];
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok()
            && fds.iter().any(|fd| fd.revents().contains(PollFlags::HUP))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_socket_is_polled_no_more_and_an_empty_datagram_closes_nothing() {
        let pair = socket::Attestation::pair().unwrap();
        let mut ours = AttestationSocket::new(pair.ours, b"ab".to_vec().into());
        ours.greet();
        let (mut buffer, mut byte) = ([0; DATAGRAM_BYTES_MAX], [0; 8]);
        for expected in [b"a", b"b"] {
            assert_eq!(rustix::io::read(&pair.theirs, &mut byte), Ok(1));
            assert_eq!(byte.first_chunk(), Some(expected));
        }
        assert_eq!(ours.receive(&mut buffer), Received::Nothing);
        rustix::net::send(&pair.theirs, &[], rustix::net::SendFlags::empty()).unwrap();
        rustix::io::write(&pair.theirs, b"D").unwrap();
        assert_eq!(ours.receive(&mut buffer), Received::Empty);
        assert_eq!(ours.receive(&mut buffer), Received::Datagram(std::process::id(), b"D"));
        assert!(ours.polled().is_some());
        drop(pair.theirs);
        assert_eq!(ours.receive(&mut buffer), Received::Nothing);
        assert!(ours.polled().is_none());
    }
}
