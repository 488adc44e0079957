//! Draws the screen: for a look, and ahead of one.

use std::sync::Arc;

use terminal::{PlainRun, Screen};
use tokio::sync::oneshot;

use crate::sessions::render::drawn_screen::{DrawnOutput, DrawnScreen};
use crate::sessions::render::stored_screen;
use crate::sessions::session::draw_task::DrawTask;
use crate::sessions::session::machine::context::Context;
use crate::sessions::session::machine::drawing::state::Drawing;
use crate::sessions::session::machine::waits::state::OpenWaits;

/// More output than this is drawn ahead: drawing it takes 40 ms.
const AHEAD_BYTES: u64 = 2 << 20;
/// Plain output is drawn ahead after between these amounts, the later the more is drawn: by then it shows whether it can be
/// skipped.
const AHEAD_PLAIN_BYTES: (u64, u64) = (4 << 20, 32 << 20);

impl Drawing {
    pub(crate) fn screen_now(&mut self, cx: &Context) -> &mut Screen {
        let at = cx.timeline.output().scanner.position();
        self.screen_at(cx, at)
    }

    /// The screen at this journal offset, drawn only on demand, from where the last call ended.
    pub(crate) fn screen_at(&mut self, cx: &Context, to: u64) -> &mut Screen {
        &mut self.drawn(cx, to, u64::MAX).screen
    }

    /// The screen on its way to this offset, with at most this many bytes more.
    pub(crate) fn drawn(&mut self, cx: &Context, to: u64, most: u64) -> &mut DrawnScreen {
        self.was_seen = true;
        if self.screen.is_none() {
            self.screen = Some(first_screen(cx));
        }
        let drawn = self.screen.as_mut().expect("invariant: it was made above");
        if drawn.at < to {
            let runs = runs_behind(cx.timeline.output().scanner.plain_runs(), drawn.at);
            let handovers = cx.timeline.log().handovers(handovers_from(&runs, drawn.at));
            let (folder, reader) = (&cx.shared.folder, &cx.shared.reader);
            drawn.draw(&DrawnOutput { folder, reader, handovers, runs }, to, most);
        }
        drawn
    }

    /// Begins a task if a look would have to draw much.
    pub(crate) fn draw_ahead(&mut self, cx: &mut Context, waits: &OpenWaits) {
        // A flood is read first, and a look that is on its way draws everything.
        let waits = cx.follower.is_behind || cx.follower.is_replaying || !waits.pictures.is_empty();
        let scanner = &cx.timeline.output().scanner;
        if waits || self.ahead.is_some() || self.has_failed || scanner.position() <= AHEAD_BYTES {
            return;
        }
        let to = cx.shown_to();
        let at = match &self.screen {
            Some(drawn) => drawn.at,
            None => cx.shared.reader.first().unwrap_or_default().0,
        };
        if to.saturating_sub(at) <= AHEAD_BYTES {
            return;
        }
        let runs = runs_behind(scanner.plain_runs(), at);
        let unfound = self.screen.as_ref().and_then(|drawn| drawn.unfound());
        let passed = runs.iter().filter(|run| Some(run.from) != unfound);
        let passed: u64 = passed.map(|run| run.to.min(to).saturating_sub(run.from.max(at))).sum();
        if to - at - passed.min(to - at) <= AHEAD_BYTES
            && to - at <= (at / 4).clamp(AHEAD_PLAIN_BYTES.0, AHEAD_PLAIN_BYTES.1)
        {
            return;
        }
        let handovers = cx.timeline.log().handovers(handovers_from(&runs, at));
        let screen = match &mut self.screen {
            Some(drawn) => Box::new(drawn.copy()),
            None => first_screen(cx),
        };
        let (reply, ahead) = oneshot::channel();
        self.ahead = Some(ahead);
        cx.effects.draw = Some(DrawTask { shared: Arc::clone(&cx.shared), screen, handovers, runs, to, reply });
    }
}

/// The screen that an earlier server has stored, or a blank one before all output.
fn first_screen(cx: &Context) -> Box<DrawnScreen> {
    let (folder, reader) = (&cx.shared.folder, &cx.shared.reader);
    let (cols, rows) = (cx.timeline.cols(), cx.timeline.rows());
    let stored = stored_screen::load(folder, reader, (cols, rows)).filter(|stored| stored.at <= cx.shown_to());
    let first = reader.first().unwrap_or_default().0;
    Box::new(stored.unwrap_or_else(|| DrawnScreen::new(cols, rows, first)))
}

fn runs_behind(runs: impl Iterator<Item = PlainRun>, at: u64) -> Vec<PlainRun> {
    runs.filter(|run| run.to > at).collect()
}

/// The offset behind which a screen at `at` needs the hand-overs: the search for colours begins at the beginning of its
/// run.
fn handovers_from(runs: &[PlainRun], at: u64) -> u64 {
    runs.first().map_or(at, |run| run.from.min(at))
}
