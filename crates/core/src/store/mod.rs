//! The store: metadata of sessions and the history of their commands in SQLite, for lists and for ended sessions.
//!
//! It is never authoritative: the sessions' folders are, and this file is rebuilt from them when it is lost or damaged.
//! One thread writes in batches, so no output and no answer ever waits for the disk. A failed read is an error, and
//! never an empty list.

mod file;
mod page_start;
mod rows;
mod state;
#[cfg(test)]
mod tests;
mod writer;

use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};

use rusqlite::{Connection, OptionalExtension, params};
use tokio::sync::{Notify, watch};

pub(crate) use file::StoreError;
use rows::{COMMAND_COLUMNS, SESSION_COLUMNS, checked, cursor_sum};
pub(crate) use rows::{CursorKey, HistoryRow, SessionRow};
use state::{Reads, State, Whole, locked};
use writer::{QUEUE_MAX, Write, Writer};

/// How many commands of a session are stored, how many of these are left out, and their first and last number.
const KNOWN_COMMANDS: &str = "SELECT coalesce((SELECT commands FROM counts WHERE session = ?1), 0),
    (SELECT count(*) FROM commands WHERE session = ?1 AND id IN (SELECT value FROM json_each(?2))),
    (SELECT min(id) FROM commands WHERE session = ?1), (SELECT max(id) FROM commands WHERE session = ?1)";
/// Commands from this number on without those that are left out.
fn page_of_commands() -> String {
    format!(
        "SELECT {COMMAND_COLUMNS} FROM commands
         WHERE session = ?1 AND id >= ?3 AND id NOT IN (SELECT value FROM json_each(?2)) ORDER BY id LIMIT ?4 OFFSET ?5"
    )
}

/// A query of sessions.
#[derive(Debug, Default)]
pub(crate) struct SessionQuery<'a> {
    /// Only sessions of this owner.
    pub(crate) owner: Option<&'a str>,
    /// Only sessions with this name.
    pub(crate) name: Option<&'a str>,
    /// Excluded: these sessions are live.
    pub(crate) living: &'a [String],
    /// Included: the end of these sessions is not recorded yet.
    pub(crate) ending: &'a [String],
    /// The newest first.
    pub(crate) is_newest_first: bool,
    pub(crate) limit: usize,
    pub(crate) offset: usize,
}

/// The open store.
#[derive(Debug)]
pub(crate) struct Store {
    writes: mpsc::SyncSender<Write>,
    /// `None` once the store is closed.
    writer: Option<std::thread::JoinHandle<()>>,
    state: Arc<State>,
}

impl Store {
    /// Opens the file; a damaged one is set aside and replaced, and an unavailable one is retried.
    pub(crate) fn open(path: &Path) -> std::io::Result<Self> {
        let is_there = std::fs::metadata(path).is_ok_and(|m| m.len() > 0);
        let mut connected = file::connect(path);
        let mut whole = if is_there { Whole::Yes } else { Whole::Filled };
        if let Err(e @ StoreError::Damaged(_)) = &connected {
            tracing::warn!(error = %e, "it is set aside as store.damaged and rebuilt from the sessions' folders");
            whole = Whole::Filled;
            connected = file::put_aside(path).map_err(StoreError::of_io).and_then(|()| file::connect(path));
        }
        let reads = match connected {
            Ok(connection) => Reads { connection, is_provisional: false, trouble: None },
            Err(trouble) => {
                tracing::warn!(error = %trouble, "the history waits for the disk");
                match file::connect_to_read(path) {
                    Some(connection) => Reads { connection, is_provisional: true, trouble: None },
                    None => Reads { connection: file::nothing(), is_provisional: true, trouble: Some(trouble) },
                }
            }
        };
        let state = Arc::new(State {
            path: path.to_owned(),
            reads: Mutex::new(reads),
            fresh: Mutex::default(),
            whole: watch::Sender::new(whole),
            calls: Notify::new(),
        });
        let (writes, queue) = mpsc::sync_channel(QUEUE_MAX);
        let writer = Writer::new(Arc::clone(&state));
        let writer = std::thread::Builder::new().name("store".to_owned()).spawn(move || writer.run(&queue))?;
        Ok(Self { writes, writer: Some(writer), state })
    }

