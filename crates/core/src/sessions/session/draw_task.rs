//! A task that draws a session's screen ahead of any look, on a thread of low priority.

use std::fmt;
use std::sync::Arc;

use terminal::PlainRun;
use tokio::sync::oneshot;

use crate::sessions::render::drawn_screen::{DrawnOutput, DrawnScreen};
use crate::sessions::render::stored_screen;
use crate::sessions::shared::Shared;
use crate::sessions::timeline::handover::RecentHandovers;

/// One task draws no more than this, so that its screen is soon of use.
const TASK_BYTES: u64 = 2 << 20;
/// After this many bytes, a task checks whether its screen is still wanted.
const STEP_BYTES: u64 = 256 << 10;

/// Draws a screen ahead of any look.
pub(super) struct DrawTask {
    pub(super) shared: Arc<Shared>,
    pub(super) screen: Box<DrawnScreen>,
    pub(super) handovers: RecentHandovers,
    pub(super) runs: Vec<PlainRun>,
    pub(super) to: u64,
    pub(super) reply: oneshot::Sender<Box<DrawnScreen>>,
}

impl fmt::Debug for DrawTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DrawTask({}..{})", self.screen.at, self.to)
    }
}

impl DrawTask {
    pub(super) fn run(self) {
        let Self { shared, mut screen, handovers, runs, to, reply } = self;
        let output = DrawnOutput { folder: &shared.folder, reader: &shared.reader, handovers, runs };
        for _ in 0..TASK_BYTES / STEP_BYTES {
            if screen.at >= to || reply.is_closed() {
                break;
            }
            screen.draw(&output, to, STEP_BYTES);
        }
        // Without it the next server draws this output again.
        if !reply.is_closed() {
            let _ = stored_screen::store(&shared.folder, &shared.reader, &mut screen);
        }
        // Nobody wants the screen of a session that was resized or has ended.
        let _ = reply.send(screen);
    }
}
