//! The store's only writer: writes queued rows in batches, and keeps those that could not be written.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use rusqlite::{Connection, params};

use super::file;
use super::file::StoreError;
use super::rows::{CursorKey, HistoryRow, SessionRow, cursor_sum};
use super::state::{State, locked};

/// A request to the writer. It is small, because the queue has room for all requests from the start.
pub(super) enum Write {
    Command(Box<HistoryRow>),
    Cursor(Box<(CursorKey, u64)>),
    /// Write the sessions whose rows have changed.
    Sessions,
    /// Report the result of all earlier writes.
    Flush(mpsc::SyncSender<Result<(), StoreError>>),
    /// Set the file aside and start a new one.
    Anew(mpsc::SyncSender<Result<(), StoreError>>),
    Stop,
}

const _: () = assert!(size_of::<Write>() <= 24, "the queue takes this from the start for each request that may wait");

/// Rows that may wait for the disk.
pub(super) const QUEUE_MAX: usize = 65_536;
/// Readers of one session whose cursors are stored; beyond, the ones that are farthest behind are given up, because most
/// of them are clients that no longer exist.
pub(super) const READERS_MAX: usize = 1024;
/// The size of one transaction; a larger one would block readers.
const BATCH_MAX: usize = 1000;
/// How long rows are collected: waking this thread for each would cost more than writing it.
const COLLECT: Duration = Duration::from_millis(100);
/// The retry interval after a failed write.
const RETRY_EVERY: Duration = Duration::from_secs(1);

/// The writer's thread.
pub(super) struct Writer {
    state: Arc<State>,
    /// `None` while the file cannot be opened.
    connection: Option<Connection>,
    /// Commands that are not written yet.
    waiting: VecDeque<HistoryRow>,
    /// Read cursors: a client that follows a session moves its cursor with every chunk, and only the newest is written.
    cursors: HashMap<CursorKey, u64>,
    /// The newest attempt failed; logged once.
    is_failing: bool,
}

/// Requests besides rows.
#[derive(Default)]
struct PendingRequests {
    flushes: Vec<mpsc::SyncSender<Result<(), StoreError>>>,
    anew: Vec<mpsc::SyncSender<Result<(), StoreError>>>,
    stops: bool,
}

impl PendingRequests {
    fn is_something(&self) -> bool {
        self.stops || !self.flushes.is_empty() || !self.anew.is_empty()
    }
}

impl Writer {
    pub(super) fn new(state: Arc<State>) -> Self {
        Self { state, connection: None, waiting: VecDeque::new(), cursors: HashMap::new(), is_failing: false }
    }

    pub(super) fn run(mut self, queue: &mpsc::Receiver<Write>) {
        // A query only reads some pages; one that was not read yet may be damaged, so all are checked first.
        if let Err(e @ StoreError::Damaged(_)) = self.connect().and_then(|connection| file::check(connection)) {
            self.state.found_damaged(&e);
        }
        let mut later = PendingRequests::default();
        loop {
            let mut asked = std::mem::take(&mut later);
            let first = if asked.is_something() {
                None
            } else if self.is_failing {
                match queue.recv_timeout(RETRY_EVERY) {
                    Err(mpsc::RecvTimeoutError::Disconnected) => return,
                    first => first.ok(),
                }
            } else {
                match queue.recv() {
                    Err(mpsc::RecvError) => return,
                    first => first.ok(),
                }
            };
            if matches!(first, Some(Write::Command(_) | Write::Cursor(..) | Write::Sessions)) {
                std::thread::park_timeout(COLLECT);
            }
            first.into_iter().for_each(|write| self.take(write, &mut asked));
            self.take_all(queue, &mut asked);
            let fresh = self.state.fresh().sessions.clone();
            // Commands of a removed session were queued before its removal. Later rows wait for the next round: they
            // may belong to sessions that have changed since.
            self.take_all(queue, &mut later);
            for done in asked.anew {
                let _ = done.send(self.begin_anew());
            }
            sys::fault::stall("store-write");
            let written = self.write(fresh);
            self.note(&written);
            for done in asked.flushes {
                let _ = done.send(written.clone());
            }
            if asked.stops {
                return;
            }
        }
    }

    fn take_all(&mut self, queue: &mpsc::Receiver<Write>, asked: &mut PendingRequests) {
        for write in queue.try_iter().take(QUEUE_MAX) {
            self.take(write, asked);
        }
    }

    fn take(&mut self, write: Write, asked: &mut PendingRequests) {
        match write {
            Write::Command(row) if self.waiting.len() >= QUEUE_MAX => self.state.left_out(row.session),
            Write::Command(row) => self.waiting.push_back(*row),
            Write::Cursor(moved) => self.cursors.extend([*moved]),
            Write::Sessions => {}
            Write::Flush(done) => asked.flushes.push(done),
            Write::Anew(done) => asked.anew.push(done),
            Write::Stop => asked.stops = true,
        }
    }

    /// Handles the result of an attempt: a retry, or a rebuild.
    fn note(&mut self, written: &Result<(), StoreError>) {
        match written {
            Ok(()) => {
                if std::mem::take(&mut self.is_failing) {
                    tracing::info!("the history is written again");
                }
                if !self.state.fresh().incomplete.is_empty() {
                    self.state.calls.notify_one();
                }
            }
            Err(e) => {
                if !std::mem::replace(&mut self.is_failing, true) {
                    tracing::warn!(error = %e, "the history is not written; it is kept and tried again");
                }
                if matches!(e, StoreError::Damaged(_)) {
                    self.state.found_damaged(e);
                }
            }
        }
    }

