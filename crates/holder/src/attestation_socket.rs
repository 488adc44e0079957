//! The attestation socket: the shell's greeting goes out, its reports come in, each stamped by the kernel with its sender.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sys::socket::{self, Received};

#[derive(Debug)]
pub(crate) struct AttestationSocket {
    socket: OwnedFd,
    /// The other end is closed everywhere (`exec 97>&-`), so poll(2) would always report the socket as ready.
    is_hung_up: bool,
    /// Bytes still to be sent to the shell: the secret and the path of the staged command.
    greeting: VecDeque<u8>,
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

    /// Takes some of the datagrams that have come, each with the pid of its sender; true if there is none left.
    pub(crate) fn receive(&mut self, mut take: impl FnMut(u32, &[u8])) -> bool {
        let mut has_empty = false;
        let received = socket::receive(self.socket.as_fd(), |pid, bytes| match bytes {
            [] => has_empty = true,
            bytes => take(pid, bytes),
        });
        // An empty datagram from a child, or the end of the socket: only POLLHUP tells them apart.
        self.is_hung_up |= has_empty && self.reports_hang_up();
        self.is_hung_up || !received.is_ok_and(|received| received == Received::Part)
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
        let mut byte = [0; 8];
        for expected in [b"a", b"b"] {
            assert_eq!(rustix::io::read(&pair.theirs, &mut byte), Ok(1));
            assert_eq!(byte.first_chunk(), Some(expected));
        }
        let mut received = || {
            let mut all = Vec::new();
            while !ours.receive(|pid, bytes| all.push((pid, bytes.to_vec()))) {}
            (all, ours.polled().is_some())
        };
        assert_eq!(received(), (vec![], true));
        rustix::net::send(&pair.theirs, &[], rustix::net::SendFlags::empty()).unwrap();
        for report in [b"D", b"E", b"F"] {
            rustix::io::write(&pair.theirs, report).unwrap();
        }
        let of_ours = |report: &[u8]| (std::process::id(), report.to_vec());
        assert_eq!(received(), (vec![of_ours(b"D"), of_ours(b"E"), of_ours(b"F")], true));
        rustix::io::write(&pair.theirs, b"G").unwrap();
        drop(pair.theirs);
        assert_eq!(received(), (vec![of_ours(b"G")], false));
    }
}
