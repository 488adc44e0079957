//! The state that requests, readers and the actor of one session share: positions, never bytes.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use journal::Reader;
use wire::Spec;

use super::backends::Backends;
use super::session_metadata::SessionMetadata;
use super::taint::Taint;
use super::viewers::Viewers;
use crate::action::{ActionError, StartupFailure};
use crate::host::holders::MaskedFolder;
use crate::ids::SessionId;
use crate::lane::{AnswerRoom, Lane};
use crate::limits;
use crate::mutex::locked;
use crate::store::SessionRow;

/// The state that requests and readers share with the actor: positions, never bytes.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) id: SessionId,
    pub(crate) folder: MaskedFolder,
    pub(crate) meta: SessionMetadata,
    pub(crate) spec: Spec,
    pub(crate) reader: Reader,
    pub(crate) backends: Arc<Backends>,
    /// Start-up commands of the profile that failed; forgotten at the server's restart.
    pub(crate) startup_failed: Mutex<Vec<StartupFailure>>,
    /// The actor has panicked or lost its holder.
    pub(crate) faulted: AtomicBool,
    /// The fewest lines that were printed between a boundary and the next command: they count as the prompt.
    pub(crate) prompt_lines: AtomicUsize,
    /// The job that was last told as a server, by its process group, and its ports.
    pub(crate) server: Mutex<Option<(u32, HashSet<u16>)>>,
    /// The actor is in a turn: what it has published may be older than what it has answered.
    pub(crate) is_in_turn: AtomicBool,
    /// The session waits for disk space.
    pub(crate) stalled: AtomicBool,
    /// Whether a policy can still prove its commands.
    pub(crate) taint: Taint,
    /// The end that its row in the history has.
    pub(crate) recorded_end: Mutex<Option<u64>>,
    /// Held while it is renamed.
    pub(crate) renames: Mutex<()>,
    /// The people and pages that follow it.
    pub(crate) viewers: Viewers,
}

impl Shared {
    /// Whether the actor ended before the session did, so that the server starts another one.
    pub(crate) fn has_faulted(&self) -> bool {
        self.faulted.load(Ordering::Acquire)
    }

    /// The lane in which long work on it is done.
    pub(crate) fn lane(&self) -> Arc<Lane> {
        self.backends.lanes.of(&self.meta.owner)
    }

    /// Does work on this many bytes of its output, much of it in its lane. The bytes around them decide what is masked.
    pub(crate) async fn work<T>(&self, bytes: u64, work: impl FnOnce() -> T) -> T {
        let around = 2 * self.folder.masks().margin();
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX).saturating_add(around);
        self.backends.lanes.work(&self.meta.owner, bytes, work).await
    }

    /// Room for an answer of this many bytes, among the answers that clients of its owner have not taken yet.
    pub(crate) async fn answer_room(&self, bytes: usize) -> Result<AnswerRoom, ActionError> {
        self.lane().room(bytes, limits::ANSWER_PATIENCE).await.ok_or(ActionError::Limit {
            what: "the bytes of output in answers that clients of this session's owner have not read yet",
            limit: limits::ANSWERS_BYTES_MAX as u64,
            hint: "read the answers, or close their connections",
        })
    }

    /// A start-up command of the profile has failed.
    pub(crate) fn note_startup_failure(&self, command: String, reason: String) {
        let masks = self.folder.masks();
        let failure = StartupFailure { command: masks.text(command), reason: masks.text(reason) };
        locked(&self.startup_failed).push(failure);
    }

    /// Removes the secrets that the session was given as files, once it has ended.
    pub(crate) fn remove_secret_files(&self) {
        if !self.meta.secrets.files.is_empty() {
            self.folder.remove_secrets();
        }
    }

    /// Whether the journal is shorter than this, because another process has cut it.
    pub(crate) fn has_less_than(&self, end: u64) -> bool {
        self.reader.len().is_ok_and(|size| size.0 < end)
    }

    /// Puts its row into the history. A change of its name at this moment keeps the end that it has there.
    pub(crate) fn put_row(&self, ended_us: Option<u64>) {
        let mut recorded = locked(&self.recorded_end);
        *recorded = ended_us.or(*recorded);
        self.backends.store.put_session(self.row(*recorded));
    }

    /// Changes its name, on the disk first.
    pub(crate) fn rename(&self, name: String) -> std::io::Result<()> {
        let _turn = locked(&self.renames);
        let meta = self.meta.clone();
        meta.name.set(Some(name.clone()));
        self.folder.replace_spec(&Spec { meta: meta.encode(), ..self.spec.clone() })?;
        self.meta.name.set(Some(name));
        self.put_row(None);
        Ok(())
    }

    /// Its row in the history, with the time of its end.
    pub(crate) fn row(&self, ended_us: Option<u64>) -> SessionRow {
        SessionRow {
            id: self.id.to_string(),
            owner: self.meta.owner.clone(),
            name: self.meta.name.get(),
            created_us: self.meta.created_us,
            ended_us,
            key: self.meta.key.clone(),
        }
    }
}
