//! The directory of the nodes behind one load balancer, in Redis (or Valkey): which nodes serve, and the records of their sessions.
//!
//! Each key but the stream, the tokens and the keys of creates has one writer, the node whose number it has. A node claims its number with
//! a lease and renews it; a second server with the same number is refused. All keys of a node have its number as their hash tag, so a
//! cluster keeps them in one slot.
//!
//! | key | type | content |
//! |---|---|---|
//! | `ptyd:nodes` | set | the numbers of all nodes that have ever claimed one |
//! | `ptyd:{N}:node` | string, with a lease | the instance that serves as node N |
//! | `ptyd:{N}:owners` | set | the owners of sessions on node N |
//! | `ptyd:{N}:sessions:OWNER` | hash | the id of each live session of an owner on node N, and its record |
//! | `ptyd:create:HASH` | string, with an expiry | the session that an idempotency key created; the hash is of the owner and the key |
//! | `ptyd:events` | stream | the newest events of all nodes, each with its node |
//! | `ptyd:{tokens}:records` | hash | the hash of each named token that the nodes share, and its record |
//! | `ptyd:{tokens}:version` | string | a random word, which is new after each change of these records |

use std::collections::HashMap;
use std::time::Duration;

use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::streams::{StreamReadOptions, StreamReadReply};
use redis::{AsyncCommands as _, Client, ErrorKind, Pipeline, RedisError, Script, pipe};

/// Connecting and each answer take no longer.
const PATIENCE: Duration = Duration::from_secs(1);

/// The longest wait between two attempts to connect.
const RECONNECT_DELAY_MAX: Duration = Duration::from_secs(2);

/// Claims the number for an instance, or renews the claim. It returns the present holder of the number, and whether the claim is new.
const CLAIM: &str = "
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return {holder, 0} end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {ARGV[1], holder and 0 or 1}";

/// Frees a claim, if this instance or session has it.
const RELEASE: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

/// Claims the key of a create for a session, unless a session of another node has it. It returns the session that has it then.
const CLAIM_CREATE: &str = "
local holder = redis.call('GET', KEYS[1])
if holder and string.sub(holder, 1, #ARGV[2]) ~= ARGV[2] then return holder end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
return ARGV[1]";

/// Writes a key's session again, unless a session of another node has the key.
const RENEW_CREATE: &str = "
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return end
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end";

/// The version and the records of the shared tokens, unless the version is the known one.
const TOKENS: &str = "
local version = redis.call('GET', KEYS[1])
if version and version == ARGV[1] then return false end
return {version or '', redis.call('HGETALL', KEYS[2])}";

/// The directory, as one node uses it.
#[derive(Clone)]
pub struct Directory {
    connection: ConnectionManager,
    /// A second connection: a wait for events keeps all other requests on its connection waiting.
    following: ConnectionManager,
    node: u16,
    instance: String,
    lease: Duration,
}

impl std::fmt::Debug for Directory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Directory").field("node", &self.node).field("instance", &self.instance).finish_non_exhaustive()
    }
}

/// Whether Redis refused the password, or wants one.
pub fn is_refused(error: &Error) -> bool {
    error.kind() == ErrorKind::AuthenticationFailed
        || error.code() == Some("NOAUTH")
        || error.code() == Some("WRONGPASS")
}

/// The result of a claim to a node's number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// Nobody had it: the directory has no valid record of this node.
    New,
    /// This instance had it.
    Renewed,
    /// Another instance serves with this number.
    Taken(String),
}

/// A live session's record. Only its node writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The session's owner.
    pub owner: String,
    /// Its id.
    pub id: String,
    /// Its facts, in a form that the nodes agree on.
    pub facts: String,
}

/// Another node, and the facts of its sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherNode {
    /// Its number.
    pub node: u16,
    /// Whether its lease is valid.
    pub is_alive: bool,
    /// The facts of its sessions.
    pub sessions: Vec<String>,
}

