//! Determines whether the holder of a session's folder lives, and what may be killed if it does not.
//!
//! A session's processes are identified by a variable in their environment; a copy of the session's folder has the same
//! one. So nothing is killed for a folder unless the holder of this very folder is known to have ended.

use std::io;
use std::path::{Path, PathBuf};

use sys::process;
use wire::{Claim, Holding};

use super::super::local::{alive, is_alive};
use super::super::port::{Host, Identity, Process, TAG};
use crate::ids::SessionId;

/// The command name of holders.
const PROGRAM: &str = "ptyd-holder";
/// A server makes this file in a session's folder before it kills its holder on request.
const FORCED_FILE: &str = "killed-on-request";

/// The state of a folder's holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Liveness {
    /// It lives and holds this folder.
    Alive(Identity),
    /// It held this folder and has ended.
    Dead(Dead),
    /// The folder is a copy; the original's holder lives.
    Copy(Identity),
    /// It cannot be determined from here, for this reason. No process here holds the folder.
    Unknown(&'static str),
    /// It may live: this could not be determined now, for this reason.
    MayLive(&'static str),
    /// No holder has begun in this folder.
    NeverBegan,
}

/// Proof that a session's own holder has ended: only then were processes with the session's tag left behind by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dead(Identity);

impl Dead {
    /// A holder whose end was awaited.
    pub(crate) fn known(holder: Identity) -> Self {
        Self(holder)
    }
}

/// The unique identity (pid and start time) of this process, also of a zombie.
pub(super) fn identity(pid: u32) -> Option<Identity> {
    process::stat(pid).map(|stat| (stat.pid, stat.start_ticks))
}

/// Examines the folder's holder. `met` is the process behind the folder's socket, if there was a connection: the holder's record
/// of itself can be damaged or gone.
pub(super) fn look(folder: &Path, met: Option<Identity>) -> Liveness {
    let without_claim = |why| met.map_or_else(|| search(folder, why), |met| liveness_of(met, true));
    match Claim::load(folder) {
        Ok(Holding::By(claim)) => look_for(&claim, folder),
        Ok(Holding::GivenUp) => Liveness::NeverBegan,
        Ok(Holding::Nobody) => match without_claim("its file `holder` is missing") {
            Liveness::Unknown(_) if !has_records(folder) => Liveness::NeverBegan,
            found => found,
        },
        Err(e) if e.kind() == io::ErrorKind::InvalidData => without_claim("its file `holder` is damaged"),
        Err(_) => met.map_or(Liveness::MayLive("its file `holder` cannot be read"), |met| liveness_of(met, true)),
    }
}

/// Whether a holder has written anything here.
pub(super) fn has_records(folder: &Path) -> bool {
    [journal::EVENTS_FILE, journal::JOURNAL_FILE].iter().any(|file| folder.join(file).exists())
}

fn liveness_of(holder: Identity, is_own: bool) -> Liveness {
    match (is_alive(holder), is_own) {
        (true, true) => Liveness::Alive(holder),
        (false, true) => Liveness::Dead(Dead(holder)),
        (true, false) => Liveness::Copy(holder),
        (false, false) => Liveness::Unknown("its folder is a copy of its holder's folder"),
    }
}

fn look_for(claim: &Claim, folder: &Path) -> Liveness {
    let holder = (claim.pid, claim.start_ticks);
    match (claim.is_known_here(), claim.is_of(folder)) {
        (true, Ok(is_own)) => liveness_of(holder, is_own),
        (true, Err(_)) => Liveness::Unknown("its folder cannot be read"),
        (false, _) => Liveness::Unknown("its holder is from another boot or another container"),
    }
}

/// Searches the running holders for that of this folder, which is in their arguments; `Unknown` for this reason if there
/// is none.
fn search(folder: &Path, why: &'static str) -> Liveness {
    let all = process::all();
    if !all.contains(&std::process::id()) {
        return Liveness::MayLive("the processes of this machine cannot be listed");
    }
    let mut found = Liveness::Unknown(why);
    for holder in all.into_iter().filter_map(alive).filter(|stat| stat.comm == PROGRAM) {
        let identity = (holder.pid, holder.start_ticks);
        match folder_of(holder.pid) {
            Some(held) if held.file_name() != folder.file_name() => {}
            Some(held) if is_same(&held, folder).unwrap_or(false) || has_open(holder.pid, folder) => {
                return Liveness::Alive(identity);
            }
            Some(_) => found = Liveness::Copy(identity),
            None if is_alive(identity) => found = Liveness::MayLive("the server may not read its holder's /proc entry"),
            None => {}
        }
    }
    found
}

/// Whether the process has the folder's journal or events open: the folder may have been moved since it started.
fn has_open(pid: u32, folder: &Path) -> bool {
    let fds = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let files = [journal::EVENTS_FILE, journal::JOURNAL_FILE].map(|file| folder.join(file));
    fds.map(|fd| fd.path()).any(|fd| files.iter().any(|file| is_same(&fd, file).unwrap_or(false)))
}

/// The folder in a holder's arguments; it may have been moved since.
pub(crate) fn folder_of(holder: u32) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    let arguments = std::fs::read(format!("/proc/{holder}/cmdline")).ok()?;
    let folder = arguments.split(|b| *b == 0).nth(1).filter(|folder| !folder.is_empty())?;
    Some(PathBuf::from(std::ffi::OsString::from_vec(folder.to_vec())))
}

