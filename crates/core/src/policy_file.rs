//! The policy file, read again when it has changed. While it has a mistake, sessions under a policy run nothing.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use policy::Policies;

use crate::mutex::locked;

/// The policy file of a server.
#[derive(Debug, Default)]
pub(crate) struct PolicyFile {
    path: Option<PathBuf>,
    seen: Mutex<Option<Seen>>,
}

#[derive(Debug)]
struct Seen {
    state: FileState,
    policies: Result<Arc<Policies>, String>,
}

/// Device, inode, size and time of the last write; `None` if there is no file.
type FileState = Option<(u64, u64, u64, i64, i64)>;

impl PolicyFile {
    pub(crate) fn new(path: Option<PathBuf>) -> Self {
        Self { path, seen: Mutex::default() }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Its policies; none if there is no file.
    pub(crate) fn policies(&self) -> Result<Arc<Policies>, String> {
        let Some(path) = &self.path else { return Ok(Arc::default()) };
        let state = match std::fs::metadata(path) {
            Ok(m) => Some((m.dev(), m.ino(), m.size(), m.mtime(), m.mtime_nsec())),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => return Err(format!("{}: {e}", path.display())),
        };
        let mut seen = locked(&self.seen);
        if let Some(seen) = seen.as_ref().filter(|seen| seen.state == state) {
            return seen.policies.clone();
        }
        let policies = match state.map(|_| std::fs::read_to_string(path)) {
            None => Ok(Arc::default()),
            Some(Err(e)) => Err(format!("{}: {e}", path.display())),
            Some(Ok(text)) => {
                Policies::parse(&text).map(Arc::new).map_err(|mistake| format!("{}, {mistake}", path.display()))
            }
        };
        match &policies {
            Ok(policies) => {
                tracing::info!(file = %path.display(), policies = policies.all().count(), "policies are read")
            }
            Err(why) => tracing::error!(why, "the policy file is refused: sessions under a policy run nothing"),
        }
        *seen = Some(Seen { state, policies: policies.clone() });
        policies
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    // promise: policy-1
    fn a_changed_file_counts_at_once_and_one_with_a_mistake_is_no_empty_one() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("policy.toml");
        let file = PolicyFile::new(Some(path.clone()));
        let count = || file.policies().map(|policies| policies.all().count());
        assert_eq!(count(), Ok(0));
        std::fs::write(&path, "[policies.a]\n").expect("written");
        assert_eq!(count(), Ok(1));
        std::fs::write(&path, "[policies.a]\nx = 1\n").expect("written");
        assert!(count().is_err_and(|why| why.contains("policy.toml, line 2: unknown field `x`")));
        std::fs::write(&path, "[policies.a]\n[policies.b]\n").expect("written");
        assert_eq!(count(), Ok(2));
    }
}
