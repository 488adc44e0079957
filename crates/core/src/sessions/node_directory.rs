//! The sessions of several nodes as one list: this node keeps the records of its own in the directory, and reads those of others.
//!
//! Nothing here is on the way of a command: if the directory does not answer, only lists of all nodes are incomplete, and say so.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use directory::{Claim, CreateKey, Directory, Error, Event, OtherNode, Record, is_refused};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::shared_tokens::SharedTokens;
use super::timeline::{micros, time};
use crate::action::{Boundary, Driver, EventPlace, Foreground, ServerEvent, SessionStatus, SessionView, Tools, Usage};
use crate::config::Config;
use crate::confinement_tier::ConfinementTier;
use crate::credentials::server_token::Token;
use crate::ids::{CommandId, SessionId};
use crate::principal::Principal;
use crate::serve_error::ServeError;

/// A node's claim to its number expires so long after its last renewal; its sessions are unreachable then.
const LEASE: Duration = Duration::from_secs(15);

/// A list waits this long for the records of other nodes.
const PATIENCE: Duration = Duration::from_secs(2);

/// A create with a key waits this long for the directory.
const CREATE_PATIENCE: Duration = Duration::from_secs(1);

/// This node's part of the directory.
#[derive(Debug)]
pub(super) struct NodeDirectory {
    directory: Directory,
    /// Another instance has this node's number, so this one starts no sessions.
    is_taken: AtomicBool,
    /// The tokens that all nodes have, if they share them.
    pub(super) tokens: Option<SharedTokens>,
}

/// A position in the events of all nodes.
#[derive(Debug, Default)]
pub(super) struct Followed {
    place: Option<String>,
    /// The newest event of each node.
    newest: HashMap<u16, EventPlace>,
}

impl Followed {
    /// Whether this event was not taken before: a node writes events again if it has not learnt that they arrived.
    fn is_new(&mut self, event: &Event) -> bool {
        let Ok(place) = event.place.parse::<EventPlace>() else { return false };
        let newest = self.newest.get(&event.node);
        let is_new = newest.is_none_or(|newest| newest.server != place.server || place.number > newest.number);
        if is_new {
            self.newest.insert(event.node, place);
        }
        is_new
    }
}

/// A session's record: the part of its view that is the same for every reader. Changes of its form need every node to be replaced.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SessionRecord {
    id: SessionId,
    owner: String,
    name: Option<String>,
    is_running: bool,
    shell: String,
    cwd: Vec<u8>,
    created_us: u64,
    last_activity_us: u64,
    cols: u16,
    rows: u16,
    foreground: Foreground,
    current_command: Option<CommandId>,
    current_command_text: Option<String>,
    end_offset: u64,
    trouble: Option<String>,
    is_unreachable: bool,
    profile: Option<String>,
    confinement: Option<ConfinementTier>,
    driver: Option<Arc<Driver>>,
    client_name: Option<String>,
}

impl SessionRecord {
    fn of(view: &SessionView) -> Self {
        Self {
            id: view.id.clone(),
            owner: view.owner.clone(),
            name: view.name.clone(),
            is_running: view.status == SessionStatus::Running,
            shell: view.shell.clone(),
            cwd: view.cwd.as_os_str().as_bytes().to_owned(),
            created_us: micros(view.created_at),
            last_activity_us: micros(view.last_activity),
            cols: view.cols,
            rows: view.rows,
            foreground: view.foreground,
            current_command: view.current_command,
            current_command_text: view.current_command_text.as_deref().map(str::to_owned),
            end_offset: view.end_offset,
            trouble: view.trouble.clone(),
            is_unreachable: view.is_unreachable,
            profile: view.profile.clone(),
            confinement: view.confinement,
            driver: view.driver.clone(),
            client_name: view.client_name.clone(),
        }
    }

    /// The view of the session on a node that serves, or does not.
    fn view(self, node: u16, is_alive: bool) -> SessionView {
        let silent = || format!("node {node} does not answer");
        SessionView {
            id: self.id,
            name: self.name,
            status: if self.is_running { SessionStatus::Running } else { SessionStatus::Creating },
            shell: self.shell,
            pid: None,
            cwd: PathBuf::from(OsStr::from_bytes(&self.cwd)),
            env: Vec::new(),
            created_at: time(self.created_us),
            last_activity: time(self.last_activity_us),
            owner: self.owner,
            cols: self.cols,
            rows: self.rows,
            usage: Usage::default(),
            foreground: self.foreground,
            boundary: Boundary::Attested,
            current_command: self.current_command,
            current_command_text: self.current_command_text.map(Into::into),
            last_ended: None,
            first_offset: 0,
            end_offset: self.end_offset,
            exit: None,
            trouble: if is_alive { self.trouble } else { Some(silent()) },
            is_unreachable: self.is_unreachable || !is_alive,
            is_cwd_gone: false,
            tools: Tools::default(),
            profile: self.profile,
            confinement: self.confinement,
            policy: None,
            startup_failed: Vec::new(),
            log_file: PathBuf::new(),
            limits: Vec::new(),
            limits_hit: Vec::new(),
            driver: self.driver,
            client_name: self.client_name,
            viewers: Vec::new(),
        }
    }
}

