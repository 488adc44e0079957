//! The file of the audit log: whole lines are appended, a torn last line is cut, and a file that is full makes room for
//! the next one. No other code writes it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::FallocateFlags;

use crate::state_dir::no_link;

/// The name of the present file in the state directory.
const PRESENT: &str = "audit.jsonl";
/// How much of a file's end is read at once for its last whole line.
const TAIL_BYTES: u64 = 64 << 10;
/// Disk space that is reserved behind the last line: some lines can be written on a full disk, so that whoever makes room there
/// is recorded.
const RESERVED_BYTES: u64 = 32 << 10;

/// How long the open file counts as the one that has the name.
const NAMED: Duration = Duration::from_millis(100);

/// The files of an audit log, oldest first, with the present one last, whether it exists or not.
pub(super) fn files(folder: &Path) -> Vec<PathBuf> {
    let number = |name: &str| name.strip_prefix("audit.")?.strip_suffix(".jsonl")?.parse::<u32>().ok();
    let names = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut old: Vec<u32> = names.filter_map(|entry| number(entry.file_name().to_str()?)).collect();
    old.sort_unstable_by(|a, b| b.cmp(a));
    old.into_iter().map(|number| numbered(folder, number)).chain([folder.join(PRESENT)]).collect()
}

/// A file that was full; 1 is the newest.
fn numbered(folder: &Path, number: u32) -> PathBuf {
    folder.join(format!("audit.{number}.jsonl"))
}

/// The file that is appended to.
#[derive(Debug)]
pub(super) struct AuditFile {
    folder: PathBuf,
    /// The present file.
    path: PathBuf,
    /// A file is full at this size.
    bytes_max: u64,
    /// How many full ones are kept.
    old: u32,
    /// How long each is kept at least.
    keep: Duration,
    /// `None` until the first line, and after an error: the next line opens it again.
    open: Option<Open>,
    /// Disk space is reserved up to this offset.
    reserved_to: u64,
    /// The room in which lines are put together.
    pub(super) lines: Vec<u8>,
}

/// An open file, and the device and inode by which its name is compared with it.
#[derive(Debug)]
struct Open {
    file: File,
    inode: (u64, u64),
    /// When the name was compared last.
    compared: Instant,
}

impl AuditFile {
    pub(super) fn new(folder: &Path, bytes_max: u64, old: u32, keep: Duration) -> Self {
        let (folder, path) = (folder.to_owned(), folder.join(PRESENT));
        Self { folder, path, bytes_max, old, keep, open: None, reserved_to: 0, lines: Vec::new() }
    }

