//! The spare holder: it waits for the next session, which then starts without a wait for a program.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::spawn::{HolderBinary, StartedHolder, spawn};

/// A holder that waits for a session's folder. It ends when its server does.
#[derive(Debug)]
pub(super) struct SpareHolder {
    started: StartedHolder,
    /// The length of the path that it waits for.
    path_bytes: usize,
}

impl SpareHolder {
    /// Starts one for a session in this folder, with an id of this length.
    pub(super) fn start(binary: &HolderBinary, sessions: &Path, id_bytes: usize) -> io::Result<Self> {
        let instead = sessions.join(format!("{:-<id_bytes$}", wire::SPARE));
        Ok(Self { started: spawn(binary, &instead, None)?, path_bytes: instead.as_os_str().len() })
    }

    /// Gives it the session's folder; `None` if it cannot have it or is gone.
    pub(super) fn hold(mut self, folder: &Path) -> Option<StartedHolder> {
        let path = folder.as_os_str().as_bytes();
        let is_alive = self.started.process.is_alive();
        let takes_it = is_alive && path.len() == self.path_bytes && self.started.connection.send_path(path);
        takes_it.then_some(self.started)
    }
}
