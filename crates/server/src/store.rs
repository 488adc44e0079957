//! Metadata of sessions and the history of their commands in SQLite: for lists and for what has ended.
//!
//! Never the truth: that is in the sessions' folders, and this file is made again from them when it is lost. Writes go
//! through one thread in batches, so no byte and no answer ever waits for the disk.

use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, mpsc};

use rusqlite::{Connection, OptionalExtension, params};

/// One command in the history.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HistoryRow {
    pub(crate) session: String,
    pub(crate) id: u32,
    pub(crate) started_us: u64,
    pub(crate) ended_us: Option<u64>,
    pub(crate) status: String,
    pub(crate) exit: Option<i32>,
    pub(crate) start_offset: u64,
    pub(crate) end_offset: u64,
    pub(crate) command: String,
}

/// One session.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SessionRow {
    pub(crate) id: String,
    pub(crate) owner: String,
    pub(crate) name: Option<String>,
    pub(crate) created_us: u64,
    /// Set once it has ended.
    pub(crate) ended_us: Option<u64>,
    /// The idempotency key that created it.
    pub(crate) key: Option<String>,
}

enum Write {
    Session(SessionRow),
    Command(HistoryRow),
    Forget(String),
    Flush(mpsc::SyncSender<()>),
    Stop,
}

/// The open store.
#[derive(Debug)]
pub(crate) struct Store {
    writes: mpsc::SyncSender<Write>,
    /// Taken when the store is closed.
    writer: Option<std::thread::JoinHandle<()>>,
    reads: Mutex<Connection>,
}

/// Rows that may wait for the disk.
const QUEUE_MAX: usize = 65_536;

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS sessions (
        id TEXT PRIMARY KEY, owner TEXT NOT NULL, name TEXT, created_us INTEGER NOT NULL, ended_us INTEGER,
        key TEXT);
    CREATE INDEX IF NOT EXISTS sessions_by_time ON sessions (created_us, id);
    CREATE TABLE IF NOT EXISTS commands (
        session TEXT NOT NULL, id INTEGER NOT NULL, started_us INTEGER NOT NULL, ended_us INTEGER,
        status TEXT NOT NULL, exit INTEGER, start_offset INTEGER NOT NULL, end_offset INTEGER NOT NULL, command TEXT NOT NULL, PRIMARY KEY (session, id)) WITHOUT ROWID;
    PRAGMA user_version = 2;";

/// What an earlier version's file lacks.
const SINCE_1: &str = "ALTER TABLE sessions ADD COLUMN key TEXT;";

