//! The backend of holders: starts one for a session, connects to it, and knows whether it lives.
//!
//! A holder always runs beside the server, on the file system of the sessions' folders; only the shell that it starts
//! may be somewhere else. So its process, its socket and its liveness are asked for here, and the processes of its
//! session at the [`Host`](super::Host).

mod connected_process;
mod connection;
mod folder;
mod greeting;
mod liveness;
mod spare;
mod spawn;
mod start;

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use wire::Spec;

use super::local;
use super::port::{Identity, TAG};
use crate::ids::SessionId;
use crate::mutex::locked;
pub(crate) use connected_process::ConnectedProcess;
pub(crate) use connection::HolderConnection;
pub(crate) use folder::{MaskedFolder, SessionFolder};
pub(crate) use greeting::{NoGreeting, greeting, is_passing, speaks_another_protocol, start_error, start_error_of};
pub(crate) use liveness::{Dead, Liveness, Traces, sweep};
use spare::SpareHolder;
use spawn::HolderBinary;
pub(crate) use spawn::StartedHolder;
pub use spawn::splice_works;

/// Starts the holders of this server, and reaches those of earlier ones.
#[derive(Debug)]
pub(crate) struct HolderBackend {
    /// The folder of the sessions' folders.
    sessions: PathBuf,
    binary: HolderBinary,
    /// The next session's.
    spare: Mutex<Option<SpareHolder>>,
    /// The ancestors of this process; `None` if they are not known.
    above: OnceLock<Option<Vec<u32>>>,
}

