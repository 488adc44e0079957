//! The keys and locks by which a creation happens once.
use std::collections::HashMap;
use std::sync::Mutex;

use tokio::sync::OwnedMutexGuard;

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
    keys: Mutex<HashMap<(String, String), SessionId>>,
    /// The last default session of each stdio client, and its creation time.
    defaults: Mutex<HashMap<String, (u64, SessionId)>>,
    /// Locks: one creation per idempotency key at a time, and one default session per client.
    locks: NameLocks,
}

impl CreateKeys {
    /// The turn of a creation with this key of this owner.
    pub(super) async fn turn_of_key(&self, owner: &str, key: &str) -> OwnedMutexGuard<()> {
        self.locks.of(format!("key {owner:?} {key}")).await
    }

    /// The turn of a creation of this client's default session.
    pub(super) async fn turn_of_client(&self, client: &str) -> OwnedMutexGuard<()> {
        self.locks.of(format!("client {client}")).await
    }

    /// The session that this key of this owner created.
    pub(super) fn session(&self, owner: &str, key: &str) -> Option<SessionId> {
        locked(&self.keys).get(&(owner.to_owned(), key.to_owned())).cloned()
    }

    /// All keys, with their owners and sessions.
    pub(super) fn all(&self) -> Vec<((String, String), SessionId)> {
        locked(&self.keys).iter().map(|(key, id)| (key.clone(), id.clone())).collect()
    }

    /// The last default session of a client.
    pub(super) fn default_of(&self, client: &str) -> Option<SessionId> {
        locked(&self.defaults).get(client).map(|(_, id)| id.clone())
    }

    /// The session is no longer retained.
    pub(super) fn forget(&self, id: &SessionId) {
        locked(&self.keys).retain(|_, session| session != id);
    }

    /// The client does not return.
    pub(super) fn forget_client(&self, client: &str) {
        locked(&self.defaults).remove(client);
    }

    /// Remembers the keys of the sessions in the store, and the default sessions among those that ended last.
    pub(super) fn remember(&self, holders: &HolderBackend, rows: &[SessionRow]) {
        let keyed = |row: &SessionRow| Some(((row.owner.clone(), row.key.clone()?), SessionId::parse(&row.id).ok()?));
        locked(&self.keys).extend(rows.iter().filter_map(keyed));
        self.remember_defaults(holders, rows);
    }

    /// Remembers this session as its client's default, unless a newer one is known.
    pub(super) fn remember_default(&self, meta: &SessionMetadata, id: &SessionId) {
        let (true, Some(client)) = (meta.default.is_default, &meta.client) else { return };
        let mut defaults = locked(&self.defaults);
        if defaults.get(client).is_none_or(|(created_us, _)| *created_us <= meta.created_us) {
            defaults.insert(client.clone(), (meta.created_us, id.clone()));
        }
    }

    /// Remembers the default sessions among those that ended last: their metadata is only in their folders.
    fn remember_defaults(&self, holders: &HolderBackend, rows: &[SessionRow]) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sessions::session_metadata::DefaultMetadata;

    #[test]
    fn the_newest_default_session_of_a_client_is_found_in_whatever_order_they_are_remembered() {
        let keys = CreateKeys::default();
        let remember = |client: &str, id: &str, created_us| {
            let default = DefaultMetadata { is_default: true, ..DefaultMetadata::default() };
            let client = Some(client.to_owned());
            let meta = SessionMetadata { client, created_us, default, ..SessionMetadata::default() };
            keys.remember_default(&meta, &SessionId::parse(id).expect("an id"));
        };
        for (id, created_us) in [("s0-aaaaaaaaaa", 2), ("s0-bbbbbbbbbb", 3), ("s0-cccccccccc", 1)] {
            remember("ann", id, created_us);
        }
        remember("bob", "s0-dddddddddd", 9);
        assert_eq!(keys.default_of("ann").as_ref().map(SessionId::as_str), Some("s0-bbbbbbbbbb"));
    }
}
