//! Views of the session: its snapshot and its screen.

use journal::{MaskedText, Masks};
use terminal::Screen;

use crate::action::{Boundary, Foreground, Painter, ScreenView, SessionStatus};
use crate::ids::CommandId;
use crate::limits;
use crate::sessions::session::machine::session::Session;
use crate::sessions::session::requests::{ScreenSnapshot, Snapshot};
use crate::sessions::summary::Summary;
use crate::sessions::timeline::handover::RecentHandovers;
use crate::sessions::views;

/// Journal bytes that are fed to the screen per turn while a viewer waits for it. They are more than a turn reads, so that
/// the screen catches up, and few enough for the other sessions to get their turns.
const DRAW_CHUNK: u64 = 2 * limits::SCAN_CHUNK as u64;

impl Session {
    pub(crate) fn snapshot(&mut self, command: Option<u32>) -> Snapshot {
        let end = self.cx.follower.tail().journal.0;
        // The holder notices a cut journal only when it writes.
        if !self.cx.link.is_gone && self.cx.shared.has_less_than(end) {
            self.cx.is_cut(end);
        }
        let view = self.summary(self.told_foreground()).view(&self.cx.shared);
        let command = command.and_then(|id| self.cx.timeline.log().command(id));
        Snapshot {
            view,
            before_command: command.map_or([0; 3], |c| [c.background_from, c.accepted_at, c.output_from()]),
            command: command
                .map(|c| views::command_view(&self.cx.shared, c, self.cx.timeline.output().scanner.position())),
            paint: self.foreground.paint.clone(),
            was_not_ready: self.foreground.was_not_ready,
            background_from: self.cx.timeline.log().background_from,
            shown_to: self.cx.shown_to(),
            line_is_open: self.cx.timeline.output().scanner.line_is_open(),
            holder_pid: self.cx.timeline.holder_pid(),
            handovers: RecentHandovers::default(),
        }
    }

    /// The foreground for answers and lists. Between the reported end of a command in a nested shell and the kernel's next
    /// state, that shell is on its way to its prompt.
    pub(in crate::sessions::session) fn told_foreground(&self) -> Foreground {
        let is_at_end = self.is_on_its_way_to_prompt();
        match self.foreground() {
            Foreground::Running if is_at_end && self.cx.timeline.log().current.is_some() => Foreground::InputWanted,
            // The session's own shell was replaced.
            Foreground::Running if is_at_end => Foreground::Idle,
            foreground => foreground,
        }
    }

    /// The part of the session's view that changes; `foreground` is its present one.
    pub(in crate::sessions::session) fn summary(&self, foreground: Foreground) -> Summary {
        let status = if self.cx.timeline.end().exit.is_some() || self.cx.link.is_gone {
            SessionStatus::Terminated
        } else if self.cx.timeline.shell().prompt_seen
            || self.foreground.is_heuristic
            || self.cx.timeline.damage().is_some()
        {
            SessionStatus::Running
        } else {
            SessionStatus::Creating
        };
        let boundary = match self.foreground.is_heuristic {
            true => Boundary::Heuristic,
            false if self.cx.shared.spec.handover.is_in_band() => Boundary::Nonce,
            false => Boundary::Attested,
        };
        let end = self.cx.follower.tail().journal.0;
        let mut summary = views::summary(&self.cx.timeline, status, foreground, boundary, end);
        summary.last_activity_us = self.cx.last_activity_us.max(self.cx.timeline.clock().started_us);
        if let Some(trouble) = self.cx.link.silent_trouble() {
            (summary.is_unreachable, summary.trouble) = (true, Some(trouble));
        }
        summary
    }

    /// The present rows of the screen.
    pub(super) fn rows_now(&mut self) -> MaskedText {
        let masks = self.cx.shared.folder.masks().clone();
        MaskedText::joined(&masked_rows(self.screen_now(), &masks))
    }

    pub(super) fn screen_view(&mut self) -> ScreenView {
        let cols = self.cx.timeline.cols();
        let is_alternate = self.cx.timeline.output().scanner.modes().alt_screen;
        let painter = Painter {
            command: self.cx.timeline.log().newest_running().map(CommandId),
            alternate_screens: self.cx.timeline.output().scanner.alternate_screens(),
        };
        let at = self.cx.shown_to();
        let masks = self.cx.shared.folder.masks().clone();
        let mask = |text: &mut [u8]| masks.mask(text);
        let screen = self.screen_at(at);
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
    pub(super) fn draw_some(&mut self, count: u64) {
        self.waits.pictures.retain(|reply| !reply.is_closed());
        if self.waits.pictures.is_empty() {
            return;
        }
        let to = self.cx.shown_to();
        if self.drawn(to, DRAW_CHUNK).at < to {
            return;
        }
        // Viewers continue at the offset that was just published: no byte is in both, and none in neither.
        for reply in std::mem::take(&mut self.waits.pictures) {
            let rows = self.cx.timeline.rows();
            let _ = reply.send(ScreenSnapshot { screen: self.screen_view(), rows, count });
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
