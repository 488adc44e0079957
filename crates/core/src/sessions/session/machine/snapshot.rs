//! Views of the session: its snapshot and its screen.

use journal::{MaskedText, Masks};
use terminal::Screen;

use crate::action::{Boundary, Foreground, Painter, ScreenView, SessionStatus};
use crate::ids::CommandId;
use crate::limits;
use crate::sessions::session::ViewerLimit;
use crate::sessions::session::machine::context::Context;
use crate::sessions::session::machine::drawing::state::Drawing;
use crate::sessions::session::machine::foreground::state::ForegroundState;
use crate::sessions::session::machine::waits::state::OpenWaits;
use crate::sessions::session::requests::{ScreenSnapshot, Snapshot};
use crate::sessions::summary::Summary;
use crate::sessions::timeline::handover::RecentHandovers;
use crate::sessions::views;

/// Journal bytes that are fed to the screen per turn while a viewer waits for it. They are more than a turn reads, so that
/// the screen catches up, and few enough for the other sessions to get their turns.
const DRAW_CHUNK: u64 = 2 * limits::SCAN_CHUNK as u64;

pub(crate) fn take(cx: &mut Context, foreground: &ForegroundState, command: Option<u32>) -> Snapshot {
    let end = cx.follower.tail().journal.0;
    // The holder notices a cut journal only when it writes.
    if !cx.link.is_gone && cx.shared.has_less_than(end) {
        cx.is_cut(end);
    }
    let view = summary(cx, foreground, foreground.told_foreground(cx)).view(&cx.shared);
    let command = command.and_then(|id| cx.timeline.log().command(id));
    Snapshot {
        view,
        before_command: command.map_or([0; 3], |c| [c.background_from, c.accepted_at, c.output_from()]),
        command: command.map(|c| views::command_view(&cx.shared, c, cx.timeline.output().scanner.position())),
        paint: foreground.paint.clone(),
        was_not_ready: foreground.was_not_ready,
        background_from: cx.timeline.log().background_from,
        shown_to: cx.shown_to(),
        line_is_open: cx.timeline.output().scanner.line_is_open(),
        holder_pid: cx.timeline.holder_pid(),
        handovers: RecentHandovers::default(),
    }
}

/// The part of the session's view that changes; `foreground` is its present one.
pub(crate) fn summary(cx: &Context, foreground: &ForegroundState, told: Foreground) -> Summary {
    let status = if cx.timeline.end().exit.is_some() || cx.link.is_gone {
        SessionStatus::Terminated
    } else if cx.timeline.shell().prompt_seen || foreground.is_heuristic || cx.timeline.damage().is_some() {
        SessionStatus::Running
    } else {
        SessionStatus::Creating
    };
    let boundary = match foreground.is_heuristic {
        true => Boundary::Heuristic,
        false if cx.shared.spec.handover.is_in_band() => Boundary::Nonce,
        false => Boundary::Attested,
    };
    let end = cx.follower.tail().journal.0;
    let mut summary = views::summary(&cx.timeline, status, told, boundary, end);
    summary.driver = cx.take_over.driver().cloned();
    summary.last_activity_us = cx.last_activity_us.max(cx.timeline.clock().started_us);
    if let Some(trouble) = cx.link.silent_trouble() {
        (summary.is_unreachable, summary.trouble) = (true, Some(trouble));
    }
    summary
}

impl Drawing {
    /// The present rows of the screen.
    pub(super) fn rows_now(&mut self, cx: &Context) -> MaskedText {
        let masks = cx.shared.folder.masks().clone();
        MaskedText::joined(&masked_rows(self.screen_now(cx), &masks))
    }

    pub(super) fn screen_view(&mut self, cx: &Context) -> ScreenView {
        let cols = cx.timeline.cols();
        let is_alternate = cx.timeline.output().scanner.modes().alt_screen;
        let painter = Painter {
            command: cx.timeline.log().newest_running().map(CommandId),
            alternate_screens: cx.timeline.output().scanner.alternate_screens(),
        };
        let at = cx.shown_to();
        let masks = cx.shared.folder.masks().clone();
        let mask = |text: &mut [u8]| masks.mask(text);
        let screen = self.screen_at(cx, at);
        let cursor = screen.cursor();
        ScreenView {
            rows: masked_rows(screen, &masks),
            cursor_row: cursor.row,
            cursor_col: cursor.col,
            cursor_visible: cursor.visible,
            title: masks.text(screen.title().unwrap_or_default().to_owned()),
            cols,
            inverse: screen.inverse(),
            marks: screen.row_marks(),
            is_title_new: true,
            changed: None,
            moved: None,
            is_alternate,
            painter,
            ansi: screen.masked_ansi((!masks.is_none()).then_some(&mask)),
            at,
        }
    }

    /// Feeds more output to the screen, and answers the viewers that wait for it once it is up to date.
    pub(super) fn draw_some(&mut self, cx: &Context, waits: &mut OpenWaits, count: u64) {
        waits.pictures.retain(|reply| !reply.is_closed());
        if waits.pictures.is_empty() {
            return;
        }
        let to = cx.shown_to();
        if self.drawn(cx, to, DRAW_CHUNK).at < to {
            return;
        }
        // Viewers continue at the offset that was just published: no byte is in both, and none in neither.
        for reply in std::mem::take(&mut waits.pictures) {
            let rows = cx.timeline.rows();
            let _ = reply.send(ScreenSnapshot { screen: self.screen_view(cx), rows, count });
        }
    }
}

/// The rows of a screen without trailing blanks. They are masked before the blanks go, which may be within a secret.
fn masked_rows(screen: &Screen, masks: &Masks) -> Vec<MaskedText> {
    let mut rows = masks.lines(screen.unbroken_text());
    for row in &mut rows {
        row.truncate(row.trim_end_matches(' ').len());
    }
    rows
}

/// How far viewers may read, and which markers before that are attested.
pub(super) fn viewer_limit(cx: &Context) -> ViewerLimit {
    ViewerLimit {
        to: cx.timeline.output().scanner.held_from(),
        stream_to: cx.shown_to(),
        text_to: cx.shown_to().min(cx.timeline.output().scanner.text_to()),
        markers: cx.timeline.output().markers.iter().copied().collect(),
        handovers: cx.timeline.log().handovers(0),
        has_exited: cx.timeline.end().exit.is_some(),
    }
}
