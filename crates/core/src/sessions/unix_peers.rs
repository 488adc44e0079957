//! The processes that connect to the Unix socket: a program in a session acts for the session's owner, and for nobody else.

use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use super::backends::Backends;
use super::session_metadata::SessionMetadata;
use crate::host::holders::ConnectedProcess;
use crate::principal::{PeerSession, Principal, UnixPeer};

/// Finds the session in whose tree a connected process is.
#[derive(Debug, Clone)]
pub struct UnixPeers {
    backends: Arc<Backends>,
}

impl UnixPeers {
    pub(crate) fn new(backends: Arc<Backends>) -> Self {
        Self { backends }
    }

    /// The process at the other end of a stream; `None` if the kernel does not name it.
    pub fn peer(&self, stream: BorrowedFd<'_>) -> impl Future<Output = Option<UnixPeer>> + Send + use<> {
        let process = ConnectedProcess::of(stream);
        let backends = Arc::clone(&self.backends);
        async move {
            let process = process.ok()?;
            let uid = process.uid;
            let session = tokio::task::spawn_blocking(move || session_of(&backends, &process)).await.ok()?;
            Some(UnixPeer { uid, session: session.unwrap_or(PeerSession::Unknown) })
        }
    }

    /// Whether the other end of a TCP connection belongs to processes of this user, none of which is in a session.
    pub async fn is_users_process(&self, uid: u32, peer: SocketAddr, server: SocketAddr) -> bool {
        let backends = Arc::clone(&self.backends);
        let is_it = move || {
            let processes = ConnectedProcess::over_tcp(peer, server);
            let is_outside = |process: &ConnectedProcess| {
                process.uid == uid && matches!(session_of(&backends, process), Ok(PeerSession::None))
            };
            !processes.is_empty() && processes.iter().all(is_outside)
        };
        tokio::task::spawn_blocking(is_it).await.unwrap_or(false)
    }
}

fn session_of(backends: &Backends, process: &ConnectedProcess) -> io::Result<PeerSession> {
    let Some(id) = backends.holders.session_of(process)? else { return Ok(PeerSession::None) };
    let folder = backends.holders.folder(&id);
    // Another server's session, or one that is removed: whose it is or was cannot be known, but that it is a session can.
    let owner = match folder.exists() {
        true => SessionMetadata::decode(&folder.spec()?.meta).owner,
        false => Principal::local().name,
    };
    Ok(PeerSession::Of { session: id, owner })
}
