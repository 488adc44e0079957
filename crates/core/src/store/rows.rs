//! The rows of the store, and the keys of its read cursors.

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

/// A session and a caller: the key of a read cursor.
pub(crate) type CursorKey = (String, String);
