//! Where the server keeps its things and how it listens; every value can be given on the command line or in the
//! environment (`PTYD_*`).

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::action::Limits;
use crate::limits;

/// The server's settings.
#[derive(Debug, Clone)]
pub struct Config {
    /// The HTTP listener; only loopback addresses are taken.
    pub listen: SocketAddr,
    /// The Unix socket; the default is `ptyd.sock` in the runtime directory.
    pub socket: PathBuf,
    /// Sessions, token, store, log.
    pub state_dir: PathBuf,
    /// Where profiles are read from, if anywhere.
    pub config_file: Option<PathBuf>,
    /// The bearer token, if it was given; else it is made and kept in the state directory.
    pub token: Option<String>,
    /// Journal bytes kept for each session.
    pub journal_bytes_max: u64,
    /// The `terminal` tool's soft time-out.
    pub soft_timeout: Duration,
    /// What a session may use, and how long it may live, unless it is started otherwise.
    pub limits: Limits,
    /// What none may be started beyond.
    pub limits_max: Limits,
    /// How long ended sessions can be read.
    pub retention_age: Duration,
    /// How many bytes on the disk they may take together.
    pub retention_bytes: u64,
    /// What of the disk is to stay free, else the oldest ended sessions go; 0 is nothing.
    pub retention_free: u64,
    /// A call that takes longer is logged, where its caller did not ask to wait.
    pub slow_call: Duration,
    /// Requests a second of one principal; 0 is no limit.
    pub requests_per_second: u32,
    /// Requests a second without a good token, at one listener; 0 is no limit.
    pub failures_per_second: u32,
    /// Sessions that are alive at once, in all.
    pub sessions_max: usize,
    /// The same for one owner.
    pub sessions_per_owner_max: usize,
}

impl Config {
    /// The defaults, for a server that keeps its things here.
    pub fn of(listen: SocketAddr, socket: PathBuf, state_dir: PathBuf) -> Self {
        Self {
            listen,
            socket,
            state_dir,
            config_file: None,
            token: None,
            journal_bytes_max: limits::JOURNAL_BYTES_MAX,
            soft_timeout: limits::SOFT_TIMEOUT,
            limits: Limits::default(),
            limits_max: Limits::default(),
            retention_age: limits::RETENTION_AGE,
            retention_bytes: limits::RETENTION_BYTES,
            retention_free: limits::RETENTION_FREE,
            slow_call: limits::SLOW_CALL,
            requests_per_second: limits::REQUESTS_PER_SECOND,
            failures_per_second: limits::FAILURES_PER_SECOND,
            sessions_max: limits::SESSIONS_MAX,
            sessions_per_owner_max: limits::SESSIONS_PER_OWNER_MAX,
        }
    }
}
