//! The audit log: who asked for what at which door, and how it ended, in an append-only file of JSON lines.
//!
//! The dispatcher writes a line before an action that changes something and one before its answer, so a kill of the server
//! loses none of an answered action. Actions that only read are counted for a moment and written together. Input is counted
//! and never quoted.

mod details;
mod entry;
mod file;
mod line;
mod read;
mod share;
mod slow_disk;
mod syslog;

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, SystemTime};

use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;

pub use entry::Entry;
pub use line::Refusal;
pub use read::{Follower, page};

use crate::action::{ActionError, AuditView, CommandView, Driver, ReadAudit, TakeOverEnd};
use crate::block_in_place::block_in_place;
use crate::config::{AuditMode, Config};
use crate::ids::SessionId;
use crate::limits::{
    AUDIT_FLUSH_EVERY, AUDIT_LINE_BYTES_MAX, AUDIT_PENDING_BYTES_MAX, AUDIT_READS_MAX, AUDIT_WRITE_QUICK, DISK_PATIENCE,
};
use crate::mutex::locked;
use crate::store::HistoryRow;
use crate::syslog_address::SyslogAddress;
use details::{Details, SessionName};
use file::AuditFile;
use line::{Caller, Ended, Event, Line, Returned};
use share::TokenShares;
use slow_disk::SlowDiskWatch;

/// The audit log of one server.
#[derive(Debug, Default)]
pub struct AuditLog {
    /// `None` where the operator wants none.
    on: Option<Recording>,
}

/// An audit log that is written.
#[derive(Debug)]
struct Recording {
    folder: PathBuf,
    /// Nothing runs that cannot be recorded.
    is_required: bool,
    /// From the last line of an earlier server to the beginning of this one, as microseconds since 1970, each with a margin
    /// for what is written a moment later.
    unrecorded: Range<u64>,
    /// Tells the ids of this server from those of an earlier one.
    run: u32,
    ids: AtomicU64,
    /// How long an action waits for the file.
    patience: Duration,
    /// The last write was slow.
    is_slow: AtomicBool,
    slow_disk: SlowDiskWatch,
    /// Held while lines are written.
    file: tokio::sync::Mutex<AuditFile>,
    pending: Mutex<Pending>,
    /// Limits what holders of named tokens fill; `None` where anything may be dropped.
    shares: Option<TokenShares>,
    /// There is something pending.
    wakes: Notify,
    /// One search through the files at a time.
    search: Semaphore,
    /// Forwards the lines to a syslog server until it is dropped.
    forwarding: Mutex<Option<mpsc::SyncSender<()>>>,
}

/// Lines that go into the file with the next one, or a moment later, and counts that go into it a moment later.
#[derive(Debug, Default)]
struct Pending {
    lines: Vec<u8>,
    reads: HashMap<ReadKey<'static>, ReadCount>,
    /// Lines that had no room here while the file could not be written.
    lost: u64,
    /// Why the file cannot be written.
    trouble: Option<String>,
    /// The commands that ended while no server ran, and have a line now.
    missed: HashSet<(String, u32)>,
}

/// Actions with the same of these are counted in one line.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ReadKey<'a> {
    caller: Caller<'a>,
    action: &'static str,
    session: Option<Cow<'a, str>>,
    command: Option<Cow<'a, str>>,
    outcome: &'static str,
}

impl ReadKey<'_> {
    fn into_owned(self) -> ReadKey<'static> {
        let owned = |text: Option<Cow<'_, str>>| text.map(|text| Cow::Owned(text.into_owned()));
        ReadKey { caller: self.caller.into_owned(), session: owned(self.session), command: owned(self.command), ..self }
    }
}

#[derive(Debug, Clone)]
struct ReadCount {
    since: SystemTime,
    /// A `Cell`, because a key of borrowed texts finds it through a shared reference to the map only.
    count: Cell<u64>,
    session_name: Option<String>,
    reason: Option<String>,
}

