//! A session's folder: its ground state, which the holder writes and the server reads.
//!
//! Everything here blocks on the disk.

use std::io::{self, Write};
use std::ops::Deref;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use journal::{EventsReader, Masks, Reader};
use wire::{Claim, Holding, Spec};

/// The unit of blocks in stat(2), whatever the file system's is.
const BLOCK_BYTES: u64 = 512;

/// The file of a session's tasks, which the server alone writes.
const TASKS_FILE: &str = "tasks";

/// The file that says why a session's commands cannot be proven any more, which the server alone writes.
const TAINT_FILE: &str = "tainted";

/// The file of a screen that was drawn ahead, which the server alone writes.
const SCREEN_FILE: &str = "screen";

/// The folder with the secrets that the session was given as files.
const SECRETS_FOLDER: &str = "secrets";

/// The folder of one session. Its output can be read only with the session's masks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionFolder {
    path: PathBuf,
}

/// The folder of one session, with the masks of its output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MaskedFolder {
    folder: SessionFolder,
    masks: Masks,
}

impl Deref for MaskedFolder {
    type Target = SessionFolder;

    fn deref(&self) -> &SessionFolder {
        &self.folder
    }
}

impl MaskedFolder {
    /// A folder that a test has made, of a session without secrets.
    #[cfg(test)]
    pub(crate) fn of_test(path: &Path) -> Self {
        SessionFolder::of_test(path).masked(Masks::default())
    }

    pub(crate) fn masks(&self) -> &Masks {
        &self.masks
    }

    pub(crate) fn journal(&self) -> io::Result<Reader> {
        Reader::open(&self.path, self.masks.clone())
    }

    /// The journal of a session whose events have a damaged header.
    pub(crate) fn journal_alone(&self) -> io::Result<Reader> {
        Reader::open_alone(&self.path, self.masks.clone())
    }

    pub(crate) fn events(&self) -> io::Result<EventsReader> {
        EventsReader::open(&self.path, self.masks.clone())
    }

    /// The stored screen.
    pub(crate) fn screen(&self) -> io::Result<Vec<u8>> {
        std::fs::read(self.path.join(SCREEN_FILE))
    }
}

impl SessionFolder {
    pub(super) fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// A folder that a test has made.
    #[cfg(test)]
    pub(crate) fn of_test(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The same folder with these masks.
    pub(crate) fn masked(self, masks: Masks) -> MaskedFolder {
        MaskedFolder { folder: self, masks }
    }

    /// The folder with the session's secrets as files.
    pub(crate) fn secrets(&self) -> PathBuf {
        self.path.join(SECRETS_FOLDER)
    }

    /// The file of a secret.
    pub(crate) fn secret(&self, name: &str) -> PathBuf {
        self.secrets().join(name)
    }

    /// Writes the secrets that the session gets as files: names and values.
    pub(super) fn write_secrets(&self, secrets: &[(String, String)]) -> io::Result<()> {
        if secrets.is_empty() {
            return Ok(());
        }
        std::fs::DirBuilder::new().mode(0o700).create(self.secrets())?;
        for (name, value) in secrets {
            let mut file = std::fs::OpenOptions::new();
            let mut file = file.create_new(true).write(true).mode(0o600).open(self.secret(name))?;
            file.write_all(value.as_bytes())?;
        }
        Ok(())
    }

    /// Removes the files of a session that has ended.
    pub(crate) fn remove_secrets(&self) {
        let _ = std::fs::remove_dir_all(self.secrets());
    }

    /// The file of the session's output.
    pub(crate) fn log_file(&self) -> PathBuf {
        self.path.join(journal::JOURNAL_FILE)
    }

    pub(crate) fn spec(&self) -> io::Result<Spec> {
        Spec::load(&self.path)
    }

    /// Puts another spec in its place, as a whole.
    pub(crate) fn replace_spec(&self, spec: &Spec) -> io::Result<()> {
        spec.replace(&self.path)
    }

    /// The records of its tasks, one a line; empty if it has had none.
    pub(crate) fn tasks(&self) -> io::Result<String> {
        match std::fs::read(self.path.join(TASKS_FILE)) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            Err(e) => Err(e),
        }
    }

    /// Adds a line to the records of its tasks. It begins with a line end, so that a part of a line that an earlier write
    /// left spoils nothing.
    pub(crate) fn add_task_line(&self, line: &str) -> io::Result<()> {
        let mut file = std::fs::OpenOptions::new();
        let mut file = file.create(true).append(true).mode(0o600).open(self.path.join(TASKS_FILE))?;
        file.write_all(format!("\n{line}\n").as_bytes())
    }

    /// Why the session's commands cannot be proven any more, as it was recorded; none if it was not.
    pub(crate) fn taint(&self) -> io::Result<Option<String>> {
        match std::fs::read(self.path.join(TAINT_FILE)) {
            Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Records it.
    pub(crate) fn write_taint(&self, reason: &str) -> io::Result<()> {
        let mut file = std::fs::OpenOptions::new();
        let mut file = file.create(true).write(true).truncate(true).mode(0o600).open(self.path.join(TAINT_FILE))?;
        file.write_all(reason.as_bytes())
    }

    /// Stores a screen in the place of the last one.
    pub(crate) fn write_screen(&self, screen: &[u8]) -> io::Result<()> {
        let mut file = std::fs::OpenOptions::new();
        let mut file = file.create(true).write(true).truncate(true).mode(0o600).open(self.path.join(SCREEN_FILE))?;
        file.write_all(screen)
    }

    pub(crate) fn exists(&self) -> bool {
        self.path.is_dir()
    }

    /// The length of the output, and when it was last written.
    pub(crate) fn output(&self) -> io::Result<(u64, SystemTime)> {
        let m = std::fs::metadata(self.log_file())?;
        Ok((m.len(), m.modified()?))
    }

    /// The last write of the output, or else of the folder.
    pub(crate) fn last_write(&self) -> Option<SystemTime> {
        let output = self.output().ok().map(|(_, written)| written).filter(|at| *at > SystemTime::UNIX_EPOCH);
        output.or_else(|| std::fs::metadata(&self.path).and_then(|m| m.modified()).ok())
    }

    /// When the oldest of its files was last written.
    pub(crate) fn oldest_write(&self) -> Option<SystemTime> {
        self.files().filter_map(|m| m.modified().ok()).min()
    }

    /// The disk space that it takes; freed parts of a journal take none.
    pub(crate) fn occupied(&self) -> u64 {
        self.files().map(|m| m.blocks() * BLOCK_BYTES).sum()
    }

    fn files(&self) -> impl Iterator<Item = std::fs::Metadata> {
        let files = std::fs::read_dir(&self.path).into_iter().flatten().flatten();
        files.filter_map(|file| file.metadata().ok())
    }

    /// Makes sure that no holder begins here later; an error if one has.
    pub(crate) fn give_up(&self) -> io::Result<()> {
        match Claim::give_up(&self.path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => match Claim::load(&self.path)? {
                Holding::GivenUp => Ok(()),
                Holding::By(_) | Holding::Nobody => Err(e),
            },
            Ok(()) | Err(_) => Ok(()),
        }
    }

    pub(crate) fn remove(&self) -> io::Result<()> {
        sys::removal::remove_folder(&self.path)
    }
}
