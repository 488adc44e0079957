//! The keys and locks by which a creation happens once.
use std::collections::HashMap;
use std::sync::Mutex;

use super::name_locks::NameLocks;
use super::session_metadata::SessionMetadata;
use crate::host::holders::HolderBackend;
use crate::ids::SessionId;
use crate::limits;
use crate::mutex::locked;
use crate::store::SessionRow;

/// The keys and locks by which a creation happens once.
#[derive(Debug, Default)]
pub(super) struct CreateKeys {
    /// The session that each owner's idempotency key created, for as long as its folder is retained.
    pub(super) keys: Mutex<HashMap<(String, String), SessionId>>,
    /// The last default session of each stdio client, and its creation time.
    pub(super) defaults: Mutex<HashMap<String, (u64, SessionId)>>,
    /// Locks: one creation per idempotency key at a time, and one default session per client.
    pub(super) locks: NameLocks,
}

impl CreateKeys {
    /// Remembers this session as its client's default, unless a newer one is known.
    pub(in crate::sessions) fn remember_default(&self, meta: &SessionMetadata, id: &SessionId) {
        let (true, Some(client)) = (meta.default.is_default, &meta.client) else { return };
        let mut defaults = locked(&self.defaults);
        if defaults.get(client).is_none_or(|(created_us, _)| *created_us <= meta.created_us) {
            defaults.insert(client.clone(), (meta.created_us, id.clone()));
        }
    }

    /// The same for the sessions that ended last, whose metadata is only in their folders.
    pub(in crate::sessions) fn remember_defaults(&self, holders: &HolderBackend, rows: &[SessionRow]) {
        let mut ended: Vec<(u64, &str)> =
            rows.iter().filter_map(|row| Some((row.ended_us?, row.id.as_str()))).collect();
        ended.sort_unstable_by(|a, b| b.cmp(a));
        let ids = ended.into_iter().take(limits::DEFAULTS_LOOKED_FOR).filter_map(|(_, id)| SessionId::parse(id).ok());
        for id in ids {
            if let Ok(spec) = holders.folder(&id).spec() {
                self.remember_default(&SessionMetadata::decode(&spec.meta), &id);
            }
        }
    }

    pub(super) fn remember_key(&self, meta: &SessionMetadata, id: &SessionId) {
        if let Some(key) = &meta.key {
            locked(&self.keys).insert((meta.owner.clone(), key.clone()), id.clone());
        }
    }
}