impl AuditLog {
    /// The log that these settings ask for. Its file is opened with the first line, so no fault of it keeps a server from
    /// its sessions.
    pub fn new(config: &Config) -> Self {
        if config.audit.mode == AuditMode::Off {
            return Self::default();
        }
        let mut run = [0u8; 4];
        getrandom::fill(&mut run).expect("invariant: the kernel gives random bytes");
        let us = |at: SystemTime| at.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_micros() as u64);
        let margin = |flushes: u32| (AUDIT_FLUSH_EVERY * flushes).as_micros() as u64;
        let (now, last) = (us(sys::time::wall()), read::last_time(&config.state_dir).map(us));
        let (unrecorded, missed) = match last {
            None => (0..0, HashSet::new()),
            Some(last) if last <= now => (last.saturating_sub(margin(2))..now + margin(10), HashSet::new()),
            // The clock was set back, so a time does not tell what is recorded, but the lines do.
            Some(last) => {
                let (since, ends) = read::newest_ends(&config.state_dir);
                (since.map_or(now, us)..last + margin(10), ends)
            }
        };
        let is_required = config.audit.mode == AuditMode::Required;
        let keep = if is_required { config.audit.keep } else { Duration::ZERO };
        let file = AuditFile::new(&config.state_dir, config.audit.bytes, config.audit.files, keep);
        Self {
            on: Some(Recording {
                folder: config.state_dir.clone(),
                is_required,
                unrecorded,
                run: u32::from_ne_bytes(run),
                ids: AtomicU64::new(0),
                patience: DISK_PATIENCE,
                is_slow: AtomicBool::new(false),
                slow_disk: SlowDiskWatch::start(),
                file: tokio::sync::Mutex::new(file),
                pending: Mutex::new(Pending { missed, ..Pending::default() }),
                shares: is_required.then(|| TokenShares::new(config.audit.share)),
                wakes: Notify::new(),
                search: Semaphore::new(1),
                forwarding: Mutex::default(),
            }),
        }
    }

    /// Records a request that the authentication refused.
    pub async fn refused(&self, refusal: &Refusal) {
        let Some(on) = &self.on else { return };
        let mut bytes = Vec::new();
        Line { refusal: Some(&refusal.shortened()), ..Line::new(Event::Refused, sys::time::wall()) }.write(&mut bytes);
        on.write_or_keep(bytes).await;
    }

    /// Records the end of a command.
    pub(crate) fn command_ended(&self, owner: &str, session_name: Option<&str>, command: &CommandView) {
        let Some(on) = &self.on else { return };
        let ended = Ended::of(owner, session_name, command);
        let at = command.completed_at.unwrap_or_else(sys::time::wall);
        let mut bytes = Vec::new();
        Line { ended: Some(&ended), ..Line::new(Event::End, at) }.write(&mut bytes);
        if let Some(shares) = &on.shares {
            locked(&shares.changes).charge_known(owner, bytes.len(), Instant::now().into_std());
        }
        on.keep(&bytes);
    }

    /// Records the end of a take-over.
    pub(crate) fn take_over_ended(&self, session: (&SessionId, &str, Option<&str>), driver: &Driver, end: TakeOverEnd) {
        let Some(on) = &self.on else { return };
        let returned = Returned::of(session, driver, end);
        let mut bytes = Vec::new();
        Line { returned: Some(&returned), ..Line::new(Event::Returned, sys::time::wall()) }.write(&mut bytes);
        on.keep(&bytes);
    }

    /// Whether this may be the end of a command that no server has recorded.
    pub(crate) fn may_miss(&self, row: &HistoryRow) -> bool {
        self.on.as_ref().is_some_and(|on| row.ended_us.is_some_and(|ended_us| on.unrecorded.contains(&ended_us)))
    }

    /// Records it once; an earlier server that was killed a moment later may have, too.
    pub(crate) fn missed_end(&self, owner: &str, session_name: Option<&str>, row: &HistoryRow) {
        let Some(on) = self.on.as_ref().filter(|_| self.may_miss(row)) else { return };
        if !locked(&on.pending).missed.insert((row.session.clone(), row.id)) {
            return;
        }
        let at = SystemTime::UNIX_EPOCH + Duration::from_micros(row.ended_us.unwrap_or_default());
        let ended = Ended::of_row(owner, session_name, row);
        let mut bytes = Vec::new();
        Line { ended: Some(&ended), ..Line::new(Event::End, at) }.write(&mut bytes);
        on.keep(&bytes);
    }

    /// Writes what is pending soon after it came, for as long as it is polled.
    pub async fn keep_written(&self) {
        let Some(on) = &self.on else { return std::future::pending().await };
        loop {
            on.wakes.notified().await;
            tokio::time::sleep_until(Instant::now() + AUDIT_FLUSH_EVERY).await;
            self.flush().await;
        }
    }

    /// Begins to forward the lines to a syslog server.
    pub fn forward(&self, to: &SyslogAddress) -> io::Result<()> {
        let Some(on) = &self.on else { return Err(io::Error::other("audit is off, so syslog would get nothing")) };
        *locked(&on.forwarding) = Some(syslog::start(&on.folder, to)?);
        Ok(())
    }

    /// Writes what is pending.
    pub async fn flush(&self) {
        let Some(on) = &self.on else { return };
        let _ = on.write_also(&[], Pending::write_reads).await;
    }

    /// Why no line can be written now, if that is so.
    pub fn trouble(&self) -> Option<String> {
        locked(&self.on.as_ref()?.pending).trouble.clone()
    }

    /// Reads lines, newest first.
    pub(crate) async fn read(&self, read: &ReadAudit) -> Result<AuditView, ActionError> {
        let Some(on) = &self.on else {
            let why = "this server keeps no audit log (its setting audit is off)".to_owned();
            return Err(ActionError::Denied { why });
        };
        self.flush().await;
        let _one = on.search.acquire().await;
        let (folder, read) = (on.folder.clone(), read.clone());
        let found = tokio::task::spawn_blocking(move || page(&folder, &read)).await;
        match found {
            Ok(Ok(view)) => Ok(view),
            Ok(Err(e)) => Err(ActionError::Internal { why: format!("the audit log cannot be read: {e}") }),
            Err(_) => Err(ActionError::Internal { why: "the search of the audit log panicked".to_owned() }),
        }
    }
}

