//! The text of a range of a session's output.

use std::sync::Arc;

use crate::action::{ActionError, Budget, TextView};
use crate::sessions::render::handover::Handovers;
use crate::sessions::render::text;
use crate::sessions::render::text_source::TextSource;
use crate::sessions::shared::Shared;
use crate::sessions::timeline::handover::RecentHandovers;

/// Renders a range of output.
pub(in crate::sessions) async fn text(
    shared: &Arc<Shared>,
    handovers: RecentHandovers,
    range: (u64, u64),
    cols: u16,
    budget: Budget,
) -> Result<TextView, ActionError> {
    text_in(shared, handovers, range, cols, budget, false).await
}

/// The same for a range that may begin while a program uses the whole screen.
pub(super) async fn text_in(
    shared: &Arc<Shared>,
    handovers: RecentHandovers,
    (from, to): (u64, u64),
    cols: u16,
    budget: Budget,
    in_paint: bool,
) -> Result<TextView, ActionError> {
    let rendered = || text_of(shared, handovers, (from, to), cols, budget, in_paint);
    shared.work(to - from, rendered).await.map_err(unreadable)
}

pub(super) fn text_of(
    shared: &Shared,
    handovers: RecentHandovers,
    (from, to): (u64, u64),
    cols: u16,
    budget: Budget,
    in_paint: bool,
) -> std::io::Result<TextView> {
    let (handovers, folder, reader) = (Handovers::new(handovers), &shared.folder, &shared.reader);
    let mut source = TextSource { folder, reader, handovers, cols, in_paint };
    text::text(&mut source, from, to, budget)
}

pub(super) fn unreadable(error: std::io::Error) -> ActionError {
    ActionError::Internal { why: format!("the journal: {error}") }
}
