//! The view of one range of a session's output: its bytes, its terminal stream, or the text of its lines.

use std::sync::Arc;

use journal::Reader;

use super::range_text::{text_of, unreadable};
use crate::action::{ActionError, Lines, OutputView, ReadOutput, Since, TextView, View};
use crate::limits;
use crate::sessions::render::budget::say_left_out;
use crate::sessions::render::handover::Handovers;
use crate::sessions::render::range;
use crate::sessions::render::stream::stream;
use crate::sessions::shared::Shared;
use crate::sessions::timeline::handover::RecentHandovers;

pub(super) async fn output_view(
    shared: &Arc<Shared>,
    read: &ReadOutput,
    (asked, end): (u64, u64),
    markers: &[(u64, u64)],
    handovers: RecentHandovers,
    is_final: bool,
) -> Result<OutputView, ActionError> {
    if asked > end && !matches!(read.since, Since::Last) {
        let problem = format!("o:{asked} is beyond the end of the output, o:{end}");
        return Err(ActionError::Invalid { field: "since", problem });
    }
    let first = shared.reader.first().map_err(unreadable)?.0;
    let from = asked.max(first).min(end);
    let limit = read.limit.min(limits::READ_BYTES_MAX) as u64;
    let to = end.min(from.saturating_add(limit));
    let view = OutputView {
        view: read.view,
        bytes: Vec::new(),
        text: TextView { from, to: from, ..TextView::default() },
        from,
        next: from,
        first,
        end,
        gap: (asked < from).then_some((asked, from)),
        is_final,
        room: None,
    };
    match read.view {
        View::Raw | View::Stream => {
            let bytes = usize::try_from(to - from).unwrap_or(usize::MAX);
            let room = shared.answer_room(bytes).await?;
            let view = OutputView { room, is_final: is_final && to == end, ..view };
            let read = || raw_view(shared, view, to, markers, handovers);
            shared.work(to - from, read).await.map_err(unreadable)
        }
        View::Text => {
            // No position was asked for, so it ends where the output does.
            let is_newest =
                matches!(read.lines, Some(Lines::Newest(_))) && matches!(read.since, Since::First | Since::Command(_));
            let (from, to) = if is_newest { (end.saturating_sub(limit).max(from), end) } else { (from, to) };
            let render = || text_view(shared, read, view, (from, to), handovers);
            shared.work(to - from, render).await.map_err(unreadable)
        }
    }
}

/// The bytes up to here, as they are or for a terminal.
fn raw_view(
    shared: &Shared,
    mut view: OutputView,
    to: u64,
    markers: &[(u64, u64)],
    handovers: RecentHandovers,
) -> std::io::Result<OutputView> {
    let asked = view.gap.map_or(view.from, |(asked, _)| asked);
    let slice = range::read(&shared.reader, view.from, to)?;
    view.next = slice.from + slice.bytes.len() as u64;
    if slice.from > view.from {
        // Retention removed output during the read.
        (view.gap, view.from) = (Some((asked, slice.from)), slice.from);
    }
    view.bytes = slice.bytes;
    if view.view == View::Stream {
        let (reader, from) = (&shared.reader, slice.from);
        let cuts = Handovers::new(handovers).cuts(&shared.folder, reader, from, view.next)?;
        let (mut bytes, mut next) = stream(view.bytes, from, markers, &cuts, view.next == view.end);
        if next == from {
            // All of it is the beginning of one control sequence.
            let whole = range::read(reader, from, view.next)?;
            (bytes, next) = stream(whole.bytes, from, markers, &cuts, true);
        }
        (view.bytes, view.next) = (bytes, next);
    }
    Ok(view)
}

/// The text of a range, or of some lines of it.
fn text_view(
    shared: &Shared,
    read: &ReadOutput,
    view: OutputView,
    (from, to): (u64, u64),
    handovers: RecentHandovers,
) -> std::io::Result<OutputView> {
    let reader = &shared.reader;
    let to = if to == view.end { to } else { line_end(reader, from, to)? };
    let newest = match read.lines {
        Some(Lines::Newest(lines)) => newest_lines(reader, from, to, lines)?,
        Some(Lines::First(_)) | None => from,
    };
    let of_range = |range| text_of(shared, handovers.clone(), range, shared.spec.cols, read.budget, false);
    let (mut text, to) = match read.lines {
        Some(Lines::First(lines)) => first_lines(reader, (from, to), lines, of_range)?,
        Some(Lines::Newest(_)) | None => (of_range((newest, to))?, to),
    };
    if newest > from {
        say_left_out(reader, &mut text, from, newest)?;
    }
    let is_final = view.is_final && to == view.end;
    Ok(OutputView { text, from, next: to, is_final, ..view })
}

/// The last line end in a range, so that text ends with a whole line; without one, its last whole sequence or character.
fn line_end(reader: &Reader, from: u64, to: u64) -> std::io::Result<u64> {
    let back = to.saturating_sub(64 << 10).max(from);
    let slice = range::read(reader, back, to)?;
    let end = slice.bytes.iter().rposition(|b| *b == b'\n').map_or_else(|| range::whole_text(&slice.bytes), |i| i + 1);
    Ok(slice.from + end as u64)
}

/// The text of the first lines of a range, and where they end. If the text omits lines of the journal (a hand-over, paint),
/// a few more rounds add others. A program that paints without end gets a shorter page.
fn first_lines(
    reader: &Reader,
    (from, to): (u64, u64),
    lines: usize,
    text: impl Fn((u64, u64)) -> std::io::Result<TextView>,
) -> std::io::Result<(TextView, u64)> {
    const ROUNDS_MAX: usize = 16;
    let (mut page, mut end) = (TextView::default(), from);
    for _ in 0..ROUNDS_MAX {
        let missing = lines.saturating_sub(page.head.lines().count());
        if missing == 0 || page.omitted.is_some() || end == to && end > from {
            break;
        }
        end = behind_lines(reader, end, to, missing)?;
        page = text((from, end))?;
    }
    Ok((page, end))
}

/// The offset behind this many lines of a range, or its end.
fn behind_lines(reader: &Reader, from: u64, to: u64, lines: usize) -> std::io::Result<u64> {
    const STEP: u64 = 64 << 10;
    let (mut start, mut left) = (from, lines);
    while start < to {
        let slice = range::read(reader, start, to.min(start + STEP))?;
        let mut ends = slice.bytes.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(i, _)| i);
        match ends.nth(left - 1) {
            Some(at) => return Ok(slice.from + at as u64 + 1),
            None => left -= slice.bytes.iter().filter(|b| **b == b'\n').count(),
        }
        start = slice.from + slice.bytes.len().max(1) as u64;
    }
    Ok(to)
}

/// The offset at which the newest `lines` lines of a range begin; the last one may be unfinished.
fn newest_lines(reader: &Reader, from: u64, to: u64, lines: usize) -> std::io::Result<u64> {
    const STEP: u64 = 64 << 10;
    let (mut end, mut left) = (to, lines);
    while end > from {
        let start = end.saturating_sub(STEP).max(from);
        let slice = range::read(reader, start, end)?;
        for (i, _) in slice.bytes.iter().enumerate().rev().filter(|(_, b)| **b == b'\n') {
            let at = slice.from + i as u64 + 1;
            // A line end at the very end closes the last line and begins none.
            if at == to {
                continue;
            }
            left = left.saturating_sub(1);
            if left == 0 {
                return Ok(at);
            }
        }
        end = start;
    }
    Ok(from)
}
