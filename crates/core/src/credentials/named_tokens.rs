//! Named tokens: one for each agent or program, with a scope, each revocable by itself.
//!
//! Only a token's hash is stored, in a file that only its owner can read; the token itself is shown once. It has 256
//! random bits, so a plain hash cannot be reversed. No code in here puts a token into a log or an error.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use tokio::sync::watch;

use super::named_secrets::{name_problem, variable_problem};
use crate::action::{ActionError, FreshToken, MakeToken, TokenView};
use crate::limits::{
    PROFILE_NAME_CHARS_MAX, PROFILE_SECRETS_MAX, REVOKED_TOKENS_MAX, TOKEN_NAME_CHARS_MAX, TOKEN_PROFILES_MAX,
    TOKENS_MAX,
};
use crate::principal::{Pass, Principal, Scope, local_name};
use crate::state_dir;
use crate::token_bounds::{TokenBounds, TokenSecret};

/// As many as the server's own token has.
const RANDOM_BYTES: usize = 32;
/// The prefix of tokens, so that secret scanners find them.
pub const PREFIX: &str = "ptyd_";

/// A stored token. Fields may be added and never change their meaning.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredToken {
    name: String,
    scope: Scope,
    /// The hash of the whole token, in base64.
    sha256: String,
    created: SystemTime,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires: Option<SystemTime>,
    /// The named token at the head of its chain of makers; none where the user has made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first_maker: Option<String>,
    #[serde(flatten)]
    bounds: TokenBounds,
    /// When it was revoked. Nodes that share their tokens keep its record, so that none of them takes the token again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    revoked: Option<SystemTime>,
}

/// A token, and the channel that ends what was opened with it.
struct TokenEntry {
    kept: StoredToken,
    hash: [u8; 32],
    revoked: watch::Sender<bool>,
}

/// The named tokens of one server.
pub struct Tokens {
    path: PathBuf,
    /// Whether other nodes have the same tokens.
    is_shared: bool,
    /// Held while the tokens change and the file is written.
    writing: Mutex<()>,
    /// Every request looks here, so it is never held while the disk is waited for.
    known: Mutex<KnownTokens>,
}

#[derive(Default)]
struct KnownTokens {
    valid: Vec<TokenEntry>,
    /// The records of revoked tokens by their hashes, if they are shared.
    revoked: HashMap<String, StoredToken>,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tokens(…)")
    }
}

impl StoredToken {
    /// Its key among the tokens that nodes share.
    pub(crate) fn key(&self) -> &str {
        &self.sha256
    }

    pub(crate) fn revoked(&self) -> Option<SystemTime> {
        self.revoked
    }

    fn is_revoked(&self) -> bool {
        self.revoked.is_some()
    }

    pub(crate) fn has_expired(&self, now: SystemTime) -> bool {
        self.expires.is_some_and(|at| now >= at)
    }

    /// Revoked records first, then the older ones.
    fn merge_order(&self) -> (bool, SystemTime, &str) {
        (!self.is_revoked(), self.created, &self.sha256)
    }

    /// The oldest revocation first.
    fn revocation_order(&self) -> (Option<SystemTime>, &str) {
        (self.revoked, &self.sha256)
    }

    /// Of two tokens with one name, which two nodes made at once, every node takes the same one.
    fn is_before(&self, other: &Self) -> bool {
        (self.created, &self.sha256) < (other.created, &other.sha256)
    }
}

impl TokenEntry {
    fn new(kept: StoredToken) -> Option<Self> {
        let hash = URL_SAFE_NO_PAD.decode(&kept.sha256).ok()?.try_into().ok()?;
        Some(Self { kept, hash, revoked: watch::Sender::new(false) })
    }

    fn view(&self) -> TokenView {
        let StoredToken { name, scope, created, expires, first_maker, bounds, .. } = self.kept.clone();
        TokenView { name, scope, created_at: created, expires_at: expires, first_maker, bounds }
    }

    fn has_expired(&self, now: SystemTime) -> bool {
        self.kept.has_expired(now)
    }

    /// `None` once the token has expired.
    fn principal(&self) -> Option<Principal> {
        if self.has_expired(sys::time::wall()) {
            return None;
        }
        let StoredToken { expires, first_maker, bounds, .. } = self.kept.clone();
        let pass = Some(Pass::new(self.revoked.subscribe(), expires, first_maker, bounds));
        Some(Principal { pass, ..Principal::named(&self.kept.name, self.kept.scope) })
    }
}