impl Store {
    /// Opens the file; a damaged one is put aside and a fresh one begun.
    pub(crate) fn open(path: &Path) -> rusqlite::Result<Self> {
        let connection = connect(path).or_else(|e| {
            tracing::warn!(error = %e, "the store is damaged; it is made again from the sessions' folders");
            let _ = std::fs::rename(path, aside(path));
            connect(path)
        })?;
        let (writes, queue) = mpsc::sync_channel(QUEUE_MAX);
        let writer = connect(path)?;
        let writer = std::thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || write_all(writer, &queue))
            .map_err(|_| rusqlite::Error::InvalidQuery)?;
        Ok(Self { writes, writer: Some(writer), reads: Mutex::new(connection) })
    }

    pub(crate) fn put_session(&self, row: SessionRow) {
        self.put(Write::Session(row));
    }

    pub(crate) fn put_command(&self, row: HistoryRow) {
        self.put(Write::Command(row));
    }

    /// Waits for room, and so loses nothing: for the history of a whole session at once.
    pub(crate) fn put_command_in_time(&self, row: HistoryRow) {
        let _ = self.writes.send(Write::Command(row));
    }

    /// Never waits: a disk that does not keep up costs history, which the folders still have, and not answers.
    fn put(&self, write: Write) {
        if self.writes.try_send(write).is_err() {
            tracing::warn!("the history does not keep up; a row is left out");
        }
    }

    /// The session's folder is gone, and its commands' texts go with it. Waits for room: a row that stays would tell of a
    /// session that is not there.
    pub(crate) fn forget(&self, id: &str) {
        let _ = self.writes.send(Write::Forget(id.to_owned()));
    }

    /// Waits until everything before is written.
    pub(crate) fn flush(&self) {
        let (done, wait) = mpsc::sync_channel(1);
        if self.writes.send(Write::Flush(done)).is_ok() {
            self.hurry();
            let _ = wait.recv();
        }
    }

    fn hurry(&self) {
        if let Some(writer) = &self.writer {
            writer.thread().unpark();
        }
    }

    /// Every session, oldest first.
    pub(crate) fn sessions(&self) -> rusqlite::Result<Vec<SessionRow>> {
        let connection = self.reads.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut query = connection.prepare_cached(
            "SELECT id, owner, name, created_us, ended_us, key FROM sessions ORDER BY created_us, id",
        )?;
        let rows = query.query_map([], |r| {
            Ok(SessionRow {
                id: r.get(0)?,
                owner: r.get(1)?,
                name: r.get(2)?,
                created_us: r.get::<_, i64>(3)?.unsigned_abs(),
                ended_us: r.get::<_, Option<i64>>(4)?.map(i64::unsigned_abs),
                key: r.get(5)?,
            })
        })?;
        rows.collect()
    }

    /// How many sessions have ended.
    pub(crate) fn ended(&self) -> rusqlite::Result<usize> {
        let connection = self.reads.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut query = connection.prepare_cached("SELECT count(*) FROM sessions WHERE ended_us IS NOT NULL")?;
        query.query_row([], |r| r.get::<_, i64>(0)).map(|count| usize::try_from(count).unwrap_or(0))
    }

    /// A page of a session's commands, oldest first, and how many there are in all; these ids are left out, because they
    /// are known better elsewhere.
    pub(crate) fn commands(
        &self,
        session: &str,
        left_out: &[u32],
        limit: usize,
        offset: usize,
    ) -> rusqlite::Result<(Vec<HistoryRow>, usize)> {
        let left_out = serde_json::to_string(left_out).expect("invariant: numbers are JSON");
        let connection = self.reads.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut count = connection.prepare_cached(
            "SELECT count(*) FROM commands WHERE session = ?1 AND id NOT IN (SELECT value FROM json_each(?2))",
        )?;
        let total: i64 = count.query_row(params![session, left_out], |r| r.get(0))?;
        let mut query = connection.prepare_cached(
            "SELECT session, id, started_us, ended_us, status, exit, start_offset, end_offset, command FROM commands
             WHERE session = ?1 AND id NOT IN (SELECT value FROM json_each(?2)) ORDER BY id LIMIT ?3 OFFSET ?4",
        )?;
        let rows = query.query_map(params![session, left_out, limit as i64, offset as i64], history_row)?;
        Ok((rows.collect::<rusqlite::Result<_>>()?, usize::try_from(total).unwrap_or(0)))
    }

    /// The places and first words of commands with output in a range, oldest first: at most `limit`, but those that are
    /// to be left out.
    pub(crate) fn places(
        &self,
        session: &str,
        left_out: &[u32],
        (from, to): (u64, u64),
        limit: usize,
    ) -> rusqlite::Result<Vec<Place>> {
        let left_out = serde_json::to_string(left_out).expect("invariant: numbers are JSON");
        let connection = self.reads.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut query = connection.prepare_cached(
            "SELECT id, start_offset, end_offset, substr(command, 1, 200) FROM commands
             WHERE session = ?1 AND id NOT IN (SELECT value FROM json_each(?2)) AND end_offset >= ?3 AND start_offset < ?4
             ORDER BY start_offset, id LIMIT ?5",
        )?;
        let place = |r: &rusqlite::Row<'_>| {
            let (start, end) = (r.get::<_, i64>(1)?.unsigned_abs(), r.get::<_, i64>(2)?.unsigned_abs());
            Ok((r.get(0)?, start, Some(end), r.get(3)?))
        };
        let range = [from, to].map(|at| i64::try_from(at).unwrap_or(i64::MAX));
        query.query_map(params![session, left_out, range[0], range[1], limit as i64], place)?.collect()
    }

    /// One command of the history.
    pub(crate) fn command(&self, session: &str, id: u32) -> rusqlite::Result<Option<HistoryRow>> {
        let connection = self.reads.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        connection
            .query_row(
                "SELECT session, id, started_us, ended_us, status, exit, start_offset, end_offset, command FROM commands WHERE session = ?1 AND id = ?2",
                params![session, id],
                history_row,
            )
            .optional()
    }
}