    /// Stores a session's row; it is listed from now on, even before it is written.
    pub(crate) fn put_session(&self, row: SessionRow) {
        self.state.fresh().change(row.id.clone(), Some(row));
        // If the queue is full, the writer is at work and sees this row, too.
        let _ = self.writes.try_send(Write::Sessions);
    }

    /// Removes a session whose folder is gone, with its commands.
    pub(crate) fn forget(&self, id: &str) {
        self.state.fresh().change(id.to_owned(), None);
        let _ = self.writes.try_send(Write::Sessions);
    }

    /// Stores a command without ever waiting: a disk that is too slow costs history, not answers.
    pub(crate) fn put_command(&self, row: HistoryRow) {
        if let Err(
            mpsc::TrySendError::Full(Write::Command(row)) | mpsc::TrySendError::Disconnected(Write::Command(row)),
        ) = self.writes.try_send(Write::Command(Box::new(row)))
        {
            self.state.left_out(row.session);
        }
    }

    /// Stores a caller's read cursor.
    pub(crate) fn put_read_cursor(&self, look: CursorKey, read_to: u64) {
        // A full queue only loses a cursor, so that output is read again.
        let _ = self.writes.try_send(Write::Cursor(Box::new((look, read_to))));
    }

    /// A caller's read cursor, also from before this server.
    pub(crate) fn read_cursor(&self, key: &CursorKey) -> Result<Option<u64>, StoreError> {
        self.read(|connection| {
            let mut query =
                connection.prepare_cached("SELECT read_to, sum FROM looks WHERE session = ?1 AND who = ?2")?;
            let read = query.query_row(params![key.0, key.1], |r| {
                let read_to = r.get::<_, i64>(0)?.unsigned_abs();
                checked(r, 1, cursor_sum(key, read_to))?;
                Ok(read_to)
            });
            read.optional()
        })
    }

    /// Stores a command, waiting for room in the queue: for the history of a whole session.
    pub(crate) fn put_command_in_time(&self, row: HistoryRow) {
        let _ = self.writes.send(Write::Command(Box::new(row)));
    }

    /// Waits until every earlier row is written, or has failed.
    pub(crate) fn flush(&self) -> Result<(), StoreError> {
        self.asks(Write::Flush)
    }

    /// The same, but ignores an unavailable disk, which only delays the newest rows.
    pub(crate) fn flush_as_far_as_possible(&self) -> Result<(), StoreError> {
        match self.flush() {
            Err(StoreError::Unavailable(_)) => Ok(()),
            other => other,
        }
    }

    /// Sets a damaged file aside and starts a new one, to be filled again.
    pub(crate) fn begin_anew(&self) -> Result<(), StoreError> {
        self.asks(Write::Anew)
    }

    fn asks(&self, what: impl FnOnce(mpsc::SyncSender<Result<(), StoreError>>) -> Write) -> Result<(), StoreError> {
        let (done, wait) = mpsc::sync_channel(1);
        let gone = || StoreError::Unavailable("its thread has ended".to_owned());
        self.writes.send(what(done)).map_err(|_| gone())?;
        self.hurry();
        wait.recv().map_err(|_| gone())?
    }

    fn hurry(&self) {
        if let Some(writer) = &self.writer {
            writer.thread().unpark();
        }
    }

    /// Whether the file is damaged and has not been replaced yet.
    pub(crate) fn is_damaged(&self) -> bool {
        self.state.whole.borrow().is_damaged()
    }

    /// Requests a rebuild, as if the file had proved damaged.
    #[cfg(test)]
    pub(crate) fn damage(&self) {
        self.state.found_damaged(&StoreError::Damaged("by a test".to_owned()));
    }

