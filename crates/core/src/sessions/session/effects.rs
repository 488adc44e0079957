//! The effects that a session's step wants outside of its state.

use wire::ToHolder;

use super::draw_task::DrawTask;
use crate::action::EndedBy;
use crate::sessions::viewer_feed::Noted;
use crate::store::HistoryRow;

/// The effects of a step outside of the session's state, in this order.
#[derive(Debug, Default)]
pub(super) struct Effects {
    /// Frames for the holder.
    pub(super) frames: Vec<ToHolder>,
    /// Commands for the history.
    pub(super) rows: Vec<HistoryRow>,
    /// The waits that ended.
    pub(super) waited: Vec<EndedBy>,
    /// Bytes of output that were read.
    pub(super) read: usize,
    /// Events for viewers.
    pub(super) notes: Vec<Noted>,
    /// A screen to draw at low priority.
    pub(super) draw: Option<DrawTask>,
}
