//! The resources of every start of a session: the holder's program, the shell integration, the profiles, and what the processes
//! inherit.
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::quota::Quota;
use crate::action::Limits;
use crate::config::Config;
use crate::policy_file::PolicyFile;
use crate::serve_error::ServeError;
use crate::sessions::backends::Backends;
use crate::sessions::concurrency_limits::SessionPlaces;
use crate::sessions::names::Names;
use crate::shell::Integration;

#[derive(Debug)]
pub(in crate::sessions) struct Launcher {
    pub(in crate::sessions) backends: Arc<Backends>,
    pub(super) quota: Quota,
    pub(in crate::sessions) places: SessionPlaces,
    /// The names that sessions are about to have.
    pub(super) names: Names,
    /// The default limits of a new session.
    pub(in crate::sessions) limits: Limits,
    /// The maximum limits of a session.
    pub(in crate::sessions) limits_max: Limits,
    pub(in crate::sessions) integration: Integration,
    /// The file with the profiles.
    pub(in crate::sessions) config_file: Option<PathBuf>,
    /// The file with the policies of commands and input.
    pub(in crate::sessions) policies: PolicyFile,
    /// The server's Unix socket.
    socket: PathBuf,
    pub(in crate::sessions) open_files: u64,
    pub(in crate::sessions) umask: u32,
    pub(in crate::sessions) journal_bytes_max: u64,
}

impl Launcher {
    /// Prepares the holder's program and the shell integration in the state directory.
    pub(in crate::sessions) fn prepare(config: &Config, backends: Arc<Backends>) -> Result<Self, ServeError> {
        let integration = config.state_dir.join("shell-integration");
        Ok(Self {
            backends,
            quota: Quota::new(config.sessions_max),
            places: SessionPlaces::new(),
            names: Names::default(),
            limits: config.limits,
            limits_max: config.limits_max,
            integration: Integration::install(&config.state_dir).map_err(ServeError::at(&integration))?,
            config_file: config.files.config.clone(),
            policies: PolicyFile::new(config.files.policies.clone()),
            socket: config.socket.clone(),
            open_files: raise_open_files(),
            umask: current_umask(),
            journal_bytes_max: config.journal_bytes_max,
        })
    }

    /// The files and folders of the server that no confined session opens: its configuration, its policies, its socket and the
    /// state directory.
    pub(super) fn own_places(&self) -> Vec<PathBuf> {
        let remembered = self.policies.remembered();
        let files = [self.config_file.as_deref(), self.policies.path(), remembered.as_deref()];
        let places = [self.backends.holders.sessions().parent(), Some(&*self.socket)].into_iter().chain(files);
        places.flatten().map(Path::to_owned).collect()
    }
}

/// Raises the soft limit of open files, because every session costs a few descriptors; returns the old one for the
/// shells.
fn raise_open_files() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    limit.current.unwrap_or(0)
}

/// Read from /proc, because umask(2) can only be read by effective it.
fn current_umask() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("Umask:"));
    line.and_then(|v| u32::from_str_radix(v.trim(), 8).ok()).unwrap_or(0o022)
}
