//! The server's settings: directories, listeners and limits; each can be set on the command line or in the environment
//! (`PTYD_*`).

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub use ipnet::IpNet;

use crate::action::Limits;
use crate::limits;
use crate::syslog_address::SyslogAddress;
use crate::web_origin::WebOrigin;

/// The settings.
#[derive(Debug, Clone)]
pub struct Config {
    /// The HTTP listener, and who reaches it.
    pub network: NetworkConfig,
    /// The Unix socket; the default is `ptyd.sock` in the runtime directory.
    pub socket: PathBuf,
    /// The directory for sessions, token, store and log.
    pub state_dir: PathBuf,
    /// The files that the operator writes.
    pub files: OperatorFiles,
    /// The given bearer token; without it one is created and stored in the state directory.
    pub token: Option<String>,
    /// Journal bytes kept for each session.
    pub journal_bytes_max: u64,
    /// The `terminal` tool's soft timeout.
    pub soft_timeout: Duration,
    /// Calls that a client can take later are answered with a task after this time.
    pub task_grace: Duration,
    /// A task without a timeout ends after this long without output.
    pub task_quiet: Duration,
    /// A page takes the secrets that programs read, from a person.
    pub secret_page: bool,
    /// The default limits of a session.
    pub limits: Limits,
    /// The maximum limits of a session.
    pub limits_max: Limits,
    /// How long ended sessions can be read.
    pub retention_age: Duration,
    /// The disk space in bytes that they may take together.
    pub retention_bytes: u64,
    /// The disk space to keep free by removing the oldest ended sessions; 0 for none.
    pub retention_free: u64,
    /// Calls that take longer are logged, unless the caller asked to wait.
    pub slow_call: Duration,
    /// Requests per second per principal; 0 for no limit.
    pub requests_per_second: u32,
    /// Requests per second without a valid token, per listener; 0 for no limit.
    pub failures_per_second: u32,
    /// How many sessions may live.
    pub sessions_max: SessionsMax,
    /// The audit log.
    pub audit: AuditConfig,
}

/// The files that the operator writes; each is read again when it has changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OperatorFiles {
    /// The file with the profiles, if there is one.
    pub config: Option<PathBuf>,
    /// The file with the policies, if there is one.
    pub policies: Option<PathBuf>,
}

/// The settings of the HTTP listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkConfig {
    /// Its address. One that is not loopback needs a public URL, and TLS or a trusted proxy.
    pub listen: SocketAddr,
    /// The origin by which clients reach the server, if that is not the address.
    pub public_url: Option<WebOrigin>,
    /// The other origins whose web pages may use the server.
    pub allowed_origins: Vec<WebOrigin>,
    /// The files for TLS; without them the listener speaks plain HTTP.
    pub tls: Option<TlsFiles>,
    /// The proxies that may speak plain HTTP on an address that is not loopback.
    pub trusted_proxies: Vec<IpNet>,
    /// The number of this server among those behind one load balancer, which routes by it.
    pub node: u16,
    /// The URL of the directory that these servers share; without it, this server knows only its own sessions.
    pub redis: Option<String>,
    /// A file with the key under which these servers share their tokens by the directory.
    pub fleet_key: Option<PathBuf>,
    /// The address of each of those servers, with `{node}` for its number: this one forwards what is for another one.
    pub peers: Option<String>,
}

/// Stands in the address of the nodes for a node's number.
pub const NODE_IN_URL: &str = "{node}";

/// The files for TLS, in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's certificate, followed by those that lead to its authority.
    pub certificate: PathBuf,
    /// The certificate's private key.
    pub key: PathBuf,
}

impl NetworkConfig {
    /// Plain HTTP on this address, for this machine.
    pub fn of(listen: SocketAddr) -> Self {
        Self {
            listen,
            public_url: None,
            allowed_origins: Vec::new(),
            tls: None,
            trusted_proxies: Vec::new(),
            node: 0,
            redis: None,
            fleet_key: None,
            peers: None,
        }
    }

    /// The options without which this listener would carry tokens over a network in plain text, or have no name there.
    pub fn missing(&self) -> Vec<&'static str> {
        let mut missing = Vec::new();
        if self.listen.ip().to_canonical().is_loopback() {
            return missing;
        }
        if self.tls.is_none() && self.trusted_proxies.is_empty() {
            missing.push("--tls-cert and --tls-key, or --trusted-proxy");
        }
        if self.public_url.is_none() {
            missing.push("--public-url");
        }
        missing
    }
}

/// How many sessions may live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionsMax {
    /// In total.
    pub in_total: usize,
    /// Of one owner.
    pub per_owner: usize,
    /// Of one owner that is a named token.
    pub per_token: usize,
}

impl Default for SessionsMax {
    fn default() -> Self {
        Self {
            in_total: limits::SESSIONS_MAX,
            per_owner: limits::SESSIONS_PER_OWNER_MAX,
            per_token: limits::SESSIONS_PER_TOKEN_MAX,
        }
    }
}

/// The settings of the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditConfig {
    /// Whether it is kept, and what happens where it cannot be.
    pub mode: AuditMode,
    /// The size in bytes at which a file of it is full.
    pub bytes: u64,
    /// How many full ones are kept.
    pub files: u32,
    /// How long each is kept at least, where nothing runs that cannot be recorded.
    pub keep: Duration,
    /// The bytes that a named token may fill in an hour there.
    pub share: u64,
    /// The syslog server that gets its lines, too.
    pub syslog: Option<SyslogAddress>,
}

impl Default for AuditConfig {
    fn default() -> Self {
        let (mode, bytes, files) = (AuditMode::default(), limits::AUDIT_BYTES, limits::AUDIT_FILES);
        Self { mode, bytes, files, keep: limits::AUDIT_KEEP, share: limits::AUDIT_SHARE, syslog: None }
    }
}

/// How the audit log is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AuditMode {
    /// Nothing is started, run or typed that cannot be recorded.
    #[default]
    Required,
    /// Lines that cannot be written are counted.
    BestEffort,
    /// There is none.
    Off,
}

impl AuditMode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::Required, Self::BestEffort, Self::Off];

    /// Its name in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::BestEffort => "best-effort",
            Self::Off => "off",
        }
    }
}

impl Config {
    /// The defaults, with this state directory.
    pub fn of(listen: SocketAddr, socket: PathBuf, state_dir: PathBuf) -> Self {
        Self {
            network: NetworkConfig::of(listen),
            socket,
            state_dir,
            files: OperatorFiles::default(),
            token: None,
            journal_bytes_max: limits::JOURNAL_BYTES_MAX,
            soft_timeout: limits::SOFT_TIMEOUT,
            task_grace: limits::TASK_GRACE,
            task_quiet: limits::TASK_QUIET,
            secret_page: true,
            limits: Limits::default(),
            limits_max: Limits::default(),
            retention_age: limits::RETENTION_AGE,
            retention_bytes: limits::RETENTION_BYTES,
            retention_free: limits::RETENTION_FREE,
            slow_call: limits::SLOW_CALL,
            requests_per_second: limits::REQUESTS_PER_SECOND,
            failures_per_second: limits::FAILURES_PER_SECOND,
            sessions_max: SessionsMax::default(),
            audit: AuditConfig::default(),
        }
    }
}