/// A command's id, where its output begins and ends (if it has), and its first words.
pub(crate) type Place = (u32, u64, Option<u64>, String);

/// Closing waits for the last rows: the next server opens the same file.
impl Drop for Store {
    fn drop(&mut self) {
        let _ = self.writes.send(Write::Stop);
        self.hurry();
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

fn history_row(r: &rusqlite::Row<'_>) -> rusqlite::Result<HistoryRow> {
    Ok(HistoryRow {
        session: r.get(0)?,
        id: r.get(1)?,
        started_us: r.get::<_, i64>(2)?.unsigned_abs(),
        ended_us: r.get::<_, Option<i64>>(3)?.map(i64::unsigned_abs),
        status: r.get(4)?,
        exit: r.get(5)?,
        start_offset: r.get::<_, i64>(6)?.unsigned_abs(),
        end_offset: r.get::<_, i64>(7)?.unsigned_abs(),
        command: r.get(8)?,
    })
}

fn aside(path: &Path) -> PathBuf {
    path.with_extension("damaged")
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    // Commands may hold secrets: the file is nobody else's from its first moment on.
    let _ = std::fs::OpenOptions::new().append(true).create(true).mode(0o600).open(path);
    let connection = Connection::open(path)?;
    // A crash of the machine may cost the newest rows, which the folders still have; it never costs the file.
    // What is deleted is overwritten: a command's text may be the secret for which its session was purged.
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA busy_timeout = 5000; PRAGMA secure_delete = ON;",
    )?;
    if connection.query_row("PRAGMA user_version", [], |r| r.get::<_, i64>(0))? == 1 {
        connection.execute_batch(SINCE_1)?;
    }
    connection.execute_batch(SCHEMA)?;
    Ok(connection)
}

/// The writer's thread: takes what has come together and writes it in one transaction.
fn write_all(mut connection: Connection, queue: &mpsc::Receiver<Write>) {
    /// One transaction's size; a larger one keeps readers waiting.
    const BATCH_MAX: usize = 1000;
    /// How long rows are collected: waking this thread for each would cost more than writing it.
    const COLLECT: std::time::Duration = std::time::Duration::from_millis(100);
    while let Ok(first) = queue.recv() {
        let mut is_stopping = matches!(first, Write::Stop);
        if !matches!(first, Write::Flush(_) | Write::Stop) {
            std::thread::park_timeout(COLLECT);
        }
        let (mut flushed, mut forgets) = (Vec::new(), false);
        let result = (|| {
            let transaction = connection.transaction()?;
            let mut next = Some(first);
            let mut count = 0;
            while let Some(write) = next {
                is_stopping |= matches!(write, Write::Stop);
                forgets |= matches!(write, Write::Forget(_));
                write_one(&transaction, write, &mut flushed)?;
                count += 1;
                next = if count < BATCH_MAX { queue.try_recv().ok() } else { None };
            }
            transaction.commit()?;
            if forgets {
                // The pages as they were are in the log until it is written back.
                connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
            }
            Ok::<_, rusqlite::Error>(())
        })();
        if let Err(e) = result {
            tracing::warn!(error = %e, "the history was not written; the sessions' folders still have it");
        }
        for done in flushed {
            let _ = done.send(());
        }
        if is_stopping {
            return;
        }
    }
}

fn write_one(connection: &Connection, write: Write, flushed: &mut Vec<mpsc::SyncSender<()>>) -> rusqlite::Result<()> {
    match write {
        Write::Session(s) => {
            let mut put = connection.prepare_cached(
                "INSERT INTO sessions VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (id) DO UPDATE SET ended_us = ?5, name = ?3",
            )?;
            put.execute(params![s.id, s.owner, s.name, s.created_us as i64, s.ended_us.map(|u| u as i64), s.key])?;
        }
        Write::Command(c) => {
            let mut put = connection
                .prepare_cached("INSERT OR REPLACE INTO commands VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")?;
            put.execute(params![
                c.session,
                c.id,
                c.started_us as i64,
                c.ended_us.map(|u| u as i64),
                c.status,
                c.exit,
                c.start_offset as i64,
                c.end_offset as i64,
                c.command
            ])?;
        }
        Write::Forget(id) => {
            connection.execute("DELETE FROM sessions WHERE id = ?1", [&id])?;
            connection.execute("DELETE FROM commands WHERE session = ?1", [&id])?;
        }
        Write::Flush(done) => flushed.push(done),
        Write::Stop => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_back_and_a_damaged_file_is_put_aside() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("store.db");
        let session = SessionRow {
            id: "s0-a".into(),
            owner: "me".into(),
            name: None,
            created_us: 5,
            ended_us: Some(9),
            key: Some("k".into()),
        };
        let command = HistoryRow {
            session: "s0-a".into(),
            id: 1,
            started_us: 6,
            ended_us: Some(7),
            status: "completed".into(),
            exit: Some(0),
            start_offset: 10,
            end_offset: 20,
            command: "true".into(),
        };
        {
            let store = Store::open(&path).expect("a fresh store");
            store.put_session(session.clone());
            store.put_command(command.clone());
            store.flush();
            assert_eq!(store.sessions().expect("a query"), [session]);
            assert_eq!(store.commands("s0-a", &[], 10, 0).expect("a query"), (vec![command.clone()], 1));
            assert_eq!(store.commands("s0-a", &[], 10, 1).expect("a query"), (vec![], 1));
            assert_eq!(store.commands("s0-a", &[1], 10, 0).expect("a query"), (vec![], 0));
            assert_eq!(store.command("s0-a", 1).expect("a query"), Some(command));
            store.forget("s0-a");
            store.flush();
            assert_eq!(store.sessions().expect("a query"), []);
        }
        for extra in ["store.db-wal", "store.db-shm"] {
            let _ = std::fs::remove_file(dir.path().join(extra));
        }
        std::fs::write(&path, b"this is not a database, and long enough to be taken for one ................")
            .expect("a write");
        let store = Store::open(&path).expect("a fresh store in place of the damaged one");
        assert_eq!(store.sessions().expect("a query"), []);
        assert!(dir.path().join("store.damaged").exists());
    }

    #[test]
    fn the_file_of_an_earlier_version_is_read_on() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("store.db");
        let old =
            "CREATE TABLE sessions (id TEXT PRIMARY KEY, owner TEXT NOT NULL, name TEXT, created_us INTEGER NOT NULL,
                   ended_us INTEGER); INSERT INTO sessions VALUES ('s0-a', 'me', NULL, 5, 9); PRAGMA user_version = 1;";
        Connection::open(&path).and_then(|c| c.execute_batch(old)).expect("an old file");
        let told =
            |store: &Store| store.sessions().expect("a query").into_iter().map(|s| (s.id, s.key)).collect::<Vec<_>>();
        for _ in 0..2 {
            let store = Store::open(&path).expect("an old file is fine");
            assert_eq!(told(&store), [("s0-a".to_owned(), None)]);
        }
    }
}
