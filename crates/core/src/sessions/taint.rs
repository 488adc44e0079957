//! Whether the commands of a session still mean what they say. After an unproven command or typed input, they may not. This
//! is on record in the session's folder before such a request runs, so that the next server knows it.

use std::sync::{Arc, Mutex};

use policy::Verdict;

use super::session_metadata::SessionMetadata;
use crate::action::{ActionError, PolicyRefusal};
use crate::host::holders::SessionFolder;
use crate::mutex::locked;

/// Why the commands of a session cannot be proven any more, if that is so.
#[derive(Debug, Default)]
pub(crate) struct Taint(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    reason: Option<Arc<str>>,
    /// How many requests that are not proven, or change what later ones mean, were admitted.
    admitted: u64,
}

impl Taint {
    /// The taint of a session from an earlier server; an unreadable record counts as a reason.
    pub(super) fn read(folder: &SessionFolder) -> Self {
        let reason = folder.taint().unwrap_or_else(|e| Some(format!("its record is unreadable: {e}")));
        Self(Mutex::new(State { reason: reason.map(Arc::from), admitted: 0 }))
    }

    pub(super) fn reason(&self) -> Option<Arc<str>> {
        locked(&self.0).reason.clone()
    }

    /// How many requests that are not proven were admitted.
    pub(super) fn admitted(&self) -> u64 {
        locked(&self.0).admitted
    }

    /// Records the first reason, and counts each. Returns false, and does neither, if more than this many were admitted
    /// before. An error means that what would taint the session may not run. Blocks.
    pub(super) fn record(&self, folder: &SessionFolder, reason: &str, most_before: u64) -> Result<bool, ActionError> {
        let mut taint = locked(&self.0);
        if taint.admitted > most_before {
            return Ok(false);
        }
        if taint.reason.is_none() {
            let unrecorded =
                |e| ActionError::Exhausted { why: format!("the session's file `tainted` cannot be written: {e}") };
            folder.write_taint(reason).map_err(unrecorded)?;
            taint.reason = Some(reason.into());
        }
        taint.admitted += 1;
        Ok(true)
    }
}

/// Another request has left the session unprovable.
pub(super) const UNPROVABLE: &str = "another request has made the session unprovable meanwhile; send it again";
/// The command might run in another directory than its approval or its rule names.
pub(super) const ELSEWHERE: &str = "the session's shell has left the directory for which the command is allowed, or \
    runs something that may leave it; send it again";

/// The refusal of a command whose proof or approval is no longer valid when it is handed over.
pub(super) fn overtaken(meta: &SessionMetadata, why: &str) -> ActionError {
    ActionError::PolicyDenied(Box::new(PolicyRefusal {
        what: "not run",
        verdict: Verdict::Deny,
        policy: meta.policy.clone().unwrap_or_default(),
        rule: "unproven".to_owned(),
        why: why.to_owned(),
        is_advisory: meta.confinement.tier.is_none(),
        approval: None,
    }))
}