impl NodeDirectory {
    /// The directory at the configured URL; `None` if there is none.
    pub(super) fn open(config: &Config, secret: &Token) -> Result<Option<Self>, ServeError> {
        let Some(url) = &config.network.redis else {
            return if config.network.fleet_key.is_some() { Err(ServeError::FleetKeyAlone) } else { Ok(None) };
        };
        let refused = |error: Error| ServeError::Directory { why: error.to_string() };
        let instance = instance(config, secret);
        let directory =
            Directory::open(url, config.network.node, instance, sys::fault::scaled(LEASE)).map_err(refused)?;
        let tokens = config.network.fleet_key.as_ref().map(|key| SharedTokens::open(directory.clone(), key));
        Ok(Some(Self { directory, is_taken: AtomicBool::new(false), tokens: tokens.transpose()? }))
    }

    /// Refuses to start as a node whose number another instance has. A directory that does not answer refuses nothing.
    pub(super) async fn claim_first(&self, node: u16) -> Result<(), ServeError> {
        match self.directory.claim().await {
            Ok(Claim::Taken(instance)) => Err(ServeError::NodeTaken { node, instance }),
            Ok(Claim::New | Claim::Renewed) => Ok(()),
            Err(error) if is_refused(&error) => Err(ServeError::Directory { why: error.to_string() }),
            Err(error) => {
                tracing::warn!(%error, "the directory does not answer; this node serves without it until it does");
                Ok(())
            }
        }
    }

    /// Whether another instance has this node's number.
    pub(super) fn is_taken(&self) -> bool {
        self.is_taken.load(Ordering::Relaxed)
    }

    /// The sessions on other nodes that this principal may see, and whether they are all.
    pub(super) async fn others(&self, principal: &Principal, owner: Option<&str>) -> (Vec<SessionView>, bool) {
        let owner = if principal.is_admin() { owner } else { Some(principal.name.as_str()) };
        let Ok(Ok((others, is_whole))) = tokio::time::timeout(PATIENCE, self.directory.others(owner)).await else {
            return (Vec::new(), false);
        };
        let (mut views, mut is_whole) = (Vec::new(), is_whole && !self.is_taken());
        for OtherNode { node, is_alive, sessions } in others {
            for facts in sessions {
                match serde_json::from_str::<SessionRecord>(&facts) {
                    Ok(record) if record.id.node() == node => views.push(record.view(node, is_alive)),
                    // Another version of ptyd may have written it.
                    _ => is_whole = false,
                }
            }
        }
        let may_see = |view: &SessionView| {
            let is_own = view.owner == principal.name;
            principal.is_admin() || is_own && principal.may_use(view.profile.as_deref(), view.confinement)
        };
        views.retain(may_see);
        (views, is_whole)
    }

    /// Claims the key of a create for a session that this node is about to start. It returns the session of another node that has the key.
    /// The second value is false if the directory did not answer: then this node alone knows the key.
    pub(super) async fn claim_create(&self, owner: &str, key: &str, id: &SessionId) -> (Option<SessionId>, bool) {
        let (key, own_prefix) = (create_key(owner, key), format!("s{}-", id.node()));
        let claim = self.directory.claim_create(&key, id.as_str(), &own_prefix);
        let Ok(Ok(holder)) = tokio::time::timeout(CREATE_PATIENCE, claim).await else { return (None, false) };
        (SessionId::parse(&holder).ok().filter(|holder| holder != id), true)
    }

    /// Frees the key of a create that has made no session.
    pub(super) async fn release_create(&self, owner: &str, key: &str, id: &SessionId) {
        let key = create_key(owner, key);
        let _ = tokio::time::timeout(CREATE_PATIENCE, self.directory.release_create(&key, id.as_str())).await;
    }

