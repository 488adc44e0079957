//! The store's file: opening it, setting a damaged one aside, and the meaning of its errors.
//!
//! Damage and an unavailable disk are different: a damaged file is rebuilt, a sound one is retried.

use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode, OpenFlags, ffi};

use super::rows::{COMMAND_COLUMNS, HistoryRow, SESSION_COLUMNS, SessionRow, checked, cursor_sum};

/// Why the store cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StoreError {
    /// The file's contents are damaged, or not of this schema.
    #[error("store.db is damaged: {0}")]
    Damaged(String),
    /// The disk is unavailable; the file may be sound.
    #[error("store.db cannot be used: {0}")]
    Unavailable(String),
}

impl StoreError {
    /// An error of the file system.
    pub(super) fn of_io(error: std::io::Error) -> Self {
        Self::Unavailable(error.to_string())
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let why = error.to_string();
        let is_damage = match &error {
            rusqlite::Error::SqliteFailure(failure, _) => match failure.code {
                // The last code is that of a file with other tables than ours.
                ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::TypeMismatch | ErrorCode::Unknown => {
                    true
                }
                _ => matches!(
                    failure.extended_code,
                    ffi::SQLITE_IOERR_SHORT_READ | ffi::SQLITE_IOERR_CORRUPTFS | ffi::SQLITE_IOERR_DATA
                ),
            },
            rusqlite::Error::SqlInputError { .. }
            | rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::Utf8Error(..)
            | rusqlite::Error::InvalidColumnType(..) => true,
            _ => false,
        };
        if is_damage { Self::Damaged(why) } else { Self::Unavailable(why) }
    }
}

/// A file of another version is rebuilt from the sessions' folders, as a damaged one is.
const VERSION: i64 = 7;

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS sessions (
        id TEXT PRIMARY KEY, owner TEXT NOT NULL, name TEXT, created_us INTEGER NOT NULL, ended_us INTEGER,
        key TEXT, sum INTEGER NOT NULL);
    CREATE INDEX IF NOT EXISTS sessions_by_time ON sessions (created_us, id);
    CREATE TABLE IF NOT EXISTS commands (
        session TEXT NOT NULL, id INTEGER NOT NULL, started_us INTEGER NOT NULL, ended_us INTEGER,
        status TEXT NOT NULL, exit INTEGER, start_offset INTEGER NOT NULL, end_offset INTEGER NOT NULL, command TEXT NOT NULL,
        boundary TEXT, lasted_us INTEGER, sum INTEGER NOT NULL, PRIMARY KEY (session, id)) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS counts (session TEXT PRIMARY KEY, commands INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TRIGGER IF NOT EXISTS counted AFTER INSERT ON commands BEGIN
        INSERT INTO counts VALUES (new.session, 1) ON CONFLICT DO UPDATE SET commands = commands + 1;
    END;
    CREATE TABLE IF NOT EXISTS looks (
        session TEXT NOT NULL, who TEXT NOT NULL, read_to INTEGER NOT NULL, sum INTEGER NOT NULL, PRIMARY KEY (session, who)) WITHOUT ROWID;
    PRAGMA user_version = 7;";

/// Opens the file, or creates it.
pub(super) fn connect(path: &Path) -> Result<Connection, StoreError> {
    // Commands may contain secrets: the file is private from its creation on.
    let _ = std::fs::OpenOptions::new().append(true).create(true).mode(0o600).open(path);
    let connection = Connection::open(path)?;
    // A crash of the machine may cost the newest rows, which the folders still have; it never costs the file. Deleted
    // rows are overwritten: a command's text may be the secret for which its session was purged.
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA busy_timeout = 5000; PRAGMA secure_delete = ON;",
    )?;
    // An existing schema is not written again: a full disk has no room for it.
    match connection.query_row("PRAGMA user_version", [], |r| r.get::<_, i64>(0))? {
        VERSION => {}
        // A new file.
        0 => connection.execute_batch(&format!("BEGIN IMMEDIATE; {SCHEMA} COMMIT"))?,
        other => {
            let why = format!("its schema has version {other}, and this version of ptyd reads {VERSION}");
            return Err(StoreError::Damaged(why));
        }
    }
    Ok(connection)
}

/// Opens a file for reading that a server has closed cleanly, when a full disk has no room for the files that SQLite
/// puts beside it. A file with a log beside it is incomplete without the log.
pub(super) fn connect_to_read(path: &Path) -> Option<Connection> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    if std::fs::metadata(&log).is_ok_and(|m| m.len() > 0) || !path.exists() {
        return None;
    }
    let address = path.to_str()?.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(format!("file:{address}?immutable=1"), flags).ok()?;
    let version = connection.query_row("PRAGMA user_version", [], |r| r.get::<_, i64>(0)).ok()?;
    (version == VERSION).then_some(connection)
}

/// A store without a file and without rows.
pub(super) fn nothing() -> Connection {
    let connection = Connection::open_in_memory().expect("invariant: memory can be opened");
    connection.execute_batch(SCHEMA).expect("invariant: the schema is sound");
    connection
}

/// Sets the file and its companions aside for inspection; replaces an earlier set.
pub(super) fn put_aside(path: &Path) -> std::io::Result<()> {
    for (there, aside) in files(path).iter().zip(files(&aside(path))) {
        match std::fs::rename(there, &aside) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => drop(std::fs::remove_file(&aside)),
            other => other?,
        }
    }
    Ok(())
}

/// Removes the set-aside files: their contents are unknown.
pub(super) fn remove_aside(path: &Path) {
    for file in files(&aside(path)) {
        let _ = std::fs::remove_file(file);
    }
}

/// Whether every page is readable, the rows agree with the indexes, and each row has the values that were written.
pub(super) fn check(connection: &Connection) -> Result<(), StoreError> {
    let found: String = connection.query_row("PRAGMA integrity_check(1)", [], |r| r.get(0))?;
    if found != "ok" {
        return Err(StoreError::Damaged(found));
    }
    check_rows(connection, &format!("SELECT {SESSION_COLUMNS} FROM sessions"), |r| SessionRow::of(r).map(drop))?;
    check_rows(connection, &format!("SELECT {COMMAND_COLUMNS} FROM commands"), |r| HistoryRow::of(r).map(drop))?;
    check_rows(connection, "SELECT session, who, read_to, sum FROM looks", |r| {
        checked(r, 3, cursor_sum(&(r.get(0)?, r.get(1)?), r.get::<_, i64>(2)?.unsigned_abs()))
    })?;
    let miscounted: i64 = connection.query_row(MISCOUNTED, [], |r| r.get(0))?;
    if miscounted == 0 {
        Ok(())
    } else {
        Err(StoreError::Damaged("the commands of a session are miscounted".to_owned()))
    }
}

/// How many numbers of commands are wrong.
const MISCOUNTED: &str = "SELECT count(*) FROM
    (SELECT session, count(*) AS stored FROM commands GROUP BY session) FULL JOIN counts USING (session)
    WHERE stored IS NOT commands";

fn check_rows(
    connection: &Connection,
    query: &str,
    check: impl Fn(&rusqlite::Row<'_>) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    connection.prepare(query)?.query_map([], check)?.collect()
}

fn aside(path: &Path) -> PathBuf {
    path.with_extension("damaged")
}

/// The file, its log and the log's index.
fn files(path: &Path) -> [PathBuf; 3] {
    ["", "-wal", "-shm"].map(|end| {
        let mut file = path.as_os_str().to_owned();
        file.push(end);
        file.into()
    })
}