    /// The present file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends whole lines with one write(2). After an error none of them is in the file.
    pub(super) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        let appended = self.try_append(lines);
        if appended.is_err() {
            self.open = None;
        }
        appended
    }

    fn try_append(&mut self, lines: &[u8]) -> io::Result<()> {
        let more = lines.len() as u64;
        let mut size = self.size()?;
        if size > 0 && size.saturating_add(more) > self.bytes_max {
            self.rotate()?;
            size = self.size()?;
        }
        self.reserve(size + more);
        let file = self.opened()?;
        let written = loop {
            match file.file.write(lines) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                written => break written?,
            }
        };
        if written == lines.len() {
            return Ok(());
        }
        // A part of a line would damage the next one.
        file.file.set_len(size)?;
        Err(io::Error::from(io::ErrorKind::StorageFull))
    }

    /// The size of the file that has the name. If it is another file than the open one, such as after a rotation by another
    /// program, that is closed, within [`NAMED`] after a rename: what is written to it now would be lost.
    fn size(&mut self) -> io::Result<u64> {
        if let Some(open) = &mut self.open {
            // The open file tells that it was removed or cut, and only the path that it was renamed.
            let file = open.file.metadata()?;
            if open.compared.elapsed() < NAMED && file.nlink() > 0 {
                return Ok(file.len());
            }
            let named = fs::symlink_metadata(&self.path).ok();
            if let Some(named) = named.filter(|named| (named.dev(), named.ino()) == open.inode) {
                open.compared = Instant::now();
                return Ok(named.len());
            }
            self.open = None;
        }
        Ok(self.opened()?.file.metadata()?.len())
    }

    fn opened(&mut self) -> io::Result<&mut Open> {
        let open = match self.open.take() {
            Some(open) => open,
            None => {
                self.reserved_to = 0;
                open(&self.path)?
            }
        };
        Ok(self.open.insert(open))
    }

    /// Reserves disk space behind this offset; a file system that cannot takes lines all the same.
    fn reserve(&mut self, end: u64) {
        if end <= self.reserved_to {
            return;
        }
        if let Some(open) = &self.open {
            let _ = rustix::fs::fallocate(&open.file, FallocateFlags::KEEP_SIZE, 0, end + RESERVED_BYTES);
        }
        self.reserved_to = end + RESERVED_BYTES;
    }

    /// Renames the full file. A killed server leaves a gap in the numbers, which the next rotation closes first: it removes
    /// a file only if none is missing.
    fn rotate(&mut self) -> io::Result<()> {
        if let Some(Open { file: full, .. }) = self.open.take() {
            // The space that is still reserved behind its last line goes back to the disk.
            full.set_len(full.metadata()?.len())?;
        }
        let is_there = |number: &u32| fs::symlink_metadata(numbered(&self.folder, *number)).is_ok();
        let free = (1..u32::MAX).find(|number| !is_there(number)).unwrap_or(u32::MAX);
        for number in (1..free).rev() {
            fs::rename(numbered(&self.folder, number), numbered(&self.folder, number + 1))?;
        }
        fs::rename(&self.path, numbered(&self.folder, 1))?;
        let too_many = (self.old + 1..=free).rev().map(|number| numbered(&self.folder, number));
        too_many.take_while(|path| self.is_old(path)).try_for_each(fs::remove_file)
    }

    /// Whether the file's last line is so old that it may be removed.
    fn is_old(&self, path: &Path) -> bool {
        let written = fs::symlink_metadata(path).and_then(|file| file.modified());
        // A clock that was set makes no line old.
        let age = written.map(|at| sys::time::steady_wall().duration_since(at).unwrap_or_default());
        age.is_ok_and(|age| age >= self.keep)
    }
}

/// Opens or creates the file, and cuts a torn last line: it was never reported as written.
fn open(path: &Path) -> io::Result<Open> {
    let mut file =
        OpenOptions::new().read(true).append(true).create(true).mode(0o600).custom_flags(no_link()).open(path)?;
    let there = file.metadata()?;
    if !there.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    if there.mode() & 0o777 != 0o600 {
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
    }
    let whole = end_of_last_line(&mut file, there.len())?;
    if whole < there.len() {
        file.set_len(whole)?;
    }
    Ok(Open { file, inode: (there.dev(), there.ino()), compared: Instant::now() })
}