impl HolderBackend {
    /// Makes the folder of the sessions, prepares the holder's program, and tries whether it runs. Blocks.
    pub(crate) fn prepare(state_dir: &Path) -> Result<Self, (PathBuf, io::Error)> {
        let sessions = state_dir.join("sessions");
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&sessions);
        made.map_err(|e| (sessions.clone(), e))?;
        let binary = HolderBinary::prepare(state_dir, &sessions).map_err(|e| (state_dir.to_owned(), e))?;
        Ok(Self { sessions, binary, spare: Mutex::default(), above: OnceLock::new() })
    }

    /// The folder of the sessions' folders.
    pub(crate) fn sessions(&self) -> &Path {
        &self.sessions
    }

    pub(crate) fn folder(&self, id: &SessionId) -> SessionFolder {
        SessionFolder::at(self.sessions.join(id.as_str()))
    }

    /// Every session that has a folder. Blocks.
    pub(crate) fn all(&self) -> io::Result<Vec<SessionId>> {
        let names = std::fs::read_dir(&self.sessions)?.map(|entry| entry.map(|e| e.file_name()));
        let names = names.collect::<io::Result<Vec<_>>>()?;
        Ok(names.iter().filter_map(|name| SessionId::parse(name.to_str()?).ok()).collect())
    }

    /// Removes the folders in which a server tried splice(2) on a terminal (the self-test of a holder) and was killed.
    pub(crate) fn remove_trials(&self) {
        let entries = std::fs::read_dir(&self.sessions).into_iter().flatten().flatten();
        for trial in entries.filter(|e| e.file_name().as_encoded_bytes().starts_with(b".splice-")) {
            if let Err(e) = std::fs::remove_dir_all(trial.path()) {
                tracing::warn!(folder = %trial.path().display(), error = %e, "left by an earlier server, and not removed");
            }
        }
    }

    /// Whether splice(2) carries a terminal's output into the sessions' folder.
    pub(crate) fn may_splice(&self) -> bool {
        self.binary.may_splice
    }

    /// Creates the session's folder, stores the spec, and has a holder begin in it. `container`: the connection of the first process
    /// of the session's container. Blocks.
    pub(crate) fn start(
        &self,
        folder: &SessionFolder,
        spec: &Spec,
        secrets: &[(String, String)],
        container: Option<OwnedFd>,
    ) -> io::Result<StartedHolder> {
        // A spare one has its standard output already.
        let spare = if container.is_none() { locked(&self.spare).take() } else { None };
        start::start(&self.binary, spare, folder.path(), spec, secrets, container)
    }

    /// Starts a spare holder if there is none, for a session with an id like this one. Blocks.
    pub(crate) fn keep_spare(&self, id: &SessionId) {
        if locked(&self.spare).is_some() {
            return;
        }
        // Without one the next session starts its own, and has the error. Of two that were started at once, one ends.
        if let Ok(started) = SpareHolder::start(&self.binary, &self.sessions, id.as_str().len()) {
            *locked(&self.spare) = Some(started);
        }
    }

    /// Connects to the holder of this folder, and returns its process. [`is_passing`] separates errors that say nothing
    /// about the holder from those that mean that no process listens.
    pub(crate) fn connect(&self, folder: &SessionFolder) -> io::Result<(HolderConnection, Option<Identity>)> {
        let stream = sys::socket::connect_in(folder.path(), wire::SOCKET_FILE)?;
        let holder = sys::socket::peer(&stream).ok().and_then(|peer| liveness::identity(peer.pid));
        Ok((HolderConnection::new(stream)?, holder))
    }

    /// Whether a process listens on the folder's socket. A holder that has left has removed it.
    pub(crate) fn is_listening(&self, folder: &SessionFolder) -> bool {
        !liveness::has_left(folder.path()) && self.connect(folder).is_ok()
    }

    /// Examines the folder's holder. `met` is the process behind the folder's socket, if there was a connection: the holder's
    /// record of itself can be damaged or gone.
    pub(crate) fn liveness(&self, folder: &SessionFolder, met: Option<Identity>) -> Liveness {
        liveness::look(folder.path(), met)
    }

    /// Whether a holder has written anything in this folder.
    pub(crate) fn has_records(&self, folder: &SessionFolder) -> bool {
        liveness::has_records(folder.path())
    }

    /// The traces that an ended holder left in its folder.
    pub(crate) fn traces(&self, folder: &SessionFolder) -> Traces {
        Traces::of(folder.path())
    }

    /// Records that this server is about to kill the holder of this folder on request: a killed holder records nothing.
    pub(crate) fn note_forced(&self, folder: &SessionFolder) {
        liveness::note_forced(folder.path());
    }

    /// The unique identity of a holder's process, also of a zombie.
    pub(crate) fn identity(&self, pid: u32) -> Option<Identity> {
        liveness::identity(pid)
    }

    /// Waits for a holder's end; false if it still lives after `longest`, or its end cannot be determined.
    pub(crate) async fn ends_within(&self, holder: Identity, longest: Duration) -> bool {
        local::ends_within(holder, longest).await
    }

    /// Kills a holder, which then records nothing.
    pub(crate) fn kill(&self, (pid, start_ticks): Identity) {
        sys::process::signal_exactly(pid, start_ticks, sys::signal::KILL);
    }

    /// Whether this server runs in the session of that holder.
    pub(crate) fn is_above_this_server(&self, (pid, _): Identity) -> bool {
        let own = std::process::id();
        // Ancestors only become fewer, and a server that starts asks for thousands of holders.
        let above = self.above.get_or_init(|| sys::process::ancestors(own));
        above.as_ref().is_none_or(|above| above.contains(&pid)) && sys::process::is_descendant(own, pid) == Some(true)
    }

    /// The session of a process: one of its ancestors holds the session's folder, or is the first process of its container, or has its
    /// tag in the environment, as what an ended session has left has. An error if the process has ended, or is in a container and in
    /// none of a session: it may be a program of anybody there, and is not a process of the user outside. Blocks.
    pub(crate) fn session_of(&self, process: &ConnectedProcess) -> io::Result<Option<SessionId>> {
        let lineage = process.lineage()?;
        let held = lineage.iter().find_map(|holder| liveness::session_held_by(*holder, &self.sessions));
        if held.is_some() {
            return Ok(held);
        }
        if process.is_in_own_pid_namespace() {
            let tagged = lineage.iter().find_map(|pid| sys::process::variable(*pid, TAG));
            return Ok(tagged.and_then(|id| SessionId::parse(std::str::from_utf8(&id).ok()?).ok()));
        }
        // An orphan there is a child of the container's first process, whose parent is none of ours. The tag of such a
        // process is its own word.
        let is_here = |id: &SessionId| {
            let Liveness::Alive((holder, _)) = self.liveness(&self.folder(id), None) else { return false };
            sys::process::first_in_container(holder).is_some_and(|first| lineage.contains(&first))
        };
        self.all()?.into_iter().find(is_here).map(Some).ok_or_else(|| io::ErrorKind::PermissionDenied.into())
    }

    /// Another program in the place of the holder's.
    #[cfg(test)]
    pub(crate) fn set_program(&mut self, path: PathBuf) {
        self.binary.path = path;
        *locked(&self.spare) = None;
    }
}
