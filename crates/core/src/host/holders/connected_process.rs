//! The process at the other end of a connection to the server's Unix socket, as the kernel reports it.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd};

#[derive(Debug)]
pub(crate) struct ConnectedProcess {
    /// Its user.
    pub(crate) uid: u32,
    /// Its number; `None` for a process outside of this namespace of pids, about which nothing is known.
    pid: Option<u32>,
    /// Before Linux 6.5 there is none; then a process whose number is in use again could be taken for it.
    process: Option<OwnedFd>,
}

impl ConnectedProcess {
    pub(crate) fn of(stream: BorrowedFd<'_>) -> io::Result<Self> {
        let peer = sys::socket::peer(stream)?;
        let process = sys::socket::peer_process(stream).ok();
        Ok(Self { uid: peer.uid, pid: Some(peer.pid).filter(|pid| *pid != 0), process })
    }

    /// The processes that have the other end of a TCP connection open. Blocks.
    pub(crate) fn over_tcp(peer: SocketAddr, server: SocketAddr) -> Vec<Self> {
        let Some(uid) = sys::process::tcp_user(peer, server) else { return Vec::new() };
        let holders = sys::process::tcp_holders(peer, server).into_iter();
        holders.map(|pid| Self { uid, pid: Some(pid), process: None }).collect()
    }

    /// Whether it is in the pid namespace of this server. Blocks.
    pub(super) fn is_in_own_pid_namespace(&self) -> bool {
        // Of one that `/proc` hides nothing is known but that it is not further outside.
        self.pid.is_some_and(|pid| sys::process::is_in_own_pid_namespace(pid).unwrap_or(true))
    }

    /// Itself and the ancestors that it has here, the nearest first; an error if it has ended. Blocks.
    pub(super) fn lineage(&self) -> io::Result<Vec<u32>> {
        let Some(pid) = self.pid else { return Ok(Vec::new()) };
        let mut found = vec![pid];
        found.extend(sys::process::ancestors(pid).ok_or(io::ErrorKind::NotFound)?);
        match self.process.as_ref().is_some_and(sys::socket::has_ended) {
            true => Err(io::ErrorKind::NotFound.into()),
            false => Ok(found),
        }
    }
}
