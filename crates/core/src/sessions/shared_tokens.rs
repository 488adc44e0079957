//! The named tokens that the nodes of a fleet share, by way of the directory.
//!
//! Each node has all of them in its own file, and checks requests with that: it needs the directory only to learn of new tokens and
//! revocations. A record carries a code that only a server with the key of the fleet can make. So write access to the
//! directory is not enough to make a token.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use directory::{Directory, Error, TokenChange};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use tokio::time::{Instant, sleep_until};

use crate::credentials::named_tokens::{StoredToken, Tokens};
use crate::limits::FLEET_KEY_BYTES_MIN;
use crate::serve_error::ServeError;

/// Requests with unknown tokens make this node ask the directory at most this often.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// This node's part in the sharing of tokens.
#[derive(Debug)]
pub(super) struct SharedTokens {
    directory: Directory,
    key: FleetKey,
    /// The version of the records that this node has read. It exchanges its tokens once at a time.
    known: tokio::sync::Mutex<String>,
    /// When a request with an unknown token was last the reason to ask.
    asked: tokio::sync::Mutex<Option<Instant>>,
}

impl SharedTokens {
    /// Shares tokens by this directory, under the key in this file.
    pub(super) fn open(directory: Directory, key: &Path) -> Result<Self, ServeError> {
        let key = FleetKey::read(key)?;
        Ok(Self { directory, key, known: tokio::sync::Mutex::default(), asked: tokio::sync::Mutex::default() })
    }

    /// Takes the news of other nodes, and gives them those of this one. It returns the names of the tokens that are new here or revoked.
    pub(super) async fn exchange(&self, tokens: &Arc<Tokens>, extent: Exchange) -> Result<Vec<String>, Error> {
        let mut known = self.known.lock().await;
        if extent == Exchange::Whole {
            known.clear();
        }
        let Some((version, records)) = self.directory.tokens(&known).await? else { return Ok(Vec::new()) };
        let now = sys::time::wall();
        let theirs: Vec<StoredToken> =
            records.iter().filter_map(|(key, record)| self.key.opened(key, record)).collect();
        let unread = records.len() - theirs.len();
        if unread > 0 {
            tracing::warn!(unread, "records of tokens in the directory are damaged, or made with another fleet key");
        }
        let told: HashMap<String, Told> =
            theirs.iter().map(|token| (token.key().to_owned(), Told::of(token, now))).collect();
        let merging = Arc::clone(tokens);
        // A file is written.
        let changed = tokio::task::spawn_blocking(move || merging.merge(theirs)).await.unwrap_or_default();
        let ours = tokens.records();
        let mut change = TokenChange::default();
        for token in ours.iter().filter(|token| !token.has_expired(now)) {
            let is_unread = !told.contains_key(token.key()) && records.contains_key(token.key());
            let to = match (told.get(token.key()), token.revoked()) {
                (None, _) if is_unread && extent == Exchange::Whole => &mut change.replaced,
                (None, _) if is_unread => continue,
                (None, None) => &mut change.new,
                (None | Some(Told::Valid), Some(_)) => &mut change.replaced,
                (Some(Told::Revoked(theirs)), Some(ours)) if ours < *theirs => &mut change.replaced,
                (Some(_), _) => continue,
            };
            to.extend(self.key.sealed(token).map(|record| (token.key().to_owned(), record)));
        }
        let ours: HashSet<&str> = ours.iter().map(StoredToken::key).collect();
        let is_over = |key: &str, told: &Told| match told {
            Told::Expired => true,
            // It is so old that every node forgets the revocation.
            Told::Revoked(_) => !ours.contains(key),
            Told::Valid => false,
        };
        change.gone = told.iter().filter(|(key, told)| is_over(key, told)).map(|(key, _)| key.clone()).collect();
        if !change.is_empty() {
            let mut random = [0u8; 16];
            getrandom::fill(&mut random).expect("invariant: the kernel gives random bytes");
            self.directory.change_tokens(&URL_SAFE_NO_PAD.encode(random), &change).await?;
        }
        *known = version;
        Ok(changed)
    }