    /// Shows these events of this node to the others, oldest first.
    pub(super) async fn show(&self, events: &[(EventPlace, Arc<ServerEvent>)]) -> Result<(), Error> {
        let event = |(place, event): &(EventPlace, Arc<ServerEvent>)| {
            let facts = serde_json::to_string(&**event).ok()?;
            Some(Event { node: event.session.node(), place: place.to_string(), facts })
        };
        self.directory.show(&events.iter().filter_map(event).collect::<Vec<_>>()).await
    }

    /// Waits for further events of other nodes.
    pub(super) async fn follow(&self, followed: &mut Followed) -> Result<Vec<ServerEvent>, Error> {
        let events = self.directory.follow(&mut followed.place).await?;
        Ok(events
            .into_iter()
            .filter(|event| followed.is_new(event))
            .filter_map(|event| serde_json::from_str(&event.facts).ok())
            .collect())
    }

    /// Frees the number of this node.
    pub(super) async fn release(&self) {
        let _ = self.directory.release().await;
    }

    /// Renews the claim, and writes what has changed since the last time, or everything. Returns whether this server has the node's number.
    pub(super) async fn beat(
        &self,
        written: &mut Option<HashMap<SessionId, Record>>,
        records: impl Fn() -> HashMap<SessionId, Record>,
        creates: impl Fn() -> Vec<((String, String), SessionId)>,
    ) -> Result<bool, Error> {
        match self.directory.claim().await? {
            Claim::Taken(instance) => {
                if !self.is_taken.swap(true, Ordering::Relaxed) {
                    tracing::error!(
                        instance,
                        "another server serves with this node's number; this one starts no session"
                    );
                }
                return Ok(false);
            }
            // The directory was emptied, or the lease had expired: it gets everything again.
            Claim::New => *written = None,
            Claim::Renewed => {}
        }
        self.is_taken.store(false, Ordering::Relaxed);
        let now = records();
        match written.take() {
            // An earlier server of this node may have left some, or the directory may have lost some.
            None => {
                self.directory.replace(&now.values().cloned().collect::<Vec<_>>()).await?;
                let keyed =
                    |((owner, key), id): ((String, String), SessionId)| (create_key(&owner, &key), id.to_string());
                self.directory.renew_creates(&creates().into_iter().map(keyed).collect::<Vec<_>>()).await?;
            }
            Some(known) => {
                let is_new = |id: &SessionId, record: &Record| known.get(id) != Some(record);
                let new: Vec<Record> = now.iter().filter(|(id, it)| is_new(id, it)).map(|(_, it)| it.clone()).collect();
                let gone: Vec<Record> =
                    known.iter().filter(|(id, _)| !now.contains_key(id)).map(|(_, it)| it.clone()).collect();
                if !new.is_empty() || !gone.is_empty() {
                    self.directory.write(&new, &gone).await?;
                }
            }
        }
        *written = Some(now);
        Ok(true)
    }
}

/// The record of a session, and the id of the session.
pub(super) fn record(view: &SessionView) -> Option<(SessionId, Record)> {
    let facts = serde_json::to_string(&SessionRecord::of(view)).ok()?;
    Some((view.id.clone(), Record { owner: view.owner.clone(), id: view.id.to_string(), facts }))
}

/// The directory's key for an idempotency key of an owner: a client may have put a secret into its key.
fn create_key(owner: &str, key: &str) -> CreateKey {
    let mut hash = Sha256::new();
    hash.update((owner.len() as u64).to_le_bytes());
    hash.update(owner);
    hash.update(key);
    CreateKey::new(&hash.finalize())
}

/// A name for this server that the next one with the same state directory has, too, and no server on another machine.
fn instance(config: &Config, secret: &Token) -> String {
    let system = rustix::system::uname();
    let hash = secret.name_for(&[b"instance", system.nodename().to_bytes(), config.state_dir.as_os_str().as_bytes()]);
    hash[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    // promise: node-5
    fn an_event_that_was_written_twice_is_taken_once_and_a_new_server_of_a_node_begins_anew() {
        let mut followed = Followed::default();
        let mut is_new = |node, server: u32, number| {
            let place = EventPlace { server, number }.to_string();
            followed.is_new(&Event { node, place, facts: String::new() })
        };
        assert_eq!([1, 2, 3].map(|number| is_new(1, 7, number)), [true; 3]);
        assert_eq!([2, 3, 4].map(|number| is_new(1, 7, number)), [false, false, true]);
        assert_eq!([1, 1].map(|number| is_new(2, 7, number)), [true, false]);
        assert_eq!([1, 2, 1].map(|number| is_new(1, 8, number)), [true, true, false]);
    }
}
