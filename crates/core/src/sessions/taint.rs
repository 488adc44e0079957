//! Whether the commands of a session still mean what they say: not after one that no analyser has proven, nor after typed
//! input. It is on record in the session's folder before that runs, so that the next server knows it.

use std::sync::{Arc, Mutex};

use crate::action::ActionError;
use crate::host::holders::SessionFolder;
use crate::mutex::locked;

/// Why the commands of a session cannot be proven any more, if that is so.
#[derive(Debug, Default)]
pub(crate) struct Taint(Mutex<Option<Arc<str>>>);

impl Taint {
    /// That of a session from an earlier server; what cannot be read counts as a reason.
    pub(super) fn read(folder: &SessionFolder) -> Self {
        let reason = folder.taint().unwrap_or_else(|e| Some(format!("its record is unreadable: {e}")));
        Self(Mutex::new(reason.map(Arc::from)))
    }

    pub(super) fn reason(&self) -> Option<Arc<str>> {
        locked(&self.0).clone()
    }

    /// Records the first reason, and returns whether this is it. An error means that what would taint it may not run. Blocks.
    pub(super) fn record(&self, folder: &SessionFolder, reason: &str) -> Result<bool, ActionError> {
        let mut taint = locked(&self.0);
        let is_first = taint.is_none();
        if is_first {
            let unrecorded = |e| ActionError::Exhausted { why: format!("the record of the session's policy: {e}") };
            folder.write_taint(reason).map_err(unrecorded)?;
            *taint = Some(reason.into());
        }
        Ok(is_first)
    }
}
