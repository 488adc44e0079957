//! Draws the screen: for a look, and ahead of one.

use std::sync::Arc;

use terminal::{PlainRun, Screen};
use tokio::sync::oneshot;

use crate::sessions::render::drawn_screen::{DrawnOutput, DrawnScreen};
use crate::sessions::render::stored_screen;
use crate::sessions::session::draw_task::DrawTask;
use crate::sessions::session::machine::session::Session;

/// More output than this is drawn ahead: drawing it takes 40 ms.
const AHEAD_BYTES: u64 = 2 << 20;
/// Plain output is drawn ahead after between these amounts, the later the more is drawn: by then it shows whether it can be
/// skipped.
const AHEAD_PLAIN_BYTES: (u64, u64) = (4 << 20, 32 << 20);

impl Session {
    pub(in crate::sessions::session) fn screen_now(&mut self) -> &mut Screen {
        let at = self.cx.timeline.output().scanner.position();
        self.screen_at(at)
    }

    /// The screen at this journal offset, drawn only on demand, from where the last call ended.
    pub(in crate::sessions::session) fn screen_at(&mut self, to: u64) -> &mut Screen {
        &mut self.drawn(to, u64::MAX).screen
    }

    /// The screen on its way to this offset, with at most this many bytes more.
    pub(in crate::sessions::session::machine) fn drawn(&mut self, to: u64, most: u64) -> &mut DrawnScreen {
        self.drawing.was_seen = true;
        if self.drawing.screen.is_none() {
            self.drawing.screen = Some(self.first_screen());
        }
        let drawn = self.drawing.screen.as_mut().expect("invariant: it was made above");
        if drawn.at < to {
            let runs = runs_behind(self.cx.timeline.output().scanner.plain_runs(), drawn.at);
            let handovers = self.cx.timeline.log().handovers(handovers_from(&runs, drawn.at));
            let (folder, reader) = (&self.cx.shared.folder, &self.cx.shared.reader);
            drawn.draw(&DrawnOutput { folder, reader, handovers, runs }, to, most);
        }
        drawn
    }

    /// The screen that an earlier server has stored, or a blank one before all output.
    fn first_screen(&self) -> Box<DrawnScreen> {
        let (folder, reader) = (&self.cx.shared.folder, &self.cx.shared.reader);
        let (cols, rows) = (self.cx.timeline.cols(), self.cx.timeline.rows());
        let stored = stored_screen::load(folder, reader, (cols, rows)).filter(|stored| stored.at <= self.cx.shown_to());
        let first = reader.first().unwrap_or_default().0;
        Box::new(stored.unwrap_or_else(|| DrawnScreen::new(cols, rows, first)))
    }

    /// Begins a task if a look would have to draw much.
    pub(in crate::sessions::session::machine) fn draw_ahead(&mut self) {
        // A flood is read first, and a look that is on its way draws everything.
        let waits = self.cx.follower.is_behind || self.cx.follower.is_replaying || !self.waits.pictures.is_empty();
        let scanner = &self.cx.timeline.output().scanner;
        if waits || self.drawing.ahead.is_some() || self.drawing.has_failed || scanner.position() <= AHEAD_BYTES {
            return;
        }
        let to = self.cx.shown_to();
        let at = match &self.drawing.screen {
            Some(drawn) => drawn.at,
            None => self.cx.shared.reader.first().unwrap_or_default().0,
        };
        if to.saturating_sub(at) <= AHEAD_BYTES {
            return;
        }
        let runs = runs_behind(scanner.plain_runs(), at);
        let unfound = self.drawing.screen.as_ref().and_then(|drawn| drawn.unfound());
        let passed = runs.iter().filter(|run| Some(run.from) != unfound);
        let passed: u64 = passed.map(|run| run.to.min(to).saturating_sub(run.from.max(at))).sum();
        if to - at - passed.min(to - at) <= AHEAD_BYTES
            && to - at <= (at / 4).clamp(AHEAD_PLAIN_BYTES.0, AHEAD_PLAIN_BYTES.1)
        {
            return;
        }
        let handovers = self.cx.timeline.log().handovers(handovers_from(&runs, at));
        let screen = match &mut self.drawing.screen {
            Some(drawn) => Box::new(drawn.copy()),
            None => self.first_screen(),
        };
        let (reply, ahead) = oneshot::channel();
        self.drawing.ahead = Some(ahead);
        self.cx.effects.draw =
            Some(DrawTask { shared: Arc::clone(&self.cx.shared), screen, handovers, runs, to, reply });
    }
}

fn runs_behind(runs: impl Iterator<Item = PlainRun>, at: u64) -> Vec<PlainRun> {
    runs.filter(|run| run.to > at).collect()
}

/// The offset behind which a screen at `at` needs the hand-overs: the search for colours begins at the beginning of its
/// run.
fn handovers_from(runs: &[PlainRun], at: u64) -> u64 {
    runs.first().map_or(at, |run| run.from.min(at))
}