impl Tokens {
    /// Reads the file. A file that cannot be parsed is an error: starting without it would lose the tokens.
    pub fn open(path: &Path, is_shared: bool) -> io::Result<Self> {
        // Left half written by a killed server.
        state_dir::remove_draft(path);
        let kept: Vec<StoredToken> = state_dir::read_sealed(path)?.unwrap_or_default();
        let (revoked, valid): (Vec<StoredToken>, Vec<StoredToken>) =
            kept.into_iter().partition(StoredToken::is_revoked);
        let revoked = revoked.into_iter().map(|record| (record.sha256.clone(), record)).collect();
        let valid: Option<Vec<TokenEntry>> = valid.into_iter().map(TokenEntry::new).collect();
        let valid = valid.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a hash of a token is damaged"))?;
        let known = Mutex::new(KnownTokens { valid, revoked });
        Ok(Self { path: path.to_owned(), is_shared, writing: Mutex::default(), known })
    }

    /// The principal of this token, if it is valid. The comparison takes constant time: it reveals neither how much of
    /// the token is right nor which one it is.
    pub fn find(&self, shown: &str) -> Option<Principal> {
        let hash: [u8; 32] = Sha256::digest(shown.as_bytes()).into();
        let known = self.locked();
        let mut found = u64::MAX;
        for (i, token) in (0u64..).zip(known.valid.iter()) {
            let is_it: Choice = token.hash.ct_eq(&hash);
            found.conditional_assign(&i, is_it);
        }
        known.valid.get(usize::try_from(found).ok()?)?.principal()
    }

    /// The principal of the token of this name, if it is valid.
    pub fn find_by_name(&self, name: &str) -> Option<Principal> {
        self.locked().valid.iter().find(|token| token.kept.name == name)?.principal()
    }