/// An event of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The node.
    pub node: u16,
    /// The place of the event in that node's own log. An event that was written twice has the same place.
    pub place: String,
    /// Its facts, in a form that the nodes agree on.
    pub facts: String,
}

/// Why Redis did not answer.
pub type Error = RedisError;

impl Directory {
    /// The directory at this URL (`redis://`, `rediss://`, `redis+unix://`), for an instance that serves as this node. It connects
    /// when it is first asked, and again whenever it has lost its connection. A claim expires `lease` after its last renewal.
    pub fn open(url: &str, node: u16, instance: String, lease: Duration) -> Result<Self, Error> {
        let config = ConnectionManagerConfig::new()
            .set_connection_timeout(Some(PATIENCE))
            .set_response_timeout(Some(PATIENCE))
            .set_number_of_retries(1)
            .set_max_delay(RECONNECT_DELAY_MAX);
        let client = Client::open(url)?;
        let waits = config.clone().set_response_timeout(Some(EVENTS_WAIT + PATIENCE));
        let connection = ConnectionManager::new_lazy_with_config(client.clone(), config)?;
        let following = ConnectionManager::new_lazy_with_config(client, waits)?;
        Ok(Self { connection, following, node, instance, lease })
    }

    /// Claims the number of this node, or renews the claim.
    pub async fn claim(&self) -> Result<Claim, Error> {
        let (holder, is_new): (String, bool) = Script::new(CLAIM)
            .key(self.key("node"))
            .arg(&self.instance)
            .arg(self.lease.as_millis() as u64)
            .invoke_async(&mut self.connection.clone())
            .await?;
        if holder != self.instance {
            return Ok(Claim::Taken(holder));
        }
        // Other nodes find the records by this.
        let () = redis::cmd("SADD").arg(NODES).arg(self.node).query_async(&mut self.connection.clone()).await?;
        Ok(if is_new { Claim::New } else { Claim::Renewed })
    }

    /// Frees the number, so that its sessions are unreachable at once.
    pub async fn release(&self) -> Result<(), Error> {
        Script::new(RELEASE).key(self.key("node")).arg(&self.instance).invoke_async(&mut self.connection.clone()).await
    }

    /// Claims the key of a create for a session of this node, and returns the session that has the key: this one, or one of another node.
    /// Another session of this node loses it.
    pub async fn claim_create(&self, key: &CreateKey, id: &str, own_prefix: &str) -> Result<String, Error> {
        Script::new(CLAIM_CREATE)
            .key(&key.0)
            .arg(id)
            .arg(own_prefix)
            .arg(CREATE_KEY_LASTS.as_millis() as u64)
            .invoke_async(&mut self.connection.clone())
            .await
    }

    /// Frees the key of a create that has made no session.
    pub async fn release_create(&self, key: &CreateKey, id: &str) -> Result<(), Error> {
        Script::new(RELEASE).key(&key.0).arg(id).invoke_async(&mut self.connection.clone()).await
    }

    /// Writes the keys of the creates of this node's sessions again. It leaves those that a session of another node has.
    pub async fn renew_creates(&self, keys: &[(CreateKey, String)]) -> Result<(), Error> {
        let (script, lasts) = (Script::new(RENEW_CREATE), CREATE_KEY_LASTS.as_millis() as u64);
        if !keys.is_empty() {
            // A pipeline calls it by its hash.
            let _: String = script.load_async(&mut self.connection.clone()).await?;
        }
        for some in keys.chunks(CREATE_KEYS_AT_ONCE) {
            let mut all = pipe();
            for (key, id) in some {
                all.invoke_script(script.key(&key.0).arg(id).arg(lasts)).ignore();
            }
            let () = all.query_async(&mut self.connection.clone()).await?;
        }
        Ok(())
    }

