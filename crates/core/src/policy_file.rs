//! The policy file, and beside it the commands that a person has allowed for always, both read again when they have changed.
//! While one has a mistake, sessions under a policy run nothing.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use policy::{Policies, REMEMBERED_HEAD, Remembered, remembered_entry, remembered_file};

use crate::mutex::locked;
use crate::state_dir;

/// The policy file of a server.
#[derive(Debug, Default)]
pub(crate) struct PolicyFile {
    path: Option<PathBuf>,
    seen: Mutex<Option<Seen>>,
}

#[derive(Debug)]
struct Seen {
    states: [FileState; 2],
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
        let remembered = remembered_file(path);
        let states = [state(path)?, state(&remembered)?];
        let mut seen = locked(&self.seen);
        if let Some(seen) = seen.as_ref().filter(|seen| seen.states == states) {
            return seen.policies.clone();
        }
        let policies = match states[0] {
            None => Ok(Arc::default()),
            Some(_) => read(path).map(Arc::new),
        };
        match &policies {
            Ok(policies) => {
                tracing::info!(file = %path.display(), policies = policies.all().count(), "policies are read")
            }
            Err(why) => tracing::error!(why, "the policy file is refused: sessions under a policy run nothing"),
        }
        *seen = Some(Seen { states, policies: policies.clone() });
        policies
    }

    /// The file with the commands that a person has allowed for always.
    pub(crate) fn remembered(&self) -> Option<PathBuf> {
        self.path.as_deref().map(remembered_file)
    }

    /// Appends such a command; what a person has written there stays. Where it cannot be one, the error is
    /// [`io::ErrorKind::InvalidInput`], and nothing is written. Only one caller at a time may do this. Blocks.
    pub(crate) fn remember(&self, policy: &str, command: &str, cwd: &Path, by: &str) -> io::Result<()> {
        let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
        let policies = self.policies().map_err(invalid)?;
        let (Some(file), Some(now)) = (self.remembered(), policies.get(policy)) else {
            return Err(invalid(format!("the policy file has no policy {policy:?} any more")));
        };
        if now.remembers(command, cwd).is_some() {
            return Ok(());
        }
        let mut text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => REMEMBERED_HEAD.to_owned(),
            Err(e) => return Err(named(&file, &e)),
        };
        if !text.ends_with('\n') {
            text.push('\n');
        }
        let at = format!("{:.0}", jiff::Timestamp::now());
        let (command, by) = (command.to_owned(), by.to_owned());
        let decision = Remembered { command, cwd: cwd.display().to_string(), by, at };
        text += &remembered_entry(policy, &decision);
        // As the next read has it.
        let read = Policies::clone(&policies).with_remembered(&text);
        let read = read.map_err(|mistake| invalid(format!("{}, {mistake}", file.display())))?;
        if read.get(policy).is_none_or(|policy| policy.remembers(&decision.command, cwd).is_none()) {
            return Err(invalid(format!("{} cannot store the command unchanged", file.display())));
        }
        state_dir::replace(&file, text.as_bytes()).map_err(|e| named(&file, &e))
    }
}

/// Reads a policy file, and the one with its remembered commands if that is there.
pub fn read(path: &Path) -> Result<Policies, String> {
    let text = |path: &Path| std::fs::read_to_string(path).map_err(|e| named(path, &e));
    let policies = text(path).map_err(|e| e.to_string())?;
    let policies = Policies::parse(&policies).map_err(|mistake| format!("{}, {mistake}", path.display()))?;
    let remembered = remembered_file(path);
    match text(&remembered) {
        Ok(text) => policies.with_remembered(&text).map_err(|mistake| format!("{}, {mistake}", remembered.display())),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(policies),
        Err(e) => Err(e.to_string()),
    }
}

fn state(path: &Path) -> Result<FileState, String> {
    match std::fs::metadata(path) {
        Ok(m) => Ok(Some((m.dev(), m.ino(), m.size(), m.mtime(), m.mtime_nsec()))),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(named(path, &e).to_string()),
    }
}

/// The same error with the file's name.
fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    // promise: policy-1
    fn a_changed_file_counts_at_once_and_one_with_a_mistake_is_not_an_empty_one() {
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

    #[test]
    // promise: policy-10
    fn a_remembered_command_is_appended_and_a_persons_text_stays() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("policy.toml");
        let file = PolicyFile::new(Some(path.clone()));
        let kind = |done: io::Result<()>| done.err().map(|e| e.kind());
        assert_eq!(
            kind(file.remember("a", "ls > x", Path::new("/src"), "ada")),
            Some(io::ErrorKind::InvalidInput),
            "no such policy"
        );
        std::fs::write(&path, "[policies.a]\n").expect("written");
        let count = || {
            let policies = file.policies()?;
            Ok::<_, String>(policies.get("a").map_or(0, |policy| policy.remembered().len()))
        };
        let memory = file.remembered().expect("a path");
        let text = |path: &Path| std::fs::read_to_string(path).map_err(|e| e.to_string());
        assert_eq!((file.remember("a", "ls > x", Path::new("/src"), "ada").ok(), count()), (Some(()), Ok(1)));
        assert_eq!(std::fs::metadata(&memory).expect("there").mode() & 0o777, 0o600);
        std::fs::write(&memory, text(&memory).expect("there") + "# mine").expect("written");
        assert_eq!(
            (file.remember("a", "printf 'a\nb' > \"x\\\\\"", Path::new("/src"), "ada").ok(), count()),
            (Some(()), Ok(2))
        );
        let before = text(&memory).expect("there");
        assert!(
            before.contains("\n# mine\n") && file.remember("a", "ls > x", Path::new("/src"), "eve").is_ok(),
            "{before}"
        );
        assert_eq!(text(&memory), Ok(before), "it was there");
        std::fs::write(&memory, "remembered = 1\n").expect("written");
        assert!(count().is_err_and(|why| why.contains("policy.remembered.toml, line 1: ")));
        assert_eq!(kind(file.remember("a", "ls > y", Path::new("/src"), "ada")), Some(io::ErrorKind::InvalidInput));
        assert_eq!(text(&memory).as_deref(), Ok("remembered = 1\n"));
        std::fs::remove_file(&memory).expect("removed");
        assert_eq!(count(), Ok(0));
        // A folder in the place of the draft stops the write, and no rule is made.
        std::fs::create_dir_all(dir.path().join("policy.remembered.new/x")).expect("made");
        assert!(file.remember("a", "ls > x", Path::new("/src"), "ada").is_err());
        assert_eq!(count(), Ok(0));
    }
}