/// The session whose folder this process holds, by the claim in the folder: names and arguments can be anybody's.
pub(super) fn session_held_by(pid: u32, sessions: &Path) -> Option<SessionId> {
    let stat = process::stat(pid).filter(|stat| stat.comm == PROGRAM)?;
    let name = folder_of(pid)?.file_name()?.to_str().and_then(|name| SessionId::parse(name).ok())?;
    match Claim::load(&sessions.join(name.as_str())) {
        Ok(Holding::By(claim)) if (claim.pid, claim.start_ticks) == (pid, stat.start_ticks) => Some(name),
        _ => None,
    }
}

fn is_same(one: &Path, other: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let which = |path: &Path| std::fs::metadata(path).map(|m| (m.dev(), m.ino()));
    Ok(which(one)? == which(other)?)
}

/// Whether the holder of this folder removed its socket, which is its last step: by then it has recorded the session's
/// exit. A holder that was killed leaves its socket.
pub(crate) fn has_left(folder: &Path) -> bool {
    std::fs::symlink_metadata(folder.join(wire::SOCKET_FILE)).is_err_and(|e| e.kind() == io::ErrorKind::NotFound)
}

/// Records that a server is about to kill the holder of this folder on request: a killed holder records nothing.
pub(super) fn note_forced(folder: &Path) {
    // A file that is there says it already. It is not opened: a named pipe in its place would keep this thread waiting.
    match std::fs::File::create_new(folder.join(FORCED_FILE)) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
            tracing::warn!(folder = %folder.display(), error = %e, "cannot record that its holder is killed on request");
        }
        Ok(_) | Err(_) => {}
    }
}

/// The traces that an ended holder left in its folder.
#[derive(Debug)]
pub(crate) struct Traces {
    /// Its folder is a copy: the process of its original's holder, and the folder of that.
    pub(crate) original: Option<(u32, Option<PathBuf>)>,
    /// A server was about to kill it on request.
    pub(crate) is_forced: bool,
    /// It has removed its socket.
    pub(crate) has_left: bool,
}

impl Traces {
    /// The present traces in this folder.
    pub(super) fn of(folder: &Path) -> Self {
        let original = match look(folder, None) {
            Liveness::Copy((pid, _)) => Some((pid, folder_of(pid))),
            _ => None,
        };
        Self { original, is_forced: folder.join(FORCED_FILE).exists(), has_left: has_left(folder) }
    }
}

/// Kills every process with the session's tag in its environment that is no older than the holder, which has ended;
/// returns how many there were. Blocks.
pub(crate) fn sweep(host: &dyn Host, id: &SessionId, Dead((holder, began)): Dead) -> usize {
    let swept = host.sweep(&format!("{TAG}={id}"), began);
    for Process { identity: (pid, _), name, .. } in &swept {
        tracing::warn!(
            session = %id, pid, program = ?name, holder,
            "killed: the session's holder has ended and left this process behind"
        );
    }
    swept.len()
}