    /// Replaces all records of this node by these, at once.
    pub async fn replace(&self, records: &[Record]) -> Result<(), Error> {
        let mut connection = self.connection.clone();
        let owners: Vec<String> = redis::cmd("SMEMBERS").arg(self.key("owners")).query_async(&mut connection).await?;
        let mut all = pipe();
        all.atomic();
        for owner in &owners {
            all.del(self.sessions(owner)).ignore();
        }
        all.del(self.key("owners")).ignore();
        self.add(&mut all, records);
        all.query_async(&mut connection).await
    }

    /// Writes records of this node, and removes those of sessions that have ended.
    pub async fn write(&self, new: &[Record], gone: &[Record]) -> Result<(), Error> {
        let mut all = pipe();
        self.add(&mut all, new);
        for record in gone {
            all.hdel(self.sessions(&record.owner), &record.id).ignore();
        }
        all.query_async(&mut self.connection.clone()).await
    }

    /// Appends events of this node to the stream.
    pub async fn show(&self, events: &[Event]) -> Result<(), Error> {
        let mut all = pipe();
        for event in events {
            let add = all.cmd("XADD").arg(EVENTS).arg("MAXLEN").arg("~").arg(EVENTS_KEPT);
            add.arg("*")
                .arg("node")
                .arg(event.node)
                .arg("place")
                .arg(&event.place)
                .arg("facts")
                .arg(&event.facts)
                .ignore();
        }
        all.query_async(&mut self.connection.clone()).await
    }

    /// The events of other nodes behind a place in the stream, which moves. It waits some seconds for one; without a place, it finds the
    /// present end.
    pub async fn follow(&self, place: &mut Option<String>) -> Result<Vec<Event>, Error> {
        let mut connection = self.following.clone();
        let Some(from) = place else {
            let newest: Vec<(String, Vec<String>)> = redis::cmd("XREVRANGE")
                .arg(EVENTS)
                .arg("+")
                .arg("-")
                .arg("COUNT")
                .arg(1)
                .query_async(&mut connection)
                .await?;
            *place = Some(newest.into_iter().next().map_or_else(|| "0-0".to_owned(), |(id, _)| id));
            return Ok(Vec::new());
        };
        let read = StreamReadOptions::default().block(EVENTS_WAIT.as_millis() as usize).count(EVENTS_READ_MAX);
        let reply: StreamReadReply = connection.xread_options(&[EVENTS], &[from.as_str()], &read).await?;
        let mut events = Vec::new();
        for entry in reply.keys.into_iter().flat_map(|stream| stream.ids) {
            let text = |field| entry.get::<String>(field).unwrap_or_default();
            let of_another = entry.get("node").filter(|node| *node != self.node);
            events.extend(of_another.map(|node| Event { node, place: text("place"), facts: text("facts") }));
            *place = Some(entry.id);
        }
        Ok(events)
    }

    /// The sessions on other nodes: of one owner, or of all. A node whose keys cannot be read has no sessions here, and the second value is
    /// false.
    pub async fn others(&self, owner: Option<&str>) -> Result<(Vec<OtherNode>, bool), Error> {
        let mut connection = self.connection.clone();
        let nodes: Vec<String> = redis::cmd("SMEMBERS").arg(NODES).query_async(&mut connection).await?;
        let (mut others, mut is_whole) = (Vec::new(), true);
        for node in nodes {
            match node.parse() {
                Ok(node) if node == self.node => {}
                Ok(node) => match self.other(node, owner).await {
                    Ok(other) => others.push(other),
                    Err(error) if error.is_io_error() || error.is_connection_dropped() => return Err(error),
                    // Redis answered that a key is not what it should be.
                    Err(_) => is_whole = false,
                },
                Err(_) => is_whole = false,
            }
        }
        Ok((others, is_whole))
    }

    async fn other(&self, node: u16, owner: Option<&str>) -> Result<OtherNode, Error> {
        let mut connection = self.connection.clone();
        let asked =
            pipe().exists(key_of(node, "node")).smembers(key_of(node, "owners")).query_async(&mut connection).await;
        let (is_alive, owners): (bool, Vec<String>) = asked?;
        let mut all = pipe();
        for one in owners.iter().filter(|one| owner.is_none_or(|owner| owner == *one)) {
            all.hvals(sessions_of(node, one));
        }
        let lists: Vec<Vec<String>> =
            if all.is_empty() { Vec::new() } else { all.query_async(&mut connection).await? };
        Ok(OtherNode { node, is_alive, sessions: lists.into_iter().flatten().collect() })
    }

