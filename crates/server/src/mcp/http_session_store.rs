//! Stores MCP sessions over HTTP for the next server: their existence, their owner, and their client's `initialize`.
//!
//! Common clients do not start a new MCP session when theirs is unknown, so a restarted server continues those of the
//! server before. Sessions with subscriptions are not persisted: after a restart the client would silently stop
//! receiving notifications. That client gets the protocol's error for an ended session.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::SystemTime;

use rmcp::model::InitializeRequestParams;
use rmcp::transport::streamable_http_server::session::{SessionState, SessionStore, SessionStoreError};
use serde::{Deserialize, Serialize};

use ptyd_core::limits::{MCP_SESSION_BYTES_MAX, MCP_SESSIONS_MAX};

/// One file for each MCP session of a principal.
#[derive(Debug, Clone)]
pub(super) struct HttpSessionStore {
    folder: PathBuf,
    owner: String,
}

/// The contents of a file.
#[derive(Serialize, Deserialize)]
struct Record<O, H> {
    owner: O,
    hello: H,
}

type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, SessionStoreError>> + Send + 'a>>;

impl HttpSessionStore {
    /// The store of one principal.
    pub fn of(folder: &Path, owner: &str) -> Self {
        Self { folder: folder.to_owned(), owner: owner.to_owned() }
    }

    /// At the server's start: keeps the newest files, at most as many as may be open.
    pub fn tidy(folder: &Path) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let mut files = Vec::new();
        for entry in fs::read_dir(folder)?.flatten() {
            let begun = entry.metadata().and_then(|m| m.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
            files.push((begun, entry.path()));
        }
        files.sort();
        let surplus = files.len().saturating_sub(MCP_SESSIONS_MAX);
        files.into_iter().take(surplus).try_for_each(|(_, path)| fs::remove_file(path))
    }

    /// A file's path; `None` for a text that is not an id of ours, which a client could have made up.
    fn path(&self, id: &str) -> Option<PathBuf> {
        let is_id = id.len() <= 64 && !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        is_id.then(|| self.folder.join(id))
    }

    /// Removes the stored session, so that the next server does not know it.
    pub fn forget(&self, id: &str) {
        // It may never have been stored.
        let _ = self.path(id).map(fs::remove_file);
    }

    /// Whether the session is stored.
    pub fn has(&self, id: &str) -> bool {
        self.read(id).is_some()
    }

    fn read(&self, id: &str) -> Option<SessionState> {
        let bytes = fs::read(self.path(id)?).ok()?;
        let record: Record<String, InitializeRequestParams> = serde_json::from_slice(&bytes).ok()?;
        (record.owner == self.owner).then(|| SessionState::new(record.hello))
    }

    fn write(&self, id: &str, state: &SessionState) -> io::Result<()> {
        let record = serde_json::to_vec(&Record { owner: &self.owner, hello: &state.initialize_params })?;
        // A client with a longer `initialize` has to start again after a restart.
        let Some(path) = self.path(id).filter(|_| record.len() <= MCP_SESSION_BYTES_MAX) else { return Ok(()) };
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600).open(path)?.write_all(&record)
    }
}

/// The files are small and in the page cache: handing them to another thread would take longer.
impl SessionStore for HttpSessionStore {
    fn load<'s, 'i, 'a>(&'s self, id: &'i str) -> Answer<'a, Option<SessionState>>
    where
        's: 'a,
        'i: 'a,
        Self: 'a,
    {
        Box::pin(std::future::ready(Ok(self.read(id))))
    }

    fn store<'s, 'i, 't, 'a>(&'s self, id: &'i str, state: &'t SessionState) -> Answer<'a, ()>
    where
        's: 'a,
        'i: 'a,
        't: 'a,
        Self: 'a,
    {
        Box::pin(std::future::ready(self.write(id, state).map_err(Into::into)))
    }

    fn delete<'s, 'i, 'a>(&'s self, id: &'i str) -> Answer<'a, ()>
    where
        's: 'a,
        'i: 'a,
        Self: 'a,
    {
        self.forget(id);
        Box::pin(std::future::ready(Ok(())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn files(folder: &Path) -> usize {
        fs::read_dir(folder).expect("the folder is there").count()
    }

    #[test]
    fn a_conversation_is_found_by_its_owner_alone() {
        let dir = tempfile::tempdir().expect("a folder");
        let (ann, bob) = (HttpSessionStore::of(dir.path(), "ann"), HttpSessionStore::of(dir.path(), "bob"));
        let hello = InitializeRequestParams::default();
        ann.write("0a-1", &SessionState::new(hello.clone())).expect("it is written");
        assert_eq!(ann.read("0a-1").map(|state| state.initialize_params), Some(hello));
        let mode = fs::metadata(dir.path().join("0a-1")).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "whatever the umask is");
        assert!(
            bob.read("0a-1").is_none() && ann.read("0a-2").is_none() && ann.read("../conversations/0a-1").is_none()
        );
        ann.forget("0a-1");
        assert!(ann.read("0a-1").is_none());
    }

    #[test]
    // promise: mcp-6
    fn a_server_restores_at_most_as_many_mcp_sessions_as_can_be_open() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = dir.path().join("conversations");
        HttpSessionStore::tidy(&folder).expect("a folder");
        for number in 0..MCP_SESSIONS_MAX + 3 {
            fs::write(folder.join(number.to_string()), "").expect("a file");
        }
        HttpSessionStore::tidy(&folder).expect("it is tidy");
        assert_eq!(files(&folder), MCP_SESSIONS_MAX);
    }
}
