//! The users behind connections over loopback, by the kernel's word.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::host::{Host, LocalHost};

/// Knows the users of the processes that connect to this server over TCP.
#[derive(Debug, Clone)]
pub struct PeerUsers {
    host: Arc<dyn Host>,
    /// The table of connections is long on some machines, and anybody here can make the server read it.
    turn: Arc<Semaphore>,
}

impl PeerUsers {
    /// Those of this machine, on which the server listens.
    pub fn here() -> Self {
        Self { host: Arc::new(LocalHost::default()), turn: Arc::new(Semaphore::new(1)) }
    }

    /// The user of the process at the other end of a connection; `None` if that is not certain.
    pub async fn user(&self, peer: SocketAddr, server: SocketAddr) -> Option<u32> {
        let _turn = self.turn.acquire().await.ok()?;
        let host = Arc::clone(&self.host);
        tokio::task::spawn_blocking(move || host.tcp_user(peer, server)).await.ok()?
    }
}