impl Recording {
    fn next_id(&self) -> String {
        format!("{:08x}-{}", self.run, self.ids.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Writes the pending lines and then this, with one write(2). After an error only what was pending is kept.
    async fn write(&self, line: &[u8]) -> Result<(), String> {
        self.write_also(line, |_| ()).await
    }

    async fn write_also(&self, line: &[u8], also: impl FnOnce(&mut Pending)) -> Result<(), String> {
        let Ok(mut file) = tokio::time::timeout(self.patience, self.file.lock()).await else {
            let why = format!("the disk has accepted no line for {} s", self.patience.as_secs_f64());
            return Err(self.failed(why));
        };
        let mut lines = std::mem::take(&mut file.lines);
        let lost = {
            let mut pending = locked(&self.pending);
            also(&mut pending);
            pending.take(&mut lines)
        };
        let kept = lines.len();
        lines.extend_from_slice(line);
        if lines.is_empty() {
            return Ok(());
        }
        let append = || file.append(&lines);
        let begun = Instant::now();
        // The kernel takes a line in some microseconds; to move other tasks away first takes longer, and is for a disk that
        // has just been slow.
        let is_slow = self.is_slow.load(Ordering::Relaxed);
        let written = if is_slow { block_in_place(append) } else { self.slow_disk.watched(append) };
        self.is_slow.store(begun.elapsed() >= AUDIT_WRITE_QUICK, Ordering::Relaxed);
        match written {
            Ok(()) => {
                lines.clear();
                lines.shrink_to(AUDIT_LINE_BYTES_MAX);
                file.lines = lines;
                if let Some(why) = locked(&self.pending).trouble.take() {
                    tracing::warn!(why, lost, "the audit log is written again");
                }
                Ok(())
            }
            Err(error) => {
                lines.truncate(kept);
                let path = file.path();
                locked(&self.pending).give_back(lines, lost);
                Err(self.failed(format!("{}: {error}", path.display())))
            }
        }
    }

    fn failed(&self, why: String) -> String {
        let before = locked(&self.pending).trouble.replace(why.clone());
        if before.is_none() {
            tracing::error!(why, "the audit log cannot be written");
        }
        why
    }

    /// The same; what cannot be written now is kept for later, as far as there is room.
    async fn write_or_keep(&self, line: Vec<u8>) {
        if self.write(&line).await.is_err() {
            self.keep(&line);
        }
    }

    fn keep(&self, line: &[u8]) {
        locked(&self.pending).push(line);
        self.wakes.notify_one();
    }

    /// Counts an action that only reads.
    fn count(&self, key: ReadKey<'_>, count: impl FnOnce() -> ReadCount) {
        {
            let mut pending = locked(&self.pending);
            let reads: &HashMap<ReadKey<'_>, ReadCount> = &pending.reads;
            if let Some(ReadCount { count, .. }) = reads.get(&key) {
                count.set(count.get() + 1);
                return;
            }
            if pending.reads.len() >= AUDIT_READS_MAX {
                pending.write_reads();
            }
            pending.reads.insert(key.into_owned(), count());
        }
        self.wakes.notify_one();
    }
}

impl Pending {
    /// Moves the lines to these, and tells how many lines before them are lost.
    fn take(&mut self, to: &mut Vec<u8>) -> u64 {
        let lost = std::mem::take(&mut self.lost);
        if lost > 0 {
            Line { lost: Some(lost), ..Line::new(Event::Gap, sys::time::wall()) }.write(to);
        }
        to.append(&mut self.lines);
        self.lines.shrink_to(AUDIT_LINE_BYTES_MAX);
        lost
    }

    /// Takes back what was not written; the line about lost ones is made again.
    fn give_back(&mut self, mut lines: Vec<u8>, lost: u64) {
        if lost > 0 {
            let gap = memchr::memchr(b'\n', &lines).map_or(0, |at| at + 1);
            lines.drain(..gap);
        }
        self.lost += lost;
        let newer = std::mem::replace(&mut self.lines, lines);
        newer.split_inclusive(|b| *b == b'\n').for_each(|line| self.push(line));
    }

    fn push(&mut self, line: &[u8]) {
        if self.lines.len() + line.len() > AUDIT_PENDING_BYTES_MAX {
            self.lost += u64::from(!line.is_empty());
        } else {
            self.lines.extend_from_slice(line);
        }
    }

    fn write_reads(&mut self) {
        let mut reads: Vec<_> = std::mem::take(&mut self.reads).into_iter().collect();
        reads.sort_by_key(|(_, read)| read.since);
        for (key, read) in reads {
            let details = Details {
                session: key.session.map(|session| SessionName(session.into_owned())),
                session_name: read.session_name,
                command: key.command.map(Cow::into_owned),
                ..Details::default()
            };
            let mut bytes = Vec::new();
            Line {
                caller: Some(&key.caller),
                action: Some(key.action),
                details: Some(&details),
                outcome: Some(key.outcome),
                reason: read.reason,
                count: Some(read.count.get()).filter(|count| *count > 1),
                ..Line::new(Event::Action, read.since)
            }
            .write(&mut bytes);
            self.push(&bytes);
        }
    }
}

/// The error of an action that cannot be recorded.
fn not_recorded(why: String) -> ActionError {
    ActionError::NotRecorded { why }
}

#[cfg(test)]
mod tests;