    /// Makes a token for a principal; it is shown only this once.
    pub(crate) fn make(&self, maker: &Principal, request: &MakeToken) -> Result<FreshToken, ActionError> {
        let MakeToken { name, scope, lifetime, bounds } = request.clone();
        check_name(&name)?;
        check_profiles(scope, &bounds.profiles)?;
        if scope == Scope::Admin && bounds.confinement.is_some() {
            let problem = "a token of scope admin may use every session, so it cannot be confined".to_owned();
            return Err(ActionError::Invalid { field: "confinement", problem });
        }
        if scope == Scope::Admin && bounds.policy.is_some() {
            let problem = "a token of scope admin may make tokens without a policy, so it cannot have one".to_owned();
            return Err(ActionError::Invalid { field: "policy", problem });
        }
        check_secrets(&bounds.secrets)?;
        let mut bytes = [0u8; RANDOM_BYTES];
        getrandom::fill(&mut bytes).expect("invariant: the kernel gives random bytes");
        let token = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes));
        let now = sys::time::wall();
        let kept = StoredToken {
            name: name.clone(),
            scope,
            sha256: URL_SAFE_NO_PAD.encode(Sha256::digest(token.as_bytes())),
            created: now,
            expires: lifetime.and_then(|lifetime| now.checked_add(lifetime)),
            first_maker: maker.pass.as_ref().map(|_| maker.first_maker().to_owned()),
            bounds,
            revoked: None,
        };
        let fresh = TokenEntry::new(kept).expect("invariant: what was encoded can be decoded");
        let view = fresh.view();
        let _one = self.changing();
        let mut known = self.locked();
        // An expired token is invalid, and its name is free again.
        known.valid.retain(|k| !k.has_expired(now));
        if known.valid.iter().any(|k| k.kept.name == name) {
            let problem = format!("there is already a token {name}; revoke it first, or choose another name");
            return Err(ActionError::Invalid { field: "name", problem });
        }
        if known.valid.len() >= TOKENS_MAX {
            let hint = "revoke an unused one";
            return Err(ActionError::Limit { what: "the number of tokens", limit: TOKENS_MAX as u64, hint });
        }
        let mut records: Vec<StoredToken> = known.all().cloned().collect();
        drop(known);
        records.push(fresh.kept.clone());
        self.write(&records).map_err(|error| cannot_keep(&error))?;
        self.locked().valid.push(fresh);
        Ok(FreshToken { token, view, sessions_out_of_bounds: 0 })
    }

    /// Revokes a token: it admits no new request, and open streams and waits of its principal end.
    pub(crate) fn revoke(&self, name: &str) -> Result<TokenView, ActionError> {
        let _one = self.changing();
        let mut known = self.locked();
        let Some(at) = known.valid.iter().position(|k| k.kept.name == name) else {
            return Err(ActionError::NoToken { name: name.to_owned() });
        };
        let view = known.valid[at].view();
        // Even if the file cannot be written: the revocation then holds until the server restarts, and the caller gets
        // the error.
        let now = sys::time::wall();
        known.revoke(at, now, now, self.is_shared);
        let records: Vec<StoredToken> = known.all().cloned().collect();
        drop(known);
        self.write(&records).map_err(|e| cannot_keep(&e))?;
        Ok(view)
    }

    /// Every record, for the other nodes.
    pub(crate) fn records(&self) -> Vec<StoredToken> {
        self.locked().all().cloned().collect()
    }

    /// Takes what other nodes know: tokens that are new here, and revocations. It returns the names of those tokens. Revocations win,
    /// in whatever order the records arrive, so all nodes come to know the same.
    pub(crate) fn merge(&self, mut records: Vec<StoredToken>) -> Vec<String> {
        let now = sys::time::wall();
        let _one = self.changing();
        let mut known = self.locked();
        known.valid.retain(|token| !token.has_expired(now));
        // A revocation frees the name for the token that follows it.
        records.sort_by(|a, b| a.merge_order().cmp(&b.merge_order()));
        let mut changed = Vec::new();
        for record in records.into_iter().filter(|record| !record.has_expired(now)) {
            let name = record.name.clone();
            if let Err(error) = check_name(&name) {
                tracing::warn!(token = ?name, %error, "this node ignores a token of another node");
            } else if known.merge(record, now) {
                changed.push(name);
            }
        }
        let records: Vec<StoredToken> = known.all().cloned().collect();
        drop(known);
        if let Err(error) = if changed.is_empty() { Ok(()) } else { self.write(&records) } {
            tracing::error!(%error, "the tokens of other nodes are valid until this server ends: their file cannot be written");
        }
        changed
    }

    /// Every token, by name.
    pub(crate) fn list(&self) -> Vec<TokenView> {
        let mut views: Vec<TokenView> = self.locked().valid.iter().map(TokenEntry::view).collect();
        views.sort_by(|a, b| a.name.cmp(&b.name));
        views
    }

    fn locked(&self) -> MutexGuard<'_, KnownTokens> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changing(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, records: &[StoredToken]) -> io::Result<()> {
        state_dir::replace_sealed(&self.path, &records)
    }
}

impl KnownTokens {
    fn all(&self) -> impl Iterator<Item = &StoredToken> {
        self.valid.iter().map(|token| &token.kept).chain(self.revoked.values())
    }

    /// Revokes the token at this place as of this time, and disconnects its clients.
    fn revoke(&mut self, at: usize, time: SystemTime, now: SystemTime, is_shared: bool) {
        let TokenEntry { kept, revoked, .. } = self.valid.remove(at);
        revoked.send_replace(true);
        if is_shared {
            self.keep_revoked(StoredToken { revoked: Some(time), ..kept }, now);
        }
    }

    fn keep_revoked(&mut self, record: StoredToken, now: SystemTime) {
        self.revoked.insert(record.sha256.clone(), record);
        if self.revoked.len() > REVOKED_TOKENS_MAX {
            self.revoked.retain(|_, old| !old.has_expired(now));
        }
        if self.revoked.len() > REVOKED_TOKENS_MAX
            && let Some(oldest) = self.oldest_revoked().map(|oldest| oldest.sha256.clone())
        {
            self.revoked.remove(&oldest);
        }
    }

    fn oldest_revoked(&self) -> Option<&StoredToken> {
        self.revoked.values().min_by_key(|record| record.revocation_order())
    }

