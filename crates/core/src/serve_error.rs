//! Why the server cannot start.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::action::ActionError;
use crate::limits::{FLEET_KEY_BYTES_MIN, SOCKET_PATH_BYTES_MAX};

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Another server uses the state directory.
    #[error("another ptyd (pid {pid}) serves {}; use that one, stop it, or choose another --state-dir", .state_dir.display())]
    Taken {
        /// The other server's pid.
        pid: String,
        /// The locked directory.
        state_dir: PathBuf,
    },
    /// Others could reach the address, and options that protect it are missing.
    #[error("{address} is not a loopback address, so other machines can reach it: it needs {}; see docs/proxy.md", .missing.join(", and "))]
    Unprotected {
        /// The address.
        address: SocketAddr,
        /// The options.
        missing: Vec<&'static str>,
    },
    /// The certificate or its key cannot be used.
    #[error("the certificate {} with the key {} cannot be used: {why}", .certificate.display(), .key.display())]
    Tls {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// The reason.
        why: String,
    },
    /// The directory's URL cannot be used.
    #[error("--redis: {why}; give a URL such as redis://HOST:6379, or rediss:// with TLS")]
    Directory {
        /// The reason.
        why: String,
    },
    /// Another instance serves as this node.
    #[error("another server (instance {instance}) serves as node {node}; stop it, or choose another --node")]
    NodeTaken {
        /// The number.
        node: u16,
        /// The other instance.
        instance: String,
    },
    /// The file has no key of a fleet.
    #[error("{} has no key of at least {FLEET_KEY_BYTES_MIN} bytes; make one with `openssl rand -hex 32`, the same for all nodes", .0.display())]
    FleetKey(PathBuf),
    /// Other users can read the key of the fleet.
    #[error("everybody can read or change {path}, the key of the fleet; change its mode (chmod o= {path})", path = .0.display())]
    FleetKeyOpen(PathBuf),
    /// Nodes share their tokens by the directory.
    #[error("--fleet-key needs --redis, by which the nodes share their tokens")]
    FleetKeyAlone,
    /// The socket's path is too long.
    #[error("the socket's path {} has {} bytes, and at most {SOCKET_PATH_BYTES_MAX} fit; choose a shorter one with \
        --socket or PTYD_RUNTIME_DIR", .0.display(), .0.as_os_str().len())]
    SocketPath(PathBuf),
    /// Another program answers on the socket.
    #[error("another program answers on {}; stop it or choose another --socket", .0.display())]
    SocketTaken(PathBuf),
    /// The token cannot be sent in a header, or can be guessed.
    #[error("PTYD_TOKEN must have at least 16 visible ASCII characters, and no spaces")]
    Token,
    /// The address cannot be bound, for example because it is in use.
    #[error("cannot listen on {address}: {error}; choose another --listen (port 0 takes a free one)")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error.
        error: io::Error,
    },
    /// A file cannot be created or read.
    #[error("{}: {error}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// A directory belongs to another user.
    #[error("{} belongs to uid {owner}, who could change what this server runs; use a directory of your own (--state-dir, PTYD_RUNTIME_DIR), or take it over: chown -R {} {}", .path.display(), rustix::process::geteuid().as_raw(), .path.display())]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// Its owner.
        owner: u32,
    },
    /// Other users may write to a directory.
    #[error("{} can be written by others (mode {mode:o}), who could change what this server runs; check its contents, then make it private: chmod 700 {}", .path.display(), .path.display())]
    Open {
        /// The directory.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// A file of the server's own cannot be used.
    #[error("{what} ({}) cannot be used: {why}; {remedy}", .path.display())]
    Unusable {
        /// Its purpose.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// The signal handlers cannot be installed.
    #[error("cannot wait for signals: {0}")]
    Signals(io::Error),
    /// The sessions cannot be managed.
    #[error(transparent)]
    Sessions(#[from] ActionError),
}

impl ServeError {
    /// Wraps an error at this path.
    pub fn at(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |error| Self::File { path, error }
    }

    /// An unusable file of the server's own, with the remedy.
    pub fn unusable(what: &'static str, path: &Path, why: &dyn std::fmt::Display, remedy: &'static str) -> Self {
        Self::Unusable { what, path: path.to_owned(), why: why.to_string(), remedy }
    }
}