    /// The same for a request with an unknown token. Such requests ask the directory once a second at most; those that come meanwhile
    /// wait for the next answer.
    pub(super) async fn look_for_news(&self, tokens: &Arc<Tokens>) -> Vec<String> {
        let came = Instant::now();
        let mut asked = self.asked.lock().await;
        match *asked {
            // A look that began after this request came has read every older record.
            Some(at) if at >= came => return Vec::new(),
            Some(at) => sleep_until(at + ASK_EVERY).await,
            None => {}
        }
        *asked = Some(Instant::now());
        self.exchange(tokens, Exchange::News).await.unwrap_or_default()
    }
}

/// The extent of one exchange with the directory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Exchange {
    /// It ends at once if the other nodes have no news.
    News,
    /// It also writes this node's own tokens, and replaces records that this node cannot read.
    Whole,
}

/// The state of a token by its record in the directory.
enum Told {
    Valid,
    Revoked(SystemTime),
    Expired,
}

impl Told {
    fn of(token: &StoredToken, now: SystemTime) -> Self {
        match token.revoked() {
            _ if token.has_expired(now) => Self::Expired,
            Some(time) => Self::Revoked(time),
            None => Self::Valid,
        }
    }
}

/// The key that the servers of a fleet share.
struct FleetKey(Hmac<Sha256>);

impl std::fmt::Debug for FleetKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FleetKey(…)")
    }
}

impl FleetKey {
    fn read(path: &Path) -> Result<Self, ServeError> {
        let mut file = File::open(path).map_err(ServeError::at(path))?;
        if file.metadata().map_err(ServeError::at(path))?.permissions().mode() & 0o006 != 0 {
            return Err(ServeError::FleetKeyOpen(path.to_owned()));
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(ServeError::at(path))?;
        let key = bytes.trim_ascii();
        if key.len() < FLEET_KEY_BYTES_MIN {
            return Err(ServeError::FleetKey(path.to_owned()));
        }
        Ok(Self(Hmac::new_from_slice(key).expect("invariant: a key of any length will do")))
    }

    /// A token's record with its code.
    fn sealed(&self, token: &StoredToken) -> Option<String> {
        let facts = serde_json::to_string(token).ok()?;
        let code = self.0.clone().chain_update(&facts).finalize().into_bytes();
        Some(format!("{} {facts}", URL_SAFE_NO_PAD.encode(code)))
    }

    /// The token of a record, if a server of this fleet wrote it under this key.
    fn opened(&self, key: &str, record: &str) -> Option<StoredToken> {
        let (code, facts) = record.split_once(' ')?;
        let code = URL_SAFE_NO_PAD.decode(code).ok()?;
        self.0.clone().chain_update(facts).verify_slice(&code).ok()?;
        serde_json::from_str(facts).ok().filter(|token: &StoredToken| token.key() == key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    // promise: node-6
    fn a_record_is_taken_only_from_a_server_with_the_key_of_the_fleet() {
        let dir = tempfile::tempdir().expect("a directory");
        let key = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).expect("written");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).expect("private");
            FleetKey::read(&path)
        };
        let (ours, same) =
            (key("a", &"k".repeat(32)).expect("read"), key("b", &format!("{}\n", "k".repeat(32))).expect("read"));
        let other = key("c", &"K".repeat(32)).expect("read");
        assert!(matches!(key("short", &"k".repeat(31)), Err(ServeError::FleetKey(_))));
        std::fs::set_permissions(dir.path().join("a"), std::fs::Permissions::from_mode(0o644)).expect("loosened");
        assert!(matches!(FleetKey::read(&dir.path().join("a")), Err(ServeError::FleetKeyOpen(_))));
        let token: StoredToken = serde_json::from_value(serde_json::json!({
            "name": "ann", "scope": "write", "sha256": "hash", "created": { "secs_since_epoch": 1, "nanos_since_epoch": 0 }
        }))
        .expect("a token");
        let sealed = ours.sealed(&token).expect("text");
        assert!(same.opened("hash", &sealed).is_some_and(|opened| opened == token));
        assert!(other.opened("hash", &sealed).is_none());
        assert!(ours.opened("another", &sealed).is_none());
        for at in 0..sealed.len() {
            let mut forged = sealed.clone().into_bytes();
            forged[at] ^= 1;
            let forged = String::from_utf8(forged).expect("ASCII");
            assert!(ours.opened("hash", &forged).is_none(), "{forged}");
        }
    }
}