    /// The version and the records of the shared tokens, each with its key; `None` if the version is this one.
    pub async fn tokens(&self, known: &str) -> Result<Option<SharedTokens>, Error> {
        let script = Script::new(TOKENS);
        let mut asked = script.key(TOKENS_VERSION);
        asked.key(TOKENS_RECORDS).arg(known).invoke_async(&mut self.connection.clone()).await
    }

    /// Changes the shared tokens: adds records of unknown ones, replaces some, and removes others.
    pub async fn change_tokens(&self, version: &str, change: &TokenChange) -> Result<(), Error> {
        let mut all = pipe();
        all.atomic();
        for (key, record) in &change.new {
            // Another node may have revoked it meanwhile.
            all.hset_nx(TOKENS_RECORDS, key, record).ignore();
        }
        for (key, record) in &change.replaced {
            all.hset(TOKENS_RECORDS, key, record).ignore();
        }
        for key in &change.gone {
            all.hdel(TOKENS_RECORDS, key).ignore();
        }
        all.set(TOKENS_VERSION, version).ignore();
        all.query_async(&mut self.connection.clone()).await
    }

    fn add(&self, all: &mut Pipeline, records: &[Record]) {
        for record in records {
            all.sadd(self.key("owners"), &record.owner).ignore();
            all.hset(self.sessions(&record.owner), &record.id, &record.facts).ignore();
        }
    }

    fn key(&self, name: &str) -> String {
        key_of(self.node, name)
    }

    fn sessions(&self, owner: &str) -> String {
        sessions_of(self.node, owner)
    }
}

/// The version of the shared tokens, and their records by key.
pub type SharedTokens = (String, HashMap<String, String>);

/// A change of the shared tokens.
#[derive(Debug, Default)]
pub struct TokenChange {
    /// The keys and records to add, unless there is one.
    pub new: Vec<(String, String)>,
    /// The keys and records to write in place of others.
    pub replaced: Vec<(String, String)>,
    /// The keys to remove.
    pub gone: Vec<String>,
}

impl TokenChange {
    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.new.is_empty() && self.replaced.is_empty() && self.gone.is_empty()
    }
}

/// The key under which all nodes find the session that an idempotency key of an owner has created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateKey(String);

impl CreateKey {
    /// The key for this hash of the owner and the idempotency key.
    pub fn new(hash: &[u8]) -> Self {
        let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        Self(format!("ptyd:create:{hash}"))
    }
}

/// The key of a create lasts for so long after its node has last written it.
const CREATE_KEY_LASTS: Duration = Duration::from_secs(24 * 60 * 60);

/// So many keys of creates are written at once.
const CREATE_KEYS_AT_ONCE: usize = 1_000;

/// The records of the shared tokens. The hash tag keeps them in the slot of their version.
const TOKENS_RECORDS: &str = "ptyd:{tokens}:records";

/// Their version.
const TOKENS_VERSION: &str = "ptyd:{tokens}:version";

/// The stream of all events.
const EVENTS: &str = "ptyd:events";

/// About so many events are kept.
const EVENTS_KEPT: usize = 10_000;

/// So many are read at once.
const EVENTS_READ_MAX: usize = 1_000;

/// A reader of events waits this long for one.
const EVENTS_WAIT: Duration = Duration::from_secs(5);

/// The set of all nodes.
const NODES: &str = "ptyd:nodes";

fn key_of(node: u16, name: &str) -> String {
    format!("ptyd:{{{node}}}:{name}")
}

fn sessions_of(node: u16, owner: &str) -> String {
    format!("ptyd:{{{node}}}:sessions:{owner}")
}
