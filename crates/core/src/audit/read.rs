//! Readers of the audit log: a page of it, newest first, and a follower, which gets each new line once.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::Value;

use super::{file, line};
use crate::action::{AuditFilter, AuditRecord, AuditView, ReadAudit};

/// How much is read at once.
const BLOCK_BYTES: u64 = 1 << 20;
/// The beginning of each line.
const TIME: &str = "{\"time\":\"";

/// The newest lines that match, newest first.
pub fn page(folder: &Path, read: &ReadAudit) -> io::Result<AuditView> {
    let condition = Condition::of(&read.filter);
    let mut view = AuditView { records: Vec::new(), has_more: false };
    let mut skip = read.offset;
    for file in opened(folder)?.into_iter().rev() {
        let mut lines = BackwardLines::of(file)?;
        while let Some(line) = lines.next()? {
            let Some(record) = condition.matching(&line) else { continue };
            if skip > 0 {
                skip -= 1;
            } else if view.records.len() == read.limit {
                view.has_more = true;
                return Ok(view);
            } else {
                view.records.push(record);
            }
        }
    }
    Ok(view)
}

/// The time of the newest line.
pub(super) fn last_time(folder: &Path) -> Option<SystemTime> {
    let read = ReadAudit { limit: 1, ..ReadAudit::default() };
    let text = page(folder, &read).ok()?.records.first()?.get("time")?.as_str()?.to_owned();
    text.parse().map(|at: jiff::Timestamp| at.into()).ok()
}

/// The session and the command of each of the newest ends on record, and the time of the oldest of them.
pub(super) fn newest_ends(folder: &Path) -> (Option<SystemTime>, HashSet<(String, u32)>) {
    /// More than end between two lines of a server that is killed, and read in a fraction of a second.
    const ENDS_MAX: usize = 10_000;
    let filter = AuditFilter { action: Some("end".to_owned()), ..AuditFilter::default() };
    let read = ReadAudit { filter, limit: ENDS_MAX, offset: 0 };
    let records = page(folder, &read).map_or_else(|_| Vec::new(), |view| view.records);
    let text = |record: &AuditRecord, name: &str| record.get(name).and_then(Value::as_str).map(str::to_owned);
    let times = records.iter().filter_map(|record| text(record, "time")?.parse::<jiff::Timestamp>().ok());
    let command = |record: &AuditRecord| text(record, "command")?.strip_prefix('c')?.parse().ok();
    let ends = records.iter().filter_map(|record| Some((text(record, "session")?, command(record)?)));
    (times.min().map(SystemTime::from), ends.collect())
}

/// All files at one moment, oldest first: they are renamed meanwhile.
pub(super) fn opened(folder: &Path) -> io::Result<Vec<File>> {
    loop {
        let paths = file::files(folder);
        let all = open_all(&paths)?;
        if file::files(folder) == paths {
            return Ok(all);
        }
    }
}

fn open_all(paths: &[PathBuf]) -> io::Result<Vec<File>> {
    let mut all: Vec<(u64, File)> = Vec::new();
    // Newest first: a file that is renamed between two opens is found twice, and never missed.
    for path in paths.iter().rev() {
        match File::open(path) {
            Ok(file) => {
                let inode = file.metadata()?.ino();
                if all.iter().all(|(known, _)| *known != inode) {
                    all.push((inode, file));
                }
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
    }
    Ok(all.into_iter().rev().map(|(_, file)| file).collect())
}

/// The lines of a file from its end on.
struct BackwardLines {
    file: File,
    /// Everything before this is unread.
    at: u64,
    /// Bytes that are read and not given out.
    rest: Vec<u8>,
}

impl BackwardLines {
    fn of(file: File) -> io::Result<Self> {
        let at = file.metadata()?.len();
        Ok(Self { file, at, rest: Vec::new() })
    }

    fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(end) = memchr::memrchr(b'\n', &self.rest) {
                let line = self.rest.split_off(end + 1);
                self.rest.truncate(end);
                if !line.is_empty() {
                    return Ok(Some(line));
                }
            } else if self.at == 0 {
                let line = std::mem::take(&mut self.rest);
                return Ok(Some(line).filter(|line| !line.is_empty()));
            }
            if memchr::memrchr(b'\n', &self.rest).is_none() && self.at > 0 {
                let from = self.at.saturating_sub(BLOCK_BYTES);
                let mut block = Vec::new();
                self.file.seek(SeekFrom::Start(from))?;
                (&mut self.file).take(self.at - from).read_to_end(&mut block)?;
                block.append(&mut self.rest);
                (self.rest, self.at) = (block, from);
            }
        }
    }
}