fn end_of_last_line(file: &mut File, size: u64) -> io::Result<u64> {
    let (mut to, mut block) = (size, Vec::new());
    while to > 0 {
        let from = to.saturating_sub(TAIL_BYTES);
        block.clear();
        file.seek(SeekFrom::Start(from))?;
        (&mut *file).take(to - from).read_to_end(&mut block)?;
        if let Some(at) = memchr::memrchr(b'\n', &block) {
            return Ok(from + at as u64 + 1);
        }
        to = from;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn text(folder: &Path, name: &str) -> String {
        fs::read_to_string(folder.join(name)).unwrap_or_default()
    }

    #[test]
    // promise: audit-2
    fn a_torn_last_line_is_cut_and_the_next_one_is_whole() {
        let dir = tempfile::tempdir().expect("a directory");
        for (there, whole) in [
            (String::new(), String::new()),
            ("{\"a\":1}\n".to_owned(), "{\"a\":1}\n".to_owned()),
            ("{\"a\":1}\n{\"b\"".to_owned(), "{\"a\":1}\n".to_owned()),
            ("{\"torn\"".to_owned(), String::new()),
            (format!("{{}}\n{}", "x".repeat(200_000)), "{}\n".to_owned()),
        ] {
            fs::write(dir.path().join(PRESENT), there).expect("written");
            AuditFile::new(dir.path(), 1 << 20, 1, Duration::ZERO).append(b"{\"c\":3}\n").expect("appended");
            assert_eq!(text(dir.path(), PRESENT), whole + "{\"c\":3}\n");
        }
        assert_eq!(fs::metadata(dir.path().join(PRESENT)).expect("there").mode() & 0o777, 0o600);
    }

    #[test]
    // promise: audit-2
    fn a_full_file_is_rotated_and_no_line_is_lost() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut file = AuditFile::new(dir.path(), 20, 3, Duration::ZERO);
        let line = |number: u32| format!("{{\"n\":{number:03}}}\n");
        (0..8).for_each(|number| file.append(line(number).as_bytes()).expect("appended"));
        let all: String = files(dir.path()).iter().map(|path| fs::read_to_string(path).unwrap_or_default()).collect();
        assert_eq!(all, (0..8).map(line).collect::<String>(), "two lines in each file");
        file.append(line(8).as_bytes()).expect("appended");
        assert_eq!(
            (text(dir.path(), "audit.3.jsonl"), text(dir.path(), "audit.4.jsonl")),
            (line(2) + &line(3), String::new())
        );
        // A server that was killed between two renames has left a gap: nothing is removed for it.
        fs::rename(dir.path().join("audit.1.jsonl"), dir.path().join("elsewhere")).expect("renamed");
        [9, 10].into_iter().for_each(|number| file.append(line(number).as_bytes()).expect("appended"));
        assert_eq!(text(dir.path(), "audit.3.jsonl"), line(2) + &line(3));
        assert_eq!((text(dir.path(), "audit.1.jsonl"), text(dir.path(), PRESENT)), (line(8) + &line(9), line(10)));
        // A line that is longer than a file has one of its own.
        let long = format!("\"{}\"\n", "x".repeat(40));
        file.append(long.as_bytes()).expect("appended");
        assert_eq!(text(dir.path(), PRESENT), long);
    }

    #[test]
    // promise: audit-6
    fn a_file_with_a_recent_last_line_is_kept_and_an_old_one_is_removed() {
        let dir = tempfile::tempdir().expect("a directory");
        let hour = Duration::from_secs(3_600);
        let mut file = AuditFile::new(dir.path(), 1, 2, hour);
        (0..6).for_each(|number| file.append(format!("{number}\n").as_bytes()).expect("appended"));
        let all = || files(dir.path()).iter().map(|path| fs::read_to_string(path).expect("there")).collect::<String>();
        assert_eq!(all(), "0\n1\n2\n3\n4\n5\n", "each file has a line");
        for number in 3..6 {
            let old = File::options().write(true).open(numbered(dir.path(), number)).expect("there");
            old.set_modified(SystemTime::now() - hour).expect("set");
        }
        file.append(b"6\n").expect("appended");
        // The file of line 3 has two newer full ones beside it, but is young.
        assert_eq!(all(), "3\n4\n5\n6\n");
    }

    #[test]
    // promise: audit-2
    fn a_file_that_others_remove_or_rename_is_made_again() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut file = AuditFile::new(dir.path(), 1 << 20, 1, Duration::ZERO);
        file.append(b"1\n").expect("appended");
        let later = |file: &mut AuditFile| file.open.iter_mut().for_each(|open| open.compared -= NAMED);
        fs::remove_file(dir.path().join(PRESENT)).expect("removed");
        file.append(b"2\n").expect("appended");
        assert_eq!(text(dir.path(), PRESENT), "2\n");
        fs::rename(dir.path().join(PRESENT), dir.path().join("theirs")).expect("renamed");
        later(&mut file);
        file.append(b"3\n").expect("appended");
        file.append(b"4\n").expect("appended");
        assert_eq!((text(dir.path(), "theirs"), text(dir.path(), PRESENT)), ("2\n".to_owned(), "3\n4\n".to_owned()));
    }

    #[test]
    // promise: audit-3
    fn a_line_that_cannot_be_written_is_an_error_and_leaves_nothing() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut file = AuditFile::new(dir.path(), 1 << 20, 1, Duration::ZERO);
        fs::create_dir(dir.path().join(PRESENT)).expect("made");
        assert!(file.append(b"1\n").is_err());
        fs::remove_dir(dir.path().join(PRESENT)).expect("removed");
        std::os::unix::fs::symlink("/dev/full", dir.path().join(PRESENT)).expect("linked");
        assert!(file.append(b"1\n").is_err(), "no link is followed");
        fs::remove_file(dir.path().join(PRESENT)).expect("removed");
        file.append(b"2\n").expect("the next one opens it again");
        assert_eq!(text(dir.path(), PRESENT), "2\n");
    }
}