    /// The connection, which may have failed to open before.
    fn connect(&mut self) -> Result<&mut Connection, StoreError> {
        if self.connection.is_none() {
            let connection = file::connect(&self.state.path)?;
            if locked(&self.state.reads).is_provisional {
                // Reads were opened without the files that a full disk refused; now they can be reopened.
                self.state.reads_from(file::connect(&self.state.path)?, None);
            }
            self.connection = Some(connection);
        }
        Ok(self.connection.as_mut().expect("invariant: it was made above"))
    }

    /// Writes all waiting rows: commands first, so that a session recorded as ended has all of them.
    fn write(&mut self, fresh: Fresh) -> Result<(), StoreError> {
        self.connect()?;
        let connection = self.connection.as_mut().expect("invariant: it was made above");
        while !self.waiting.is_empty() {
            let count = self.waiting.len().min(BATCH_MAX);
            let transaction = connection.transaction()?;
            for row in self.waiting.iter().take(count) {
                put_command(&transaction, row)?;
            }
            transaction.commit()?;
            self.waiting.drain(..count);
        }
        if !self.cursors.is_empty() {
            let transaction = connection.transaction()?;
            for (key, read_to) in &self.cursors {
                let mut put = transaction.prepare_cached("INSERT OR REPLACE INTO looks VALUES (?1, ?2, ?3, ?4)")?;
                put.execute(params![key.0, key.1, *read_to as i64, cursor_sum(key, *read_to)])?;
            }
            let sessions: HashSet<&String> = self.cursors.keys().map(|(session, _)| session).collect();
            for session in sessions {
                bound_readers(&transaction, session)?;
            }
            transaction.commit()?;
            self.cursors.clear();
        }
        if fresh.is_empty() {
            return Ok(());
        }
        let transaction = connection.transaction()?;
        for (id, (_, row)) in &fresh {
            match row {
                Some(row) => put_session(&transaction, row)?,
                None => forget(&transaction, id)?,
            }
        }
        transaction.commit()?;
        if fresh.values().any(|(_, row)| row.is_none()) {
            // The log has the old pages until it is written back.
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        }
        self.state.fresh().sessions.retain(|id, (change, _)| fresh.get(id).is_none_or(|written| written.0 != *change));
        Ok(())
    }

    fn begin_anew(&mut self) -> Result<(), StoreError> {
        // No connection may have the file open under its old name.
        self.connection = None;
        self.state.reads_from(file::nothing(), Some(StoreError::Damaged("it is being rebuilt".to_owned())));
        locked(&self.state.reads).is_provisional = true;
        file::put_aside(&self.state.path).map_err(StoreError::of_io)?;
        self.connect().map(drop)
    }
}

type Fresh = HashMap<String, (u64, Option<SessionRow>)>;

fn put_session(connection: &Connection, s: &SessionRow) -> rusqlite::Result<()> {
    let mut put = connection.prepare_cached(
        "INSERT INTO sessions VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0) ON CONFLICT (id) DO UPDATE SET ended_us = ?5, name = ?3
            RETURNING id, owner, name, created_us, ended_us, key",
    )?;
    let values = params![s.id, s.owner, s.name, s.created_us as i64, s.ended_us.map(|u| u as i64), s.key];
    let stored = put.query_row(values, SessionRow::unchecked)?;
    let mut seal = connection.prepare_cached("UPDATE sessions SET sum = ?2 WHERE id = ?1")?;
    seal.execute(params![s.id, stored.sum()])?;
    Ok(())
}

fn put_command(connection: &Connection, c: &HistoryRow) -> rusqlite::Result<()> {
    // A command that is there is updated, and not replaced: it is counted once.
    let mut put = connection.prepare_cached(
        "INSERT INTO commands VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) ON CONFLICT DO UPDATE SET
            started_us = excluded.started_us, ended_us = excluded.ended_us, status = excluded.status, exit = excluded.exit,
            start_offset = excluded.start_offset, end_offset = excluded.end_offset, command = excluded.command,
            boundary = excluded.boundary, lasted_us = excluded.lasted_us, sum = excluded.sum",
    )?;
    put.execute(params![
        c.session,
        c.id,
        c.started_us as i64,
        c.ended_us.map(|u| u as i64),
        c.status,
        c.exit,
        c.start_offset as i64,
        c.end_offset as i64,
        c.command,
        c.boundary,
        c.lasted_us.map(|u| u as i64),
        c.sum(),
    ])?;
    Ok(())
}

/// Removes the stored cursors of this session beyond their number, those farthest behind first.
fn bound_readers(connection: &Connection, session: &str) -> Result<(), rusqlite::Error> {
    let mut count = connection.prepare_cached("SELECT count(*) FROM looks WHERE session = ?1")?;
    let count: i64 = count.query_row([session], |r| r.get(0))?;
    let more = count - READERS_MAX as i64;
    if more > 0 {
        connection.execute(
            "DELETE FROM looks WHERE session = ?1 AND who IN (SELECT who FROM looks WHERE session = ?1 ORDER BY read_to LIMIT ?2)",
            params![session, more],
        )?;
    }
    Ok(())
}

fn forget(connection: &Connection, id: &str) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM sessions WHERE id = ?1", [id])?;
    connection.execute("DELETE FROM commands WHERE session = ?1", [id])?;
    connection.execute("DELETE FROM counts WHERE session = ?1", [id])?;
    connection.execute("DELETE FROM looks WHERE session = ?1", [id])?;
    Ok(())
}
