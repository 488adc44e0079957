//! Where the server keeps its things and how it listens; every value can be given on the command line or in the
//! environment (`PTYD_*`).

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The server's settings.
#[derive(Debug, Clone)]
pub struct Config {
    /// The HTTP listener; only loopback addresses are taken.
    pub listen: SocketAddr,
    /// The Unix socket; the default is `ptyd.sock` in the runtime directory.
    pub socket: PathBuf,
    /// Sessions, token, store, log.
    pub state_dir: PathBuf,
    /// The bearer token, if it was given; else it is made and kept in the state directory.
    pub token: Option<String>,
    /// Journal bytes kept for each session.
    pub journal_bytes_max: u64,
    /// The `terminal` tool's soft time-out.
    pub soft_timeout: Duration,
}