    /// Takes another node's record. It returns whether it was news. A revocation gets the same time at every node, so that all nodes
    /// forget the same ones.
    fn merge(&mut self, record: StoredToken, now: SystemTime) -> bool {
        let is_forgotten =
            |oldest: &StoredToken| record.is_revoked() && record.revocation_order() <= oldest.revocation_order();
        if let Some(known) = self.revoked.get_mut(&record.sha256) {
            // Two nodes have revoked it at once: all keep the earlier time.
            known.revoked = known.revoked.min(record.revoked.or(known.revoked));
            return false;
        }
        if self.revoked.len() >= REVOKED_TOKENS_MAX && self.oldest_revoked().is_some_and(is_forgotten) {
            return false;
        }
        let at = self.valid.iter().position(|token| token.kept.sha256 == record.sha256);
        match (at, record.revoked) {
            (Some(at), Some(time)) => self.revoke(at, time, now, true),
            (Some(_), None) => return false,
            (None, Some(_)) => self.keep_revoked(record, now),
            (None, None) => return self.merge_new(record, now),
        }
        true
    }

    /// Takes a valid token that is new here.
    fn merge_new(&mut self, record: StoredToken, now: SystemTime) -> bool {
        let Some(token) = TokenEntry::new(record) else { return false };
        if let Some(at) = self.valid.iter().position(|known| known.kept.name == token.kept.name) {
            tracing::warn!(token = %token.kept.name, "two nodes made a token of this name; the older one is valid");
            if self.valid[at].kept.is_before(&token.kept) {
                self.keep_revoked(StoredToken { revoked: Some(token.kept.created), ..token.kept }, now);
                return true;
            }
            let time = self.valid[at].kept.created;
            self.revoke(at, time, now, true);
        }
        self.valid.push(token);
        true
    }
}

fn cannot_keep(error: &io::Error) -> ActionError {
    ActionError::Internal { why: format!("the file of the tokens cannot be written: {error}") }
}

/// An admin uses all sessions, so its own profiles would bind nothing.
fn check_profiles(scope: Scope, profiles: &[String]) -> Result<(), ActionError> {
    let is_name = |name: &String| (1..=PROFILE_NAME_CHARS_MAX).contains(&name.chars().count());
    let problem = if scope == Scope::Admin && !profiles.is_empty() {
        "a token of scope admin may use every session, so it cannot be bound to profiles".to_owned()
    } else if profiles.len() > TOKEN_PROFILES_MAX || !profiles.iter().all(is_name) {
        format!("may have at most {TOKEN_PROFILES_MAX} names of 1 to {PROFILE_NAME_CHARS_MAX} characters")
    } else {
        return Ok(());
    };
    Err(ActionError::Invalid { field: "profiles", problem })
}

/// Each secret is a variable of its own, and none by which programs load code.
fn check_secrets(secrets: &[TokenSecret]) -> Result<(), ActionError> {
    let variables: Vec<_> = secrets.iter().map(|secret| &secret.variable).collect();
    let twice = (1..variables.len()).find(|at| variables[..*at].contains(&variables[*at]));
    let problem = if secrets.len() > PROFILE_SECRETS_MAX {
        format!("may have at most {PROFILE_SECRETS_MAX}")
    } else if let Some(problem) = secrets.iter().find_map(|secret| name_problem(&secret.name)) {
        format!("the name of a secret {problem}")
    } else if let Some(problem) = secrets.iter().find_map(|secret| name_problem(&secret.variable)) {
        format!("the variable of a secret {problem}")
    } else if let Some(problem) = secrets.iter().find_map(|secret| variable_problem(&secret.variable)) {
        problem
    } else if let Some(at) = twice {
        format!("{} is given twice", variables[at])
    } else {
        return Ok(());
    };
    Err(ActionError::Invalid { field: "secrets", problem })
}

