//! The rows of the store, their checksums, and the keys of its read cursors.
//!
//! SQLite finds a damaged structure, and takes a changed bit of a value for the value. So each row has a checksum of its values.

use rusqlite::Row;
use rusqlite::types::Type;

/// One command in the history.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HistoryRow {
    pub(crate) session: String,
    pub(crate) id: u32,
    pub(crate) started_us: u64,
    pub(crate) ended_us: Option<u64>,
    pub(crate) lasted_us: Option<u64>,
    pub(crate) status: String,
    pub(crate) exit: Option<i32>,
    pub(crate) start_offset: u64,
    pub(crate) end_offset: u64,
    pub(crate) command: String,
    /// How certain its end is; `None` while it runs.
    pub(crate) boundary: Option<String>,
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

/// The columns of [`HistoryRow::of`].
pub(super) const COMMAND_COLUMNS: &str = "session, id, started_us, ended_us, status, exit, start_offset, end_offset, command, \
                                          boundary, lasted_us, sum";
/// The columns of [`SessionRow::of`].
pub(super) const SESSION_COLUMNS: &str = "id, owner, name, created_us, ended_us, key, sum";

impl HistoryRow {
    /// Reads a row of [`COMMAND_COLUMNS`].
    pub(super) fn of(r: &Row<'_>) -> rusqlite::Result<Self> {
        let row = Self {
            session: r.get(0)?,
            id: r.get(1)?,
            started_us: r.get::<_, i64>(2)?.unsigned_abs(),
            ended_us: r.get::<_, Option<i64>>(3)?.map(i64::unsigned_abs),
            status: r.get(4)?,
            exit: r.get(5)?,
            start_offset: r.get::<_, i64>(6)?.unsigned_abs(),
            end_offset: r.get::<_, i64>(7)?.unsigned_abs(),
            command: r.get(8)?,
            boundary: r.get(9)?,
            lasted_us: r.get::<_, Option<i64>>(10)?.map(i64::unsigned_abs),
        };
        checked(r, 11, row.sum())?;
        Ok(row)
    }

    pub(super) fn sum(&self) -> u32 {
        let Self {
            session,
            id,
            started_us,
            ended_us,
            lasted_us,
            status,
            exit,
            start_offset,
            end_offset,
            command,
            boundary,
        } = self;
        let mut sum = Sum::default();
        sum.texts(&[Some(session), Some(status), Some(command), boundary.as_ref()]);
        sum.numbers(&[
            Some(u64::from(*id)),
            Some(*started_us),
            *ended_us,
            *lasted_us,
            Some(*start_offset),
            Some(*end_offset),
        ]);
        sum.numbers(&[exit.map(|code| u64::from(code.cast_unsigned()))]);
        sum.0.finalize()
    }
}

impl SessionRow {
    /// Reads a row of [`SESSION_COLUMNS`].
    pub(super) fn of(r: &Row<'_>) -> rusqlite::Result<Self> {
        let row = Self::unchecked(r)?;
        checked(r, 6, row.sum())?;
        Ok(row)
    }

    /// Reads a row that has no checksum yet.
    pub(super) fn unchecked(r: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: r.get(0)?,
            owner: r.get(1)?,
            name: r.get(2)?,
            created_us: r.get::<_, i64>(3)?.unsigned_abs(),
            ended_us: r.get::<_, Option<i64>>(4)?.map(i64::unsigned_abs),
            key: r.get(5)?,
        })
    }

    pub(super) fn sum(&self) -> u32 {
        let Self { id, owner, name, created_us, ended_us, key } = self;
        let mut sum = Sum::default();
        sum.texts(&[Some(id), Some(owner), name.as_ref(), key.as_ref()]);
        sum.numbers(&[Some(*created_us), *ended_us]);
        sum.0.finalize()
    }
}

/// The checksum of a read cursor.
pub(super) fn cursor_sum((session, who): &CursorKey, read_to: u64) -> u32 {
    let mut sum = Sum::default();
    sum.texts(&[Some(session), Some(who)]);
    sum.numbers(&[Some(read_to)]);
    sum.0.finalize()
}

/// An error, which counts as damage of the file, if the checksum in this column is another one.
pub(super) fn checked(r: &Row<'_>, column: usize, sum: u32) -> rusqlite::Result<()> {
    if r.get::<_, i64>(column)? == i64::from(sum) {
        return Ok(());
    }
    let why = "a row's checksum does not match its values";
    Err(rusqlite::Error::FromSqlConversionFailure(column, Type::Integer, why.into()))
}

/// A checksum of values, each with its length or its absence.
#[derive(Default)]
struct Sum(crc32fast::Hasher);

impl Sum {
    fn texts(&mut self, texts: &[Option<&String>]) {
        for text in texts {
            self.numbers(&[text.map(|text| text.len() as u64)]);
            self.0.update(text.map_or(&[], |text| text.as_bytes()));
        }
    }

    fn numbers(&mut self, numbers: &[Option<u64>]) {
        for number in numbers {
            self.0.update(&[u8::from(number.is_some())]);
            self.0.update(&number.unwrap_or(0).to_le_bytes());
        }
    }
}

/// A session and a caller: the key of a read cursor.
pub(crate) type CursorKey = (String, String);