    /// Waits until everything in the folders can be read here. The error is the reason why the last rebuild failed.
    pub(crate) async fn whole(&self) -> Result<(), StoreError> {
        let mut whole = self.state.whole.subscribe();
        match whole.wait_for(|whole| matches!(whole, Whole::Yes | Whole::NotRebuilt(_))).await.as_deref() {
            Ok(Whole::NotRebuilt(why)) => Err(why.clone()),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// The rebuild of a damaged file failed.
    pub(crate) fn mark_not_rebuilt(&self, why: StoreError) {
        self.state.whole.send_replace(Whole::NotRebuilt(why));
    }

    /// The rebuild of a damaged file is complete.
    pub(crate) fn mark_whole(&self) {
        self.state.whole.send_replace(Whole::Yes);
    }

    /// The new file is filled.
    pub(crate) fn mark_filled(&self) {
        self.state.whole.send_if_modified(|whole| {
            let is_new = matches!(whole, Whole::Filled);
            if is_new {
                *whole = Whole::Yes;
            }
            is_new
        });
    }

    /// Waits until rows have to be rebuilt: all of a damaged file, or those that were left out.
    pub(crate) async fn calls(&self) {
        self.state.calls.notified().await;
    }

    /// Takes the list of sessions with commands left out.
    pub(crate) fn take_incomplete(&self) -> Vec<String> {
        self.state.fresh().incomplete.drain().collect()
    }

    /// Removes an earlier set-aside file, which still has the rows of its time.
    pub(crate) fn remove_aside(&self) {
        file::remove_aside(&self.state.path);
    }

    fn read<T>(&self, query: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        let reads = locked(&self.state.reads);
        sys::fault::stall("store");
        if let Some(trouble) = &reads.trouble {
            return Err(trouble.clone());
        }
        let read = query(&reads.connection).map_err(StoreError::from);
        drop(reads);
        if let Err(e @ StoreError::Damaged(_)) = &read {
            self.state.found_damaged(e);
        }
        read
    }

    /// Every session, oldest first.
    pub(crate) fn sessions(&self) -> Result<Vec<SessionRow>, StoreError> {
        let fresh = self.state.fresh().sessions.clone();
        let mut rows: Vec<SessionRow> = self.read(|connection| {
            let mut query = connection.prepare_cached(&format!("SELECT {SESSION_COLUMNS} FROM sessions"))?;
            let rows = query.query_map([], SessionRow::of)?;
            rows.collect()
        })?;
        rows.retain(|row| !fresh.contains_key(&row.id));
        rows.extend(fresh.into_values().filter_map(|(_, row)| row));
        rows.sort_by(|a, b| (a.created_us, &a.id).cmp(&(b.created_us, &b.id)));
        Ok(rows)
    }

    /// One session.
    pub(crate) fn session(&self, id: &str) -> Result<Option<SessionRow>, StoreError> {
        Ok(self.sessions()?.into_iter().find(|row| row.id == id))
    }

    /// A page of the ended sessions, and their total number.
    pub(crate) fn ended(&self, wanted: &SessionQuery<'_>) -> Result<(Vec<String>, usize), StoreError> {
        /// Rows not written yet take precedence.
        const ALL: &str = "
            WITH fresh AS (SELECT key AS id, value ->> 'owner' AS owner, value ->> 'name' AS name,
                    value ->> 'created_us' AS created_us, value ->> 'ended_us' AS ended_us FROM json_each(?1)),
                known AS (
                    SELECT id, owner, name, created_us, ended_us FROM sessions WHERE id NOT IN (SELECT id FROM fresh)
                    UNION ALL SELECT id, owner, name, created_us, ended_us FROM fresh WHERE owner IS NOT NULL),
                found AS (
                    SELECT id, created_us FROM known
                    WHERE (ended_us IS NOT NULL OR id IN (SELECT value FROM json_each(?3)))
                        AND id NOT IN (SELECT value FROM json_each(?2))
                        AND (?4 IS NULL OR owner = ?4) AND (?5 IS NULL OR name = ?5))";
        let fresh: serde_json::Map<String, serde_json::Value> = {
            let fresh = self.state.fresh();
            let value = |row: &Option<SessionRow>| match row {
                Some(row) => serde_json::json!({
                    "owner": row.owner, "name": row.name, "created_us": row.created_us, "ended_us": row.ended_us
                }),
                None => serde_json::json!({}),
            };
            fresh.sessions.iter().map(|(id, (_, row))| (id.clone(), value(row))).collect()
        };
        let fresh = serde_json::Value::Object(fresh).to_string();
        let ids = |ids: &[String]| serde_json::Value::from(ids.to_vec()).to_string();
        let (living, ending) = (ids(wanted.living), ids(wanted.ending));
        let order = if wanted.is_newest_first { "created_us DESC, id DESC" } else { "created_us, id" };
        self.read(|connection| {
            let which = (&fresh, &living, &ending, wanted.owner, wanted.name);
            let mut count = connection.prepare_cached(&format!("{ALL} SELECT count(*) FROM found"))?;
            let total: i64 = count.query_row(which, |r| r.get(0))?;
            let page = format!("{ALL} SELECT id FROM found ORDER BY {order} LIMIT ?6 OFFSET ?7");
            let mut page = connection.prepare_cached(&page)?;
            let (limit, offset) = (wanted.limit as i64, wanted.offset as i64);
            let which = (&fresh, &living, &ending, wanted.owner, wanted.name, limit, offset);
            let ids = page.query_map(which, |r| r.get(0))?.collect::<rusqlite::Result<_>>()?;
            Ok((ids, usize::try_from(total).unwrap_or(0)))
        })
    }

    /// A page of a session's commands, oldest first, and their total number; the given ids are left out, because the
    /// actor has newer data on them.
    pub(crate) fn commands(
        &self,
        session: &str,
        left_out: &[u32],
        limit: usize,
        offset: usize,
    ) -> Result<(Vec<HistoryRow>, usize), StoreError> {
        let json = serde_json::to_string(left_out).expect("invariant: numbers are JSON");
        self.read(|connection| {
            let mut known = connection.prepare_cached(KNOWN_COMMANDS)?;
            let place = |r: &rusqlite::Row<'_>| {
                let ids = r.get::<_, Option<u32>>(2)?.zip(r.get::<_, Option<u32>>(3)?);
                Ok((r.get::<_, i64>(0)?.unsigned_abs(), r.get::<_, i64>(1)?.unsigned_abs(), ids))
            };
            let (stored, hidden, ids) = known.query_row(params![session, json], place)?;
            let shown = stored.saturating_sub(hidden);
            let place = page_start::first_of_page(shown, ids, left_out, offset as u64);
            let mut query = connection.prepare_cached(&page_of_commands())?;
            let page = params![session, json, place.id, limit as i64, place.passed as i64];
            let rows = query.query_map(page, HistoryRow::of)?.collect::<rusqlite::Result<_>>()?;
            Ok((rows, usize::try_from(shown).unwrap_or(0)))
        })
    }

    /// The ranges of commands with output in a range, oldest first: at most `limit`, without the given
    /// ids.
    pub(crate) fn places(
        &self,
        session: &str,
        left_out: &[u32],
        (from, to): (u64, u64),
        (limit, newest): (usize, bool),
    ) -> Result<Vec<CommandRange>, StoreError> {
        let way = if newest { "DESC" } else { "ASC" };
        let left_out = serde_json::to_string(left_out).expect("invariant: numbers are JSON");
        self.read(|connection| {
        let mut query = connection.prepare_cached(&format!(
            "SELECT id, start_offset, end_offset FROM commands
             WHERE session = ?1 AND id NOT IN (SELECT value FROM json_each(?2)) AND end_offset >= ?3 AND start_offset < ?4
             ORDER BY start_offset {way}, id {way} LIMIT ?5",
        ))?;
        let place = |r: &rusqlite::Row<'_>| {
            let (start, end) = (r.get::<_, i64>(1)?.unsigned_abs(), r.get::<_, i64>(2)?.unsigned_abs());
            Ok((r.get(0)?, start, Some(end)))
        };
        let range = [from, to].map(|at| i64::try_from(at).unwrap_or(i64::MAX));
        query.query_map(params![session, left_out, range[0], range[1], limit as i64], place)?.collect()
        })
    }

    /// One command of the history.
    pub(crate) fn command(&self, session: &str, id: u32) -> Result<Option<HistoryRow>, StoreError> {
        self.read(|connection| {
            connection
                .query_row(
                    &format!("SELECT {COMMAND_COLUMNS} FROM commands WHERE session = ?1 AND id = ?2"),
                    params![session, id],
                    HistoryRow::of,
                )
                .optional()
        })
    }
}

/// A command's id, and the beginning and (if it has ended) the end of its output.
pub(crate) type CommandRange = (u32, u64, Option<u64>);

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