/// A token's name is the owner of its sessions, and is used in paths and logs.
fn check_name(name: &str) -> Result<(), ActionError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    let problem = if name == local_name() {
        "is the name of the server's user, whose sessions the token would own; choose another".to_owned()
    } else if !starts_well || name.len() > TOKEN_NAME_CHARS_MAX || !name.chars().all(is_plain) {
        format!(
            "must be 1 to {TOKEN_NAME_CHARS_MAX} letters, digits, `-`, `_` or `.`, and begin with a letter or digit"
        )
    } else {
        return Ok(());
    };
    Err(ActionError::Invalid { field: "name", problem })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    fn tokens(dir: &tempfile::TempDir) -> Tokens {
        Tokens::open(&dir.path().join("tokens.json"), false).expect("opened")
    }

    fn principal(tokens: &Tokens, shown: &str) -> Option<(String, Scope)> {
        tokens.find(shown).map(|p| (p.name, p.scope))
    }

    fn request(name: &str, scope: Scope, lifetime: Option<Duration>) -> MakeToken {
        MakeToken { name: name.to_owned(), scope, lifetime, bounds: TokenBounds::default() }
    }

    #[test]
    // promise: access-3
    fn a_named_token_is_kept_as_a_hash_that_only_its_owner_can_read() {
        let dir = tempfile::tempdir().expect("a directory");
        let made = tokens(&dir).make(&Principal::local(), &request("agent-1", Scope::Write, None)).expect("made");
        let path = dir.path().join("tokens.json");
        let text = fs::read_to_string(&path).expect("kept");
        assert!(text.contains("agent-1") && !text.contains(&made.token) && !text.contains(&made.token[5..]));
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        assert_eq!((made.token.len(), format!("{:?}", made).contains(&made.token)), (48, false));
        // The next server knows it, and repairs a file that others can read.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("loosened");
        assert_eq!(principal(&tokens(&dir), &made.token), Some(("agent-1".to_owned(), Scope::Write)));
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        for damaged in ["[{".to_owned(), text.replacen("\"write\"", "\"admin\"", 1)] {
            fs::write(&path, &damaged).expect("damaged");
            assert!(damaged != text && Tokens::open(&path, false).is_err(), "{damaged}");
        }
    }

    #[test]
    // promise: access-3
    fn a_token_whose_hash_begins_like_anothers_is_a_different_token() {
        let dir = tempfile::tempdir().expect("a directory");
        let tokens = tokens(&dir);
        let good = tokens.make(&Principal::local(), &request("a", Scope::Read, None)).expect("made").token;
        let hash = |text: &str| <[u8; 32]>::from(Sha256::digest(text.as_bytes()));
        // One of 256 has the same first byte, and one of 256 the same last.
        let all = || (0..).map(|n: u32| format!("{PREFIX}{n}"));
        let like_first = all().find(|text| hash(text)[0] == hash(&good)[0]).expect("there is one");
        let like_last = all().find(|text| hash(text)[31] == hash(&good)[31]).expect("there is one");
        assert_eq!([good, like_first, like_last].map(|text| tokens.find(&text).is_some()), [true, false, false]);
    }

    #[tokio::test]
    // promise: access-6
    async fn a_revoked_token_admits_nobody_and_disconnects_its_clients() {
        let dir = tempfile::tempdir().expect("a directory");
        let tokens = tokens(&dir);
        let [a, b] = ["a", "b"]
            .map(|name| tokens.make(&Principal::local(), &request(name, Scope::Read, None)).expect("made").token);
        let (visitor, other) = (tokens.find(&a).expect("good"), tokens.find(&b).expect("good"));
        let out = visitor.shut_out();
        assert_eq!(tokens.revoke("a").map(|t| t.name).ok(), Some("a".to_owned()));
        out.await;
        assert_eq!([visitor.is_shut_out(), other.is_shut_out()], [true, false]);
        assert!(tokens.find(&a).is_none() && tokens.find(&b).is_some());
        assert!(matches!(tokens.revoke("a"), Err(ActionError::NoToken { .. })));
        // A new one of the same name is another token.
        let again = tokens.make(&Principal::local(), &request("a", Scope::Read, None)).expect("made").token;
        assert!(tokens.find(&again).is_some_and(|p| p != visitor) && tokens.find(&a).is_none());
    }

    #[tokio::test]
    // promise: access-6
    async fn a_token_expires_for_those_who_are_in_too() {
        let dir = tempfile::tempdir().expect("a directory");
        let tokens = tokens(&dir);
        // A slow disk may take longer to keep it than it lives.
        let made = [100, 1_000, 10_000].into_iter().find_map(|millis| {
            let short = tokens
                .make(&Principal::local(), &request("short", Scope::Admin, Some(Duration::from_millis(millis))))
                .expect("made")
                .token;
            tokens.find(&short).map(|found| (short, found))
        });
        let (short, found) = made.expect("still good");
        found.shut_out().await;
        assert_eq!(principal(&tokens, &short), None);
        // Its name is free.
        assert!(tokens.make(&Principal::local(), &request("short", Scope::Read, None)).is_ok());
    }

    #[test]
    // promise: secret-4
    fn the_bounds_of_a_token_are_stored_and_impossible_ones_are_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        let secret = |name: &str, variable: &str| TokenSecret { name: name.to_owned(), variable: variable.to_owned() };
        let of = |scope, policy: Option<&str>, secrets: Vec<TokenSecret>| {
            let bounds = TokenBounds { policy: policy.map(str::to_owned), secrets, ..TokenBounds::default() };
            tokens(&dir).make(&Principal::local(), &MakeToken { bounds, ..request("bot", scope, None) })
        };
        for refused in [
            of(Scope::Admin, Some("dev"), Vec::new()),
            of(Scope::Write, None, vec![secret("KEY", "LD_PRELOAD")]),
            of(Scope::Write, None, vec![secret("key", "KEY")]),
            of(Scope::Write, None, vec![secret("A", "KEY"), secret("B", "KEY")]),
        ] {
            assert!(matches!(refused, Err(ActionError::Invalid { field: "policy" | "secrets", .. })), "{refused:?}");
        }
        let made = of(Scope::Write, Some("dev"), vec![secret("KEY", "API_KEY")]).expect("made");
        let found = tokens(&dir).find(&made.token).expect("the next server knows it");
        assert_eq!((found.policy(), found.secrets()), (Some("dev"), &[secret("KEY", "API_KEY")][..]));
    }

    #[test]
    // promise: policy-7
    fn a_token_names_its_first_maker() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut maker = Principal::local();
        for name in ["ada", "puppet", "next"] {
            let made = tokens(&dir).make(&maker, &request(name, Scope::Admin, None)).expect("made");
            maker = tokens(&dir).find(&made.token).expect("the next server knows it");
            assert_eq!(maker.first_maker(), "ada");
        }
        let text = fs::read_to_string(dir.path().join("tokens.json")).expect("kept");
        assert_eq!(text.matches("first_maker").count(), 2, "{text}");
    }

    #[test]
    fn a_token_has_a_plain_name_of_its_own_that_is_not_the_users() {
        let dir = tempfile::tempdir().expect("a directory");
        let tokens = tokens(&dir);
        assert!(
            ["a", "Agent_1.x-y"]
                .iter()
                .all(|name| tokens.make(&Principal::local(), &request(name, Scope::Read, None)).is_ok())
        );
        let user = local_name();
        for bad in ["", "a", "a b", "../x", ".a", "ä", "a/b", &"x".repeat(65), &user] {
            let refused = tokens.make(&Principal::local(), &request(bad, Scope::Read, None));
            assert!(matches!(refused, Err(ActionError::Invalid { field: "name", .. })), "{bad}");
        }
        assert_eq!(tokens.list().into_iter().map(|t| t.name).collect::<Vec<_>>(), ["Agent_1.x-y", "a"]);
    }

    #[test]
    // promise: node-6
    fn nodes_come_to_know_the_same_tokens_in_whatever_order_they_learn_of_them() {
        let dir = tempfile::tempdir().expect("a directory");
        let open = |name: &str| Tokens::open(&dir.path().join(name), true).expect("opened");
        let makers = ["a", "b", "c"].map(open);
        let make = |at: usize, name: &str| {
            makers[at].make(&Principal::local(), &request(name, Scope::Write, None)).expect("made").token
        };
        // Two nodes make a token of the same name, and each revokes one of its own.
        let older = make(0, "twin");
        let [younger, revoked, plain] = [make(1, "twin"), make(1, "gone"), make(2, "plain")];
        makers[1].revoke("gone").expect("revoked");
        let revoked_again = make(1, "gone");
        let records: Vec<StoredToken> = makers.iter().flat_map(Tokens::records).collect();
        assert_eq!(records.len(), 5);
        // Every rotation, forwards and backwards, and each record twice.
        for round in 0..2 * records.len() {
            let mut order = records.clone();
            order.rotate_left(round / 2);
            if round % 2 == 1 {
                order.reverse();
            }
            let path = dir.path().join(format!("node-{round}"));
            let node = Tokens::open(&path, true).expect("opened");
            node.merge(order.clone());
            assert_eq!(node.merge(order), Vec::<String>::new(), "nothing is news twice");
            for node in [node, Tokens::open(&path, true).expect("opened again")] {
                let valid =
                    [&older, &younger, &revoked, &plain, &revoked_again].map(|shown| node.find(shown).is_some());
                assert_eq!(valid, [true, false, false, true, true], "round {round}");
            }
        }
    }

    #[test]
    // promise: node-6
    fn nodes_with_too_many_revocations_forget_the_same_ones() {
        let dir = tempfile::tempdir().expect("a directory");
        let record = |i: usize, revoked: Option<usize>| -> StoredToken {
            let time = |at: usize| serde_json::json!({ "secs_since_epoch": at, "nanos_since_epoch": 0 });
            serde_json::from_value(serde_json::json!({
                "name": format!("t{i}"), "scope": "read", "created": time(1), "revoked": revoked.map(time),
                "sha256": URL_SAFE_NO_PAD.encode(Sha256::digest(i.to_string())),
            }))
            .expect("a record")
        };
        let count = REVOKED_TOKENS_MAX + 20;
        // Some share a time, and one node knows some of them as valid, or revoked them later.
        let revoked: Vec<_> = (0..count).map(|i| record(i, Some(10 + i / 3))).collect();
        let known: Vec<_> = (0..count).step_by(40).map(|i| record(i, (i % 80 == 0).then_some(20 + count))).collect();
        let [one, two] = ["a", "b"].map(|name| Tokens::open(&dir.path().join(name), true).expect("opened"));
        one.merge(known);
        one.merge(revoked.iter().rev().cloned().collect());
        two.merge(revoked);
        for _ in 0..2 {
            two.merge(one.records());
            one.merge(two.records());
        }
        let facts = |node: &Tokens| {
            let mut facts: Vec<_> = node.records().into_iter().map(|token| (token.sha256, token.revoked)).collect();
            facts.sort();
            facts
        };
        assert_eq!(facts(&one).len(), REVOKED_TOKENS_MAX);
        assert!(facts(&one) == facts(&two));
    }

    #[test]
    // promise: node-6
    fn a_name_that_is_free_again_belongs_to_the_new_token_at_a_node_that_knows_the_old_one() {
        let dir = tempfile::tempdir().expect("a directory");
        for round in 0..20 {
            let open = |name| Tokens::open(&dir.path().join(format!("{name}-{round}")), true).expect("opened");
            let [one, two] = ["a", "b"].map(open);
            let make = |name: &str, lifetime| one.make(&Principal::local(), &request(name, Scope::Write, lifetime));
            for (name, lifetime) in [("revoked", None), ("expired", Some(Duration::from_millis(1)))] {
                make(name, lifetime).expect("made");
            }
            two.merge(one.records());
            one.revoke("revoked").expect("revoked");
            while one.find_by_name("expired").is_some() {}
            let fresh = ["revoked", "expired"].map(|name| make(name, None).expect("made again").token);
            let mut records = one.records();
            records.rotate_left(round % 3);
            two.merge(records);
            one.merge(two.records());
            for node in [&one, &two] {
                assert!(fresh.iter().all(|shown| node.find(shown).is_some()), "round {round}");
            }
        }
    }

    #[tokio::test]
    // promise: node-6
    async fn a_revocation_by_another_node_disconnects_and_outlives_the_old_record() {
        let dir = tempfile::tempdir().expect("a directory");
        let [one, two] = ["a", "b"].map(|name| Tokens::open(&dir.path().join(name), true).expect("opened"));
        let shown = one.make(&Principal::local(), &request("ann", Scope::Write, None)).expect("made").token;
        let before = one.records();
        assert_eq!(two.merge(before.clone()), ["ann"]);
        let visitor = two.find(&shown).expect("valid at the other node");
        one.revoke("ann").expect("revoked");
        let out = visitor.shut_out();
        assert_eq!(two.merge(one.records()), ["ann"]);
        out.await;
        // A node that was away brings the old record back.
        assert_eq!([two.merge(before.clone()), one.merge(before)], [Vec::<String>::new(), Vec::new()]);
        assert!(one.find(&shown).is_none() && two.find(&shown).is_none());
    }
}
