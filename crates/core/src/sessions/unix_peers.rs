//! The processes that connect to the Unix socket: a program in a session acts for the session's owner, and for nobody else.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use super::backends::Backends;
use super::session_metadata::SessionMetadata;
use crate::host::holders::ConnectedProcess;
use crate::principal::{PeerSession, UnixPeer};

/// Finds the session in whose tree a connected process is.
#[derive(Debug, Clone)]
pub struct UnixPeers {
    backends: Arc<Backends>,
}

impl UnixPeers {
    pub(super) fn new(backends: Arc<Backends>) -> Self {
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
}

fn session_of(backends: &Backends, process: &ConnectedProcess) -> io::Result<PeerSession> {
    let Some(id) = backends.holders.session_of(process)? else { return Ok(PeerSession::None) };
    let owner = SessionMetadata::decode(&backends.holders.folder(&id).spec()?.meta).owner;
    Ok(PeerSession::Of { session: id, owner })
}