/// A filter whose times have the form of the lines, so that most lines are passed over unparsed.
struct Condition {
    filter: AuditFilter,
    since: Option<String>,
    until: Option<String>,
}

impl Condition {
    fn of(filter: &AuditFilter) -> Self {
        let (since, until) = (filter.since.map(line::stamp), filter.until.map(line::stamp));
        Self { filter: filter.clone(), since, until }
    }

    /// The line's record if it matches. A line that is not JSON is a torn one, or one of somebody else.
    fn matching(&self, line: &[u8]) -> Option<AuditRecord> {
        if let Some(rest) = line.strip_prefix(TIME.as_bytes()) {
            let time = &rest[..memchr::memchr(b'"', rest)?];
            if self.since.as_ref().is_some_and(|since| time < since.as_bytes())
                || self.until.as_ref().is_some_and(|until| time > until.as_bytes())
            {
                return None;
            }
        }
        let record: AuditRecord = serde_json::from_slice(line).ok()?;
        let is = |names: &[&str], wanted: &Option<String>| {
            wanted
                .as_deref()
                .is_none_or(|wanted| names.iter().any(|name| record.get(*name).and_then(Value::as_str) == Some(wanted)))
        };
        let has_text = |text: &String| record.values().any(|value| contains(value, text));
        (is(&["session", "sessionName", "fromSession"], &self.filter.session)
            && is(&["principal", "owner"], &self.filter.principal)
            && is(&["action", "event"], &self.filter.action)
            && self.filter.text.as_ref().is_none_or(has_text))
        .then_some(record)
    }
}

fn contains(value: &Value, text: &str) -> bool {
    match value {
        Value::String(has) => has.contains(text),
        Value::Array(all) => all.iter().any(|value| contains(value, text)),
        Value::Object(all) => all.values().any(|value| contains(value, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Gets each line that is written from now on once, also across a rotation.
pub struct Follower {
    folder: PathBuf,
    condition: Condition,
    file: Option<File>,
    rest: Vec<u8>,
}

impl Follower {
    /// A follower from the present end on.
    pub fn from_end(folder: &Path, filter: &AuditFilter) -> io::Result<Self> {
        let mut file = opened(folder)?.pop();
        if let Some(file) = &mut file {
            file.seek(SeekFrom::End(0))?;
        }
        Ok(Self { folder: folder.to_owned(), condition: Condition::of(filter), file, rest: Vec::new() })
    }

    /// The matching lines that were written since the last call, oldest first.
    pub fn read(&mut self) -> io::Result<Vec<AuditRecord>> {
        let mut found = Vec::new();
        let known = match &self.file {
            Some(file) => Some(file.metadata()?.ino()),
            None => None,
        };
        // Looked up before the read: what a full file gets before it is renamed is read from it.
        let files = opened(&self.folder)?;
        self.drain(&mut found)?;
        let inodes: Vec<u64> =
            files.iter().map(|file| file.metadata().map(|there| there.ino())).collect::<Result<_, _>>()?;
        let at = inodes.iter().position(|inode| Some(*inode) == known);
        let first_new = at.map_or(if known.is_some() { inodes.len().saturating_sub(1) } else { 0 }, |at| at + 1);
        for file in files.into_iter().skip(first_new) {
            self.rest.clear();
            self.file = Some(file);
            self.drain(&mut found)?;
        }
        Ok(found)
    }

    fn drain(&mut self, found: &mut Vec<AuditRecord>) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.read_to_end(&mut self.rest)?;
        let whole = memchr::memrchr(b'\n', &self.rest).map_or(0, |at| at + 1);
        let lines = self.rest.drain(..whole).collect::<Vec<u8>>();
        found.extend(lines.split(|b| *b == b'\n').filter_map(|line| self.condition.matching(line)));
        Ok(())
    }
}
